// Package proposals holds AddonFlow to the examples of the texts that OCM's add-ons come
// from: the proposals for add-on configuration, install strategy, lifecycle and
// templates, and the guide for developers of add-ons.
//
// Every directory testdata/<text>/<example> is one example, committed as a user would:
//
//	case.yaml     what the example shows, and the clusters it is rendered for
//	commit/       what is in Git
//	hub/          what is on the hub: ManagedClusterAddOns, configurations they name,
//	              CustomResourceDefinitions
//	want.yaml     what AddonFlow makes of it: who gets it and how fast, and for each
//	              cluster its configurations, registrations, works and objects
//	problems.txt  what lint says of it, where it is refused
//
// An example whose fields never made it into OCM's API stands twice: as it was written
// (as-written), with the hints that lint has for it, and in the fields that there are.
package proposals
