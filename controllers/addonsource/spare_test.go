package addonsource_test

import (
	"context"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
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

// contend makes another source own an object that the world's source declares from then on.
func (w *world) contend() {
	GinkgoHelper()
	w.create(w.newSource("first", func(s *v1alpha1.AddOnSource) { s.Spec.Path, s.Spec.CommitStatus = "other", nil }))
	w.commit("a placement", map[string]string{"other/placement.yaml": placementYAML})
	_, err := w.passOf("first")
	Expect(err).NotTo(HaveOccurred())
	w.commit("the same placement", map[string]string{"addons/placement.yaml": placementYAML})
}

var _ = Describe("A ClusterManagementAddOn that is deleted by hand", func() {
	ours := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	for name, c := range map[string]struct {
		labels map[string]string
		policy metav1.DeletionPropagation
	}{
		"AddonFlow's ManagedClusterAddOn": {ours, metav1.DeletePropagationBackground},
		"a hand-made ManagedClusterAddOn": {nil, metav1.DeletePropagationBackground},
		"policy Orphan":                   {ours, metav1.DeletePropagationOrphan},
	} {
		It("is applied again and removes no agent: "+name, func() {
			w := newWorld()
			w.commit("add hello", addOnFiles())
			w.passes()
			before := w.cma()
			w.read(before)
			Expect(before.Finalizers).To(ContainElement(v1alpha1.Finalizer))
			addOn := w.owned(c.labels)
			w.announced()

			Expect(admin.Delete(context.Background(), w.cma(), client.PropagationPolicy(c.policy))).To(Succeed())
			theGit.ResetRequests()
			after := w.cma()
			Eventually(func() types.UID {
				w.look()
				w.read(after)
				return after.UID
			}).WithTimeout(patience).ShouldNot(Equal(before.UID))
			Expect(after.Finalizers).To(ContainElement(v1alpha1.Finalizer))
			Expect(w.announced()).To(ContainElement(And(ContainSubstring(v1alpha1.AddOnDeletedReason), ContainSubstring(w.addOn), ContainSubstring("from now on no agent is removed with it"),
				MatchRegexp(`deleted on the hub at \d\d:\d\d:\d\d UTC( with policy Orphan)?\.`))), "two deletions make two events")
			spared := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
			Consistently(func() types.UID { w.read(spared); return spared.UID }, "2s").Should(Equal(addOn.UID), "the collector has nothing to collect")
			Expect(spared.DeletionTimestamp).To(BeNil())
			Expect(spared.OwnerReferences).To(BeEmpty())
			Expect(theGit.Requests().UploadPack).To(BeZero())
		})
	}

	It("in the foreground deletes agents, with an event, and is applied again", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		before := w.cma()
		w.read(before)
		addOn := w.owned(ours)
		w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) { r.Status.Counts.Total = 1 })
		w.announced()
		Expect(admin.Delete(context.Background(), w.cma(), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(func() bool { return exists(addOn) }).WithTimeout(patience).Should(BeFalse(), "the collector deletes what refers to it first")
		Eventually(func() types.UID {
			w.look()
			after := w.cma()
			w.read(after)
			return after.UID
		}).WithTimeout(patience).ShouldNot(Equal(before.UID))
		deleted := MatchRegexp(`deleted on the hub at \d\d:\d\d:\d\d UTC.*; 1 of 1 cluster lost the add-on, as in a foreground deletion; it is installed there again`)
		Expect(w.announced()).To(ContainElements(deleted, deleted), "an event of the source, and one of the rollout")
	})

	for name, blocked := range map[string]func(*world){
		"the head is refused": func(w *world) { w.commit("nonsense", map[string]string{"addons/x.yaml": "kind: Nonsense"}) },
		"the head waits for the hub": func(w *world) {
			nowhere := strings.Replace(addOnYAML, "namespace: NAMESPACE\n      name: ADDON", "namespace: NAMESPACE\n      name: nowhere", 1)
			w.commit("refer to nothing", map[string]string{"addons/clustermanagementaddon.yaml": nowhere})
		},
		"the repository cannot be read": func(w *world) {
			w.change(func(s *v1alpha1.AddOnSource) { s.Spec.URL = "http://127.0.0.1:1/fleet.git" })
		},
		"the source is suspended":       func(w *world) { w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true }) },
		"another source owns an object": func(w *world) { w.contend() },
		"the source is being deleted":   func(w *world) { Expect(admin.Delete(context.Background(), w.source())).To(Succeed()) },
	} {
		It("is deleted and removes no agent while "+name, func() {
			w := newWorld()
			w.commit("add hello", addOnFiles())
			w.passes()
			addOn := w.owned(ours)
			blocked(w)
			w.look()
			w.announced()
			Expect(admin.Delete(context.Background(), w.cma())).To(Succeed())
			w.look()
			Expect(exists(w.cma())).To(BeFalse())
			w.read(addOn)
			Expect(addOn.OwnerReferences).To(BeEmpty())
			Expect(w.announced()).To(ContainElement(And(ContainSubstring(v1alpha1.AddOnDeletedReason), ContainSubstring(w.addOn))))
		})
	}

	It("and held by a foreign finalizer does not block the other objects of a commit", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma := w.cma()
		w.read(cma)
		cma.Finalizers = append(cma.Finalizers, "example.com/theirs")
		Expect(admin.Update(context.Background(), cma)).To(Succeed())
		Expect(admin.Delete(context.Background(), w.cma())).To(Succeed())
		sha := w.commit("greet", map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")})
		w.look()
		w.read(cma)
		Expect(cma.Finalizers).To(ConsistOf("example.com/theirs"))
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(sha))
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(And(
			HavePrefix("waiting for ClusterManagementAddOn/"+w.addOn+" to disappear"), HaveSuffix("and still has finalizers")))
		Expect(w.delivered(sha, "pending").Description).To(ContainSubstring("waiting for ClusterManagementAddOn/" + w.addOn))

		cma.Finalizers = nil
		Expect(admin.Update(context.Background(), cma)).To(Succeed())
		w.look()
		w.read(cma)
		Expect(cma.DeletionTimestamp).To(BeNil())
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
	})

	It("gets its finalizer back, after a restart as well", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		for range 2 {
			cma := w.cma()
			w.read(cma)
			cma.Finalizers = nil
			Expect(admin.Update(context.Background(), cma, client.FieldOwner("another-writer"))).To(Succeed())
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
