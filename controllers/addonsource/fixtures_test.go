package addonsource_test

import (
	"maps"
	"strings"

	"github.com/addonflow/addonflow/test/sample"
)

// addOnFiles is an add-on in Git: template, configuration and ClusterManagementAddOn.
func addOnFiles() map[string]string {
	return map[string]string{
		"addons/clustermanagementaddon.yaml": addOnYAML,
		"addons/addontemplate.yaml":          templateYAML,
		"addons/addondeploymentconfig.yaml":  configYAML,
	}
}

// addOnFilesWith is the add-on with some files replaced or added.
func addOnFilesWith(other map[string]string) map[string]string {
	files := addOnFiles()
	maps.Copy(files, other)
	return files
}

const addOnYAML = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: ADDON
spec:
  addOnMeta:
    displayName: Hello
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig:
      name: ADDON
  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
    defaultConfig:
      namespace: NAMESPACE
      name: ADDON
  installStrategy:
    type: Placements
    placements:
    - namespace: NAMESPACE
      name: all
      rolloutStrategy:
        type: Progressive
        progressive:
          maxConcurrency: 25%
`

// templateYAML is the sample add-on's template with a user-defined variable.
var templateYAML = strings.Replace(sample.Template("ADDON", "v1"), "--cluster={{CLUSTER_NAME}}", "--greeting={{GREETING}}", 1)

const configYAML = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata:
  name: ADDON
  namespace: NAMESPACE
spec:
  customizedVariables:
  - name: GREETING
    value: hello
`

const rolloutYAML = `apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata:
  name: ADDON
  namespace: NAMESPACE
spec:
  stages:
  - name: canary
    placement:
      namespace: NAMESPACE
      name: canary
    maxConcurrency: 1
    minSuccessTime: 10m
  - name: everyone
    placement:
      namespace: NAMESPACE
      name: all
`

const placementYAML = `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: all
  namespace: NAMESPACE
spec: {}
`

// configSaying returns the configuration with another greeting.
func configSaying(greeting string) string {
	return strings.Replace(configYAML, "value: hello", "value: "+greeting, 1)
}
