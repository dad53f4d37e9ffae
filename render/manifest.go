package render

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// The fields of every object.
const (
	apiVersionKey  = "apiVersion"
	kindKey        = "kind"
	metadataKey    = "metadata"
	annotationsKey = "annotations"
	labelsKey      = "labels"
	nameKey        = "name"
	namespaceKey   = "namespace"
	specKey        = "spec"
	statusKey      = "status"
)

// Identity identifies a manifest's object on the managed cluster; the hub refuses a work with
// two manifests of one identity.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// IdentityOf reads the identity of an object; a part that is not a string is "".
func IdentityOf(obj map[string]any) Identity {
	metadata, _ := obj["metadata"].(map[string]any)
	text := func(fields map[string]any, name string) string {
		s, _ := fields[name].(string)
		return s
	}
	return Identity{
		APIVersion: text(obj, "apiVersion"), Kind: text(obj, "kind"),
		Namespace: text(metadata, "namespace"), Name: text(metadata, "name"),
	}
}

// Object returns the identity without the version: an API server serves one object in all
// versions of its group.
func (id Identity) Object() Identity {
	id.APIVersion = schema.FromAPIVersionAndKind(id.APIVersion, id.Kind).Group
	return id
}

func (id Identity) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind).GroupKind()
}

// resource identifies the object as manifestConfigs and orphaning rules do. The plural is a
// guess, as in OCM.
func (id Identity) resource() workv1.ResourceIdentifier {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(id.APIVersion, id.Kind))
	return workv1.ResourceIdentifier{Group: plural.Group, Resource: plural.Resource, Namespace: id.Namespace, Name: id.Name}
}

// String returns Kind namespace/name.
func (id Identity) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// served lists metadata that an API server sets and that a manifest must not set. The agent drops some of it and
// fails on the rest.
func served() []string {
	return []string{"uid", "resourceVersion", "generateName", "selfLink", "deletionTimestamp", "managedFields", "ownerReferences"}
}

// SetsNothing reports whether metadata that only an API server sets is empty in a manifest. Exporters write such
// empty fields; they have no meaning.
func SetsNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

// tidy normalises the metadata of a rendered manifest as the hub does for a template's: empty
// server-set fields are dropped, and a null label or annotation becomes an empty one.
func tidy(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	for _, name := range served() {
		if SetsNothing(metadata[name]) {
			delete(metadata, name)
		}
	}
	for _, name := range []string{labelsKey, annotationsKey} {
		texts, _ := metadata[name].(map[string]any)
		for key, value := range texts {
			if value == nil {
				texts[key] = ""
			}
		}
	}
}

// misshapen is a flaw for which the hub's work webhook or the managed cluster would refuse a
// manifest.
func misshapen(at flaw.Path, message string) flaw.Flaw {
	return flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: message}
}

// shapeFlaws returns the errors in the shape of one manifest, and whether the manifest can be rendered.
func shapeFlaws(obj map[string]any, at flaw.Path) (flaws []flaw.Flaw, renderable bool) {
	id := IdentityOf(obj)
	metadata, renderable := obj[metadataKey].(map[string]any)
	for _, required := range [][2]string{{apiVersionKey, id.APIVersion}, {kindKey, id.Kind}} {
		if required[1] == "" {
			flaws, renderable = append(flaws, misshapen(at.Child(required[0]), "must be set")), false
		}
	}
	if id.Name == "" {
		return append(flaws, misshapen(at.Child(metadataKey).Child(nameKey), "must be set")), false
	}
	at = at.Child(metadataKey)
	for _, name := range served() {
		if !SetsNothing(metadata[name]) {
			flaws = append(flaws, misshapen(at.Child(name), "is not for a manifest to set"))
		}
	}
	for _, name := range []string{labelsKey, annotationsKey} {
		texts, isMap := metadata[name].(map[string]any)
		if metadata[name] != nil && !isMap {
			flaws, renderable = append(flaws, misshapen(at.Child(name), "is not an object")), false
		}
		for key, value := range texts {
			if _, isString := value.(string); !isString && value != nil {
				flaws, renderable = append(flaws, misshapen(at.Child(name).Child(key), fmt.Sprintf("must be a string, not %v", value))), false
			}
		}
	}
	if annotated(metadata, v1alpha1.DigestAnnotation) {
		flaws = append(flaws, misshapen(at.Child(annotationsKey).Child(v1alpha1.DigestAnnotation), "is reserved"))
	}
	return flaws, renderable
}

// nameFlaws finds the names, labels and annotations that every API server refuses. It checks
// rendered objects, where every variable has its value.
func nameFlaws(obj map[string]any, at flaw.Path) []flaw.Flaw {
	id := IdentityOf(obj)
	metadata, _ := obj[metadataKey].(map[string]any)
	at = at.Child(metadataKey)
	var flaws []flaw.Flaw
	for _, message := range content.IsPathSegmentName(id.Name) {
		flaws = append(flaws, misshapen(at.Child(nameKey), fmt.Sprintf("%.80q %s", id.Name, message)))
	}
	if id.Namespace != "" {
		for _, message := range apivalidation.ValidateNamespaceName(id.Namespace, false) {
			flaws = append(flaws, misshapen(at.Child(namespaceKey), fmt.Sprintf("%.80q: %s", id.Namespace, message)))
		}
	}
	problems := append(
		metav1validation.ValidateLabels(texts(metadata[labelsKey]), field.NewPath(string(at), labelsKey)),
		apivalidation.ValidateAnnotations(texts(metadata[annotationsKey]), field.NewPath(string(at), annotationsKey))...)
	for _, p := range problems {
		flaws = append(flaws, misshapen(at, p.Field+": "+p.ErrorBody()))
	}
	return flaws
}

func texts(value any) map[string]string {
	fields, _ := value.(map[string]any)
	out := make(map[string]string, len(fields))
	for key, v := range fields {
		out[key], _ = v.(string)
	}
	return out
}

func annotated(metadata map[string]any, key string) bool {
	annotations, _ := metadata[annotationsKey].(map[string]any)
	_, ok := annotations[key]
	return ok
}

// ManifestNameFlaws checks a name against the rule of its kind, if the rule is known: for built-in kinds, DNS
// subdomains; for RBAC and custom kinds, more names. A name with a variable is checked when it is rendered. at is the
// path of the name.
func ManifestNameFlaws(at flaw.Path, manifest map[string]any, name string) []flaw.Flaw {
	apiVersion, _ := manifest[apiVersionKey].(string)
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || strings.Contains(name, "{{") {
		return nil // the schema's check of embedded resources reports a bad apiVersion
	}
	switch group.Group {
	case "", appsv1.GroupName, "batch", "autoscaling", "networking.k8s.io", "policy", "storage.k8s.io", "scheduling.k8s.io":
	default:
		return nil
	}
	var flaws []flaw.Flaw
	for _, message := range validation.IsDNS1123Subdomain(name) {
		flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("%q cannot be a name", name), Hint: message})
	}
	return flaws
}
