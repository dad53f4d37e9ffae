package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
)

// Limits of one commit.
const (
	// maxAddOns is the limit of ClusterManagementAddOns in a commit.
	maxAddOns = 200
	// maxConfigs is the limit of templates and configurations in a commit.
	maxConfigs = 1000
	// maxSupportedConfigs is the limit of kinds of configuration that an add-on may list.
	maxSupportedConfigs = 32
)

// loader is one run of Load.
type loader struct {
	options Options
	hub     Lookup
	schemas schemaSet
	// listed are the configuration resources that the commit's add-ons list.
	listed map[schema.GroupResource]bool
	// packaged are the add-ons that have an AddOnPackage.
	packaged map[string]bool
	// declared are the names of the add-ons.
	declared map[string]bool
	// objects in the order of their positions, those with problems included.
	objects []*loaded
	// configs by reference, to resolve the references of add-ons.
	configs map[Reference]*loaded
	// missingDefinitions are the definitions of objects that are taken as declared because the definitions are not
	// known.
	missingDefinitions []Reference

	addOns   []*draft
	problems problem.List
	// interrupted is why a package could not be checked.
	interrupted error
}

// loaded is one object of the commit, or of the hub.
type loaded struct {
	Located
	role role
	// object is normalised, without the fields that have flaws; nil: no field is left.
	object *unstructured.Unstructured
	// missing are flaws for absent required fields. If such a field is present under another name, that flaw is
	// reported first.
	missing []flaw.Flaw
	// awaits is the CustomResourceDefinition that is needed to hash the object.
	awaits *Reference
}

// read classifies and normalises every object, and reports the errors in its form.
func (l *loader) read(objects []Located) {
	objects = inOrder(objects)
	l.listed, l.packaged = listedResources(objects), packagedAddOns(objects)
	l.configs, l.declared = map[Reference]*loaded{}, map[string]bool{}
	seen := map[render.Identity]Located{}
	var foreign []Located
	for _, located := range objects {
		declared := located.GetUnstructured()
		r := roleOf(declared.GroupVersionKind(), l.listed)
		if r == roleUnsupported && l.options.HubKinds && HubKind(declared.GroupVersionKind()) {
			r = roleHub
		}
		if r == roleUnsupported {
			if unsupported(declared).Hint == supportedKinds {
				foreign = append(foreign, located)
			} else {
				l.report(located, unsupported(declared))
			}
			continue
		}
		id := l.identify(declared, r)
		if first, twice := seen[id]; twice {
			l.report(located, duplicate(first))
			continue
		}
		seen[id] = located
		l.add(located, r)
	}
	l.reportForeign(foreign)
	l.checkLimits()
}

// reportForeign reports objects of the hub that do not belong to an add-on, all in one problem, because most
// directories that were not written for AddonFlow contain some.
func (l *loader) reportForeign(foreign []Located) {
	if len(foreign) == 0 {
		return
	}
	var names []string
	for _, located := range foreign {
		declared := located.GetUnstructured()
		file, line := located.Position("")
		names = append(names, fmt.Sprintf("%s/%s (%s:%d)", declared.GetKind(), declared.GetName(), file, line))
	}
	f := unsupported(foreign[0].GetUnstructured())
	what, files := "it", "its file"
	if len(names) > 1 {
		f.Message = fmt.Sprintf("%s; %d objects of the commit are not: %s", f.Message, len(names), brief.Names(names))
		what, files = "them", "their files"
	}
	f.Hint = fmt.Sprintf("apply %s with what sets up your hub, from outside spec.path, or name %s in spec.ignore; %s", what, files, f.Hint)
	l.report(foreign[0], f)
}

// identify returns the identity of a declared object on the hub, which does not depend on its
// version.
func (l *loader) identify(declared *unstructured.Unstructured, r role) render.Identity {
	id := render.IdentityOf(declared.Object).Object()
	if s := l.schemas.scopeOf(declared, r); s == scopeCluster || s == scopeNamespace {
		id.Namespace = ""
	}
	return id
}

func (l *loader) add(located Located, r role) {
	declared := located.GetUnstructured()
	o := &loaded{Located: located, role: r}
	if definition, needed := l.undefined(declared, r); needed && l.options.AsksDefinitions {
		o.awaits = &definition
	} else if needed && !slices.Contains(l.missingDefinitions, definition) {
		l.missingDefinitions = append(l.missingDefinitions, definition)
	}
	object, flaws := l.schemas.normalise(declared, r)
	o.object = withoutFlaws(object, flaws)
	for _, f := range flaws {
		if f.Missing {
			o.missing = append(o.missing, f)
		} else {
			l.report(located, f)
		}
	}
	l.objects = append(l.objects, o)
	if r == roleAddOn {
		l.declared[declared.GetName()] = true
	}
	id, resource := l.identify(declared, r), resourceOf(declared.GroupVersionKind())
	l.configs[Reference{Group: resource.Group, Resource: resource.Resource, Namespace: id.Namespace, Name: id.Name}] = o
}

// withoutFlaws returns a normalised object without the fields that have flaws, so that the rest can be decoded and
// checked; nil: no field is left. Manifests stay unchanged, because they are rendered one by one.
func withoutFlaws(object *unstructured.Unstructured, flaws []flaw.Flaw) *unstructured.Unstructured {
	if len(flaws) == 0 {
		return object
	}
	if object == nil || slices.ContainsFunc(flaws, func(f flaw.Flaw) bool { return slices.Contains([]flaw.Path{"", metadataKey, specKey}, f.Field) }) {
		return nil
	}
	object = object.DeepCopy()
	for _, f := range flaws {
		if !inManifest(f.Field) {
			f.Field.RemoveFrom(object.Object)
		}
	}
	return object
}

// reportMissing reports the missing fields of every object.
func (l *loader) reportMissing() {
	for _, o := range l.objects {
		l.report(o, o.missing...)
	}
}

// judge reports the errors in the values of every object.
func (l *loader) judge() {
	for _, o := range l.objects {
		if o.object != nil {
			l.reportNormalised(o, l.apartFromPackages(o.object, valueFlaws(o.object, o.role))...)
		}
	}
}

// reportNormalised adds problems found after an object was converted, at the fields as
// declared.
func (l *loader) reportNormalised(o *loaded, flaws ...flaw.Flaw) {
	l.report(o, asDeclared(o, flaws)...)
}

// asDeclared returns flaws of a converted object at the fields as declared.
func asDeclared(o *loaded, flaws []flaw.Flaw) []flaw.Flaw {
	if o.role != roleAddOn || o.GetUnstructured().GroupVersionKind().Version != betaVersion {
		return flaws
	}
	flaws = slices.Clone(flaws)
	for i := range flaws {
		flaws[i].Field = asDeclaredBeta(flaws[i].Field)
	}
	return flaws
}

// report adds problems of one object at the fields as declared.
func (l *loader) report(about Located, flaws ...flaw.Flaw) {
	for _, f := range flaws {
		l.problems = append(l.problems, problemOf(about, f))
	}
}

// valueFlaws judges the values of a well-formed object.
func valueFlaws(object *unstructured.Unstructured, r role) []flaw.Flaw {
	switch r {
	case roleConfig:
		return configFlaws(object)
	case roleTemplate:
		return templateFlaws(object)
	case roleAddOn:
		return addOnFlaws(object)
	case roleRollout:
		return rolloutFlaws(object)
	case rolePackage:
		return packageFlaws(object)
	default:
		return nil
	}
}

// inOrder sorts by position and identity, so that the result does not depend on the order of
// the input.
func inOrder(objects []Located) []Located {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b Located) int {
		pathA, lineA := a.Position("")
		pathB, lineB := b.Position("")
		ua, ub := a.GetUnstructured(), b.GetUnstructured()
		return cmp.Or(
			strings.Compare(pathA, pathB), cmp.Compare(lineA, lineB),
			strings.Compare(ua.GroupVersionKind().String(), ub.GroupVersionKind().String()),
			strings.Compare(ua.GetNamespace(), ub.GetNamespace()), strings.Compare(ua.GetName(), ub.GetName()),
		)
	})
	return sorted
}

// listedResources reads the configuration kinds from the declared ClusterManagementAddOns of
// either version, before any of them is validated.
func listedResources(objects []Located) map[schema.GroupResource]bool {
	listed := map[schema.GroupResource]bool{}
	for _, located := range objects {
		declared := located.GetUnstructured()
		if roleOf(declared.GroupVersionKind(), nil) != roleAddOn {
			continue
		}
		for _, key := range []string{"supportedConfigs", "defaultConfigs"} {
			entries, _ := valueAt(declared.Object, specKey, key).([]any)
			for _, entry := range entries {
				fields, _ := entry.(map[string]any)
				group, _ := fields["group"].(string)
				resource, _ := fields["resource"].(string)
				listed[schema.GroupResource{Group: group, Resource: resource}] = true
			}
		}
	}
	return listed
}

func unsupported(declared *unstructured.Unstructured) flaw.Flaw {
	message := fmt.Sprintf("%s %s is not supported", declared.GetAPIVersion(), declared.GetKind())
	if secret := resourceOf(declared.GroupVersionKind()); secret == (schema.GroupResource{Resource: secretsResource}) {
		return flaw.Flaw{Reason: flaw.ReasonUnsupportedKind, Message: refusedConfiguration(secret), Hint: "keep it on the managed clusters"}
	}
	return flaw.Flaw{Reason: flaw.ReasonUnsupportedKind, Message: message, Hint: cmp.Or(meantKind(declared.GroupVersionKind()), supportedKinds)}
}

// meantKind is the hint for a kind that is similar to a known one, or is in the wrong place; "": any other kind.
func meantKind(kind schema.GroupVersionKind) string {
	if kind.Group == rolloutGroup && (kind.Kind == v1alpha1.AddOnApprovalKind || kind.Kind == v1alpha1.AddOnOrderKind) {
		return "approvals and orders come from users on the hub, never from Git: see addonflow approve --help and addonflow retry --help"
	}
	known := knownKinds(kind.Group)
	if match := flaw.Closest(kind.Kind, known); match != "" && match != kind.Kind {
		return "did you mean " + match + "?"
	}
	for _, version := range []schema.GroupVersion{
		{Group: addonGroup, Version: storageVersion},
		{Group: rolloutGroup, Version: storageVersion},
		{Group: placementGroup, Version: betaVersion},
		{Group: placementGroup, Version: beta2Version},
		{Version: "v1"},
	} {
		if r, _ := knownRole(version.WithKind(kind.Kind)); r != roleUnsupported {
			if kind.Group == addonGroup && kind.Kind == templateKind {
				return "no OCM serves this version; write " + version.String()
			}
			if version.Group == addonGroup && kind.Kind != hubConfigKind && kind.Kind != templateKind {
				return "did you mean " + version.String() + " or " + betaVersion + "?"
			}
			return "did you mean " + version.String() + "?"
		}
	}
	if kind.Group == "apps" || kind.Group == "batch" || kind.Group == "" && kind.Kind == "Service" {
		return "manifests for managed clusters belong in spec.agentSpec.workload.manifests of an AddOnTemplate; " +
			"a file for the hub itself belongs outside spec.path, or into spec.ignore; " + supportedKinds
	}
	if kind == (schema.GroupVersionKind{Version: "v1", Kind: configMapKind}) {
		return "list configmaps in supportedConfigs of its ClusterManagementAddOn"
	}
	return ""
}

func duplicate(first Located) flaw.Flaw {
	path, line := first.Position("")
	if line > 0 {
		path = fmt.Sprintf("%s:%d", path, line)
	}
	return flaw.Flaw{Reason: flaw.ReasonDuplicateObject, Message: "is declared in " + path + " already", Hint: "remove one of the two"}
}

func (l *loader) checkLimits() {
	addOns, configs := 0, 0
	for _, o := range l.objects {
		switch o.role {
		case roleAddOn:
			addOns++
		case roleTemplate, rolePackage, roleConfig, roleHubConfig, roleConfigMap, roleOther, roleHub:
			configs++
		default:
		}
	}
	for _, limit := range []struct {
		count, most int
		what        string
	}{
		{addOns, maxAddOns, "ClusterManagementAddOns"},
		{configs, maxConfigs, "templates and configurations"},
	} {
		if limit.count > limit.most {
			l.problems = append(l.problems, problem.Problem{
				Reason:  flaw.ReasonLimitExceeded,
				Message: fmt.Sprintf("the commit declares %d %s, at most %d are allowed", limit.count, limit.what, limit.most),
				Hint:    "split the tree into several AddOnSources",
			})
		}
	}
}

// problemOf converts a flaw of an object into a problem and looks up its line.
func problemOf(object Located, f flaw.Flaw) problem.Problem {
	declared := object.GetUnstructured()
	path, line := object.Position(string(f.Field))
	if f.File != "" {
		path, line = f.File, f.Line
	}
	return problem.Problem{
		Reason: f.Reason, Path: path, Line: line,
		Kind: declared.GetKind(), Name: declared.GetName(), Field: string(f.Field),
		Message: f.Message, Hint: f.Hint,
	}
}
