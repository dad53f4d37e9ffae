package v1alpha1

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FailureAction is what happens when a rollout fails.
type FailureAction string

const (
	// OnFailurePause stops admissions: clusters keep what they run.
	OnFailurePause FailureAction = "Pause"
	// OnFailureRollback also moves the clusters that have the content back to the newest revision
	// that succeeded.
	OnFailureRollback FailureAction = "Rollback"
)

// RollbackPolicy limits rollbacks.
type RollbackPolicy struct {
	// WithCRDs permits rollbacks that change a CustomResourceDefinition. A rollback that removes
	// one is never carried out.
	// +optional
	WithCRDs bool `json:"withCRDs,omitempty"`
}

// BlockedContent is content that no cluster is to run.
// +kubebuilder:validation:XValidation:rule="has(self.digest) != has(self.commit)",message="name digest or commit"
type BlockedContent struct {
	// Digest of the content, v1:sha256:<hex>.
	// +kubebuilder:validation:Pattern="^v1:sha256:[0-9a-f]{64}$"
	// +optional
	Digest string `json:"digest,omitempty"`
	// Commit that introduced the content, at least seven hexadecimal digits of its sha.
	// +kubebuilder:validation:Pattern="^[0-9a-f]{7,40}$"
	// +optional
	Commit string `json:"commit,omitempty"`
	// Reason in words.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
}

// Blocks reports whether the entry names the content of a target.
func (b BlockedContent) Blocks(t Target) bool {
	if b.Digest != "" {
		return b.Digest == t.Digest
	}
	return b.Commit != "" && strings.HasPrefix(CommitOf(t.Commit), b.Commit)
}

// Quarantine is the value of QuarantinedAnnotation: no cluster is admitted to the revision, and
// it is neither stable nor proven, until it is unblocked.
type Quarantine struct {
	// Time at which it began; absent: the annotation cannot be read.
	// +optional
	Time metav1.Time `json:"time,omitzero"`
	// Reason in words.
	Reason string `json:"reason"`
	// Order is the name of the AddOnOrder that asked for it; "": the rollout failed.
	Order string `json:"order,omitempty"`
	// Author of the order.
	Author string `json:"author,omitempty"`
	// WithCRDs: the order permits that CustomResourceDefinitions are changed.
	WithCRDs bool `json:"withCRDs,omitempty"`
	// To is the digest of the content that the order names to return to; "": the newest revision
	// that succeeded.
	To string `json:"to,omitempty"`
	// Proposed is the address of the pull request that reverts the content in Git; "" without one.
	Proposed string `json:"proposed,omitempty"`
}

// RememberedQuarantine is the quarantine of an AddOnRevision, for the time after its deletion.
type RememberedQuarantine struct {
	Quarantine `json:",inline"`
	// RevisionUID is the uid of the AddOnRevision. If another one has its name, the annotation was lost
	// and not removed.
	RevisionUID types.UID `json:"revisionUID"`
}

// ReadQuarantine reads the quarantine of an AddOnRevision from its annotations. A value that
// cannot be read quarantines as well.
func ReadQuarantine(annotations map[string]string) (q Quarantine, quarantined bool) {
	text, ok := annotations[QuarantinedAnnotation]
	if !ok {
		return Quarantine{}, false
	}
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return Quarantine{Reason: "annotation " + QuarantinedAnnotation + " cannot be read"}, true
	}
	return q, true
}

// OverrideKind says why the fleet runs other content than Git declares.
type OverrideKind string

const (
	// OverrideRollback: the declared content failed.
	OverrideRollback OverrideKind = "Rollback"
	// OverrideRecall: an order rolls the declared content back.
	OverrideRecall OverrideKind = "Recall"
	// OverrideBlocked: spec.blocked names the declared content.
	OverrideBlocked OverrideKind = "Blocked"
	// OverrideFinish: the declared content waits until the rollout of the target has ended.
	OverrideFinish OverrideKind = "Finish"
)

// NewCommitAction is what happens when a commit declares new content during a rollout.
type NewCommitAction string

const (
	// OnNewCommitSupersede rolls out the new content at once.
	OnNewCommitSupersede NewCommitAction = "Supersede"
	// OnNewCommitFinish ends the rollout that is running before it rolls out the newest content.
	OnNewCommitFinish NewCommitAction = "Finish"
)

// Returns reports whether the fleet goes back to earlier content.
func (o *Override) Returns() bool { return o != nil && o.Kind != OverrideFinish }

// Waits reports whether the declared content waits for the rollout or rollback that is running.
func (o *Override) Waits() bool { return o != nil && (o.Kind == OverrideFinish || o.From != nil) }

// Leaves is the content that the fleet goes back from.
func (o *Override) Leaves() Target {
	if o.From != nil {
		return *o.From
	}
	return o.Declared
}

// Override says that status.target is not the content that Git declares, and why.
type Override struct {
	// Kind is Rollback, Recall (an order to roll back), Blocked or Finish.
	Kind OverrideKind `json:"kind"`
	// Declared is the content that Git declares.
	Declared Target `json:"declared"`
	// From is the content that the fleet goes back from; absent: the declared content. With
	// onNewCommit Finish, newer content waits until the fleet is back.
	// +optional
	From *Target `json:"from,omitempty"`
	// Reason in words.
	Reason string `json:"reason"`
	// Author of the order or commit; absent: the operator.
	// +optional
	Author string `json:"author,omitempty"`
	// Proposed is the address of the pull request that reverts the content in Git; absent without one.
	// +optional
	Proposed string `json:"proposed,omitempty"`
}
