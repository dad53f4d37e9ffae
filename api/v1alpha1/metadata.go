package v1alpha1

// Labels, annotations and finalizers AddonFlow puts on objects. OCM's own
// objects carry these besides the names OCM gives them, never instead.
const (
	// ManagedByLabel marks everything AddonFlow creates; its value is ManagedByValue.
	ManagedByLabel = "addonflow.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel.
	ManagedByValue = "addonflow"

	// SourceAnnotation names the AddOnSource, as namespace/name, that a hub
	// object or work came from.
	SourceAnnotation = "addonflow.io/source"
	// RevisionAnnotation is the digest of the AddOnRevision a work was rendered from.
	RevisionAnnotation = "addonflow.io/revision"
	// DigestAnnotation is the digest of one cluster's rendered objects, all parts
	// together, before AddonFlow's own marks. It stands on works and on every
	// workload in them, and is what an agent echoes.
	DigestAnnotation = "addonflow.io/digest"
	// SucceededAtAnnotation on an AddOnRevision is the RFC 3339 time at which a
	// rollout of it last ended Succeeded. A revision that carries it was verified before.
	SucceededAtAnnotation = "addonflow.io/succeeded-at"
	// ApproveRemovalAnnotation on an AddOnRollout names the commit sha whose
	// removal of the add-on is approved; it lifts grace period and budget.
	ApproveRemovalAnnotation = "addonflow.io/approve-removal"
	// SelectedByAnnotation on a ManagedClusterAddOn of ours is the type of the install
	// strategy that last selected its cluster; absent: Placements. A cluster leaves when that
	// type selects it no more, so that switching the type keeps what is there.
	SelectedByAnnotation = "addonflow.io/selected-by"
	// SuspendAnnotation on an AddOnSource or AddOnRollout suspends it from the
	// command line; a suspend declared in spec wins over its absence.
	SuspendAnnotation = "addonflow.io/suspend"

	// ReleaseAnnotation on an AddOnRollout lets go of its add-on when its source declares
	// it no more, instead of removing it; until then it suspends. See Releasing.
	ReleaseAnnotation = "addonflow.io/release"

	// SkipPreDeleteAnnotation on a ManagedClusterAddOn that is being deleted, with the
	// value "true", removes it without its pre-delete hooks, whatever they left undone.
	SkipPreDeleteAnnotation = "addonflow.io/skip-pre-delete"

	// AddOnLabel names the add-on an AddOnRevision or AddOnRollout belongs to.
	AddOnLabel = "addonflow.io/add-on"

	// Finalizer holds an AddOnSource until what it declared is dealt with, an AddOnRollout
	// while any cluster runs its add-on, and a ClusterManagementAddOn while a source has it.
	Finalizer = "addonflow.io/finalizer"

	// FieldManager owns the fields AddonFlow applies server-side.
	FieldManager = "addonflow"

	// FencedAtAnnotation on a ClusterManagementAddOn is when AddonFlow last fenced it off from
	// OCM's addon-manager, which had acted on it before, as RFC 3339.
	FencedAtAnnotation = "addonflow.io/fenced-at"

	// LifecycleAnnotation is OCM's fence on a ClusterManagementAddOn; any value
	// other than "addon-manager" keeps OCM's install and configuration
	// controllers away.
	LifecycleAnnotation = "addon.open-cluster-management.io/lifecycle"
	// LifecycleValue is the value AddonFlow sets for LifecycleAnnotation.
	LifecycleValue = "addonflow"
)

// SuspendedByAnnotation tells whether a user suspended an object by SuspendAnnotation: by
// any value but "false", because whoever sets it means to stop something.
func SuspendedByAnnotation(annotations map[string]string) bool {
	value, ok := annotations[SuspendAnnotation]
	return ok && value != "false"
}
