package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// OCM's configuration kinds that rendering reads.
const (
	addonGroup          = "addon.open-cluster-management.io"
	templateResource    = "addontemplates"
	agentConfigResource = "addondeploymentconfigs"
)

// Cluster is what rendering needs to know of a managed cluster.
type Cluster struct {
	Name string
	// Placements are all install placements that select the cluster, in the
	// order of the ClusterManagementAddOn. The last one has it; if that one
	// assigns no configuration, the cluster gets the defaults (OCM behaviour,
	// rows 2-5).
	Placements []v1alpha1.PlacementReference
	// ImageRegistries is the value of the ManagedCluster's annotation
	// open-cluster-management.io/image-registries.
	ImageRegistries string
}

// ConfigHash is a configuration assigned to a cluster, with OCM's hash of it.
type ConfigHash struct {
	ConfigReference
	SpecHash string
}

// Inputs is what decides what a cluster gets, apart from its name.
type Inputs struct {
	// Template is the name of the AddOnTemplate, "" when none is assigned.
	Template string
	// Configs are all configurations assigned, the template's reference among
	// them, as MCA.status.configReferences lists them: sorted by group and
	// resource, then as declared.
	Configs []ConfigHash
	// Key is equal for two clusters, or for one cluster under two revisions,
	// exactly when everything that rendering reads is equal but the cluster's name.
	Key string
}

// assignment is the configuration a placement, or the lack of one, gives.
type assignment struct {
	placement string // namespace/name, "" for the defaults
	template  *parsedTemplate
	agent     *agentConfig
	configs   []ConfigHash
	key       string
	// mirrors: the agent config gives no registries, so that the cluster's
	// annotation counts.
	mirrors bool
	found   findings
}

// Inputs returns what decides what the cluster gets.
func (r *Renderer) Inputs(c Cluster) (Inputs, error) {
	a := r.assignmentOf(c.Placements)
	inputs := Inputs{Configs: slices.Clone(a.configs), Key: a.key}
	if a.template != nil {
		inputs.Template = a.template.name
	}
	if a.mirrors && c.ImageRegistries != "" {
		sum := sha256.Sum256([]byte(a.key + c.ImageRegistries))
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

// groupResource names a kind of configuration.
type groupResource struct {
	group, resource string
}

// assign merges what a placement assigns over the defaults, wholesale for each
// kind of configuration (row 2), and reads the first template and the first
// AddOnDeploymentConfig of the result (row 3).
func (r *Renderer) assign(placement string, over []ConfigReference) *assignment {
	a := &assignment{placement: placement}
	byKind := map[groupResource][]ConfigReference{}
	for _, c := range r.content.Defaults {
		kind := groupResource{c.Group, c.Resource}
		byKind[kind] = append(byKind[kind], c)
	}
	replaced := map[groupResource]bool{}
	for _, c := range over {
		kind := groupResource{c.Group, c.Resource}
		if !replaced[kind] {
			replaced[kind], byKind[kind] = true, nil
		}
		if !slices.Contains(byKind[kind], c) {
			byKind[kind] = append(byKind[kind], c)
		}
	}
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b groupResource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource))
	})
	for _, kind := range kinds {
		for _, reference := range byKind[kind] {
			r.take(a, reference)
		}
	}
	a.agent = cmp.Or(a.agent, &agentConfig{})
	a.mirrors = !a.agent.givesRegistries
	if a.template == nil && len(a.found.list) == 0 {
		a.found.add(Finding{
			Reason: ReasonReferenceNotFound, Message: a.words("no AddOnTemplate is assigned to clusters"),
			Hint: "name one under supportedConfigs or in the placement's configs",
		})
	}
	return a
}

// take adds one configuration to an assignment. Its identity and everything read
// of it become part of the key.
func (r *Renderer) take(a *assignment, reference ConfigReference) {
	hash, sum, ok := r.known(a, reference)
	if !ok || hash == "" {
		a.found.add(Finding{
			Reason:  ReasonReferenceNotFound,
			Message: a.words(fmt.Sprintf("%s %s/%s is not part of the content assigned to clusters", reference.Resource, reference.Namespace, reference.Name)),
		})
		return
	}
	a.configs = append(a.configs, ConfigHash{ConfigReference: reference, SpecHash: hash})
	text, _ := json.Marshal([]any{a.key, r.addOn, reference, hash, sum}) //nolint:errchkjson // strings only
	next := sha256.Sum256(text)
	a.key = hex.EncodeToString(next[:])
}

// known looks a configuration up and keeps the first of the kinds rendering reads.
func (r *Renderer) known(a *assignment, reference ConfigReference) (hash, sum string, ok bool) {
	if reference.Group == addonGroup && reference.Resource == templateResource {
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
	if reference.Group == addonGroup && reference.Resource == agentConfigResource {
		a.agent = cmp.Or(a.agent, r.agentConfig(config))
	}
	return config.SpecHash, "", true
}

// words says which clusters a message is about.
func (a *assignment) words(message string) string {
	if a.placement == "" {
		return message + " by default"
	}
	return message + " of placement " + a.placement
}
