package addonrollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// Conditions OCM's tools read on a ManagedClusterAddOn, with OCM's reasons and
// messages to the letter (OCM behaviour, rows 11, 55, 78, 81).
const (
	conditionConfigured          = "Configured"
	conditionProgressing         = "Progressing"
	conditionRegistrationApplied = "RegistrationApplied"

	reasonConfigured    = "ConfigurationsConfigured"
	reasonNotConfigured = "ConfigurationsNotConfigured"
)

// moveState is how far one cluster is with the revision it is to have.
type moveState int

const (
	// moveStarted: the works of the revision are being written or not verified yet.
	moveStarted moveState = iota
	// moveDone: the works of the revision are verified.
	moveDone
	// moveFailed: the revision failed there, by report or by deadline.
	moveFailed
)

// move is everything the status of one ManagedClusterAddOn is derived from.
type move struct {
	state moveState
	// waits says that the cluster is to be moved on and it is not its turn.
	waits bool
	// refused says that the cluster's own agent could not apply its works, hostingRefused
	// that the hosting cluster's could not.
	refused, hostingRefused bool
	// reverting says that the revision had succeeded here before.
	reverting bool
	// adopted says that OCM's addon-manager had deployed it.
	adopted bool
	// reason in words, for a failure.
	reason string
	// rendered is what the cluster is to run.
	rendered render.Rendered
	// supported are the kinds of configuration that the add-on lists.
	supported []addonv1alpha1.ConfigGroupResource
	// entry is how the agent gets to the hub.
	entry entry
	// mode says who maintains Available.
	mode addonv1alpha1.HealthCheckMode
	// available is what the works say about health now, in OCM's words.
	available render.Availability
	// unknownCluster says that the hub marked the cluster itself Unknown; then
	// Available is the hub's to write.
	unknownCluster bool
	// hidesTemplateHash says that OCM's template manager may be running beside us.
	hidesTemplateHash bool
	// ownTemplate: the ManagedClusterAddOn names a template itself. Its entry is left out
	// then where the hash is to be hidden: OCM's configuration controller fills the hash
	// of what a ManagedClusterAddOn names, and no filter stops it.
	ownTemplate bool
	// hosting is where it runs in hosted mode.
	hosting hosting
}

// done is the move as it is when it is done.
func (m move) done() move {
	m.state = moveDone
	return m
}

// nextStatus returns the status the ManagedClusterAddOn is to have and whether it
// differs from the one it has. Both writes of a move, started and done, come out
// of it; a third call with the same facts changes nothing (Cost-1).
func nextStatus(current *addonv1alpha1.ManagedClusterAddOn, m move, now metav1.Time) (addonv1alpha1.ManagedClusterAddOnStatus, bool) {
	next := *current.Status.DeepCopy()
	fresh := m.adopted || neverApplied(current.Status.ConfigReferences)
	settled := m.state == moveDone && appliedAlready(current.Status.ConfigReferences, m)

	next.ConfigReferences = configReferences(current.Status.ConfigReferences, m)
	next.SupportedConfigs = m.supported
	next.Registrations = m.entry.registrations
	next.Namespace = m.rendered.Namespace
	next.HealthCheck = addonv1alpha1.HealthCheck{Mode: m.mode}

	m.hosting.stale(&next.Conditions)
	for _, c := range append(addOnConditions(current, m, fresh, settled), m.hosting.conditions(manifestsCondition(m.rendered, m.hostingRefused))...) {
		c.LastTransitionTime = now
		meta.SetStatusCondition(&next.Conditions, c)
	}
	changed := !equality.Semantic.DeepEqual(current.Status, next)
	if changed || m.entry.speaks(m.state) {
		for _, c := range m.entry.conditions() {
			c.LastTransitionTime = now
			meta.SetStatusCondition(&next.Conditions, c)
		}
		changed = !equality.Semantic.DeepEqual(current.Status, next)
	}
	return next, changed
}

// addOnConditions are the conditions this move writes. Available is left alone while
// the works are being replaced, because their feedback is about the content before;
// one that was never written says that nothing is applied yet.
func addOnConditions(current *addonv1alpha1.ManagedClusterAddOn, m move, fresh, settled bool) []metav1.Condition {
	cs := []metav1.Condition{
		configuredCondition(m.waits),
		manifestsCondition(m.rendered, m.refused),
	}
	if p := progressingCondition(m, fresh); !settled || !keepsProgressing(current.Status.Conditions) {
		cs = append(cs, p)
	}
	if m.tellsHealth(current.Status.Conditions) {
		cs = append(cs, healthConditions(current.Name, m.available)...)
	}
	return cs
}

// hinderedConditions say what is in a cluster's way: OCM's words first, then the
// object (OCM behaviour, rows 11 and 12).
func hinderedConditions(h hindrance) []metav1.Condition {
	configured := configuredCondition(true)
	configured.Message += ": " + h.message
	if !h.unsupported {
		return []metav1.Condition{configured}
	}
	return []metav1.Condition{configured, {
		Type: conditionProgressing, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ProgressingReasonConfigurationUnsupported, Message: h.message,
	}}
}

// keepsProgressing reports whether Progressing already says that a move succeeded;
// rewording InstallSucceed to UpgradeSucceed at rest would be a lie and a write.
func keepsProgressing(cs []metav1.Condition) bool {
	c := meta.FindStatusCondition(cs, conditionProgressing)
	if c == nil || c.Status != metav1.ConditionFalse {
		return false
	}
	return slices.Contains([]string{v1alpha1.InstallSucceed, v1alpha1.UpgradeSucceed, v1alpha1.RollbackSucceed}, c.Reason)
}

// progressing words by kind of move: started, succeeded, failed.
var progressingReasons = map[string][3]string{
	"install":  {v1alpha1.Installing, v1alpha1.InstallSucceed, v1alpha1.InstallFailed},
	"upgrade":  {v1alpha1.Upgrading, v1alpha1.UpgradeSucceed, v1alpha1.UpgradeFailed},
	"rollback": {v1alpha1.RollingBack, v1alpha1.RollbackSucceed, v1alpha1.RollbackFailed},
}

// progressingCondition speaks the seed's words (seed lifecycle, "New condition").
func progressingCondition(m move, fresh bool) metav1.Condition {
	kind, under := "upgrade", "upgrading..."
	switch {
	case fresh:
		kind, under = "install", "installing..."
	case m.reverting:
		kind, under = "rollback", "rolling back..."
	}
	reasons := progressingReasons[kind]
	c := metav1.Condition{Type: conditionProgressing, Status: metav1.ConditionFalse}
	switch m.state {
	case moveStarted:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasons[0], under
	case moveDone:
		c.Reason, c.Message = reasons[1], kind+" completed with no errors."
	case moveFailed:
		c.Reason, c.Message = reasons[2], kind+" failed: "+m.reason
	}
	return c
}

// configReferences lists what the cluster is configured with, in OCM's form. The
// applied side follows the desired one only when the move is done.
func configReferences(current []addonv1alpha1.ConfigReference, m move) []addonv1alpha1.ConfigReference {
	next := make([]addonv1alpha1.ConfigReference, 0, len(m.rendered.ConfigReferences))
	for _, want := range m.rendered.ConfigReferences {
		if m.hidesTemplateHash && m.ownTemplate && isTemplate(want.Group, want.Resource) {
			continue
		}
		ref := addonv1alpha1.ConfigReference{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: want.Group, Resource: want.Resource},
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: want.Namespace, Name: want.Name},
			DesiredConfig:       desiredConfig(want, m),
		}
		if old := findReference(current, want.ConfigReference); old != nil {
			ref.LastAppliedConfig = old.LastAppliedConfig.DeepCopy()
			if old.Name == want.Name && old.Namespace == want.Namespace {
				// OCM's config controller keeps this up to date, no filter stops it.
				ref.LastObservedGeneration = old.LastObservedGeneration
			}
		}
		if m.state == moveDone {
			ref.LastAppliedConfig = ref.DesiredConfig.DeepCopy()
		}
		next = append(next, ref)
	}
	return next
}

// desiredConfig is the hash OCM would show. The template's stays empty beside a
// running OCM addon-manager: with a hash its template manager would pick the
// ManagedClusterAddOn up and deploy it at once (OCM behaviour 3.1).
func desiredConfig(want render.ConfigHash, m move) *addonv1alpha1.ConfigSpecHash {
	c := &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: want.Namespace, Name: want.Name},
		SpecHash:       want.SpecHash,
	}
	if m.hidesTemplateHash && isTemplate(want.Group, want.Resource) {
		c.SpecHash = ""
	}
	return c
}

// isTemplate reports whether the group and resource are those of AddOnTemplates.
func isTemplate(group, resource string) bool {
	return group == addonv1alpha1.GroupName && resource == "addontemplates"
}

// findReference returns the reference to an object, else the first of its kind, or nil.
func findReference(refs []addonv1alpha1.ConfigReference, want render.ConfigReference) *addonv1alpha1.ConfigReference {
	i := slices.IndexFunc(refs, func(r addonv1alpha1.ConfigReference) bool {
		return r.Group == want.Group && r.Resource == want.Resource && r.Namespace == want.Namespace && r.Name == want.Name
	})
	if i < 0 {
		i = slices.IndexFunc(refs, func(r addonv1alpha1.ConfigReference) bool {
			return r.Group == want.Group && r.Resource == want.Resource
		})
	}
	if i < 0 {
		return nil
	}
	return &refs[i]
}

// neverApplied reports whether no configuration was ever applied: a fresh install.
func neverApplied(refs []addonv1alpha1.ConfigReference) bool {
	return !slices.ContainsFunc(refs, func(r addonv1alpha1.ConfigReference) bool { return r.LastAppliedConfig != nil })
}

// appliedAlready reports whether the references already say that this very move is done.
func appliedAlready(refs []addonv1alpha1.ConfigReference, m move) bool {
	return equality.Semantic.DeepEqual(refs, configReferences(refs, m))
}
