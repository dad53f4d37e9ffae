package strict

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// manifestTypes are the Go types that manifests of a template are checked against.
type manifestTypes struct {
	kinds  map[schema.GroupVersionKind]reflect.Type
	stable kindsByVersion
	fields map[reflect.Type]map[string]reflect.Type
	rules  map[fieldOf]valueRule
}

// compiledTypes collects, once, the kinds of apps/v1, batch/v1 and v1 and the fields of all their types.
// Callers share the result and must not change it.
var compiledTypes = sync.OnceValues(collectTypes)

// stableVersion is the version of a group from which Kubernetes removes nothing.
var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

func collectTypes() (manifestTypes, error) {
	kubernetes := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kubernetes), apiextensionsv1.AddToScheme(kubernetes)); err != nil {
		return manifestTypes{}, fmt.Errorf("cannot collect the kinds of Kubernetes: %w", err)
	}
	typed := []schema.GroupVersion{appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, corev1.SchemeGroupVersion}
	types := manifestTypes{
		kinds: map[schema.GroupVersionKind]reflect.Type{}, stable: kindsByVersion{},
		fields: map[reflect.Type]map[string]reflect.Type{}, rules: valueRules(),
	}
	for kind, is := range kubernetes.AllKnownTypes() {
		apiVersion := kind.GroupVersion().String()
		if _, isObject := is.FieldByName("ObjectMeta"); !isObject || !stableVersion.MatchString(kind.Version) {
			continue // lists and options have none
		}
		types.stable[apiVersion] = append(types.stable[apiVersion], kind.Kind)
		if slices.Contains(typed, kind.GroupVersion()) {
			types.kinds[kind] = is
			types.collect(is)
		}
	}
	return types, nil
}

// collect notes the fields of a type and of every type below it.
func (m manifestTypes) collect(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		m.collect(t.Elem())
	case reflect.Struct:
		if _, known := m.fields[t]; known {
			return
		}
		m.fields[t] = jsonFields(t)
		for _, name := range formerFields()[t] {
			m.fields[t][name] = reflect.TypeFor[any]()
		}
		for _, field := range m.fields[t] {
			m.collect(field)
		}
	default:
	}
}

// formerFields are the fields that a Kubernetes since 1.19 served and the current one does not.
func formerFields() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[corev1.PodSpec]():          {"workloadRef"},              // 1.35
		reflect.TypeFor[corev1.PodResourceClaim](): {"source"},                   // until 1.30
		reflect.TypeFor[corev1.ServiceSpec]():      {"ipFamily", "topologyKeys"}, // 1.19; until 1.21
	}
}

// ManifestFlaws returns the flaws of a manifest for which the managed cluster would refuse it, or
// drop a field. It finds a kind that Kubernetes does not have. If the kind is one of apps/v1,
// batch/v1 or v1, it also finds unknown fields, values of another type than their field, and values
// that no API server accepts. The status of a manifest is not checked. A manifest of an unknown
// kind is checked as the kind that was probably meant.
func ManifestFlaws(at flaw.Path, manifest map[string]any, declared *Declarations) []flaw.Flaw {
	types, err := compiledTypes()
	if err != nil {
		return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: err.Error()}}
	}
	apiVersion, _ := manifest[apiVersionKey].(string)
	kind, _ := manifest[kindKey].(string)
	apiVersion, kind, flaws := types.stable.judge(at, apiVersion, kind, declared.Newer)
	want, known := types.kinds[schema.FromAPIVersionAndKind(apiVersion, kind)]
	if !known {
		return flaws
	}
	if _, reported := manifest[statusKey]; reported {
		manifest = maps.Clone(manifest)
		delete(manifest, statusKey)
	}
	return append(flaws, strictness{manifest: declared, known: types.fields, rules: types.rules}.flaws(at, manifest, want)...)
}

// Declarations are the annotations of an AddOnTemplate or AddOnPackage about its manifests.
type Declarations struct {
	// Types of the variables that have a declared type.
	Types map[string]string
	// Unread: the types cannot be read, so that any variable may have any type.
	Unread bool
	// Newer are the names of NewerNamesAnnotation.
	Newer []string
}

// takes reports whether an unknown field is accepted here: rendering refuses a variable in the name of
// a field, and the clusters judge newer names.
func (v *Declarations) takes(key string) bool {
	return len(variable.References(key)) > 0 || slices.Contains(v.Newer, key)
}

// text judges a string by the kind of Go value it will be decoded into. A string that is exactly a
// variable may become a number or boolean.
func (v *Declarations) text(at flaw.Path, text string, want reflect.Kind) []flaw.Flaw {
	switch want {
	case reflect.Interface:
		return nil
	case reflect.Struct, reflect.Map:
		return []flaw.Flaw{typeFlaw(at, "object", text)}
	case reflect.Slice:
		return []flaw.Flaw{typeFlaw(at, "array", text)}
	case reflect.String:
		return v.plain(at, text)
	case reflect.Bool:
		return v.scalar(at, text, variable.TypeBoolean)
	default:
		return v.scalar(at, text, variable.TypeInteger)
	}
}

// plain judges a string where one is wanted.
func (v *Declarations) plain(at flaw.Path, text string) []flaw.Flaw {
	name, whole := variable.Whole(text)
	if !whole || v.Types[name] == "" {
		return nil
	}
	return []flaw.Flaw{{
		Field: at, Reason: flaw.ReasonInvalidType, Message: fmt.Sprintf("must be a string, and %s is declared %s", name, v.Types[name]),
		Hint: "use another variable here",
	}}
}

// scalar judges a string where a number or boolean is wanted.
func (v *Declarations) scalar(at flaw.Path, text, want string) []flaw.Flaw {
	name, whole := variable.Whole(text)
	declared := v.Types[name]
	f := typeFlaw(at, want, text)
	switch {
	case whole && (v.Unread || declared == want || declared == variable.TypeNumber && want == variable.TypeInteger):
		return nil
	case whole:
		f.Hint = fmt.Sprintf("declare it with annotation %s: %s=%s", variable.TypedAnnotation, name, want)
	case want == variable.TypeBoolean:
		f.Hint = "write true or false without quotes"
	default:
		f.Hint = "write a number without quotes"
	}
	return []flaw.Flaw{f}
}
