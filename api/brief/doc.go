// Package brief shortens lists to their first few names, so that a text about ten thousand
// clusters is as long as one about ten.
package brief
