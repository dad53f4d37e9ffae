// Package brief names the first few of many, so that a text says who it is about and is
// as long for ten thousand clusters as for ten.
package brief
