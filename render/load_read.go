package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/api/problem"
)

// What one commit may hold (bad input, row 43).
const (
	// MaxAddOns is how many ClusterManagementAddOns a commit may declare.
	MaxAddOns = 200
	// MaxConfigs is how many templates and configurations a commit may declare.
	MaxConfigs = 1000
	// MaxSupportedConfigs is how many kinds of configuration an add-on may list.
	MaxSupportedConfigs = 32
)

// loader is one run of Load.
type loader struct {
	options LoadOptions
	hub     Lookup
	schemas schemaSet
	// listed are the configuration resources that the commit's add-ons list.
	listed map[schema.GroupResource]bool
	// packaged are the add-ons that have an AddOnPackage.
	packaged map[string]bool
	// objects in the order of their positions, those with problems included.
	objects []*loaded
	// configs by reference, for what the add-ons refer to.
	configs  map[Reference]*loaded
	addOns   []*draft
	problems problem.List
}

// loaded is one object of the commit, or of the hub.
type loaded struct {
	Located
	role role
	// object is normalised; nil where the declared one has problems.
	object *unstructured.Unstructured
	// part is what a ClusterManagementAddOn with problems still says of its content.
	part *unstructured.Unstructured
}

// read classifies, normalises and validates every object by itself.
func (l *loader) read(objects []Located) {
	objects = inOrder(objects)
	l.listed, l.packaged = listedResources(objects), packagedAddOns(objects)
	l.configs = map[Reference]*loaded{}
	seen := map[identity]Located{}
	for _, located := range objects {
		declared := located.GetUnstructured()
		r := roleOf(declared.GroupVersionKind(), l.listed)
		if r == roleUnsupported {
			if !l.options.Incomplete || !listable(declared.GroupVersionKind()) {
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
	l.checkLimits()
}

// identify is what makes two declared objects the same one on the hub, whatever
// version each is written in.
func (l *loader) identify(declared *unstructured.Unstructured, r role) identity {
	id := identityOf(declared.Object)
	id.APIVersion = declared.GroupVersionKind().Group
	if s := l.schemas.scopeOf(declared, r); s == scopeCluster || s == scopeNamespace {
		id.Namespace = ""
	}
	return id
}

// add normalises and validates one object and keeps it.
func (l *loader) add(located Located, r role) {
	o := &loaded{Located: located, role: r}
	object, flaws := l.schemas.normalise(located.GetUnstructured(), r)
	l.report(located, flaws...)
	if len(flaws) > 0 {
		l.addPart(o, object, flaws)
	} else if flaws = l.apartFromPackages(object, valueFlaws(object, r)); len(flaws) > 0 {
		l.reportNormalised(o, flaws...)
	} else {
		o.object = object
	}
	l.objects = append(l.objects, o)
	declared := located.GetUnstructured()
	id, resource := l.identify(declared, r), resourceOf(declared.GroupVersionKind())
	l.configs[Reference{Group: resource.Group, Resource: resource.Resource, Namespace: id.Namespace, Name: id.Name}] = o
}

// addPart keeps what a flawed ClusterManagementAddOn says of its content, to check
// the rest of the add-on by it.
func (l *loader) addPart(o *loaded, object *unstructured.Unstructured, flaws []flaw) {
	if o.role != roleAddOn {
		return
	}
	part := contentPart(o.GetUnstructured(), object, flaws)
	if part == nil {
		return
	}
	flaws = l.apartFromPackages(part, addOnFlaws(part))
	l.reportNormalised(o, flaws...)
	if len(flaws) == 0 {
		o.part = part
	}
}

// reportNormalised adds problems found after an object was converted, at the
// fields it was declared with.
func (l *loader) reportNormalised(o *loaded, flaws ...flaw) {
	beta := o.role == roleAddOn && o.GetUnstructured().GroupVersionKind().Version == betaVersion
	for _, f := range flaws {
		if beta {
			f.field = asDeclaredBeta(f.field)
		}
		l.report(o, f)
	}
}

// report adds problems of one object as it was declared.
func (l *loader) report(about Located, flaws ...flaw) {
	for _, f := range flaws {
		l.problems = append(l.problems, f.about(about))
	}
}

// valueFlaws judges the values of a well-formed object.
func valueFlaws(object *unstructured.Unstructured, r role) []flaw {
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

// inOrder sorts by position and identity, so that the order of the input shows nowhere.
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

// listedResources reads the configuration kinds off the declared
// ClusterManagementAddOns of either version, before any of them is validated.
func listedResources(objects []Located) map[schema.GroupResource]bool {
	listed := map[schema.GroupResource]bool{}
	for _, located := range objects {
		declared := located.GetUnstructured()
		if roleOf(declared.GroupVersionKind(), nil) != roleAddOn {
			continue
		}
		for _, key := range []string{supportedConfigsKey, defaultConfigsKey} {
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

func unsupported(declared *unstructured.Unstructured) flaw {
	message := fmt.Sprintf("%s %s is not supported", declared.GetAPIVersion(), declared.GetKind())
	if why := refusedConfiguration(resourceOf(declared.GroupVersionKind())); why != "" {
		message = why
	}
	hint := supportedKinds
	kind := declared.GroupVersionKind()
	if known := knownKinds(kind.Group); !slices.Contains(known, kind.Kind) {
		if match := closest(kind.Kind, known); match != "" {
			hint = "did you mean " + match + "?"
		}
	}
	return flaw{reason: ReasonUnsupportedKind, message: message, hint: hint}
}

func duplicate(first Located) flaw {
	path, line := first.Position("")
	if line > 0 {
		path = fmt.Sprintf("%s:%d", path, line)
	}
	return flaw{reason: ReasonDuplicateObject, message: "is declared in " + path + " already", hint: "remove one of the two"}
}

// checkLimits refuses commits that are larger than any fleet needs.
func (l *loader) checkLimits() {
	addOns, configs := 0, 0
	for _, o := range l.objects {
		switch o.role {
		case roleAddOn:
			addOns++
		case roleTemplate, rolePackage, roleConfig, roleHubConfig, roleConfigMap, roleOther:
			configs++
		default:
		}
	}
	for _, limit := range []struct {
		count, most int
		what        string
	}{
		{addOns, MaxAddOns, "ClusterManagementAddOns"},
		{configs, MaxConfigs, "templates and configurations"},
	} {
		if limit.count > limit.most {
			l.problems = append(l.problems, problem.Problem{
				Reason:  ReasonLimitExceeded,
				Message: fmt.Sprintf("the commit declares %d %s, at most %d are allowed", limit.count, limit.what, limit.most),
				Hint:    "split the tree into several AddOnSources",
			})
		}
	}
}
