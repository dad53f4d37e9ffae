package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/rights"
)

// progression is what the add-on's ClusterManagementAddOn says of its only placement.
func (s *scene) progression() string {
	var addOn addonv1alpha1.ClusterManagementAddOn
	if world.Client.Get(s.ctx, client.ObjectKey{Name: s.addOn}, &addOn) != nil || len(addOn.Status.InstallProgressions) != 1 {
		return ""
	}
	return conditionOf(addOn.Status.InstallProgressions[0].Conditions, "Progressing")
}

// configured is status and reason of Configured on each cluster, in order of name.
func (s *scene) configured(names ...string) []string {
	var out []string
	for _, name := range names {
		said, _, _ := strings.Cut(s.addOnCondition(name, "Configured"), ":")
		out = append(out, said)
	}
	return out
}

var _ = Describe("With --addon-manager=replace", Serial, func() {
	BeforeEach(func(ctx SpecContext) {
		Expect(rights.GrantReplace(ctx, world.Client)).To(Succeed())
		replacing := options
		replacing.OperatorFlags = append(slices.Clone(options.OperatorFlags), "--addon-manager=replace")
		Expect(world.Operator.Stop()).To(Succeed())
		Expect(world.StartOperator(replacing)).To(Succeed())
		DeferCleanup(func() {
			Expect(world.Operator.Stop()).To(Succeed())
			Expect(world.StartOperator(options)).To(Succeed())
		})
	})

	It("reports a canary and the rest to OCM's tools", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "replaced", all)
		policy := s.atV1("0s", "1m", "3", 0)
		Eventually(s.progression).Should(Equal(
			"False Completed: selected clusters 4. configured addons 4/4 completed with no errors, 0 failed 0 timeout."))

		By("the canary is held: it alone is configured, and the others say that they wait")
		hold(all[0])
		sha := s.commit("v2", policy)
		Eventually(s.progression).Should(Equal(
			"True Progressing: selected clusters 4. configured addons 1/4 progressing..., 0 failed 0 timeout."))
		waits := "False ConfigurationsNotConfigured"
		Eventually(func() []string { return s.configured(all...) }).Should(Equal([]string{"True ConfigurationsConfigured", waits, waits, waits}))
		var addOn addonv1alpha1.ClusterManagementAddOn
		Expect(world.Client.Get(ctx, client.ObjectKey{Name: s.addOn}, &addOn)).To(Succeed())
		Expect(addOn.Spec.InstallStrategy.Type).To(Equal("Placements"), "applied as declared")
		reference := addOn.Status.InstallProgressions[0].ConfigReferences[0]
		Expect(reference.DesiredConfig.SpecHash).To(HaveLen(64))
		Expect(reference.LastKnownGoodConfig.SpecHash).NotTo(Equal(reference.DesiredConfig.SpecHash))
		Expect(addOn.Status.DefaultConfigReferences[0].DesiredConfig).To(Equal(reference.DesiredConfig))

		By("the canary is released, and the rest follows")
		release(all[0])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Eventually(s.progression).Should(HavePrefix("False Completed: selected clusters 4. configured addons 4/4"))
		Eventually(func() []string { return slices.Compact(s.configured(all...)) }).Should(Equal([]string{"True ConfigurationsConfigured"}))

		By("nothing is written at rest")
		Expect(world.Client.Get(ctx, client.ObjectKey{Name: s.addOn}, &addOn)).To(Succeed())
		version := func() string {
			var now addonv1alpha1.ClusterManagementAddOn
			Expect(world.Client.Get(ctx, client.ObjectKey{Name: s.addOn}, &now)).To(Succeed())
			return now.ResourceVersion
		}
		Consistently(version, "5s").Should(Equal(addOn.ResourceVersion))
	})
})
