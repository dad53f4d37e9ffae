package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// hubConfigs is the kind AddOnHubConfig in a reference.
var hubConfigs = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addonhubconfigs"}

// versions is the tree of an add-on with a template for every version, whose AddOnHubConfig of
// the given name selects the given version.
func (s *scene) versions(config, desired, policy string, versions ...string) map[string]string {
	files := s.tree("", policy)
	template := files["addons/template.yaml"]
	delete(files, "addons/template.yaml")
	for _, v := range versions {
		text := strings.Replace(template, "  name: "+s.addOn+"\n", "  name: "+s.addOn+"-"+v+"\n  labels: {addonflow.io/version: "+v+"}\n", 1)
		files["addons/template-"+v+".yaml"] = strings.Replace(text, "example.com/"+s.addOn+":", "example.com/"+s.addOn+":"+v, 1)
	}
	files["addons/addon.yaml"] = strings.Replace(files["addons/addon.yaml"], "    defaultConfig: {name: "+s.addOn+"}\n",
		"  - group: addon.open-cluster-management.io\n    resource: addonhubconfigs\n    defaultConfig: {name: "+config+"}\n", 1)
	files["addons/hub-config.yaml"] = hubConfigText(config, desired)
	return files
}

func hubConfigText(name, version string) string {
	return "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnHubConfig\nmetadata: {name: " + name + "}\nspec: {desiredVersion: " + version + "}\n"
}

// hubConfigOf is what an add-on's status says about its AddOnHubConfig.
func (s *scene) hubConfigOf(cluster string) addonv1alpha1.ConfigReference {
	for _, r := range s.addOnOf(cluster).Status.ConfigReferences {
		if r.ConfigGroupResource == hubConfigs {
			return r
		}
	}
	return addonv1alpha1.ConfigReference{}
}

// The examples of OCM's add-on lifecycle, step by step: a fresh install of the default version,
// an upgrade of all clusters, a canary upgrade, and its rollback.
var _ = Describe("The lifecycle that an AddOnHubConfig leads", func() {
	It("installs, upgrades, tries a version on the canaries and rolls it back", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "lifecycle", all)

		By("fresh install to the default version")
		s.deliver("install", s.versions("hub-config-xxx", "v0.10.0", "", "v0.10.0"))
		Expect(s.running(all...)).To(allAt("v0.10.0", all...))
		for _, name := range all {
			Eventually(s.addOnCondition).WithArguments(name, "Progressing").Should(HavePrefix("False " + v1alpha1.InstallSucceed))
			ref := s.hubConfigOf(name)
			Expect(ref.Name).To(Equal("hub-config-xxx"))
			Expect(ref.DesiredConfig.SpecHash).To(HaveLen(64))
			Expect(ref.LastAppliedConfig).To(Equal(ref.DesiredConfig))
		}
		var work workv1.ManifestWork
		Expect(world.Client.Get(ctx, client.ObjectKey{Namespace: all[0], Name: "addon-lifecycle-deploy-0"}, &work)).To(Succeed())
		Expect(work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]).To(ContainSubstring(
			`"addonhubconfigs.addon.open-cluster-management.io//hub-config-xxx":"` + s.hubConfigOf(all[0]).DesiredConfig.SpecHash + `"`))

		By("auto upgrade to the latest version")
		s.deliver("upgrade", s.versions("hub-config-yyy", "v0.11.0", "", "v0.10.0", "v0.11.0"))
		Expect(s.running(all...)).To(allAt("v0.11.0", all...))
		for _, name := range all {
			Eventually(s.addOnCondition).WithArguments(name, "Progressing").Should(HavePrefix("False " + v1alpha1.UpgradeSucceed))
			Expect(s.hubConfigOf(name).Name).To(Equal("hub-config-yyy"))
		}

		By("canary upgrade to a specific version")
		before := s.generations()
		hold(all[0])
		policy := "  strategy:\n    type: RollingUpdateWithPlacement\n    rollingUpdateWithPlacement: {namespace: default, name: lifecycle-canary, maxConcurrentlyUpdating: 100%}\n"
		canary := s.submit("canary", s.versions("hub-config-zzz", "v0.12.0", policy, "v0.10.0", "v0.11.0", "v0.12.0"))
		Eventually(s.addOnCondition).WithArguments(all[0], "Progressing").Should(HavePrefix("True " + v1alpha1.Upgrading))
		Expect(s.hubConfigOf(all[0]).DesiredConfig.Name).To(Equal("hub-config-zzz"))
		Expect(s.hubConfigOf(all[0]).LastAppliedConfig.Name).To(Equal("hub-config-yyy"))
		release(all[0])
		s.awaitPhase(canary, v1alpha1.PhaseHeld)
		Eventually(s.addOnCondition).WithArguments(all[0], "Progressing").Should(HavePrefix("False " + v1alpha1.UpgradeSucceed))
		Expect(s.hubConfigOf(all[0]).LastAppliedConfig.Name).To(Equal("hub-config-zzz"))
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "v0.12.0", all[1]: "v0.11.0", all[2]: "v0.11.0", all[3]: "v0.11.0"}))
		Eventually(s.statusOf).WithArguments(canary).Should(Equal("success: 1 of 4, rest held by strategy"))
		Expect(s.hubConfigOf(all[0]).Name).To(Equal("hub-config-zzz"))
		Expect(s.hubConfigOf(all[1]).Name).To(Equal("hub-config-yyy"), "the others do not get it")

		By("roll back to the version before")
		s.awaitPhase(s.revert(canary), v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v0.11.0", all...))
		Expect(moved(before, s.generations())).To(Equal(all[:1]), "only the canary moves back")
		Eventually(s.addOnCondition).WithArguments(all[0], "Progressing").Should(HavePrefix("False " + v1alpha1.RollbackSucceed))

		By("roll back by the name alone, with the strategy of the canary upgrade")
		s.awaitPhase(s.submit("canary once more", s.versions("hub-config-zzz", "v0.12.0", policy, "v0.10.0", "v0.11.0", "v0.12.0")), v1alpha1.PhaseHeld)
		Expect(s.running(all...)).To(HaveKeyWithValue(all[0], "v0.12.0"))
		before = s.generations()
		s.deliver("back by name", s.versions("hub-config-yyy", "v0.11.0", policy, "v0.10.0", "v0.11.0", "v0.12.0"))
		Expect(s.running(all...)).To(allAt("v0.11.0", all...))
		Expect(moved(before, s.generations())).To(Equal(all[:1]), "only the canary moves back")

		By("overridden by a ManagedClusterAddOn")
		mine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"desiredVersion": "v0.10.0"}}}
		mine.SetGroupVersionKind(hubconfigv1alpha1.GroupVersion.WithKind(hubconfigv1alpha1.AddOnHubConfigKind))
		mine.SetName("lifecycle-mine")
		Expect(world.Client.Create(ctx, mine)).To(Succeed())
		s.override(ctx, all[3:], addonv1alpha1.AddOnConfig{ConfigGroupResource: hubConfigs, ConfigReferent: addonv1alpha1.ConfigReferent{Name: "lifecycle-mine"}})
		Eventually(func() map[string]string { return s.running(all...) }).Should(HaveKeyWithValue(all[3], "v0.10.0"))
		s.awaitRest()

		By("a successful canary upgrade continues on all clusters, by a change of the strategy's placement only")
		again := s.submit("canary again", s.versions("hub-config-zzz", "v0.12.0", policy, "v0.10.0", "v0.11.0", "v0.12.0"))
		s.awaitPhase(again, v1alpha1.PhaseHeld)
		Eventually(s.statusOf).WithArguments(again).Should(Equal("success: 2 of 4, rest held by strategy"), "one cluster has its own version")
		verdict := s.statusesOf(again)
		before = s.generations()
		policyOnly := s.submit("all clusters", s.versions("hub-config-zzz", "v0.12.0", strings.Replace(policy, "lifecycle-canary", "lifecycle-all", 1), "v0.10.0", "v0.11.0", "v0.12.0"))
		s.awaitPhase(again, v1alpha1.PhaseSucceeded)
		Expect(moved(before, s.generations())).To(Equal(all[1:3]), "the canary has it, and one cluster its own version")
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "v0.12.0", all[1]: "v0.12.0", all[2]: "v0.12.0", all[3]: "v0.10.0"}))

		By("the commit of the strategy is pending while the fleet moves, and the older commit keeps its verdict")
		Eventually(s.statusOf).WithArguments(policyOnly).Should(HavePrefix("success: "))
		Expect(s.statusesOf(policyOnly)[0]).To(HavePrefix("pending: "))
		Expect(s.statusesOf(again)).To(Equal(verdict))
	})
})
