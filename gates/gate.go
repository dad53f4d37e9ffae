package gates

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Verdict is the result of one evaluation.
type Verdict struct {
	State v1alpha1.GateState
	// Reason in words, on one line.
	Reason string
	// By names the people who decided.
	By string
}

// Question is what a measurement is about.
type Question struct {
	Rollout types.NamespacedName
	Stage   string
	Gate    string
	// Digest and Commit of the content that the stage rolls out.
	Digest, Commit string
	Attempt        int32
	// Moved are clusters that are Soaking or Done with the content. Control are the clusters
	// that they are compared with.
	Moved, Control []string
	// Counts of the stage's clusters.
	Counts v1alpha1.Counts
}
