package e2e

import (
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// beside is another add-on of the scene's source and clusters.
func (s *scene) beside(addOn string, members []string) *scene {
	GinkgoHelper()
	other := &scene{ctx: s.ctx, addOn: addOn, repo: s.repo, sharing: s.addOn}
	other.place(addOn+"-all", members)
	return other
}

var _ = Describe("An add-on that depends on another one", func() {
	It("is installed and upgraded after it on every cluster, and removed before it", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "dependent", all)
		base := s.beside("base", all)
		alone := func(tag string) map[string]string { return s.tree(tag, "  dependsOn:\n  - addOn: base\n") }
		both := func(tag string) map[string]string {
			files := alone(tag)
			for name, text := range base.tree(tag, "") {
				files[strings.Replace(name, "addons/", "addons/base/", 1)] = text
			}
			return files
		}

		By("waiting, while the other one does not exist")
		first := s.submit("alone", alone("v1"))
		Eventually(func() string { return s.rollout().Status.Message }).Should(ContainSubstring("waits for add-on base, which does not exist in namespace default"))
		Eventually(s.statusOf).WithArguments(first).Should(And(HavePrefix("pending: "), ContainSubstring("waits for add-on base")))
		Expect(s.generations()).To(BeEmpty())

		By("following it from cluster to cluster")
		hold(all[1])
		second := s.submit("both", both("v1"))
		Eventually(func() map[string]string { return s.running(all...) }).Should(Equal(map[string]string{all[0]: "v1", all[1]: "", all[2]: "v1"}))
		Consistently(func() []string { return s.works(all[1]) }, "2s").Should(BeEmpty())
		Expect(base.works(all[1])).To(HaveLen(1))
		Expect(s.command(0, world.Kubeconfig, "why", all[1])).To(HavePrefix(all[1] + ": Waiting in stage dependent-all: waits for add-on base to be verified here"))
		release(all[1])
		s.awaitPhase(first, v1alpha1.PhaseSucceeded)
		base.awaitPhase(second, v1alpha1.PhaseSucceeded)

		By("upgrading both with one commit")
		hold(all[0])
		before := s.generations()
		sha := s.submit("v2", both("v2"))
		Eventually(func() map[string]string { return s.running(all[1:]...) }).Should(allAt("v2", all[1:]...))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[1:]))
		release(all[0])
		for _, addOn := range []*scene{s, base} {
			addOn.awaitPhase(sha, v1alpha1.PhaseSucceeded)
			Expect(addOn.running(all...)).To(allAt("v2", all...))
			Eventually(addOn.statusOf).WithArguments(sha).Should(Equal("success: 3/3 updated"))
		}
		s.wroteOnce(before)

		By("removing both with one commit, the other one approved first")
		gone, err := s.repo.Remove("away", slices.Sorted(maps.Keys(both("")))...)
		Expect(err).NotTo(HaveOccurred())
		s.reconcile()
		for _, addOn := range []*scene{base, s} {
			Eventually(func() *v1alpha1.Removal { return addOn.rollout().Spec.Removal }).ShouldNot(BeNil())
		}
		base.annotateRollout(v1alpha1.ApproveRemovalAnnotation, gone)
		Eventually(base.condition).WithArguments("Reconciling").Should(ContainSubstring("3 clusters to remove: wait until dependent, which depends on it, is removed there"))
		world.Fleet.Silence(all[2])
		DeferCleanup(func() { world.Fleet.Speak(all[2]) })
		s.annotateRollout(v1alpha1.ApproveRemovalAnnotation, gone)
		for _, name := range all[:2] {
			Eventually(s.gone(name)).Should(Succeed())
			Eventually(base.gone(name)).Should(Succeed())
		}
		Consistently(base.installed, "2s").Should(Equal(all[2:]), "the agent has not removed the work of the dependent add-on")
		Expect(s.works(all[2])).To(HaveLen(1))
		world.Fleet.Speak(all[2])
		for _, addOn := range []*scene{s, base} {
			Eventually(addOn.gone(all[2])).Should(Succeed())
			Eventually(func() bool {
				return apierrors.IsNotFound(world.Client.Get(ctx, client.ObjectKey{Name: addOn.addOn}, &addonv1alpha1.ClusterManagementAddOn{}))
			}).Should(BeTrue())
		}
	})
})
