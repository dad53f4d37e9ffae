// Package roundtrip holds what render computes without a hub against what a hub does:
// the hash of a configuration as it is stored, and which manifests a template may hold.
package roundtrip
