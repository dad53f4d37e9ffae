package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// installModeDefault is .Values.installMode on a cluster that runs the agent itself.
const installModeDefault = "Default"

// packageValues are the values with which a package is rendered, without the built-in ones. The values of
// configurations and of the cluster override those of the package; the annotation of the ManagedClusterAddOn
// overrides all.
func (b *builder) packageValues(annotation string) (map[string]any, error) {
	own, err := parseValues(annotation)
	if err != nil {
		return nil, err
	}
	return chart.MergeValues(chart.MergeValues(b.template.pkg.Values, b.agentValues()), own), nil
}

// builtIns are the values that cannot be overridden.
func (b *builder) builtIns(mode string) map[string]any {
	values := map[string]any{
		"clusterName": b.name, "addonInstallNamespace": b.installNamespace(), "installMode": cmp.Or(mode, installModeDefault),
		"managedKubeConfigSecret": b.addOn + "-managed-kubeconfig",
	}
	if b.template.registers {
		values["hubKubeConfigSecret"] = b.addOn + "-hub-kubeconfig"
	}
	return values
}

// installNamespace is the namespace into which a package is installed.
func (b *builder) installNamespace() string {
	return cmp.Or(b.agent.namespace, defaultInstallNamespace)
}

// agentValues are the values of the AddOnDeploymentConfig, and the variables of all sources. For charts, they have
// the names of OCM's add-on framework; for manifests, plain names.
func (b *builder) agentValues() map[string]any {
	values := b.configValues()
	for i, v := range b.agent.variables {
		at, typed, err := b.target(v.Name, v.Value)
		if err != nil {
			b.found.add(Finding{
				Config: b.agent.origin, Field: fmt.Sprintf("spec.customizedVariables[%d].value", i),
				Reason: flaw.ReasonInvalidVariable, Message: err.Error(),
			})
		}
		if slices.Contains(BuiltInValues(b.template.registration), at[0]) {
			b.found.add(Finding{
				Config: b.agent.origin, Field: fmt.Sprintf("spec.customizedVariables[%d].name", i),
				Reason: flaw.ReasonReservedVariable, Message: fmt.Sprintf("value %q is built in", at[0]), Hint: "choose another name",
			})
			continue
		}
		setValue(values, at, typed)
	}
	for _, name := range b.taken() {
		at, typed, err := b.target(name, b.variables.values[name])
		if err != nil {
			b.found.add(Finding{Field: "spec.variables", Reason: flaw.ReasonInvalidVariable, Message: name + ": " + err.Error()})
		}
		setValue(values, at, typed)
	}
	return values
}

// taken are the variables from sources other than the AddOnDeploymentConfig, sorted: other configurations, and labels
// and claims of the cluster that the package maps. If the cluster does not have a variable, it is omitted, so that
// the chart's own value applies.
func (b *builder) taken() []string {
	names := slices.Collect(maps.Keys(b.assignment.mapped))
	for name := range b.template.ofCluster {
		if _, given := b.variables.values[name]; given {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// configValues are the values of the AddOnDeploymentConfig besides its variables, each with its names for charts and
// for manifests.
func (b *builder) configValues() map[string]any {
	values := map[string]any{}
	for _, v := range []struct {
		chart, manifests string
		value            any
	}{
		{"global.nodeSelector", "NodeSelector", runtime.DeepCopyJSONValue(b.agent.nodeSelector)}, // copied, because a variable may be set inside it
		{"tolerations", "Tolerations", b.agent.tolerations},
		{"global.proxyConfig.HTTP_PROXY", "HTTPProxy", b.agent.proxy.HTTPProxy},
		{"global.proxyConfig.HTTPS_PROXY", "HTTPSProxy", b.agent.proxy.HTTPSProxy},
		{"global.proxyConfig.NO_PROXY", "NoProxy", b.agent.proxy.NoProxy},
		{"global.proxyConfig.PROXY_CA_BUNDLE", "ProxyCABundle", string(b.agent.proxy.CABundle)},
		{"global.resourceRequirements", "ResourceRequirements", b.requirementValues()},
	} {
		at := v.manifests
		if b.template.pkg.Engine == chart.HelmChart {
			at = v.chart
		}
		if v.value != nil && v.value != "" {
			setValue(values, strings.Split(at, "."), v.value)
		}
	}
	return values
}

// requirementValues are the requirements as a list; nil: none.
func (b *builder) requirementValues() any {
	if len(b.agent.requirements) == 0 {
		return nil
	}
	list := make([]any, 0, len(b.agent.requirements))
	for _, r := range b.agent.requirements {
		list = append(list, map[string]any{
			"containerIDRegex": r.container.String(), "resources": r.resources, "resourcesRaw": r.resources,
		})
	}
	return list
}

// target returns the path of a customised variable, and its value in the declared type.
func (b *builder) target(name, text string) (at []string, value any, err error) {
	for _, v := range b.template.pkg.Variables {
		if v.Name == name {
			value, err = typedValue(v, text)
			return strings.Split(v.Value, "."), value, err
		}
	}
	return []string{name}, text, nil
}

func typedValue(v v1alpha1.PackageVariable, text string) (value any, err error) {
	switch v.Type {
	case variable.TypeInteger:
		value, err = strconv.ParseInt(text, 10, 64)
	case variable.TypeNumber:
		value, err = strconv.ParseFloat(text, 64)
	case variable.TypeBoolean:
		value, err = strconv.ParseBool(text)
	default:
		return text, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%.40q is not a valid %s, which the package declares %s to be", text, v.Type, v.Name)
	}
	return value, nil
}

// setValue sets a nested value. If a value on the path is not an object, it is replaced.
func setValue(values map[string]any, at []string, value any) {
	for _, name := range at[:len(at)-1] {
		next, isObject := values[name].(map[string]any)
		if !isObject {
			next = map[string]any{}
			values[name] = next
		}
		values = next
	}
	values[at[len(at)-1]] = value
}

// BuiltInValues are the names of the values that every package gets. A package with a registration gets one more.
func BuiltInValues(registration []addonv1alpha1.RegistrationSpec) []string {
	names := []string{"addonInstallNamespace", "clusterName", "installMode", "managedKubeConfigSecret"}
	if len(registration) > 0 {
		return append(names, "hubKubeConfigSecret")
	}
	return names
}
