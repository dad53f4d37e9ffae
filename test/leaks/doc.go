// Package leaks finds values that only Secrets may hold, and values that a test planted in URLs and variables, in what the
// operator says: logs, events, statuses, metrics, and messages to others.
package leaks
