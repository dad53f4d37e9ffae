package addonstatus

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
)

// State is the progress of one cluster in its move to a revision.
type State int

const (
	// Started: the works of the revision are being written or not verified yet.
	Started State = iota
	// Done: the works of the revision are verified.
	Done
	// Failed: the revision failed on the cluster: an agent reported it, or the deadline passed.
	Failed
)

// Move is everything the status of one ManagedClusterAddOn is derived from.
type Move struct {
	State State
	// Waits: the cluster waits to be admitted to another revision.
	Waits bool
	// Refused: the cluster's own agent could not apply its works. HostingRefused: the agent
	// of the hosting cluster could not.
	Refused, HostingRefused bool
	// Reverting: the revision succeeded here before.
	Reverting bool
	// Adopted: OCM's addon-manager deployed the add-on.
	Adopted bool
	// Reason in words, for a failure.
	Reason string
	// Rendered is the content of the revision for the cluster.
	Rendered render.Rendered
	// Supported are the kinds of configuration that the add-on lists.
	Supported []addonv1alpha1.ConfigGroupResource
	// Access is how the agent gets to the hub.
	Access Access
	// Mode says which program writes the condition Available.
	Mode addonv1alpha1.HealthCheckMode
	// Available is the current health of the works, with OCM's text.
	Available render.Availability
	// UnknownCluster: the hub marked the cluster itself Unknown; then the hub writes
	// Available.
	UnknownCluster bool
	// HidesTemplateHash: OCM's template manager may be running on this hub.
	HidesTemplateHash bool
	// OwnTemplate: the ManagedClusterAddOn names a template itself. If the hash must be hidden,
	// its entry is left out: OCM's configuration controller fills the hash of every
	// configuration that a ManagedClusterAddOn names.
	OwnTemplate bool
	// Hosting is the hosting cluster in hosted mode.
	Hosting Hosting
}

// Next returns the new status of the ManagedClusterAddOn and whether it differs from the
// present one. A move is written when it has started, and when it is done or has failed. Another call with the same
// facts changes nothing.
func Next(current *addonv1alpha1.ManagedClusterAddOn, m Move, now metav1.Time) (addonv1alpha1.ManagedClusterAddOnStatus, bool) {
	next := *current.Status.DeepCopy()
	fresh := m.Adopted || NeverApplied(current.Status.ConfigReferences)
	done := m.State == Done && m.AppliedAlready(current.Status.ConfigReferences)

	next.ConfigReferences = references(current.Status.ConfigReferences, m)
	next.SupportedConfigs = m.Supported
	next.Registrations = m.Access.Registrations
	next.Namespace = m.Rendered.Namespace
	next.HealthCheck = addonv1alpha1.HealthCheck{Mode: m.Mode}

	_, deploys := m.Rendered.Deploys()
	hosts := m.Rendered.Hosts()
	m.Hosting.stale(hosts, &next.Conditions)
	for _, c := range append(addOnConditions(current, m, fresh, done), m.Hosting.conditions(hosts, manifestsCondition(deploys, m.HostingRefused))...) {
		c.LastTransitionTime = now
		meta.SetStatusCondition(&next.Conditions, c)
	}
	changed := !equality.Semantic.DeepEqual(current.Status, next)
	if changed || m.Access.speaks(m.State) {
		for _, c := range m.Access.conditions() {
			c.LastTransitionTime = now
			meta.SetStatusCondition(&next.Conditions, c)
		}
		changed = !equality.Semantic.DeepEqual(current.Status, next)
	}
	return next, changed
}

// addOnConditions are the conditions that this move writes. Available is not changed while
// the works are being replaced, because their feedback is about the previous content. If it
// was never written, it says that nothing is applied yet.
func addOnConditions(current *addonv1alpha1.ManagedClusterAddOn, m Move, fresh, done bool) []metav1.Condition {
	deploys, _ := m.Rendered.Deploys()
	cs := []metav1.Condition{configuredCondition(m.Waits), manifestsCondition(deploys, m.Refused)}
	if p := progressingCondition(m, fresh); !done || !keepsProgressing(current.Status.Conditions) {
		cs = append(cs, p)
	}
	if m.tellsHealth(current.Status.Conditions) {
		cs = append(cs, healthConditions(current.Name, m.Available)...)
	}
	return cs
}
