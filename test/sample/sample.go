package sample

import "strings"

// Template is the AddOnTemplate of an add-on. Its Deployment has the add-on's name and
// runs example.com/<add-on>:<tag>.
func Template(addOn, tag string) string {
	return strings.NewReplacer("ADDON", addOn, "TAG", tag).Replace(template)
}

// AddOn is the ClusterManagementAddOn for Template: on all clusters of the placement
// default/<placement>, all at once.
func AddOn(addOn, placement string) string {
	return strings.NewReplacer("ADDON", addOn, "PLACEMENT", placement).Replace(clusterManagementAddOn)
}

// Rollout is the AddOnRollout of an add-on with the lines below its spec, which are
// indented by two.
func Rollout(addOn, policy string) string {
	return "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata:\n  name: " + addOn + "\nspec:\n" + policy
}

const template = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: ADDON
spec:
  addonName: ADDON
  agentSpec:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: ADDON
          namespace: open-cluster-management-agent-addon
        spec:
          replicas: 1
          selector: {matchLabels: {app: ADDON}}
          template:
            metadata: {labels: {app: ADDON}}
            spec:
              containers:
              - name: agent
                image: example.com/ADDON:TAG
                args: ["--cluster={{CLUSTER_NAME}}"]
`

const clusterManagementAddOn = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: ADDON
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig: {name: ADDON}
  installStrategy:
    type: Placements
    placements:
    - namespace: default
      name: PLACEMENT
      rolloutStrategy:
        type: All
`
