// Package hook receives the webhooks of forges.
//
// A webhook makes the operator look at a source now, and has no other effect: no byte of its payload is parsed. It is
// accepted if its path is in the status of a source, and its signature or token is made with the Secret of that
// source. Every replica receives webhooks. Each replica writes the annotation reconcile.fluxcd.io/requestedAt, at
// most once a second for a source. So a flood of accepted webhooks causes at most one look a second.
package hook
