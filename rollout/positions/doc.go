// Package positions writes sets of positions in a list as text: 0, 1, 2 and 7 are "0-2,7".
package positions
