package ocm

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/hub"
)

// agentNamespace is where the add-ons run on the managed clusters.
const agentNamespace = "open-cluster-management-agent-addon"

var _ = Describe("On OCM's placement controller and a real klusterlet", func() {
	It("canary, fleet, bad commit and revert are rolled out", func(ctx SpecContext) {
		w, options := startWorld(ctx, hub.OCM12)
		schedule(ctx, w)
		canary := memberNames()[0]
		w.Fleet.Silence(canary)
		managed := startKlusterlet(ctx, w, canary)
		runDeployments(managed)
		Expect(w.StartOperator(options)).To(Succeed())

		By("installing v1")
		v1 := commit(ctx, w, "story", "v1")
		awaitPhase(ctx, w, "story", v1, v1alpha1.PhaseSucceeded)
		expectEcho(ctx, w, managed, canary, "v1")

		By("moving to v2, the real cluster first")
		v2 := commit(ctx, w, "story", "v2")
		awaitPhase(ctx, w, "story", v2, v1alpha1.PhaseSucceeded)
		expectEcho(ctx, w, managed, canary, "v2")
		Expect(w.Fleet.Running(memberNames()[1])["Deployment/"+agentNamespace+"/story"].ReadyImages).
			To(Equal([]string{"example.com/story:v2"}))

		By("failing v3 in the canary by the Deployment's own reason")
		before := worksOf(ctx, w.Client, "story")
		v3 := commit(ctx, w, "story", "bad")
		ro := awaitPhase(ctx, w, "story", v3, v1alpha1.PhaseFailed)
		Expect(ro.Status.Message).To(ContainSubstring("ProgressDeadlineExceeded"))
		Expect(written(before, worksOf(ctx, w.Client, "story"))).To(ConsistOf(HavePrefix(canary + "/")))

		By("reverting")
		revert, err := w.Repo.Revert(v3)
		Expect(err).NotTo(HaveOccurred())
		look(ctx, w)
		awaitPhase(ctx, w, "story", revert, v1alpha1.PhaseSucceeded)
		expectEcho(ctx, w, managed, canary, "v2")
	}, SpecTimeout(10*time.Minute))
})

// schedule hands the world's placements over to OCM's placement controller.
func schedule(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(w.Hub.Config(), envtest.CRDInstallOptions{Paths: []string{"crds"}})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"all", "canary"} {
		Expect(w.Fleet.DeletePlacement(ctx, demo.Namespace, name)).To(Succeed())
	}
	apply(ctx, w.Client, corpusFile{text: schedulingText}.objects()...)
	startOCM("placement", w.Kubeconfig)
}

const schedulingText = `apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata:
  name: default
spec:
  clusterSelector:
    selectorType: ExclusiveClusterSetLabel
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: default
  namespace: default
spec:
  clusterSet: default
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: all
  namespace: default
spec: {}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: canary
  namespace: default
spec:
  predicates:
  - requiredClusterSelector:
      labelSelector:
        matchLabels:
          open-cluster-management.io/cluster-name: cluster-001
`

// startKlusterlet starts a managed cluster without controllers: an API server, and OCM's work
// agent.
func startKlusterlet(ctx SpecContext, w *demo.World, cluster string) client.WithWatch {
	GinkgoHelper()
	managed, err := hub.Start(ctx, hub.Options{Namespaces: []string{agentNamespace}, Output: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(managed.Stop()).To(Succeed()) })
	_, err = envtest.InstallCRDs(managed.Config(), envtest.CRDInstallOptions{Paths: []string{"crds"}})
	Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(managed.Config(), client.Options{Scheme: hub.NewScheme()})
	Expect(err).NotTo(HaveOccurred())

	kubeconfig := filepath.Join(w.Dir, "managed", "kubeconfig")
	Expect(managed.WriteKubeconfig(kubeconfig)).To(Succeed())
	startOCM("work-agent", kubeconfig, "--spoke-cluster-name="+cluster, "--hub-kubeconfig="+w.Kubeconfig,
		"--workload-source-config="+w.Kubeconfig, "--status-sync-interval=2s")
	return c
}

// runDeployments plays the Deployment controller until the spec ends.
func runDeployments(c client.WithWatch) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	DeferCleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		started := map[string]time.Time{}
		for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
			var list appsv1.DeploymentList
			if c.List(ctx, &list) == nil {
				for i := range list.Items {
					moveDeployment(ctx, c, &list.Items[i], started)
				}
			}
			select {
			case <-ctx.Done():
				tick.Stop()
			case <-tick.C:
			}
		}
	}()
}

// moveDeployment writes the status that Kubernetes' controller would: the pods of a
// good image become ready at once, the new pod of a bad one never, and the old stays.
func moveDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment, started map[string]time.Time) {
	image := d.Spec.Template.Spec.Containers[0].Image
	if _, known := started[image]; !known {
		started[image] = time.Now()
	}
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentAvailable, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
			condition(appsv1.DeploymentProgressing, "True", "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."),
		},
	}
	if image == "example.com/story:bad" {
		status.Replicas, status.UnavailableReplicas = 2, 1
		status.Conditions[1] = condition(appsv1.DeploymentProgressing, "True", "ReplicaSetUpdated", "ReplicaSet is progressing.")
		if time.Since(started[image]) > 2*time.Second {
			status.Conditions[1] = condition(appsv1.DeploymentProgressing, "False", "ProgressDeadlineExceeded", "ReplicaSet has timed out progressing.")
		}
	}
	if same(d.Status, status) {
		return
	}
	d.Status = status
	_ = c.Status().Update(ctx, d) // a conflict is looked at again with the next tick
}

func condition(kind appsv1.DeploymentConditionType, is, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionStatus(is), Reason: reason, Message: message}
}

// same compares two statuses, clocks apart.
func same(a, b appsv1.DeploymentStatus) bool {
	left, right := flat{}, flat{}
	flatten(left, "", generic(a))
	flatten(right, "", generic(b))
	return len(difference(left, right)) == 0
}

// expectEcho compares the objects on the real cluster with the feedback in its work.
func expectEcho(ctx context.Context, w *demo.World, managed client.Client, cluster, tag string) {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetAPIVersion("apps/v1")
	live.SetKind("Deployment")
	Expect(managed.Get(ctx, client.ObjectKey{Namespace: agentNamespace, Name: "story"}, live)).To(Succeed())
	containers, _, err := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	Expect(containers).To(ConsistOf(HaveKeyWithValue("image", "example.com/story:"+tag)))

	digest := live.GetAnnotations()[v1alpha1.DigestAnnotation]
	Expect(digest).NotTo(BeEmpty())
	work := worksOf(ctx, w.Client, "story")[join(cluster, "addon-story-deploy-0")]
	Expect(work.Annotations).To(HaveKeyWithValue(v1alpha1.DigestAnnotation, digest))
	values := work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
	Expect(generic(values)).To(ContainElement(HaveKeyWithValue("fieldValue", HaveKeyWithValue("string", digest))),
		"the work agent echoes the digest")
}
