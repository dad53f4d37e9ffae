package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

var _ = Describe("A rollout in the middle of a wave", func() {
	It("is rebuilt from the works when its status is lost, and never started over", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "emptied", all)
		policy := s.atV1("1s", "2m", "2", 0)
		before, sha := s.wave(policy, all, 3)

		ro := s.rollout()
		ro.Status = v1alpha1.AddOnRolloutStatus{}
		Eventually(func() error { // it may be written in between
			ro.ResourceVersion = s.rollout().ResourceVersion
			return world.Client.Status().Update(ctx, ro)
		}).Should(Succeed())
		Eventually(func() *v1alpha1.Target { return s.rollout().Status.Target }).ShouldNot(BeNil())
		Consistently(func() []string { return moved(before, s.generations()) }, "4s").Should(HaveLen(3),
			"clusters in flight stay so, and take the whole limit")
		release(all...)
		ro = s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Stable.Commit).To(HaveSuffix(sha))
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(mostInFlight("emptied")).To(BeNumerically("<=", 3), "beside the wave of two, the canary soaks once more")
		s.wroteOnce(before)
	})

	It("stops for the annotation that suspends it, and goes on without it", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "suspended", all)
		policy := s.atV1("0s", "2m", "2", 0)
		before, sha := s.wave(policy, all, 3)

		s.annotateRollout(v1alpha1.SuspendAnnotation, "true")
		s.awaitPhase(sha, v1alpha1.PhaseSuspended)
		release(all...)
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(3), "clusters in flight finish")
		Consistently(func() []string { return moved(before, s.generations()) }, "3s").Should(HaveLen(3), "and no other cluster follows")

		s.annotateRollout(v1alpha1.SuspendAnnotation, "false")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})

	It("that a newer commit overtakes ends every context of the old commit, naming the new one", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "overtaken", all)
		policy := s.atV1("0s", "2m", "2", 0)
		before, old := s.wave(policy, all, 3)

		sha := s.commit("v3", policy)
		Eventually(func() string { return s.rollout().Status.Target.Commit }).Should(HaveSuffix(sha))
		Eventually(s.statusOf).WithArguments(old).Should(HavePrefix("error: superseded by " + sha[:7]))
		Eventually(s.statusOf).WithArguments(old, "everyone").Should(HavePrefix("error: superseded by " + sha[:7]))
		release(all...)
		ro := s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v3", all...))
		Expect(ro.Status.History[1].SupersededBy).To(HaveSuffix(sha))
		Expect(mostInFlight("overtaken")).To(BeNumerically("<=", 3), "clusters in flight are retargeted at once, beside the canary")
		for _, name := range all[3:] {
			Expect(s.generations()[name]).To(BeNumerically("<=", before[name]+1), "not admitted to v2, so never sent it")
		}
	})
})

var _ = Describe("An AddOnRevision that is deleted while clusters run it", Serial, func() {
	It("holds these clusters by name, and continues the rollout", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "bodiless", all)
		policy := s.stages("0s", "2m", "3", 0)
		running := s.awaitPhase(s.commit("v1", policy), v1alpha1.PhaseSucceeded).Status.Target.Revision
		before, sha := s.wave(policy, all, 1)

		world.Operator.Kill() // it keeps in memory what it has read
		body := &v1alpha1.AddOnRevision{}
		Expect(world.Client.Get(ctx, client.ObjectKey{Namespace: s.rollout().Namespace, Name: running}, body)).To(Succeed())
		Expect(world.Client.Delete(ctx, body)).To(Succeed())
		Expect(world.StartOperator(options)).To(Succeed())

		Eventually(s.events).WithArguments(demo.Namespace, v1alpha1.RevisionMissingReason).Should(ContainElement(
			And(ContainSubstring("held 3 clusters"), ContainSubstring(all[1]), ContainSubstring(running))))
		Consistently(func() []string { return moved(before, s.generations()) }, 2*time.Second).Should(Equal(all[:1]))
		Expect(s.running(all[1:]...)).To(allAt("v1", all[1:]...), "no cluster loses what runs")
		release(all...)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})
})
