package addonsource_test

import (
	"context"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
)

// registering is the template with registration blocks.
func registering(blocks string) map[string]string {
	text := strings.Replace(templateYAML, "spec:\n", "spec:\n  registration:\n"+blocks, 1)
	return addOnFilesWith(map[string]string{"addons/addontemplate.yaml": text})
}

const (
	currentYAML = `  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster:
          clusterRoleName: ROLE
`
	signerYAML = `  - type: CustomSigner
    customSigner:
      signerName: example.com/signer
      signingCA: {name: ca, namespace: kube-system}
`
)

var _ = Describe("A commit that asks for something on the hub", func() {
	It("is refused, with the lines, for a forbidden role and for a CA of another namespace", func() {
		w := newWorld()
		sha := w.commit("too much", registering(strings.Replace(currentYAML, "ROLE", "cluster-admin", 1)))
		w.passes()
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.ValidationFailedReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(
			MatchRegexp(`addons/addontemplate.yaml:\d+: AddOnTemplate/\S+: spec.registration\[0\].kubeClient.hubPermissions\[0\].currentCluster.clusterRoleName: ClusterRole/cluster-admin is never given to an agent`))
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("addons/addontemplate.yaml:"))

		sha = w.commit("a CA from elsewhere", registering(signerYAML))
		w.request("again")
		w.passes()
		Expect(conditions.GetMessage(w.source(), fluxmeta.StalledCondition)).To(
			MatchRegexp(`addons/addontemplate.yaml:\d+: AddOnTemplate/\S+: spec.registration\[0\].customSigner.signingCA.namespace: no signing CA is taken from namespace "kube-system"`))
		Expect(exists(w.cma())).To(BeFalse())
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("addons/addontemplate.yaml:"))
	})

	It("waits for a role, is refused while it is not allowed, and applied when an admin allows it", func() {
		w := newWorld()
		name := "reader-" + w.namespace
		sha := w.commit("reads", registering(strings.Replace(currentYAML, "ROLE", name, 1)))
		result := w.pass()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReconcilingCondition)).To(ContainSubstring("waiting for ClusterRole/" + name))

		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
		}
		w.create(role)
		w.clock.Step(result.RequeueAfter)
		w.passes()
		Expect(conditions.GetMessage(w.source(), fluxmeta.StalledCondition)).To(And(
			ContainSubstring("ClusterRole/"+name+" is not allowed for agents"), ContainSubstring(registration.AllowLabel)))
		Expect(exists(w.cma())).To(BeFalse())

		existing := w.cma() // as OCM has it, so that the source must take it over in several passes first
		existing.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
		w.create(existing)
		role.Labels = map[string]string{registration.AllowLabel: "true"}
		Expect(admin.Update(context.Background(), role)).To(Succeed())
		w.request("allowed")
		w.pass()
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.TakingOverReason))
		w.clock.Step(time.Second)
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(exists(w.cma())).To(BeTrue())
		w.green(sha)
	})

	It("is refused if a template on the hub later asks for more, and valid again when it does not", func() {
		w := newWorld()
		files := addOnFiles()
		delete(files, "addons/addontemplate.yaml")
		template := func(text string) *addonv1alpha1.AddOnTemplate {
			GinkgoHelper()
			t := &addonv1alpha1.AddOnTemplate{}
			Expect(yaml.Unmarshal([]byte(w.named(text)), t)).To(Succeed())
			return t
		}
		w.create(template(templateYAML))
		sha := w.commit("with a template of the hub", files)
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		w.green(sha)
		before := w.revisions()

		name := "reader-" + w.namespace
		w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
		change := func(text string) {
			GinkgoHelper()
			live := w.template()
			w.read(live)
			live.Spec = template(text).Spec
			Expect(admin.Update(context.Background(), live)).To(Succeed())
			w.look()
		}
		change(registering(strings.Replace(currentYAML, "ROLE", name, 1))["addons/addontemplate.yaml"])
		Expect(conditions.GetMessage(w.source(), fluxmeta.StalledCondition)).To(And(
			HavePrefix("AddOnTemplate/"+w.addOn+": spec.registration[0]"), ContainSubstring("ClusterRole/"+name+" is not allowed for agents")))
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("is not allowed for agents"))
		Expect(w.revisions()).To(HaveLen(len(before)), "what runs goes on running")

		change(templateYAML)
		Expect(conditions.IsReady(w.source())).To(BeTrue(), "no reconcile was requested: %s", conditions.GetMessage(w.source(), fluxmeta.ReadyCondition))
		w.green(sha)
	})
})
