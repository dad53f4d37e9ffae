package ocm

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/sample"
)

// greeting is a configuration that only the placement assigns. The fenced
// ClusterManagementAddOn does not list it, so that OCM's addon-manager renders its variable
// empty.
const greeting = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: greeting, namespace: default}
spec:
  customizedVariables: [{name: GREETING, value: hello}]
`

// commitGreeting pushes an add-on with that configuration.
func commitGreeting(ctx context.Context, w *demo.World, name string) string {
	GinkgoHelper()
	addOn := strings.NewReplacer(
		"  installStrategy:", "  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs}\n  installStrategy:",
		"      name: all\n", "      name: all\n      configs:\n      - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: greeting}\n",
	).Replace(sample.AddOn(name, "all"))
	sha, err := w.Repo.Commit("greet", map[string]string{
		"addons/template.yaml": strings.Replace(sample.Template(name, "v1"), "--cluster={{CLUSTER_NAME}}", "--greeting={{GREETING}}", 1),
		"addons/addon.yaml":    addOn,
		"addons/config.yaml":   greeting,
	})
	Expect(err).NotTo(HaveOccurred())
	look(ctx, w)
	awaitReady(ctx, w)
	return sha
}

// greetings are the texts in the works of the add-on fenced, by cluster and name.
func greetings(ctx context.Context, c client.Client) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for key, work := range worksOf(ctx, c, "fenced") {
		for _, manifest := range work.Spec.Workload.Manifests {
			if _, after, found := strings.Cut(string(manifest.Raw), "--greeting="); found {
				out[key], _, _ = strings.Cut(after, `"`)
			}
		}
	}
	return out
}

var _ = Describe("A fence that is down", func() {
	It("while no operator runs is put up again by the next one, which repairs what OCM wrote and says so", func(ctx SpecContext) {
		w, options := startWorld(ctx, hub.OCM12)
		startOCM("addon-manager", w.Kubeconfig)
		Expect(w.StartOperator(options)).To(Succeed())
		sha := commitGreeting(ctx, w, "fenced")
		awaitPhase(ctx, w, "fenced", sha, v1alpha1.PhaseSucceeded)
		Expect(greetings(ctx, w.Client)).To(And(Not(BeEmpty()), HaveEach("hello")))

		By("taking the fence down while the operator is stopped: OCM renders the variable empty")
		Expect(w.Operator.Stop()).To(Succeed())
		cma := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(w.Client.Get(ctx, client.ObjectKey{Name: "fenced"}, cma)).To(Succeed())
		delete(cma.Annotations, v1alpha1.LifecycleAnnotation)
		cma.Spec.SupportedConfigs = append(cma.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"},
			DefaultConfig:       &addonv1alpha1.ConfigReferent{Name: "fenced"},
		})
		Expect(w.Client.Update(ctx, cma, client.FieldOwner("another-writer"))).To(Succeed())

		Eventually(func() map[string]string { return greetings(ctx, w.Client) }).Should(ContainElement(""))

		By("starting the operator")
		Expect(w.StartOperator(options)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(w.Client.Get(ctx, client.ObjectKey{Name: "fenced"}, cma)).To(Succeed())
			g.Expect(cma.Annotations).To(And(HaveKeyWithValue(v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue), HaveKey(v1alpha1.FencedAtAnnotation)))
			g.Expect(greetings(ctx, w.Client)).To(HaveEach("hello"))
		}).Should(Succeed())
		awaitPhase(ctx, w, "fenced", sha, v1alpha1.PhaseSucceeded)
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(w.Client.List(ctx, events)).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", v1alpha1.FenceRestoredReason), HaveField("InvolvedObject.Name", "fenced"))))
		}).Should(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(greetings(ctx, w.Client)).To(HaveEach("hello"))
		}, "15s", "1s").Should(Succeed())
	}, SpecTimeout(10*time.Minute))
})
