package addonsource_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	testforge "github.com/addonflow/addonflow/test/forge"
)

var _ = Describe("A commit", func() {
	It("creates revision, rollout and hub objects, and turns green", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/addonrollout.yaml": rolloutYAML,
			"addons/placement.yaml":    placementYAML,
		}))
		w.passes()

		source := w.source()
		revision := "main@sha1:" + sha
		Expect(source.Status.LastAppliedRevision).To(Equal(revision))
		Expect(source.Status.LastAttemptedRevision).To(Equal(revision))
		Expect(conditions.IsReady(source)).To(BeTrue())
		Expect(source.Finalizers).To(ContainElement(v1alpha1.Finalizer))

		revisions := w.revisions()
		Expect(revisions).To(HaveLen(1))
		Expect(revisions[0].Name).To(HavePrefix(w.addOn + "-"))

		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Target).To(Equal(&v1alpha1.Target{
			Source: "fleet", Revision: revisions[0].Name, Digest: revisions[0].Spec.Digest, Commit: revision,
		}))
		Expect(rollout.Spec.Stages).To(HaveLen(2))
		Expect(rollout.Spec.Install.Placements).To(HaveLen(1))
		Expect(rollout.Annotations).To(HaveKeyWithValue(v1alpha1.SourceAnnotation, w.namespace+"/fleet"))

		cma := w.cma()
		w.read(cma)
		Expect(cma.Annotations).To(HaveKeyWithValue(v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue))
		Expect(cma.Spec.InstallStrategy).To(Equal(addonv1alpha1.InstallStrategy{Type: "Manual"}))
		Expect(*supported(cma)).To(HaveLen(1))
		w.read(w.template())
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.read(placement)
		Expect(placement.Labels).To(HaveKeyWithValue(v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue))

		Expect(w.delivered(sha, "pending").Description).To(Equal("applied; " + w.addOn + " not yet up to date"))
		Expect(w.green(sha).Description).To(Equal("applied; 1 add-on up to date"))
		w.passes()
		Expect(conditions.IsTrue(w.source(), v1alpha1.CommitStatusReportedCondition)).To(BeTrue())
	})

	It("without add-on content makes no revision and says so, on that commit only", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFiles())
		w.passes()
		overtaken := w.commit("explain", map[string]string{"README.md": "hi"})
		w.look()
		readme := w.commit("explain better", map[string]string{"README.md": "hello"})
		w.look()

		Expect(w.revisions()).To(HaveLen(1))
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(first), "the commit that brought the content stays")
		Expect(w.green(readme).Description).To(Equal("no add-on content changed; 1 add-on up to date"))
		Expect(w.delivered(overtaken, "success").Description).To(Equal("no add-on content changed; 1 add-on up to date"))
		Expect(w.delivered(first, "success").Description).To(Equal("applied; 1 add-on up to date"))
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(readme))
	})

	It("is pending on a commit that edits a placement until OCM and the rollout have decided", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		first := w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/addonrollout.yaml": rolloutYAML, "addons/placement.yaml": placementYAML, "addons/other.yaml": strings.Replace(placementYAML, "name: all", "name: other", 1),
		}))
		w.passes()
		w.green(first)
		before := w.rollout()
		w.read(before)

		w.commit("select fewer", map[string]string{"addons/placement.yaml": strings.Replace(placementYAML, "spec: {}", "spec: {numberOfClusters: 3}", 1)})
		sha := w.remove("and not the other", "addons/other.yaml")
		w.clock.Step(2 * time.Minute)
		Expect(w.pass().RequeueAfter).To(BeNumerically("<=", 10*time.Second))
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		w.read(placement)
		Expect(placement.Spec.NumberOfClusters).To(HaveValue(BeEquivalentTo(3)))
		waits := "the placements of " + w.addOn + " were edited: waiting for OCM to decide about them"
		Expect(w.delivered(sha, "pending").Description).To(Equal(waits))
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.PlacementUndecidedReason))

		By("a new process waits as well")
		w.clock.Step(time.Minute)
		w.start()
		w.pass()
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Generation).To(Equal(before.Generation))
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(first))

		By("then the rollout plans anew, and the commit waits for it")
		w.passes()
		w.read(rollout)
		Expect(rollout.Spec.PolicyCommit).To(HaveSuffix(sha))
		Expect(rollout.Generation).To(BeNumerically(">", before.Generation))
		latest, _ := w.forge.Latest(sha, "addonflow/fleet")
		Expect(latest.State).To(Equal("pending"))
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
		Expect(exists(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}})).To(BeFalse(), "what left Git is pruned after the wait")
		w.rolledOut()
		says := func(sha string) func() string {
			return func() string {
				w.pass() // the new process reads the forge first
				latest, _ := w.forge.Latest(sha, "addonflow/fleet")
				return latest.State + ": " + latest.Description
			}
		}
		Eventually(says(sha)).WithTimeout(patience).Should(Equal("success: no add-on content changed; 1 add-on up to date"))

		By("a commit that leaves the placement alone does not wait")
		readme := w.commit("explain", map[string]string{"README.md": "hello"})
		w.clock.Step(2 * time.Minute)
		Eventually(says(readme)).WithTimeout(patience).Should(Equal("success: no add-on content changed; 1 add-on up to date"))
	})

	It("changes policy without a new revision, and content with one", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFilesWith(map[string]string{"addons/addonrollout.yaml": rolloutYAML}))
		w.passes()
		before := w.source().Status
		pace := w.remove("default pace", "addons/addonrollout.yaml")
		w.look()
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Stages).To(BeEmpty(), "a removed file resets the spec")
		Expect(rollout.Spec.Target).NotTo(BeNil())
		Expect(rollout.Spec.PolicyCommit).To(HaveSuffix(pace))
		Expect(w.source().Status.AddOns[0].Declares(&rollout.Spec)).To(BeTrue())
		Expect(w.revisions()).To(HaveLen(1))

		By("an operator that was killed before it wrote the source's status writes nothing else")
		source := w.source()
		source.Status = before
		Expect(admin.Status().Update(context.Background(), source)).To(Succeed())
		w.start()
		w.look()
		Expect(w.requests.written()).To(HaveEach(ContainSubstring("/addonsources/fleet/status")))
		Expect(w.source().Status.AddOns[0].PolicyCommit).To(HaveSuffix(pace))

		By("a commit that changes neither writes nothing else, and names itself nowhere")
		w.requests.reset()
		w.commit("explain", map[string]string{"README.md": "hello"})
		w.look()
		Expect(w.requests.written()).To(HaveEach(ContainSubstring("/addonsources/fleet/status")))
		Expect(w.source().Status.AddOns[0].PolicyCommit).To(HaveSuffix(pace))

		By("nor does a commit that an operator sees first that writes other annotations than the one before")
		w.read(rollout)
		delete(rollout.Annotations, v1alpha1.PolicyAnnotation)
		Expect(admin.Update(context.Background(), rollout)).To(Succeed())
		w.commit("explain more", map[string]string{"README.md": "hello world"})
		w.start()
		w.look()
		w.read(rollout)
		Expect(rollout.Annotations).To(HaveKey(v1alpha1.PolicyAnnotation))
		Expect(rollout.Spec.PolicyCommit).To(HaveSuffix(pace))
		Expect(w.source().Status.AddOns[0].PolicyCommit).To(HaveSuffix(pace))

		By("a commit that brings content is named by the target alone")
		second := w.commit("louder", map[string]string{"addons/addondeploymentconfig.yaml": strings.Replace(configYAML, "value: hello", "value: HELLO", 1)})
		w.look()
		w.read(rollout)
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(second))
		Expect(rollout.Spec.PolicyCommit).To(BeEmpty())
		Expect(w.source().Status.AddOns[0].PolicyCommit).To(BeEmpty())
		Expect(w.revisions()).To(HaveLen(2))

		By("a commit that brings back earlier content is named by its revision besides the first one")
		third := w.commit("quieter", map[string]string{"addons/addondeploymentconfig.yaml": configYAML})
		w.look()
		w.read(rollout)
		again := &v1alpha1.AddOnRevision{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: rollout.Spec.Target.Revision}}
		w.read(again)
		Expect(v1alpha1.Commits(again.Annotations)).To(Equal([]string{"main@sha1:" + third, "main@sha1:" + first}))

		By("the marks of a revision that were taken off by hand come back")
		marked := again.DeepCopy()
		again.Labels, again.Annotations = nil, nil
		Expect(admin.Update(context.Background(), again)).To(Succeed())
		w.look()
		w.read(again)
		Expect(again.Labels).To(Equal(marked.Labels))
		for _, key := range []string{v1alpha1.RevisionAnnotation, v1alpha1.SourceAnnotation} {
			Expect(again.Annotations).To(HaveKeyWithValue(key, marked.Annotations[key]))
		}
	})

	It("that is bad changes nothing and gets a status with file and line", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		good := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(good)
		w.passes()
		before := w.cma()
		w.read(before)
		Expect(w.announced()).To(ConsistOf(ContainSubstring("Applied revision main@sha1:" + good)))

		w.requests.reset()
		bad := w.commit("typo", map[string]string{
			"addons/addontemplate.yaml": strings.Replace(templateYAML, "{{GREETING}}", "{{GREETINGS}}", 1),
			"addons/addonrollout.yaml":  strings.Replace(rolloutYAML, "maxConcurrency: 1", "maxConcurrency: 150%", 1),
		})
		w.look()
		Expect(w.requests.written()).To(HaveEach(ContainSubstring("/addonsources/fleet/status")), "nothing but its own words")
		source := w.source()
		Expect(conditions.IsStalled(source)).To(BeTrue())
		Expect(conditions.GetReason(source, fluxmeta.ReadyCondition)).To(Equal(v1alpha1.ValidationFailedReason))
		message := conditions.GetMessage(source, fluxmeta.ReadyCondition)
		Expect(message).To(ContainSubstring("addons/addonrollout.yaml:12: AddOnRollout/" + w.addOn + ": spec.stages[0].maxConcurrency"))
		Expect(message).To(ContainSubstring("addons/addontemplate.yaml:"), "all problems are listed")
		Expect(source.Status.LastAppliedRevision).To(HaveSuffix(good))
		Expect(source.Status.LastAttemptedRevision).To(HaveSuffix(bad))
		after := w.cma()
		w.read(after)
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(w.delivered(bad, "failure").Description).To(ContainSubstring("addons/addonrollout.yaml:12: "))
		w.passes()

		theGit.ResetRequests()
		w.requests.reset()
		w.look()
		Expect(theGit.Requests().UploadPack).To(BeZero(), "a broken commit is not fetched again")
		Expect(w.requests.written()).To(BeEmpty())
		Expect(w.announced()).To(ConsistOf(HavePrefix("Warning ValidationFailed ")), "once")

		w.start()
		w.look()
		Expect(theGit.Requests().UploadPack).To(BeZero(), "nor after a restart")

		fixed, err := w.repo.Revert(bad)
		Expect(err).NotTo(HaveOccurred())
		w.look()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(w.green(fixed).Description).To(Equal("no add-on content changed; 1 add-on up to date"))
	})

	It("that another process of the operator applies at the same time causes no conflict", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		applied := false
		w.requests.before = func(r *http.Request) {
			if applied || !r.URL.Query().Has("dryRun") {
				return
			}
			applied = true
			template := w.template()
			template.Annotations = map[string]string{v1alpha1.SourceAnnotation: w.namespace + "/fleet"}
			template.Spec.AddonName = w.addOn
			Expect(admin.Create(context.Background(), template)).To(Succeed())
		}
		w.pass()
		Expect(applied).To(BeTrue())
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(fluxmeta.ProgressingReason))
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReconcilingCondition)).To(ContainSubstring("was applied by another process of AddonFlow meanwhile"))
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})

	It("is not taken back by a process that looked at Git before another one applied it", func() {
		for looked, look := range map[string]func(*world, client.ObjectKey){
			"and applied what it found": func(w *world, _ client.ObjectKey) { w.pass() },
			"and has not read the answer": func(w *world, key client.ObjectKey) {
				_, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.reconciler.Await(key)).To(BeTrue())
			},
		} {
			By(looked)
			w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
			w.commit("begin", map[string]string{"addons/README.md": "nothing yet"})
			look(w, client.ObjectKeyFromObject(w.source()))
			stoodStill := w.reconciler

			w.start()
			newer := w.commit("add hello", addOnFiles())
			w.passes()
			Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(newer))

			w.reconciler = stoodStill
			w.passes()
			Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(newer))
			rollout := w.rollout()
			w.read(rollout)
			Expect(rollout.Spec.Removal).To(BeNil(), "an older commit does not declare the add-on")
		}
	})

	It("that cannot be read in part reports what is wrong with the rest as well", func() {
		w := newWorld()
		bad := w.commit("two mistakes", addOnFilesWith(map[string]string{
			"addons/addontemplate.yaml": strings.Replace(templateYAML, "{{GREETING}}", "{{GREETINGS}}", 1),
			"addons/addonrollout.yaml":  rolloutYAML + "\tpaused: true\n",
		}))
		w.passes()
		source := w.source()
		Expect(conditions.IsStalled(source)).To(BeTrue())
		Expect(conditions.GetReason(source, fluxmeta.ReadyCondition)).To(Equal(v1alpha1.BuildFailedReason))
		Expect(strings.Split(conditions.GetMessage(source, fluxmeta.ReadyCondition), "\n")).To(HaveExactElements(
			HavePrefix("addons/addonrollout.yaml:"), And(HavePrefix("addons/addontemplate.yaml:"), ContainSubstring("GREETINGS")),
		))
		Expect(w.delivered(bad, "failure").Description).To(And(ContainSubstring("addons/addonrollout.yaml:"), ContainSubstring("(and 1 more)")))
	})

	It("whose path is missing prunes nothing", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		w.commit("add hello", addOnFilesWith(map[string]string{"README.md": "hello"}))
		w.passes()
		w.remove("everything", "addons")
		w.look()
		Expect(conditions.GetReason(w.source(), fluxmeta.StalledCondition)).To(Equal(v1alpha1.BuildFailedReason))
		Expect(exists(w.cma())).To(BeTrue())
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Removal).To(BeNil())
	})

	It("that is refused for another reason after a change of the source reports the new reason", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Path = "nowhere" })
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		Expect(w.delivered(sha, "failure").Description).To(Equal("nowhere does not exist at spec.path"))
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Path = "elsewhere" })
		w.passes()
		w.passes()
		Eventually(func() string { return w.delivered(sha, "failure").Description }, time.Minute).
			Should(Equal("elsewhere does not exist at spec.path"))
	})

	It("that admission refuses changes nothing", func() {
		w := newWorld()
		refuseAddOnTemplates(w)
		sha := w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/addontemplate.yaml": strings.Replace(templateYAML, "  name: ADDON\n", "  name: ADDON\n  labels:\n    refuse: "+w.namespace+"\n", 1),
		}))
		w.passes()
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.ValidationFailedReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(And(
			ContainSubstring("addons/addontemplate.yaml:"), ContainSubstring("not in this fleet"), Not(MatchRegexp(w.addOn+`-[0-9a-f]{10}`))))
		Expect(exists(w.cma())).To(BeFalse())
		Expect(exists(w.template())).To(BeFalse())
		Expect(w.revisions()).To(BeEmpty())
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("addontemplate.yaml"))
	})

	It("that was refused stays refused while the hub does not answer, until it is found valid", func() {
		w := newWorld()
		refuseAddOnTemplates(w)
		sha := w.commit("add hello, and a copy that admission refuses", addOnFilesWith(map[string]string{
			"strict/clustermanagementaddon.yaml": addOnYAML,
			"strict/addondeploymentconfig.yaml":  configYAML,
			"strict/addontemplate.yaml":          strings.Replace(templateYAML, "  name: ADDON\n", "  name: ADDON\n  labels:\n    refuse: "+w.namespace+"\n", 1),
		}))
		w.passes()
		w.green(sha)
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Path = "strict" })
		w.passes()
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("addontemplate.yaml"))
		posted := len(w.forge.Log())

		w.requests.fail(true)
		w.request("again")
		for range 3 {
			_, err := w.passOf("fleet")
			Expect(err).To(HaveOccurred(), "it is tried again")
			source := w.source()
			Expect(source.Status.Refused()).To(BeTrue(), "nothing was learnt of the commit")
			Expect(source.Status.CommitStatuses).To(HaveEach(HaveField("Owed", BeNil())))
		}
		Expect(w.forge.Log()).To(HaveLen(posted), "log: %v", w.forge.Log())
		w.requests.fail(false)
		w.passes()
		Expect(conditions.GetReason(w.source(), fluxmeta.StalledCondition)).To(Equal(v1alpha1.ValidationFailedReason))
		Expect(w.forge.Log()).To(HaveLen(posted), "log: %v", w.forge.Log())

		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Path = "addons" })
		w.passes()
		w.green(sha)
	})

	It("may use any positive duration as a deadline, in either mode", func() {
		for _, mode := range []addonsource.Mode{addonsource.Coexist, addonsource.Replace} {
			w := newWorld()
			w.mode = mode
			w.start()
			sha := w.commit("add hello", addOnFilesWith(map[string]string{
				"addons/clustermanagementaddon.yaml": strings.Replace(addOnYAML, "maxConcurrency: 25%", "maxConcurrency: 25%\n          progressDeadline: 1.5h", 1),
				"addons/addonrollout.yaml": "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: ADDON}\n" +
					"spec: {strategy: {type: Progressive, progressive: {progressDeadline: 2.5m}}}\n",
			}))
			w.passes()
			Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha), conditions.GetMessage(w.source(), fluxmeta.ReadyCondition))
			rollout := w.rollout()
			w.read(rollout)
			Expect(rollout.Spec.Install.Placements[0].RolloutStrategy.Progressive.ProgressDeadline).To(Equal("1h30m0s"))
			Expect(rollout.Spec.Strategy.Progressive.ProgressDeadline).To(Equal("2m30s"))
		}
	})

	It("may bind a set of clusters to its namespace, which goes with the commit", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		const binding = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n" +
			"metadata: {name: global, namespace: NAMESPACE}\nspec: {clusterSet: global}\n"
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/binding.yaml": binding}))
		w.passes()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetBinding"})
		live.SetNamespace(w.namespace)
		live.SetName("global")
		w.read(live)
		Expect(live.Object["spec"]).To(Equal(map[string]any{"clusterSet": "global"}))
		w.remove("no binding", "addons/binding.yaml")
		w.look()
		Expect(exists(live)).To(BeFalse())
	})

	It("tries objects of a Namespace that it creates in the namespace default", func() {
		w := newWorld()
		namespaceYAML := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: NAMESPACE-new\n"
		w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/namespace.yaml":              namespaceYAML,
			"addons/addondeploymentconfig.yaml":  strings.Replace(configYAML, "namespace: NAMESPACE", "namespace: NAMESPACE-new", 1),
			"addons/clustermanagementaddon.yaml": strings.Replace(addOnYAML, "namespace: NAMESPACE\n      name: ADDON", "namespace: NAMESPACE-new\n      name: ADDON", 1),
		}))
		w.passes()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(HavePrefix("Applied revision"))
		Expect(exists(&addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace + "-new", Name: w.addOn}})).To(BeTrue())
	})

	It("waits for what it refers to on the hub", func() {
		w := newWorld()
		files := addOnFiles()
		delete(files, "addons/addondeploymentconfig.yaml")
		sha := w.commit("add hello", files)
		result := w.pass()
		Expect(result.RequeueAfter).To(BeNumerically("<=", 10*time.Second))
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.ReferenceNotFoundReason))
		Expect(w.delivered(sha, "pending").Description).To(And(ContainSubstring("waiting for"), ContainSubstring(w.namespace+"/"+w.addOn)))
		Expect(exists(w.cma())).To(BeFalse())

		w.create(&addonv1alpha1.AddOnDeploymentConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn},
			Spec:       addonv1alpha1.AddOnDeploymentConfigSpec{CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "GREETING", Value: "hi"}}},
		})
		theGit.ResetRequests()
		w.clock.Step(result.RequeueAfter)
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(theGit.Requests().UploadPack).To(BeZero(), "the commit is in memory")
		w.green(sha)
		Expect(w.source().Status.Inventory).NotTo(ContainElement(HaveField("Kind", "AddOnDeploymentConfig")))
	})

	It("is superseded if the head moves before it is applied", func() {
		w := newWorld()
		files := addOnFiles()
		delete(files, "addons/addondeploymentconfig.yaml")
		first := w.commit("add hello", files)
		w.pass()
		w.delivered(first, "pending")
		second := w.commit("with its configuration", addOnFiles())
		w.look()
		Expect(w.delivered(first, "error").Description).To(ContainSubstring("superseded by " + second[:10]))
		w.green(second)
	})
})

// refuseAddOnTemplates installs a policy against AddOnTemplates with the world's label.
func refuseAddOnTemplates(w *world) {
	GinkgoHelper()
	for _, manifest := range []string{policyYAML, policyBindingYAML} {
		u := decode(w.named(manifest))
		w.create(u)
		DeferCleanup(func() { Expect(admin.Delete(context.Background(), u)).To(Succeed()) })
	}
	// The API server enforces a policy some time after it was stored.
	Eventually(func() error {
		template := w.template()
		template.Labels = map[string]string{"refuse": w.namespace}
		template.Spec.AddonName = w.addOn
		return admin.Create(context.Background(), template, client.DryRunAll)
	}).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("not in this fleet")))
}

const policyYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: NAMESPACE
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [addon.open-cluster-management.io]
      apiVersions: [v1alpha1]
      operations: [CREATE]
      resources: [addontemplates]
  validations:
  - expression: "!has(object.metadata.labels) || !('refuse' in object.metadata.labels) || object.metadata.labels.refuse != 'NAMESPACE'"
    message: not in this fleet
`

const policyBindingYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: NAMESPACE
spec:
  policyName: NAMESPACE
  validationActions: [Deny]
`

var _ = Describe("A repository", func() {
	It("that is down is tried again, and the last good commit stays", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		theGit.FailWith(503)
		DeferCleanup(theGit.Heal)
		w.clock.Step(2 * time.Minute)
		result := w.pass()
		Expect(result.RequeueAfter).To(BeNumerically("<=", time.Minute))
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.ReadyCondition)).To(Equal(v1alpha1.FetchFailedReason))
		Expect(source.Status.LastAppliedRevision).To(HaveSuffix(sha))
		Expect(exists(w.cma())).To(BeTrue())
		theGit.Heal()
		w.clock.Step(result.RequeueAfter)
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})

	It("with a missing Secret says so, and never shows its contents", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.SecretRef = &fluxmeta.LocalObjectReference{Name: "git"} })
		w.commit("add hello", addOnFiles())
		w.pass()
		Expect(conditions.GetReason(w.source(), fluxmeta.ReadyCondition)).To(Equal(v1alpha1.InvalidCredentialsReason))
		w.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "git"},
			Data:       map[string][]byte{"password": []byte("battery-staple")},
		})
		w.clock.Step(time.Second)
		w.pass()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(And(ContainSubstring("username"), Not(ContainSubstring("battery"))))

		By("nor does it show what a URL holds besides the address")
		source := w.source()
		source.Spec.URL += "?key=" + planted
		Expect(admin.Update(context.Background(), source)).To(Succeed())
		w.pass()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(HaveSuffix("has a query or fragment"))
	})

	It("that cannot be read stays so when a forge answers meanwhile", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Interval.Duration = 5 * time.Minute })
		w.commit("add hello", addOnFiles())
		w.passes()
		theGit.FailWith(503)
		DeferCleanup(theGit.Heal)
		w.request("look")
		result := w.pass()
		Expect(conditions.GetReason(w.source(), fluxmeta.ReadyCondition)).To(Equal(v1alpha1.FetchFailedReason))
		theGit.ResetRequests()
		again := w.pass()
		Expect(conditions.GetReason(w.source(), fluxmeta.ReadyCondition)).To(Equal(v1alpha1.FetchFailedReason), "nothing was read since")
		Expect(theGit.Requests().LsRemote).To(BeZero(), "nor is it tried before its time")
		Expect(again.RequeueAfter).To(Equal(result.RequeueAfter))
		theGit.Heal()
		w.clock.Step(again.RequeueAfter)
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})

	It("that hangs delays no commit status, and causes no more requests to the forge", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(sha)
		w.passes()
		theGit.Hang()
		DeferCleanup(theGit.Heal)
		DeferCleanup(func() { w.reconciler.Stop(client.ObjectKeyFromObject(w.source())) })
		pass := func() *v1alpha1.AddOnSource {
			GinkgoHelper()
			_, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.source())})
			Expect(err).NotTo(HaveOccurred())
			return w.source()
		}
		w.clock.Step(2 * time.Minute)
		pass()
		w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
			r.Status.Outcome = "failure"
			conditions.MarkFalse(r, fluxmeta.ReadyCondition, "Failed", "halted in canary")
		})
		w.forge.Set(testforge.Fault{Kind: testforge.TooManyRequests, RetryAfter: time.Hour})
		refused := func(times int) {
			GinkgoHelper()
			before := w.forge.Requests()
			Eventually(func() int { pass(); return w.forge.Requests() - before }).WithTimeout(patience).Should(Equal(times))
			Eventually(func() string { return conditions.GetReason(pass(), v1alpha1.CommitStatusReportedCondition) }).
				WithTimeout(patience).Should(Equal(v1alpha1.DeliveryFailedReason))
			Consistently(func() int { pass(); return w.forge.Requests() - before }).Should(Equal(times))
		}
		refused(1)
		w.request("once")
		refused(1)
		w.forge.Set(testforge.Fault{})
		w.request("twice")
		pass()
		Expect(w.delivered(sha, "failure").Description).To(ContainSubstring("halted in canary"))
	})

	It("whose commit has another name does not report that it changed nothing", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		Expect(w.repo.Tag("v1.0.0")).To(Succeed())
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Reference = &v1alpha1.GitReference{Tag: "v1.0.0"} })
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).To(HavePrefix("v1.0.0@"))
		Expect(w.green(sha).Description).To(Equal("applied; 1 add-on up to date"))
		_, shown := w.forge.Latest(sha, "addonflow/fleet/"+w.named("ADDON"))
		Expect(shown).To(BeFalse(), "it is the rollout's to say: %v", w.forge.Log())
	})

	It("without the branch is read again later", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Reference = &v1alpha1.GitReference{Branch: "release"} })
		w.commit("add hello", addOnFiles())
		w.pass()
		Expect(conditions.GetReason(w.source(), fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.RefNotFoundReason))
	})
})
