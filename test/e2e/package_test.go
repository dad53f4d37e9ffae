package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// packaged is the tree of an add-on that is a Helm chart. Its image tag is a value
// that an AddOnDeploymentConfig sets.
func (s *scene) packaged(tag, policy string) map[string]string {
	files := map[string]string{
		"addons/rollout.yaml":                    "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata:\n  name: ADDON\nspec:\n" + policy,
		"addons/package.yaml":                    packageText,
		"addons/addon.yaml":                      packagedAddOnText,
		"addons/config.yaml":                     packagedConfigText,
		"addons/chart/Chart.yaml":                "apiVersion: v2\nname: agent\nversion: 1.0.0\n",
		"addons/chart/values.yaml":               "image: {tag: none}\ncontent: none\n",
		"addons/chart/templates/deployment.yaml": packagedTemplateText,
	}
	for name, text := range files {
		files[name] = strings.NewReplacer("ADDON", s.addOn, "IMAGETAG", tag, "CONTENT", "one").Replace(text)
	}
	return files
}

const packageText = `apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata: {name: ADDON}
spec:
  addOn: ADDON
  helm: {path: chart}
  values: {content: CONTENT}
  variables:
  - {name: TAG, value: image.tag}
`

const packagedAddOnText = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: ADDON}
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
    defaultConfig: {namespace: default, name: ADDON}
  installStrategy:
    type: Placements
    placements:
    - {namespace: default, name: ADDON-all}
`

const packagedConfigText = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {namespace: default, name: ADDON}
spec:
  customizedVariables:
  - {name: TAG, value: IMAGETAG}
`

const packagedTemplateText = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: agent
        image: example.com/{{ .Release.Name }}:{{ .Values.image.tag }}
        args: ["--cluster={{ .Values.clusterName }}", "--content={{ .Values.content }}", "--kube={{ .Capabilities.KubeVersion.Minor }}"]
`

var _ = Describe("An add-on that is a Helm chart", func() {
	It("goes to the canary first, takes a value from its configuration, and back with git revert", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "charted", all)
		policy := s.stages("0s", "2m", "2", 0)
		s.deliver("v1", s.packaged("v1", policy))
		Expect(s.running(all...)).To(allAt("v1", all...))

		By("leaving no reference to a template, and OCM's conditions as for one")
		addOn := s.addOnOf(all[0])
		Expect(addOn.Status.ConfigReferences).To(HaveLen(1))
		Expect(addOn.Status.ConfigReferences[0].Resource).To(Equal("addondeploymentconfigs"))
		Expect(meta.IsStatusConditionTrue(addOn.Status.Conditions, "Configured")).To(BeTrue())
		Expect(meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)).To(BeTrue())

		By("changing a value through the AddOnDeploymentConfig: the canary goes first")
		hold(all[0])
		before := s.generations()
		second := s.submit("v2", s.packaged("v2", policy))
		Eventually(func() []string { return moved(before, s.generations()) }).Should(Equal(all[:1]), "the canary alone")
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(Equal(all[:1]))
		release(all[0])
		s.awaitPhase(second, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))

		By("git revert: exactly what was runs again")
		third := s.revert(second)
		s.awaitPhase(third, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v1", all...))
		Eventually(func() string { return s.statusOf(third) }).Should(HavePrefix("success"))

		By("values of one cluster, by the annotation of its ManagedClusterAddOn")
		addOn = s.addOnOf(all[3])
		base := addOn.DeepCopy()
		addOn.Annotations = map[string]string{"addon.open-cluster-management.io/values": `{"image":{"tag":"mine"}}`}
		Expect(world.Client.Patch(ctx, addOn, client.MergeFrom(base))).To(Succeed())
		Eventually(func() map[string]string { return s.running(all[3]) }).Should(allAt("mine", all[3]))
		Expect(s.running(all[:3]...)).To(allAt("v1", all[:3]...))
	})

	It("is refused with the line of the template, and nothing moves", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "miswritten", all)
		policy := s.stages("0s", "2m", "2", 0)
		s.deliver("v1", s.packaged("v1", policy))
		before := s.generations()
		files := s.packaged("v2", policy)
		files["addons/chart/templates/deployment.yaml"] = strings.Replace(files["addons/chart/templates/deployment.yaml"], ".Values.image.tag", ".Values.images.tag", 1)
		bad := s.submit("v2", files)
		Eventually(s.sourceStatusOf).WithArguments(bad).Should(And(HavePrefix("failure"), ContainSubstring("chart/templates/deployment.yaml:12")))
		Expect(moved(before, s.generations())).To(BeEmpty())
	})
})
