package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

var _ = Describe("A fleet that changes", func() {
	It("installs a joiner at the stable revision first, and moves it last", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "joiner", all[:3])
		policy := s.atV1("0s", "1m", "1", 0)

		hold(all[0])
		before := s.generations()
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Expect(world.Fleet.Join(ctx, demo.Namespace, "joiner-all", all[3])).To(Succeed())
		Eventually(func() map[string]string { return s.running(all[3]) }).Should(allAt("v1", all[3]),
			"content that is proven, while the new one is not")
		release(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Eventually(func() map[string]string { return s.running(all...) }).Should(allAt("v2", all...))
	})

	It("removes the add-on from a cluster that leaves, and leaves a hand-made one alone", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "leaver", all[:2])
		s.handMade(all[2], nil)
		s.awaitPhase(s.commit("v1", ""), v1alpha1.PhaseSucceeded)
		Eventually(func() map[string]string { return s.running(all...) }).Should(allAt("v1", all...), "a hand-made add-on is rolled out to")

		Expect(world.Fleet.Leave(ctx, demo.Namespace, "leaver-all", all[1])).To(Succeed())
		Eventually(s.installed).Should(Equal([]string{all[0], all[2]}))
		Eventually(func() []string { return world.Fleet.Objects(all[1]) }).ShouldNot(ContainElement(HaveSuffix("/leaver")))
		Consistently(s.installed, "2s").Should(Equal([]string{all[0], all[2]}))
		Expect(s.addOnOf(all[2]).OwnerReferences).To(BeEmpty(), "a hand-made add-on never gets our owner reference")
	})

	It("gives the slot of a cluster that leaves in the middle of a wave to the next one", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "deserter", all)
		policy := s.atV1("0s", "5m", "1", 0)

		hold(all[1])
		before := s.generations()
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:2]))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:2]), "the only slot is taken")
		Expect(world.Fleet.Leave(ctx, demo.Namespace, "deserter-all", all[1])).To(Succeed())
		ro := s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Counts.Total).To(BeEquivalentTo(3))
		Expect(ro.Status.Counts.Failed).To(BeZero(), "a cluster that left has not failed")
		stayed := []string{all[0], all[2], all[3]}
		Expect(s.running(stayed...)).To(allAt("v2", stayed...))
		Eventually(s.gone(all[1])).Should(Succeed())
		Expect(mostInFlight("deserter")).To(BeEquivalentTo(1))
	})

	It("parks a cluster lost in the middle of a wave, and catches up with it on its return", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "lost", all)
		policy := s.atV1("0s", "20s", "3", 0)

		hold(all[2])
		sha := s.commit("v2", policy)
		Eventually(func() map[string]string { return s.running(all[1], all[3]) }).Should(allAt("v2", all[1], all[3]))
		Expect(world.Fleet.Disappear(ctx, all[2])).To(Succeed())
		ro := s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Counts.Parked).To(BeEquivalentTo(1), "lost is not failed")
		Expect(ro.Status.Counts.Failed).To(BeZero())
		Expect(ro.Status.ParkAfter.Duration).To(Equal(4*time.Second), "tools that plan see the operator's flag")

		release(all[2])
		Expect(world.Fleet.Return(ctx, all[2])).To(Succeed())
		Eventually(func() map[string]string { return s.running(all[2]) }).Should(allAt("v2", all[2]))
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(4))
	})

	It("does not roll out content further whose canary left, until the next commit", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "taken", all)
		policy := s.atV1("0s", "1m", "2", 0)

		hold(all[0])
		before := s.generations()
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Expect(world.Fleet.Disappear(ctx, all[0])).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(world.Fleet.Return(ctx, all[0])).To(Succeed()) })
		for _, placement := range []string{"taken-canary", "taken-all"} {
			Expect(world.Fleet.Leave(ctx, demo.Namespace, placement, all[0])).To(Succeed(), "as OCM does with its taint")
		}
		Eventually(s.installed).Should(Equal(all[1:]), "its grace period is over")
		Eventually(func() string { return s.rollout().Status.Message }).Should(HavePrefix("halted in canary: 1 cluster left, none verified and soaked (" + all[0] + ")"))
		Expect(s.rollout().Status.Phase).To(Equal(v1alpha1.PhaseFailed))
		Consistently(func() map[string]string { return s.running(all[1:]...) }, "3s").Should(allAt("v1", all[1:]...))
		Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("failure: halted in canary: 1 cluster left"))
		Eventually(s.statusOf).WithArguments(sha, "canary").Should(HavePrefix("failure: "))

		sha = s.commit("v3", policy)
		Eventually(s.statusOf).WithArguments(sha, "canary").Should(ContainSubstring("selects no cluster of the install set"), "no cluster would prove it")
		Expect(world.Fleet.Join(ctx, demo.Namespace, "taken-canary", all[1])).To(Succeed())
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all[1:]...)).To(allAt("v3", all[1:]...))
	})

	It("removes no cluster when a placement is deleted, and continues when it is restored", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "placement", all)
		policy := s.atV1("0s", "1m", "3", 0)

		Expect(world.Fleet.DeletePlacement(ctx, demo.Namespace, "placement-all")).To(Succeed())
		Consistently(s.installed, "10s", time.Second).Should(Equal(all), "longer than the grace period")
		Expect(world.Fleet.RestorePlacement(ctx, demo.Namespace, "placement-all")).To(Succeed())
		s.awaitPhase(s.commit("v2", policy), v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})

	It("holds an add-on that left Git until its removal is approved, and deletes the ClusterManagementAddOn last", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "removed", all)
		s.atV1("0s", "1m", "3", 0)

		sha, err := s.repo.Remove("away", "addons/template.yaml", "addons/addon.yaml", "addons/rollout.yaml")
		Expect(err).NotTo(HaveOccurred())
		s.reconcile()
		Eventually(func() *v1alpha1.Removal { return s.rollout().Spec.Removal }).ShouldNot(BeNil())
		Consistently(s.installed, "8s", time.Second).Should(Equal(all), "nothing approved it, however long")
		Expect(s.running(all...)).To(allAt("v1", all...))

		patch := client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+v1alpha1.ApproveRemovalAnnotation+`":"`+sha+`"}}}`))
		Expect(world.Client.Patch(ctx, s.rollout(), patch)).To(Succeed())
		Eventually(s.installed).Should(BeEmpty())
		Eventually(func() error {
			return world.Client.Get(ctx, client.ObjectKey{Name: "removed"}, &addonv1alpha1.ClusterManagementAddOn{})
		}).ShouldNot(Succeed())
	})
})
