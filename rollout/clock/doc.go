// Package clock rounds and compares the times of a plan and formats them for texts.
package clock
