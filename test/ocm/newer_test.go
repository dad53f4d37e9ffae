package ocm

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/sample"
)

// registers is the registration of the sample add-on's agent, appended to its template.
const registers = `  registration:
  - type: KubeClient
    kubeClient: {}
`

var _ = Describe("On a hub of OCM 1.3", func() {
	// The Go module proxy does not serve the programs of OCM 1.3. Those of 1.2 install the
	// add-on through the same definitions; then the spec leaves it as OCM 1.3 does.
	It("take an add-on over that is declared, owned and reported in v1beta1, and write no work for equal content", func(ctx SpecContext) {
		w, options := startWorld(ctx, hub.OCM13)
		apply(ctx, w.Client, declaredInBeta("newer", "v1")...)
		manager := startOCM("addon-manager", w.Kubeconfig)
		awaitAvailable(ctx, w.Client, corpusFile{name: "newer"}, "OCM")
		stop(manager)
		asOCM13LeavesIt(ctx, w, "newer")
		deployed := worksOf(ctx, w.Client, "newer")

		By("taking over equal content")
		Expect(w.StartOperator(options)).To(Succeed())
		sha := submitNewer(ctx, w, "v1")
		awaitPhase(ctx, w, "newer", sha, v1alpha1.PhaseSucceeded)
		taken := worksOf(ctx, w.Client, "newer")
		Expect(written(deployed, taken)).To(BeEmpty(), "equal content writes no work: %q", changes(deployed, taken))
		expectFenced(ctx, w, "newer")

		By("moving it to the next version")
		awaitPhase(ctx, w, "newer", submitNewer(ctx, w, "v2"), v1alpha1.PhaseSucceeded)
		expectFenced(ctx, w, "newer")
		for _, work := range worksOf(ctx, w.Client, "newer") {
			Expect(work.Generation).To(Equal(deployed[join(work.Namespace, work.Name)].Generation+1), "one write of each work")
		}
	}, SpecTimeout(10*time.Minute))
})

// idle is one more manifest of the sample add-on: a Deployment that wants no pod, which an
// agent reports no counts of.
const idle = `      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: idle, namespace: open-cluster-management-agent-addon}
        spec:
          replicas: 0
          selector: {matchLabels: {app: idle}}
          template:
            metadata: {labels: {app: idle}}
            spec:
              containers:
              - {name: agent, image: example.com/idle:v1}
`

// newerTemplate is the sample add-on at a tag, with an idle Deployment and an agent that
// registers.
func newerTemplate(tag string) string { return sample.Template("newer", tag) + idle + registers }

// submitNewer pushes the add-on at a tag and requests a reconcile.
func submitNewer(ctx context.Context, w *demo.World, tag string) string {
	GinkgoHelper()
	sha, err := w.Repo.Commit(tag, map[string]string{
		"addons/template.yaml": newerTemplate(tag),
		"addons/addon.yaml":    sample.AddOn("newer", "all"),
		"addons/rollout.yaml":  sample.Rollout("newer", canaryFirst),
	})
	Expect(err).NotTo(HaveOccurred())
	look(ctx, w)
	awaitReady(ctx, w)
	return sha
}

// declaredInBeta is the add-on as a team declares it on a hub of OCM 1.3: the
// ClusterManagementAddOn in v1beta1, the template in its only version.
func declaredInBeta(name, tag string) []*unstructured.Unstructured {
	GinkgoHelper()
	objects := corpusFile{name: name, text: newerTemplate(tag) + "---\n" + sample.AddOn(name, "all")}.objects()
	alpha, beta := &addonv1alpha1.ClusterManagementAddOn{}, &addonv1beta1.ClusterManagementAddOn{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects[1].Object, alpha)).To(Succeed())
	Expect(addonv1beta1.Convert_v1alpha1_ClusterManagementAddOn_To_v1beta1_ClusterManagementAddOn(alpha, beta, nil)).To(Succeed())
	declared, err := runtime.DefaultUnstructuredConverter.ToUnstructured(beta)
	Expect(err).NotTo(HaveOccurred())
	objects[1] = &unstructured.Unstructured{Object: declared}
	objects[1].SetGroupVersionKind(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ClusterManagementAddOn"))
	unstructured.RemoveNestedField(objects[1].Object, "status")
	unstructured.RemoveNestedField(objects[1].Object, "metadata", "creationTimestamp")
	return objects
}

// inBeta reads an object in v1beta1.
func inBeta[T any](ctx context.Context, w *demo.World, key client.ObjectKey, kind string) *T {
	GinkgoHelper()
	live, typed := &unstructured.Unstructured{}, new(T)
	live.SetGroupVersionKind(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind(kind))
	Expect(w.Client.Get(ctx, key, live)).To(Succeed())
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed)).To(Succeed())
	return typed
}

// asOCM13LeavesIt writes, in v1beta1, what OCM 1.3 writes otherwise than 1.2: the version
// in owner references, and the groups of an agent.
func asOCM13LeavesIt(ctx context.Context, w *demo.World, name string) {
	GinkgoHelper()
	for _, cluster := range memberNames() {
		addOn := inBeta[addonv1beta1.ManagedClusterAddOn](ctx, w, client.ObjectKey{Namespace: cluster, Name: name}, "ManagedClusterAddOn")
		Expect(addOn.OwnerReferences).NotTo(BeEmpty())
		for i := range addOn.OwnerReferences {
			addOn.OwnerReferences[i].APIVersion = schema.GroupVersion(addonv1beta1.GroupVersion).String()
		}
		Expect(addOn.Status.Registrations).To(HaveLen(1))
		groups := addOn.Status.Registrations[0].KubeClient.Subject.Groups
		Expect(groups).To(ContainElement("system:authenticated"), "OCM 1.2 lists it")
		addOn.Status.Registrations[0].KubeClient.Subject.Groups = groups[:2]
		writeInBeta(ctx, w.Client, addOn)
	}
	for _, work := range worksOf(ctx, w.Client, name) {
		Expect(work.OwnerReferences).NotTo(BeEmpty())
		for i := range work.OwnerReferences {
			work.OwnerReferences[i].APIVersion = schema.GroupVersion(addonv1beta1.GroupVersion).String()
		}
		Expect(w.Client.Update(ctx, work, client.FieldOwner("addon-manager"))).To(Succeed())
	}
}

// writeInBeta updates a ManagedClusterAddOn and its status as OCM 1.3 does.
func writeInBeta(ctx context.Context, c client.Client, addOn *addonv1beta1.ManagedClusterAddOn) {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(addOn)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"))
	status := object.DeepCopy()
	Expect(c.Update(ctx, object, client.FieldOwner("addon-manager"))).To(Succeed())
	status.SetResourceVersion(object.GetResourceVersion())
	Expect(c.Status().Update(ctx, status, client.FieldOwner("addon-manager"))).To(Succeed())
}

// expectFenced checks the fields that keep OCM 1.3's controllers away: the strategy Manual stops the controller that
// copies annotations, and without a template no deployment starts.
func expectFenced(ctx context.Context, w *demo.World, name string) {
	GinkgoHelper()
	addOn := inBeta[addonv1beta1.ClusterManagementAddOn](ctx, w, client.ObjectKey{Name: name}, "ClusterManagementAddOn")
	Expect(addOn.Spec.InstallStrategy.Type).To(Equal(addonv1beta1.AddonInstallStrategyManual))
	for _, config := range addOn.Spec.DefaultConfigs {
		Expect(config.Resource).NotTo(Equal("addontemplates"))
	}
	for _, cluster := range memberNames() {
		installed := inBeta[addonv1beta1.ManagedClusterAddOn](ctx, w, client.ObjectKey{Namespace: cluster, Name: name}, "ManagedClusterAddOn")
		Expect(installed.Status.Registrations).To(HaveLen(1))
		subject := installed.Status.Registrations[0].KubeClient.Subject
		Expect(subject.Groups).To(HaveLen(2))
		for _, group := range subject.Groups {
			Expect(strings.HasPrefix(group, "system:open-cluster-management:")).To(BeTrue(), group)
		}
		Expect(installed.Status.Conditions).To(ContainElement(And(HaveField("Type", "Configured"), HaveField("Status", metav1.ConditionTrue))))
		for _, reference := range installed.Status.ConfigReferences {
			if reference.Resource == "addontemplates" && reference.DesiredConfig != nil {
				Expect(reference.DesiredConfig.SpecHash).To(BeEmpty(), "with a hash OCM's template manager would deploy")
			}
		}
	}
}
