package registration

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// templateLabel is OCM's label on the bindings of templates.
const templateLabel = "open-cluster-management.io/addon-template-name"

// Agent is one add-on on one cluster, with the facts that decide its access to the hub.
type Agent struct {
	Cluster string
	// UID of the ManagedClusterAddOn, which owns the objects in the cluster's namespace.
	UID types.UID
	// Driver is MCA.status.kubeClientDriver.
	Driver string
	// Declared is set if Registrations are known: those of the template of the revision applied
	// on the cluster.
	Declared      bool
	Registrations []addonv1alpha1.RegistrationSpec
}

// Verdict returns why a role may not be granted; nil if it may.
type Verdict func(Role) error

// Bindings returns the RoleBindings that grant the agents of an add-on their roles, sorted by
// namespace and name. One binding grants one role in one namespace: that of the cluster
// (CurrentCluster), or a namespace that is shared by the clusters whose templates name it, with
// all of their subjects (SingleNamespace). Roles that allowed refuses are omitted.
//
// If an agent is not declared, its registrations are unknown, for instance after a restart. Such
// an agent keeps what the bindings in found grant to its own group or account, and gets nothing
// new. Other subjects of found bindings belong to no agent and are dropped.
func Bindings(addOn string, agents []Agent, found []rbacv1.RoleBinding, allowed Verdict) []rbacv1.RoleBinding {
	b := bindings{addOn: addOn, byKey: map[bindingKey]*rbacv1.RoleBinding{}}
	own, shared := sorted(found)
	for _, agent := range agents {
		if agent.Declared {
			b.grant(agent, allowed)
			continue
		}
		for _, before := range slices.Concat(own[agent.Cluster], shared) {
			b.retain(agent, before)
		}
	}
	out := make([]rbacv1.RoleBinding, 0, len(b.byKey))
	for _, key := range slices.SortedFunc(maps.Keys(b.byKey), compareKeys) {
		binding := b.byKey[key]
		slices.SortFunc(binding.Subjects, compareSubjects)
		binding.Subjects = slices.Compact(binding.Subjects)
		out = append(out, *binding)
	}
	return out
}

// sorted separates bindings of single agents, by namespace, from shared ones, by the suffix of
// their name.
func sorted(found []rbacv1.RoleBinding) (own map[string][]*rbacv1.RoleBinding, shared []*rbacv1.RoleBinding) {
	own = map[string][]*rbacv1.RoleBinding{}
	for i := range found {
		binding := &found[i]
		if strings.HasSuffix(binding.Name, ":"+ownSuffix) {
			own[binding.Namespace] = append(own[binding.Namespace], binding)
		} else {
			shared = append(shared, binding)
		}
	}
	return own, shared
}

// Suffixes of a binding's name: for one agent, and for those of several clusters.
const (
	ownSuffix    = "agent"
	sharedSuffix = "agents"
)

// bindings collects subjects by binding.
type bindings struct {
	addOn string
	byKey map[bindingKey]*rbacv1.RoleBinding
}

type bindingKey struct{ namespace, name string }

func compareKeys(a, b bindingKey) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

func compareSubjects(a, b rbacv1.Subject) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// grant adds an agent to the bindings of its permissions.
func (b *bindings) grant(agent Agent, allowed Verdict) {
	for _, p := range Permissions(agent.Registrations) {
		if allowed(p.Role) != nil {
			continue
		}
		b.add(bindingOf(b.addOn, agent, p.Role))
	}
}

// retain adds an agent to a binding that it has already.
func (b *bindings) retain(agent Agent, found *rbacv1.RoleBinding) {
	role := Role{Kind: found.RoleRef.Kind, Namespace: found.Namespace, Name: found.RoleRef.Name}
	if strings.HasSuffix(found.Name, ":"+ownSuffix) {
		role.Namespace = "" // the cluster's own
	}
	fresh := bindingOf(b.addOn, agent, role)
	if fresh.Name != found.Name || fresh.Namespace != found.Namespace {
		return // not for this agent, or its name is not one of ours
	}
	agent.Driver = DriverToken
	fresh.Subjects = slices.DeleteFunc(grantees(b.addOn, agent.Cluster, agent.Driver), func(s rbacv1.Subject) bool {
		return !slices.Contains(found.Subjects, s)
	})
	if len(fresh.Subjects) > 0 {
		b.add(fresh)
	}
}

// add adds a binding, and joins its subjects with those of the binding of its name that was added before.
func (b *bindings) add(binding rbacv1.RoleBinding) {
	key := bindingKey{binding.Namespace, binding.Name}
	if before := b.byKey[key]; before != nil {
		before.Subjects = append(before.Subjects, binding.Subjects...)
		return
	}
	b.byKey[key] = &binding
}

// BindingName is the name of the binding of a role. It is unique among the roles of one add-on
// in one namespace, unlike OCM's name. The name of an add-on and a kind contain no colon, so no
// two roles share a name.
func BindingName(addOn string, role Role) string {
	suffix := sharedSuffix
	if role.Namespace == "" {
		suffix = ownSuffix
	}
	return strings.Join([]string{"open-cluster-management", addOn, strings.ToLower(role.Kind), role.Name, suffix}, ":")
}

// bindingOf grants one agent one role. In the cluster's own namespace the agent's
// ManagedClusterAddOn owns it.
func bindingOf(addOn string, agent Agent, role Role) rbacv1.RoleBinding {
	binding := rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: role.Namespace,
			Name:      BindingName(addOn, role),
			Labels: map[string]string{
				v1alpha1.ManagedByLabel:     v1alpha1.ManagedByValue,
				addonv1alpha1.AddonLabelKey: addOn,
				templateLabel:               "",
			},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name},
		Subjects: grantees(addOn, agent.Cluster, agent.Driver),
	}
	if role.Namespace == "" {
		binding.Namespace = agent.Cluster
		binding.OwnerReferences = []metav1.OwnerReference{ownedBy(addOn, agent)}
	}
	return binding
}

// Ours reports whether AddonFlow created a binding.
func Ours(binding *rbacv1.RoleBinding) bool {
	return binding.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue
}

// LeftByOCM reports whether OCM's addon-manager created a binding for the template of an
// add-on. Such a binding grants the role to the add-on's agents on every cluster. Outside a
// cluster's namespace it is never deleted by OCM.
func LeftByOCM(addOn string, binding *rbacv1.RoleBinding) bool {
	_, template := binding.Labels[templateLabel]
	name := strings.Join([]string{"open-cluster-management", addOn, strings.ToLower(binding.RoleRef.Kind), "agent"}, ":")
	return template && !Ours(binding) && binding.Labels[addonv1alpha1.AddonLabelKey] == addOn && binding.Name == name
}

// Same reports whether a binding has the wanted content; additions by others, such as
// annotations, are ignored.
func Same(want, have *rbacv1.RoleBinding) bool {
	return marked(want, have) && want.RoleRef == have.RoleRef && slices.Equal(want.Subjects, have.Subjects)
}
