package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Departure is the progress of the deletion of one ManagedClusterAddOn that AddonFlow's finalizers
// hold. It is computed again in every turn.
type Departure struct {
	// managed and hosting are the states of the hooks on each cluster.
	managed, hosting hookState
}

// hookState is the state of the hooks on one cluster.
type hookState struct {
	// wanted: the finalizer asks for hooks on the cluster.
	wanted bool
	// waived says why the hooks are skipped; "": they run.
	waived string
	// work that runs them; nil while there is none.
	work *workv1.ManifestWork
	// said is the feedback of that work.
	said render.HookObservation
	// lost: the cluster is not available, so no hook can run.
	lost bool
}

// done reports whether the deletion does not wait for these hooks.
func (h hookState) done() bool { return !h.wanted || h.waived != "" || h.said.Completed }

// departing returns the progress of the deletion.
func (m *Member) departing(addOn string) Departure {
	has := func(name, deprecated string) bool {
		return slices.Contains(m.AddOn.Finalizers, name) || slices.Contains(m.AddOn.Finalizers, deprecated)
	}
	dep := Departure{
		managed: hookState{
			wanted: has(addonv1alpha1.AddonPreDeleteHookFinalizer, addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer),
			waived: unmanaged(m.Cluster, m.Name), lost: !available(m.Cluster),
		},
		hosting: hookState{
			wanted: has(addonv1alpha1.AddonHostingPreDeleteHookFinalizer, addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer),
			waived: unhosted(m.HostedAt, m.HostedBy(addOn)), lost: !available(m.HostedAt),
		},
	}
	alive := slices.ContainsFunc(slices.Concat(m.Works, m.Hooks), func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp == nil })
	for _, h := range []*hookState{&dep.managed, &dep.hosting} {
		switch {
		case m.AddOn.Annotations[v1alpha1.SkipPreDeleteAnnotation] == "true":
			h.waived = "skipped by annotation " + v1alpha1.SkipPreDeleteAnnotation
		case len(m.Works)+len(m.Hooks) == 0:
			h.wanted = false // never deployed, or already deleted
		case !alive:
			h.waived = "the objects that it cleans up are already being deleted"
		}
	}
	if m.Hindered != nil {
		dep.managed.said.Reason, dep.hosting.said.Reason = m.Hindered.Message, m.Hindered.Message
	}
	for _, w := range m.Hooks {
		h := &dep.managed
		if w.Name != render.PreDeleteWorkName(addOn) {
			h = &dep.hosting
		}
		h.work, h.said = w, render.ObserveHook(w)
		if w.DeletionTimestamp != nil {
			h.said = render.HookObservation{Reason: "waiting for its former work to be deleted"}
		}
	}
	return dep
}

// unmanaged says why hooks can never run on the managed cluster: it does not exist. As in OCM, a cluster that leaves
// the hub runs hooks while it is available.
func unmanaged(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil && !available(c):
		return fmt.Sprintf("cluster %s is leaving the hub and not available", name)
	}
	return ""
}

// unhosted says why hooks can never run on the hosting cluster. If that cluster leaves the hub, the objects that the
// hooks would clean up are removed with it. OCM runs no hooks there either.
func unhosted(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("hosting cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil:
		return fmt.Sprintf("hosting cluster %s is being deleted", name)
	}
	return ""
}

// Done reports whether the ManagedClusterAddOn may be deleted.
func (d Departure) Done() bool { return d.managed.done() && d.hosting.done() }

func (d Departure) failed() bool {
	return !d.managed.done() && d.managed.said.Failed || !d.hosting.done() && d.hosting.said.Failed
}

// reason says in words what the deletion waits for; "": nothing.
func (d Departure) reason() string {
	var parts []string
	for _, h := range []struct {
		hookState
		where string
	}{{d.managed, "pre-delete hook"}, {d.hosting, "pre-delete hook on the hosting cluster"}} {
		switch {
		case h.done():
		case h.said.Failed:
			parts = append(parts, h.where+": "+h.said.Reason)
		case h.lost:
			parts = append(parts, h.where+": the cluster is not available")
		case h.work == nil && h.said.Reason == "":
			parts = append(parts, h.where+" is about to run")
		default:
			parts = append(parts, h.where+": "+h.said.Reason)
		}
	}
	return strings.Join(parts, "; ")
}

// Waivers are the reasons for which declared hooks are skipped. After the hooks have completed, there are none.
func (d Departure) Waivers(addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	if meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnHookManifestCompleted) {
		return nil
	}
	var out []string
	for _, h := range []hookState{d.managed, d.hosting} {
		if h.wanted && h.waived != "" {
			out = append(out, h.waived)
		}
	}
	return slices.Compact(out)
}

// plannedDeparture is the planner's input about a deletion that waits. A failed hook is overdue at once, because it
// does not recover by itself.
func plannedDeparture(m *Member, addOn string, timeout time.Duration) rollout.Departure {
	if !m.Departs() {
		return rollout.Departure{}
	}
	dep := m.departing(addOn)
	if dep.Done() {
		return rollout.Departure{}
	}
	at := m.AddOn.DeletionTimestamp.Time
	if !dep.failed() {
		at = at.Add(timeout)
	}
	return rollout.Departure{Reason: dep.reason(), OverdueAt: at}
}

// Depart returns the progress of the deletion of a cluster's ManagedClusterAddOn: hooks first;
// after all of them completed, the works; then the finalizers. start are the works that start
// hooks; dep counts them as existing. An existing work is not changed: a running hook cannot be
// replaced.
func (p *Plan) Depart(c *Cluster) (dep Departure, start []*workv1.ManifestWork, err error) {
	addOn := p.Observed.Rollout.Name
	dep = c.departing(addOn)
	if !dep.managed.missing() && !dep.hosting.missing() {
		return dep, nil, nil
	}
	works, err := p.hookWorks(c, dep)
	if err != nil {
		return dep, nil, fmt.Errorf("cannot render the pre-delete hooks: %w", err)
	}
	begin := func(h *hookState, name string) {
		if !h.missing() {
			return
		}
		i := slices.IndexFunc(works, func(w *workv1.ManifestWork) bool { return w.Name == name })
		if i < 0 {
			h.wanted = false // the finalizer is of earlier content, and this content has no such hook
			return
		}
		h.work, h.said = works[i], render.ObserveHook(works[i])
		start = append(start, works[i])
	}
	begin(&dep.managed, render.PreDeleteWorkName(addOn))
	begin(&dep.hosting, render.HostingPreDeleteWorkName(addOn, c.Name))
	return dep, start, nil
}

// missing reports whether hooks are still to be started.
func (h hookState) missing() bool { return !h.done() && h.work == nil }

// hookWorks renders the hooks of the content that the cluster runs.
func (p *Plan) hookWorks(c *Cluster, dep Departure) ([]*workv1.ManifestWork, error) {
	if c.Hindered != nil {
		return nil, errors.New(c.Hindered.Message)
	}
	revision := p.departsFrom(c)
	renderer, err := p.Repairs(c, revision)
	if err != nil {
		return nil, err
	}
	input := c.RenderInput()
	hosted := dep.hosting.wanted || slices.Contains(c.AddOn.Finalizers, addonv1alpha1.AddonHostingManifestFinalizer)
	if hosted {
		input.Hosting = c.HostedBy(p.Observed.Rollout.Name)
	}
	rendered, err := renderer.Render(input)
	if err == nil && !hosted && rendered.Hosts() { // the works are not hosted yet
		input.Hosting = ""
		rendered, err = renderer.Render(input)
	}
	if err != nil {
		return nil, err
	}
	return rendered.HookWorks(p.OwnerOf(c.AddOn, revision))
}

// departsFrom is the revision whose hooks are run: the revision that the cluster runs. If its works do not name one
// revision, it is the stable revision.
func (p *Plan) departsFrom(c *Cluster) string {
	if c.Health.Revision != "" {
		return c.Health.Revision
	}
	for _, w := range c.Hooks {
		if r := w.Annotations[v1alpha1.RevisionAnnotation]; r != "" {
			return r
		}
	}
	if s := p.Next.Stable; s != nil {
		return s.Digest
	}
	return p.Observed.Target.Digest
}

// HookCondition is HookManifestCompleted with OCM's text, followed by the error; nil: no hook is run. wrong: the user
// must act.
func (p *Plan) HookCondition(c *Cluster, dep Departure) (condition *metav1.Condition, wrong bool) {
	return hookCondition(c.Member, dep, p.Observed.Rollout.Name, p.Observed.HookTimeout, p.Observed.Look.Wall)
}

// hookCondition computes HookCondition.
func hookCondition(m *Member, dep Departure, addOn string, timeout time.Duration, now time.Time) (c *metav1.Condition, wrong bool) {
	name := render.PreDeleteWorkName(addOn)
	switch {
	case dep.managed.wanted && dep.managed.waived == "":
	case dep.hosting.wanted && dep.hosting.waived == "":
		name = render.HostingPreDeleteWorkName(addOn, m.Name)
	default:
		return nil, false
	}
	if dep.Done() {
		return &metav1.Condition{
			Type: addonv1alpha1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionTrue,
			Reason: "HookManifestIsCompleted", Message: fmt.Sprintf("hook manifestWork %s is completed.", name),
		}, false
	}
	if dep.managed.done() {
		name = render.HostingPreDeleteWorkName(addOn, m.Name)
	}
	message := fmt.Sprintf("hook manifestWork %s is not completed.", name)
	if wrong = dep.failed() || !now.Before(m.AddOn.DeletionTimestamp.Add(timeout)); wrong {
		message += " " + dep.reason() + ". Nothing is removed until it completes; to remove the add-on without it, set the annotation " +
			v1alpha1.SkipPreDeleteAnnotation + `: "true"`
	}
	return &metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionFalse,
		Reason: "HookManifestIsNotCompleted", Message: message,
	}, wrong
}
