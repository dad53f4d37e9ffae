package addonsource_test

import (
	"context"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	testforge "github.com/addonflow/addonflow/test/forge"
)

var _ = Describe("Deleting AddonFlow from the hub", func() {
	installed := func(namespace string) *world {
		GinkgoHelper()
		useHub() // this control plane is not reused
		w := newWorldIn(namespace, func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add hello", addOnFiles())
		w.passes()
		rollout := w.rollout() // as the rollout's controller holds it
		w.read(rollout)
		rollout.Finalizers = []string{v1alpha1.Finalizer}
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		return w
	}
	held := func(w *world, why string) {
		GinkgoHelper()
		Eventually(func() *metav1.Time { return w.source().DeletionTimestamp }).WithTimeout(patience).ShouldNot(BeNil())
		Eventually(func() string {
			w.pass()
			return conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)
		}).WithTimeout(patience).Should(And(ContainSubstring("is held (DeletionGuard): "+why+" is being deleted, which removes no add-on; "+v1alpha1.UninstallAdvice), Not(ContainSubstring("approve"))))
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Removal).NotTo(BeNil())
		Expect(rollout.Spec.Removal.Approved).To(BeFalse())
		Expect(rollout.Spec.Removal.Deleting).To(Equal(why), "what the rollout says that it waits for")
		Expect(exists(w.cma())).To(BeTrue())
		Expect(exists(w.template())).To(BeTrue())
	}

	It("with its Namespace approves the removal of no add-on that a source in it declares", func() {
		w := installed("addonflow-system")
		Expect(admin.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
		held(w, "Namespace/addonflow-system")
	})

	It("with its CRDs approves the removal of no add-on that a source in another Namespace declares", func() {
		w := installed(metav1.NamespaceDefault)
		for _, name := range []string{"addonsources.addonflow.io", "addonrollouts.addonflow.io", "addonrevisions.addonflow.io"} {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(client.IgnoreNotFound(admin.Delete(context.Background(), crd))).To(Succeed())
		}
		held(w, "CustomResourceDefinition/addonsources.addonflow.io")
	})

	It("by one of its CRDs alone is named by the source and on its commit until the CRD is back", func() {
		w := installed("team-definitions")
		revision := w.revisions()[0]
		revision.Finalizers = []string{"example.com/keep"}
		Expect(admin.Update(context.Background(), &revision)).To(Succeed())
		sha := w.source().Status.LastAppliedRevision
		sha = sha[len(sha)-40:]
		w.green(sha)
		for plural, object := range map[string]client.Object{"addonrevisions": &revision, "addonrollouts": w.rollout()} {
			name := plural + ".addonflow.io"
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
			w.read(crd)
			resume := w.stopCache()
			said := func(why string) {
				GinkgoHelper()
				Eventually(func() string {
					w.clock.Step(2 * time.Minute)
					_, _ = w.passOf("fleet")
					return conditions.GetReason(w.source(), fluxmeta.ReadyCondition) + ": " + conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)
				}).WithTimeout(patience).Should(Equal("DefinitionMissing: CustomResourceDefinition/" + name + why))
				Expect(w.delivered(sha, "error").Description).To(Equal("CustomResourceDefinition/" + name + why))
			}
			Expect(admin.Delete(context.Background(), crd)).To(Succeed())
			said(" is being deleted; " + v1alpha1.UninstallAdvice)
			w.read(object)
			object.SetFinalizers(nil)
			Expect(admin.Update(context.Background(), object)).To(Succeed())
			said(" is missing: apply the CRDs of AddonFlow again")
			Expect(exists(w.cma())).To(BeTrue())
			posted := len(w.forge.Log())
			Consistently(func() []testforge.Entry {
				w.clock.Step(2 * time.Minute)
				_, _ = w.passOf("fleet")
				return w.forge.Log()[posted:]
			}).WithTimeout(2 * time.Second).WithPolling(100 * time.Millisecond).Should(BeEmpty())
			crd.ObjectMeta = metav1.ObjectMeta{Name: name}
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			Expect(admin.Create(context.Background(), crd)).To(Succeed())
			resume()
			Eventually(func() error { return admin.List(context.Background(), &v1alpha1.AddOnRevisionList{}) }).WithTimeout(patience).Should(Succeed())
			Eventually(func() error { return admin.List(context.Background(), &v1alpha1.AddOnRolloutList{}) }).WithTimeout(patience).Should(Succeed())
			Eventually(func() bool { w.look(); return conditions.IsReady(w.source()) }).WithTimeout(patience).Should(BeTrue())
			w.green(sha)
		}
	})
})
