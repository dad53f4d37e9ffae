package gates

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

// Ask is a gate that is to be measured.
type Ask struct {
	// When the gate is evaluated: Before or During.
	When     v1alpha1.GateMoment
	Gate     v1alpha1.Gate
	Question gates.Question
}

// Result is the newest result of an Ask.
type Result struct {
	Stage, Gate string
	When        v1alpha1.GateMoment
	Digest      string
	Attempt     int32
	Verdict     gates.Verdict
	// Began is when the evaluation began.
	Began time.Time
}

// Options of a Desk.
type Options struct {
	// Secrets reads Secrets, by name only: the manager's API reader, so that none is cached.
	Secrets client.Reader
	// Measure has the operator's flags.
	Measure gates.Options
	Clock   clock.Clock
}

// Desk measures the gates of all rollouts of a process. It is safe for concurrent use.
type Desk struct {
	options Options
}

// NewDesk returns a desk that measures nothing until Start.
func NewDesk(o Options) *Desk { return &Desk{options: o} }

// Start measures until the context ends. It is a manager's Runnable, and as such runs on the
// leader only.
func (d *Desk) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// Ask replaces what is measured for a rollout; nil: nothing. It is called after the status that
// has the results was written, in every turn: an ask is measured once, and again only if it is
// asked again.
func (d *Desk) Ask(key types.NamespacedName, asks []Ask) {}

// Results returns the newest result of each ask of a rollout. It does not consume them.
func (d *Desk) Results(key types.NamespacedName) []Result { return nil }

// Forget drops everything about a deleted rollout.
func (d *Desk) Forget(key types.NamespacedName) {}

// Outcomes is the source of reconcile requests for rollouts with new results.
func (d *Desk) Outcomes() source.Source { return nil }
