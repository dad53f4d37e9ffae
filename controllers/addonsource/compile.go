package addonsource

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
)

// addOnKind is the kind that declares an add-on.
const addOnKind = "ClusterManagementAddOn"

// CompileOptions say what a source may declare.
type CompileOptions struct {
	// Options without Bounds, which are those of the tenant.
	load.Options
	// Tenant limits what the source may declare; nil: no limit.
	Tenant *tenancy.Tenant
	// Unread is why a part of the commit could not be read, according to gitsource's Build. It is first among the
	// returned problems, because the others may follow from it.
	Unread problem.List
	// Now is the start of the year in which each window must have an opening.
	Now time.Time
}

// Compile converts the objects that a commit declares into the objects to apply. hub has the referenced objects that
// exist only there. All problems of the commit are returned, each with file and line as far as known. If there is a
// problem, the commit must not be applied. References in Commit.Missing are not problems: the caller reads them from
// the hub and compiles again, and waits for those that the hub does not have either. If there is a problem, Missing
// is empty, because the missing reference may be a mistake.
//
// The controller and `addonflow lint` both use this function, so that a commit that passes offline is not refused for
// its content on the hub.
func Compile(objects []gitsource.Object, hub load.Lookup, o CompileOptions) (load.Commit, problem.List) {
	located := make([]load.Located, 0, len(objects))
	for _, object := range objects {
		located = append(located, object)
	}
	if o.Tenant != nil {
		o.Bounds = o.Tenant.Bounds()
	}
	commit, problems := load.Load(located, hub, o.Options)
	var refused problem.List
	for _, addOn := range commit.AddOns {
		refused = append(refused, checkPolicy(addOn, o.Now)...)
		refused = append(refused, checkRegistrations(objects, addOn)...)
	}
	refused = append(refused, checkDependencies(commit.AddOns)...)
	if o.Tenant != nil {
		refused = append(refused, checkTenant(objects, commit, *o.Tenant)...)
	}
	for _, addOn := range commit.AddOns {
		commit.Warnings = append(commit.Warnings, endlessWindows(addOn, o.Now)...)
	}
	problems = o.Unread.Then(declaredPaces(objects).Sorted()).Then(problems).Then(refused.Sorted())
	if len(problems) > 0 {
		commit.Objects, commit.Missing, commit.Warnings = nil, nil, nil
	}
	return commit, problems
}

// declaredPaces returns flaws of the paces of a commit that are visible only before they become typed values: an
// explicit 0, a value of another type.
func declaredPaces(objects []gitsource.Object) problem.List {
	var problems problem.List
	for _, object := range objects {
		for _, at := range pacesOf(object.Unstructured) {
			for _, e := range rollout.ValidateDeclared(at.field, at.pace) {
				p := problemOf(e, object.GetKind(), object.GetName(), e.Field)
				p.Path, p.Line = object.Position(e.Field)
				problems = append(problems, p)
			}
			problems = append(problems, writtenOtherwise(object, at.field, at.pace)...)
		}
	}
	return problems
}

// plainNumber matches a number of clusters with only one reading.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// writtenOtherwise returns problems for numbers of clusters in a pace that YAML reads differently than most people:
// 025 is 21.
func writtenOtherwise(object gitsource.Object, field string, pace map[string]any) problem.List {
	var problems problem.List
	for _, name := range slices.Sorted(maps.Keys(pace)) {
		at := field + "." + name
		if block, isBlock := pace[name].(map[string]any); isBlock {
			problems = append(problems, writtenOtherwise(object, at, block)...)
			continue
		}
		number, isWhole := pace[name].(int64)
		written := object.Written(at)
		if !isWhole || written == "" || plainNumber.MatchString(written) || !slices.Contains(quantities(), name) {
			continue
		}
		p := problem.Problem{
			Reason: rollout.InvalidRolloutStrategy, Kind: object.GetKind(), Name: object.GetName(), Field: at,
			Message: fmt.Sprintf("YAML reads %.40s as %d", written, number), Hint: "write a whole number in plain digits, such as 25, or a percentage such as 25%",
		}
		p.Path, p.Line = object.Position(at)
		problems = append(problems, p)
	}
	return problems
}

// quantities are the fields of a pace that are numbers of clusters.
func quantities() []string {
	return []string{"maxConcurrency", "maxConcurrentlyUpdating", "maxFailures"}
}

// declaredPace is a strategy or stage with its position.
type declaredPace struct {
	field string
	pace  map[string]any
}

func pacesOf(u *unstructured.Unstructured) []declaredPace {
	var paces []declaredPace
	add := func(field string, value any) {
		if pace, ok := value.(map[string]any); ok {
			paces = append(paces, declaredPace{field, pace})
		}
	}
	switch key := keyOf(u); {
	case key.isAddOn():
		for i, placement := range listAt(u, "spec", "installStrategy", "placements") {
			if fields, ok := placement.(map[string]any); ok {
				add(fmt.Sprintf("spec.installStrategy.placements[%d].rolloutStrategy", i), fields["rolloutStrategy"])
			}
		}
	case key.isRollout():
		strategy, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "strategy")
		add("spec.strategy", strategy)
		for i, stage := range listAt(u, "spec", "stages") {
			add(fmt.Sprintf("spec.stages[%d]", i), stage)
		}
	}
	return paces
}

func listAt(u *unstructured.Unstructured, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	list, _ := value.([]any)
	return list
}

func checkPolicy(addOn load.AddOn, now time.Time) problem.List {
	var problems problem.List
	policy := addOn.Policy()
	anything := measure.Options{AllowHTTP: true, AllowLoopback: true} // the flags of an operator are not content
	for _, e := range slices.Concat(rollout.Validate(policy), checkWindows(policy.Stages, now), checkAddresses(policy.Stages, anything)) {
		kind, field := v1alpha1.AddOnRolloutKind, "spec."+e.Field
		if strings.HasPrefix(e.Field, "installStrategy") {
			kind = addOnKind
		}
		problems = append(problems, addOn.Located(problemOf(e, kind, addOn.Name, field)))
	}
	if len(problems) > 0 {
		return problems
	}
	for _, f := range addOn.Refused {
		problems = append(problems, addOn.Located(problem.Problem{
			Reason: f.Reason, Kind: v1alpha1.AddOnRolloutKind, Name: addOn.Name, Field: string(f.Field), Message: f.Message, Hint: f.Hint,
		}))
	}
	return problems
}

// checkWindows returns the errors of the windows of the stages: an invalid zone or time, or a window without an
// opening.
func checkWindows(stages []v1alpha1.Stage, now time.Time) []rollout.FieldError {
	return checkGates(stages, func(g v1alpha1.Gate) (string, error) {
		if g.Window == nil {
			return "", nil
		}
		return "window", gates.CheckWindow(*g.Window, now)
	})
}

// endlessWindows returns the windows that never close.
func endlessWindows(addOn load.AddOn, now time.Time) problem.List {
	var warnings problem.List
	for _, e := range checkGates(addOn.Policy().Stages, func(g v1alpha1.Gate) (string, error) {
		if g.Window != nil && gates.NeverCloses(*g.Window, now) {
			return "window", errors.New("the window never closes, so that the gate holds no cluster")
		}
		return "", nil
	}) {
		warnings = append(warnings, addOn.Located(problemOf(e, v1alpha1.AddOnRolloutKind, addOn.Name, "spec."+e.Field)))
	}
	return warnings
}

// checkAddresses returns the gates whose addresses an operator with these options refuses.
func checkAddresses(stages []v1alpha1.Stage, o measure.Options) []rollout.FieldError {
	return checkGates(stages, func(g v1alpha1.Gate) (string, error) {
		switch {
		case g.Prometheus != nil:
			return "prometheus.address", measure.CheckAddress(g, o)
		case g.Webhook != nil:
			return "webhook.url", measure.CheckAddress(g, o)
		}
		return "", nil
	})
}

// checkGates returns the errors of the gates of the stages. check returns the field with the error.
func checkGates(stages []v1alpha1.Stage, check func(v1alpha1.Gate) (field string, err error)) []rollout.FieldError {
	var found []rollout.FieldError
	for i, st := range stages {
		if st.Gates == nil {
			continue
		}
		for _, moment := range []struct {
			name  string
			gates []v1alpha1.Gate
		}{{"before", st.Gates.Before}, {"during", st.Gates.During}} {
			for k, g := range moment.gates {
				if field, err := check(g); err != nil {
					found = append(found, rollout.FieldError{
						Field: fmt.Sprintf("stages[%d].gates.%s[%d].%s", i, moment.name, k, field), Reason: rollout.InvalidGate, Message: err.Error(),
					})
				}
			}
		}
	}
	return found
}

// checkDependencies returns a problem for every add-on that depends on itself, directly or through others.
func checkDependencies(addOns []load.AddOn) problem.List {
	needs := map[string][]string{}
	for _, addOn := range addOns {
		for _, d := range dependenciesOf(addOn) {
			needs[addOn.Name] = append(needs[addOn.Name], d.AddOn)
		}
	}
	var problems problem.List
	for _, addOn := range addOns {
		cycle := rollout.Cycle(addOn.Name, needs)
		if cycle == nil {
			continue
		}
		at := slices.Index(needs[addOn.Name], cycle[1])
		problems = append(problems, addOn.Located(problem.Problem{
			Reason: rollout.InvalidDependency, Kind: v1alpha1.AddOnRolloutKind, Name: addOn.Name, Field: fmt.Sprintf("spec.dependsOn[%d].addOn", at),
			Message: "the add-ons wait for each other: " + strings.Join(cycle, " -> "), Hint: "remove one of them from dependsOn",
		}))
	}
	return problems
}

func dependenciesOf(addOn load.AddOn) []v1alpha1.Dependency {
	if addOn.Rollout == nil {
		return nil
	}
	return addOn.Rollout.DependsOn
}

// problemOf returns a field error as a problem of an object.
func problemOf(e rollout.FieldError, kind, name, field string) problem.Problem {
	return problem.Problem{
		Reason: problem.Reason(e.Reason), Kind: kind, Name: name, Field: field, Message: e.Message, Hint: e.Hint,
	}
}
