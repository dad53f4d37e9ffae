package addonsource_test

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	testforge "github.com/addonflow/addonflow/test/forge"
)

var _ = Describe("Two sources with one context on one repository", func() {
	It("such as those of one name in two namespaces: the older one writes it, and the other names the owner", func() {
		w := newWorld()
		sha := w.commit("one add-on, and one that is broken", addOnFilesWith(map[string]string{"broken/a.yaml": "kind: Nonsense"}))
		w.passes()
		w.green(sha)

		second := w.newSource("fleet", func(s *v1alpha1.AddOnSource) { s.Namespace, s.Spec.Path = w.namespace+"x", "broken" })
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Namespace}})
		w.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: second.Namespace, Name: "forge"},
			Data:       map[string][]byte{"token": []byte("correct-horse")},
		})
		w.create(second)
		pass := func() {
			GinkgoHelper()
			_, err := w.reconcile(client.ObjectKeyFromObject(second))
			Expect(err).NotTo(HaveOccurred())
			w.read(second)
		}
		pass()
		Expect(conditions.IsStalled(second)).To(BeTrue(), "its own commit is judged as ever")
		reported := conditions.Get(second, v1alpha1.CommitStatusReportedCondition)
		Expect(reported).NotTo(BeNil())
		Expect(reported.Reason).To(Equal(v1alpha1.OwnershipConflictReason))
		Expect(reported.Message).To(And(ContainSubstring("source "+w.namespace+"/fleet,"), ContainSubstring("spec.commitStatus.context")))
		Expect(second.Status.CommitStatuses).To(BeEmpty(), "no mark is kept that would be posted into another source's context later")
		w.look()
		Expect(conditions.IsTrue(w.source(), v1alpha1.CommitStatusReportedCondition)).To(BeTrue(), "the older one is not disturbed")

		By("a context of its own, after a restart, for a commit that was refused long ago")
		w.start()
		second.Spec.CommitStatus.Context = "broken"
		Expect(admin.Update(context.Background(), second)).To(Succeed())
		pass()
		waiting, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		Expect(w.forge.WaitFor(waiting, func([]testforge.Entry) bool {
			entry, found := w.forge.Latest(sha, "broken")
			return found && entry.State == "failure"
		})).To(Succeed(), "log: %v", w.forge.Log())
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
		entry, _ := w.forge.Latest(sha, "addonflow/fleet")
		Expect(entry.State).To(Equal("success"), "log: %v", w.forge.Log())
	})

	It("wake one another: when the older one declares another context, the other reports at once", func() {
		shared := func(s *v1alpha1.AddOnSource) {
			s.Spec.Interval.Duration, s.Spec.CommitStatus.Context = time.Hour, "shared"
		}
		w := newWorld(shared)
		sha := w.commit("one add-on, and one that is broken", addOnFilesWith(map[string]string{"broken/a.yaml": "kind: Nonsense"}))
		second := w.newSource("second", shared, func(s *v1alpha1.AddOnSource) { s.Spec.Path = "broken" })
		w.create(second)
		w.run()
		Eventually(func() string {
			w.read(second)
			return conditions.GetReason(second, v1alpha1.CommitStatusReportedCondition)
		}).WithTimeout(patience).Should(Equal(v1alpha1.OwnershipConflictReason))
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus.Context = "own" })
		waiting, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		Expect(w.forge.WaitFor(waiting, func([]testforge.Entry) bool {
			entry, found := w.forge.Latest(sha, "shared")
			return found && entry.State == "failure"
		})).To(Succeed(), "log: %v", w.forge.Log())
	})
})
