package addonsource_test

import (
	"context"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/test/registry"
)

// asAddOn are files of another add-on beside that of the world.
func asAddOn(name string, files map[string]string) map[string]string {
	named := map[string]string{}
	for path, text := range files {
		named[strings.Replace(path, "addons/", "addons/"+name+"/", 1)] = strings.ReplaceAll(text, "ADDON", "ADDON-"+name)
	}
	return named
}

// proposed commits files to a branch that is not followed, and returns the request for it.
func (w *world) proposed(files map[string]string) commitstatus.Request {
	GinkgoHelper()
	main, err := w.repo.Head()
	Expect(err).NotTo(HaveOccurred())
	sha := w.commit("a request", files)
	Expect(w.repo.SetRef("refs/pull/7/head", sha)).To(Succeed())
	Expect(w.repo.ForcePush(main)).To(Succeed())
	return commitstatus.Request{Number: 7, SHA: sha, Ref: "refs/pull/7/head"}
}

// planned is the plan of a request.
func (w *world) planned(request commitstatus.Request) proposal.Proposal {
	GinkgoHelper()
	source := w.source()
	source.Spec.PullRequests = &v1alpha1.PullRequestsSpec{Enabled: true}
	plan, err := w.reconciler.PlanBeside(context.Background(), source, request)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Println(plan.Markdown())
	return plan
}

var _ = Describe("The plan of a pull request", func() {
	It("is judged by the hub without the content that the plan does not know", func() {
		w := newWorld()
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}, Data: map[string]string{"a": "b"}})
		w.commit("two add-ons, one with a ConfigMap of the hub", addOnFilesWith(asAddOn("told", addOnFilesWith(map[string]string{
			"addons/clustermanagementaddon.yaml": strings.Replace(addOnYAML, "  installStrategy:", "  - resource: configmaps\n    defaultConfig: {namespace: NAMESPACE, name: settings}\n  installStrategy:", 1),
		}))))
		w.pass()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))

		plan := w.planned(w.proposed(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")}))
		Expect(plan.Refused).To(BeEmpty())
		Expect(plan.Notes).To(BeEmpty())
		Expect(plan.AddOns).To(HaveLen(1), "the other add-on does not change")
		Expect(plan.AddOns[0].Name).To(Equal(w.addOn))
		Expect(plan.AddOns[0].Change).To(Equal(proposal.Content))

		By("a Namespace that the hub refuses")
		plan = w.planned(w.proposed(map[string]string{"addons/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-x, labels: {\"a b\": c}}\n"}))
		Expect(plan.Refused).NotTo(BeEmpty())
	})

	It("has the changes of a chart in a registry, and is refused if the chart cannot be used", func() {
		server := registry.Start(GinkgoTB(), registry.Options{User: "ana", Password: "canary-55d0"})
		reference := func(chart map[string]string) string {
			return "oci: " + server.Host + "/charts/hello@" + server.PushChart(GinkgoTB(), "charts", chart)
		}
		chart := func(reference string) map[string]string { return asAddOn("charted", packagedWith(reference)) }
		w := newWorld(func(s *v1alpha1.AddOnSource) {
			s.Spec.Registries = []v1alpha1.RegistrySpec{{Host: server.Host, Insecure: true, SecretRef: &fluxmeta.LocalObjectReference{Name: "pull"}}}
		})
		w.newSecret("pull", map[string][]byte{".dockerconfigjson": server.DockerConfig()})
		w.commit("two add-ons, one with a chart", addOnFilesWith(chart(reference(chartOf("1.0.0")))))
		w.pass()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))

		By("a request that does not touch it")
		plan := w.planned(w.proposed(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")}))
		Expect(plan.Refused).To(BeEmpty())
		Expect(plan.AddOns).To(HaveLen(1), "the chart does not change")
		Expect(plan.AddOns[0].Name).To(Equal(w.addOn))

		By("another version")
		plan = w.planned(w.proposed(chart(reference(chartOf("1.0.1")))))
		Expect(plan.Refused).To(BeEmpty())
		Expect(plan.AddOns).To(HaveLen(1))
		Expect(plan.AddOns[0].Change).To(Equal(proposal.Content))
		Expect(plan.AddOns[0].Diffs[0].Lines).To(ContainElement("+  version: 1.0.1"))

		By("a version that does not render")
		bad := chartOf("1.0.2")
		bad["templates/settings.yaml"] = "data: {{ shout 1 }}\n"
		plan = w.planned(w.proposed(chart(reference(bad))))
		Expect(plan.Refused).To(HaveLen(1))
		Expect(plan.Refused[0].Message).To(ContainSubstring(`function "shout" not defined`))

		By("a version that is not there")
		absent := "oci: " + server.Host + "/charts/hello@sha256:" + strings.Repeat("a", 64)
		plan = w.planned(w.proposed(chart(absent)))
		Expect(plan.Refused).To(HaveLen(1))
		Expect(plan.Refused[0].String()).To(And(HavePrefix("addons/charted/addonpackage.yaml:8: "), HaveSuffix("not found: the registry answered 404")))
	})
})
