package chart

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// capabilities is .Capabilities. KubeVersion is a method, not a field, so that only charts that
// read it fail while the version is unknown.
type capabilities struct {
	// APIVersions are the API versions that Helm knows without asking a cluster.
	APIVersions common.VersionSet
	// HelmVersion is the version of the Helm library, without information about the operator's
	// build: the same commit is the same content in every build.
	HelmVersion any

	version string
}

func newCapabilities(version string) *capabilities {
	known := builtCapabilities()
	return &capabilities{APIVersions: known.APIVersions, HelmVersion: known.HelmVersion, version: version}
}

// builtCapabilities returns Helm's own capabilities without what differs between builds.
func builtCapabilities() *common.Capabilities {
	known := common.DefaultCapabilities.Copy()
	helm := &known.HelmVersion
	helm.Version, _, _ = strings.Cut(helm.Version, "+")
	helm.GitCommit, helm.GitTreeState, helm.GoVersion, helm.KubeClientVersion = "", "", "", ""
	return known
}

// KubeVersion returns the version that the managed cluster reports, and an error until it does.
func (c *capabilities) KubeVersion() (*common.KubeVersion, error) {
	if c.version == "" {
		return nil, &refusal{"the managed cluster has not reported its Kubernetes version", "it does once its agent is connected"}
	}
	parsed, err := common.ParseKubeVersion(c.version)
	if err != nil {
		return nil, &refusal{fmt.Sprintf("the managed cluster reports a Kubernetes version that cannot be read: %v", err), ""}
	}
	return parsed, nil
}

// Admits returns the first of the Kubernetes versions that the chart's kubeVersion allows; the
// first of all if it allows none, or is absent.
func (c *Chart) Admits(versions []string) string {
	if c.helm == nil || c.helm.Metadata.KubeVersion == "" {
		return versions[0]
	}
	for _, version := range versions {
		parsed, err := common.ParseKubeVersion(version)
		if err == nil && chartutil.IsCompatibleRange(c.helm.Metadata.KubeVersion, parsed.String()) {
			return version
		}
	}
	return versions[0]
}

// satisfy refuses a cluster whose version the chart does not support.
func (c *capabilities) satisfy(constraint string) error {
	version, err := c.KubeVersion()
	if err != nil {
		return &Error{File: chartFile, Message: err.Error()}
	}
	if !chartutil.IsCompatibleRange(constraint, version.String()) {
		return &Error{File: chartFile, Message: fmt.Sprintf("the chart needs Kubernetes %s, and the cluster has %s", constraint, version.Version)}
	}
	return nil
}
