package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/fleet"
)

// hostedText is the other manifests of a hosted add-on besides its Deployment, which runs on
// the hosting cluster under the managed cluster's name.
const hostedText = `      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: ADDON-managed
          namespace: open-cluster-management-agent-addon
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: ADDON-nowhere
          namespace: open-cluster-management-agent-addon
          annotations: {addon.open-cluster-management.io/hosted-manifest-location: none}
      - apiVersion: v1
        kind: Pod
        metadata:
          name: ADDON-cleanup-{{CLUSTER_NAME}}
          namespace: open-cluster-management-agent-addon
          annotations:
            addon.open-cluster-management.io/addon-pre-delete: ""
            addon.open-cluster-management.io/hosted-manifest-location: hosting
        spec:
          restartPolicy: Never
          containers:
          - name: cleanup
            image: example.com/cleanup:v1
`

const hostingKey = addonv1alpha1.HostingClusterNameAnnotationKey

// hosted is the add-on at a tag, its Deployment on the hosting cluster.
func (s *scene) hosted(tag string) map[string]string {
	tree := s.tree(tag, "")
	name := "          name: " + s.addOn + "\n"
	deployment := strings.Replace(tree["addons/template.yaml"], name,
		"          name: "+s.addOn+"-{{CLUSTER_NAME}}\n          annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}\n", 1)
	tree["addons/template.yaml"] = deployment + strings.ReplaceAll(hostedText, "ADDON", s.addOn)
	return tree
}

// objects of the add-on on a cluster, sorted.
func (s *scene) objects(cluster string) []string {
	out := []string{}
	for _, o := range world.Fleet.Objects(cluster) {
		if strings.Contains(o, "/"+s.addOn) {
			out = append(out, o)
		}
	}
	return out
}

var _ = Describe("Hosted mode", func() {
	It("installs on two clusters, upgrades, moves to another hosting cluster, and is removed", func(ctx SpecContext) {
		all := clusters(4)
		managed, first, second := all[0], all[2], all[3]
		s := newScene(ctx, "hosted", all[1:2])
		s.handMade(managed, map[string]string{hostingKey: first})
		s.deliver("v1", s.hosted("v1"))

		By("installing: the Deployment on the hosting cluster, the rest on the managed one")
		deployment := "Deployment/" + agentNamespace + "/hosted-" + managed
		Expect(s.objects(managed)).To(ConsistOf("ConfigMap/" + agentNamespace + "/hosted-managed"))
		Expect(s.objects(first)).To(ConsistOf(deployment))
		Expect(s.objects(all[1])).To(ConsistOf("Deployment/"+agentNamespace+"/hosted-"+all[1],
			"ConfigMap/"+agentNamespace+"/hosted-managed", "ConfigMap/"+agentNamespace+"/hosted-nowhere"), "in the default mode everything is deployed")
		var work workv1.ManifestWork
		Expect(world.Client.Get(ctx, client.ObjectKey{Namespace: first, Name: "addon-hosted-deploy-hosting-" + managed + "-0"}, &work)).To(Succeed())
		Expect(work.Labels).To(And(HaveKeyWithValue(addonv1alpha1.AddonLabelKey, "hosted"), HaveKeyWithValue(addonv1alpha1.AddonNamespaceLabelKey, managed)))
		Expect(work.OwnerReferences).To(BeEmpty())
		Expect(s.addOnOf(managed).Finalizers).To(ConsistOf(
			addonv1alpha1.AddonHostingPreDeleteHookFinalizer, addonv1alpha1.AddonHostingManifestFinalizer))
		Eventually(s.addOnCondition).WithArguments(managed, addonv1alpha1.ManagedClusterAddOnHostingClusterValidity).Should(
			Equal("True HostingClusterValid: hosting cluster " + first + " is a managed cluster of the hub"))
		Expect(s.rollout().Status.Counts.Total).To(BeEquivalentTo(2), "a hosted cluster counts once")

		By("upgrading: verified by what the hosting cluster echoes")
		hold(first)
		sha := s.submit("v2", s.hosted("v2"))
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(1))
		Consistently(func() v1alpha1.Phase { return s.rollout().Status.Phase }, "2s").Should(Equal(v1alpha1.PhaseProgressing))
		release(first)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(world.Fleet.Running(first)[deployment].ReadyImages).To(ConsistOf("example.com/hosted:v2"))

		By("reporting a name that is mistyped, and touching nothing")
		s.annotateAddOn(managed, `"`+hostingKey+`":"nobody"`)
		Eventually(s.addOnCondition).WithArguments(managed, addonv1alpha1.ManagedClusterAddOnHostingClusterValidity).Should(
			Equal("False HostingClusterInvalid: hosting cluster nobody is not a managed cluster of the hub"))
		Eventually(func() []v1alpha1.ClusterReason { return s.rollout().Status.Failing }).Should(ConsistOf(
			v1alpha1.ClusterReason{Cluster: managed, Reason: "hosting cluster nobody is not a managed cluster of the hub"}))
		Expect(s.objects(first)).To(ConsistOf(deployment))

		By("moving")
		s.annotateAddOn(managed, `"`+hostingKey+`":"`+second+`"`)
		Eventually(s.objects).WithArguments(second).Should(ConsistOf(deployment))
		Eventually(s.objects).WithArguments(first).Should(BeEmpty())
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(2))

		By("running its hook where it is hosted, whatever the annotation says by then")
		hold(second)
		s.annotateAddOn(managed, `"`+hostingKey+`":"nobody"`)
		s.discard(managed, metav1.DeletePropagationForeground)
		Eventually(s.objects).WithArguments(second).Should(ConsistOf(deployment, "Pod/"+agentNamespace+"/hosted-cleanup-"+managed))
		Expect(s.works(second)).To(ConsistOf("addon-hosted-deploy-hosting-"+managed+"-0", "addon-hosted-pre-delete-hosting-"+managed))
		release(second)
		Eventually(s.gone(managed)).Should(Succeed())
		Eventually(s.works).WithArguments(second).Should(BeEmpty())
		Expect(s.objects(second)).To(BeEmpty())
	})

	It("goes back to the default mode, and releases a hosting cluster that is gone", func(ctx SpecContext) {
		all := clusters(3)
		host := "host-that-goes"
		Expect(world.Fleet.AddClusters(ctx, fleet.Cluster{Name: host})).To(Succeed())
		s := newScene(ctx, "back", all[1:2])
		s.handMade(all[0], map[string]string{hostingKey: all[2]})
		s.handMade(all[2], map[string]string{hostingKey: host})
		s.deliver("v1", s.hosted("v1"))
		Expect(s.objects(all[2])).To(ConsistOf("Deployment/"+agentNamespace+"/back-"+all[0], "ConfigMap/"+agentNamespace+"/back-managed"),
			"a hosting cluster can be a hosted one as well")

		s.annotateAddOn(all[0], `"`+hostingKey+`":null`)
		Eventually(s.objects).WithArguments(all[0]).Should(HaveLen(3))
		Eventually(s.objects).WithArguments(all[2]).Should(HaveLen(1))
		Eventually(func() []string { return s.addOnOf(all[0]).Finalizers }).Should(Equal([]string{addonv1alpha1.AddonPreDeleteHookFinalizer}))
		Eventually(s.addOnCondition).WithArguments(all[0], addonv1alpha1.ManagedClusterAddOnHostingClusterValidity).Should(BeEmpty())

		Expect(world.Fleet.RemoveCluster(ctx, host)).To(Succeed())
		s.discard(all[2], metav1.DeletePropagationBackground)
		Eventually(s.gone(all[2])).Should(Succeed())
	})
})
