// Package clock rounds the times of a plan and writes them for people.
package clock
