package addonsource

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render/load"
)

// Accounts returns a function that makes clients of a hub with the rights of a ServiceAccount, by impersonation. They
// share scheme and mapper with the operator's own client.
func Accounts(config *rest.Config, own client.Client) func(client.ObjectKey) (client.Client, error) {
	return func(account client.ObjectKey) (client.Client, error) {
		impersonating := rest.CopyConfig(config)
		impersonating.Impersonate = rest.ImpersonationConfig{UserName: accountUser(account)}
		return client.New(impersonating, client.Options{Scheme: own.Scheme(), Mapper: own.RESTMapper()})
	}
}

// accountUser returns the user name of a ServiceAccount. The API server adds its groups.
func accountUser(account client.ObjectKey) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// asAccount makes the pass act as spec.serviceAccountName on the objects that Git declares.
func (p *pass) asAccount() error {
	if p.source.Spec.ServiceAccountName == "" {
		return nil
	}
	account, err := p.Accounts(p.accountKey())
	if err != nil {
		return fmt.Errorf("cannot act as ServiceAccount %s: %w", p.accountKey(), err)
	}
	p.account = account
	return nil
}

// accountKey names spec.serviceAccountName. The account is always in the source's namespace.
func (p *pass) accountKey() client.ObjectKey {
	return client.ObjectKey{Namespace: p.source.Namespace, Name: p.source.Spec.ServiceAccountName}
}

// mayImpersonate waits until the operator may act as the account of the source. Without this check, each request
// would be refused with a message about the account, although the operator lacks the right.
func (p *pass) mayImpersonate(ctx context.Context) error {
	if p.account == nil {
		return nil
	}
	account := p.accountKey()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name},
	}}
	if err := p.Client.Create(ctx, review); err != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot ask for the right to act as ServiceAccount %s: %w", account, err))
	}
	if !review.Status.Allowed {
		return wait(v1alpha1.ImpersonationDeniedReason, p.backoff(),
			"the operator may not act as ServiceAccount %s: give it the verb impersonate on serviceaccounts with that name, by a Role in namespace %s", account, account.Namespace)
	}
	return nil
}

// writer returns the client that writes an object. Objects that Git declares are written with the rights of the
// account. Objects of AddonFlow's kinds are written with the operator's own rights, because they decide what the
// operator does.
func (p *pass) writer(key objectKey) client.Client {
	if p.account == nil || key.Group == v1alpha1.GroupVersion.Group {
		return p.Client
	}
	return p.account
}

// reader returns the reader of an object, with the same rights as its writer.
func (p *pass) reader(key objectKey) client.Reader {
	if hub := p.writer(key); hub != p.Client {
		return hub
	}
	return p.Live
}

// denied reports whether the account of the source lacks a right. Rights are given on the hub, so the same commit may
// be accepted later.
func (p *pass) denied(err error) bool {
	return p.account != nil && apierrors.IsForbidden(err) && !terminating(err)
}

// seeDeclared reads the stored form of every declared object. A commit with objects that the account
// may not even read is refused.
func (p *pass) seeDeclared(ctx context.Context, seen *observation, a *attempt) error {
	var problems problem.List
	for _, declared := range a.commit.Objects {
		err := p.see(ctx, seen, declared)
		if !p.denied(err) {
			if err != nil {
				return err
			}
			continue
		}
		problems = append(problems, asWritten(a.objects, keyOf(declared), refusals(err, declared, declared.GetName()))...)
	}
	if len(problems) == 0 {
		return nil
	}
	a.refusedByHub = true
	return refuse(v1alpha1.ValidationFailedReason, problems.Sorted())
}

// checkScopes refuses objects of further kinds that have a namespace although their kind has none, and the reverse.
// Only the hub knows the scope of these kinds.
func (p *pass) checkScopes(a *attempt) error {
	var problems problem.List
	for _, object := range a.objects {
		kind := object.GroupVersionKind()
		mapping, err := p.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil || !load.HubKind(kind) {
			continue // a kind of Git only, or one that the pass waits for
		}
		namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
		one := problem.Problem{Reason: reasonNotAdmitted, Kind: object.GetKind(), Name: object.GetName(), Field: "metadata.namespace"}
		switch {
		case namespaced && object.GetNamespace() == "":
			one.Message, one.Hint = "is required", "name the namespace on the hub"
		case !namespaced && object.GetNamespace() != "":
			one.Message, one.Hint = "objects of this kind are in no namespace", "remove it"
		default:
			continue
		}
		one.Path, one.Line = object.Position(one.Field)
		problems = append(problems, one)
	}
	if len(problems) == 0 {
		return nil
	}
	return refuse(v1alpha1.ValidationFailedReason, problems.Sorted())
}

// mayBind reports whether the account of the source may itself bind a role. The operator binds the role for the
// agents. It must not do that for an account without the right.
func (p *pass) mayBind(ctx context.Context, role registration.Role) (bool, error) {
	return p.accountMay(ctx, "bind "+role.Key(), authorizationv1.ResourceAttributes{
		Verb: "bind", Group: rbacv1.GroupName, Resource: strings.ToLower(role.Kind) + "s", Namespace: role.Namespace, Name: role.Name,
	})
}

// mayBindSet reports whether the account of the source may bind a ManagedClusterSet to a namespace. OCM's webhook
// checks the same right for a ManagedClusterSetBinding.
func (p *pass) mayBindSet(ctx context.Context, set string) (bool, error) {
	return p.accountMay(ctx, "bind cluster set "+set, authorizationv1.ResourceAttributes{
		Verb: "create", Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: "bind", Name: set,
	})
}

// accountMay checks a right of the account of the source.
func (p *pass) accountMay(ctx context.Context, right string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	if err := p.account.Create(ctx, review); err != nil {
		return false, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot ask for the right of ServiceAccount %s to %s: %w", p.accountKey(), right, err))
	}
	return review.Status.Allowed, nil
}

// declaredRules returns the rules of a role that the commit itself declares; false: the commit does not declare it.
func declaredRules(objects []gitsource.Object, role registration.Role) ([]rbacv1.PolicyRule, bool) {
	for _, object := range objects {
		if keyOf(object.Unstructured) != (objectKey{Group: rbacv1.GroupName, Kind: role.Kind, Namespace: role.Namespace, Name: role.Name}) {
			continue
		}
		var declared struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &declared)
		return declared.Rules, err == nil
	}
	return nil, false
}
