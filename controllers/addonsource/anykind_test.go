package addonsource_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/rendertest"
)

// regionYAML is a configuration whose level is the default.
const regionYAML = `apiVersion: example.com/v1
kind: Region
metadata:
  name: home
  namespace: NAMESPACE
spec:
  zone: a
`

var _ = Describe("A configuration of any kind", func() {
	It("is hashed as the hub stores it, defaults and all", func(ctx SpecContext) {
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(rendertest.RegionsDefinition), &definition.Object)).To(Succeed())
		Expect(admin.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, definition)).To(Succeed()) })
		Eventually(func() (string, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(definition), definition)
			conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
			text, _ := yaml.Marshal(conditions)
			return string(text), err
		}).WithTimeout(patience).Should(ContainSubstring("status: \"True\"\n  type: " + string(apiextensionsv1.Established)))

		w := newWorld()
		listed := strings.Replace(addOnYAML, "  installStrategy:", "  - group: example.com\n    resource: regions\n    defaultConfig: {namespace: NAMESPACE, name: home}\n  installStrategy:", 1)
		mapped := strings.Replace(templateYAML, "  name: ADDON\n", "  name: ADDON\n  annotations:\n    addonflow.io/config-variables: LEVEL=regions.example.com{.spec.level}\n", 1)
		w.commit("add hello with a region", addOnFilesWith(map[string]string{
			"addons/clustermanagementaddon.yaml": listed,
			"addons/addontemplate.yaml":          strings.Replace(mapped, "{{GREETING}}", "{{GREETING}}{{LEVEL}}", 1),
			"addons/region.yaml":                 regionYAML,
		}))
		w.passes()

		region := &unstructured.Unstructured{}
		region.SetAPIVersion("example.com/v1")
		region.SetKind("Region")
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "home"}, region)).To(Succeed())
		Expect(region.Object["spec"]).To(HaveKeyWithValue("level", "info"))
		want, err := render.SpecHash(region)
		Expect(err).NotTo(HaveOccurred())
		revisions := w.revisions()
		Expect(revisions).To(HaveLen(1))
		content, err := render.Decode(revisions[0].Spec.Body)
		Expect(err).NotTo(HaveOccurred())
		var got []string
		for _, c := range content.Configs {
			if c.Kind == "Region" {
				got = append(got, c.SpecHash)
			}
		}
		Expect(got).To(Equal([]string{want}))
	})
})
