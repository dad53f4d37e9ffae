package addonsource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/load"
)

// asTenant reads the bounds of the source's tenant, if the operator has tenants. If a source may declare nothing, or
// could act with the rights of others, it is not read; its applied objects stay.
func (p *pass) asTenant(ctx context.Context) error {
	if p.Tenants == nil {
		return nil
	}
	policy, err := p.Tenants(ctx)
	if errors.Is(err, tenancy.ErrInvalid) {
		return stall(v1alpha1.InvalidTenantsReason, "%s; an admin must correct it, and until then no commit is applied", err)
	}
	if err != nil {
		return retry(v1alpha1.InvalidTenantsReason, err)
	}
	tenant, listed := policy[p.source.Namespace]
	switch {
	case !listed:
		return stall(v1alpha1.TenantDeniedReason, "namespace %s is not a tenant: an admin must list it in the ConfigMap of --tenants", p.source.Namespace)
	case p.account == nil:
		return stall(v1alpha1.TenantDeniedReason, "spec.serviceAccountName is required: the operator applies nothing of a tenant with its own rights")
	case p.source.Spec.CommitStatus != nil && !forge.OfNamespace(p.source):
		return stall(v1alpha1.TenantDeniedReason, "spec.commitStatus.context must begin with %s, without empty segments, . and ..: other contexts may be those of other tenants", forge.NamespacePrefix(p.source))
	}
	p.tenant = &tenant
	return nil
}

// denial collects the declarations of a commit that its tenant may not make.
type denial struct {
	tenant   tenancy.Tenant
	problems problem.List
}

// checkTenant returns the declarations of a commit that its tenant may not make. The hub decides whether the account
// of the source has the rights.
func checkTenant(objects []gitsource.Object, commit load.Commit, tenant tenancy.Tenant) problem.List {
	d := &denial{tenant: tenant}
	for _, object := range objects {
		d.object(object)
	}
	for _, addOn := range commit.AddOns {
		d.addOn(addOn)
		d.signers(objects, addOn)
	}
	return d.problems.Sorted()
}

// object judges one declared object by its kind, name and namespace.
func (d *denial) object(object gitsource.Object) {
	report := func(field, message, hint string) {
		one := problem.Problem{Reason: render.ReasonTenantDenied, Kind: object.GetKind(), Name: object.GetName(), Field: field, Message: message, Hint: hint}
		one.Path, one.Line = object.Position(field)
		d.problems = append(d.problems, one)
	}
	const name, namespace = "metadata.name", "metadata.namespace"
	switch key := keyOf(object.Unstructured); {
	case (key.isAddOn() || key.isRollout()) && !d.tenant.MayDeclare(key.Name):
		report(name, "the tenant has no add-on of that name", "allowed: "+brief.Listed(d.tenant.AddOns))
	case belongsToAddOns(object.Unstructured) && !d.tenant.MayName(key.Name):
		report(name, "the tenant has no add-on of that name", "begin the name with that of an add-on of the tenant; allowed: "+brief.Listed(d.tenant.AddOns))
	case key.isNamespace() && !d.tenant.MayUse(key.Name):
		report(name, "the tenant may not use this namespace", "")
	case key.Namespace != "" && !d.tenant.MayUse(key.Namespace):
		report(namespace, fmt.Sprintf("the tenant may not use namespace %q", key.Namespace), "")
	case load.HubKind(object.GroupVersionKind()) && !d.tenant.MayBring(object.GroupVersionKind().GroupKind()):
		report("", "the tenant may not declare objects of kind "+object.GroupVersionKind().GroupKind().String(), "allowed: "+brief.Listed(d.tenant.Kinds))
	}
}

// belongsToAddOns reports whether an object of AddonFlow or OCM has no namespace and is not an add-on.
func belongsToAddOns(u *unstructured.Unstructured) bool {
	key := keyOf(u)
	return key.Group == addonv1alpha1.GroupName && (key.Kind == templateKind || key.Kind == "AddOnHubConfig")
}

// addOn judges the placements by which clusters get an add-on. A placement selects among the clusters of the sets
// that are bound to its namespace, so its namespace limits a tenant.
func (d *denial) addOn(addOn load.AddOn) {
	report := func(kind, field, message, hint string) {
		d.problems = append(d.problems, addOn.Located(problem.Problem{
			Reason: render.ReasonTenantDenied, Kind: kind, Name: addOn.Name, Field: field, Message: message, Hint: hint,
		}))
	}
	placement := func(kind, field, namespace string) {
		if !d.tenant.MayUse(namespace) {
			report(kind, field, fmt.Sprintf("the tenant may not use namespace %q", namespace), "name a Placement in a namespace of the tenant")
		}
	}
	for i, at := range addOn.Install.Placements {
		placement(addOnKind, fmt.Sprintf("spec.installStrategy.placements[%d].namespace", i), at.Namespace)
	}
	if addOn.Rollout == nil {
		return
	}
	for i, stage := range addOn.Rollout.Stages {
		placement(v1alpha1.AddOnRolloutKind, fmt.Sprintf("spec.stages[%d].placement.namespace", i), stage.Placement.Namespace)
	}
	if s := addOn.Rollout.Strategy; s != nil && s.RollingUpdateWithPlacement != nil {
		placement(v1alpha1.AddOnRolloutKind, "spec.strategy.rollingUpdateWithPlacement.namespace", s.RollingUpdateWithPlacement.Namespace)
	}
	if addOn.Rollout.ClusterLabelSelector != nil {
		report(v1alpha1.AddOnRolloutKind, "spec.clusterLabelSelector", "selects among all clusters of the hub, which no tenant may",
			"install with a Placement in a namespace of the tenant")
	}
}

// signers judges the signing CAs from which the agents of an add-on get certificates.
func (d *denial) signers(objects []gitsource.Object, addOn load.AddOn) {
	registrants, err := registrantsOf(addOn)
	if err != nil {
		d.problems = append(d.problems, problem.Problem{Reason: flaw.ReasonInvalidRegistration, Kind: addOnKind, Name: addOn.Name, Message: err.Error()})
	}
	for _, r := range registrants {
		for i, block := range r.blocks {
			if block.CustomSigner == nil {
				continue
			}
			if namespace := registration.SigningNamespace(block.CustomSigner.SigningCA.Namespace); !d.tenant.MayUse(namespace) {
				one := problem.Problem{
					Reason: render.ReasonTenantDenied, Kind: r.key.Kind, Name: r.key.Name, Field: fmt.Sprintf("spec.registration[%d].customSigner.signingCA.namespace", i),
					Message: fmt.Sprintf("the tenant may not use namespace %q", namespace),
				}
				d.problems = append(d.problems, positioned(objects, r.key, problem.List{one})...)
			}
		}
	}
}
