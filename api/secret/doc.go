// Package secret keeps credentials out of every text, and names the Secrets that have them.
package secret
