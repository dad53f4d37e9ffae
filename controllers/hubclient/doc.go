// Package hubclient is controller-runtime's client, with one difference: an update of a ManifestWork requests only
// the metadata from the API server, because the caller knows the rest of the object. Use NewClient as
// ctrl.Options.NewClient.
//
// Updates filters watch events for the controllers.
//
// Reads and watches are controller-runtime's own; cacheOptions in cmd/addonflow configures the cache, whose objects
// share equal parts (Sharer). Measurements of both: docs/decisions/0022-watches-are-controller-runtimes.md and
// docs/scale.md.
package hubclient
