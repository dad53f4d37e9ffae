// Package recording writes traces of everything that operators do on a hub. It keeps every
// version of every AddOnRollout and every content of a ManifestWork that the API server stored,
// and joins them with the plans that operators appended to a file (addonflow controller
// --trace-file). rollouttest.History judges each trace; command trace replays one.
package recording
