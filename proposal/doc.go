// Package proposal says what a change would do to a fleet before it is merged: what would refuse it,
// what it changes on the clusters, how many clusters it moves in which stages, and how long that
// takes.
//
//	base, head, fleet ─ Of ─> Proposal ─ Markdown, JSON
//
// A side is a commit as the operator compiles it. The stages and times are those of a forecast by
// the operator's own planner.
//
// Every reader of the repository can read a proposal. Rendering therefore never sees what such a
// reader may not see: with HideNames and HideValues the values of clusters are masked before the content
// is rendered, so that no template and no chart can print them. With HideFleet nothing of the hub is an
// input at all, so that no question of the author has an answer. The values of Secrets are masked in any
// case.
//
// The package is pure: it has no client, no clock and no log.
package proposal
