package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/sample"
)

// tenant is a namespace with a source, which acts as an account of it.
type tenant struct {
	namespace string
	repo      *gitserver.Repo
}

// let gives a ServiceAccount rules in a namespace, or on the whole hub without one.
func let(ctx context.Context, namespace, name string, account rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	object, reference := metav1.ObjectMeta{Namespace: namespace, Name: name}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: object, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: object, RoleRef: reference, Subjects: []rbacv1.Subject{account}},
	}
	if reference.Kind = "ClusterRole"; namespace == "" {
		objects = []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: object, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: object, RoleRef: reference, Subjects: []rbacv1.Subject{account}},
		}
	}
	for _, o := range objects {
		Expect(world.Client.Create(ctx, o)).To(Succeed())
	}
}

// newTenant makes a namespace whose account may do everything with add-ons, so that only the policy of
// tenants is in its way, and a source of it.
func newTenant(ctx context.Context, namespace string, members []string) tenant {
	GinkgoHelper()
	Expect(world.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	Expect(world.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"}})).To(Succeed())
	operator := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rights.Namespace, Name: rights.ServiceAccount}
	let(ctx, namespace, "addonflow", operator,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"deployer"}, Verbs: []string{"impersonate"}})
	let(ctx, "", namespace, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "deployer"},
		rbacv1.PolicyRule{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	Expect(world.Fleet.Place(ctx, fleet.Placement{Namespace: namespace, Name: "all", Clusters: members})).To(Succeed())
	repo, err := world.Git.Create(namespace) //nolint:contextcheck // git on this machine, at once
	Expect(err).NotTo(HaveOccurred())
	t := tenant{namespace: namespace, repo: repo}
	_, err = repo.Commit("begin", map[string]string{"addons/README.md": "nothing yet"}) //nolint:contextcheck // git on this machine, at once
	Expect(err).NotTo(HaveOccurred())
	Expect(world.Client.Create(ctx, &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"},
		Spec: v1alpha1.AddOnSourceSpec{
			URL: repo.URL(), Reference: &v1alpha1.GitReference{Branch: "main"}, Path: "addons",
			Interval: metav1.Duration{Duration: time.Hour}, ServiceAccountName: "deployer",
		},
	})).To(Succeed())
	return t
}

// commit commits files and requests a reconcile.
func (t tenant) commit(ctx context.Context, message string, files map[string]string) {
	GinkgoHelper()
	_, err := t.repo.Commit(message, files) //nolint:contextcheck // git on this machine, at once
	Expect(err).NotTo(HaveOccurred())
	t.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano)))
}

// patch changes the tenant's source.
func (t tenant) patch(ctx context.Context, patch string) {
	GinkgoHelper()
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "fleet"}}
	Expect(world.Client.Patch(ctx, source, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// addOn is an add-on on the clusters of the tenant, with its agent in a namespace of them.
func (t tenant) addOn(name, tag, agents string) map[string]string {
	return map[string]string{
		"addons/template.yaml": strings.ReplaceAll(sample.Template(name, tag), agentNamespace, agents),
		"addons/addon.yaml":    strings.Replace(sample.AddOn(name, "all"), "namespace: default", "namespace: "+t.namespace, 1),
	}
}

// reporter is an object with conditions.
type reporter interface {
	client.Object
	conditions.Getter
}

// says is the reason and message of a condition.
func says(ctx context.Context, o reporter, condition string) string {
	GinkgoHelper()
	Expect(world.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return conditions.GetReason(o, condition) + ": " + conditions.GetMessage(o, condition)
}

// deployedBy are the versions of the works of an add-on, wherever they are.
func deployedBy(ctx context.Context, addOn string) []string {
	GinkgoHelper()
	var list workv1.ManifestWorkList
	Expect(world.Client.List(ctx, &list, client.MatchingLabels{"open-cluster-management.io/addon-name": addOn})).To(Succeed())
	var works []string
	for i := range list.Items {
		works = append(works, list.Items[i].Namespace+" "+list.Items[i].Name+" "+string(list.Items[i].Spec.Workload.Manifests[0].Raw))
	}
	slices.Sort(works)
	return works
}

var _ = Describe("An operator with tenants", Serial, func() {
	It("lets none have another's add-on, namespaces of clusters that are not its own, or a rollout written by hand", func(ctx SpecContext) {
		policy := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: rights.Namespace, Name: "addonflow-tenants"},
			Data: map[string]string{
				"default":  "addOns: ['*']\n",
				"peaceful": "addOns: [peaceful]\n",
				"hostile":  "addOns: [hostile]\ntargetNamespaces: [hostile]\n",
			},
		}
		Expect(world.Client.Create(ctx, policy)).To(Succeed())
		let(ctx, rights.Namespace, "addonflow-tenants", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: rights.Namespace, Name: rights.ServiceAccount},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{policy.Name}, Verbs: []string{"get"}})
		all := clusters(2)
		peaceful, hostile := newTenant(ctx, "peaceful", all), newTenant(ctx, "hostile", all)
		world.Operator.Kill()
		guarded := options
		guarded.OperatorFlags = append(slices.Clone(options.OperatorFlags), "--tenants="+rights.Namespace+"/"+policy.Name)
		Expect(world.StartOperator(guarded)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			for _, t := range []tenant{peaceful, hostile} { // without the flag no policy bounds them
				t.patch(ctx, `{"spec":{"suspend":true}}`)
			}
			Expect(world.Operator.Stop()).To(Succeed())
			Expect(world.StartOperator(options)).To(Succeed())
		})

		peaceful.commit(ctx, "add it", peaceful.addOn("peaceful", "v1", agentNamespace))
		rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "peaceful", Name: "peaceful"}}
		Eventually(func() v1alpha1.Phase {
			_ = world.Client.Get(ctx, client.ObjectKeyFromObject(rollout), rollout)
			return rollout.Status.Phase
		}).Should(Equal(v1alpha1.PhaseSucceeded))
		before := deployedBy(ctx, "peaceful")
		Expect(before).To(HaveLen(len(all)))

		source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: "fleet"}}
		hostile.commit(ctx, "take the add-on", hostile.addOn("peaceful", "stolen", "hostile"))
		Eventually(says).WithArguments(ctx, source, "Ready").Should(And(
			HavePrefix("ValidationFailed: "), ContainSubstring("addons/addon.yaml:4: ClusterManagementAddOn/peaceful: metadata.name: the tenant has no add-on of that name")))
		hostile.commit(ctx, "take the clusters", hostile.addOn("hostile", "v1", "kube-system"))
		Eventually(says).WithArguments(ctx, source, "Ready").Should(And(HavePrefix("ValidationFailed: "), ContainSubstring(
			`addons/template.yaml:14: AddOnTemplate/hostile: spec.agentSpec.workload.manifests[0].metadata.namespace: the tenant may not use namespace "kube-system" of managed clusters; allowed: [hostile]`)))

		byHand := &v1alpha1.AddOnRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: "peaceful"},
			Spec: v1alpha1.AddOnRolloutSpec{
				Target:  rollout.Spec.Target.DeepCopy(),
				Removal: &v1alpha1.Removal{Commit: strings.Repeat("0", 40), Approved: true},
			},
		}
		Expect(world.Client.Create(ctx, byHand)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(world.Client.Delete(ctx, byHand)).To(Succeed()) })
		Eventually(says).WithArguments(ctx, byHand, "Stalled").Should(HavePrefix("TenantDenied: denied to the tenant: the tenant has no add-on peaceful"))
		Eventually(func() []string {
			var events corev1.EventList
			Expect(world.Client.List(ctx, &events, client.InNamespace("hostile"))).To(Succeed())
			var said []string
			for i := range events.Items {
				said = append(said, events.Items[i].InvolvedObject.Kind+" "+events.Items[i].Reason)
			}
			return said
		}).Should(ContainElement("AddOnRollout TenantDenied"))

		hostile.commit(ctx, "stay at home", hostile.addOn("hostile", "v2", "hostile"))
		Eventually(deployedBy).WithArguments(ctx, "hostile").Should(HaveLen(len(all)))
		Expect(deployedBy(ctx, "hostile")).To(HaveEach(ContainSubstring(`"namespace":"hostile"`)))
		Expect(deployedBy(ctx, "peaceful")).To(Equal(before))
	})
})
