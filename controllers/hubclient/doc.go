// Package hubclient is controller-runtime's cache and client, but for what a rollout does
// with every cluster: it reads the watches of ManifestWorks and ManagedClusterAddOns in
// two passes over their bytes where client-go takes ten, and asks for no more than the
// metadata in answer to an update of a work. Together that is a quarter of what a cluster
// costs the operator.
//
//	API server -- lines: where an event ends --> events: what is around the object
//	           -- objects: the object, typed --> client-go's StreamWatcher --> informer
//
// NewCache and NewClient are what ctrl.Options ask for. Lists, reconnects, retries,
// bookmarks and errors stay with client-go's reflector and its rest.Request.
//
// Nothing is guessed. Each of the three parts of a watch takes exactly the bytes that the
// API server writes and hands all others to the part of client-go that it stands for: a
// stream that is not of lines, an event with its fields in another order, a Status. What
// cannot be decoded is an error of the watch, and the informer lists anew: no event is
// lost.
package hubclient
