package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/fleet"
)

const hookText = `      - apiVersion: batch/v1
        kind: Job
        metadata:
          name: ADDON-cleanup
          namespace: open-cluster-management-agent-addon
          annotations:
            addon.open-cluster-management.io/addon-pre-delete: ""
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
              - name: cleanup
                image: example.com/cleanup:TAG
`

// hooked is the add-on at v1 with one more manifest, a hook whose image has the tag.
func (s *scene) hooked(tag string) map[string]string {
	tree := s.tree("v1", "")
	tree["addons/template.yaml"] += strings.NewReplacer("ADDON", s.addOn, "TAG", tag).Replace(hookText)
	return tree
}

// haveRun matches the objects of a cluster while the add-on and its hook are there.
func (s *scene) haveRun() types.GomegaMatcher {
	return ContainElements("Deployment/"+agentNamespace+"/"+s.addOn, "Job/"+agentNamespace+"/"+s.addOn+"-cleanup")
}

var _ = Describe("Pre-delete hooks", func() {
	It("run when the add-on is removed, before its works, however it is deleted", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "hook", all[:2])
		s.handMade(all[2], nil)
		s.deliver("v1", s.hooked("v1"))
		for _, name := range all {
			Expect(world.Fleet.Objects(name)).NotTo(ContainElement(HaveSuffix("hook-cleanup")), "it waits for the removal")
			Expect(s.addOnOf(name).Finalizers).To(Equal([]string{addonv1alpha1.AddonPreDeleteHookFinalizer}))
		}
		hold(all...)

		s.discard(all[1], metav1.DeletePropagationForeground)
		s.discard(all[2], metav1.DeletePropagationBackground)
		for _, name := range all[1:] {
			Eventually(s.works).WithArguments(name).Should(ConsistOf("addon-hook-deploy-0", "addon-hook-pre-delete"))
			Eventually(s.addOnCondition).WithArguments(name, addonv1alpha1.ManagedClusterAddOnHookManifestCompleted).Should(
				HavePrefix("False HookManifestIsNotCompleted: hook manifestWork addon-hook-pre-delete is not completed."))
			Eventually(func() []string { return world.Fleet.Objects(name) }).Should(s.haveRun())
		}
		Consistently(func() []string { return world.Fleet.Objects(all[1]) }, "2s").Should(s.haveRun(),
			"a deletion in the foreground leaves the add-on running until the hook completed")
		release(all[1:]...)
		Eventually(s.gone(all[2])).Should(Succeed())
		By("being installed anew where the placement still selects the cluster")
		Eventually(func() map[string]string { return s.running(all[1]) }).Should(allAt("v1", all[1]))
	})

	It("that fail or hang are reported, keep the add-on, and can be skipped", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "stuck", all[:1])
		s.handMade(all[1], nil)
		s.handMade(all[2], nil)
		sha := s.deliver("v1", s.hooked("fails"))
		hold(all[2])

		By("naming the hook that failed at once")
		s.discard(all[1], metav1.DeletePropagationBackground)
		hook := addonv1alpha1.ManagedClusterAddOnHookManifestCompleted
		Eventually(s.addOnCondition).WithArguments(all[1], hook).Should(And(
			HavePrefix("False HookManifestIsNotCompleted: hook manifestWork addon-stuck-pre-delete is not completed."),
			ContainSubstring("Job stuck-cleanup failed: BackoffLimitExceeded"),
			ContainSubstring(v1alpha1.SkipPreDeleteAnnotation)))
		Eventually(func() string { return s.rollout().Status.Message }).Should(And(
			ContainSubstring("1 not removed yet"), ContainSubstring(all[1])))
		Eventually(s.statusOf).WithArguments(sha, "pre_delete_hooks").Should(And(HavePrefix("failure: "), ContainSubstring(all[1])))

		By("naming the one that hangs after its time")
		s.discard(all[2], metav1.DeletePropagationBackground)
		Eventually(s.addOnCondition).WithArguments(all[2], hook).Should(ContainSubstring("Job stuck-cleanup has not"))
		Eventually(func() []v1alpha1.ClusterReason { return s.rollout().Status.Failing }).Should(HaveLen(2))
		Consistently(func() []string { return world.Fleet.Objects(all[1]) }, "2s").Should(s.haveRun(), "nothing is lost")

		s.annotateAddOn(all[1], `"`+v1alpha1.SkipPreDeleteAnnotation+`":"true"`)
		s.annotateAddOn(all[2], `"`+v1alpha1.SkipPreDeleteAnnotation+`":"true"`)
		Eventually(s.gone(all[1])).Should(Succeed())
		Eventually(s.gone(all[2])).Should(Succeed())
		Eventually(func() string { return s.rollout().Status.Message }).ShouldNot(ContainSubstring("not removed"))
		Eventually(s.statusOf).WithArguments(sha, "pre_delete_hooks").Should(HavePrefix("success: "))
		Expect(s.statusOf(sha)).To(HavePrefix("success: "), "the content itself is none the worse for it")
	})

	It("wait for a cluster that is not available, and run on its return", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "away", all[:1])
		s.handMade(all[1], nil)
		s.deliver("v1", s.hooked("v1"))
		Expect(world.Fleet.Disappear(ctx, all[1])).To(Succeed())
		s.discard(all[1], metav1.DeletePropagationBackground)
		Eventually(func() string { return s.rollout().Status.Message }).Should(And(
			ContainSubstring("1 not removed yet"), ContainSubstring(all[1]), ContainSubstring("not available")))
		Expect(world.Fleet.Return(ctx, all[1])).To(Succeed())
		Eventually(s.gone(all[1])).Should(Succeed())
	})

	It("are given up, with an event, on a cluster that left the hub", func(ctx SpecContext) {
		gone := "cluster-that-goes"
		Expect(world.Fleet.AddClusters(ctx, fleet.Cluster{Name: gone})).To(Succeed())
		s := newScene(ctx, "stranded", clusters(1))
		s.handMade(gone, nil)
		s.deliver("v1", s.hooked("v1"))
		hold(gone)
		s.discard(gone, metav1.DeletePropagationBackground)
		Eventually(s.works).WithArguments(gone).Should(ConsistOf("addon-stranded-deploy-0", "addon-stranded-pre-delete"))
		Expect(world.Fleet.RemoveCluster(ctx, gone)).To(Succeed())
		Eventually(s.addOnCondition).WithArguments(gone, addonv1alpha1.ManagedClusterAddOnHookManifestCompleted).Should(BeEmpty(), "the ManagedClusterAddOn is gone")
		Eventually(s.works).WithArguments(gone).Should(BeEmpty())
		Eventually(s.events).WithArguments(gone, v1alpha1.PreDeleteHookSkippedReason).Should(ConsistOf(
			"Removed without its pre-delete hook: cluster " + gone + " is not a managed cluster of the hub"))
	})

	It("run on every cluster of an add-on that leaves Git, and leave nothing behind", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "leaving", all)
		s.deliver("v1", s.hooked("v1"))
		hold(all...)
		sha, err := s.repo.Remove("away", "addons/template.yaml", "addons/addon.yaml")
		Expect(err).NotTo(HaveOccurred())
		s.reconcile()
		Eventually(func() *v1alpha1.Removal { return s.rollout().Spec.Removal }).ShouldNot(BeNil())
		s.annotateRollout(v1alpha1.ApproveRemovalAnnotation, sha)
		for _, name := range all {
			Eventually(func() []string { return world.Fleet.Objects(name) }).Should(s.haveRun())
		}
		Expect(world.Client.Get(ctx, client.ObjectKey{Name: "leaving"}, &addonv1alpha1.ClusterManagementAddOn{})).To(Succeed(), "it goes last")
		for _, name := range all {
			release(name)
			Eventually(s.gone(name)).Should(Succeed())
		}
		Eventually(func() error {
			return world.Client.Get(ctx, client.ObjectKey{Name: "leaving"}, &addonv1alpha1.ClusterManagementAddOn{})
		}).ShouldNot(Succeed())
	})

	It("are asked for by the content that runs: a finalizer comes and goes with them", func(ctx SpecContext) {
		all := clusters(1)
		s := newScene(ctx, "comes", all)
		s.deliver("v1", s.tree("v1", ""))
		Expect(s.addOnOf(all[0]).Finalizers).To(BeEmpty())
		s.deliver("with a hook", s.hooked("v1"))
		Expect(s.addOnOf(all[0]).Finalizers).To(Equal([]string{addonv1alpha1.AddonPreDeleteHookFinalizer}))
		s.deliver("without", s.tree("v1", ""))
		Eventually(func() []string { return s.addOnOf(all[0]).Finalizers }).Should(BeEmpty())
		Consistently(func() []string { return s.works(all[0]) }, time.Second).Should(ConsistOf("addon-comes-deploy-0"))
		var work workv1.ManifestWork
		Expect(world.Client.Get(ctx, client.ObjectKey{Namespace: all[0], Name: "addon-comes-deploy-0"}, &work)).To(Succeed())
		Expect(work.OwnerReferences).To(HaveLen(1), "without hooks it goes with its ManagedClusterAddOn")
	})
})
