package addonrollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/manifests/admission"
)

// ordersKept is how long an answered order is kept.
const ordersKept = 30 * 24 * time.Hour

// readOrders reads the orders about a rollout, the oldest first.
func (r *Reconciler) readOrders(ctx context.Context, ro *v1alpha1.AddOnRollout) ([]v1alpha1.AddOnOrder, error) {
	var list v1alpha1.AddOnOrderList
	if err := r.Client.List(ctx, &list, client.InNamespace(ro.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list orders: %w", err)
	}
	open := func(x v1alpha1.AddOnOrder) bool { return x.Spec.Rollout == ro.Name && x.Status.State == "" }
	if slices.ContainsFunc(list.Items, open) {
		// Uncached: an order that was answered must not be carried out again.
		if err := r.Live.List(ctx, &list, client.InNamespace(ro.Namespace)); err != nil {
			return nil, fmt.Errorf("cannot list orders: %w", err)
		}
	}
	orders := slices.DeleteFunc(list.Items, func(x v1alpha1.AddOnOrder) bool { return x.Spec.Rollout != ro.Name })
	slices.SortFunc(orders, givenBefore)
	return orders, nil
}

// givenBefore compares orders without an answer by when they were given. The API server stores that time with the
// precision of a second; within a second, the resource versions decide.
func givenBefore(a, b v1alpha1.AddOnOrder) int {
	version, _ := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion) // 0 if one is not a number
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), version, strings.Compare(a.Name, b.Name))
}

// proveOrders returns, by name, the open orders whose author the API server did not prove, and why. The admission
// policy or its binding is missing, differs, was changed, or is not older than the order.
func (r *Reconciler) proveOrders(ctx context.Context, orders []v1alpha1.AddOnOrder) (map[string]string, error) {
	if !slices.ContainsFunc(orders, func(x v1alpha1.AddOnOrder) bool { return x.Status.State == "" }) {
		return nil, nil
	}
	policy, binding, err := admission.Read(ctx, r.Live)
	if err != nil {
		return nil, err
	}
	since, why := admission.Since(policy, binding)
	unproven := map[string]string{}
	for i := range orders {
		switch x := &orders[i]; {
		case x.Status.State != "":
		case why != nil:
			unproven[x.Name] = why.Error()
		case !x.CreationTimestamp.After(since):
			unproven[x.Name] = "the order was given before, or just when, the policy that proves its author was created; give it again"
		}
	}
	return unproven, nil
}

// answerOrders begins and ends the quarantines of revisions that orders and a rollback ask for, and writes the
// answers to the orders. The status with these changes must be stored before, so that a rollout never moves back
// before its failure is stored. It deletes old answered orders.
func (r *Reconciler) answerOrders(ctx context.Context, p *plan.Plan, beside *besides) error {
	waits := map[string]bool{}
	for _, w := range p.QuarantineChanges {
		written, err := beside.write(strings.TrimSpace("quarantine "+w.Revision+" "+w.Order), func() error { return r.changeQuarantine(ctx, p.Observed.Rollout.Namespace, w) })
		if err != nil {
			return err
		}
		waits[w.Order] = waits[w.Order] || !written
	}
	now := metav1.NewTime(p.Observed.Look.Wall).Rfc3339Copy()
	for _, a := range p.Answers {
		order := a.Order.DeepCopy()
		if waits[order.Name] {
			continue // an answered order would not be carried out again
		}
		order.Status = v1alpha1.AddOnOrderStatus{State: a.State, Message: a.Message, AnsweredAt: &now}
		_, err := beside.write("answer "+order.Name, func() error {
			if err := r.Client.Status().Update(ctx, order); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot answer order %s: %w", order.Name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range p.Observed.Orders {
		order := &p.Observed.Orders[i]
		if at := order.Status.AnsweredAt; at == nil || now.Sub(at.Time) < ordersKept {
			continue
		}
		if _, err := beside.write("delete "+order.Name, func() error { return r.deleteOrder(ctx, order) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) deleteOrder(ctx context.Context, order *v1alpha1.AddOnOrder) error {
	if err := r.Client.Delete(ctx, order, client.Preconditions{UID: &order.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete order %s: %w", order.Name, err)
	}
	return nil
}

// deleteOldOrders deletes the old orders of a rollout that does not exist any more. The watch repeats every order
// after some hours, so no timer is needed.
func (r *Reconciler) deleteOldOrders(ctx context.Context, of client.ObjectKey) error {
	var list v1alpha1.AddOnOrderList
	if err := r.Client.List(ctx, &list, client.InNamespace(of.Namespace)); err != nil {
		return fmt.Errorf("cannot list orders: %w", err)
	}
	for i := range list.Items {
		order := &list.Items[i]
		if order.Spec.Rollout != of.Name || r.Clock.Since(order.CreationTimestamp.Time) < ordersKept {
			continue
		}
		if err := r.deleteOrder(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// changeQuarantine begins or ends the quarantine of a revision. The annotation makes every operator act on it, even
// if this one stops. The write is bound to the version of the revision that was read.
func (r *Reconciler) changeQuarantine(ctx context.Context, namespace string, w plan.QuarantineChange) error {
	rev := &metav1.PartialObjectMetadata{}
	rev.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.Revision}, rev); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // there is no content to quarantine; the status has the quarantine
		}
		return fmt.Errorf("cannot read revision %s to change its quarantine: %w", w.Revision, err)
	}
	q, already := v1alpha1.ReadQuarantine(rev.Annotations)
	if already == (w.Quarantine != nil) && (!already || w.Quarantine.Order == "" || w.Quarantine.Order == q.Order) {
		return nil
	}
	base := rev.DeepCopy()
	if w.Quarantine == nil {
		delete(rev.Annotations, v1alpha1.QuarantinedAnnotation)
	} else {
		value, err := json.Marshal(w.Quarantine)
		if err != nil {
			return fmt.Errorf("cannot encode the quarantine of %s: %w", w.Revision, err)
		}
		metav1.SetMetaDataAnnotation(&rev.ObjectMeta, v1alpha1.QuarantinedAnnotation, string(value))
	}
	if err := r.Client.Patch(ctx, rev, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot change the quarantine of revision %s: %w", w.Revision, err)
	}
	return nil
}
