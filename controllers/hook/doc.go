// Package hook receives the webhooks of forges.
//
// A webhook makes the operator look at a source now, and nothing else: no byte of its payload is parsed. It is accepted
// if its path is the one in the status of a source, and if its signature or token is made with the Secret of that source.
// Every replica receives webhooks; each one writes the annotation reconcile.fluxcd.io/requestedAt, at most once a second
// for a source. So replays and floods of accepted webhooks become at most one look a second.
package hook
