package rollouttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Step is one planning of a rollout that was stored, and one line of a trace:
//
//	{"input": {...}, "ledger": {...}, "actions": [...]}
//
// A step without an input was not observed: only the change of the ledger is judged.
type Step struct {
	// Input is what the planner saw: time, policy, placements, clusters, and the ledger as
	// it was stored before. Its fields have the names of rollout.Input.
	Input *rollout.Input `json:"input,omitempty"`
	// Ledger is what was stored.
	Ledger v1alpha1.Ledger `json:"ledger"`
	// Actions that the step permits.
	Actions []rollout.Action `json:"actions,omitempty"`
	// Refused is the error of the planner; "": none.
	Refused string `json:"refused,omitempty"`
	// Start: the trace begins in the middle of a rollout. The records that the step read, or those of its ledger if it has
	// no input, are believed.
	Start bool `json:"start,omitempty"`
	// Foreign: another writer stored the ledger, such as a restored backup. The history begins again with it.
	Foreign bool `json:"foreign,omitempty"`
}

// StepOf is the step that stores a plan; refused is the planner's error.
func StepOf(in rollout.Input, plan rollout.Plan, refused error) Step {
	s := Step{Input: &in, Ledger: plan.Ledger, Actions: plan.Actions}
	if refused != nil {
		s.Refused = refused.Error()
	}
	return s
}

// Recorder writes a trace: one step a line, as JSON. It is safe for concurrent use; the
// steps of one trace are of one rollout, in the order in which they were stored.
type Recorder struct {
	mu sync.Mutex
	w  io.Writer
}

// NewRecorder returns a recorder that writes to w.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{w: w} }

// Record appends a step.
func (r *Recorder) Record(s Step) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.w.Write(append(line, '\n'))
	return err
}

// traceLine bounds one line of a trace.
const traceLine = 256 << 20

// CheckTrace judges every step of a trace by the steps before it, and reports each with
// its verdict; nil: the step is allowed. It returns how many records were believed (History.Believed). The error is that
// of a trace that cannot be read.
func CheckTrace(r io.Reader, report func(line int, s Step, verdict error)) (believed int, err error) {
	h, lines := NewHistory(), bufio.NewScanner(r)
	lines.Buffer(nil, traceLine)
	line := 0
	for lines.Scan() {
		line++
		if len(lines.Bytes()) == 0 {
			continue
		}
		var s Step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return h.Believed(), fmt.Errorf("line %d: %w", line, err)
		}
		report(line, s, h.Take(s))
	}
	return h.Believed(), lines.Err()
}
