package addonsource_test

import (
	"context"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/rights"
)

// shipped is the operator's identity with the rights of manifests/rbac, made once.
var shipped = sync.OnceValues(func() (*rest.Config, error) {
	if _, err := rights.Install(context.Background(), admin); err != nil {
		return nil, err
	}
	config, _, err := theHub.User(rights.User, rights.Groups()...)
	return config, err
})

// deployer is the account of every source in these specs.
const deployer = "deployer"

// withAccount makes a source act as the account.
func withAccount(s *v1alpha1.AddOnSource) { s.Spec.ServiceAccountName = deployer }

// newTenant makes a world whose operator has the rights of manifests/rbac, and whose source acts as
// an account, which has the usual rights on OCM's kinds.
func newTenant() *world {
	GinkgoHelper()
	w := newWorld(withAccount)
	config, err := shipped()
	Expect(err).NotTo(HaveOccurred())
	w.operator = config
	w.start()
	return w
}

// grantRights gives the account the rights of a tenant, and the operator that to act as it.
func (w *world) grantRights() {
	GinkgoHelper()
	operator := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rights.Namespace, Name: rights.ServiceAccount}
	w.let(operator, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{deployer}, Verbs: []string{"impersonate"}})
	verbs := []string{"get", "create", "patch", "delete"} // as docs/how-to/tenants.md
	w.letEverywhere(
		rbacv1.PolicyRule{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"clustermanagementaddons", "addontemplates"}, ResourceNames: []string{w.addOn}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"clustermanagementaddons", "addontemplates"}, Verbs: []string{"create"}},
	)
	w.let(w.account(),
		rbacv1.PolicyRule{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"addondeploymentconfigs"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"placements"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs},
	)
}

// account is the account as a subject.
func (w *world) account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: deployer}
}

// let grants rules in the world's namespace.
func (w *world) let(subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: w.namespace, GenerateName: subject.Name + "-"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	w.create(role)
	w.create(&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
}

// letEverywhere grants rules on the whole hub to the account.
func (w *world) letEverywhere(rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{GenerateName: w.namespace + "-"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	w.create(role)
	w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{w.account()}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}})
}

// becomes looks at the repository until the source says why it is ready, or not.
func (w *world) becomes(why string) {
	GinkgoHelper()
	Eventually(func() string {
		w.look()
		return w.whyNotReady()
	}).WithTimeout(patience).Should(ContainSubstring(why))
}

const agentRoleYAML = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: NAMESPACE-agent
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
`

var _ = Describe("A source with an account", func() {
	It("applies everything as it, once the operator may act as it, and is refused with the lines where it has no right", func() {
		w := newTenant()
		w.commit("add hello", addOnFiles())
		w.passes()
		Expect(w.whyNotReady()).To(Equal("False ImpersonationDenied: the operator may not act as ServiceAccount " + w.namespace + "/deployer: " +
			"give it the verb impersonate on serviceaccounts with that name, by a Role in namespace " + w.namespace))

		w.let(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rights.Namespace, Name: rights.ServiceAccount},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{deployer}, Verbs: []string{"impersonate"}})
		w.becomes("False ValidationFailed: ")
		Expect(w.whyNotReady()).To(MatchRegexp(`addons/addontemplate.yaml:1: AddOnTemplate/` + w.addOn + `: .*User "system:serviceaccount:` + w.namespace + `:deployer" cannot get resource "addontemplates"`))
		Expect(exists(w.cma())).To(BeFalse())
		Expect(w.revisions()).To(BeEmpty())

		w.grantRights()
		w.becomes("True ReconciliationSucceeded: ")
		Expect(exists(w.rollout())).To(BeTrue(), "the operator writes it: the account has no right to")

		// What no longer is in Git is removed with the rights of the account as well.
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add a placement", map[string]string{"addons/placement.yaml": placementYAML})
		w.becomes("True ReconciliationSucceeded: ")
		w.remove("remove it", "addons/placement.yaml")
		w.look()
		Expect(exists(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}})).To(BeFalse())

		By("a pull request, which is judged without a write")
		template := w.template()
		w.read(template)
		template.Annotations = nil // it would be claimed, with its fields
		Expect(admin.Update(context.Background(), template, client.FieldOwner("kubectl"))).To(Succeed())
		Expect(w.reconciler.JudgeBeside(context.Background(), w.source())).To(Succeed())
		live := w.template()
		w.read(live)
		Expect(live.ResourceVersion).To(Equal(template.ResourceVersion))
	})

	It("without the right to patch changes nothing: each object is named with its line", func() {
		w := newTenant()
		w.grantRights()
		accounts := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "create"}}
		w.let(w.account(), accounts)
		old := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "old"}}
		Expect(admin.Create(context.Background(), old, client.FieldOwner("kubectl"))).To(Succeed())
		serviceAccount := func(name string) string {
			return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + ", namespace: NAMESPACE}\nautomountServiceAccountToken: false\n"
		}
		for _, name := range []string{"new", "old"} {
			By("an account that is " + name)
			w.commit("with an account", addOnFilesWith(map[string]string{"addons/account.yaml": serviceAccount(name)}))
			w.becomes(`addons/account.yaml:1: ServiceAccount/` + name + `: `)
			Expect(w.whyNotReady()).To(ContainSubstring(`cannot patch resource "serviceaccounts"`))
			Expect(exists(w.template())).To(BeFalse())
		}

		accounts.Verbs = append(accounts.Verbs, "patch")
		w.let(w.account(), accounts)
		w.becomes("True ReconciliationSucceeded: ")
	})

	It("without the right to patch in a Namespace that the commit creates changes nothing: the object is named with its line", func() {
		w := newTenant()
		w.grantRights()
		verbs := []string{"get", "create"}
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: append(verbs, "patch")},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}})
		w.commit("with an account", addOnFilesWith(map[string]string{
			"addons/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-new}\n",
			"addons/account.yaml":   "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: NAMESPACE-new}\n",
		}))
		w.becomes(`addons/account.yaml:1: ServiceAccount/agent: `)
		wayOut := `resource "serviceaccounts" in API group "" in the namespace "` + w.namespace + `-new"; Namespace ` + w.namespace +
			"-new is new, so that a RoleBinding of the same commit does not count yet: create both first"
		Expect(w.whyNotReady()).To(ContainSubstring("cannot create " + wayOut))
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: verbs})
		w.becomes("cannot patch " + wayOut)
		Expect(exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-new"}})).To(BeFalse())

		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"patch"}})
		w.becomes("True ReconciliationSucceeded: ")
	})

	It("takes over an add-on that OCM runs with the verb patch, and without update", func() {
		w := newTenant()
		w.grantRights()
		existing := w.cma()
		existing.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: "Placements", Placements: []addonv1alpha1.PlacementStrategy{
			{PlacementRef: addonv1alpha1.PlacementRef{Namespace: w.namespace, Name: "all"}},
		}}
		*supported(existing) = []addonv1alpha1.ConfigMeta{templatesConfig()}
		w.create(existing)
		w.commit("add hello", addOnFiles())
		w.becomes("True ReconciliationSucceeded: ")
	})

	It("may bring other kinds, such as the ClusterRole of an agent, within the rights of the account and no others", func() {
		w := newTenant()
		w.grantRights()
		w.permits = agentRole(w)
		w.start()
		reads := registering(strings.Replace(currentYAML, "ROLE", "NAMESPACE-agent", 1))
		reads["addons/clusterrole.yaml"] = agentRoleYAML
		w.commit("with a role", reads)
		w.becomes(`addons/clusterrole.yaml:1: ClusterRole/` + w.namespace + `-agent: `)
		Expect(w.whyNotReady()).To(ContainSubstring(`cannot get resource "clusterroles"`))

		name := w.namespace + "-agent"
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{name}, Verbs: []string{"get", "patch", "delete"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"create"}})
		w.becomes("ClusterRole/" + name + " cannot be given by the account of the source")
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{name}, Verbs: []string{"bind"}})
		w.becomes("is attempting to grant RBAC permissions not currently held")
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
		w.becomes("True ReconciliationSucceeded: ")
		Expect(exists(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(BeTrue())
	})

	It("gets rights by one commit, and uses them in the next: the commit that does both changes nothing and says so", func() {
		w := newTenant()
		w.grantRights()
		verbs := []string{"get", "create", "patch"}
		w.let(w.account(), rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: verbs},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{"agents"}, Verbs: []string{"bind"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"escalate"}})
		role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: agents, namespace: NAMESPACE}\n" +
			"rules:\n- {apiGroups: [''], resources: [serviceaccounts], verbs: [create, patch]}\n"
		binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: BINDING, namespace: NAMESPACE}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ROLE}\nsubjects:\n- {kind: ServiceAccount, name: deployer, namespace: NAMESPACE}\n"
		agents := strings.NewReplacer("BINDING", "agents", "ROLE", "agents").Replace(binding)
		account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: NAMESPACE}\n"

		w.commit("all at once", addOnFilesWith(map[string]string{"addons/role.yaml": role, "addons/binding.yaml": agents, "addons/account.yaml": account}))
		w.becomes("addons/account.yaml:1: ServiceAccount/agent: ")
		Expect(w.whyNotReady()).To(And(ContainSubstring(`cannot create resource "serviceaccounts"`),
			ContainSubstring("rights that the same commit gives do not count yet: commit the roles and their bindings first")))
		Expect(exists(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "agents"}})).To(BeFalse())

		w.remove("the rights first", "addons/account.yaml")
		w.becomes("True ReconciliationSucceeded: ")
		w.commit("then the object", map[string]string{"addons/account.yaml": account})
		w.becomes("True ReconciliationSucceeded: ")

		By("a binding to a role of the same commit that the account may not bind by name")
		readers := strings.NewReplacer("BINDING", "readers", "ROLE", "readers").Replace(binding)
		reader := strings.NewReplacer("agents", "readers", "create, patch", "get").Replace(role)
		w.commit("role and binding", map[string]string{"addons/reader.yaml": reader, "addons/readers.yaml": readers})
		w.becomes("waiting for what RoleBinding/" + w.namespace + "/readers refers to: ")
		Expect(w.whyNotReady()).To(HaveSuffix("; if the same commit declares it, commit it first"))
		w.remove("the role first", "addons/readers.yaml")
		w.becomes("True ReconciliationSucceeded: ")
		w.commit("then the binding", map[string]string{"addons/readers.yaml": readers})
		w.becomes("True ReconciliationSucceeded: ")
	})

	It("never changes nor prunes what AddonFlow itself consists of, whatever the account may", func() {
		w := newTenant()
		w.grantRights()
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
		w.commit("with a role", addOnFilesWith(map[string]string{"addons/clusterrole.yaml": agentRoleYAML}))
		w.becomes("True ReconciliationSucceeded: ")

		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-agent"}}
		w.read(role)
		role.Labels["app.kubernetes.io/name"], role.Labels["app.kubernetes.io/part-of"] = "addonflow", "addonflow" // as manifests/install
		Expect(admin.Update(context.Background(), role)).To(Succeed())
		w.commit("with fewer rights", map[string]string{"addons/clusterrole.yaml": strings.Replace(agentRoleYAML, "[get]", "[list]", 1)})
		w.becomes("False OwnershipConflict: addons/clusterrole.yaml:1: ClusterRole/" + role.Name + ": belongs to the installation of AddonFlow, which no commit changes")

		w.remove("no role", "addons/clusterrole.yaml")
		w.becomes("True ReconciliationSucceeded: ")
		w.read(role)
		Expect(role.Rules).To(ConsistOf(HaveField("Verbs", ConsistOf("get"))))
		Expect(w.source().Status.Inventory).NotTo(ContainElement(HaveField("Kind", "ClusterRole")))
	})
})

// agentRole allows the role of the world's agent by flag.
func agentRole(w *world) (p addonsource.Permits) {
	p.Roles = registration.RolePolicy{Allowed: []string{"ClusterRole/" + w.namespace + "-agent"}}
	return p
}
