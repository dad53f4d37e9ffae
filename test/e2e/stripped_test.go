package e2e

import (
	"bytes"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// workOf reads the work of a cluster by its name, whatever its labels are.
func (s *scene) workOf(cluster string) *workv1.ManifestWork {
	GinkgoHelper()
	work := &workv1.ManifestWork{}
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: cluster, Name: "addon-" + s.addOn + "-deploy-0"}, work)).To(Succeed())
	return work
}

var _ = Describe("An add-on whose labels and owners another writer removes", func() {
	It("gets them back if AddonFlow created it, until it is released; a hand-made one stays as it is", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "stripped", all[:2])
		s.handMade(all[2], nil)
		policy := s.atV1("0s", "2m", "2", 0)
		var owner addonv1alpha1.ClusterManagementAddOn
		Expect(world.Client.Get(ctx, client.ObjectKey{Name: s.addOn}, &owner)).To(Succeed())
		before := s.generations()

		By("taking label and owner off a ManagedClusterAddOn, and OCM's label off a work")
		editor := client.WithFieldOwner(world.Client, "kubectl-edit")
		Eventually(func() error { // they may be written in between
			addOn := s.addOnOf(all[0])
			addOn.Labels, addOn.OwnerReferences = nil, nil
			return editor.Update(ctx, addOn)
		}).Should(Succeed())
		work := s.workOf(all[1])
		Expect(editor.Patch(ctx, work, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"open-cluster-management.io/addon-name":null}}}`)))).To(Succeed())

		Eventually(func(g Gomega) {
			addOn := s.addOnOf(all[0])
			g.Expect(addOn.Labels).To(HaveKeyWithValue(v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue))
			g.Expect(addOn.OwnerReferences).To(ContainElement(HaveField("UID", owner.UID)))
			repaired := s.workOf(all[1])
			g.Expect(repaired.UID).To(Equal(work.UID))
			g.Expect(repaired.Labels).To(HaveKeyWithValue("open-cluster-management.io/addon-name", s.addOn))
		}).Should(Succeed())
		Expect(s.addOnOf(all[2]).Labels).NotTo(HaveKey(v1alpha1.ManagedByLabel))
		Expect(s.addOnOf(all[2]).OwnerReferences).To(BeEmpty())
		Consistently(s.generations, 2*time.Second).Should(Equal(before), "no content was written")
		Eventually(func() v1alpha1.Phase { return s.rollout().Status.Phase }).Should(Equal(v1alpha1.PhaseSucceeded))
		before = s.generations()
		s.awaitPhase(s.commit("v2", policy), v1alpha1.PhaseSucceeded)
		s.wroteOnce(before)

		By("releasing it")
		s.annotateRollout(v1alpha1.ReleaseAnnotation, "true")
		_, err := s.repo.Remove("hand it back", "addons/template.yaml", "addons/addon.yaml", "addons/rollout.yaml")
		Expect(err).NotTo(HaveOccurred())
		s.reconcile()
		Eventually(func() bool {
			ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.addOn}}
			return apierrors.IsNotFound(world.Client.Get(ctx, client.ObjectKeyFromObject(ro), ro))
		}).Should(BeTrue())
		for _, name := range all {
			Expect(v1alpha1.Installed(s.addOnOf(name))).To(BeFalse(), "nothing on it shows that AddonFlow created it: "+name)
		}
	})
})

var _ = Describe("A work whose object a user edits by hand", func() {
	It("is restored, and no other work is written", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "edited", all)
		s.atV1("0s", "2m", "2", 0)
		before := s.generations()
		work := s.workOf(all[0])
		was := work.DeepCopy()
		for i := range work.Spec.Workload.Manifests {
			m := &work.Spec.Workload.Manifests[i]
			m.Raw = bytes.ReplaceAll(m.Raw, []byte(`"replicas":1`), []byte(`"replicas":7`))
		}
		Expect(client.WithFieldOwner(world.Client, "kubectl-edit").Update(ctx, work)).To(Succeed())
		Expect(work.Generation).To(Equal(was.Generation+1), "the edit changed something")
		Eventually(func(g Gomega) {
			restored := s.workOf(all[0])
			g.Expect(restored.Spec.Workload).To(Equal(was.Spec.Workload))
			g.Expect(restored.Generation).To(Equal(work.Generation + 1))
		}).Should(Succeed())
		before[all[0]] = work.Generation + 1
		Consistently(s.generations, 2*time.Second).Should(Equal(before))
	})
})
