// Package secret keeps credentials out of everything that is printed.
package secret
