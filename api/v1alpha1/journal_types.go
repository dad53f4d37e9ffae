package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Limits of AddOnRolloutStatus.Journal.
const (
	// JournalEntries is the largest number of entries in a journal.
	JournalEntries = 100
	// JournalBytes is the largest size of a journal as JSON.
	JournalBytes = 16 << 10
)

// JournalEntry is one decision of the operator about a stage or the whole rollout. The
// operator's log has the same decision, and at debug level one line for each cluster.
type JournalEntry struct {
	// At is the time of the decision.
	At metav1.Time `json:"at"`
	// Decision in one word, such as Admitted, Verified, Failed, Halted or Reverted.
	Decision string `json:"decision"`
	// Commit of the decision: the first 12 digits of its name.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Stage of the decision; absent for the whole rollout.
	// +optional
	Stage string `json:"stage,omitempty"`
	// Clusters of the stage to which the decision applies so far. An entry is made when this number exceeds the next
	// power of two, or reaches the size of the stage. Repaired has one entry for each stage and commit, with the
	// number of repairs.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
	// Reason, with the names of the first clusters after a failure.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// StageTimes says when a stage of a rollout began and ended.
type StageTimes struct {
	// Name of the stage.
	Name string `json:"name"`
	// Phase in which the stage ended; before that, its present phase.
	Phase string `json:"phase"`
	// Started is when its first cluster was admitted.
	Started metav1.Time `json:"started"`
	// Finished is when the stage completed or failed; absent before that.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
}
