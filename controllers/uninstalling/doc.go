// Package uninstalling distinguishes the deletion of AddonFlow's own objects from the deletion of
// one add-on or one source.
package uninstalling
