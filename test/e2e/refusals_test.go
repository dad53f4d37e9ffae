package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/test/demo"
)

var _ = Describe("A policy of the hub", Serial, func() {
	It("that denies the works of new content is the reason everywhere, also after a restart, and fails the canary", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "denied", all)
		s.atV1("0s", "2m", "2", 0)
		before := s.generations()
		allow := s.deny("no change today")
		const reason = "cannot update work addon-denied-deploy-0: no change today (ValidatingAdmissionPolicy denied)"
		sha := s.commit("v2", s.stages("0s", "30s", "2", 0))
		pending := "0/1, 1 in flight, 1 not applied (" + all[0] + ": " + reason + ")"
		Eventually(func() string { return s.rollout().Status.Stages[0].Message }).Should(Equal(pending))
		why := func() string {
			i, err := addonrollout.NewInspector(world.Client, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, chart.InProcess{}).Inspect(ctx)
			Expect(err).NotTo(HaveOccurred())
			p := i.Plan()
			c, _ := p.Why(all[0])
			return string(c.State) + ": " + c.Reason
		}
		Expect(why()).To(Equal("Admitted: admitted; " + reason))

		world.Operator.Kill()
		Expect(world.StartOperator(options)).To(Succeed())
		ro := s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Expect(ro.Status.Message).To(Equal("halted in canary: 1 failed (" + all[0] + ": past its progress deadline: " + reason + "), 2 untouched"))
		Expect(why()).To(Equal("TimedOut: past its progress deadline: " + reason))
		Eventually(s.statusOf).WithArguments(sha).Should(And(HavePrefix("failure: halted in canary: 1 failed ("), ContainSubstring("no change")))
		Expect(moved(before, s.generations())).To(BeEmpty())

		allow()
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		s.wroteOnce(before)
	})
})

// deny makes the hub refuse changes of the add-on's works until the returned function is called.
func (s *scene) deny(message string) (allow func()) {
	GinkgoHelper()
	rule := admissionregistrationv1.NamedRuleWithOperations{
		ResourceNames: []string{"addon-" + s.addOn + "-deploy-0"},
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"work.open-cluster-management.io"}, APIVersions: []string{"*"}, Resources: []string{"manifestworks"}},
		},
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.addOn},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: message}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.addOn},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.addOn, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		Expect(world.Client.Create(s.ctx, o)).To(Succeed())
	}
	allow = func() {
		for _, o := range []client.Object{binding, policy} {
			Expect(client.IgnoreNotFound(world.Client.Delete(context.Background(), o))).To(Succeed())
		}
	}
	DeferCleanup(allow)
	// The API server enforces a policy with a delay.
	work := &workv1.ManifestWork{}
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: clusters(1)[0], Name: "addon-" + s.addOn + "-deploy-0"}, work)).To(Succeed())
	work.Spec.Workload.Manifests = nil
	Eventually(func() error { return world.Client.Update(s.ctx, work.DeepCopy(), client.DryRunAll) }).ShouldNot(Succeed())
	return allow
}
