// Package roundtrip compares what render computes without a hub with what a hub does: the hash
// of a configuration as it is stored, and which manifests a template may contain.
package roundtrip
