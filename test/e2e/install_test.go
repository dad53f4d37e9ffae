package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

// patchCluster patches a ManagedCluster.
func (s *scene) patchCluster(name, patch string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(world.Client.Patch(s.ctx, cluster, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// label sets the scene's own label of a cluster; "null" removes it.
func (s *scene) label(value string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		s.patchCluster(name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, "example.com/"+s.addOn, value))
	}
}

// manual is the tree with installStrategy Manual and a policy.
func (s *scene) manual(tag, policy string) map[string]string {
	files := s.tree(tag, policy)
	text, _, _ := strings.Cut(files["addons/addon.yaml"], "  installStrategy:")
	files["addons/addon.yaml"] = text + "  installStrategy:\n    type: Manual\n"
	return files
}

var _ = Describe("Installing", func() {
	It("by the labels of clusters, and removes from one that lost them", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "labelled", all[:1])
		handMade := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: all[3], Name: "labelled"}}
		Expect(world.Client.Create(ctx, handMade)).To(Succeed())
		s.label(`"edge"`, all[0], all[1])
		DeferCleanup(func(ctx SpecContext) { s.ctx = ctx; s.label("null", all...) })
		sha := s.deliver("v1", s.manual("v1", "  clusterLabelSelector: {matchLabels: {example.com/labelled: edge}}\n"))
		Expect(s.installed()).To(Equal([]string{all[0], all[1], all[3]}))

		By("a cluster gets the labels, and gets the add-on")
		s.label(`"edge"`, all[2])
		Eventually(s.installed).Should(Equal(all))
		Eventually(func() map[string]string { return s.running(all...) }).Should(allAt("v1", all...))

		By("a cluster loses the labels, waits out its grace period, and loses the add-on")
		s.label("null", all[1])
		Eventually(said).WithArguments(s.addOn).Should(ContainElement(ContainSubstring("1 cluster to remove: grace period until")))
		Eventually(s.statusesOf).WithArguments(sha, "removal_guard").Should(
			ContainElement(ContainSubstring("pending: 1 cluster to remove: grace period until")), "the commit says so too")
		Eventually(s.installed).Should(Equal([]string{all[0], all[2], all[3]}), "the hand-made one has no labels and stays")
		Eventually(s.statusOf).WithArguments(sha, "removal_guard").Should(Equal("success: no cluster waits to be removed"))

		By("the selector leaves Git: Manual removes no cluster")
		s.deliver("manual", s.manual("v2", ""))
		Consistently(s.installed, "3s").Should(Equal([]string{all[0], all[2], all[3]}))
		kept := s.addOnOf(all[3])
		Expect(kept.UID).To(Equal(handMade.UID), "rolled out to, and never made anew")
		Expect(kept.OwnerReferences).To(BeEmpty())
		Expect(kept.Labels).NotTo(HaveKey(v1alpha1.ManagedByLabel))
	})

	It("nothing where the ManagedCluster disables automatic installation", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "disabled", all)
		disable := `{"metadata":{"annotations":{"addon.open-cluster-management.io/disable-automatic-installation":%s}}}`
		s.patchCluster(all[1], fmt.Sprintf(disable, `"true"`))
		DeferCleanup(func(ctx SpecContext) { s.ctx = ctx; s.patchCluster(all[1], fmt.Sprintf(disable, "null")) })
		sha := s.commit("v1", "")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.installed()).To(Equal([]string{all[0], all[2]}))

		s.patchCluster(all[1], fmt.Sprintf(disable, "null"))
		Eventually(s.installed).Should(Equal(all))
		s.patchCluster(all[1], fmt.Sprintf(disable, `"true"`))
		Consistently(s.installed, "3s").Should(Equal(all), "what is installed stays")
	})

	It("approves a shrink once, by the annotation with the commit", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "approved", all)
		sha := s.commit("v1", "")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		s.annotateRollout(v1alpha1.ApproveRemovalAnnotation, sha)
		for _, name := range all[1:] {
			Expect(world.Fleet.Leave(ctx, demo.Namespace, "approved-all", name)).To(Succeed())
		}
		Eventually(s.installed).Should(Equal(all[:1]))
		Expect(s.rollout().Status.Ledger.Removal.UsedApproval).To(Equal(sha))
	})
})
