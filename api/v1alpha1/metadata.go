package v1alpha1

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels, annotations and finalizers that AddonFlow writes on objects. OCM's own objects also have OCM's names.
const (
	// ManagedByLabel marks everything AddonFlow creates; its value is ManagedByValue.
	ManagedByLabel = "addonflow.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel.
	ManagedByValue = "addonflow"

	// SourceAnnotation on a hub object or work names its AddOnSource, as namespace/name.
	SourceAnnotation = "addonflow.io/source"
	// RevisionAnnotation on a work is the digest of the AddOnRevision from which it was rendered.
	RevisionAnnotation = "addonflow.io/revision"
	// DigestAnnotation is the digest of one cluster's rendered objects, all parts together, before AddonFlow adds its
	// marks. It is on works and on every workload in them; the work agent echoes it.
	DigestAnnotation = "addonflow.io/digest"
	// SucceededAtAnnotation on an AddOnRevision is the RFC 3339 time at which a rollout of it last ended Succeeded. A
	// revision with it is proven.
	SucceededAtAnnotation = "addonflow.io/succeeded-at"
	// CommitsAnnotation on an AddOnRevision lists the commits that introduced its content. See Commits.
	CommitsAnnotation = "addonflow.io/commits"
	// PolicyAnnotation on an AddOnRollout is a digest of its declarations in Git besides the target.
	PolicyAnnotation = "addonflow.io/policy"
	// PacePlaceAnnotation on an AddOnRollout is the file and line that declare its pace; absent: its commit declares
	// none.
	PacePlaceAnnotation = "addonflow.io/pace-place"
	// PaceObjectAnnotation is the object and field at that place.
	PaceObjectAnnotation = "addonflow.io/pace-object"
	// LastCommitsAnnotation on an AddOnRollout lists the earlier content of its source. See LastCommit.
	LastCommitsAnnotation = "addonflow.io/last-commits"
	// QuarantinedAnnotation on an AddOnRevision is a Quarantine as JSON. It ends when the annotation
	// is removed.
	QuarantinedAnnotation = "addonflow.io/quarantined"
	// ApproveRemovalAnnotation on an AddOnRollout approves the removal of the add-on by the commit whose sha it has.
	// It lifts grace period and budget.
	ApproveRemovalAnnotation = "addonflow.io/approve-removal"
	// SelectedByAnnotation on a ManagedClusterAddOn that AddonFlow created is the type of the install strategy that
	// last selected its cluster; absent: Placements. A cluster leaves only when that type no longer selects it, so
	// that a change of the type removes no add-on.
	SelectedByAnnotation = "addonflow.io/selected-by"
	// SuspendAnnotation on an AddOnSource or AddOnRollout suspends it from the command line. spec.suspend suspends
	// it, too, without the annotation.
	SuspendAnnotation = "addonflow.io/suspend"

	// ReleaseAnnotation on an AddOnRollout releases its add-on, instead of removing it, when its source no longer
	// declares it. Until then the rollout is suspended. See Releasing.
	ReleaseAnnotation = "addonflow.io/release"

	// HoldUntilAnnotation on a ManagedCluster holds the cluster: it is admitted to no content. An RFC 3339 time is
	// the end of the hold; any other value holds without end. See HeldByAnnotation.
	HoldUntilAnnotation = "addonflow.io/hold-until"

	// GateHostAnnotation on a Secret is the host[:port] for which gates may use it. A gate that calls another host is
	// Error, because the author of a commit must not be able to send a token elsewhere.
	GateHostAnnotation = "addonflow.io/gate-host"

	// SkipPreDeleteAnnotation, with the value "true", on a ManagedClusterAddOn that is being deleted removes it
	// without its pre-delete hooks.
	SkipPreDeleteAnnotation = "addonflow.io/skip-pre-delete"

	// AddOnLabel names the add-on of an AddOnRevision or AddOnRollout.
	AddOnLabel = "addonflow.io/add-on"

	// Finalizer holds three kinds of objects: an AddOnSource until all its objects are removed or released, an
	// AddOnRollout while a cluster has its add-on, and a ClusterManagementAddOn while a source declares it.
	Finalizer = "addonflow.io/finalizer"

	// FieldManager owns the fields that AddonFlow applies server-side.
	FieldManager = "addonflow"

	// FencedAtAnnotation on a ClusterManagementAddOn is the RFC 3339 time at which AddonFlow last fenced it off after
	// actions of OCM's addon-manager.
	FencedAtAnnotation = "addonflow.io/fenced-at"

	// LifecycleAnnotation is OCM's fence on a ClusterManagementAddOn. Any value other than "addon-manager" keeps
	// OCM's install and configuration controllers away.
	LifecycleAnnotation = "addon.open-cluster-management.io/lifecycle"
	// LifecycleValue is the value AddonFlow sets for LifecycleAnnotation.
	LifecycleValue = "addonflow"
)

// SuspendedByAnnotation reports whether a user suspended an object by SuspendAnnotation. Any value except "false"
// suspends, because a user who sets the annotation wants to suspend.
func SuspendedByAnnotation(annotations map[string]string) bool {
	value, ok := annotations[SuspendAnnotation]
	return ok && value != "false"
}

// HeldByAnnotation reports whether HoldUntilAnnotation is set, and the end of the hold; zero: without end. A value
// that is not a time holds without end, because a user who sets the annotation wants to hold the cluster.
func HeldByAnnotation(annotations map[string]string) (held bool, until time.Time) {
	value, held := annotations[HoldUntilAnnotation]
	if until, err := time.Parse(time.RFC3339, value); err == nil {
		return held, until
	}
	return held, time.Time{}
}

// commitsKept is the most commits that an AddOnRevision names: 200 that introduced the same content.
const commitsKept = 200

// CommitOf returns the name in a revision: the sha of <ref>@sha1:<commit> or of
// <tag>@sha256:<digest>+sha1:<commit>, or the digest of <tag>@sha256:<digest>, without its algorithm; ""
// for any other text.
func CommitOf(revision string) string {
	name := revision[strings.LastIndexByte(revision, '@')+1:]
	if digest, commit, found := strings.Cut(name, "+"); found && strings.HasPrefix(digest, "sha256:") {
		name = commit
	}
	algorithm, name, found := strings.Cut(name, ":")
	if !found || algorithm != "sha1" && algorithm != "sha256" {
		return ""
	}
	return name
}

// RestoreCommand is the git command that restores the directory PATH from a commit, in the index (S) and in the
// working tree (W). Its options are short, because commit statuses have 140 characters. Unlike git checkout, it also
// removes files that later commits added. It leaves out the file of the AddOnRollout, because an older policy may
// lack gates, the failure policy and blocked content of later commits.
func RestoreCommand(sha string) string {
	return "git restore -SWs " + sha + " PATH ':!*addonrollout.*'"
}

// lastCommitsKept is the most commits in LastCommitsAnnotation.
const lastCommitsKept = 10

// LastCommit is the last commit that declared a content of a rollout, <ref>@sha1:<commit>, before its source declared
// other content. If it is not known, it is the commit that introduced the content.
func LastCommit(annotations map[string]string, of Target) string {
	for entry := range strings.FieldsSeq(annotations[LastCommitsAnnotation]) {
		if revision, commit, _ := strings.Cut(entry, "="); revision == of.Revision {
			return commit
		}
	}
	return of.Commit
}

// LastCommitsAfter is the LastCommitsAnnotation of a rollout after its source declares other content. commit is the
// last commit that declared the earlier content: the one that was applied last.
func LastCommitsAfter(annotations map[string]string, before Target, commit string) string {
	kept := slices.DeleteFunc(strings.Fields(annotations[LastCommitsAnnotation]), func(entry string) bool {
		return strings.HasPrefix(entry, before.Revision+"=")
	})
	kept = slices.Insert(kept, 0, before.Revision+"="+commit)
	return strings.Join(kept[:min(len(kept), lastCommitsKept)], " ")
}

// Commits are the commits that introduced the content of an AddOnRevision, <ref>@sha1:<commit>, the
// newest first.
func Commits(annotations map[string]string) []string {
	return strings.Fields(annotations[CommitsAnnotation])
}

// AddCommit enters a commit that introduces the content of an AddOnRevision. It reports whether the
// annotation changed.
func AddCommit(revision *metav1.ObjectMeta, commit string) bool {
	known := Commits(revision.Annotations)
	if slices.Contains(known, commit) {
		return false
	}
	known = slices.Insert(known, 0, commit)
	metav1.SetMetaDataAnnotation(revision, CommitsAnnotation, strings.Join(known[:min(len(known), commitsKept)], " "))
	return true
}
