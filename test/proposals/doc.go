// Package proposals tests AddonFlow with the examples of the texts that define OCM's
// add-ons: the proposals for add-on configuration, install strategy, lifecycle and
// templates, and the guide for developers of add-ons.
//
// Every directory testdata/<text>/<example> is one example, committed as a user would:
//
//	case.yaml     what the example shows, and the clusters it is rendered for
//	commit/       what is in Git
//	hub/          what is on the hub: ManagedClusterAddOns, configurations they name,
//	              CustomResourceDefinitions
//	want.yaml     AddonFlow's result: which clusters get it and how fast, and for each
//	              cluster its configurations, registrations, works and objects
//	problems.txt  lint's output, if it is refused
//
// An example with fields that OCM's API never got is there twice: as it was written
// (as-written), with lint's hints, and with the fields of the API.
package proposals
