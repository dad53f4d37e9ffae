// Package hubclient is controller-runtime's client, with one difference: an update of a
// ManifestWork asks the API server for the metadata only, because the rest of the answer
// is what was sent. NewClient is what ctrl.Options asks for.
//
// Reads and watches are controller-runtime's own; what the cache keeps is said by
// cacheOptions in cmd/addonflow. Measured, with and without:
// docs/decisions/0022-watches-are-controller-runtimes.md.
package hubclient
