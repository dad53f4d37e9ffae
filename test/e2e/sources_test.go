package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/rights"
)

// varied is the tree of an add-on whose image tag is made of a ConfigMap's level, a
// label and a claim of the cluster.
func (s *scene) varied(level, policy string) map[string]string {
	files := s.tree("{{LEVEL}}-{{CLUSTER_LABEL_example_com_zone}}-{{CLUSTER_CLAIM_id_k8s_io}}", policy)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"], "metadata:\n",
		"metadata:\n  annotations: {addonflow.io/config-variables: \"LEVEL=configmaps{.data.level}\"}\n", 1)
	files["addons/addon.yaml"] = strings.Replace(files["addons/addon.yaml"], "  installStrategy:",
		"  - resource: configmaps\n    defaultConfig: {namespace: default, name: "+s.addOn+"}\n  installStrategy:", 1)
	files["addons/settings.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: " + s.addOn + "}\ndata: {level: " + level + "}\n"
	return files
}

// zone sets the label that the add-on varied reads; "null" takes it away.
func (s *scene) zone(cluster, value string) {
	GinkgoHelper()
	s.patchCluster(cluster, fmt.Sprintf(`{"metadata":{"labels":{"example.com/zone":%s}}}`, value))
}

// claim makes a cluster claim an id.
func (s *scene) claim(cluster, id string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"clusterClaims":[{"name":"id.k8s.io","value":%q}]}}`, id)
	Expect(world.Client.Status().Patch(s.ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

var _ = Describe("Content that differs by cluster", func() {
	It("is made of labels and claims of the cluster, and of a ConfigMap whose change reaches the canary first", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "varied", all)
		Expect(rights.Grant(ctx, world.Client, "configmaps-as-configurations", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		})).To(Succeed())
		for i, name := range all {
			s.claim(name, fmt.Sprint(i))
			if i < 3 {
				s.zone(name, `"eu"`)
			}
		}
		DeferCleanup(func(ctx SpecContext) {
			s.ctx = ctx
			for _, name := range all {
				s.zone(name, "null")
			}
		})

		By("failing, and naming, the cluster without the label, within the budget")
		policy := s.stages("0s", "2m", "3", 1)
		sha := s.deliver("debug", s.varied("debug", policy))
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "debug-eu-0", all[1]: "debug-eu-1", all[2]: "debug-eu-2", all[3]: ""}))
		Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("success: 3/4 updated, within the budget: 1 failed (" + all[3]))
		Eventually(s.addOnCondition).WithArguments(all[3], "Configured").Should(And(
			HavePrefix("False "), ContainSubstring("no value for CLUSTER_LABEL_example_com_zone")))
		Expect(s.addOnOf(all[0]).Status.SupportedConfigs).To(ContainElement(addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}))
		Expect(s.addOnOf(all[0]).Status.ConfigReferences).To(ContainElement(And(
			HaveField("Resource", "configmaps"), HaveField("ConfigReferent.Name", s.addOn), HaveField("DesiredConfig.SpecHash", HaveLen(64)))))

		By("installing there once it has one, and moving no other cluster")
		before := s.generations()
		s.zone(all[3], `"us"`)
		Eventually(func() map[string]string { return s.running(all[3]) }).Should(allAt("debug-us-3", all[3]))
		s.awaitRest()
		Expect(moved(before, s.generations())).To(Equal(all[3:]))

		By("changing the ConfigMap: the canary alone, then the others")
		before = s.generations()
		hold(all[0])
		sha = s.submit("info", s.varied("info", policy))
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:1]))
		release(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "info-eu-0", all[1]: "info-eu-1", all[2]: "info-eu-2", all[3]: "info-us-3"}))
		s.wroteOnce(before)

		By("changing a claim, and a label: that cluster moves")
		before = s.generations()
		s.claim(all[1], "moved")
		s.zone(all[2], `"ap"`)
		Eventually(func() map[string]string { return s.running(all...) }).Should(Equal(
			map[string]string{all[0]: "info-eu-0", all[1]: "info-eu-moved", all[2]: "info-ap-2", all[3]: "info-us-3"}))
		s.awaitRest()
		Expect(moved(before, s.generations())).To(Equal(all[1:3]))
	})
})

var _ = Describe("Annotations of a ManagedCluster", func() {
	It("are copied to its add-ons and removed again; what a user wrote stays, and hand-made add-ons are left alone", func(ctx SpecContext) {
		const site, team = "addon.open-cluster-management.io/site", "addon.open-cluster-management.io/team"
		all := clusters(3)
		s := newScene(ctx, "annotated", all[:2])
		s.handMade(all[2], map[string]string{team: "theirs"})
		s.deliver("v1", s.tree("v1", ""))
		annotations := func(cluster string) map[string]string { return s.addOnOf(cluster).Annotations }
		annotate := func(value string) {
			GinkgoHelper()
			for _, name := range all {
				s.patchCluster(name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, site, value))
			}
		}
		DeferCleanup(func(ctx SpecContext) { s.ctx = ctx; annotate("null") })
		s.annotateAddOn(all[0], `"`+team+`":"mine"`)

		annotate(`"a"`)
		Eventually(annotations).WithArguments(all[0]).Should(And(HaveKeyWithValue(site, "a"), HaveKeyWithValue(team, "mine")))
		Eventually(annotations).WithArguments(all[1]).Should(HaveKeyWithValue(site, "a"))
		s.annotateAddOn(all[1], `"`+site+`":"b"`)
		annotate(`"c"`)
		Eventually(annotations).WithArguments(all[0]).Should(HaveKeyWithValue(site, "c"))
		annotate("null")
		Eventually(annotations).WithArguments(all[0]).Should(And(Not(HaveKey(site)), HaveKeyWithValue(team, "mine")))
		Expect(annotations(all[1])).To(HaveKeyWithValue(site, "b"), "written over the cluster's by a user")
		Expect(annotations(all[2])).To(Equal(map[string]string{team: "theirs"}), "hand-made")
		s.deliver("v2", s.tree("v2", ""))
		Expect(annotations(all[0])).To(HaveKeyWithValue(team, "mine"), "new content does not take it away either")
		Expect(annotations(all[1])).To(HaveKeyWithValue(site, "b"))
	})
})
