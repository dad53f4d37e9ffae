package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var _ = Describe("A canary whose agent", func() {
	It("reports works as applied too early is verified only after it applied them", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "liar", all)
		policy := s.atV1("0s", "2m", "2", 0)

		world.Fleet.Lie(all[0])
		DeferCleanup(func() { world.Fleet.Honest(all[0]) })
		before := s.generations()
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Eventually(s.availableAsAsked).WithArguments(all[0]).Should(BeTrue(), "the false report has arrived")
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:1]),
			"counts and conditions are as they should be, the echoed content is not")
		Expect(s.running(all...)).To(allAt("v1", all...))

		world.Fleet.Honest(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})

	It("cannot apply its works fails at its deadline with the agent's message, and recovers", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "refusing", all)
		s.atV1("0s", "2m", "2", 0)

		world.Fleet.Fail(all[0], "admission webhook denied the request")
		DeferCleanup(func() { world.Fleet.Recover(all[0]) })
		before := s.generations()
		sha := s.commit("v2", s.stages("0s", "15s", "2", 0))
		ro := s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Expect(ro.Status.Failing).To(HaveLen(1))
		Expect(ro.Status.Failing[0].Cluster).To(Equal(all[0]))
		Expect(ro.Status.Failing[0].Reason).To(ContainSubstring("admission webhook denied the request"))
		Eventually(s.statusOf).WithArguments(sha).Should(And(HavePrefix("failure: "), ContainSubstring(all[0])))
		Expect(moved(before, s.generations())).To(Equal(all[:1]))
		Expect(s.running(all...)).To(allAt("v1", all...), "what ran runs on")

		world.Fleet.Recover(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("success: "))
		Expect(s.statusesOf(sha)).To(ContainElement(HavePrefix("failure: ")), "the verdict of before stays in the list")
		s.wroteOnce(before)
	})

	It("flaps never soaks, counts as one failure, and recovers", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "flapping", all)
		s.atV1("0s", "2m", "2", 0)

		world.Fleet.Flap(all[0])
		DeferCleanup(func() { world.Fleet.Steady(all[0]) })
		before := s.generations()
		sha := s.commit("v2", s.stages("5s", "15s", "2", 0)) // longer than the agent ever stays available
		ro := s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Expect(ro.Status.Counts.Failed).To(BeEquivalentTo(1), "however often it was lost")
		Expect(ro.Status.Failing[0].Cluster).To(Equal(all[0]))
		Expect(moved(before, s.generations())).To(Equal(all[:1]), "no cluster follows content that does not stay verified")
		Eventually(s.statusesOf).WithArguments(sha).Should(ContainElement(And(HavePrefix("failure: "), ContainSubstring(all[0]))))

		world.Fleet.Steady(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})
})

// availableAsAsked reports whether the agent reports the current work of a cluster as
// available.
func (s *scene) availableAsAsked(cluster string) bool {
	GinkgoHelper()
	var works workv1.ManifestWorkList
	Expect(world.Client.List(s.ctx, &works, client.InNamespace(cluster),
		client.MatchingLabels{"open-cluster-management.io/addon-name": s.addOn})).To(Succeed())
	Expect(works.Items).To(HaveLen(1))
	c := apimeta.FindStatusCondition(works.Items[0].Status.Conditions, workv1.WorkAvailable)
	return c != nil && c.Status == "True" && c.ObservedGeneration == works.Items[0].Generation
}
