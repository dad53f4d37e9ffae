package addonsource_test

import (
	"context"
	"fmt"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/tenancy"
)

// tenantEntry lets a namespace declare the add-on of its world.
const tenantEntry = `addOns: [ADDON]
kinds: [ConfigMap, ClusterRoleBinding.rbac.authorization.k8s.io, RoleBinding.rbac.authorization.k8s.io]
`

// policyOf stores the policy of tenants for some worlds, and lets them read it.
func policyOf(worlds ...*world) *corev1.ConfigMap {
	GinkgoHelper()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "tenants-"}, Data: map[string]string{}}
	for _, w := range worlds {
		stored.Data[w.namespace] = w.named(tenantEntry)
	}
	worlds[0].create(stored)
	for _, w := range worlds {
		w.tenants = func(ctx context.Context) (tenancy.Policy, error) {
			return tenancy.Read(ctx, admin, client.ObjectKeyFromObject(stored))
		}
		w.start()
	}
	return stored
}

// itsContext gives a source a context of its namespace.
func itsContext(s *v1alpha1.AddOnSource) {
	s.Spec.CommitStatus.Context = "addonflow/" + s.Namespace + "/fleet"
}

// versions are the resource versions of everything that a world has on the hub.
func (w *world) versions() string {
	GinkgoHelper()
	var versions []string
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}}
	for _, o := range []client.Object{w.cma(), w.template(), w.rollout(), config} {
		w.read(o)
		versions = append(versions, o.GetName()+" "+o.GetResourceVersion())
	}
	for _, r := range w.revisions() {
		versions = append(versions, r.Name+" "+r.ResourceVersion)
	}
	var roles rbacv1.RoleBindingList
	Expect(admin.List(context.Background(), &roles, client.InNamespace(w.namespace))).To(Succeed())
	return strings.Join(append(versions, fmt.Sprint(len(roles.Items), " role bindings")), ", ")
}

const settingsYAML = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: NAMESPACE
data: {level: info}
`

// inOwn makes a file one of the tenant that commits it, with its namespace and add-on.
func inOwn(text string) string {
	return strings.NewReplacer("NAMESPACE", "HOME", "ADDON", "MINE").Replace(text)
}

var _ = Describe("Of two tenants", func() {
	const denied = "the tenant may not use namespace \"NAMESPACE\""

	It("none touches what is the other's, whatever it commits or declares", func() {
		one, two := newTenant(), newTenant()
		policyOf(one, two)
		both, other := []*world{one, two}, map[*world]*world{one: two, two: one}
		address := map[*world]string{one: one.source().Spec.CommitStatus.Address, two: two.source().Spec.CommitStatus.Address}
		// its returns a source to its own context, and claim takes that of the other tenant.
		its := func(w *world) {
			w.change(func(s *v1alpha1.AddOnSource) {
				s.Spec.CommitStatus.Address = address[w]
				itsContext(s)
			})
		}
		claim := func(w *world) {
			GinkgoHelper()
			w.change(func(s *v1alpha1.AddOnSource) {
				s.Spec.CommitStatus.Address, s.Spec.CommitStatus.Context = address[other[w]], "addonflow/"+other[w].namespace+"/fleet"
			})
			Expect(w.whyNotReadyNow()).To(HavePrefix("False TenantDenied: spec.commitStatus.context must begin with addonflow/" + w.namespace + "/"))
		}
		for _, w := range both {
			w.grantRights()
			w.commit("add hello", addOnFilesWith(map[string]string{"addons/settings.yaml": settingsYAML}))
			claim(w)
		}
		for _, w := range both { // the other source, which is older or newer, claims the context
			its(w)
			w.becomes("True ReconciliationSucceeded: ")
			head := strings.TrimPrefix(w.source().Status.LastAppliedRevision, "main@sha1:")
			w.rolledOut()
			Eventually(func() string {
				w.passes()
				entry, _ := w.forge.Latest(head, w.source().Spec.CommitStatus.Context)
				return entry.State
			}).WithTimeout(patience).Should(Equal("success"), "a source of another namespace owns no context")
			claim(w)
		}
		before := map[*world]string{}
		for _, w := range both {
			its(w)
			w.becomes("True ReconciliationSucceeded: ")
			before[w] = w.versions()
		}
		// attack lets each tenant commit the same against the other, and expects that both are refused and nothing changes.
		attack := func(name string, files func(w, of *world) (map[string]string, string)) {
			GinkgoHelper()
			By(name)
			want := map[*world]string{}
			for _, w := range both {
				var changed map[string]string
				changed, want[w] = files(w, other[w])
				w.commit(name, changed)
			}
			for _, w := range both {
				w.look()
				Expect(w.whyNotReady()).To(And(HavePrefix("False "), ContainSubstring(want[w])), name)
			}
			for _, w := range both {
				Expect(w.versions()).To(Equal(before[w]), name)
			}
		}
		const pattern = "apiVersion: %s\nkind: %s\nmetadata:\n  name: stolen\n  namespace: %s\n"
		for name, attempt := range map[string]struct{ text, want string }{
			"its add-on":             {addOnYAML, "addons/stolen.yaml:4: ClusterManagementAddOn/ADDON: metadata.name: the tenant has no add-on of that name; allowed: [MINE]"},
			"its template":           {templateYAML, "AddOnTemplate/ADDON: metadata.name: the tenant has no add-on of that name"},
			"its configuration":      {configYAML, denied},
			"its rollout":            {rolloutYAML, "addons/stolen.yaml:"},
			"a rollout of its name":  {strings.ReplaceAll(rolloutYAML, "NAMESPACE", "HOME"), "metadata.name: "},
			"its placement":          {placementYAML, denied},
			"its clusters":           {strings.Replace(inOwn(rolloutYAML), "      namespace: HOME\n      name: canary", "      namespace: NAMESPACE\n      name: canary", 1), "spec.stages[0].placement.namespace: " + denied},
			"all clusters":           {strings.Replace(inOwn(rolloutYAML), "spec:\n", "spec:\n  clusterLabelSelector: {matchLabels: {region: eu}}\n", 1), "spec.clusterLabelSelector"},
			"its settings":           {settingsYAML, denied},
			"a role in it":           {fmt.Sprintf(pattern, "rbac.authorization.k8s.io/v1", "RoleBinding", "NAMESPACE") + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\n", denied},
			"the whole hub":          {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: stolen}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n", "cannot get resource \"clusterrolebindings\""},
			"a kind not listed":      {fmt.Sprintf(pattern, "v1", "ServiceAccount", "HOME"), "the tenant may not declare objects of kind ServiceAccount"},
			"its account":            {strings.Replace(fmt.Sprintf(pattern, "v1", "ServiceAccount", "NAMESPACE"), "stolen", deployer, 1), denied},
			"a cluster's namespace":  {fmt.Sprintf(pattern, "v1", "ConfigMap", "cluster1"), "the tenant may not use namespace \"cluster1\""},
			"a work":                 {fmt.Sprintf(pattern, "work.open-cluster-management.io/v1", "ManifestWork", "cluster1"), "is not supported"},
			"an installed add-on":    {fmt.Sprintf(pattern, "addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", "cluster1"), "is not supported"},
			"an approval":            {fmt.Sprintf(pattern, "addonflow.io/v1alpha1", "AddOnApproval", "NAMESPACE"), "is not supported"},
			"an order":               {fmt.Sprintf(pattern, "addonflow.io/v1alpha1", "AddOnOrder", "HOME"), "is not supported"},
			"a revision":             {fmt.Sprintf(pattern, "addonflow.io/v1alpha1", "AddOnRevision", "NAMESPACE"), "is not supported"},
			"another source":         {fmt.Sprintf(pattern, "addonflow.io/v1alpha1", "AddOnSource", "NAMESPACE"), "is not supported"},
			"a Secret":               {fmt.Sprintf(pattern, "v1", "Secret", "HOME"), "a Secret"},
			"its Secret":             {strings.Replace(fmt.Sprintf(pattern, "v1", "Secret", "NAMESPACE"), "stolen", "forge", 1), "a Secret"},
			"a namespace's creation": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: cluster1}\n", "the tenant may not use this namespace"},
		} {
			attack(name, func(w, of *world) (map[string]string, string) {
				theirs := strings.NewReplacer("ADDON", of.addOn, "MINE", w.addOn, "NAMESPACE", of.namespace, "HOME", w.namespace).Replace
				return map[string]string{"addons/stolen.yaml": theirs(attempt.text)}, theirs(attempt.want)
			})
			for _, w := range both {
				w.remove("give it back", "addons/stolen.yaml")
			}
		}
		attack("its signing CA", func(_, of *world) (map[string]string, string) {
			return registering(strings.Replace(signerYAML, "kube-system", of.namespace, 1)), "customSigner.signingCA.namespace: "
		})

		By("the other's account")
		for _, w := range both {
			for _, account := range []string{other[w].namespace + ":" + deployer, "../" + other[w].namespace + "/" + deployer, "system:admin"} {
				source := w.source()
				source.Spec.ServiceAccountName = account
				Expect(admin.Update(context.Background(), source)).To(MatchError(ContainSubstring("spec.serviceAccountName")))
			}
			w.commit("as before", addOnFilesWith(map[string]string{"addons/settings.yaml": settingsYAML}))
			w.change(func(s *v1alpha1.AddOnSource) { s.Spec.ServiceAccountName = "admin" })
			Expect(w.whyNotReadyNow()).To(HavePrefix("False ImpersonationDenied: "))
			w.change(func(s *v1alpha1.AddOnSource) { s.Spec.ServiceAccountName = "" })
			Expect(w.whyNotReadyNow()).To(HavePrefix("False TenantDenied: spec.serviceAccountName is required"))
			w.change(withAccount)
			w.becomes("True ReconciliationSucceeded: ")
		}

		By("Secrets of the other")
		for _, w := range both {
			theirs := fluxmeta.LocalObjectReference{Name: "../" + other[w].namespace + "/forge"}
			for field, use := range map[string]func(*v1alpha1.AddOnSource){
				"secretRef":        func(s *v1alpha1.AddOnSource) { s.Spec.SecretRef = &theirs },
				"proxySecretRef":   func(s *v1alpha1.AddOnSource) { s.Spec.ProxySecretRef = &theirs },
				"verify.secretRef": func(s *v1alpha1.AddOnSource) { s.Spec.Verify = &v1alpha1.VerifySpec{SecretRef: theirs} },
			} {
				w.change(use)
				_, _ = w.passOf("fleet")
				Expect(w.whyNotReady()).NotTo(HavePrefix("True "), field)
				w.change(func(s *v1alpha1.AddOnSource) { s.Spec.SecretRef, s.Spec.ProxySecretRef, s.Spec.Verify = nil, nil, nil })
			}
			w.becomes("True ReconciliationSucceeded: ")
		}
		for _, w := range both {
			Expect(w.versions()).To(Equal(before[w]))
		}
	})

	It("whose policy and rights overlap the first one keeps an add-on, and rights bound the other", func() {
		first, second := newTenant(), newTenant()
		policy := policyOf(first, second)
		for _, w := range []*world{first, second} {
			w.change(itsContext)
			w.grantRights()
		}
		second.letEverywhere(rbacv1.PolicyRule{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
		policy.Data[second.namespace] = "addOns: ['*']\nnamespaces: ['*']\nkinds: [ConfigMap]\n"
		Expect(admin.Update(context.Background(), policy)).To(Succeed())
		first.commit("add hello", addOnFilesWith(map[string]string{"addons/settings.yaml": settingsYAML}))
		first.becomes("True ReconciliationSucceeded: ")
		before := first.versions()

		second.commit("the same add-on", map[string]string{"addons/addon.yaml": strings.ReplaceAll(addOnYAML, "ADDON", first.addOn), "addons/template.yaml": strings.ReplaceAll(templateYAML, "ADDON", first.addOn), "addons/config.yaml": strings.ReplaceAll(configYAML, "ADDON", first.addOn)})
		second.becomes("False OwnershipConflict: ")
		Expect(second.whyNotReady()).To(ContainSubstring("belongs to source " + first.namespace + "/fleet"))
		second.remove("not that", "addons/addon.yaml", "addons/template.yaml", "addons/config.yaml")
		second.commit("settings of the other", addOnFilesWith(map[string]string{"addons/settings.yaml": strings.ReplaceAll(settingsYAML, "NAMESPACE", first.namespace)}))
		second.becomes(`addons/settings.yaml:1: ConfigMap/settings: `)
		Expect(second.whyNotReady()).To(ContainSubstring(`User "system:serviceaccount:` + second.namespace + `:deployer" cannot get resource "configmaps"`))
		Expect(first.versions()).To(Equal(before))
	})

	It("one that may use some namespaces of managed clusters is refused more with the lines, and what runs goes on running", func() {
		w := newTenant()
		policy := policyOf(w)
		w.change(itsContext)
		w.grantRights()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/settings.yaml": settingsYAML}))
		w.becomes("True ReconciliationSucceeded: ")
		before := w.versions()
		policy.Data[w.namespace] += "targetNamespaces: [team-a-*]\n"
		Expect(admin.Update(context.Background(), policy)).To(Succeed())
		const denied = "the tenant may not use namespace \"%s\" of managed clusters; allowed: [team-a-*]"
		const config = "addons/addondeploymentconfig.yaml:%d: AddOnDeploymentConfig/%s: spec.agentInstallNamespace: "
		w.becomes("False ValidationFailed: " + fmt.Sprintf(config+denied, 6, w.addOn, "open-cluster-management-agent-addon")) // its default
		Expect(w.versions()).To(Equal(before))

		moved := func(namespace string) map[string]string {
			return map[string]string{"addons/addondeploymentconfig.yaml": configYAML + "  agentInstallNamespace: " + namespace + "\n"}
		}
		w.commit("move", moved("kube-system"))
		w.becomes(fmt.Sprintf(config+denied, 10, w.addOn, "kube-system"))
		w.commit("do not move", moved(`""`))
		w.becomes(fmt.Sprintf("addons/addontemplate.yaml:14: AddOnTemplate/%s: spec.agentSpec.workload.manifests[0].metadata.namespace: "+denied, w.addOn, "open-cluster-management-agent-addon"))
		Expect(w.versions()).To(Equal(before))
		w.commit("move where it may", moved("team-a-agents"))
		w.becomes("True ReconciliationSucceeded: ")

		const rightsYAML = "      - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: stolen}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n"
		w.commit("a right everywhere", map[string]string{"addons/addontemplate.yaml": templateYAML + rightsYAML})
		w.becomes("kind: the tenant may not deploy objects of kind ClusterRoleBinding.rbac.authorization.k8s.io without a namespace to managed clusters; allowed: none")
		policy.Data[w.namespace] += "targetKinds: [ClusterRoleBinding.rbac.authorization.k8s.io]\n"
		Expect(admin.Update(context.Background(), policy)).To(Succeed())
		w.becomes("True ReconciliationSucceeded: ")
	})

	It("one that is not listed, and all of them under a policy that is wrong, apply nothing, and what runs goes on running", func() {
		w := newTenant()
		policy := policyOf(w)
		w.change(itsContext)
		w.grantRights()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/settings.yaml": settingsYAML}))
		w.becomes("True ReconciliationSucceeded: ")
		before := w.versions()
		entry := policy.Data[w.namespace]
		for wrong, want := range map[string]func(){
			"False TenantDenied: namespace " + w.namespace + " is not a tenant": func() { policy.Data = nil },
			"False InvalidTenants: the policy of tenants is invalid:":           func() { policy.Data = map[string]string{w.namespace: "addons: [x]\n"} },
		} {
			want()
			Expect(admin.Update(context.Background(), policy)).To(Succeed())
			w.commit("change hello", map[string]string{"addons/addondeploymentconfig.yaml": configSaying("goodbye-" + fmt.Sprint(len(wrong)))})
			w.look()
			Expect(w.whyNotReady()).To(HavePrefix(wrong))
			Expect(w.versions()).To(Equal(before))
		}
		policy.Data = map[string]string{w.namespace: entry}
		Expect(admin.Update(context.Background(), policy)).To(Succeed())
		w.becomes("True ReconciliationSucceeded: ")
		Expect(w.versions()).NotTo(Equal(before))
	})
})

// whyNotReadyNow looks at the repository, and returns why the source is not ready.
func (w *world) whyNotReadyNow() string {
	GinkgoHelper()
	w.look()
	return w.whyNotReady()
}
