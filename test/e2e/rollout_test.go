package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/sample"
)

var _ = Describe("Rolling out", func() {
	It("moves the canary first, soaks, and then the rest", func(ctx SpecContext) {
		all := clusters(5)
		s := newScene(ctx, "canary", all)
		policy := s.atV1("2s", "1m", "2", 0)
		Expect(s.running(all...)).To(allAt("v1", all...))

		before := s.generations()
		hold(all[0])
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:1]),
			"no other cluster moves while the canary is not verified, though its old pod is available")
		release(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
		Expect(mostInFlight("canary")).To(BeNumerically("<=", 2))
		Eventually(s.statusOf).WithArguments(sha).Should(Equal("success: 5/5 updated"))
		Eventually(s.statusOf).WithArguments(sha, "canary").Should(HavePrefix("success: "))
	})

	It("goes progressively, the mandatory canary group first", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "groups", all,
			fleet.Group{Name: "canary", Clusters: all[:1]}, fleet.Group{Name: "rest", Clusters: all[1:]})
		paced := func(tag string) map[string]string {
			tree := s.tree(tag, "")
			tree["addons/addon.yaml"] = strings.Replace(tree["addons/addon.yaml"], "type: All",
				"type: Progressive\n        progressive:\n          maxConcurrency: 2\n          progressDeadline: 1m\n          mandatoryDecisionGroups:\n          - groupName: canary", 1)
			return tree
		}
		s.deliver("v1", paced("v1"))

		before := s.generations()
		hold(all[0])
		sha := s.submit("v2", paced("v2"))
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:1]))
		release(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(mostInFlight("groups")).To(BeNumerically("<=", 2))
	})

	It("counts a silent cluster as failed at the deadline, and goes on within the budget", func(ctx SpecContext) {
		all := clusters(4)
		within, beyond := newScene(ctx, "budget", all), newScene(ctx, "no-budget", all)
		within.atV1("0s", "1m", "1", 1)
		beyond.atV1("0s", "1m", "1", 1)

		world.Fleet.Silence(all[2])
		DeferCleanup(func() { world.Fleet.Speak(all[2]) })
		ends, halts := within.commit("v2", within.stages("0s", "20s", "1", 1)), beyond.commit("v2", beyond.stages("0s", "20s", "1", 0))
		ro := within.awaitPhase(ends, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Counts.Failed).To(BeEquivalentTo(1))
		Expect(ro.Status.Message).To(ContainSubstring(all[2]), "a success with failures names them")

		ro = beyond.awaitPhase(halts, v1alpha1.PhaseFailed)
		Expect(ro.Status.Message).To(ContainSubstring(all[2]))
		Eventually(beyond.statusOf).WithArguments(halts).Should(And(HavePrefix("failure: "), ContainSubstring(all[2])))
		Consistently(func() int32 { return beyond.rollout().Status.Counts.InFlight }, "2s").Should(BeZero(),
			"beyond the budget no further cluster is admitted")
		Expect(beyond.running(all[3])).To(allAt("v1", all[3]))
	})

	It("fails a canary whose image never starts, by its own reason and before the deadline; a revert moves only it", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "bad", all)
		policy := s.atV1("1s", "30m", "2", 0)
		before := s.generations()

		sha := s.commit("never-starts", policy)
		ro := s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Expect(ro.Status.Failing).To(HaveLen(1))
		Expect(ro.Status.Failing[0].Cluster).To(Equal(all[0]))
		Expect(ro.Status.Failing[0].Reason).To(ContainSubstring("ProgressDeadlineExceeded"))
		Expect(s.running(all...)).To(allAt("v1", all...), "the old pods still serve")
		Expect(moved(before, s.generations())).To(Equal(all[:1]))
		Eventually(s.statusOf).WithArguments(sha).Should(And(HavePrefix("failure: "), ContainSubstring(all[0]), ContainSubstring("ProgressDeadlineExceeded")))

		reverted := s.revert(sha)
		ro = s.awaitPhase(reverted, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Reverting).To(BeTrue())
		Expect(moved(before, s.generations())).To(Equal(all[:1]), "only the cluster that got the bad content moves back")
		Expect(s.running(all...)).To(allAt("v1", all...))
		Eventually(s.statusOf).WithArguments(reverted).Should(HavePrefix("success: "))
	})

	It("rolls nothing for a commit without add-on content, and says so", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "readme", all)
		policy := s.stages("0s", "1m", "2", 0)
		first := s.commit("v1", policy)
		s.awaitPhase(first, v1alpha1.PhaseSucceeded)
		before := s.generations()

		sha := s.submit("words", map[string]string{"addons/README.md": "more words"})
		Eventually(s.sourceStatusOf).WithArguments(sha).Should(Equal("success: no add-on content changed; 1 add-on up to date"))
		Expect(s.statusOf(sha)).To(BeEmpty(), "the add-on is Succeeded and the commit does not change it")
		Expect(moved(before, s.generations())).To(BeEmpty())
		Expect(s.rollout().Status.Target.Commit).To(HaveSuffix(first))
	})

	It("refuses a broken commit whole, with file and line, and goes on with what ran", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "broken", all)
		policy := s.atV1("0s", "1m", "2", 0)
		before := s.generations()

		tree := s.tree("v2", policy)
		tree["addons/template.yaml"] = strings.Replace(tree["addons/template.yaml"], "{{CLUSTER_NAME}}", "{{CLUSTERNAME}}", 1)
		sha := s.submit("broken", tree)
		Eventually(s.sourceStatusOf).WithArguments(sha).Should(And(HavePrefix("failure: "), ContainSubstring("CLUSTERNAME"), ContainSubstring(" at addons/template.yaml:24: AddOnTemplate/broken")))
		Expect(s.statusOf(sha)).To(BeEmpty(), "the add-on is Succeeded; the context of the source is red for all")
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(BeEmpty())
		Expect(s.running(all...)).To(allAt("v1", all...))
	})

	It("shows a failed rollout on the commits that come on top of it", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "ontop", all)
		policy := s.atV1("0s", "30m", "2", 0)
		bad := s.commit("never-starts", policy)
		s.awaitPhase(bad, v1alpha1.PhaseFailed)
		Eventually(s.statusOf).WithArguments(bad).Should(HavePrefix("failure: halted in canary: "))
		Eventually(s.sourceStatusOf).WithArguments(bad).Should(HavePrefix("failure: ontop: halted in canary: "))

		readme := s.submit("words", map[string]string{"addons/README.md": "more words"})
		Eventually(s.statusOf).WithArguments(readme).Should(HavePrefix("failure: halted in canary: "))
		Eventually(s.statusOf).WithArguments(readme, "canary").Should(HavePrefix("failure: "))
		Eventually(s.sourceStatusOf).WithArguments(readme).Should(HavePrefix("failure: ontop: halted in canary: "))

		before := s.statusesOf(bad)
		pace := s.submit("another pace", map[string]string{"addons/rollout.yaml": sample.Rollout(s.addOn, s.stages("0s", "30m", "1", 0))})
		Eventually(s.statusOf).WithArguments(pace).Should(HavePrefix("failure: halted in canary: "))
		Eventually(s.sourceStatusOf).WithArguments(pace).Should(HavePrefix("failure: ontop: halted in canary: "))

		reverted := s.revert(bad)
		s.awaitPhase(reverted, v1alpha1.PhaseSucceeded)
		Eventually(s.statusOf).WithArguments(reverted).Should(HavePrefix("success: "))
		Eventually(s.sourceStatusOf).WithArguments(reverted).Should(HavePrefix("success: "))
		Expect(s.statusesOf(bad)).To(Equal(before), "an older commit keeps its verdict")
		for _, sha := range []string{readme, pace} {
			Expect(s.statusesOf(sha)).NotTo(ContainElement(HavePrefix("success")))
		}
	})

	It("uses the default policy from the next decision after addonrollout.yaml is deleted", func(ctx SpecContext) {
		all := clusters(5)
		s := newScene(ctx, "policy", all)
		policy := s.atV1("0s", "1m", "1", 0)

		hold(all[0])
		before := s.generations()
		first := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]))

		_, err := s.repo.Remove("no policy", "addons/rollout.yaml")
		Expect(err).NotTo(HaveOccurred())
		s.reconcile()
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all),
			"the add-on's own strategy is All")
		release(all[0])
		s.awaitPhase(first, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})
})
