package v1alpha1

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FailureAction is the effect of a failed rollout.
type FailureAction string

const (
	// OnFailurePause stops admissions. Clusters keep their content.
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

// BlockedContent is content to which no cluster is admitted.
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
	// Order is the name of the AddOnOrder that requested the quarantine; "": the rollout failed.
	Order string `json:"order,omitempty"`
	// Author of the order.
	Author string `json:"author,omitempty"`
	// WithCRDs: the order permits that CustomResourceDefinitions are changed.
	WithCRDs bool `json:"withCRDs,omitempty"`
	// To is the digest of the content to which the order returns; "": the newest revision that succeeded.
	To string `json:"to,omitempty"`
	// Proposed is the address of the pull request that reverts the content in Git; "": there is none.
	Proposed string `json:"proposed,omitempty"`
}

// RememberedQuarantine is the quarantine of an AddOnRevision, kept after the deletion of the revision.
type RememberedQuarantine struct {
	Quarantine `json:",inline"`
	// RevisionUID is the uid of the AddOnRevision. If the revision of that name has another uid, the annotation was
	// lost, not removed.
	RevisionUID types.UID `json:"revisionUID"`
}

// ReadQuarantine reads the quarantine of an AddOnRevision from its annotations. A value that cannot be read
// quarantines, too.
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

// OverrideKind says why the fleet does not run the content of Git.
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

// NewCommitAction is the effect of a commit that declares new content during a rollout.
type NewCommitAction string

const (
	// OnNewCommitSupersede rolls out the new content at once.
	OnNewCommitSupersede NewCommitAction = "Supersede"
	// OnNewCommitFinish ends the current rollout before the newest content is rolled out.
	OnNewCommitFinish NewCommitAction = "Finish"
)

// Returns reports whether the fleet moves back to earlier content.
func (o *Override) Returns() bool { return o != nil && o.Kind != OverrideFinish }

// Waits reports whether the declared content waits for the current rollout or rollback.
func (o *Override) Waits() bool { return o != nil && (o.Kind == OverrideFinish || o.From != nil) }

// Leaves is the content from which the fleet moves back.
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
	// From is the content from which the fleet moves back; absent: the declared content. With onNewCommit Finish,
	// newer content waits until the fleet has moved back.
	// +optional
	From *Target `json:"from,omitempty"`
	// Reason in words.
	Reason string `json:"reason"`
	// Author of the order or commit; absent: the operator.
	// +optional
	Author string `json:"author,omitempty"`
	// Proposed is the address of the pull request that reverts the content in Git; absent: there is none.
	// +optional
	Proposed string `json:"proposed,omitempty"`
}
