package spoke

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

// View is how a report sees the cluster: it returns the live object, or nil if there is none.
type View func(workv1.ManifestResourceMeta) (*unstructured.Unstructured, error)

// ReportApplied writes what the agent's first controller reports into a work's status: Applied
// per manifest and for the work. Feedback and Available stay those of the earlier content until
// the next report.
func ReportApplied(status *workv1.ManifestWorkStatus, generation int64, results []Result, now time.Time) {
	previous := status.ResourceStatus.Manifests
	manifests := make([]workv1.ManifestCondition, 0, len(results))
	failed := false
	for _, result := range results {
		condition := appliedCondition(result.Err, generation, now)
		failed = failed || result.Err != nil
		manifests = append(manifests, carryOver(previous, result.Meta, condition))
	}
	status.ResourceStatus.Manifests = manifests
	if len(results) == 0 {
		return
	}
	applied := metav1.Condition{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "AppliedManifestWorkComplete", Message: "Apply manifest work complete",
	}
	if failed {
		applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, "AppliedManifestWorkFailed", "Failed to apply manifest work"
	}
	set(&status.Conditions, applied, now)
}

func appliedCondition(err error, generation int64, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1.AppliedManifestComplete, Message: "Apply manifest complete",
		LastTransitionTime: metav1.NewTime(now),
	}
	if err != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, workv1.AppliedManifestFailed
		condition.Message = fmt.Sprintf("Failed to apply manifest: %v", err)
	}
	return condition
}

// carryOver keeps feedback and the other conditions of the same object, found by its ordinal
// or, if that changed, without it. A condition for another generation is a new one, with a new
// transition time.
func carryOver(previous []workv1.ManifestCondition, m workv1.ManifestResourceMeta, applied metav1.Condition) workv1.ManifestCondition {
	before := find(previous, m)
	if before == nil {
		return workv1.ManifestCondition{ResourceMeta: m, Conditions: []metav1.Condition{applied}}
	}
	conditions := append([]metav1.Condition(nil), before.Conditions...)
	if old := meta.FindStatusCondition(conditions, applied.Type); old != nil && old.ObservedGeneration != applied.ObservedGeneration {
		meta.RemoveStatusCondition(&conditions, applied.Type)
	}
	meta.SetStatusCondition(&conditions, applied)
	return workv1.ManifestCondition{ResourceMeta: m, StatusFeedbacks: before.StatusFeedbacks, Conditions: conditions}
}

func find(manifests []workv1.ManifestCondition, m workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	var candidate *workv1.ManifestCondition
	for i := range manifests {
		if manifests[i].ResourceMeta == m {
			return &manifests[i]
		}
		moved := manifests[i].ResourceMeta
		moved.Ordinal = m.Ordinal
		if moved == m {
			candidate = &manifests[i]
		}
	}
	return candidate
}

// ReportAvailable writes what the agent's second controller reports into a work's status:
// Available and feedback of every manifest that the first one listed, and Available for the
// work.
func (c *Cluster) ReportAvailable(status *workv1.ManifestWorkStatus, work *workv1.ManifestWork, view View, now time.Time) error {
	reader, _ := c.world.readers.Get().(*reader)
	defer c.world.readers.Put(reader)
	missing, unknown := 0, 0
	for i := range status.ResourceStatus.Manifests {
		manifest := &status.ResourceStatus.Manifests[i]
		if manifest.ResourceMeta.Resource == "" {
			unknown++
			set(&manifest.Conditions, metav1.Condition{
				Type: workv1.ManifestAvailable, Status: metav1.ConditionUnknown,
				Reason: "IncompleteResourceMeta", Message: "Resource meta is incomplete",
			}, now)
			continue
		}
		live, err := view(manifest.ResourceMeta)
		if err != nil {
			return err
		}
		if live == nil {
			missing++
			set(&manifest.Conditions, metav1.Condition{
				Type: workv1.ManifestAvailable, Status: metav1.ConditionFalse,
				Reason: "ResourceNotAvailable", Message: "Resource is not available",
			}, now)
			continue
		}
		set(&manifest.Conditions, metav1.Condition{
			Type: workv1.ManifestAvailable, Status: metav1.ConditionTrue,
			Reason: "ResourceAvailable", Message: "Resource is available",
		}, now)
		values, synced := reader.read(live, configOf(manifest.ResourceMeta, work.Spec.ManifestConfigs).FeedbackRules)
		if !equality.Semantic.DeepEqual(manifest.StatusFeedbacks.Values, values) {
			meta.RemoveStatusCondition(&manifest.Conditions, synced.Type)
		}
		set(&manifest.Conditions, synced, now)
		manifest.StatusFeedbacks.Values = values
	}
	set(&status.Conditions, availableCondition(missing, unknown, len(status.ResourceStatus.Manifests), work.Generation), now)
	return nil
}

func availableCondition(missing, unknown, total int, generation int64) metav1.Condition {
	condition := metav1.Condition{Type: workv1.WorkAvailable, ObservedGeneration: generation}
	switch {
	case missing > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, "ResourcesNotAvailable"
		condition.Message = fmt.Sprintf("%d of %d resources are not available", missing, total)
	case unknown > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, "ResourcesStatusUnknown"
		condition.Message = fmt.Sprintf("%d of %d resources have unknown status", unknown, total)
	case total == 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, "ResourcesStatusUnknown"
		condition.Message = "cannot get any available resource "
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, "ResourcesAvailable"
		condition.Message = "All resources are available"
	}
	return condition
}

// set is SetStatusCondition with a given time.
func set(conditions *[]metav1.Condition, condition metav1.Condition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(conditions, condition)
}
