package load

import (
	"strings"
	"testing"
)

// TestHubKinds: an account may bring what its rights allow, but nothing by which the operator
// decides, whatever the rights.
func TestHubKinds(t *testing.T) {
	for kind, accepted := range map[string]bool{
		"rbac.authorization.k8s.io/v1 ClusterRole": true,
		"v1 ServiceAccount":                        true,
		"v1 ConfigMap":                             true,
		"example.com/v1 Widget":                    true,
		"v1 Secret":                                false,
		"v1 Configmap":                             false,
		"addonflow.io/v1alpha1 AddOnApproval":      false,
		"addonflow.io/v1alpha1 AddOnOrder":         false,
		"addonflow.io/v1alpha1 AddOnRevision":      false,
		"addonflow.io/v1alpha1 AddOnSource":        false,
		"addonflow.io/v1 AddOnApproval":            false,
		"addon.open-cluster-management.io/v1alpha1 ManagedClusterAddOn":   false,
		"addon.open-cluster-management.io/v1beta1 ManagedClusterAddOn":    false,
		"addon.open-cluster-management.io/v7 AddOnTemplate":               false,
		"work.open-cluster-management.io/v1 ManifestWork":                 false,
		"work.open-cluster-management.io/v1alpha1 ManifestWorkReplicaSet": false,
		"cluster.open-cluster-management.io/v1beta1 PlacementDecision":    false,
	} {
		t.Run(kind, func(t *testing.T) {
			version, name, _ := strings.Cut(kind, " ")
			f := hello()
			f["other.yaml"] = "apiVersion: " + version + "\nkind: " + name + "\nmetadata:\n  name: other\n  namespace: hello\n"
			commit, problems := Load(f.objects(t), nil, Options{Namespace: "flow", HubKinds: true})
			if (len(problems) == 0) != accepted {
				t.Fatalf("accepted is %t, problems %v", !accepted, problems)
			}
			if accepted && (commit.Objects[0].GetKind() != "Namespace" || commit.Objects[1].GetKind() != name) {
				t.Errorf("%s is not applied after the Namespaces and before the add-ons", name)
			}
			if _, problems := Load(f.objects(t), nil, Options{Namespace: "flow"}); len(problems) == 0 {
				t.Error("accepted without an account")
			}
		})
	}
}
