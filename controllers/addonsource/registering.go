package addonsource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates/measure"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/load"
)

// registrant is an object of a commit that requests credentials for agents: a template, or a
// package.
type registrant struct {
	key    objectKey
	blocks []addonv1alpha1.RegistrationSpec
}

// registrantsOf returns the parts of an add-on's content that request credentials.
func registrantsOf(addOn load.AddOn) ([]registrant, error) {
	var out []registrant
	for _, template := range addOn.Content.Templates {
		var typed struct {
			Registration []addonv1alpha1.RegistrationSpec `json:"registration"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template.Spec, &typed); err != nil {
			return nil, fmt.Errorf("cannot read the registration of template %s: %w", template.Name, err)
		}
		key := objectKey{Group: addonv1alpha1.GroupName, Kind: templateKind, Name: template.Name}
		out = append(out, registrant{key, typed.Registration})
	}
	if pkg := addOn.Content.Package; pkg != nil {
		key := objectKey{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddOnPackageKind, Name: pkg.Name}
		out = append(out, registrant{key, pkg.Registration})
	}
	return out, nil
}

// checkRegistrations returns the requests of an add-on for its agents that every hub refuses: roles that no admin can
// allow, and reserved subjects.
func checkRegistrations(objects []gitsource.Object, addOn load.AddOn) problem.List {
	registrants, err := registrantsOf(addOn)
	if err != nil {
		return problem.List{{Reason: flaw.ReasonInvalidRegistration, Kind: addOnKind, Name: addOn.Name, Message: err.Error()}}
	}
	var problems problem.List
	for _, r := range registrants {
		problems = append(problems, positioned(objects, r.key, append(r.forbiddenRoles(), r.reservedSubjects(addOn.Name)...))...)
	}
	return problems
}

// HubWarnings describes what a hub with the default settings refuses of a commit that compiles: roles for agents that
// an admin must allow, signing CAs from namespaces other than OCM's own, and addresses of gates that only flags of
// the operator allow.
func HubWarnings(objects []gitsource.Object, commit load.Commit) problem.List {
	var problems problem.List
	for _, addOn := range commit.AddOns {
		registrants, err := registrantsOf(addOn)
		if err != nil {
			continue // this is a problem of the commit
		}
		for _, e := range checkAddresses(addOn.Policy().Stages, measure.Options{}) {
			problems = append(problems, addOn.Located(problemOf(e, v1alpha1.AddOnRolloutKind, addOn.Name, "spec."+e.Field)))
		}
		for _, r := range registrants {
			found := r.deniedSigners([]string{registration.DefaultSigningNamespace})
			for _, permission := range registration.Permissions(r.blocks) {
				if (registration.RolePolicy{}).CheckName(permission.Role) == nil {
					found = append(found, r.deniedRole(permission, fmt.Errorf("the hub must have %s: %w", permission.Role.Key(), registration.ErrRoleNotAllowed)))
				}
			}
			problems = append(problems, positioned(objects, r.key, found)...)
		}
	}
	return problems.Sorted()
}

// forbiddenRoles refuses roles by their names only.
func (r registrant) forbiddenRoles() problem.List {
	var problems problem.List
	for _, permission := range registration.Permissions(r.blocks) {
		if denied := (registration.RolePolicy{}).CheckName(permission.Role); denied != nil {
			problems = append(problems, r.deniedRole(permission, denied))
		}
	}
	return problems
}

// deniedRole is the problem of a role that is not granted.
func (r registrant) deniedRole(permission registration.Permission, denied error) problem.Problem {
	return problem.Problem{
		Reason: reasonHubPermissionDenied, Kind: r.key.Kind, Name: r.key.Name,
		Field: "spec.registration" + permission.Field, Message: denied.Error(), Hint: hintFor(denied),
	}
}

// reservedSubjects refuses subjects whose names belong to Kubernetes or OCM.
func (r registrant) reservedSubjects(addOn string) problem.List {
	var problems problem.List
	for _, reserved := range registration.ReservedSubjects(r.blocks, addOn) {
		problems = append(problems, problem.Problem{
			Reason: flaw.ReasonInvalidSigner, Kind: r.key.Kind, Name: r.key.Name,
			Field:   "spec.registration" + reserved.Field,
			Message: fmt.Sprintf("%q is never signed: names that begin with system: belong to Kubernetes and to agents themselves", reserved.Name),
			Hint:    "choose a name of your own, or leave subject out for the agent's default one",
		})
	}
	return problems
}
