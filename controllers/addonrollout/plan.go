package addonrollout

import (
	"context"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// imageRegistriesAnnotation on a ManagedCluster redirects images.
const imageRegistriesAnnotation = clusterv1.ClusterImageRegistriesAnnotationKey

// valuesAnnotation on a ManagedClusterAddOn holds values for its package, as JSON.
const valuesAnnotation = "addon.open-cluster-management.io/values"

// input turns an observation into what the planner reads. previous is the status
// the ledger belongs to, after a change of target was entered into it.
func (r *Reconciler) input(ctx context.Context, o *observation, previous *v1alpha1.AddOnRolloutStatus, now time.Time) (rollout.Input, error) {
	ro := o.rollout
	target, err := o.content(ctx, ro.Spec.Target.Digest)
	if err != nil {
		return rollout.Input{}, err
	}
	in := rollout.Input{
		Now:             now,
		AddOn:           ro.Name,
		Spec:            ro.Spec,
		Suspended:       suspended(ro),
		TargetProven:    o.succeeded.has(ro.Spec.Target.Revision),
		Reverting:       previous.Reverting && !o.succeeded.since(ro.Spec.Target.Revision, previous.TargetSince),
		Ended:           ended(ro),
		Rebuild:         ro.Status.Target == nil,
		ApplyErrorAfter: applyErrorAfter,
		Ledger:          previous.Ledger,
		Placements:      o.placements,
		ParkAfter:       r.ParkAfter,
		RemovalGrace:    r.RemovalGrace,
		ApprovedRemoval: ro.Annotations[v1alpha1.ApproveRemovalAnnotation],
	}
	if ro.Spec.Removal == nil { // a removal needs no body
		in.TargetMissing = target.missing
	}
	var stable content
	if previous.Stable != nil {
		in.Stable = previous.Stable.Digest
		// The watch may lag behind the note of a success that the status has already.
		in.TargetProven = in.TargetProven || in.Stable == ro.Spec.Target.Digest
		if stable, err = o.content(ctx, in.Stable); err != nil {
			return rollout.Input{}, err
		}
	}
	if err := r.recall(ctx, o); err != nil {
		return rollout.Input{}, err
	}
	if err := o.refuse(ctx, target, stable); err != nil {
		return rollout.Input{}, err
	}
	if err := o.host(ctx, target, stable); err != nil {
		return rollout.Input{}, err
	}
	if err := r.contend(ctx, o, target); err != nil {
		return rollout.Input{}, err
	}
	in.Clusters = make([]rollout.Cluster, 0, len(o.members))
	for _, m := range o.members {
		in.Clusters = append(in.Clusters, r.plannedCluster(ro, m, target, stable))
	}
	r.date(client.ObjectKeyFromObject(ro), in.Clusters, now)
	if err := o.revisions.interrupted(); err != nil {
		return rollout.Input{}, err
	}
	return in, nil
}

// date notes since when the operator has seen each apply error. A change of availability that
// the managed cluster dates in the future happened, at the latest, when it was first seen.
func (r *Reconciler) date(key client.ObjectKey, clusters []rollout.Cluster, now time.Time) {
	errors, ahead := map[string]string{}, map[string]string{}
	for _, c := range clusters {
		if c.Health.NotApplied != "" {
			errors[c.Name] = "not applied"
		}
		if c.AvailableChanged.After(now) {
			ahead[c.Name] = c.AvailableChanged.String()
		}
	}
	refused, changed := r.applyErrors.look(key, errors, now), r.stampsAhead.look(key, ahead, now)
	for i := range clusters {
		c := &clusters[i]
		c.Health.NotAppliedSince = refused[c.Name]
		if at, ok := changed[c.Name]; ok {
			c.AvailableChanged = at
		}
	}
}

// applyErrorAfter is how long an apply error may last before it counts as a failure.
const applyErrorAfter = 10 * time.Minute

// ended reports whether the rollout of the target ended Succeeded under the policy that is
// declared now, as the stored status says.
func ended(ro *v1alpha1.AddOnRollout) bool {
	s := &ro.Status
	return s.Phase == v1alpha1.PhaseSucceeded && s.ObservedGeneration == ro.Generation &&
		s.Target != nil && s.Target.Digest == ro.Spec.Target.Digest &&
		s.Stable != nil && s.Stable.Digest == ro.Spec.Target.Digest
}

// plannedCluster is what the planner reads of one member.
func (r *Reconciler) plannedCluster(ro *v1alpha1.AddOnRollout, m *member, target, stable content) rollout.Cluster {
	c := rollout.Cluster{
		Name:      m.name,
		Installed: installation(m.addOn),
		Gone:      m.cluster == nil || m.cluster.DeletionTimestamp != nil,
		Running:   running(m),
		Health:    health(m),
		Blocked:   m.hostingProblem(),
		Awaits:    m.awaits(),
		Departure: plannedDeparture(m, ro.Name, r.HookTimeout),
	}
	if c.Running == "" && m.ranOtherwise() {
		c.Running = rollout.Mixed
	}
	if m.addOn != nil {
		c.SelectedBy = rollout.Selection(m.addOn.Annotations[v1alpha1.SelectedByAnnotation])
	}
	if m.cluster != nil {
		c.Labels, c.InstallDisabled = m.cluster.Labels, installDisabled(m.cluster)
	}
	c.Reachable, c.AvailableChanged = reachable(m.cluster)
	m.awaitHost(&c)
	if m.refused != nil {
		m.judge(&c)
	}
	if m.hindered != nil {
		c.Reachable, c.Away = false, m.hindered.message
		return c
	}
	r.compare(&c, ro, m, target, stable)
	return c
}

// judge says what it means that the target cannot be rendered for a member. Where what it
// has can be, the commit asks for something that the cluster does not have: that is a
// failure of the commit, found at the cluster's turn, and its budget says what follows.
// Where neither can, no commit caused it: the cluster is held back, and in nobody's way.
func (m *member) judge(c *rollout.Cluster) {
	if m.refused.keeps {
		c.Blocked = m.refused.brief
		return
	}
	c.Reachable, c.Away = false, m.refused.brief
}

// awaits says which work of the member must be gone before its successor can be written.
func (m *member) awaits() string {
	for _, w := range m.works {
		if w.DeletionTimestamp != nil {
			return "ManifestWork " + w.Namespace + "/" + w.Name + ", which is being deleted, is not gone yet"
		}
	}
	return ""
}

// compare says whether the member's works already are what target and stable ask for.
func (r *Reconciler) compare(c *rollout.Cluster, ro *v1alpha1.AddOnRollout, m *member, target, stable content) {
	if c.Blocked == "" {
		c.UpToDate, c.UpToDateStable = r.runs(ro, m, c.Running, target, stable)
	}
}

// runs reports whether a member's works are what the target, and the stable revision,
// render for it.
func (r *Reconciler) runs(ro *v1alpha1.AddOnRollout, m *member, running string, target, stable content) (atTarget, atStable bool) {
	switch running {
	case rollout.Mixed:
		return false, false
	case rollout.Foreign:
		atStable = r.takenOver(ro, m, stable.renderer)
		if stable == target {
			return atStable, atStable
		}
		return m.serves && r.takenOver(ro, m, target.renderer), atStable
	}
	atTarget = target.upToDate(m)
	// At rest they are one, and a digest per cluster and turn is not nothing.
	if stable == target {
		return atTarget, atTarget
	}
	return atTarget, stable.upToDate(m)
}

// installation says whose the ManagedClusterAddOn is.
func installation(addOn *addonv1alpha1.ManagedClusterAddOn) rollout.Installation {
	switch {
	case addOn == nil:
		return rollout.NotInstalled
	case addOn.DeletionTimestamp != nil:
		return rollout.Deleting
	case v1alpha1.Installed(addOn):
		return rollout.Ours
	}
	return rollout.HandMade
}

// reachable reads whether the hub has a cluster as available, and when that last changed
// by the clock of the managed cluster.
func reachable(c *clusterv1.ManagedCluster) (is bool, changed time.Time) {
	if c == nil {
		return false, time.Time{}
	}
	cond := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if cond == nil {
		return false, time.Time{}
	}
	return cond.Status == metav1.ConditionTrue && c.Spec.HubAcceptsClient, cond.LastTransitionTime.Time
}

// running is the digest of the revision on a member's works. Works that have lost
// either mark, the revision's or the content's, are Mixed: what they hold cannot be
// told, and repairing them would be a move without an admission.
func running(m *member) string {
	if m.health.Revision != "" && m.health.Digest != "" {
		return m.health.Revision
	}
	found := ""
	for _, w := range m.works {
		switch {
		case w.DeletionTimestamp != nil:
		case w.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue:
			return rollout.Mixed
		default:
			found = rollout.Foreign
		}
	}
	return found
}

// health hands the works' word to the planner.
func health(m *member) rollout.Health {
	h := rollout.Health{Reason: m.health.Reason, NotApplied: m.health.NotApplied}
	switch {
	case m.health.Failed:
		h.State = rollout.HealthFailed
	case m.overruled != nil:
		h.State, h.Reason = rollout.HealthProgressing, m.overruled.message
	case m.health.Verified:
		h.State = rollout.HealthVerified
	case m.health.Current:
		h.State = rollout.HealthProgressing
	}
	return h
}

// upToDate reports whether a member's works already are what the revision renders
// for it. Equal digests mean equal objects, whichever revision the works name.
func upToDate(m *member, r *render.Renderer) bool {
	if len(m.works) == 0 || m.health.Digest == "" {
		return false
	}
	digest, err := r.Digest(m.renderInput())
	return err == nil && digest == m.health.Digest
}

// takenOver reports whether works that OCM wrote hold what the revision renders for the
// member: then nothing changes there, and no work is written. An answer
// that is yes is remembered for as long as the works are the same. renderer may be nil.
func (r *Reconciler) takenOver(ro *v1alpha1.AddOnRollout, m *member, renderer *render.Renderer) bool {
	if renderer == nil || m.addOn == nil || slices.ContainsFunc(m.works, func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp != nil }) {
		return false
	}
	rendered, err := renderer.Render(m.renderInput())
	if err != nil {
		return false
	}
	versions := []string{rendered.Digest, string(m.addOn.UID)}
	for _, w := range m.works {
		versions = append(versions, w.Name, w.ResourceVersion)
	}
	mark := strings.Join(versions, " ")
	key := client.ObjectKeyFromObject(ro)
	if r.alike.is(key, m.name, mark) {
		return true
	}
	owner := render.Owner{Name: m.addOn.Name, Namespace: m.addOn.Namespace, UID: m.addOn.UID}
	desired, gone, err := rendered.Works(owner, m.works)
	if err != nil || len(gone) > 0 {
		return false
	}
	for _, w := range desired {
		if render.Compare(w, m.work(client.ObjectKeyFromObject(w))) != render.MarksMissing {
			return false
		}
	}
	r.alike.set(key, m.name, mark)
	return true
}

// renderInput is what of the member a rendering depends on.
func (m *member) renderInput() render.Cluster {
	c := render.Cluster{Name: m.name, Placements: m.selectedBy, Configs: m.configs, Hosting: m.hosting.Name}
	if m.had != nil {
		c.Placements = []v1alpha1.PlacementReference{*m.had}
	}
	if m.cluster != nil {
		c.ImageRegistries = m.cluster.Annotations[imageRegistriesAnnotation]
		c.KubeVersion = m.cluster.Status.Version.Kubernetes
		c.Labels, c.Claims = m.cluster.Labels, m.cluster.Status.ClusterClaims
	}
	if m.addOn != nil {
		c.Values = m.addOn.Annotations[valuesAnnotation]
	}
	return c
}

// suspended reports whether the rollout is suspended by annotation. A release that is
// asked for suspends until it is carried out.
func suspended(ro *v1alpha1.AddOnRollout) bool {
	return v1alpha1.SuspendedByAnnotation(ro.Annotations) || ro.ReleaseRequested()
}
