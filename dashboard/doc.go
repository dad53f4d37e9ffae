// Package dashboard draws the pages behind commit statuses: a fleet, a rollout, a cluster, a
// source. A page is a function of API objects and the time:
//
//	AddOnRollout, AddOnSource, plan, change  --NewRollout, NewFleet, ...-->  view  --Pages-->  HTML
//
// A view has every word and number of its page; the templates only place them. html/template escapes all of them,
// because names, reasons and messages come from clusters and from Git. The words are those of package show, so that
// page and CLI say the same.
//
// A part that the viewer may not see is absent from the input, and the page says so. The page works without its
// script, which only loads it again after a change. Clusters are drawn as squares. While a page is smaller than
// linksBytes, each square is a link; in a larger page, one path has all clusters of a state and reason.
//
// The package reads no client, clock or environment.
package dashboard
