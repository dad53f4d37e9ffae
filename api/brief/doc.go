// Package brief shortens texts for people. It cuts a list to its first few names, so that a text about ten thousand
// clusters is not longer than a text about ten. It cuts other texts to one visible line. It also writes counts and
// durations.
package brief
