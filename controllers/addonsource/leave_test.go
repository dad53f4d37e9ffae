package addonsource_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/forge"
)

var _ = Describe("What leaves Git", func() {
	It("is pruned where that is approved, and kept and named where not", func() {
		w := newWorld()
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/placement.yaml": placementYAML}))
		w.passes()
		w.remove("no placement", "addons/placement.yaml")
		w.look()
		Expect(exists(placement)).To(BeTrue())
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(ContainSubstring("Placement/" + w.namespace + "/all"))

		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.passes()
		Expect(exists(placement)).To(BeFalse())
		Expect(w.source().Status.Inventory).NotTo(ContainElement(HaveField("Kind", "Placement")))
	})

	It("is not pruned when it is marked as another source's", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/placement.yaml": placementYAML}))
		w.passes()
		w.read(placement)
		placement.Annotations[v1alpha1.SourceAnnotation] = "somewhere/else"
		Expect(admin.Update(context.Background(), placement)).To(Succeed())
		w.remove("no placement", "addons/placement.yaml")
		w.look()
		Expect(exists(placement)).To(BeTrue())
	})

	It("is not pruned if another user has made it anew since it was read", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/placement.yaml": placementYAML}))
		w.passes()
		w.remove("no placement", "addons/placement.yaml")
		anew := placement.DeepCopy()
		w.requests.before = func(r *http.Request) {
			if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/placements/all") || anew.UID != "" {
				return
			}
			body, err := r.GetBody()
			Expect(err).NotTo(HaveOccurred())
			options, err := io.ReadAll(body)
			Expect(err).NotTo(HaveOccurred())
			if !strings.Contains(string(options), metav1.DryRunAll) {
				Expect(admin.Delete(context.Background(), placement)).To(Succeed())
				w.create(anew)
			}
		}
		for range 5 { // the first one that deletes fails, or is repeated
			w.clock.Step(2 * time.Minute)
			_, _ = w.passOf("fleet")
		}
		Expect(anew.UID).NotTo(BeEmpty())
		w.look()
		w.read(placement)
		Expect(placement.UID).To(Equal(anew.UID))
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(w.source().Status.Inventory).NotTo(ContainElement(HaveField("Kind", "Placement")))
	})

	It("as an add-on is held, then removed, its ClusterManagementAddOn last", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/README.md":         "add-ons",
			"addons/addonrollout.yaml": "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: ADDON}\nspec: {suspend: true}\n",
		}))
		w.passes()
		handMade := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		w.create(handMade)

		sha := w.remove("no hello", "addons/clustermanagementaddon.yaml", "addons/addontemplate.yaml", "addons/addondeploymentconfig.yaml", "addons/addonrollout.yaml")
		w.look()
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Removal).To(Equal(&v1alpha1.Removal{Commit: sha}))
		Expect(rollout.Spec.Suspend).To(BeFalse(), "it could not be changed back in Git")
		Expect(rollout.Spec.Target).NotTo(BeNil(), "the rest of the spec stays")
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(And(
			ContainSubstring(v1alpha1.DeletionGuardReason), ContainSubstring(v1alpha1.ApproveRemovalAnnotation+"="+sha)))
		Expect(exists(w.cma())).To(BeTrue())

		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.passes()
		w.read(rollout)
		Expect(rollout.Spec.Removal).To(Equal(&v1alpha1.Removal{Commit: sha, Approved: true}))
		Expect(exists(w.template())).To(BeTrue(), "its configurations stay as long as it")

		w.removed()
		w.passes()
		Expect(exists(w.cma())).To(BeTrue())
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(ContainSubstring("hand-made ManagedClusterAddOns of " + w.namespace))

		Expect(admin.Delete(context.Background(), handMade)).To(Succeed())
		w.passes()
		Expect(exists(w.cma())).To(BeFalse())
		Expect(exists(w.template())).To(BeFalse())
		Expect(exists(w.rollout())).To(BeTrue(), "a rollout is never deleted by a commit")
		Expect(w.source().Status.Inventory).To(BeEmpty())

		back := w.commit("hello again", addOnFiles())
		w.look()
		w.read(rollout)
		Expect(rollout.Spec.Removal).To(BeNil())
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(back))
		Expect(exists(w.cma())).To(BeTrue())
	})

	It("as an add-on that is released stays, without our marks and finalizer, whatever is approved", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/README.md": "add-ons"}))
		w.passes()
		mca := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: w.addOn, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
		}}
		w.create(mca)
		rollout := w.rollout()
		w.read(rollout)
		rollout.Annotations[v1alpha1.ReleaseAnnotation] = "true"
		rollout.Finalizers = []string{v1alpha1.Finalizer}
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())

		w.remove("no hello", "addons/clustermanagementaddon.yaml", "addons/addontemplate.yaml", "addons/addondeploymentconfig.yaml")
		w.look()
		w.passes()
		w.read(rollout)
		Expect(rollout.Spec.Removal).NotTo(BeNil(), "the rollout is asked for the removal")
		cma := w.cma()
		w.read(cma)
		Expect(cma.Annotations).To(HaveKey(v1alpha1.SourceAnnotation), "nothing is released before its clusters are")
		Expect(exists(w.template())).To(BeTrue())
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(ContainSubstring("is being released"))

		rollout.Finalizers = nil // the clusters were released
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		w.passes()
		for _, o := range []client.Object{w.cma(), w.template()} {
			w.read(o)
			Expect(o.GetLabels()).NotTo(HaveKey(v1alpha1.ManagedByLabel))
			Expect(o.GetAnnotations()).NotTo(HaveKey(v1alpha1.SourceAnnotation))
			Expect(o.GetAnnotations()).NotTo(HaveKey(v1alpha1.LifecycleAnnotation))
			Expect(o.GetFinalizers()).To(BeEmpty())
		}
		Expect(exists(mca)).To(BeTrue())
		Expect(exists(w.rollout())).To(BeFalse())
		Expect(w.revisions()).To(BeEmpty())
		Expect(w.source().Status.Inventory).To(BeEmpty())

		Expect(admin.Delete(context.Background(), mca)).To(Succeed())
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.passes()
		Expect(exists(w.cma())).To(BeTrue(), "it has no owner now")
	})

	It("as a released add-on whose rollout is deleted is released before the rollout is gone", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/README.md": "add-ons"}))
		w.passes()
		w.create(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}})
		rollout := w.rollout()
		w.read(rollout)
		rollout.Annotations[v1alpha1.ReleaseAnnotation] = "true"
		rollout.Finalizers = []string{v1alpha1.Finalizer}
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		Expect(admin.Delete(context.Background(), rollout)).To(Succeed())
		w.remove("no hello", "addons/clustermanagementaddon.yaml", "addons/addontemplate.yaml", "addons/addondeploymentconfig.yaml")
		w.look()
		w.pass() // releases, and waits for the rollout's deletion
		cma := w.cma()
		w.read(cma)
		Expect(cma.Annotations).NotTo(HaveKey(v1alpha1.SourceAnnotation))
		w.read(rollout)
		rollout.Finalizers = nil // the rollout's controller does this now
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		w.passes()
		Expect(exists(w.cma())).To(BeTrue())
		Expect(exists(w.template())).To(BeTrue())
		Expect(w.source().Status.Inventory).To(BeEmpty())
	})

	It("as an add-on whose rollout was deleted before the removal was requested does not create it again", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/README.md": "add-ons"}))
		w.passes()
		w.remove("no hello", "addons/clustermanagementaddon.yaml", "addons/addontemplate.yaml", "addons/addondeploymentconfig.yaml")
		w.requests.before = func(r *http.Request) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/addonrollouts/") {
				// Another process, which read the same state, has finished meanwhile.
				Expect(client.IgnoreNotFound(admin.Delete(context.Background(), w.rollout()))).To(Succeed())
			}
		}
		w.clock.Step(2 * time.Minute)
		w.pass()
		Expect(exists(w.rollout())).To(BeFalse(), "a removal without the release that it had would hold the add-on for ever")
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(HaveSuffix("was changed or deleted meanwhile"))
	})

	It("as a source without prune releases its add-on and is deleted", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		mca := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		w.create(mca)
		rollout := w.rollout()
		w.read(rollout)
		rollout.Annotations[v1alpha1.ReleaseAnnotation] = "true"
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.pass() // requests the removal, which the rollout would answer by a release
		w.passes()
		Expect(exists(w.rollout())).To(BeFalse())
		w.goes()
		cma := w.cma()
		w.read(cma)
		Expect(cma.Finalizers).To(BeEmpty(), "no operator would take it off")
		Expect(exists(w.template())).To(BeTrue())
		Expect(exists(mca)).To(BeTrue())
	})

	It("as a source is held until its add-ons are gone", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.pass()
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.DeletionGuardReason))
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Removal).To(Equal(&v1alpha1.Removal{Commit: sha, Deleting: "AddOnSource/fleet"}))
		Expect(exists(w.cma())).To(BeTrue())
		Expect(w.delivered(sha, "error").Description).To(Equal("ended: the source was deleted"), "its commit is pending no longer, however long that takes")

		w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Outcome, r.Status.ObservedGeneration = v1alpha1.PhaseHeld, "pending", r.Generation
			r.Status.Message = "AddOnSource/fleet is being deleted, which approves no removal"
		})
		Eventually(func() string {
			w.pass()
			return w.delivered(sha, "error").Description
		}).WithTimeout(patience).Should(Equal("the source was deleted; "+w.addOn+" held: AddOnSource/fleet is being deleted, which approves no removal"), "a decision is waited for")

		w.removed()
		Eventually(func() string {
			w.pass()
			return w.delivered(sha, "error").Description
		}).WithTimeout(patience).Should(Equal("ended: the source was deleted"))
		w.passes()
		Expect(exists(w.cma())).To(BeFalse())
		Expect(exists(w.rollout())).To(BeFalse())
		Expect(w.revisions()).To(BeEmpty())
		w.goes()
		Expect(exists(w.template())).To(BeTrue(), "pruning is not approved")
	})

	It("as a source waits for a limited time until the forge accepts its last statuses", func() {
		w := newWorld()
		Expect(admin.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forge"}})).To(Succeed())
		sha := w.commit("nonsense", map[string]string{"addons/x.yaml": "kind: Nonsense"})
		w.pass()
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.pass()
		source := w.source()
		Expect(conditions.GetMessage(source, fluxmeta.ReconcilingCondition)).To(Equal("waiting for the forge to accept the last commit statuses"))
		Expect(source.Status.CommitStatuses).To(ContainElement(And(HaveField("SHA", sha), HaveField("Owed.State", "failure"))))

		w.clock.Step(forge.KeptFor)
		w.pass()
		Expect(exists(&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}})).To(BeFalse())
	})

	It("as a source that never applied anything is deleted at once", func() {
		w := newWorld()
		w.pass()
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.pass()
		Expect(exists(&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}})).To(BeFalse())
	})
})

var _ = Describe("An add-on", func() {
	It("belongs to the source that came first", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		other := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Interval.Duration = time.Hour })
		other.addOn = w.addOn
		sha := other.commit("add the same", addOnFilesWith(map[string]string{"addons/placement.yaml": placementYAML}))
		other.passes()
		source := other.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.OwnershipConflictReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(ContainSubstring(w.named("addons/clustermanagementaddon.yaml:1: ClusterManagementAddOn/ADDON: belongs to source " + w.namespace + "/fleet; " +
			"declare it in one source only; a source that no longer declares it keeps it until it is pruned or released there")))
		Expect(exists(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: other.namespace, Name: "all"}})).To(BeFalse(),
			"the commit is the unit")
		Expect(other.delivered(sha, "error").Description).To(Equal(w.named("belongs to source " + w.namespace + "/fleet; declare it in one source only (and 1 more) " +
			"at addons/addontemplate.yaml:1: AddOnTemplate/ADDON")))

		soon := other.pass().RequeueAfter
		Expect(soon).To(BeNumerically("<=", time.Minute), "no event says when the other source releases it")
		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		w.pass()
		w.removed()
		w.passes()
		w.goes()
		other.clock.Step(soon)
		other.passes()
		Expect(conditions.IsReady(other.source())).To(BeTrue())
		Expect(other.green(sha).Description).To(Equal("applied; 1 add-on up to date"))
	})

	It("has one owner when two sources are reconciled at once", func() {
		w := newWorld()
		w.create(w.newSource("second"))
		w.commit("add hello", addOnFiles())
		var both sync.WaitGroup
		for _, name := range []string{"fleet", "second"} {
			both.Go(func() {
				defer GinkgoRecover()
				_, err := w.passOf(name)
				Expect(err).NotTo(HaveOccurred())
			})
		}
		both.Wait()
		w.clock.Step(2 * time.Minute)
		reasons := map[string]string{}
		for _, name := range []string{"fleet", "second"} {
			_, err := w.passOf(name)
			Expect(err).NotTo(HaveOccurred())
			source := w.newSource(name)
			w.read(source)
			reasons[w.namespace+"/"+name] = conditions.GetReason(source, fluxmeta.ReadyCondition)
		}
		cma := w.cma()
		w.read(cma)
		owner := cma.Annotations[v1alpha1.SourceAnnotation]
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Annotations).To(HaveKeyWithValue(v1alpha1.SourceAnnotation, owner))
		Expect(reasons).To(HaveKeyWithValue(owner, fluxmeta.ReconciliationSucceededReason))
		delete(reasons, owner)
		Expect(reasons).To(ConsistOf(v1alpha1.OwnershipConflictReason))
	})

	It("that OCM runs is taken over step by step", func() {
		w := newWorld()
		existing := w.cma()
		existing.Spec = addonv1alpha1.ClusterManagementAddOnSpec{
			InstallStrategy: addonv1alpha1.InstallStrategy{Type: "Placements", Placements: []addonv1alpha1.PlacementStrategy{
				{PlacementRef: addonv1alpha1.PlacementRef{Namespace: w.namespace, Name: "all"}},
			}},
		}
		*supported(existing) = []addonv1alpha1.ConfigMeta{templatesConfig()}
		w.create(existing)
		for i := range 3 {
			w.createHashed(fmt.Sprintf("%s-cluster-%d", w.namespace, i))
		}
		sha := w.commit("add hello", addOnFiles())

		w.pass()
		cma := w.cma()
		w.read(cma)
		Expect(cma.Annotations).To(HaveKeyWithValue(v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue))
		Expect(*supported(cma)).To(HaveLen(1), "one step at a time")
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.TakingOverReason))
		Expect(w.delivered(sha, "pending").Description).To(ContainSubstring("taking over " + w.addOn))

		w.pass()
		w.read(cma)
		Expect(*supported(cma)).To(BeEmpty())
		Expect(cma.Spec.InstallStrategy).To(Equal(addonv1alpha1.InstallStrategy{Type: "Manual"}))
		Expect(exists(w.template())).To(BeFalse())

		w.pass()
		Expect(w.hashes()).To(BeEmpty())
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.TakingOverReason),
			"until it is read back")
		Expect(exists(w.rollout())).To(BeFalse())

		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(exists(w.rollout())).To(BeTrue())
		w.read(cma)
		Expect(cma.Annotations).To(HaveKeyWithValue(v1alpha1.SourceAnnotation, w.namespace+"/fleet"))
		Expect(*supported(cma)).To(HaveLen(1))
		for _, entry := range cma.ManagedFields {
			Expect(entry.Manager).To(Equal(v1alpha1.FieldManager))
		}
		w.green(sha)
	})
})

var _ = Describe("On a hub without OCM's addon-manager", func() {
	It("a ClusterManagementAddOn is applied as declared, and fenced off when the addon-manager is started", func() {
		w := newWorld()
		w.mode = addonsource.Replace
		w.start()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma := w.cma()
		w.read(cma)
		Expect(cma.Annotations).NotTo(HaveKey(v1alpha1.LifecycleAnnotation))
		Expect(cma.Spec.InstallStrategy.Placements).To(HaveLen(1))
		Expect(*supported(cma)).To(HaveLen(2))
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).NotTo(ContainElement(ContainSubstring("clustermanagementaddons")))

		w.mode = addonsource.Coexist
		w.start()
		w.look()
		cma = w.cma()
		w.read(cma)
		Expect(cma.Annotations).To(HaveKeyWithValue(v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue))
		Expect(cma.Spec.InstallStrategy.Placements).To(BeEmpty())
		Expect(*supported(cma)).To(HaveLen(1))
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})
})

var _ = Describe("Revisions", func() {
	It("are kept as long as they are used, and so are the newest", func() {
		w := newWorld()
		limit := strings.Replace(rolloutYAML, "spec:\n", "spec:\n  revisionHistoryLimit: 1\n", 1)
		files := addOnFilesWith(map[string]string{"addons/addonrollout.yaml": limit})
		w.commit("v0", files)
		w.passes()
		first := w.revisions()[0]
		w.create(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "addon-" + w.addOn + "-deploy-0",
			Labels:      map[string]string{addonv1alpha1.AddonLabelKey: w.addOn},
			Annotations: map[string]string{v1alpha1.RevisionAnnotation: first.Spec.Digest},
		}})
		for i := range 4 {
			w.commit(fmt.Sprintf("v%d", i+1), map[string]string{
				"addons/addondeploymentconfig.yaml": strings.Replace(configYAML, "value: hello", fmt.Sprintf("value: hello%d", i), 1),
			})
			w.look()
		}
		kept := w.revisions()
		Expect(kept).To(HaveLen(3), "the one a work runs, the target, and one of history")
		Expect(kept).To(ContainElement(HaveField("ObjectMeta.Name", first.Name)))
	})
})

// createHashed creates a ManagedClusterAddOn as OCM's addon-manager leaves it.
func (w *world) createHashed(cluster string) {
	GinkgoHelper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	mca := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: w.addOn}}
	w.create(mca)
	hashed := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: w.addOn}, SpecHash: "abc"}
	mca.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: templatesConfig().ConfigGroupResource,
		ConfigReferent:      hashed.ConfigReferent,
		DesiredConfig:       hashed,
		LastAppliedConfig:   hashed,
	}}
	Expect(admin.Status().Update(context.Background(), mca)).To(Succeed())
}

// hashes returns the clusters whose ManagedClusterAddOn has a template's hash.
func (w *world) hashes() []string {
	GinkgoHelper()
	list := &addonv1alpha1.ManagedClusterAddOnList{}
	Expect(admin.List(context.Background(), list)).To(Succeed())
	var clusters []string
	for _, mca := range list.Items {
		if mca.Name == w.addOn && len(mca.Status.ConfigReferences) > 0 && mca.Status.ConfigReferences[0].DesiredConfig.SpecHash != "" {
			clusters = append(clusters, mca.Namespace)
		}
	}
	return clusters
}

var _ = Describe("The deletion of a source that was killed before it wrote an add-on", func() {
	It("leaves the revisions that another source of the namespace made of the add-on", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = nil })
		w.commit("add hello", addOnFiles())
		left := 2 // the finalizer of the source, and what it is about to write
		w.requests.left = &left
		_, err := w.passOf("fleet")
		Expect(err).To(HaveOccurred())
		w.start()
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true })
		moved := map[string]string{}
		for path, content := range addOnFiles() {
			moved["other/"+path] = content
		}
		w.commit("move hello", moved)
		w.create(w.newSource("second", func(s *v1alpha1.AddOnSource) { s.Spec.Path, s.Spec.CommitStatus = "other", nil }))
		Eventually(func() []v1alpha1.AddOnRevision {
			_, err := w.passOf("second")
			Expect(err).NotTo(HaveOccurred())
			w.clock.Step(2 * time.Minute)
			return w.revisions()
		}).WithTimeout(patience).Should(HaveLen(1))

		Expect(admin.Delete(context.Background(), w.source())).To(Succeed())
		_, _ = w.passOf("fleet")
		Expect(w.revisions()).To(HaveLen(1))
	})
})
