// Package uninstalling tells the deletion of AddonFlow's own objects from a deletion that is
// about one add-on or one source.
package uninstalling
