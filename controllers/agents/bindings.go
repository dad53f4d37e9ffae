package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
)

// bindPace is the shortest time between two reconciles of one add-on's bindings, so that an
// install on a thousand clusters causes only a few.
const bindPace = time.Second

// Bindings grants agents the roles that their templates name. Its requests name an add-on.
type Bindings struct {
	Options

	mu   sync.Mutex
	last map[string]time.Time
}

// NewBindings returns a reconciler; register it with SetupWithManager.
func NewBindings(o Options) *Bindings { return &Bindings{Options: o, last: map[string]time.Time{}} }

// Reconcile makes the RoleBindings of one add-on match what its agents request and an admin
// allows.
func (r *Bindings) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if wait := r.wait(req.Name); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	found, err := r.found(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	t, err := r.observe(ctx, r.Client, req.Name, found)
	if err == nil && !t.releasing && t.revokes() {
		// The watches of bindings, add-ons and rollouts do not wait for each other: a binding may be shown before the
		// agent that it is for. The watch of rollouts shows those in --watch-namespace only. So a right is taken away
		// only after a read of the API server. If only this read shows a rollout, the rollout belongs to another
		// operator, or its event has not arrived yet.
		watched := t
		t, err = r.observe(ctx, r.Live, req.Name, found)
		if err == nil && t.managed && !watched.managed {
			return ctrl.Result{}, nil
		}
	}
	if err != nil || t.releasing {
		return ctrl.Result{}, err
	}
	return t.write(ctx)
}

// observe reads the agents of an add-on and its rollout with reader, and returns what follows for the bindings found.
func (r *Bindings) observe(ctx context.Context, reader client.Reader, addOn string, found []rbacv1.RoleBinding) (*turn, error) {
	t := &turn{Bindings: r, addOn: addOn, found: found, failed: map[client.ObjectKey]error{}}
	var rollouts v1alpha1.AddOnRolloutList
	if err := reader.List(ctx, &rollouts, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list rollouts of %s: %w", addOn, err)
	}
	t.releasing = slices.ContainsFunc(rollouts.Items, func(ro v1alpha1.AddOnRollout) bool { return ro.Releasing() })
	t.managed = len(rollouts.Items) > 0
	var err error
	if t.managed { // OCM is responsible for the agents of other add-ons
		if t.agents, err = r.agents(ctx, reader, addOn); err != nil {
			return nil, err
		}
	}
	if t.verdicts, err = r.judge(ctx, t.agents); err != nil {
		return nil, err
	}
	t.desired = registration.Bindings(addOn, t.agents, t.ours(), func(role registration.Role) error { return t.verdicts[role] })
	return t, nil
}

// wait returns how long the add-on must wait for its turn. If it returns 0, the turn is taken.
func (r *Bindings) wait(addOn string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	if left := bindPace - now.Sub(r.last[addOn]); left > 0 && left <= bindPace {
		return left
	}
	maps.DeleteFunc(r.last, func(_ string, at time.Time) bool { return now.Sub(at) >= bindPace })
	r.last[addOn] = now
	return 0
}

// agents lists the agents of an add-on. An agent whose add-on is being deleted keeps its roles until the deletion is
// complete, because it may have to clean up.
func (r *Bindings) agents(ctx context.Context, reader client.Reader, addOn string) ([]registration.Agent, error) {
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := reader.List(ctx, &list, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", addOn, err)
	}
	agents := make([]registration.Agent, 0, len(list.Items))
	for i := range list.Items {
		a := &list.Items[i]
		agent := registration.Agent{Cluster: a.Namespace, UID: a.UID, Driver: a.Status.KubeClientDriver}
		agent.Registrations, agent.Declared = r.Book.asked(Key{Cluster: a.Namespace, AddOn: addOn})
		agents = append(agents, agent)
	}
	return agents, nil
}

// found lists the bindings that carry the add-on's name, AddonFlow's and OCM's.
func (r *Bindings) found(ctx context.Context, addOn string) ([]rbacv1.RoleBinding, error) {
	var list rbacv1.RoleBindingList
	if err := r.Client.List(ctx, &list, client.MatchingLabels{addonv1alpha1.AddonLabelKey: addOn}); err != nil {
		return nil, fmt.Errorf("cannot list role bindings of %s: %w", addOn, err)
	}
	return list.Items, nil
}

// errRoleMissing: a role that an agent is to have does not exist.
var errRoleMissing = errors.New("does not exist")

// errOtherCluster: a role would be granted in the namespace of a cluster.
var errOtherCluster = errors.New("is the namespace of a managed cluster")

// judge returns a verdict on every role that the agents request. Its own error is a failed
// read; then there are no verdicts.
func (r *Bindings) judge(ctx context.Context, agents []registration.Agent) (map[registration.Role]error, error) {
	verdicts := map[registration.Role]error{}
	for _, agent := range agents {
		for _, p := range registration.Permissions(agent.Registrations) {
			if _, known := verdicts[p.Role]; known {
				continue
			}
			verdict, err := r.judgeRole(ctx, p.Role)
			if err != nil {
				return nil, err
			}
			verdicts[p.Role] = verdict
		}
	}
	return verdicts, nil
}

// judgeRole reads a role and returns the policy's verdict on it.
func (r *Bindings) judgeRole(ctx context.Context, role registration.Role) (verdict, err error) {
	if verdict := r.Roles.CheckName(role); verdict != nil {
		return verdict, nil
	}
	if role.Namespace != "" {
		err := r.Client.Get(ctx, client.ObjectKey{Name: role.Namespace}, &clusterv1.ManagedCluster{})
		if err == nil {
			return fmt.Errorf("%s %w", role.Namespace, errOtherCluster), nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot read cluster %s: %w", role.Namespace, err)
		}
	}
	labels, rules, err := ReadRole(ctx, r.Live, role)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %w", role.Key(), errRoleMissing), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", role.Key(), err)
	}
	return r.Roles.Check(role, labels, rules), nil
}

// ReadRole reads what a RolePolicy needs to judge a role. The error is the API server's.
func ReadRole(ctx context.Context, live client.Reader, role registration.Role) (map[string]string, []rbacv1.PolicyRule, error) {
	if role.Kind == "ClusterRole" {
		found := &rbacv1.ClusterRole{}
		err := live.Get(ctx, client.ObjectKey{Name: role.Name}, found)
		return found.Labels, found.Rules, err
	}
	found := &rbacv1.Role{}
	err := live.Get(ctx, client.ObjectKey{Namespace: role.Namespace, Name: role.Name}, found)
	return found.Labels, found.Rules, err
}

// turn is one reconcile of one add-on's bindings.
type turn struct {
	*Bindings
	addOn    string
	agents   []registration.Agent
	found    []rbacv1.RoleBinding
	verdicts map[registration.Role]error
	// managed: AddonFlow has a rollout of the add-on.
	managed bool
	// releasing: the add-on's rollout is being released; then its bindings are neither written nor removed.
	releasing bool
	// desired are the bindings that the agents are to have.
	desired []rbacv1.RoleBinding
	// failed are the bindings that could not be written.
	failed map[client.ObjectKey]error
}

// write creates missing bindings, repairs those that differ and removes those that are no
// longer requested.
func (t *turn) write(ctx context.Context) (ctrl.Result, error) {
	existing := map[client.ObjectKey]*rbacv1.RoleBinding{}
	for i := range t.found {
		existing[client.ObjectKeyFromObject(&t.found[i])] = &t.found[i]
	}
	for i := range t.desired {
		want := &t.desired[i]
		if err := t.ensure(ctx, want, existing[client.ObjectKeyFromObject(want)]); err != nil {
			if ctx.Err() != nil {
				return ctrl.Result{}, err
			}
			t.failed[client.ObjectKeyFromObject(want)] = err
		}
	}
	if err := t.remove(ctx); err != nil {
		return ctrl.Result{}, err
	}
	t.Book.decide(t.addOn, t.outcomes())
	for key, err := range t.failed {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return ctrl.Result{}, fmt.Errorf("role binding %s: %w", key, err) // soon: only a refusal needs an admin
		}
	}
	if len(t.verdicts) == 0 {
		return ctrl.Result{}, nil
	}
	// An admin may grant the operator the verb bind, or change a role that is allowed by flag;
	// neither is watched.
	return ctrl.Result{RequeueAfter: retryAfter}, nil
}

// ours are the found bindings that AddonFlow created.
func (t *turn) ours() []rbacv1.RoleBinding {
	return slices.DeleteFunc(slices.Clone(t.found), func(b rbacv1.RoleBinding) bool { return !registration.Ours(&b) })
}

// ensure creates or repairs one binding.
func (t *turn) ensure(ctx context.Context, want, have *rbacv1.RoleBinding) error {
	if have != nil && registration.Same(want, have) {
		return nil
	}
	if err := t.repair(ctx, want); err != nil {
		return bindError(want, err)
	}
	return nil
}

// repair writes a binding that is missing on the hub or differs. It reads the binding first, because the watch may be
// behind the operator's own write. The role of a binding cannot be changed: repair replaces a binding that has the
// name and another role. The watch does not show such a binding if it lacks the add-on's label. repair lists it by
// name, because the operator has no right to get a binding.
func (t *turn) repair(ctx context.Context, want *rbacv1.RoleBinding) error {
	var list rbacv1.RoleBindingList
	if err := t.Live.List(ctx, &list, client.InNamespace(want.Namespace), client.MatchingFields{indexName: want.Name}); err != nil {
		return err
	}
	if len(list.Items) > 0 && registration.Same(want, &list.Items[0]) {
		return nil
	}
	err := t.apply(ctx, want)
	if !apierrors.IsInvalid(err) || len(list.Items) == 0 || list.Items[0].RoleRef == want.RoleRef {
		return err
	}
	if err := t.delete(ctx, &list.Items[0]); err != nil {
		return err
	}
	return t.apply(ctx, want)
}

// bindError explains why a binding was refused.
func bindError(want *rbacv1.RoleBinding, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator may not bind %s %s in %s: grant it verb bind on it: %w", want.RoleRef.Kind, want.RoleRef.Name, want.Namespace, err)
	}
	return fmt.Errorf("cannot bind %s %s in %s: %w", want.RoleRef.Kind, want.RoleRef.Name, want.Namespace, err)
}

func (t *turn) delete(ctx context.Context, binding *rbacv1.RoleBinding) error {
	err := t.Client.Delete(ctx, binding, client.Preconditions{UID: &binding.UID, ResourceVersion: &binding.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot remove role binding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}

// revokes reports whether the turn takes a right away: it removes a binding, or a subject of one.
func (t *turn) revokes() bool {
	kept := t.kept()
	return slices.ContainsFunc(t.found, func(b rbacv1.RoleBinding) bool {
		if !registration.Ours(&b) {
			return registration.LeftByOCM(t.addOn, &b)
		}
		want := kept[client.ObjectKeyFromObject(&b)]
		return want == nil || !sets.New(want.Subjects...).HasAll(b.Subjects...)
	})
}

// kept are the desired bindings by name.
func (t *turn) kept() map[client.ObjectKey]*rbacv1.RoleBinding {
	kept := map[client.ObjectKey]*rbacv1.RoleBinding{}
	for i := range t.desired {
		kept[client.ObjectKeyFromObject(&t.desired[i])] = &t.desired[i]
	}
	return kept
}

// remove deletes AddonFlow's bindings that are no longer requested and, once every agent is
// declared and bound, what OCM left of the add-on.
func (t *turn) remove(ctx context.Context) error {
	kept := t.kept()
	replaced := len(t.agents) > 0 && len(t.failed) == 0 && !slices.ContainsFunc(t.agents, func(a registration.Agent) bool { return !a.Declared })
	for i := range t.found {
		binding := &t.found[i]
		gone := registration.Ours(binding) && kept[client.ObjectKeyFromObject(binding)] == nil
		if gone || replaced && registration.LeftByOCM(t.addOn, binding) {
			if err := t.delete(ctx, binding); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcomes returns the outcome of each declared agent: Applied if it has all roles it requests.
func (t *turn) outcomes() map[string]registration.Outcome {
	out := map[string]registration.Outcome{}
	for _, agent := range t.agents {
		permissions := registration.Permissions(agent.Registrations)
		if !agent.Declared {
			continue
		}
		outcome := registration.Outcome{State: registration.Applied}
		for _, p := range permissions {
			if err := t.errorOf(agent, p.Role); err != nil {
				outcome = registration.Outcome{State: registration.Failed, Message: err.Error()}
				break
			}
		}
		out[agent.Cluster] = outcome
	}
	return out
}

// errorOf returns why an agent does not have a role, or nil.
func (t *turn) errorOf(agent registration.Agent, role registration.Role) error {
	if err := t.verdicts[role]; err != nil {
		return err
	}
	at := client.ObjectKey{Namespace: role.Namespace, Name: registration.BindingName(t.addOn, role)}
	if at.Namespace == "" {
		at.Namespace = agent.Cluster
	}
	return t.failed[at]
}
