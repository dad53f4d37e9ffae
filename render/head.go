package render

import (
	workv1 "open-cluster-management.io/api/work/v1"
	kjson "sigs.k8s.io/json"
)

// identitiesOf reads the identities of a work's objects, in order. An object that cannot be
// read has no identity and does not stay in the work.
func identitiesOf(work *workv1.ManifestWork) []Identity {
	ids := make([]Identity, 0, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		if id, ok := identityIn(work.Spec.Workload.Manifests[i].Raw); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// identityIn reads a manifest's identity from its text.
func identityIn(raw []byte) (Identity, bool) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(objectIn(raw), &head); err != nil {
		return Identity{}, false
	}
	return Identity{head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name}, true
}
