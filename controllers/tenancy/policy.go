package tenancy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// ErrInvalid says that the policy cannot be used. Then no source may declare anything new.
var ErrInvalid = errors.New("the policy of tenants is invalid")

// Policy has the tenants by namespace.
type Policy map[string]Tenant

// Tenant limits what the AddOnSources of one namespace may declare. Names are patterns in which * stands
// for any characters.
type Tenant struct {
	// AddOns are the names of the tenant's add-ons. Another object without a namespace, such as an
	// AddOnTemplate, must be named like one of them: <add-on> or <add-on>-<suffix>. If the name of an object
	// fits add-ons of two tenants, the object belongs to the tenant of the longer add-on name.
	AddOns []string `json:"addOns"`
	// Namespaces of the hub in which the tenant may declare objects and name Placements, besides its own.
	Namespaces []string `json:"namespaces,omitempty"`
	// Kinds that the tenant may declare besides those of AddonFlow and OCM, as Kind or Kind.group. If empty,
	// it may declare no other kind.
	Kinds []string `json:"kinds,omitempty"`
	// TargetNamespaces are the namespaces of managed clusters in which the tenant's add-ons may have objects.
	// The add-ons may create Namespaces of these names. If absent, they may have objects of every kind everywhere.
	TargetNamespaces []string `json:"targetNamespaces,omitempty"`
	// TargetKinds are the kinds, as Kind or Kind.group, of the objects without a namespace that the tenant's
	// add-ons may have on managed clusters, besides Namespaces. They are allowed only with TargetNamespaces.
	TargetKinds []string `json:"targetKinds,omitempty"`

	// namespace is the tenant's own namespace. all is the policy that contains the tenant.
	namespace string
	all       Policy
}

// ParseName parses NAMESPACE/CONFIGMAP.
func ParseName(s string) (client.ObjectKey, error) {
	namespace, name, _ := strings.Cut(s, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return client.ObjectKey{}, fmt.Errorf("%q does not name a ConfigMap: write NAMESPACE/NAME", s)
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// Read reads the policy. The error wraps ErrInvalid if the ConfigMap is there and is wrong.
func Read(ctx context.Context, hub client.Reader, name client.ObjectKey) (Policy, error) {
	stored := &corev1.ConfigMap{}
	if err := hub.Get(ctx, name, stored); err != nil {
		return nil, fmt.Errorf("cannot read the policy of tenants: %w", err)
	}
	policy, err := Parse(stored)
	if err != nil {
		return nil, fmt.Errorf("%w: ConfigMap %s: %w", ErrInvalid, name, err)
	}
	return policy, nil
}

// Parse reads the policy of a ConfigMap. One wrong entry makes the whole policy invalid, because each entry also
// limits the other tenants.
func Parse(stored *corev1.ConfigMap) (Policy, error) {
	if len(stored.BinaryData) > 0 {
		return nil, errors.New("binaryData: entries are in data")
	}
	policy := Policy{}
	for _, namespace := range slices.Sorted(maps.Keys(stored.Data)) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return nil, fmt.Errorf("data[%s]: an entry has the name of a namespace", namespace)
		}
		tenant := Tenant{namespace: namespace, all: policy}
		if err := decode(stored.Data[namespace], &tenant); err != nil {
			return nil, fmt.Errorf("data[%s]: %w", namespace, err)
		}
		if err := tenant.validate(); err != nil {
			return nil, fmt.Errorf("data[%s].%w", namespace, err)
		}
		policy[namespace] = tenant
	}
	return policy, nil
}

// decode reads an entry. Unlike yaml.UnmarshalStrict, it refuses a field whose name has another case, such as addons.
func decode(text string, into *Tenant) error {
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(encoded, into)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return err
	}
	var given map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &given); err != nil {
		return err
	}
	if _, limited := given["targetNamespaces"]; limited && len(into.TargetNamespaces) == 0 {
		return errors.New("targetNamespaces: is empty; name at least one, or leave it out to allow all") // null would be all of them
	}
	return nil
}

var (
	// namePattern matches a name of Kubernetes with any number of *.
	namePattern = regexp.MustCompile(`^[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?$`)
	kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)
)

func (t Tenant) validate() error {
	if len(t.AddOns) == 0 {
		return errors.New("addOns: is required; name at least one add-on or pattern")
	}
	for _, list := range []struct {
		field   string
		entries []string
		valid   *regexp.Regexp
		form    string
	}{
		{"addOns", t.AddOns, namePattern, "a name, with * for any characters"},
		{"namespaces", t.Namespaces, namePattern, "a name, with * for any characters"},
		{"kinds", t.Kinds, kindPattern, "Kind or Kind.group"},
		{"targetNamespaces", t.TargetNamespaces, namePattern, "a name, with * for any characters"},
		{"targetKinds", t.TargetKinds, kindPattern, "Kind or Kind.group"},
	} {
		for i, entry := range list.entries {
			if !list.valid.MatchString(entry) {
				return fmt.Errorf("%s[%d]: %q is not %s", list.field, i, entry, list.form)
			}
		}
	}
	switch at := slices.Index(t.TargetKinds, "Namespace"); {
	case at >= 0:
		return fmt.Errorf("targetKinds[%d]: Namespaces are allowed by name: list them in targetNamespaces", at)
	case len(t.TargetKinds) > 0 && t.TargetNamespaces == nil:
		return errors.New("targetKinds: every kind is allowed without targetNamespaces; name these, or leave it out")
	}
	return nil
}

// Bounds are the bounds of the tenant's add-ons on managed clusters; nil: none.
func (t Tenant) Bounds() *render.Bounds {
	if t.TargetNamespaces == nil {
		return nil
	}
	return &render.Bounds{Namespaces: t.TargetNamespaces, Kinds: t.TargetKinds}
}

// MayDeclare reports whether an add-on of that name may be declared.
func (t Tenant) MayDeclare(addOn string) bool { return matchesAny(t.AddOns, addOn) }

// MayName reports whether an object without a namespace that belongs to add-ons may have a name. The name must be
// that of an add-on, or that name, a hyphen and a suffix. If two tenants list a part of the name, the name belongs to
// the tenant with the longer part. Thus log-shipper-v2 belongs to a tenant with log-shipper or log-s*, not to a
// tenant with log.
func (t Tenant) MayName(object string) bool {
	for addOn := range addOnsOf(object) {
		if t.MayDeclare(addOn) {
			return !t.all.lists(object, len(addOn))
		}
	}
	return false
}

// lists reports whether a tenant has a pattern that matches an add-on of the object and has more than first bytes
// before any *.
func (p Policy) lists(object string, first int) bool {
	for _, tenant := range p {
		for _, pattern := range tenant.AddOns {
			fixed, _, _ := strings.Cut(pattern, "*")
			if len(fixed) <= first {
				continue
			}
			for addOn := range addOnsOf(object) {
				if render.MatchesWildcard(pattern, addOn) {
					return true
				}
			}
		}
	}
	return false
}

// addOnsOf are the names of add-ons that an object may belong to by its name, the longest first.
func addOnsOf(object string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for end := len(object); end > 0 && yield(object[:end]); {
			end = strings.LastIndexByte(object[:end], '-')
		}
	}
}

// MayUse reports whether objects in a namespace of the hub may be declared and referred to.
func (t Tenant) MayUse(namespace string) bool {
	return namespace == t.namespace || matchesAny(t.Namespaces, namespace)
}

// MayBring reports whether objects of a kind may be declared. The kind is neither AddonFlow's nor OCM's.
func (t Tenant) MayBring(kind schema.GroupKind) bool {
	return slices.Contains(t.Kinds, kind.String())
}

// CheckRollout returns which object a rollout of the tenant's namespace refers to although the tenant may not use it;
// nil: none. A Placement selects among the clusters of the sets that are bound to its namespace. Therefore the
// namespaces of its Placements limit a tenant.
func (t Tenant) CheckRollout(ro *v1alpha1.AddOnRollout) error {
	if !t.MayDeclare(ro.Name) {
		return fmt.Errorf("the tenant has no add-on %s; allowed: %v", ro.Name, t.AddOns)
	}
	if ro.Spec.ClusterLabelSelector != nil {
		return errors.New("spec.clusterLabelSelector selects among all clusters of the hub, which no tenant may")
	}
	for _, p := range ro.Spec.Placements() {
		if !t.MayUse(p.Namespace) {
			return fmt.Errorf("placement %s/%s: the tenant may not use namespace %q", p.Namespace, p.Name, p.Namespace)
		}
	}
	return nil
}

// matchesAny reports whether a pattern matches a name as a whole.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return render.MatchesWildcard(pattern, name) })
}
