package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const definitionText = `      - apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: ADDONs.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {kind: Greeting, plural: ADDONs}
          versions:
          - name: v1
            served: true
            storage: true
            schema: {openAPIV3Schema: {type: object, properties: {FIELD: {type: string}}}}
`

// defining is the add-on at a tag with a CustomResourceDefinition, whose objects have one field.
func (s *scene) defining(tag, field, policy string) map[string]string {
	tree := s.tree(tag, policy)
	tree["addons/template.yaml"] += strings.NewReplacer("ADDON", s.addOn, "FIELD", field).Replace(definitionText)
	return tree
}

// defined are the fields of the CustomResourceDefinition in the work of a cluster.
func (s *scene) defined(cluster string) []string {
	GinkgoHelper()
	var found []string
	for _, m := range s.workOf(cluster).Spec.Workload.Manifests {
		var crd apiextensionsv1.CustomResourceDefinition
		Expect(json.Unmarshal(m.Raw, &crd)).To(Succeed())
		if crd.Kind == "CustomResourceDefinition" {
			found = slices.Sorted(maps.Keys(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties))
		}
	}
	return found
}

// holdUntil sets the annotation of a cluster that leaves it alone; null removes it.
func (s *scene) holdUntil(cluster, value string) {
	GinkgoHelper()
	s.patchCluster(cluster, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.HoldUntilAnnotation, value))
}

var _ = Describe("Content that was rolled out", func() {
	It("goes back with its CustomResourceDefinition only if the order or the policy permits that", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "definition", all)
		grant(ctx, "commander", "carol")
		_, carol := user("carol")
		policy := s.stages("0s", "30m", "3", 0)
		first := s.deliver("v1", s.defining("v1", "text", policy))
		second := s.deliver("v2", s.defining("v2", "words", policy))
		change := "it would change CustomResourceDefinition definitions.example.com of "

		By("an order without the permission")
		before := s.generations()
		Expect(s.command(1, carol, "rollback", "-m", "leaks memory")).To(ContainSubstring(
			"refused: " + change + strings.Join(all, ", ") + "; to permit that, set rollback.withCRDs, or order it with --with-crds"))
		Expect(s.command(0, carol, "status")).To(ContainSubstring("3/3 updated"))

		By("an order with it")
		Expect(s.command(0, carol, "rollback", "-m", "leaks memory", "--with-crds")).To(ContainSubstring("; back to " + first[:10]))
		s.awaitRolledBack(second)
		Expect(s.running(all...)).To(allAt("v1", all...))
		s.wroteOnce(before)
		for _, name := range all {
			Expect(s.defined(name)).To(Equal([]string{"text"}))
		}
		Expect(s.command(4, carol, "status")).To(ContainSubstring("git restore -SWs " + first[:10] + " "))

		By("a canary that fails, with a policy that does not permit it, and then with one that does")
		failing := func(permission string) map[string]string {
			return s.defining("never-starts", "sentence", "  onFailure: Rollback\n"+permission+policy)
		}
		bad := s.submit("bad", failing(""))
		ro := s.awaitPhase(bad, v1alpha1.PhaseFailed)
		Expect(ro.Status.Message).To(ContainSubstring("not rolled back: " + change + all[0] + "; "))
		Expect(s.defined(all[0])).To(Equal([]string{"sentence"}))
		s.awaitRolledBack(s.submit("permit it", failing("  rollback: {withCRDs: true}\n")))
		Expect(s.defined(all[0])).To(Equal([]string{"text"}))
		Expect(s.running(all...)).To(allAt("v1", all...))
		Expect(s.quarantine(bad).Reason).To(HavePrefix("halted in canary: 1 failed (" + all[0]))
	})

	It("goes back while spec.blocked lists its commit, except on a cluster that is held, and returns without the entry", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "blocked", all)
		policy := s.stages("0s", "1m", "3", 0)
		first := s.deliver("v1", s.tree("v1", policy))
		second := s.deliver("v2", s.tree("v2", policy))
		s.holdUntil(all[2], `"true"`)
		DeferCleanup(func(ctx SpecContext) { s.ctx = ctx; s.holdUntil(all[2], "null") })

		before := s.generations()
		block := s.submit("block", s.tree("v2", fmt.Sprintf("  blocked:\n  - {commit: %q, reason: leaks memory after a week}\n", second[:7])+policy))
		s.awaitRolledBack(block)
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "v1", all[1]: "v1", all[2]: "v2"}))
		Expect(s.rollout().Status.Override).To(And(HaveField("Kind", v1alpha1.OverrideBlocked), HaveField("Reason", "leaks memory after a week")))
		said := "rolled back to " + first[:10] + " from " + second[:10] + ", 1 held by annotation (" + all[2] + "): leaks memory after a week"
		Eventually(s.statusOf).WithArguments(block).Should(Equal("failure: " + said))
		Eventually(s.sourceStatusOf).WithArguments(block).Should(HavePrefix("failure: "))
		Expect(s.command(4, world.Kubeconfig, "status")).To(ContainSubstring(said))
		Expect(s.command(1, world.Kubeconfig, "retry")).To(ContainSubstring("refused: spec.blocked names it: remove the entry in Git"))

		allow := s.submit("allow", s.tree("v2", policy))
		s.awaitPhase(second, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(moved(before, s.generations())).To(Equal(all[:2]), "the held cluster kept its content")
		Eventually(s.statusOf).WithArguments(allow).Should(Equal("success: 3/3 updated"))
	})
})
