package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/demo"
)

// deploymentConfigs is the kind AddOnDeploymentConfig in a reference.
var deploymentConfigs = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}

// tuned is the tree of an add-on whose image tag is a variable, with a default.
func (s *scene) tuned(content, policy string) map[string]string {
	files := s.tree("{{TAG}}", policy)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"],
		`args: ["--cluster`, fmt.Sprintf(`args: ["--content=%s", "--cluster`, content), 1)
	files["addons/addon.yaml"] = strings.Replace(files["addons/addon.yaml"], "  installStrategy:", `  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
    defaultConfig: {namespace: default, name: ADDON-default}
  installStrategy:`, 1)
	files["addons/config.yaml"] = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {namespace: default, name: ADDON-default}
spec:
  customizedVariables:
  - {name: TAG, value: fleet}
`
	for name, text := range files {
		files[name] = strings.ReplaceAll(text, "ADDON", s.addOn)
	}
	return files
}

// config writes a user's AddOnDeploymentConfig to the hub.
func (s *scene) config(name, tag string) {
	GinkgoHelper()
	c := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: name}}
	err := world.Client.Get(s.ctx, client.ObjectKeyFromObject(c), c)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	c.Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{{Name: "TAG", Value: tag}}
	if err != nil {
		Expect(world.Client.Create(s.ctx, c)).To(Succeed())
		return
	}
	Expect(world.Client.Update(s.ctx, c)).To(Succeed())
}

// override names configurations in the ManagedClusterAddOns of clusters.
func (s *scene) override(ctx context.Context, clusters []string, configs ...addonv1alpha1.AddOnConfig) {
	GinkgoHelper()
	for _, name := range clusters {
		addOn := s.addOnOf(name)
		base := addOn.DeepCopy()
		addOn.Spec.Configs = configs
		Expect(world.Client.Patch(ctx, addOn, client.MergeFrom(base))).To(Succeed())
	}
}

// awaitRest waits until no cluster holds a slot or waits for one.
func (s *scene) awaitRest() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		c := s.rollout().Status.Counts
		g.Expect(c.Updated).To(Equal(c.Total))
	}).Should(Succeed())
}

func (s *scene) named(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: deploymentConfigs,
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: demo.Namespace, Name: name},
	}
}

var _ = Describe("Configurations that ManagedClusterAddOns name", func() {
	It("reach the clusters that name them at the add-on's pace, and outrank new content", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "owned", all)
		policy := s.stages("0s", "2m", "2", 0)
		s.deliver("v1", s.tuned("v1", policy))
		Expect(s.running(all...)).To(allAt("fleet", all...))

		By("naming one on one cluster")
		s.config("owned-one", "mine")
		s.override(ctx, all[5:], s.named("owned-one"))
		Eventually(func() map[string]string { return s.running(all...) }).Should(
			And(HaveKeyWithValue(all[5], "mine"), HaveKeyWithValue(all[4], "fleet")))
		s.awaitRest()
		refs := func() []addonv1alpha1.ConfigReference { return s.addOnOf(all[5]).Status.ConfigReferences }
		Eventually(refs).Should(ContainElement(HaveField("ConfigReferent.Name", "owned-one")))

		By("sharing one: no cluster moves ahead of its turn")
		s.config("owned-shared", "shared")
		s.override(ctx, all[:5], s.named("owned-shared"))
		Eventually(func() map[string]string { return s.running(all[:5]...) }).Should(allAt("shared", all[:5]...))
		s.awaitRest()
		hold(all[1:5]...)
		before := s.generations()
		s.config("owned-shared", "edited")
		Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(3), "the canary, then two at a time")
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(HaveLen(3))
		release(all[1:5]...)
		Eventually(func() map[string]string { return s.running(all[:5]...) }).Should(allAt("edited", all[:5]...))
		Expect(mostInFlight("owned")).To(BeNumerically("<=", 2))

		By("rolling out new content: it does not override them")
		s.deliver("v2", s.tuned("v2", policy))
		Expect(s.running(all...)).To(Equal(map[string]string{
			all[0]: "edited", all[1]: "edited", all[2]: "edited", all[3]: "edited", all[4]: "edited", all[5]: "mine",
		}))

		By("reordering what one cluster names: the first counts")
		s.override(ctx, all[5:], s.named("owned-shared"), s.named("owned-one"))
		Eventually(func() map[string]string { return s.running(all[5]) }).Should(allAt("edited", all[5]))
		s.override(ctx, all[5:], s.named("owned-one"), s.named("owned-shared"))
		Eventually(func() map[string]string { return s.running(all[5]) }).Should(allAt("mine", all[5]))
	})

	It("park and name the cluster whose configuration is missing, unsupported or wrong, and no other", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "hindered", all)
		policy := s.stages("0s", "2m", "3", 0)
		s.deliver("v1", s.tuned("v1", policy))

		By("missing")
		s.override(ctx, all[1:2], s.named("hindered-gone"))
		const missing = "addondeploymentconfigs.addon.open-cluster-management.io/default/hindered-gone does not exist"
		Eventually(s.addOnCondition).WithArguments(all[1], "Configured").Should(Equal(
			"False ConfigurationsNotConfigured: Configurations updated and not configured yet: " + missing))
		before := s.generations()
		sha := s.deliver("v2", s.tuned("v2", policy))
		Expect(moved(before, s.generations())).To(Equal([]string{all[0], all[2]}), "clusters that need it are not written")
		Eventually(s.statusOf).WithArguments(sha).Should(And(HavePrefix("success: 2/3 updated, 1 parked ("+all[1]), ContainSubstring("hindered-gone")))

		By("unsupported")
		s.override(ctx, all[1:2], addonv1alpha1.AddOnConfig{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"},
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: demo.Namespace, Name: "x"},
		})
		Eventually(s.addOnCondition).WithArguments(all[1], "Progressing").Should(Equal(
			"False ConfigurationUnsupported: Configuration with gvr /configmaps is not supported for this addon"))

		By("there, and then good")
		s.override(ctx, all[1:2], s.named("hindered-gone"))
		s.config("hindered-gone", "found")
		Eventually(func() map[string]string { return s.running(all...) }).Should(HaveKeyWithValue(all[1], "found"))
		Eventually(s.addOnCondition).WithArguments(all[1], "Configured").Should(HavePrefix("True "))
		Eventually(func() string { return s.rollout().Status.Message }).Should(Equal("3/3 updated"))
	})
})
