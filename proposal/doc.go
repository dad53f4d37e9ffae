// Package proposal shows the effect of a change on a fleet before the change is merged: the problems for which it
// would be refused, the changes on the clusters, how many clusters it moves in which stages, and how long that takes.
//
//	base, head, fleet ─ Of ─> Proposal ─ Markdown, JSON
//
// Base and head are commits as the operator compiles them. A forecast by the operator's own planner gives the stages
// and times.
//
// Every reader of the repository can read a proposal. So the input of the rendering has only what such a reader may
// see. With HideNames and HideValues, the values of clusters are masked before the content is rendered, so that no
// template and no chart can print them. With HideFleet, nothing of the hub is in the input, so that the author of a
// change can find out nothing about the hub. The values of Secrets are always masked.
//
// The package is pure: it has no client, no clock and no log.
package proposal
