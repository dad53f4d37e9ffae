package load

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// The fields of every object.
const (
	apiVersionKey = "apiVersion"
	kindKey       = "kind"
	metadataKey   = "metadata"
	labelsKey     = "labels"
	nameKey       = "name"
	namespaceKey  = "namespace"
	specKey       = "spec"
	statusKey     = "status"
)

const (
	storageVersion = "v1alpha1"
	betaVersion    = "v1beta1"
	beta2Version   = "v1beta2"

	addonGroup     = "addon.open-cluster-management.io"
	placementGroup = "cluster.open-cluster-management.io"
	rolloutGroup   = "addonflow.io"

	configMapsResource = "configmaps"
	secretsResource    = "secrets"
	placementsResource = "placements"

	addOnKind     = "ClusterManagementAddOn"
	templateKind  = "AddOnTemplate"
	configKind    = "AddOnDeploymentConfig"
	hubConfigKind = "AddOnHubConfig"
	placementKind = "Placement"
	// A Placement selects clusters of the sets that are bound to its namespace.
	setBindingKind = "ManagedClusterSetBinding"
	namespaceKind  = "Namespace"
	configMapKind  = "ConfigMap"
	secretKind     = "Secret"
)

// role is the meaning of an object in a commit.
type role int

const (
	roleUnsupported role = iota
	roleNamespace
	// roleHub is a kind that belongs to no add-on, see Options.HubKinds.
	roleHub
	roleSetBinding
	rolePlacement
	// roleOther is a kind that a ClusterManagementAddOn lists as a configuration. If there is a schema, it is in a
	// CustomResourceDefinition of the hub.
	roleOther
	roleConfigMap
	roleConfig
	roleHubConfig
	roleTemplate
	roleAddOn
	roleRollout
	rolePackage
)

// supportedKinds is the hint of the message about an unsupported kind.
const supportedKinds = "supported are ClusterManagementAddOn, AddOnTemplate, AddOnDeploymentConfig and AddOnHubConfig " +
	"(addon.open-cluster-management.io/v1alpha1; the first and the third v1beta1 as well), AddOnRollout and AddOnPackage (addonflow.io/v1alpha1), " +
	"Placement and ManagedClusterSetBinding (cluster.open-cluster-management.io/v1beta1 and v1beta2), Namespace (v1), " +
	"and the kinds a ClusterManagementAddOn of the commit lists in supportedConfigs, except Secret"

// roleOf classifies a kind; listed are the configuration resources that the
// commit's add-ons list.
func roleOf(kind schema.GroupVersionKind, listed map[schema.GroupResource]bool) role {
	if r, known := knownRole(kind); known {
		return r
	}
	resource := resourceOf(kind)
	switch {
	case !listed[resource] || refusedConfiguration(resource) != "":
		return roleUnsupported
	case misspelt(kind.GroupKind()) || !servedVersion(kind.GroupVersion()):
		// The guessed resource is in lower case. Without this check, a known kind in the wrong case would count as a
		// kind that only the hub knows, without a schema.
		return roleUnsupported
	case resource == schema.GroupResource{Resource: configMapsResource}:
		return when(kind.Version == "v1", roleConfigMap)
	default:
		return roleOther
	}
}

// knownRole classifies the kinds that have the same role in every commit.
func knownRole(kind schema.GroupVersionKind) (r role, known bool) {
	alpha, beta := kind.Version == storageVersion, kind.Version == betaVersion
	switch kind.GroupKind() {
	case schema.GroupKind{Group: addonGroup, Kind: addOnKind}:
		return when(alpha || beta, roleAddOn), true
	case schema.GroupKind{Group: addonGroup, Kind: templateKind}:
		return when(alpha, roleTemplate), true
	case schema.GroupKind{Group: addonGroup, Kind: configKind}:
		return when(alpha || beta, roleConfig), true
	case schema.GroupKind{Group: addonGroup, Kind: hubConfigKind}:
		return when(alpha, roleHubConfig), true
	case schema.GroupKind{Group: placementGroup, Kind: placementKind}:
		return when(beta, rolePlacement), true
	case schema.GroupKind{Group: placementGroup, Kind: setBindingKind}:
		return when(kind.Version == beta2Version, roleSetBinding), true
	case schema.GroupKind{Group: rolloutGroup, Kind: v1alpha1.AddOnRolloutKind}:
		return when(alpha, roleRollout), true
	case schema.GroupKind{Group: rolloutGroup, Kind: v1alpha1.AddOnPackageKind}:
		return when(alpha, rolePackage), true
	case schema.GroupKind{Kind: namespaceKind}:
		return when(kind.Version == "v1", roleNamespace), true
	default:
		return roleUnsupported, false
	}
}

// workGroup has the kinds that the operator writes for each cluster.
const workGroup = "work.open-cluster-management.io"

// HubKind reports whether a kind that belongs to no add-on may be applied to the hub. Some kinds are refused because
// the operator decides by their objects, or writes them itself: from Git, they would circumvent gates, paces and
// ledgers. Secrets are refused because their values would be in Git.
func HubKind(kind schema.GroupVersionKind) bool {
	_, known := knownRole(kind)
	return !known && !misspelt(kind.GroupKind()) && refusedConfiguration(resourceOf(kind)) == "" && kind.Group != addonGroup
}

// knownKinds are the kinds that render knows by name, by their groups.
func knownKinds(group string) []string {
	switch group {
	case addonGroup:
		return []string{addOnKind, templateKind, configKind, hubConfigKind}
	case placementGroup:
		return []string{placementKind, setBindingKind}
	case rolloutGroup:
		return []string{v1alpha1.AddOnRolloutKind, v1alpha1.AddOnPackageKind}
	case "":
		return []string{namespaceKind, configMapKind}
	default:
		return nil
	}
}

// misspelt reports whether only the case of a kind differs from a known one.
func misspelt(kind schema.GroupKind) bool {
	return slices.ContainsFunc(knownKinds(kind.Group), func(known string) bool {
		return known != kind.Kind && strings.EqualFold(known, kind.Kind)
	})
}

// servedVersion reports whether a version may exist in a group. In a group that render does not know, any version may
// exist.
func servedVersion(v schema.GroupVersion) bool {
	switch v.Group {
	case addonGroup:
		return v.Version == storageVersion || v.Version == betaVersion
	case rolloutGroup:
		return v.Version == storageVersion
	case "":
		return v.Version == "v1"
	default:
		return true
	}
}

func when(ok bool, r role) role {
	if !ok {
		return roleUnsupported
	}
	return r
}

// refusedConfiguration returns why a resource cannot be a configuration of an add-on; "" if it
// can.
func refusedConfiguration(resource schema.GroupResource) string {
	switch {
	case resource.Group == rolloutGroup, resource.Group == workGroup,
		resource == schema.GroupResource{Group: addonGroup, Resource: "managedclusteraddons"},
		resource == schema.GroupResource{Group: placementGroup, Resource: "placementdecisions"}:
		return resource.String() + " cannot be a configuration: the operator acts on its objects"
	case resource == schema.GroupResource{Resource: secretsResource}:
		return "a Secret cannot be a configuration: it would be copied into every AddOnRevision"
	default:
		return ""
	}
}

// resourceOf guesses the resource of a kind as OCM does, without a request to the hub.
func resourceOf(kind schema.GroupVersionKind) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource()
}

// knownKind is the kind of a resource; "" if only the hub knows it.
func knownKind(resource schema.GroupResource) string {
	switch resource {
	case schema.GroupResource{Group: addonGroup, Resource: render.TemplateResource}:
		return templateKind
	case schema.GroupResource{Group: addonGroup, Resource: render.AgentConfigResource}:
		return configKind
	case schema.GroupResource{Group: addonGroup, Resource: render.HubConfigResource}:
		return hubConfigKind
	case schema.GroupResource{Resource: configMapsResource}:
		return configMapKind
	case schema.GroupResource{Group: placementGroup, Resource: placementsResource}:
		return placementKind
	case schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: definitionsResource}:
		return "CustomResourceDefinition"
	default:
		return ""
	}
}
