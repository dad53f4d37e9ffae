package addonsource_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// firstManifest returns the first manifest of the hub's template.
func (w *world) firstManifest() *unstructured.Unstructured {
	GinkgoHelper()
	template := w.template()
	w.read(template)
	manifest := &unstructured.Unstructured{}
	Expect(json.Unmarshal(template.Spec.AgentSpec.Workload.Manifests[0].Raw, &manifest.Object)).To(Succeed())
	return manifest
}

// editManifest changes the first manifest of the hub's template as a user would.
func (w *world) editManifest(field any, path ...string) {
	GinkgoHelper()
	manifest := w.firstManifest()
	Expect(unstructured.SetNestedField(manifest.Object, field, path...)).To(Succeed())
	raw, err := json.Marshal(manifest.Object)
	Expect(err).NotTo(HaveOccurred())
	template := w.template()
	w.read(template)
	template.Spec.AgentSpec.Workload.Manifests[0].Raw = raw
	Expect(admin.Update(context.Background(), template, client.FieldOwner("another-writer"))).To(Succeed())
}

// progressive is the ClusterManagementAddOn with a mandatory decision group.
var progressive = strings.Replace(addOnYAML, "maxConcurrency: 25%", "maxConcurrency: 25%\n          mandatoryDecisionGroups:\n          - groupName: canary", 1)

var _ = Describe("Declared fields", func() {
	It("that a commit removes from an element of an atomic list leave the hub's template", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/addontemplate.yaml": strings.Replace(templateYAML, "              containers:", "              serviceAccountName: agent\n              containers:", 1),
		}))
		w.passes()
		Expect(w.firstManifest().Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("template", HaveKeyWithValue("spec", HaveKey("serviceAccountName")))))

		w.commit("run as the default account", map[string]string{"addons/addontemplate.yaml": templateYAML})
		w.look()
		Expect(w.firstManifest().Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("template", HaveKeyWithValue("spec", Not(HaveKey("serviceAccountName"))))))
	})

	It("that a commit removes from a placement's strategy leave the rollout's", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/clustermanagementaddon.yaml": progressive}))
		w.passes()
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Install.Placements[0].RolloutStrategy.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups).To(HaveLen(1))

		w.commit("no mandatory group", map[string]string{"addons/clustermanagementaddon.yaml": addOnYAML})
		w.look()
		rollout = w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Install.Placements[0].RolloutStrategy.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups).To(BeEmpty())
	})

	It("are repaired when a hand edit adds to an atomic list, with the commit in memory and after a restart", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		before := w.firstManifest().Object
		w.editManifest(true, "spec", "paused")
		theGit.ResetRequests()
		w.look()
		Expect(w.firstManifest().Object).To(Equal(before))
		Expect(theGit.Requests().UploadPack).To(BeZero())

		w.editManifest(true, "spec", "paused")
		w.start()
		theGit.ResetRequests()
		w.look()
		Expect(w.firstManifest().Object).To(Equal(before))
		Expect(theGit.Requests().UploadPack).To(Equal(1))
	})

	It("are the whole spec of an AddOnRollout: an addition by hand is removed", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		for name, edit := range map[string]func(*v1alpha1.AddOnRolloutSpec){
			"a prober that asks for nothing": func(s *v1alpha1.AddOnRolloutSpec) { s.Health = &v1alpha1.Health{Prober: "None"} },
			"a pace beside the declared one": func(s *v1alpha1.AddOnRolloutSpec) {
				s.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyUpdateAll}
			},
		} {
			By(name)
			rollout := w.rollout()
			w.read(rollout)
			before := rollout.Spec.DeepCopy()
			edit(&rollout.Spec)
			Expect(admin.Update(context.Background(), rollout, client.FieldOwner("kubectl-edit"))).To(Succeed())
			w.look()
			w.read(rollout)
			Expect(rollout.Spec).To(Equal(*before))
		}
	})

	It("stay, like fields of other writers, for one fetch and one dry run", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma := w.cma()
		w.read(cma)
		cma.Spec.AddOnMeta.Description = "a text of another writer"
		Expect(admin.Update(context.Background(), cma, client.FieldOwner("another-writer"))).To(Succeed())
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).To(HaveEach(ContainSubstring("/addonsources/fleet/status")))
		Expect(w.requests.tried()).To(ConsistOf(ContainSubstring("/clustermanagementaddons/" + w.addOn)))
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).To(BeEmpty())
		Expect(w.requests.tried()).To(BeEmpty())

		w.start()
		theGit.ResetRequests()
		w.look()
		Expect(w.requests.written()).To(BeEmpty())
		Expect(w.requests.tried()).To(BeEmpty())
		Expect(theGit.Requests().UploadPack).To(BeZero(), "what was compared is known to be")
		w.read(cma)
		Expect(cma.Spec.AddOnMeta.Description).To(Equal("a text of another writer"))
	})

	It("are Git's alone, on objects that kubectl applied before and applies again", func() {
		w := newWorld()
		config := func(spec string) string {
			return "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: ADDON, namespace: NAMESPACE}\nspec:\n" +
				"  customizedVariables: [{name: GREETING, value: hello}]\n" + spec
		}
		kubectl := func(manifest string, manager string) {
			GinkgoHelper()
			object := &addonv1alpha1.AddOnDeploymentConfig{}
			Expect(yaml.Unmarshal([]byte(w.named(manifest)), object)).To(Succeed())
			stored := object.DeepCopy()
			err := admin.Get(context.Background(), client.ObjectKeyFromObject(object), stored)
			if apierrors.IsNotFound(err) {
				Expect(admin.Create(context.Background(), object, client.FieldOwner(manager))).To(Succeed())
				return
			}
			Expect(err).NotTo(HaveOccurred())
			stored.Spec = object.Spec
			Expect(admin.Update(context.Background(), stored, client.FieldOwner(manager))).To(Succeed())
		}
		spec := func() addonv1alpha1.AddOnDeploymentConfigSpec {
			GinkgoHelper()
			stored := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
			w.read(stored)
			return stored.Spec
		}
		const selector, proxy = "  nodePlacement: {nodeSelector: {disk: ssd}}\n", "  proxyConfig: {httpProxy: 'http://proxy'}\n"
		const limits = "  resourceRequirements: [{containerID: '*:*:*', resources: {requests: {cpu: 10m}, limits: {cpu: %s}}}]\n"
		kubectl(config(selector+proxy+"  agentInstallNamespace: elsewhere\n"+fmt.Sprintf(limits, "20m")), "kubectl-client-side-apply")

		By("claiming them: what the commit does not declare is removed")
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": config(selector + proxy + fmt.Sprintf(limits, "30m"))}))
		w.passes()
		Expect(spec().NodePlacement.NodeSelector).To(HaveLen(1))
		Expect(spec().AgentInstallNamespace).NotTo(Equal("elsewhere"))
		Expect(spec().ResourceRequirements).To(HaveLen(1))

		By("removing a field by a commit")
		w.commit("no selector", map[string]string{"addons/addondeploymentconfig.yaml": config(proxy + fmt.Sprintf(limits, "30m"))})
		w.look()
		Expect(spec().NodePlacement).To(Or(BeNil(), HaveField("NodeSelector", BeEmpty())))

		By("removing a field that kubectl applied again with the same value")
		kubectl(config(proxy+fmt.Sprintf(limits, "30m")), "kubectl-client-side-apply")
		w.look()
		head := w.commit("no limits", map[string]string{"addons/addondeploymentconfig.yaml": config(proxy + "  resourceRequirements: [{containerID: '*:*:*', resources: {requests: {cpu: 10m}}}]\n")})
		w.look()
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(head), w.whyNotReady())
		Expect(spec().ResourceRequirements[0].Resources.Limits).To(BeEmpty())
		w.commit("an empty proxy", map[string]string{"addons/addondeploymentconfig.yaml": config("  proxyConfig: {}\n")})
		w.look()
		Expect(w.whyNotReady()).To(SatisfyAll(
			ContainSubstring("addons/addondeploymentconfig.yaml:6:"), ContainSubstring("leave the field out instead of declaring it as empty")))
		w.commit("no proxy", map[string]string{"addons/addondeploymentconfig.yaml": config("")})
		w.look()
		Expect(spec().ProxyConfig.HTTPProxy).To(BeEmpty())
		Expect(spec().ResourceRequirements).To(BeEmpty())
	})

	It("that a claim removes are tried before anything of the commit is applied", func() {
		w := newWorld()
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		config.Spec.ProxyConfig.HTTPProxy = "http://proxy"
		Expect(admin.Create(context.Background(), config, client.FieldOwner("kubectl"))).To(Succeed())
		managers := config.ManagedFields
		declared := func(spec string) string {
			return "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: ADDON, namespace: NAMESPACE}\nspec:\n" +
				"  customizedVariables: [{name: GREETING, value: hello}]\n" + spec
		}

		By("a commit that the API server refuses: the field managers stay")
		w.commit("a typo", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": declared("  agentInstallNamespace: -agents\n")}))
		w.passes()
		Expect(w.whyNotReady()).To(ContainSubstring("addons/addondeploymentconfig.yaml:6:"))
		w.read(config)
		Expect(config.ManagedFields).To(Equal(managers))

		By("a commit whose claim the API server refuses")
		w.commit("an empty proxy", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": declared("  proxyConfig: {}\n")}))
		for range 3 {
			w.look()
			Expect(w.whyNotReady()).To(SatisfyAll(
				ContainSubstring("addons/addondeploymentconfig.yaml:6:"), ContainSubstring("leave the field out instead of declaring it as empty")))
			Expect(exists(w.template())).To(BeFalse())
		}
		w.commit("no proxy", map[string]string{"addons/addondeploymentconfig.yaml": declared("  agentInstallNamespace: agents\n")})
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True "))
		w.read(config)
		Expect(config.Spec.ProxyConfig.HTTPProxy).To(BeEmpty())
		Expect(exists(w.template())).To(BeTrue())
	})

	It("are Git's alone, if a user set the field first and a commit declares the same value", func() {
		w := newWorld()
		placement := func(spec string) map[string]string {
			return map[string]string{"addons/placement.yaml": strings.Replace(placementYAML, "spec: {}", "spec: "+spec, 1)}
		}
		w.commit("add hello", addOnFilesWith(placement("{}")))
		w.passes()
		stored := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.read(stored)
		stored.Spec.NumberOfClusters = new(int32(1))
		Expect(admin.Update(context.Background(), stored, client.FieldOwner("kubectl-edit"))).To(Succeed())

		w.commit("one cluster", placement("{numberOfClusters: 1}"))
		w.look()
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).To(BeEmpty())

		head := w.commit("all clusters", placement("{}"))
		w.look()
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(head))
		w.read(stored)
		Expect(stored.Spec.NumberOfClusters).To(BeNil())
	})

	It("that the hub's admission refuses to repair are reported on the commit, until it admits them", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		w.editManifest(true, "spec", "paused")
		allow := w.forbidTemplateUpdates()
		w.look()
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.ValidationFailedReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(SatisfyAll(
			ContainSubstring("addons/addontemplate.yaml:"), ContainSubstring("no template changes today")))
		w.delivered(sha, "failure")

		allow()
		Eventually(func() any {
			w.look()
			return w.firstManifest().Object["spec"]
		}).WithTimeout(patience).ShouldNot(HaveKey("paused"))
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})
})

// forbidTemplateUpdates makes the hub refuse changes of the world's template, until the
// returned function is called.
func (w *world) forbidTemplateUpdates() func() {
	GinkgoHelper()
	template := w.template()
	w.read(template)
	template.Spec.AddonName = "changed"
	return w.forbid(admissionregistrationv1.Update, "addon.open-cluster-management.io", "addontemplates", "no template changes today",
		func() error { return admin.Update(context.Background(), template.DeepCopy(), client.DryRunAll) })
}

// forbid makes the hub refuse an operation on the objects of a resource whose name begins with the world's add-on, until
// the returned function is called. The operation is tried until it is refused.
func (w *world) forbid(operation admissionregistrationv1.OperationType, group, resource, message string, try func() error) func() {
	GinkgoHelper()
	ctx := context.Background()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.addOn},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "!request.name.startsWith('" + w.addOn + "')", Message: message}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.addOn},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.addOn, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	w.create(policy)
	w.create(binding)
	// The API server enforces a policy with a delay, both when it is created and when it is
	// deleted.
	Eventually(try).WithTimeout(patience).Should(MatchError(ContainSubstring(message)))
	allow := func() {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(allow)
	return allow
}

// startWebhook makes the hub ask a webhook, which denies the creation of every object of a resource of OCM's add-ons whose
// name begins with the world's add-on.
func (w *world) startWebhook(resource, message string) *httptest.Server {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: !strings.HasPrefix(review.Request.Name, w.addOn), Result: &metav1.Status{Message: message},
		}
		_ = json.NewEncoder(rw).Encode(review)
	}))
	DeferCleanup(server.Close)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.addOn},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: w.addOn + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{addonv1alpha1.GroupName}, APIVersions: []string{"*"}, Resources: []string{resource}},
			}},
		}},
	}
	w.create(configuration)
	DeferCleanup(func() { Expect(admin.Delete(context.Background(), configuration)).To(Succeed()) })
	// The API server asks a webhook some time after its configuration was stored.
	template := w.template()
	template.Spec.AddonName = w.addOn
	Eventually(func() error { return admin.Create(context.Background(), template.DeepCopy(), client.DryRunAll) }).
		WithTimeout(patience).Should(MatchError(ContainSubstring(message)))
	return server
}

var _ = Describe("A commit is refused before the first write", func() {
	config := func(spec string) string {
		return "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: ADDON, namespace: NAMESPACE}\nspec:\n" +
			"  customizedVariables: [{name: GREETING, value: hello}]\n" + spec
	}
	// kubectl is a user who applies the configuration.
	kubectl := func(w *world, manifest string, annotations map[string]string) *addonv1alpha1.AddOnDeploymentConfig {
		GinkgoHelper()
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(w.named(manifest)), &object.Object)).To(Succeed())
		object.SetAnnotations(annotations)
		Expect(admin.Patch(context.Background(), object, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership)).To(Succeed()) //nolint:staticcheck // of an unstructured object
		stored := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		w.read(stored)
		return stored
	}
	// nothing expects that the passes wrote nothing but the source; the dry run of a deletion has its mark in the body.
	nothing := func(w *world) {
		GinkgoHelper()
		Expect(w.requests.written()).To(HaveEach(Or(ContainSubstring("/addonsources/fleet"), HavePrefix("DELETE"))))
	}

	It("if the hub refuses the revision of an add-on", func() {
		w := newWorld()
		allow := w.forbid(admissionregistrationv1.Create, "addonflow.io", "addonrevisions", "no revisions today", func() error {
			return admin.Create(context.Background(), &v1alpha1.AddOnRevision{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn + "-0123456789"},
				Spec:       v1alpha1.AddOnRevisionSpec{AddOn: w.addOn, Digest: "v1:sha256:" + strings.Repeat("0", 64), Body: []byte("any")},
			}, client.DryRunAll)
		})
		w.commit("add hello", addOnFiles())
		w.requests.reset()
		w.look()
		Expect(w.whyNotReady()).To(SatisfyAll(ContainSubstring("addons/clustermanagementaddon.yaml:1: ClusterManagementAddOn/"+w.addOn+": "), ContainSubstring("no revisions today")))
		nothing(w)
		allow()
	})

	It("if a webhook of the hub denies the dry run, and waits for one that does not answer", func() {
		w := newWorld()
		denying := w.startWebhook("addontemplates", "no templates today")
		sha := w.commit("add hello", addOnFiles())
		w.requests.reset()
		w.look()
		Expect(w.whyNotReady()).To(SatisfyAll(HavePrefix("False ValidationFailed: addons/addontemplate.yaml:1: AddOnTemplate/"+w.addOn+": "), ContainSubstring("no templates today")))
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("no templates today"))
		nothing(w)

		denying.Close()
		sha = w.commit("explain", map[string]string{"addons/README.md": "hello"})
		w.clock.Step(2 * time.Minute)
		_, err := w.passOf("fleet")
		Expect(err).To(HaveOccurred(), "the queue tries again")
		Expect(w.whyNotReady()).To(SatisfyAll(HavePrefix("False ApplyFailed: "), ContainSubstring("failed calling webhook")))
		Expect(w.delivered(sha, "pending").Description).To(ContainSubstring("failed calling webhook"))
		nothing(w)
	})

	It("if another revision has the name that the content of an add-on would have", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		taken := w.revisions()[0]
		w.commit("greet", map[string]string{"addons/addondeploymentconfig.yaml": configSaying("bye")})
		w.look()
		Expect(admin.Delete(context.Background(), &taken)).To(Succeed())
		taken.ObjectMeta = metav1.ObjectMeta{Namespace: taken.Namespace, Name: taken.Name}
		taken.Spec.Digest = "v1:sha256:" + strings.Repeat("0", 64)
		w.create(&taken)
		w.commit("hello again", map[string]string{"addons/addondeploymentconfig.yaml": configYAML})
		w.requests.reset()
		w.look()
		Expect(w.whyNotReady()).To(SatisfyAll(ContainSubstring("False ValidationFailed: "), ContainSubstring("addons/clustermanagementaddon.yaml:1: ClusterManagementAddOn/"+w.addOn+": "), ContainSubstring(taken.Name)))
		nothing(w)
	})

	It("if the hub refuses what the first apply of an add-on removes, before OCM is fenced off", func() {
		w := newWorld()
		existing := w.cma()
		existing.Spec.AddOnMeta.DisplayName = "Hello"
		existing.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: "Placements", Placements: []addonv1alpha1.PlacementStrategy{
			{PlacementRef: addonv1alpha1.PlacementRef{Namespace: w.namespace, Name: "all"}},
		}}
		*supported(existing) = []addonv1alpha1.ConfigMeta{templatesConfig()}
		w.create(existing)
		for range 3 {
			w.commit("an empty title", addOnFilesWith(map[string]string{"addons/clustermanagementaddon.yaml": strings.Replace(addOnYAML, "addOnMeta:\n    displayName: Hello", "addOnMeta: {}", 1)}))
			w.look()
			Expect(w.whyNotReady()).To(ContainSubstring("addons/clustermanagementaddon.yaml:6: "))
			w.read(existing)
			Expect(existing.Annotations).NotTo(HaveKey(v1alpha1.LifecycleAnnotation))
			Expect(existing.Spec.InstallStrategy.Placements).To(HaveLen(1))
		}
		w.commit("a title", addOnFiles())
		w.look()
		w.passes()
		Expect(w.whyNotReady()).To(HavePrefix("True "))
	})

	It("if the hub refuses to delete what left it", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		placement := strings.Replace(placementYAML, "name: all", "name: ADDON", 1)
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/placement.yaml": placement}))
		w.passes()
		stored := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		allow := w.forbid(admissionregistrationv1.Delete, "cluster.open-cluster-management.io", "placements", "no placement leaves today", func() error {
			return admin.Delete(context.Background(), stored, client.DryRunAll)
		})
		w.commit("greet", map[string]string{"addons/addondeploymentconfig.yaml": configSaying("bye")})
		w.remove("no placement", "addons/placement.yaml")
		w.requests.reset()
		w.look()
		Expect(w.whyNotReady()).To(SatisfyAll(ContainSubstring("Placement/"+w.addOn+": "), ContainSubstring("no placement leaves today")))
		nothing(w)
		Expect(exists(stored)).To(BeTrue())

		allow()
		Eventually(func() bool {
			w.look()
			return exists(stored)
		}).WithTimeout(patience).Should(BeFalse())
		Expect(w.whyNotReady()).To(HavePrefix("True "))
	})

	It("and claims all content of an object whose source is gone", func() {
		w := newWorld()
		kubectl(w, config("  agentInstallNamespace: elsewhere\n"), map[string]string{v1alpha1.SourceAnnotation: w.namespace + "/gone"})
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": config("")}))
		w.passes()
		stored := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
		w.read(stored)
		Expect(stored.Annotations).To(HaveKeyWithValue(v1alpha1.SourceAnnotation, w.namespace+"/fleet"))
		Expect(stored.Spec.AgentInstallNamespace).NotTo(Equal("elsewhere"))
	})
})
