package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// The kinds of configuration that rendering reads, all of the group
// addon.open-cluster-management.io.
const (
	addonGroup          = "addon.open-cluster-management.io"
	TemplateResource    = "addontemplates"
	AgentConfigResource = "addondeploymentconfigs"
	HubConfigResource   = "addonhubconfigs"
)

// Cluster has the facts of a managed cluster that rendering reads.
type Cluster struct {
	Name string
	// Placements are all install placements that select the cluster, in the order of the
	// ClusterManagementAddOn. The last one applies; if it assigns no configuration, the cluster
	// gets the defaults.
	Placements []v1alpha1.PlacementReference
	// Configs are the configurations that the ManagedClusterAddOn itself names (spec.configs), in its order, as the
	// hub stores them, with their hashes. For each kind they replace all those of the placement.
	Configs []Config
	// ImageRegistries is the value of the ManagedCluster's annotation
	// open-cluster-management.io/image-registries.
	ImageRegistries string
	// Values is the value of the ManagedClusterAddOn's annotation
	// addon.open-cluster-management.io/values, which gives values to packages and variables to
	// templates.
	Values string
	// Labels and Claims of the ManagedCluster, for templates and packages that name them in
	// variables. They are not changed.
	Labels map[string]string
	Claims []clusterv1.ManagedClusterClaim
	// KubeVersion is the ManagedCluster's status.version.kubernetes.
	KubeVersion string
	// Hosting is the value of the ManagedClusterAddOn's annotation
	// addon.open-cluster-management.io/hosting-cluster-name: the cluster on which some of the
	// manifests are deployed. "": all are deployed on the managed cluster.
	Hosting string
}

// facts are the parts of a cluster that a rendering reads besides its name and assignment. A fact that an assignment
// does not read is empty, so a change of the fact does not change the rendering.
type facts struct {
	registries, values, kubeVersion, mode string
	// variables that a template takes from the cluster, in one text.
	variables string
}

// facts returns the facts of the cluster that the assignment may read.
func (c Cluster) facts(a *assignment) facts {
	known := facts{}
	if a.mirrors {
		known.registries = c.ImageRegistries
	}
	if a.template == nil {
		return known
	}
	known.variables = a.template.variablesOf(c)
	if a.template.pkg != nil {
		known.values, known.kubeVersion, known.mode = c.Values, c.KubeVersion, c.installMode()
	}
	return known
}

// ConfigHash is a configuration assigned to a cluster, with OCM's hash of it.
type ConfigHash struct {
	ConfigReference
	SpecHash string
}

// Inputs has everything that decides the rendering of a cluster, apart from its name.
type Inputs struct {
	// Configs are all assigned configurations and the reference of the template, in the order of
	// MCA.status.configReferences: by group and resource, then as declared.
	Configs []ConfigHash
	// Key identifies everything that rendering may read except the cluster's name. It is equal for two clusters, or
	// for one cluster under two revisions, exactly if all of that is equal.
	Key string
}

// assignment is the set of configurations that a placement, or the lack of one, gives.
type assignment struct {
	placement string            // namespace/name, "" for the defaults
	over      []ConfigReference // what the placement assigns
	own       []Config          // what the cluster's ManagedClusterAddOn names
	bounds    *Bounds
	template  *parsedTemplate
	agent     *agentConfig
	configs   []ConfigHash
	key       string
	// mirrors: the agent config has no registries, so the cluster's annotation is used.
	mirrors bool
	// mapped are the variables that the template takes from configurations.
	mapped map[string]string
	// unassigned are the variables for which no configuration is assigned, with the kind of the configuration. The
	// ManagedClusterAddOn of a cluster may name one.
	unassigned map[string]string
	// others are the configurations that rendering does not read, with hashes.
	others []ConfigHash
	found  findings
}

func (a *assignment) packaged() bool { return a.template != nil && a.template.pkg != nil }

// Inputs returns the inputs of the cluster.
func (r *Renderer) Inputs(c Cluster) (Inputs, error) {
	a := r.assignmentFor(c)
	inputs := Inputs{Configs: slices.Clone(a.configs), Key: a.key}
	known := c.facts(a)
	if known != (facts{}) || c.Hosting != "" {
		text, _ := json.Marshal([]string{a.key, known.registries, known.values, known.kubeVersion, known.mode, c.Hosting, known.variables}) // strings only
		sum := sha256.Sum256(text)
		inputs.Key = hex.EncodeToString(sum[:])
	}
	return inputs, a.found.err(r.addOn)
}

// assignmentOf returns what the last of the placements assigns.
func (r *Renderer) assignmentOf(placements []v1alpha1.PlacementReference) *assignment {
	if len(placements) > 0 {
		if a, ok := r.placements[placements[len(placements)-1]]; ok {
			return a
		}
	}
	return r.defaults
}

// assignmentFor returns what the cluster's placements assign, overridden by its own
// configurations.
func (r *Renderer) assignmentFor(c Cluster) *assignment {
	base := r.assignmentOf(c.Placements)
	if len(c.Configs) == 0 {
		return base
	}
	key := ownKey{base: base, configs: c.Own()}
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.own[key]
	if !ok {
		if len(r.own) >= maxOwn {
			clear(r.own)
		}
		a = r.assign(base.placement, base.over, c.Configs)
		r.own[key] = a
	}
	return a
}

// Own identifies the cluster's own configurations and their content. It is equal for clusters that name the same
// objects in the same order; "": the cluster names none. The hashes represent the content.
func (c Cluster) Own() string {
	if len(c.Configs) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range c.Configs {
		own := &c.Configs[i]
		fmt.Fprintf(&b, "%s/%s/%s/%s=%s%v%v\n", own.Group, own.Resource, own.Namespace, own.Name, own.SpecHash, own.Typed, own.FromConfigs)
	}
	return b.String()
}

// ownKey identifies an assignment with a cluster's own configurations.
type ownKey struct {
	base    *assignment
	configs string
}

// groupResource names a kind of configuration.
type groupResource struct {
	group, resource string
}

// assign overrides the defaults by the configurations of a placement, and then both by a cluster's own
// configurations, each kind of configuration as a whole. It reads the first template and the first
// AddOnDeploymentConfig of the result.
func (r *Renderer) assign(placement string, over []ConfigReference, own []Config) *assignment {
	a := &assignment{placement: placement, over: over, own: own, bounds: r.bounds, key: r.bounds.key()}
	named := make([]ConfigReference, 0, len(own))
	for _, c := range own {
		named = append(named, c.ConfigReference)
	}
	if f, conflict := ConflictingLevel(named); conflict {
		a.found.add(f) // a commit with this flaw was refused, with its line
	}
	byKind := layered(r.content.Defaults, over, named)
	r.selectVersion(a, byKind)
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b groupResource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource))
	})
	for _, kind := range kinds {
		for _, reference := range byKind[kind] {
			r.take(a, reference)
		}
	}
	r.packed(a)
	r.merge(a, byKind[groupResource{addonGroup, AgentConfigResource}])
	a.agent = cmp.Or(a.agent, &agentConfig{})
	r.readVariables(a, byKind)
	a.mirrors = !a.agent.givesRegistries
	if a.template == nil && len(a.found.list) == 0 {
		a.found.add(Finding{
			Reason: flaw.ReasonReferenceNotFound, Message: a.words("no AddOnTemplate is assigned to clusters"),
			Hint: "name one under supportedConfigs or in the placement's configs",
		})
	}
	return a
}

// merge merges the AddOnDeploymentConfigs of an assignment if the add-on requests it. Otherwise the first one counts,
// as in OCM.
func (r *Renderer) merge(a *assignment, references []ConfigReference) {
	if !r.content.MergeConfigs || len(references) < 2 {
		return
	}
	var configs []Config
	for _, reference := range references {
		if body, ok := r.bodyOf(a, reference); ok {
			configs = append(configs, Config{ConfigReference: reference, Body: body})
		}
	}
	if len(configs) == 0 {
		return // take reported that they are missing
	}
	a.agent = parseAgentConfig(mergedConfigs(configs))
	sum := sha256.Sum256([]byte(a.key + "merged"))
	a.key = hex.EncodeToString(sum[:])
}

// packed uses the add-on's package, if it has one, in place of a template.
func (r *Renderer) packed(a *assignment) {
	if r.pkg == nil {
		return
	}
	a.template = r.pkg
	sum := sha256.Sum256([]byte(a.key + r.pkg.sum))
	a.key = hex.EncodeToString(sum[:])
}

// layered merges lists of configurations. Of each kind it takes the last list with an entry, and each configuration
// once.
func layered(layers ...[]ConfigReference) map[groupResource][]ConfigReference {
	byKind := map[groupResource][]ConfigReference{}
	for _, layer := range layers {
		replaced := map[groupResource]bool{}
		for _, c := range layer {
			kind := groupResource{c.Group, c.Resource}
			if !replaced[kind] {
				replaced[kind], byKind[kind] = true, nil
				if other := kind.rival(); kind.selects() && !replaced[other] {
					delete(byKind, other)
				}
			}
			if !slices.Contains(byKind[kind], c) {
				byKind[kind] = append(byKind[kind], c)
			}
		}
	}
	return byKind
}

// take adds one configuration to an assignment. Its identity and all fields that are read of it become part of the
// key.
func (r *Renderer) take(a *assignment, reference ConfigReference) {
	hash, sum, ok := r.known(a, reference)
	if !ok || hash == "" {
		a.found.add(Finding{
			Reason:  flaw.ReasonReferenceNotFound,
			Message: a.words(fmt.Sprintf("%s %s/%s is not part of the content assigned to clusters", reference.Resource, reference.Namespace, reference.Name)),
		})
		return
	}
	assigned := ConfigHash{ConfigReference: reference, SpecHash: hash}
	a.configs = append(a.configs, assigned)
	if reference.Group != addonGroup {
		a.others = append(a.others, assigned)
	}
	text, _ := json.Marshal([]any{a.key, r.addOn, reference, hash, sum}) // strings only
	next := sha256.Sum256(text)
	a.key = hex.EncodeToString(next[:])
}

// known looks up a configuration and keeps the first of each kind that rendering reads.
func (r *Renderer) known(a *assignment, reference ConfigReference) (hash, sum string, ok bool) {
	if i := slices.IndexFunc(a.own, func(c Config) bool { return c.ConfigReference == reference }); i >= 0 {
		return r.ownConfig(a, a.own[i])
	}
	if reference.Group == addonGroup && reference.Resource == TemplateResource {
		i := slices.IndexFunc(r.content.Templates, func(t Template) bool { return t.Name == reference.Name })
		if i < 0 {
			return "", "", false
		}
		parsed := r.template(r.content.Templates[i])
		a.template = cmp.Or(a.template, parsed)
		return r.content.Templates[i].SpecHash, parsed.sum, true
	}
	i := slices.IndexFunc(r.content.Configs, func(c Config) bool { return c.ConfigReference == reference })
	if i < 0 {
		return "", "", false
	}
	config := r.content.Configs[i]
	if reference.Group == addonGroup && reference.Resource == AgentConfigResource {
		a.agent = cmp.Or(a.agent, r.agentConfig(config))
	}
	return config.SpecHash, "", true
}

// bodyOf returns the body of a configuration other than a template.
func (r *Renderer) bodyOf(a *assignment, reference ConfigReference) (map[string]any, bool) {
	for _, list := range [][]Config{a.own, r.content.Configs} {
		for i := range list {
			if list[i].ConfigReference == reference {
				return list[i].Body, true
			}
		}
	}
	return nil, false
}

// ownConfig reads a configuration that the cluster itself names. The content may have another version of the object
// under the same name.
func (r *Renderer) ownConfig(a *assignment, c Config) (hash, sum string, ok bool) {
	switch {
	case c.Group != addonGroup:
	case c.Resource == TemplateResource:
		spec, _ := c.Body[specKey].(map[string]any)
		parsed := parseTemplate(r.addOn, Template{Name: c.Name, SpecHash: c.SpecHash, Typed: c.Typed, FromConfigs: c.FromConfigs, Spec: spec})
		a.template = cmp.Or(a.template, parsed)
		return c.SpecHash, parsed.sum, true
	case c.Resource == AgentConfigResource:
		a.agent = cmp.Or(a.agent, parseAgentConfig(c))
	}
	return c.SpecHash, "", true
}

// words adds the names of the clusters to a message.
func (a *assignment) words(message string) string {
	if a.placement == "" {
		return message + " by default"
	}
	return message + " of placement " + a.placement
}

// Supports reports whether the add-on lists a kind of configuration, so that
// ManagedClusterAddOns may name objects of it.
func (r *Renderer) Supports(group, resource string) bool {
	return slices.Contains(r.content.Supported, addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource})
}

// Supported are the kinds of configuration that the add-on lists, sorted, as
// MCA.status.supportedConfigs has them. The caller must not
// change them.
func (r *Renderer) Supported() []addonv1alpha1.ConfigGroupResource { return r.content.Supported }

// UnsupportedMessage is OCM's message about a configuration of a kind that an add-on does not
// list.
func UnsupportedMessage(group, resource string) string {
	return fmt.Sprintf("Configuration with gvr %s/%s is not supported for this addon", group, resource)
}
