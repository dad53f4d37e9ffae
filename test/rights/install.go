package rights

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/manifests"
)

// The operator's ServiceAccount, as manifests/rbac has it.
const (
	Namespace      = "addonflow-system"
	ServiceAccount = "addonflow"
	// User is the name under which the hub sees it.
	User = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Groups are the groups of the ServiceAccount on the hub.
func Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace, "system:authenticated"}
}

// effectiveWithin bounds how long the hub takes to learn of new grants.
const effectiveWithin = 2 * time.Minute

// Install applies manifests/rbac as an admin, aggregates the ClusterRoles in it, and
// returns when the grants are in effect. It returns them.
func Install(ctx context.Context, admin client.Client) ([]rbacv1.PolicyRule, error) {
	objects, err := shipped()
	if err != nil {
		return nil, err
	}
	rules, err := aggregate(objects)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("cannot create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if len(rules) == 0 {
		return nil, errors.New("manifests/rbac grants nothing")
	}
	return rules, awaitEffect(ctx, admin, rules[len(rules)-1])
}

// Grant gives the operator more rules in a ClusterRole of that name, as an admin would,
// and returns when they are in effect.
func Grant(ctx context.Context, admin client.Client, name string, rules ...rbacv1.PolicyRule) error {
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: ServiceAccount}},
		},
	} {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("cannot grant %s: %w", name, err)
		}
	}
	return awaitEffect(ctx, admin, rules[len(rules)-1])
}

// GrantReplace gives the operator what manifests/replace adds.
func GrantReplace(ctx context.Context, admin client.Client) error {
	text, err := manifests.RBAC.ReadFile("replace/clusterrole.yaml")
	if err != nil {
		return err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		return fmt.Errorf("cannot read manifests/replace: %w", err)
	}
	return Grant(ctx, admin, role.Name, role.Rules...)
}

// shipped reads the objects of manifests/rbac, and the namespace.
func shipped() ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(manifests.RBAC, "rbac/*.yaml")
	if err != nil {
		return nil, err
	}
	names = append(names, "prerequisites/namespace.yaml")
	var objects []*unstructured.Unstructured
	for _, name := range names {
		text, err := manifests.RBAC.ReadFile(name)
		if err != nil {
			return nil, err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
		for {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("cannot read manifests/%s: %w", name, err)
			}
			if o.GetKind() != "Kustomization" {
				objects = append(objects, o)
			}
		}
	}
	// A namespace comes before the objects in it.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	return objects, nil
}

func order(o *unstructured.Unstructured) int {
	if o.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// aggregate writes into every ClusterRole that aggregates others what these grant, as
// the hub's controller would, and returns all of it.
func aggregate(objects []*unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	var roles []rbacv1.ClusterRole
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("cannot read ClusterRole %s: %w", o.GetName(), err)
		}
		roles = append(roles, role)
	}
	var all []rbacv1.PolicyRule
	for _, o := range objects {
		i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return o.GetKind() == "ClusterRole" && r.Name == o.GetName() })
		if i < 0 || roles[i].AggregationRule == nil {
			continue
		}
		rules, err := rulesFor(*roles[i].AggregationRule, roles)
		if err != nil {
			return nil, err
		}
		roles[i].Rules, all = rules, append(all, rules...)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&roles[i])
		if err != nil {
			return nil, fmt.Errorf("cannot write ClusterRole %s: %w", o.GetName(), err)
		}
		o.Object = content
	}
	return all, nil
}

func rulesFor(aggregation rbacv1.AggregationRule, roles []rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range aggregation.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&aggregation.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("cannot read an aggregation rule: %w", err)
		}
		for _, role := range roles {
			if selector.Matches(labels.Set(role.Labels)) {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules, nil
}

// awaitEffect asks until the hub grants the rule that was stored last: new roles and bindings
// take effect a moment after they are stored.
func awaitEffect(ctx context.Context, admin client.Client, last rbacv1.PolicyRule) error {
	asked := authorizationv1.ResourceAttributes{Group: last.APIGroups[0], Resource: last.Resources[0], Verb: last.Verbs[0]}
	asked.Resource, asked.Subresource, _ = strings.Cut(asked.Resource, "/")
	if len(last.ResourceNames) > 0 {
		asked.Name = last.ResourceNames[0]
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, effectiveWithin, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: User, Groups: Groups(), ResourceAttributes: &asked,
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("the grants do not come into effect: %w", err)
	}
	return nil
}
