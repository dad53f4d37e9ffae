package addonrollout

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout"
)

// addOnAnnotationPrefix begins the annotations of a ManagedCluster that are copied to its add-ons.
const addOnAnnotationPrefix = "addon.open-cluster-management.io/"

// addOnAnnotations are the annotations of the ManagedCluster that OCM copies; nil: none.
func addOnAnnotations(m *plan.Member) map[string]string {
	if m.Cluster == nil {
		return nil
	}
	return clusterAnnotations(m.Cluster)
}

func clusterAnnotations(c *clusterv1.ManagedCluster) map[string]string {
	var out map[string]string
	for k, v := range c.Annotations {
		if strings.HasPrefix(k, addOnAnnotationPrefix) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// selectedBy sets the annotation with the selection of the cluster, in place, and returns the annotations.
func selectedBy(annotations map[string]string, by rollout.Selection) map[string]string {
	switch {
	case by == rollout.ByPlacements:
		delete(annotations, v1alpha1.SelectedByAnnotation)
	case annotations == nil:
		return map[string]string{v1alpha1.SelectedByAnnotation: string(by)}
	default:
		annotations[v1alpha1.SelectedByAnnotation] = string(by)
	}
	return annotations
}

// annotationsInStep returns the annotations that an add-on should have; nil: it has them already. An annotation that
// differs from the cluster's is changed only if AddonFlow wrote it.
func annotationsInStep(cluster map[string]string, addOn *addonv1alpha1.ManagedClusterAddOn) map[string]string {
	var ours map[string]bool
	mine := func(key string) bool {
		if ours == nil {
			ours = ownAnnotations(addOn.ManagedFields)
		}
		return ours[key]
	}
	var next map[string]string
	edit := func() map[string]string {
		if next == nil {
			next = map[string]string{}
			maps.Copy(next, addOn.Annotations)
		}
		return next
	}
	for key, value := range cluster {
		if has, present := addOn.Annotations[key]; !present || has != value && mine(key) {
			edit()[key] = value
		}
	}
	for key := range addOn.Annotations {
		if _, wanted := cluster[key]; !wanted && strings.HasPrefix(key, addOnAnnotationPrefix) && mine(key) {
			delete(edit(), key)
		}
	}
	return next
}

// ownAnnotations are the keys that AddonFlow wrote and that no other writer has written since.
func ownAnnotations(entries []metav1.ManagedFieldsEntry) map[string]bool {
	ours, theirs := map[string]bool{}, map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if e.FieldsV1 == nil {
			continue
		}
		var set struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
			continue // unknown format: no field counts as written
		}
		owned := theirs
		if e.Manager == v1alpha1.FieldManager {
			owned = ours
		}
		for field := range set.Metadata.Annotations {
			owned[strings.TrimPrefix(field, "f:")] = true
		}
	}
	for key := range theirs {
		delete(ours, key)
	}
	return ours
}
