// Package freeport finds addresses for programs that must be given one before they listen.
package freeport
