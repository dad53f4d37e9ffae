package addonsource_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// owned creates a ManagedClusterAddOn that the world's ClusterManagementAddOn owns.
func (w *world) owned(labels map[string]string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	cma := w.cma()
	w.read(cma)
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: w.addOn, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cma, schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ClusterManagementAddOn"})},
	}}
	w.create(addOn)
	return addOn
}

var _ = Describe("A ClusterManagementAddOn that is deleted by hand", func() {
	for name, labels := range map[string]map[string]string{
		"AddonFlow's": {v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
		"a hand-made": nil,
	} {
		It("is applied again and removes no agent: "+name+" ManagedClusterAddOn", func() {
			w := newWorld()
			w.commit("add hello", addOnFiles())
			w.passes()
			before := w.cma()
			w.read(before)
			Expect(before.Finalizers).To(ContainElement(v1alpha1.Finalizer))
			addOn := w.owned(labels)
			w.announced()

			Expect(admin.Delete(context.Background(), w.cma(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			theGit.ResetRequests()
			w.passes()
			after := w.cma()
			w.read(after)
			Expect(after.UID).NotTo(Equal(before.UID))
			Expect(after.Finalizers).To(ContainElement(v1alpha1.Finalizer))
			Expect(w.announced()).To(ContainElement(And(ContainSubstring(v1alpha1.AddOnDeletedReason), ContainSubstring(w.addOn))))
			spared := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
			Consistently(func() types.UID { w.read(spared); return spared.UID }, "2s").Should(Equal(addOn.UID), "the collector has nothing to collect")
			Expect(spared.DeletionTimestamp).To(BeNil())
			Expect(spared.OwnerReferences).To(BeEmpty())
			Expect(theGit.Requests().UploadPack).To(BeZero())
		})
	}

	It("in the foreground takes agents with it, which an event says, and is applied again", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		before := w.cma()
		w.read(before)
		w.announced()
		Expect(admin.Delete(context.Background(), w.cma(), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(func() types.UID {
			w.passes()
			after := w.cma()
			w.read(after)
			return after.UID
		}).WithTimeout(patience).ShouldNot(Equal(before.UID))
		Expect(w.announced()).To(ContainElement(ContainSubstring("foreground")))
	})

	It("gets a finalizer back that was taken off, after a restart as well", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		for range 2 {
			cma := w.cma()
			w.read(cma)
			cma.Finalizers = nil
			Expect(admin.Update(context.Background(), cma, client.FieldOwner("somebody"))).To(Succeed())
			w.look()
			w.read(cma)
			Expect(cma.Finalizers).To(ContainElement(v1alpha1.Finalizer))
			w.start()
		}
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).To(BeEmpty())
	})
})
