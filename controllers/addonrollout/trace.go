package addonrollout

import (
	"fmt"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout"
)

// Planning is one plan with its input, as a test records it. A test compares it with the stored
// versions of the AddOnRollout: a plan took effect if the next version has its ledger.
type Planning struct {
	// Namespace and Name of the AddOnRollout, and the version that was planned with.
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
	// Input of the planner, the ledger to store, and the permitted actions.
	Input   rollout.Input    `json:"input"`
	Ledger  v1alpha1.Ledger  `json:"ledger"`
	Actions []rollout.Action `json:"actions,omitempty"`
	// Refused is the planner's error.
	Refused string `json:"refused,omitempty"`
}

// trace passes a plan to Options.Trace, before any of it is stored.
func (r *Reconciler) trace(p *plan.Plan) error {
	if r.Trace == nil || p.Input == nil {
		return nil
	}
	ro := p.Observed.Rollout
	traced := Planning{
		Namespace: ro.Namespace, Name: ro.Name, ResourceVersion: ro.ResourceVersion,
		Input: *p.Input, Ledger: p.Planned.Ledger, Actions: p.Planned.Actions,
	}
	if p.Refused != nil {
		traced.Refused = p.Refused.Error()
	}
	if err := r.Trace(traced); err != nil {
		return fmt.Errorf("cannot trace a plan: %w", err)
	}
	return nil
}
