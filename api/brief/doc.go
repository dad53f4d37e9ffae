// Package brief shortens what is shown to people: lists to their first few names, so that a text
// about ten thousand clusters is as long as one about ten, and text to one visible line. It also
// writes counts and durations.
package brief
