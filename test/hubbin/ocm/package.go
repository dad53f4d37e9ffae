package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"open-cluster-management.io/addon-framework/pkg/addonfactory"
	"open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"
)

// packages are charts and manifests, each as a commit for AddonFlow (git) and as what
// a hub says of one cluster (hub.yaml). OCM's framework takes nothing but what is
// compiled in.
//
//go:embed all:packages
var packages embed.FS

// printed is what `ocm package` prints: objects, or why there are none.
type printed struct {
	Objects []runtime.Object `json:"objects,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// packageCommand prints what an add-on manager makes of one of the packages for its
// cluster, built with OCM's add-on framework as the guide for developers says.
func packageCommand() *cobra.Command {
	return &cobra.Command{Use: "package NAME", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		p, err := readPackage(path.Join("packages", args[0]))
		if err != nil {
			return err
		}
		var out printed
		if out.Objects, err = p.manifests(); err != nil {
			out = printed{Error: err.Error()}
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(out)
	}}
}

// addOnPackage is one of the packages, and at once where its configuration is read from.
type addOnPackage struct {
	dir     string
	addOn   addonv1alpha1.ManagedClusterAddOn
	cluster clusterv1.ManagedCluster
	config  *addonv1alpha1.AddOnDeploymentConfig
	spec    struct {
		Helm, Manifests struct{ Path string }
		Values          map[string]any
		Registration    []addonv1alpha1.RegistrationSpec
	}
}

// readPackage reads the AddOnPackage, its configuration and the cluster.
func readPackage(dir string) (*addOnPackage, error) {
	p := &addOnPackage{dir: dir}
	files, err := fs.Glob(packages, dir+"/git/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, dir+"/hub.yaml") {
		text, err := packages.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			if err := p.take([]byte(document)); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if p.config != nil {
		p.addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
				Group: utils.AddOnDeploymentConfigGVR.Group, Resource: utils.AddOnDeploymentConfigGVR.Resource,
			},
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{
				ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: p.config.Namespace, Name: p.config.Name}, SpecHash: "known",
			},
		}}
	}
	return p, nil
}

// take keeps one object.
func (p *addOnPackage) take(document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "AddOnPackage":
		return yaml.Unmarshal(document, &struct{ Spec any }{&p.spec})
	case "AddOnDeploymentConfig":
		// What the API server fills in.
		p.config = &addonv1alpha1.AddOnDeploymentConfig{Spec: addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: addonfactory.AddonDefaultInstallNamespace,
		}}
		return yaml.Unmarshal(document, p.config)
	case "ManagedClusterAddOn":
		return yaml.Unmarshal(document, &p.addOn)
	case "ManagedCluster":
		return yaml.Unmarshal(document, &p.cluster)
	}
	return nil
}

// Get is the getter of the framework.
func (p *addOnPackage) Get(context.Context, string, string) (*addonv1alpha1.AddOnDeploymentConfig, error) {
	return p.config, nil
}

// manifests renders the package for the cluster. The framework panics on a template
// that fails.
func (p *addOnPackage) manifests() (objects []runtime.Object, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("panic: %v", failed)
		}
	}()
	agentAddOn, err := p.build()
	if err != nil {
		return nil, err
	}
	return agentAddOn.Manifests(&p.cluster, &p.addOn)
}

// build puts the add-on together with everything that the guide shows.
func (p *addOnPackage) build() (agent.AgentAddon, error) {
	folder := p.spec.Manifests.Path
	toValues := []addonfactory.AddOnDeploymentConfigToValuesFunc{addonfactory.ToAddOnDeploymentConfigValues}
	if p.spec.Helm.Path != "" {
		folder = p.spec.Helm.Path
		toValues = []addonfactory.AddOnDeploymentConfigToValuesFunc{
			addonfactory.ToAddOnNodePlacementValues, addonfactory.ToAddOnProxyConfigValues,
			addonfactory.ToAddOnResourceRequirementsValues, addonfactory.ToAddOnCustomizedVariableValues,
		}
	}
	values := []addonfactory.GetValuesFunc{
		func(*clusterv1.ManagedCluster, *addonv1alpha1.ManagedClusterAddOn) (addonfactory.Values, error) {
			return p.spec.Values, nil
		},
	}
	if image, ok := p.spec.Values["image"].(string); ok {
		values = append(values, addonfactory.GetAgentImageValues(p, "image", image))
	}
	values = append(values, addonfactory.GetAddOnDeploymentConfigValues(p, toValues...), addonfactory.GetValuesFromAddonAnnotation)
	factory := addonfactory.NewAgentAddonFactory(p.addOn.Name, packages, path.Join(p.dir, "git", folder)+"/").
		WithGetValuesFuncs(values...).
		WithAgentInstallNamespace(utils.AgentInstallNamespaceFromDeploymentConfigFunc(p)).
		WithAgentHostedModeEnabledOption().
		WithTrimCRDDescription()
	if len(p.spec.Registration) > 0 {
		factory.WithAgentRegistrationOption(&agent.RegistrationOption{})
	}
	if p.spec.Helm.Path != "" {
		return factory.BuildHelmAgentAddon()
	}
	return factory.BuildTemplateAgentAddon()
}
