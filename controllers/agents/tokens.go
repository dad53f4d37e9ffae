package agents

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/registration"
)

// lostWrite is when a write that lost a conflict is tried again.
const lostWrite = time.Second

// Tokens creates the objects behind the tokens of agents. On a hub with OCM's addon-manager, the addon-manager
// creates them. A reconcile request names a ManagedClusterAddOn. The objects are deleted with their owner, the
// ManagedClusterAddOn. Before that, Tokens deletes them only if the agent is known not to use a token.
type Tokens struct {
	Options
	// Objects reads from a watch cache of what TokenSelector selects.
	Objects client.Reader
}

// Reconcile makes the objects of one agent, and the condition that its klusterlet waits for,
// match what the agent needs.
func (r *Tokens) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := r.Client.Get(ctx, req.NamespacedName, addOn); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ours, err := r.managed(ctx, addOn.Name)
	if err != nil || !ours || addOn.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	agent := registration.Agent{Cluster: addOn.Namespace, UID: addOn.UID, Driver: addOn.Status.KubeClientDriver}
	agent.Registrations, agent.Declared = r.Book.asked(Key{Cluster: addOn.Namespace, AddOn: addOn.Name})
	if !agent.Declared {
		return ctrl.Result{}, nil // not declared yet, as after a restart: it keeps what it has
	}
	found, err := r.found(ctx, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !agent.UsesToken() {
		return r.drop(ctx, addOn, found)
	}
	return r.ensure(ctx, addOn, registration.NewTokenObjects(addOn.Name, agent), found)
}

// found reads the objects of an agent; one that does not exist is nil.
func (r *Tokens) found(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (registration.TokenObjects, error) {
	found := registration.TokenObjects{Account: &corev1.ServiceAccount{}, Role: &rbacv1.Role{}, Binding: &rbacv1.RoleBinding{}}
	role := registration.TokenRoleName(addOn.Name)
	var err error
	if found.Account, err = read(ctx, r.Objects, addOn.Namespace, registration.ServiceAccountName(addOn.Name), found.Account); err != nil {
		return found, err
	}
	if found.Role, err = read(ctx, r.Objects, addOn.Namespace, role, found.Role); err != nil {
		return found, err
	}
	found.Binding, err = read(ctx, r.Objects, addOn.Namespace, role, found.Binding)
	return found, err
}

// read returns an object, or nil if it does not exist.
func read[T client.Object](ctx context.Context, from client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("cannot read %T %s/%s: %w", into, namespace, name, err)
	}
	return into, nil
}

// ensure creates missing objects and repairs objects that differ. If nothing differs, it sets the
// condition. After a write, the watch causes the reconcile that sets the condition.
func (r *Tokens) ensure(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, want, have registration.TokenObjects) (ctrl.Result, error) {
	var differing []client.Object
	if have.Account == nil || !registration.SameAccount(want.Account, have.Account) {
		differing = append(differing, want.Account)
	}
	if have.Role == nil || !registration.SameRole(want.Role, have.Role) {
		differing = append(differing, want.Role)
	}
	if have.Binding == nil || !registration.Same(want.Binding, have.Binding) {
		differing = append(differing, want.Binding)
	}
	for _, object := range differing {
		if err := r.apply(ctx, object); err != nil {
			return r.failed(ctx, addOn, object, err)
		}
	}
	if len(differing) > 0 {
		return ctrl.Result{}, nil
	}
	return r.say(ctx, addOn, registration.TokenReady(have.Account))
}

// failed sets the condition with the reason. A failure that only an admin can fix is tried
// again after a while.
func (r *Tokens) failed(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, object client.Object, err error) (ctrl.Result, error) {
	if ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return ctrl.Result{}, fmt.Errorf("cannot write %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the operator may not write %s %s: grant it verb create on serviceaccounts/token, with resourceNames [%s]: %w",
			kind, object.GetName(), registration.ServiceAccountName(addOn.Name), err)
	}
	result, said := r.say(ctx, addOn, registration.TokenFailed(err))
	if said == nil && result.IsZero() {
		result.RequeueAfter = retryAfter
	}
	return result, said
}

// drop removes the objects of an agent that does not use a token, and their condition.
func (r *Tokens) drop(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, found registration.TokenObjects) (ctrl.Result, error) {
	var objects []client.Object
	if found.Binding != nil {
		objects = append(objects, found.Binding)
	}
	if found.Role != nil {
		objects = append(objects, found.Role)
	}
	if found.Account != nil {
		objects = append(objects, found.Account)
	}
	for _, object := range objects {
		uid, version := object.GetUID(), object.GetResourceVersion()
		err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if err != nil && !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("cannot remove %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
		}
	}
	return r.change(ctx, addOn, func(conditions *[]metav1.Condition) {
		meta.RemoveStatusCondition(conditions, registration.InfrastructureReady)
	})
}

// say sets a condition of a ManagedClusterAddOn, if it changed.
func (r *Tokens) say(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, condition metav1.Condition) (ctrl.Result, error) {
	condition.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	return r.change(ctx, addOn, func(conditions *[]metav1.Condition) { meta.SetStatusCondition(conditions, condition) })
}

// change writes the conditions of a ManagedClusterAddOn, bound to the version that was read,
// because several others write there.
func (r *Tokens) change(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, edit func(*[]metav1.Condition)) (ctrl.Result, error) {
	changed := addOn.DeepCopy()
	edit(&changed.Status.Conditions)
	if same(addOn.Status.Conditions, changed.Status.Conditions) {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})
	err := r.Client.Status().Patch(ctx, changed, patch)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: lostWrite}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("cannot write the conditions of add-on %s of %s: %w", addOn.Name, addOn.Namespace, err)
	}
	return ctrl.Result{}, nil
}

// same reports whether two lists of conditions agree about the objects behind a token.
func same(a, b []metav1.Condition) bool {
	return tokenCondition(a) == tokenCondition(b)
}

// tokenCondition returns the condition about the objects behind a token, as one text.
func tokenCondition(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, registration.InfrastructureReady)
	if c == nil {
		return ""
	}
	return string(c.Status) + c.Reason + c.Message
}
