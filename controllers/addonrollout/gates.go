package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/manifests/admission"
)

// readApprovals reads the decisions of users about the gates of a rollout.
func (r *Reconciler) readApprovals(ctx context.Context, ro *v1alpha1.AddOnRollout) (plan.Approvals, error) {
	if !asksPeople(ro.Spec.Stages) {
		return plan.Approvals{}, nil
	}
	// Uncached: a withdrawn decision must not admit a cluster.
	var list v1alpha1.AddOnApprovalList
	if err := r.Live.List(ctx, &list, client.InNamespace(ro.Namespace)); err != nil {
		return plan.Approvals{}, fmt.Errorf("cannot list the approvals of %s: %w", ro.Name, err)
	}
	policy, binding, err := admission.Read(ctx, r.Live)
	if err != nil {
		return plan.Approvals{}, err
	}
	since, err := admission.Since(policy, binding)
	if err != nil {
		return plan.Approvals{Read: true, Unproven: err}, nil //nolint:nilerr // the gate reports it
	}
	found := plan.Approvals{Read: true}
	for i := range list.Items {
		if a := list.Items[i]; a.CreationTimestamp.After(since) || a.Spec.Decision == v1alpha1.Reject {
			found.Counted = append(found.Counted, a)
		} else {
			found.Outdated = append(found.Outdated, a)
		}
	}
	found.Counted, err = r.provenAtForge(ctx, ro, found.Counted)
	return found, err
}

// provenAtForge counts a decision for a forge account only if the operator created it; otherwise for the user who
// created it.
func (r *Reconciler) provenAtForge(ctx context.Context, ro *v1alpha1.AddOnRollout, counted []v1alpha1.AddOnApproval) ([]v1alpha1.AddOnApproval, error) {
	if !slices.ContainsFunc(counted, func(a v1alpha1.AddOnApproval) bool { return a.Spec.Forge != nil }) {
		return counted, nil
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := r.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("cannot ask the hub for the operator's account: %w", err)
	}
	host := ""
	if _, name, ok := strings.Cut(ro.Annotations[v1alpha1.SourceAnnotation], "/"); ok {
		source := &v1alpha1.AddOnSource{}
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: ro.Namespace, Name: name}, source); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read the source of %s: %w", ro.Name, err)
		}
		if spec := source.Spec.CommitStatus; spec != nil {
			host, _ = commitstatus.Host(spec.Provider, spec.Address) // if the address is invalid, no decision counts
		}
	}
	return gates.Entered(counted, review.Status.UserInfo.Username, host), nil
}

func asksPeople(stages []v1alpha1.Stage) bool {
	return slices.ContainsFunc(stages, func(s v1alpha1.Stage) bool {
		return s.Gates != nil && slices.ContainsFunc(s.Gates.Before, func(g v1alpha1.Gate) bool { return g.Type == v1alpha1.GateApproval })
	})
}

// ask gives the desk the gates to measure from now on. It is called after the status has the results so far, so that
// no result is lost.
func (r *Reconciler) ask(ro *v1alpha1.AddOnRollout, p *plan.Plan) {
	if r.Gates == nil {
		return
	}
	key := client.ObjectKeyFromObject(ro)
	if p.ClockSet {
		r.Gates.Forget(key)
	}
	r.Gates.Ask(key, p.Measures, p.Observed.Measured)
}
