// Package recording makes traces of everything that operators do on a hub: it keeps every
// version of every AddOnRollout and every content of a ManifestWork that the API server
// stored, and joins them with the plans that operators appended to a file (addonflow
// controller --trace-file). Each trace is judged by rollouttest.History; command trace
// replays one.
package recording
