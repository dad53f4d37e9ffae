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

// Departure is where the deletion of one ManagedClusterAddOn stands that our
// finalizers hold. It is derived from what is there at every look.
type Departure struct {
	// managed and hosting say what is to be done about the hooks on either cluster.
	managed, hosting hookState
}

// hookState is where the hooks on one cluster stand.
type hookState struct {
	// wanted: the finalizer says that hooks are to run there.
	wanted bool
	// waived says why they are not run after all; "" when they are.
	waived string
	// work that runs them; nil while there is none.
	work *workv1.ManifestWork
	// said is what the work says.
	said render.HookObservation
	// cluster is not available: nothing can run until it is.
	lost bool
}

// done reports whether nothing is waited for.
func (h hookState) done() bool { return !h.wanted || h.waived != "" || h.said.Completed }

// departing reads where the deletion stands.
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
			h.wanted = false // never deployed, or gone already
		case !alive:
			h.waived = "what it cleans up after is being deleted already"
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
			h.said = render.HookObservation{Reason: "waiting for its former work to be gone"}
		}
	}
	return dep
}

// unmanaged says why hooks can never run on the managed cluster: there is none. A cluster that
// leaves the hub still runs them while it answers, as OCM has it.
func unmanaged(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil && !available(c):
		return fmt.Sprintf("cluster %s is leaving the hub and not available", name)
	}
	return ""
}

// unhosted says why hooks can never run on the hosting cluster. A cluster that leaves the hub
// takes with it what they would clean up; OCM runs none there either.
func unhosted(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("hosting cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil:
		return fmt.Sprintf("hosting cluster %s is being deleted", name)
	}
	return ""
}

// Done reports whether the ManagedClusterAddOn may go.
func (d Departure) Done() bool { return d.managed.done() && d.hosting.done() }

// failed reports whether a hook gave up; it never completes by itself.
func (d Departure) failed() bool {
	return !d.managed.done() && d.managed.said.Failed || !d.hosting.done() && d.hosting.said.Failed
}

// reason says in words what is waited for; "" when nothing is.
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

// Waivers are why hooks are not run that should have been; none once they completed.
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

// plannedDeparture is what the planner is told of a deletion that waits. A hook that
// failed is overdue at once: waiting changes nothing.
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

// Depart says where the deletion of a cluster's ManagedClusterAddOn stands: hooks first, and only
// when all of them completed the works, and then our finalizers. start are the works that begin
// hooks, and that are there in what it says. A work that is there is left as it is: what it runs
// cannot be changed.
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
			h.wanted = false // a finalizer of content before this one, which has no such hook
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

// hookWorks renders the hooks of what runs on the cluster.
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
	if err == nil && !hosted && rendered.Hosts() { // the annotation was not carried out
		input.Hosting = ""
		rendered, err = renderer.Render(input)
	}
	if err != nil {
		return nil, err
	}
	return rendered.HookWorks(p.OwnerOf(c.AddOn, revision))
}

// departsFrom is the revision whose hooks are run: what runs on the cluster, and where its
// works do not agree, what the fleet is known to run well.
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
	return p.Observed.Rollout.Spec.Target.Digest
}

// HookCondition is HookManifestCompleted in OCM's words, with what is wrong after them; nil
// where no hook is run. wrong says that the user is to look at it.
func (p *Plan) HookCondition(c *Cluster, dep Departure) (condition *metav1.Condition, wrong bool) {
	return hookCondition(c.Member, dep, p.Observed.Rollout.Name, p.Observed.HookTimeout, p.Observed.Look.Wall)
}

// hookCondition is HookManifestCompleted in OCM's words, with what is wrong after
// them; nil where no hook is run. wrong says that the user is to look at it.
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
