// Package v1alpha1 holds the kinds of the API group addonflow.io: what a user declares and what
// AddonFlow reports.
//
//	AddOnSource    a Git repository, which revision of it, where its commit
//	               statuses go; written by the user
//	AddOnRevision  an immutable snapshot of one add-on's content, named after
//	               its digest; written by AddonFlow
//	AddOnRollout   policy (spec, from Git or defaulted) and the admission
//	               ledger (status) of one add-on; status is written by AddonFlow
//
// Data flows in one direction: a commit becomes AddOnRevisions, an AddOnRollout names the
// target revision, its status says which clusters may run it. AddOnRollout.status.ledger is the
// only memory of slots; status.targetSince and stages[].gates[] hold the times of the rollout and of
// its gates. The operator decides nothing by a condition that it wrote itself.
//
// The package imports API types only: no client, no logic beyond accessors.
//
// +kubebuilder:object:generate=true
// +groupName=addonflow.io
package v1alpha1
