package addonsource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
)

// Reasons of problems with a template's requests for its agents on the hub.
const (
	reasonHubPermissionDenied problem.Reason = "HubPermissionDenied"
	reasonSigningCADenied     problem.Reason = "SigningCADenied"
)

const templateKind = "AddOnTemplate"

// Permits limits the rights of the add-ons' agents on the hub, as the administrator set them.
type Permits struct {
	Roles registration.RolePolicy
	// SigningNamespaces are the namespaces of signing CAs that a template may name; nil: OCM's own.
	SigningNamespaces []string
}

// permit refuses a commit whose templates or packages request a role that no admin allowed or that the operator
// itself may not grant, or a signing CA from another namespace. If a role does not exist, the pass waits for it.
func (p *pass) permit(ctx context.Context, a *attempt) error {
	var problems problem.List
	for _, addOn := range a.commit.AddOns {
		registrants, err := registrantsOf(addOn)
		if err != nil {
			return err
		}
		for _, r := range registrants {
			found, err := p.permitOne(ctx, r, a.objects)
			if err != nil {
				return err
			}
			problems = append(problems, positioned(a.objects, r.key, found)...)
		}
	}
	if len(problems) > 0 {
		return refuse(v1alpha1.ValidationFailedReason, problems.Sorted())
	}
	return nil
}

// permitOne returns the requests of one template or package that an admin has not allowed.
func (p *pass) permitOne(ctx context.Context, r registrant, declared []gitsource.Object) (problem.List, error) {
	problems := r.deniedSigners(p.Permits.SigningNamespaces)
	for _, permission := range registration.Permissions(r.blocks) {
		denied, err := p.permitRole(ctx, permission.Role, declared)
		if err != nil {
			return nil, err
		}
		if denied != nil {
			problems = append(problems, r.deniedRole(permission, denied))
		}
	}
	return problems, nil
}

// deniedSigners refuses signing CAs from namespaces other than those allowed.
func (r registrant) deniedSigners(allowed []string) problem.List {
	var problems problem.List
	for i, block := range r.blocks {
		if block.CustomSigner == nil {
			continue
		}
		namespace := registration.SigningNamespace(block.CustomSigner.SigningCA.Namespace)
		if slices.Contains(allowed, namespace) {
			continue
		}
		problems = append(problems, problem.Problem{
			Reason: reasonSigningCADenied, Kind: r.key.Kind, Name: r.key.Name,
			Field:   fmt.Sprintf("spec.registration[%d].customSigner.signingCA.namespace", i),
			Message: fmt.Sprintf("no signing CA is taken from namespace %q", namespace),
			Hint:    fmt.Sprintf("allowed: %s; an admin allows others by --signing-ca-namespaces", brief.Names(allowed)),
		})
	}
	return problems
}

// hintFor says how to make a denied role allowed.
func hintFor(denied error) string {
	switch {
	case errors.Is(denied, registration.ErrRoleNotAllowed):
		return "an admin allows it with the label " + registration.AllowLabel + `: "true" on it, or by --allowed-hub-roles`
	case errors.Is(denied, errAccountMayNotBind):
		return "an admin grants the ServiceAccount of the source the verb bind on it"
	case errors.Is(denied, errMayNotBind):
		return "an admin grants the operator the verb bind on it; see Registration in the user guide"
	}
	return "name a role of your own with what the agent needs"
}

// errMayNotBind: the API server would not let the operator grant a role.
var errMayNotBind = errors.New("cannot be given by the operator")

// errAccountMayNotBind: the account of the source has no right to grant a role.
var errAccountMayNotBind = errors.New("cannot be given by the account of the source")

// permitRole returns why agents may not have a role; nil: they may. It checks the name of the role, its rules and
// label, whether the account of the source may bind it, and, by a dry run, the API server's own rule against
// escalation. A role that the commit declares is judged by its declared rules.
func (p *pass) permitRole(ctx context.Context, role registration.Role, objects []gitsource.Object) (denied, err error) {
	if denied := p.Permits.Roles.CheckName(role); denied != nil {
		return denied, nil
	}
	labels, rules, err := agents.ReadRole(ctx, p.Live, role)
	missing := apierrors.IsNotFound(err)
	declared, brought := declaredRules(objects, role)
	if brought && (missing || err == nil) {
		rules, err = declared, nil
	}
	if apierrors.IsNotFound(err) {
		return nil, wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for %s on the hub", role.Key())
	}
	if err != nil {
		return nil, retry(v1alpha1.ReferenceNotFoundReason, fmt.Errorf("cannot read %s: %w", role.Key(), err))
	}
	if denied := p.Permits.Roles.Check(role, labels, rules); denied != nil {
		return denied, nil
	}
	if p.account != nil {
		allowed, err := p.mayBind(ctx, role)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return fmt.Errorf("%s %w", role.Key(), errAccountMayNotBind), nil
		}
	}
	if missing {
		return nil, nil // the agents wait for the role, and for the operator's right to bind it
	}
	return p.tryBind(ctx, role)
}

// tryBind binds a role, in a dry run, as the operator would.
func (p *pass) tryBind(ctx context.Context, role registration.Role) (denied, err error) {
	binding := &unstructured.Unstructured{Object: map[string]any{
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": role.Kind, "name": role.Name},
	}}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	binding.SetName(generatedName(binding, p.head.Commit))
	binding.SetNamespace(role.Namespace)
	if role.Namespace == "" {
		binding.SetNamespace(metav1.NamespaceDefault)
	}
	err = p.Client.Create(ctx, binding, client.DryRunAll, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil, nil
	case apierrors.IsForbidden(err) && !terminating(err):
		return fmt.Errorf("%s %w: %w", role.Key(), errMayNotBind, err), nil
	case apierrors.IsNotFound(err):
		return nil, wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for Namespace %s on the hub", role.Namespace)
	}
	return nil, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("the dry run of a RoleBinding to %s failed: %w", role.Key(), err))
}
