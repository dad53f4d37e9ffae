package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of AddOnRolloutStatus.Journal.
const (
	// JournalEntries is the most entries a journal keeps.
	JournalEntries = 100
	// JournalBytes is the most bytes a journal takes as JSON.
	JournalBytes = 16 << 10
)

// JournalEntry is one decision of the operator about a stage or the whole rollout. The
// operator's log has the same decision, and at debug level one line for each cluster.
type JournalEntry struct {
	// At is when it was decided.
	At metav1.Time `json:"at"`
	// Decision in one word, such as Admitted, Verified, Failed, Halted or Reverted.
	Decision string `json:"decision"`
	// Commit that the decision is about: the first 12 digits of its name.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Stage that the decision is about; absent for the whole rollout.
	// +optional
	Stage string `json:"stage,omitempty"`
	// Clusters of the stage that the decision holds for by now. An entry is made when this
	// number passes a power of two, or reaches the size of the stage.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
	// Reason in words, with the first clusters by name where something went wrong.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// StageTimes says when a stage of a rollout began and ended.
type StageTimes struct {
	// Name of the stage.
	Name string `json:"name"`
	// Phase it ended in, or is in.
	Phase string `json:"phase"`
	// Started is when its first cluster was admitted.
	Started metav1.Time `json:"started"`
	// Finished is when it was complete or failed; absent before.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
}
