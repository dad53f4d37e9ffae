// Package v1alpha1 holds the kinds of the API group addonflow.io: what a user declares and what
// AddonFlow reports.
//
//	AddOnSource    a Git repository, which revision of it, where its commit
//	               statuses go; written by the user
//	AddOnRevision  an immutable snapshot of one add-on's content, named after
//	               its digest; written by AddonFlow
//	AddOnRollout   policy (spec, from Git or defaulted) and the admission
//	               ledger (status) of one add-on; status is written by AddonFlow
//	AddOnApproval  a decision of a user on a gate; written by the user
//	AddOnOrder     a request of a user to a rollout, such as rollback; written by
//	               the user and answered by AddonFlow
//	AddOnPackage   a chart or manifests, in Git only
//
// Data flows in one direction: a commit becomes AddOnRevisions, an AddOnRollout names the
// target revision, its status says which clusters may run it. AddOnRollout.status.ledger is the
// only memory of slots; status.targetSince and stages[].gates[] hold the times of the rollout and of
// its gates. The operator moves no cluster because of a condition that it wrote itself, with one exception: a dependent
// add-on waits while the rollout that it depends on reports an OwnershipConflict.
//
// The package imports no client. Its only logic is accessors and parsers of field values.
//
// +kubebuilder:object:generate=true
// +groupName=addonflow.io
package v1alpha1
