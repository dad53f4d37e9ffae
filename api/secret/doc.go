// Package secret keeps credentials out of everything that is printed, and names the Secrets that have them.
package secret
