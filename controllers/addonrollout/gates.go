package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/manifests/admission"
)

// readGates adds the decisions of users and the measurements for the gates of a rollout. Content
// that succeeded here before needs neither.
func (r *Reconciler) readGates(ctx context.Context, o *plan.Observation) error {
	ro := o.Rollout
	if r.Gates == nil || ro.Spec.Removal != nil {
		return nil
	}
	o.Measured = r.Gates.Results(client.ObjectKeyFromObject(ro))
	if !asksPeople(ro.Spec.Stages) || o.Succeeded.Has(o.Target.Revision) {
		return nil
	}
	// Uncached: a withdrawn decision must not admit a cluster.
	var list v1alpha1.AddOnApprovalList
	if err := r.Live.List(ctx, &list, client.InNamespace(ro.Namespace)); err != nil {
		return fmt.Errorf("cannot list the approvals of %s: %w", ro.Name, err)
	}
	policy, binding, err := admission.Read(ctx, r.Live)
	if err != nil {
		return err
	}
	o.Approvals.Read = true
	since, err := admission.Since(policy, binding)
	if err != nil {
		o.Approvals.Unproven = err
		return nil //nolint:nilerr // the gate reports it
	}
	for i := range list.Items {
		if a := list.Items[i]; a.CreationTimestamp.After(since) || a.Spec.Decision == v1alpha1.Reject {
			o.Approvals.Counted = append(o.Approvals.Counted, a)
		} else {
			o.Approvals.Outdated = append(o.Approvals.Outdated, a)
		}
	}
	return r.readForge(ctx, o)
}

// readForge counts a decision for a forge account only if the operator created it; otherwise for the user who created
// it.
func (r *Reconciler) readForge(ctx context.Context, o *plan.Observation) error {
	if !slices.ContainsFunc(o.Approvals.Counted, func(a v1alpha1.AddOnApproval) bool { return a.Spec.Forge != nil }) {
		return nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := r.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("cannot ask the hub for the operator's account: %w", err)
	}
	host := ""
	if _, name, ok := strings.Cut(o.Rollout.Annotations[v1alpha1.SourceAnnotation], "/"); ok {
		source := &v1alpha1.AddOnSource{}
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: o.Rollout.Namespace, Name: name}, source); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read the source of %s: %w", o.Rollout.Name, err)
		}
		if spec := source.Spec.CommitStatus; spec != nil {
			host, _ = commitstatus.Host(spec.Provider, spec.Address) // of an address that is none, no decision counts
		}
	}
	o.Approvals.Counted = gates.Entered(o.Approvals.Counted, review.Status.UserInfo.Username, host)
	return nil
}

func asksPeople(stages []v1alpha1.Stage) bool {
	return slices.ContainsFunc(stages, func(s v1alpha1.Stage) bool {
		return s.Gates != nil && slices.ContainsFunc(s.Gates.Before, func(g v1alpha1.Gate) bool { return g.Type == v1alpha1.GateApproval })
	})
}

// ask tells the desk which gates are to be measured from now on. It is called once the status has
// the results so far, so that none is lost.
func (r *Reconciler) ask(ro *v1alpha1.AddOnRollout, p *plan.Plan) {
	if r.Gates == nil {
		return
	}
	key := client.ObjectKeyFromObject(ro)
	if p.ClockSet {
		r.Gates.Forget(key)
	}
	r.Gates.Ask(key, p.Measures)
}

// ofApproval wakes the rollout that a decision is about.
func (r *Reconciler) ofApproval(_ context.Context, obj client.Object) []reconcile.Request {
	a, ok := obj.(*v1alpha1.AddOnApproval)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: a.Namespace, Name: a.Spec.Rollout}}}
}
