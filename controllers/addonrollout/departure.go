package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// departure is where the deletion of one ManagedClusterAddOn stands that our
// finalizers hold. It is derived from what is there at every look.
type departure struct {
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

// departs reports whether the ManagedClusterAddOn is being deleted and held by us.
func (m *member) departs() bool {
	return m.addOn != nil && m.addOn.DeletionTimestamp != nil && slices.ContainsFunc(m.addOn.Finalizers, render.HoldsAddOn)
}

// departing reads where the deletion stands.
func (m *member) departing(addOn string) departure {
	has := func(name, deprecated string) bool {
		return slices.Contains(m.addOn.Finalizers, name) || slices.Contains(m.addOn.Finalizers, deprecated)
	}
	dep := departure{
		managed: hookState{
			wanted: has(addonv1alpha1.AddonPreDeleteHookFinalizer, addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer),
			waived: unmanaged(m.cluster, m.name), lost: !available(m.cluster),
		},
		hosting: hookState{
			wanted: has(addonv1alpha1.AddonHostingPreDeleteHookFinalizer, addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer),
			waived: unhosted(m.hostedAt, m.hostedBy(addOn)), lost: !available(m.hostedAt),
		},
	}
	alive := slices.ContainsFunc(slices.Concat(m.works, m.hooks), func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp == nil })
	for _, h := range []*hookState{&dep.managed, &dep.hosting} {
		switch {
		case m.addOn.Annotations[v1alpha1.SkipPreDeleteAnnotation] == "true":
			h.waived = "skipped by annotation " + v1alpha1.SkipPreDeleteAnnotation
		case len(m.works)+len(m.hooks) == 0:
			h.wanted = false // never deployed, or gone already
		case !alive:
			h.waived = "what it cleans up after is being deleted already"
		}
	}
	if m.hindered != nil {
		dep.managed.said.Reason, dep.hosting.said.Reason = m.hindered.message, m.hindered.message
	}
	for _, w := range m.hooks {
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

// unmanaged says why hooks can never run on the managed cluster: nobody is there to
// run them. One that leaves the hub still runs them while it answers, as OCM has it.
func unmanaged(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil && !available(c):
		return fmt.Sprintf("cluster %s is leaving the hub and not available", name)
	}
	return ""
}

// unhosted says why hooks can never run on the hosting cluster. One that leaves the
// hub takes with it what they would clean up; OCM runs none there either.
func unhosted(c *clusterv1.ManagedCluster, name string) string {
	switch {
	case c == nil:
		return fmt.Sprintf("hosting cluster %s is not a managed cluster of the hub", name)
	case c.DeletionTimestamp != nil:
		return fmt.Sprintf("hosting cluster %s is being deleted", name)
	}
	return ""
}

// available reports whether the hub hears from a cluster.
func available(c *clusterv1.ManagedCluster) bool {
	is, _ := reachable(c)
	return is
}

// hostedBy is the cluster that the add-on's hosting hooks run on: where its hosting
// works are, and without any where the annotation says.
func (m *member) hostedBy(addOn string) string {
	if at := m.worksAt(addOn); at != "" {
		return at
	}
	for _, w := range m.hooks {
		if w.Name != render.PreDeleteWorkName(addOn) {
			return w.Namespace
		}
	}
	return m.hosting.Name
}

// done reports whether the ManagedClusterAddOn may go.
func (d departure) done() bool { return d.managed.done() && d.hosting.done() }

// failed reports whether a hook gave up; it never completes by itself.
func (d departure) failed() bool {
	return !d.managed.done() && d.managed.said.Failed || !d.hosting.done() && d.hosting.said.Failed
}

// reason says in words what is waited for; "" when nothing is.
func (d departure) reason() string {
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

// waivers are why hooks are not run that should have been; none once they completed.
func (d departure) waivers(addOn *addonv1alpha1.ManagedClusterAddOn) []string {
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
// failed is overdue at once: waiting mends nothing.
func plannedDeparture(m *member, addOn string, timeout time.Duration) rollout.Departure {
	if !m.departs() {
		return rollout.Departure{}
	}
	dep := m.departing(addOn)
	if dep.done() {
		return rollout.Departure{}
	}
	at := m.addOn.DeletionTimestamp.Time
	if !dep.failed() {
		at = at.Add(timeout)
	}
	return rollout.Departure{Reason: dep.reason(), OverdueAt: at}
}

// depart brings the deletion of a ManagedClusterAddOn one step further: hooks first,
// and only when all of them completed the works, and then our finalizers.
func (d *round) depart(ctx context.Context, m *member) error {
	if !m.departs() {
		return nil // its works go with it by owner reference
	}
	dep := m.departing(d.o.rollout.Name)
	if err := d.writeHooks(ctx, m, &dep); err != nil {
		return err
	}
	addOn, err := d.tellHooks(ctx, m, dep)
	if err != nil || !dep.done() {
		return err
	}
	for _, w := range slices.Concat(m.works, m.hooks) {
		if w.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(d.Client.Delete(ctx, w, client.Preconditions{UID: &w.UID})); err != nil {
			return fmt.Errorf("cannot delete work %s: %w", w.Name, err)
		}
		d.works.forget(client.ObjectKeyFromObject(w))
	}
	for _, why := range dep.waivers(addOn) {
		d.Recorder.Eventf(addOn, corev1.EventTypeWarning, v1alpha1.PreDeleteHookSkippedReason, "Removed without its pre-delete hook: %s", why)
	}
	_, err = d.letGo(ctx, addOn, nil)
	return err
}

// missing reports whether hooks are still to be started.
func (h hookState) missing() bool { return !h.done() && h.work == nil }

// writeHooks creates the hook works that are missing. One that is there is left as it
// is: what it runs cannot be changed.
func (d *round) writeHooks(ctx context.Context, m *member, dep *departure) error {
	if !dep.managed.missing() && !dep.hosting.missing() {
		return nil
	}
	works, err := d.hookWorks(ctx, m, *dep)
	if err != nil {
		return fmt.Errorf("cannot render the pre-delete hooks: %w", err)
	}
	for name, h := range map[string]*hookState{
		render.PreDeleteWorkName(d.o.rollout.Name):                &dep.managed,
		render.HostingPreDeleteWorkName(d.o.rollout.Name, m.name): &dep.hosting,
	} {
		if !h.missing() {
			continue
		}
		i := slices.IndexFunc(works, func(w *workv1.ManifestWork) bool { return w.Name == name })
		if i < 0 {
			h.wanted = false // a finalizer of content before this one, which has no such hook
			continue
		}
		if err := d.createWork(ctx, works[i]); err != nil {
			return err
		}
		h.work, h.said = works[i], render.ObserveHook(works[i])
	}
	return nil
}

// hookWorks renders the hooks of what runs on the cluster.
func (d *round) hookWorks(ctx context.Context, m *member, dep departure) ([]*workv1.ManifestWork, error) {
	if m.hindered != nil {
		return nil, errors.New(m.hindered.message)
	}
	revision := d.departsFrom(m)
	renderer, err := d.o.repairs(ctx, m, revision)
	if err != nil {
		return nil, err
	}
	input := m.renderInput()
	hosted := dep.hosting.wanted || slices.Contains(m.addOn.Finalizers, addonv1alpha1.AddonHostingManifestFinalizer)
	if hosted {
		input.Hosting = m.hostedBy(d.o.rollout.Name)
	}
	rendered, err := renderer.Render(input)
	if err == nil && !hosted && rendered.Hosts() { // the annotation was not carried out
		input.Hosting = ""
		rendered, err = renderer.Render(input)
	}
	if err != nil {
		return nil, err
	}
	return rendered.HookWorks(d.ownerOf(m.addOn, revision))
}

// departsFrom is the revision whose hooks are run: what runs on the cluster, and where
// its works do not agree, what the fleet is known to run well.
func (d *round) departsFrom(m *member) string {
	if m.health.Revision != "" {
		return m.health.Revision
	}
	for _, w := range m.hooks {
		if r := w.Annotations[v1alpha1.RevisionAnnotation]; r != "" {
			return r
		}
	}
	if s := d.o.rollout.Status.Stable; s != nil {
		return s.Digest
	}
	return d.o.rollout.Spec.Target.Digest
}

// tellHooks writes OCM's condition about the hooks, and an event when something is
// wrong with them, once each.
func (d *round) tellHooks(ctx context.Context, m *member, dep departure) (*addonv1alpha1.ManagedClusterAddOn, error) {
	condition, wrong := hookCondition(m, dep, d.o.rollout.Name, d.HookTimeout, d.now.Time)
	if condition == nil {
		return m.addOn, nil
	}
	updated := m.addOn.DeepCopy()
	condition.LastTransitionTime = d.now
	meta.SetStatusCondition(&updated.Status.Conditions, *condition)
	updated, err := d.patchStatus(ctx, m.addOn, updated)
	if err != nil {
		return nil, err
	}
	if wrong && updated != m.addOn {
		d.Recorder.Event(updated, corev1.EventTypeWarning, v1alpha1.PreDeleteHookOverdueReason, condition.Message)
		d.Recorder.Eventf(d.o.rollout, corev1.EventTypeWarning, v1alpha1.PreDeleteHookOverdueReason, "Cluster %s: %s", m.name, condition.Message)
	}
	return updated, nil
}

// hookCondition is HookManifestCompleted in OCM's words, with what is wrong after
// them; nil where no hook is run. wrong says that the user is to look at it.
func hookCondition(m *member, dep departure, addOn string, timeout time.Duration, now time.Time) (c *metav1.Condition, wrong bool) {
	name := render.PreDeleteWorkName(addOn)
	switch {
	case dep.managed.wanted && dep.managed.waived == "":
	case dep.hosting.wanted && dep.hosting.waived == "":
		name = render.HostingPreDeleteWorkName(addOn, m.name)
	default:
		return nil, false
	}
	if dep.done() {
		return &metav1.Condition{
			Type: addonv1alpha1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionTrue,
			Reason: "HookManifestIsCompleted", Message: fmt.Sprintf("hook manifestWork %s is completed.", name),
		}, false
	}
	if dep.managed.done() {
		name = render.HostingPreDeleteWorkName(addOn, m.name)
	}
	message := fmt.Sprintf("hook manifestWork %s is not completed.", name)
	if wrong = dep.failed() || !now.Before(m.addOn.DeletionTimestamp.Add(timeout)); wrong {
		message += " " + dep.reason() + ". Nothing is removed until it completes; to remove the add-on without it, set the annotation " +
			v1alpha1.SkipPreDeleteAnnotation + `: "true"`
	}
	return &metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionFalse,
		Reason: "HookManifestIsNotCompleted", Message: message,
	}, wrong
}
