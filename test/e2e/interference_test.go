package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var _ = Describe("A rollout in the middle of a wave", func() {
	It("is rebuilt from the works when its status is lost, and never started over", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "emptied", all)
		policy := s.stages("1s", "2m", "2", 0)
		s.awaitPhase(s.commit("v1", policy), v1alpha1.PhaseSucceeded)
		before, sha := s.wave(policy, all, 3)

		ro := s.rollout()
		ro.Status = v1alpha1.AddOnRolloutStatus{}
		Eventually(func() error { // it may be written in between
			ro.ResourceVersion = s.rollout().ResourceVersion
			return world.Client.Status().Update(ctx, ro)
		}).Should(Succeed())
		Eventually(func() *v1alpha1.Target { return s.rollout().Status.Target }).ShouldNot(BeNil())
		Consistently(func() []string { return moved(before, s.generations()) }, "4s").Should(HaveLen(3),
			"who was in flight still is, and takes the whole limit")
		s.release(all)
		ro = s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(ro.Status.Stable.Commit).To(HaveSuffix(sha))
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(seen.mostInFlight("emptied")).To(BeNumerically("<=", 3), "beside the wave of two, the canary soaks once more")
		s.wroteOnce(before)
	})

	It("stops for the annotation that suspends it, and goes on without it", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "suspended", all)
		policy := s.stages("0s", "2m", "2", 0)
		s.awaitPhase(s.commit("v1", policy), v1alpha1.PhaseSucceeded)
		before, sha := s.wave(policy, all, 3)

		s.annotateRollout(v1alpha1.SuspendAnnotation, "true")
		s.awaitPhase(sha, v1alpha1.PhaseSuspended)
		s.release(all)
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(3), "who is in flight ends")
		Consistently(func() []string { return moved(before, s.generations()) }, "3s").Should(HaveLen(3), "and nobody follows")
		Eventually(s.told).WithArguments(sha).Should(HavePrefix("pending: suspended"))

		s.annotateRollout(v1alpha1.SuspendAnnotation, "false")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})

	It("that a newer commit overtakes says by which, on every context of the old one", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "overtaken", all)
		policy := s.stages("0s", "2m", "2", 0)
		s.awaitPhase(s.commit("v1", policy), v1alpha1.PhaseSucceeded)
		before, old := s.wave(policy, all, 3)

		sha := s.commit("v3", policy)
		Eventually(func() string { return s.rollout().Status.Target.Commit }).Should(HaveSuffix(sha))
		Eventually(s.told, "90s").WithArguments(old).Should(HavePrefix("error: superseded by " + sha[:7]))
		Eventually(s.told, "90s").WithArguments(old, "everyone").Should(HavePrefix("error: superseded by " + sha[:7]))
		s.release(all)
		ro := s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v3", all...))
		Expect(ro.Status.History[1].SupersededBy).To(HaveSuffix(sha))
		Expect(seen.mostInFlight("overtaken")).To(BeNumerically("<=", 3), "who is in flight is retargeted at once, beside the canary")
		for _, name := range all[3:] {
			Expect(s.generations()[name]).To(BeNumerically("<=", before[name]+1), "not admitted to v2, so never sent it")
		}
	})
})

var _ = Describe("An AddOnRevision that is deleted while clusters run it", Serial, func() {
	It("holds these clusters by name, and lets the rollout go on", func(ctx SpecContext) {
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

		Eventually(s.events).WithArguments(v1alpha1.RevisionMissingReason).Should(ContainElement(
			And(ContainSubstring("held 3 clusters"), ContainSubstring(all[1]), ContainSubstring(running))))
		Consistently(func() []string { return moved(before, s.generations()) }, 2*time.Second).Should(Equal(all[:1]))
		Expect(s.running(all[1:]...)).To(allAt("v1", all[1:]...), "nobody loses what runs")
		s.release(all)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})
})

// wave commits v2 while every cluster but the canary holds back its new pods, or
// that one too where only it is to move, and returns when so many have moved: the
// generations from before, and the commit.
func (s *scene) wave(policy string, members []string, moving int) (before map[string]int64, sha string) {
	GinkgoHelper()
	held := members[1:]
	if moving == 1 {
		held = members
	}
	for _, name := range held {
		world.Fleet.Hold(name)
	}
	DeferCleanup(func() { s.release(members) })
	before = s.generations()
	sha = s.commit("v2", policy)
	Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(moving))
	return before, sha
}

// release lets clusters go on; releasing one that is not held changes nothing.
func (s *scene) release(members []string) {
	for _, name := range members {
		world.Fleet.Release(name)
	}
}

// wroteOnce expects one write per work since before, on every cluster.
func (s *scene) wroteOnce(before map[string]int64) {
	GinkgoHelper()
	for name, generation := range s.generations() {
		Expect(generation).To(Equal(before[name]+1), "written once on "+name)
	}
}

// events are the messages of the rollout's events of one reason.
func (s *scene) events(reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(world.Client.List(s.ctx, &list, client.InNamespace(s.rollout().Namespace))).To(Succeed())
	var messages []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Name == s.addOn && strings.EqualFold(e.InvolvedObject.Kind, v1alpha1.AddOnRolloutKind) {
			messages = append(messages, e.Message)
		}
	}
	return messages
}
