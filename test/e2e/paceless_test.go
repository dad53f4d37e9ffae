package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var _ = Describe("With --default-canary", Serial, func() {
	BeforeEach(func() {
		careful := options
		careful.OperatorFlags = append(slices.Clone(options.OperatorFlags), "--default-canary")
		Expect(world.Operator.Stop()).To(Succeed())
		Expect(world.StartOperator(careful)).To(Succeed())
		DeferCleanup(func() {
			Expect(world.Operator.Stop()).To(Succeed())
			Expect(world.StartOperator(options)).To(Succeed())
		})
	})

	It("an add-on without a pace moves one cluster, then a tenth at a time, and a held cluster after its hold", func(ctx SpecContext) {
		all := clusters(5)
		s := newScene(ctx, "paceless", all)
		at := func(tag string) map[string]string {
			tree := s.tree(tag, "")
			tree["addons/addon.yaml"], _, _ = strings.Cut(tree["addons/addon.yaml"], "      rolloutStrategy:")
			return tree
		}
		hold(all...)
		first := s.submit("v1", at("v1"))
		Eventually(s.generations).Should(HaveLen(5), "a first install has no canary")
		release(all...)
		s.awaitPhase(first, v1alpha1.PhaseSucceeded)

		By("leaving a cluster alone for an hour")
		until := func(d time.Duration) {
			s.holdUntil(all[0], fmt.Sprintf("%q", time.Now().Add(d).UTC().Format(time.RFC3339)))
		}
		until(time.Hour)
		DeferCleanup(func(ctx SpecContext) { s.ctx = ctx; s.holdUntil(all[0], "null") })
		hold(all...)
		before := s.generations()
		sha := s.submit("v2", at("v2"))
		Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(1))
		canary := moved(before, s.generations())
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(canary))
		Expect(canary).NotTo(Equal(all[:1]))
		Expect(s.rollout().Status.Stages).To(HaveExactElements(HaveField("Name", "canary"), HaveField("Name", "rest")))
		release(canary...)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(2))
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(HaveLen(2))
		release(all...)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(moved(before, s.generations())).To(Equal(all[1:]))
		Eventually(s.statusOf).WithArguments(sha).Should(Equal("success: 4/5 updated, 1 held by annotation (" + all[0] + ")"))
		Expect(s.command(0, world.Kubeconfig, "why", all[0])).To(MatchRegexp(
			"^" + all[0] + ": Held in stage rest at paceless-[0-9a-f]{10}: held until .* by annotation addonflow.io/hold-until of its ManagedCluster"))

		By("letting the time of the hold come")
		until(2 * time.Second)
		Eventually(func() map[string]string { return s.running(all...) }).Should(allAt("v2", all...))
		Eventually(func() string { return s.rollout().Status.Message }).Should(Equal("5/5 updated"))
		s.wroteOnce(before)
	})
})
