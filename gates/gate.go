package gates

import (
	"time"

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

// Question identifies the content and the clusters that a measurement is about.
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

// Measure is a gate that is to be measured, for one content and attempt.
type Measure struct {
	// When the gate is evaluated: Before or During.
	When     v1alpha1.GateMoment
	Gate     v1alpha1.Gate
	Question Question
	// After is when the last soak of the stage ended. The verdict must be of a measurement that begins
	// after this time, and that measurement does not wait for the end of the interval. Zero: any
	// measurement will do.
	After time.Time
}

// Measured is the newest result of a Measure.
type Measured struct {
	Stage, Gate string
	When        v1alpha1.GateMoment
	Digest      string
	Attempt     int32
	Verdict     Verdict
	// Began is when the evaluation began.
	Began time.Time
}
