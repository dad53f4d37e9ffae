package v1alpha1

// Condition types. Ready, Reconciling and Stalled are those of github.com/fluxcd/pkg/apis/meta, with the meaning of
// kstatus.
const (
	// CommitStatusReportedCondition says whether the forge accepted the commit statuses.
	CommitStatusReportedCondition = "CommitStatusReported"
	// CommitStatusDeniedCondition is True while the forge refuses the token; its message names
	// the permission that the token needs. It is absent otherwise. Rollouts do not wait for it.
	CommitStatusDeniedCondition = "CommitStatusDenied"
	// RevertProposedCondition says whether there is a pull request for content that was rolled back. Its message has
	// the address of the pull request, or why there is none. It is absent while the fleet runs the content of Git,
	// and without spec.commitStatus.revertPullRequest.
	RevertProposedCondition = "RevertProposed"
	// OverriddenCondition is True while clusters move back, or have moved back, from content that Git declares. Its
	// message names the add-ons, and says how to make Git declare the content that the clusters run. It is absent
	// otherwise.
	OverriddenCondition = "Overridden"
	// ClustersWrittenCondition is False while works or add-ons of some clusters cannot be written. Its message names
	// the clusters. It is absent otherwise. The rollout continues on the other clusters.
	ClustersWrittenCondition = "ClustersWritten"
)

// Reasons of conditions and events.
const (
	// FetchFailedReason: the repository or ref could not be read; retried.
	FetchFailedReason = "FetchFailed"
	// InvalidURLReason: spec.url cannot be used; the user must change it.
	InvalidURLReason = "InvalidURL"
	// InvalidReferenceReason: no repository can have spec.ref; the user must change it.
	InvalidReferenceReason = "InvalidReference"
	// InvalidCredentialsReason: the Secret of spec.secretRef lacks a key or is malformed.
	InvalidCredentialsReason = "InvalidCredentials"
	// ImpersonationDeniedReason: the operator may not act as spec.serviceAccountName; retried.
	ImpersonationDeniedReason = "ImpersonationDenied"
	// InvalidTenantsReason: the policy of tenants cannot be used or read; no commit is applied, and
	// no cluster is written.
	InvalidTenantsReason = "InvalidTenants"
	// TenantDeniedReason: the source is not a tenant, or lacks a field that tenants must set. Or the tenant may not
	// have the add-on or the clusters of its rollout.
	TenantDeniedReason = "TenantDenied"
	// RefNotFoundReason: spec.ref matches nothing in the repository.
	RefNotFoundReason = "RefNotFound"
	// BuildFailedReason: the tree of the commit could not be built or decoded.
	BuildFailedReason = "BuildFailed"
	// ValidationFailedReason: the commit's objects were refused; nothing was applied.
	ValidationFailedReason = "ValidationFailed"
	// LimitExceededReason: the commit is larger than a documented limit.
	LimitExceededReason = "LimitExceeded"
	// VerificationFailedReason: the commit or its tag lacks a signature that spec.verify requires; nothing of it was
	// rendered.
	VerificationFailedReason = "VerificationFailed"
	// NonFastForwardReason: the branch moved to a commit that does not contain the applied one;
	// nothing of it was rendered.
	NonFastForwardReason = "NonFastForward"
	// ReferenceNotFoundReason: an object referenced on the hub does not exist yet; retried.
	ReferenceNotFoundReason = "ReferenceNotFound"
	// DefinitionMissingReason: a CustomResourceDefinition of AddonFlow is missing or is being deleted, so nothing can
	// be applied; retried.
	DefinitionMissingReason = "DefinitionMissing"
	// PlacementUndecidedReason: OCM has not decided about a placement, or is still writing its
	// decisions; retried.
	PlacementUndecidedReason = "PlacementUndecided"
	// RenderInterruptedReason: a package could not be rendered for a reason outside its
	// content, such as a deadline; retried.
	RenderInterruptedReason = "RenderInterrupted"
	// ApplyFailedReason: a hub object could not be written; retried.
	ApplyFailedReason = "ApplyFailed"
	// OwnershipConflictReason: another source or a foreign writer owns the object.
	OwnershipConflictReason = "OwnershipConflict"
	// ObjectConflictReason: another add-on, whose work is older, deploys one of the objects to the same cluster with
	// different content.
	ObjectConflictReason = "ObjectConflict"
	// TakingOverReason: the add-on is being taken over from OCM's addon-manager.
	TakingOverReason = "TakingOver"
	// DeletionGuardReason: a removal waits for its grace period, budget or approval; or a
	// deleted rollout is kept while a cluster has its add-on.
	DeletionGuardReason = "DeletionGuard"
	// AddOnDeletedReason: a ClusterManagementAddOn that Git declares was deleted on the hub.
	AddOnDeletedReason = "AddOnDeleted"
	// FenceRestoredReason: OCM's addon-manager wrote to add-ons while their fence was down.
	FenceRestoredReason = "FenceRestored"
	// SuspendedReason: suspended by spec or annotation.
	SuspendedReason = "Suspended"
	// RevisionMissingReason: an AddOnRevision that clusters run has no body; those clusters are held.
	RevisionMissingReason = "RevisionMissing"
	// InvalidHealthReason: the rollout's health policy cannot be judged.
	InvalidHealthReason = "InvalidHealth"
	// InvalidRolloutStrategyReason: the rollout's policy cannot be planned.
	InvalidRolloutStrategyReason = "InvalidRolloutStrategy"
	// DependencyCycleReason: add-ons depend on each other in a cycle.
	DependencyCycleReason = "DependencyCycle"
	// InvalidLedgerReason: the stored ledger breaks its own rules; everything is held.
	InvalidLedgerReason = "InvalidLedger"
	// LedgerFullReason: admissions wait because the ledger is at its size limit.
	LedgerFullReason = "LedgerFull"
	// RolloutProgressingReason: clusters are being moved to the target revision.
	RolloutProgressingReason = "RolloutProgressing"
	// RolloutSucceededReason: every cluster of the rollout runs the target revision.
	RolloutSucceededReason = "RolloutSucceeded"
	// RolloutFailedReason: more clusters failed than the failure budget allows; no further
	// cluster is admitted.
	RolloutFailedReason = "RolloutFailed"
	// RollingBackReason: clusters are being moved back to content that Git does not declare.
	RollingBackReason = "RollingBack"
	// RolledBackReason: the clusters were moved back to content that Git does not declare.
	RolledBackReason = "RolledBack"
	// RolloutHeldReason: the strategy has moved its share (Ready is True), or the rollout waits for a gate, a
	// placement or a user (Ready is Unknown).
	RolloutHeldReason = "RolloutHeld"
	// RolloutRevertedReason: the target is content that succeeded on this hub before.
	RolloutRevertedReason = "RolloutReverted"
	// StageStartedReason: the first cluster of a stage was admitted.
	StageStartedReason = "StageStarted"
	// GateWaitingReason: a stage waits for the verdict of a gate.
	GateWaitingReason = "GateWaiting"
	// GatePassedReason: a gate lets a stage continue.
	GatePassedReason = "GatePassed"
	// GateFailedReason: a gate does not let a stage continue.
	GateFailedReason = "GateFailed"
	// GateErrorReason: a gate could not be evaluated.
	GateErrorReason = "GateError"
	// RemovalStartedReason: the add-on is being removed from the fleet.
	RemovalStartedReason = "RemovalStarted"
	// RemovalEndedReason: no cluster has the add-on.
	RemovalEndedReason = "RemovalEnded"
	// RepairedReason: works that another client changed or deleted were written again.
	RepairedReason = "Repaired"
	// ClockSteppedReason: the operator's clock was set; stored times were moved with it.
	ClockSteppedReason = "ClockStepped"
	// WriteRefusedReason: the hub refused a write that the rollout needs, other than a write to a cluster.
	WriteRefusedReason = "WriteRefused"
	// ReleasedReason: AddonFlow released the add-on, which stays on its clusters.
	ReleasedReason = "Released"
	// PreDeleteHookOverdueReason: a pre-delete hook failed or takes too long; its cluster keeps the add-on.
	PreDeleteHookOverdueReason = "PreDeleteHookOverdue"
	// PreDeleteHookSkippedReason: an add-on was removed from a cluster without its pre-delete hooks.
	PreDeleteHookSkippedReason = "PreDeleteHookSkipped"
	// DeliveryFailedReason: the forge did not accept a commit status; retried.
	DeliveryFailedReason = "DeliveryFailed"
	// TokenMissingReason: there is no token.
	TokenMissingReason = "TokenMissing"
	// TokenRefusedReason: the forge does not know the token.
	TokenRefusedReason = "TokenRefused"
	// PermissionMissingReason: the token may not write commit statuses.
	PermissionMissingReason = "PermissionMissing"
	// ProposedReason: the pull request exists.
	ProposedReason = "Proposed"
	// NotRevertibleReason: restored files of the add-on would change more or less than its content, so no pull
	// request is opened.
	NotRevertibleReason = "NotRevertible"
	// DeliveredReason: the forge accepted every commit status.
	DeliveredReason = "Delivered"
)

// Reasons of a ManagedClusterAddOn's Progressing condition, from OCM's lifecycle proposal.
const (
	Installing      = "Installing"
	InstallSucceed  = "InstallSucceed"
	InstallFailed   = "InstallFailed"
	Upgrading       = "Upgrading"
	UpgradeSucceed  = "UpgradeSucceed"
	UpgradeFailed   = "UpgradeFailed"
	RollingBack     = "RollingBack"
	RollbackSucceed = "RollbackSucceed"
	RollbackFailed  = "RollbackFailed"
	// ProbeDegraded and ProbeNotDegraded are the reasons of Degraded, for which OCM
	// has none.
	ProbeDegraded    = "ProbeDegraded"
	ProbeNotDegraded = "ProbeNotDegraded"
)

// BlamesPolicy reports whether a reason of Stalled is only about the spec of an AddOnRollout, and not about the
// content that it rolls out.
func BlamesPolicy(reason string) bool {
	return reason == InvalidRolloutStrategyReason || reason == InvalidHealthReason
}
