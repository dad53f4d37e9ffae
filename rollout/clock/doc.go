// Package clock rounds the times of a plan and formats them for texts.
package clock
