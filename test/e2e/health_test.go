package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// celHealth judges the Deployment by a label of its own, which the agent returns.
const celHealth = `  health:
    prober: CEL
    healthCheckExprs:
    - apiVersion: apps/v1
      kind: Deployment
      failed: feedback.mood == 'broken'
      current: feedback.mood == 'well' && feedback.ReadyReplicas >= 1
      degraded: feedback.tired == 'yes'
`

var _ = Describe("Health", func() {
	It("is what CEL expressions in Git say about the present content", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "cel", all)
		policy := s.stages("0s", "30m", "4", 0) + celHealth
		commit := func(tag, mood, tired string) string {
			tree := s.tree(tag, policy)
			tree["addons/template.yaml"] = feelings(tree["addons/template.yaml"], mood, tired)
			sha := s.submit(tag, tree)
			return sha
		}
		s.awaitPhase(commit("v1", "well", "no"), v1alpha1.PhaseSucceeded)
		before := s.generations()

		sha := commit("v2", "broken", "no")
		ro := s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Expect(ro.Status.Failing).To(HaveLen(1))
		Expect(ro.Status.Failing[0].Cluster).To(Equal(all[0]))
		Expect(ro.Status.Failing[0].Reason).To(Equal("Deployment cel: failed: feedback.mood == 'broken'"),
			"at once, thirty minutes before the deadline")
		Expect(moved(before, s.generations())).To(Equal(all[:1]))
		Eventually(s.statusOf).WithArguments(sha).Should(And(HavePrefix("failure: "), ContainSubstring("feedback.mood == 'broken'")))

		s.awaitPhase(s.revert(sha), v1alpha1.PhaseSucceeded)
		s.awaitPhase(commit("v3", "well", "yes"), v1alpha1.PhaseSucceeded)
		for _, kind := range []string{"Available", "Degraded"} {
			Eventually(func() bool { return meta.IsStatusConditionTrue(s.addOnOf(all[1]).Status.Conditions, kind) }).Should(BeTrue(), kind)
		}
	})

	It("with prober Lease waits for the klusterlet's word, and never writes Available", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "lease", all)
		policy := s.stages("0s", "30m", "2", 0) + "  health: {prober: Lease}\n"
		sha := s.commit("v1", policy)
		Eventually(func() map[string]string { return s.running(all[0]) }).Should(allAt("v1", all[0]))
		Eventually(func() string { return string(s.addOnOf(all[0]).Status.HealthCheck.Mode) }).Should(Equal("Lease"))
		Consistently(func() []string { return moved(map[string]int64{}, s.generations()) }, "3s").Should(Equal(all[:1]),
			"all of the canary's pods run, but no lease was seen")
		Expect(meta.FindStatusCondition(s.addOnOf(all[0]).Status.Conditions, "Available")).To(BeNil())

		s.renewLease(all[0])
		Eventually(func() map[string]string { return s.running(all...) }).Should(allAt("v1", all...))
		s.renewLease(all[1])
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		for _, name := range all {
			available := meta.FindStatusCondition(s.addOnOf(name).Status.Conditions, "Available")
			Expect(available.Reason).To(Equal("ManagedClusterAddOnLeaseUpdated"), "the klusterlet's word stays")
		}
	})
})

// feelings gives the Deployment of a template labels, and feedback rules for them.
func feelings(template, mood, tired string) string {
	template = strings.Replace(template, "          namespace: open-cluster-management-agent-addon\n",
		"          namespace: open-cluster-management-agent-addon\n          labels: {mood: "+mood+", tired: \""+tired+"\"}\n", 1)
	return template + `    manifestConfigs:
    - resourceIdentifier: {group: apps, resource: deployments, namespace: open-cluster-management-agent-addon, name: "*"}
      feedbackRules:
      - type: JSONPaths
        jsonPaths:
        - {name: mood, path: .metadata.labels.mood}
        - {name: tired, path: .metadata.labels.tired}
`
}

// renewLease writes what the klusterlet does once it sees the agent's lease.
func (s *scene) renewLease(cluster string) {
	GinkgoHelper()
	addOn := s.addOnOf(cluster)
	base := addOn.DeepCopy()
	meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnConditionAvailable, Status: metav1.ConditionTrue,
		Reason: addonv1alpha1.AddonAvailableReasonLeaseLeaseUpdated, Message: s.addOn + " add-on is available.",
	})
	Expect(world.Client.Status().Patch(s.ctx, addOn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner("registration-agent"))).To(Succeed())
}
