package addonstatus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Published is the status of a ClusterManagementAddOn as OCM's addon-manager would write it:
// the default configurations, and the progress of each install placement. stable is the
// renderer of the stable revision; nil: there is none, or its body is missing. The conditions
// have no time.
func Published(progressions []rollout.Progression, target, stable *render.Renderer) addonv1alpha1.ClusterManagementAddOnStatus {
	var status addonv1alpha1.ClusterManagementAddOnStatus
	for _, c := range configsOf(target, nil) {
		status.DefaultConfigReferences = append(status.DefaultConfigReferences, addonv1alpha1.DefaultConfigReference{
			ConfigGroupResource: kindOf(c), DesiredConfig: specHash(c),
		})
	}
	for _, p := range progressions {
		status.InstallProgressions = append(status.InstallProgressions, addonv1alpha1.InstallProgression{
			PlacementRef:     addonv1alpha1.PlacementRef{Namespace: p.Placement.Namespace, Name: p.Placement.Name},
			ConfigReferences: installReferences(p, target, stable),
			Conditions:       []metav1.Condition{installProgressing(p)},
		})
	}
	return status
}

// installReferences are the configurations of a placement. If every cluster runs the target, the last applied and
// last known good configurations are those of the target, otherwise those of the stable revision.
func installReferences(p rollout.Progression, target, stable *render.Renderer) []addonv1alpha1.InstallConfigReference {
	var before []render.ConfigHash
	if stable != nil {
		before = configsOf(stable, &p.Placement)
	}
	var references []addonv1alpha1.InstallConfigReference
	nth := map[addonv1alpha1.ConfigGroupResource]int{}
	for _, c := range configsOf(target, &p.Placement) {
		kind := kindOf(c)
		reference := addonv1alpha1.InstallConfigReference{ConfigGroupResource: kind, DesiredConfig: specHash(c)}
		good := nthOf(before, kind, nth[kind])
		if p.Completed() {
			good = specHash(c)
		}
		nth[kind]++
		reference.LastAppliedConfig, reference.LastKnownGoodConfig = good.DeepCopy(), good
		references = append(references, reference)
	}
	return references
}

// nthOf is the nth configuration of a kind; nil: there are fewer.
func nthOf(configs []render.ConfigHash, kind addonv1alpha1.ConfigGroupResource, n int) *addonv1alpha1.ConfigSpecHash {
	for _, c := range configs {
		if kindOf(c) != kind {
			continue
		}
		if n == 0 {
			return specHash(c)
		}
		n--
	}
	return nil
}

// installProgressing is OCM's condition of an install progression, in its words.
func installProgressing(p rollout.Progression) metav1.Condition {
	c := metav1.Condition{Type: addonv1alpha1.ManagedClusterAddOnConditionProgressing}
	if p.Completed() {
		c.Status, c.Reason = metav1.ConditionFalse, addonv1alpha1.ProgressingReasonCompleted
		c.Message = fmt.Sprintf("selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.",
			p.Selected, p.Done, p.Configured, p.Failed, p.TimedOut)
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, addonv1alpha1.ProgressingReasonProgressing
	c.Message = fmt.Sprintf("selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.",
		p.Selected, p.InFlight+p.Done, p.Configured, p.Failed, p.TimedOut)
	return c
}

// Timed sets the times of the conditions of want: the time in live if the status is the same,
// otherwise now.
func Timed(want, live addonv1alpha1.ClusterManagementAddOnStatus, now metav1.Time) addonv1alpha1.ClusterManagementAddOnStatus {
	out := *want.DeepCopy()
	for i := range out.InstallProgressions {
		p := &out.InstallProgressions[i]
		var conditions []metav1.Condition
		for _, before := range live.InstallProgressions {
			if before.PlacementRef == p.PlacementRef {
				conditions = before.DeepCopy().Conditions
			}
		}
		for _, c := range p.Conditions {
			c.LastTransitionTime = now
			meta.SetStatusCondition(&conditions, c)
		}
		p.Conditions = conditions
	}
	return out
}

// configsOf are the configurations of a placement, or the defaults. They are listed even if
// the content cannot be rendered.
func configsOf(r *render.Renderer, placement *v1alpha1.PlacementReference) []render.ConfigHash {
	var c render.Cluster
	if placement != nil {
		c.Placements = []v1alpha1.PlacementReference{*placement}
	}
	inputs, _ := r.Inputs(c) // the commit status reports the error
	return inputs.Configs
}

func kindOf(c render.ConfigHash) addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: c.Group, Resource: c.Resource}
}

func specHash(c render.ConfigHash) *addonv1alpha1.ConfigSpecHash {
	return &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: c.Namespace, Name: c.Name}, SpecHash: c.SpecHash,
	}
}
