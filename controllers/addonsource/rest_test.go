package addonsource_test

import (
	"context"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/contest"
	testforge "github.com/addonflow/addonflow/test/forge"
)

var _ = Describe("At rest", func() {
	It("a pass writes nothing, and looks once an interval", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFilesWith(map[string]string{
			"addons/addonrollout.yaml": rolloutYAML, "addons/placement.yaml": placementYAML,
		}))
		w.passes()
		w.green(sha)
		w.passes()
		posts := w.forge.Requests()

		w.requests.reset()
		theGit.ResetRequests()
		w.look()
		Expect(w.requests.written()).To(BeEmpty())
		Expect(theGit.Requests().LsRemote).To(Equal(1))
		Expect(theGit.Requests().UploadPack).To(BeZero())
		w.pass()
		Expect(theGit.Requests().LsRemote).To(Equal(1), "a second pass in the interval does not look")
		Expect(w.forge.Requests()).To(Equal(posts))

		w.start()
		w.look()
		Expect(w.requests.written()).To(BeEmpty(), "nor after a restart")
		Expect(theGit.Requests().UploadPack).To(BeZero())
	})

	It("a restarted operator with the commit in memory writes nothing", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/addonrollout.yaml": rolloutYAML}))
		w.passes()
		w.start()
		w.request("again")
		w.passes()
		Expect(w.requests.written()).To(HaveEach(ContainSubstring("/addonsources/fleet/status")),
			"what is stored equals what is declared, field by field")
		Expect(w.source().Status.LastHandledReconcileAt).To(Equal("again"))
	})
})

var _ = Describe("Drift", func() {
	It("of a rollout that was deleted is repaired without a fetch", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		w.commit("explain", map[string]string{"README.md": "hello"})
		w.look()
		Expect(admin.Delete(context.Background(), w.rollout())).To(Succeed())
		theGit.ResetRequests()
		w.passes()
		rollout := w.rollout()
		w.read(rollout)
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(sha), "not the head: it did not bring the content")
		Expect(rollout.Spec.PolicyCommit).To(BeEmpty(), "nor the policy")
		Expect(w.logged).To(ContainElement(And(ContainSubstring(`"Repaired the object","object":"AddOnRollout/`), ContainSubstring("it was deleted on the hub"))))
		Expect(theGit.Requests().UploadPack).To(BeZero())
	})

	It("found after a restart causes one fetch", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		Expect(admin.Delete(context.Background(), w.rollout())).To(Succeed())
		w.start()
		theGit.ResetRequests()
		w.passes()
		Expect(exists(w.rollout())).To(BeTrue())
		Expect(theGit.Requests().UploadPack).To(Equal(1))
	})

	It("of fields is repaired, which the log says at level info", func() {
		w := newWorld()
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		Expect(w.logged).NotTo(ContainElement(ContainSubstring("Repaired")))
		cma := w.cma()
		w.read(cma)
		cma.Spec.AddOnMeta.DisplayName = "Goodbye"
		Expect(admin.Update(context.Background(), cma, client.FieldOwner("ann"))).To(Succeed())
		w.passes()
		w.read(cma)
		Expect(cma.Spec.AddOnMeta.DisplayName).To(Equal("Hello"))
		Expect(w.logged).To(ContainElement(And(
			ContainSubstring(`"Repaired the object","object":"ClusterManagementAddOn/`+w.addOn), ContainSubstring(sha), ContainSubstring("it was changed on the hub; last by ann"))))
	})

	It("of the source's own status wakes the source, and its own writes do not", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		empty := w.source()
		w.passes()
		whole := w.source()
		written := w.reconciler.StatusOfOthers()
		Expect(written.Update(event.UpdateEvent{ObjectOld: empty, ObjectNew: whole})).To(BeFalse())
		lost := w.source()
		lost.Status = v1alpha1.AddOnSourceStatus{}
		Expect(admin.Status().Update(context.Background(), lost)).To(Succeed())
		Expect(written.Update(event.UpdateEvent{ObjectOld: whole, ObjectNew: lost})).To(BeTrue())
		theGit.ResetRequests()
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).To(Equal(whole.Status.LastAppliedRevision))
		Expect(theGit.Requests().LsRemote).To(Equal(1), "another process may have written it, after a newer look")
		Expect(theGit.Requests().UploadPack).To(BeZero())
	})

	It("of the target's commit posts nothing on the commit that was written by hand", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		readme := w.commit("readme", map[string]string{"README.md": "hello"})
		w.look()
		w.green(w.commit("readme again", map[string]string{"README.md": "hello again"}))
		posted := len(w.forge.Log())
		rollout := w.rollout()
		w.read(rollout)
		before := rollout.Spec.Target.Commit
		rollout.Spec.Target.Commit = "main@sha1:" + readme
		Expect(admin.Update(context.Background(), rollout, client.FieldOwner("another-writer"))).To(Succeed())
		w.look()
		w.read(rollout)
		Expect(rollout.Spec.Target.Commit).To(Equal(before))
		Consistently(func() []testforge.Entry { w.look(); return w.forge.Log()[posted:] }).
			WithTimeout(2 * time.Second).WithPolling(100 * time.Millisecond).ShouldNot(ContainElement(HaveField("SHA", readme)))
	})

	It("of fields is repaired after a restart, for one fetch", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/addonrollout.yaml": rolloutYAML}))
		w.passes()
		cma, rollout := w.cma(), w.rollout()
		w.read(cma)
		cma.Spec.AddOnMeta.DisplayName = "Goodbye"
		Expect(admin.Update(context.Background(), cma, client.FieldOwner("another-writer"))).To(Succeed())
		w.read(rollout)
		rollout.Spec.Stages[0].MaxConcurrency = new(intstr.FromInt32(7))
		Expect(admin.Update(context.Background(), rollout, client.FieldOwner("another-writer"))).To(Succeed())
		w.start()
		theGit.ResetRequests()
		w.passes()
		w.read(cma)
		w.read(rollout)
		Expect(cma.Spec.AddOnMeta.DisplayName).To(Equal("Hello"))
		Expect(rollout.Spec.Stages[0].MaxConcurrency.IntValue()).To(Equal(1))
		Expect(theGit.Requests().UploadPack).To(Equal(1))
	})

	It("of a field that was deleted is repaired after a restart, for one fetch", func() {
		w := newWorld()
		w.commit("add hello", addOnFilesWith(map[string]string{"addons/addonrollout.yaml": rolloutYAML}))
		w.passes()
		cma, rollout := w.cma(), w.rollout()
		remove := func(object client.Object, patch string) {
			GinkgoHelper()
			Expect(admin.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("another-writer"))).To(Succeed())
		}
		remove(cma, `{"spec": {"addOnMeta": {"displayName": null}}}`)
		w.start()
		theGit.ResetRequests()
		w.passes()
		w.read(cma)
		Expect(cma.Spec.AddOnMeta.DisplayName).To(Equal("Hello"))

		remove(rollout, `{"spec": {"stages": null}}`)
		w.start()
		w.passes()
		w.read(rollout)
		Expect(rollout.Spec.Stages).To(HaveLen(2))
		Expect(theGit.Requests().UploadPack).To(Equal(2))

		w.start()
		w.requests.reset()
		w.look()
		Expect(w.requests.written()).To(BeEmpty(), "what was repaired is known to be")
		Expect(theGit.Requests().UploadPack).To(Equal(2))
	})

	It("that makes OCM's template manager start again is a conflict until forced", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma := w.cma()
		w.read(cma)
		*supported(cma) = append(*supported(cma), templatesConfig())
		Expect(admin.Update(context.Background(), cma, client.FieldOwner("another-writer"))).To(Succeed())
		w.look()
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.OwnershipConflictReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(ContainSubstring("another-writer"))

		w.change(func(s *v1alpha1.AddOnSource) {
			s.Annotations = map[string]string{fluxmeta.ReconcileRequestAnnotation: "now", fluxmeta.ForceRequestAnnotation: "now"}
		})
		w.passes()
		w.read(cma)
		Expect(*supported(cma)).To(HaveLen(1))
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		Expect(w.source().Status.LastHandledForceAt).To(Equal("now"))
	})
})

var _ = Describe("A client that undoes every repair of an object", func() {
	It("is a conflict that names it, until the object is as Git declares it or the user asks", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma := w.cma()
		rename := func(to string) {
			GinkgoHelper()
			w.read(cma)
			cma.Spec.AddOnMeta.DisplayName = to
			Expect(admin.Update(context.Background(), cma, client.FieldOwner("gitops"))).To(Succeed())
		}
		repairs := 0
		for range 3 * contest.Writes {
			rename("Goodbye")
			w.passes()
			if w.read(cma); cma.Spec.AddOnMeta.DisplayName == "Hello" {
				repairs++
			}
		}
		Expect(repairs).To(BeNumerically("<", contest.Writes), "the first write counts as well")
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.OwnershipConflictReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(HavePrefix("addons/clustermanagementaddon.yaml:1: ClusterManagementAddOn/" + w.addOn +
			": belongs to field manager gitops, which undoes every write: stop that writer; addonflow reconcile source " + source.Name + " -n " + source.Namespace))

		w.look()
		Expect(conditions.IsStalled(w.source())).To(BeTrue(), "time alone ends no conflict")
		rename("Hello")
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue(), "no user needs to ask if the client gives way")
		rename("Goodbye")
		w.passes()
		w.read(cma)
		Expect(cma.Spec.AddOnMeta.DisplayName).To(Equal("Hello"), "and later drift is repaired again")

		for range contest.Writes {
			rename("Goodbye")
			w.passes()
		}
		Expect(conditions.IsStalled(w.source())).To(BeTrue())
		w.request("stopped")
		w.passes()
		w.read(cma)
		Expect(cma.Spec.AddOnMeta.DisplayName).To(Equal("Hello"))
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})
})

var _ = Describe("A client that replaces a whole object", func() {
	It("is a conflict as well, although it removes the marks of AddonFlow with each write", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		cma, repairs := w.cma(), 0
		for range 3 * contest.Writes {
			w.read(cma)
			cma.Spec.AddOnMeta.DisplayName, cma.Annotations, cma.Labels = "Goodbye", nil, nil
			Expect(admin.Update(context.Background(), cma, client.FieldOwner("terraform"))).To(Succeed())
			w.clock.Step(2 * time.Second)
			w.passes()
			if w.read(cma); cma.Spec.AddOnMeta.DisplayName == "Hello" {
				repairs++
			}
		}
		Expect(repairs).To(BeNumerically("<=", contest.Writes))
		source := w.source()
		Expect(conditions.GetReason(source, fluxmeta.StalledCondition)).To(Equal(v1alpha1.OwnershipConflictReason))
		Expect(conditions.GetMessage(source, fluxmeta.StalledCondition)).To(ContainSubstring("belongs to field manager terraform, which undoes every write"))
	})
})

var _ = Describe("A user", func() {
	It("requests a look before the interval is over", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		sha := w.commit("explain", map[string]string{"README.md": "hello"})
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).NotTo(HaveSuffix(sha))
		w.request("1")
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
		Expect(w.source().Status.LastHandledReconcileAt).To(Equal("1"))
	})

	It("suspends by spec and by annotation", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true })
		w.commit("explain", map[string]string{"README.md": "hello"})
		theGit.ResetRequests()
		w.look()
		Expect(theGit.Requests().LsRemote).To(BeZero())
		source := w.source()
		Expect(source.Status.LastAppliedRevision).To(HaveSuffix(first))
		Expect(conditions.GetReason(source, fluxmeta.ReadyCondition)).To(Equal(v1alpha1.SuspendedReason))
		Expect(conditions.GetMessage(source, fluxmeta.ReadyCondition)).To(ContainSubstring("spec.suspend"))

		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Suspend = false
			s.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
		})
		w.look()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(ContainSubstring("annotation"))
		Expect(theGit.Requests().LsRemote).To(BeZero())

		w.change(func(s *v1alpha1.AddOnSource) { s.Annotations = nil })
		w.look()
		Expect(conditions.GetMessage(w.source(), fluxmeta.ReadyCondition)).To(HavePrefix("Applied revision"))
		Expect(w.source().Status.LastAppliedRevision).NotTo(HaveSuffix(first))
	})
})

var _ = Describe("A forge", func() {
	It("that is down delays its statuses and nothing else", func() {
		w := newWorld()
		Expect(w.forge.Down()).To(Succeed())
		sha := w.commit("add hello", addOnFiles())
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
		Eventually(func() string {
			w.pass()
			return conditions.GetReason(w.source(), v1alpha1.CommitStatusReportedCondition)
		}).WithTimeout(time.Minute).Should(Equal(v1alpha1.DeliveryFailedReason))
		Expect(conditions.IsReady(w.source())).To(BeTrue())

		// A new process has only the marks in the status.
		w.start()
		Expect(w.forge.Up()).To(Succeed())
		w.request("forge is back")
		w.rolledOut()
		Eventually(func() bool {
			w.pass()
			return conditions.IsTrue(w.source(), v1alpha1.CommitStatusReportedCondition)
		}).WithTimeout(time.Minute).Should(BeTrue())
		w.delivered(sha, "success")
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})
})

// templatesConfig is the entry that starts OCM's template manager.
func templatesConfig() addonv1alpha1.ConfigMeta {
	return addonv1alpha1.ConfigMeta{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
		Group: addonv1alpha1.GroupName, Resource: "addontemplates",
	}}
}

// supported is the list of configuration kinds that OCM's template manager starts by.
func supported(cma *addonv1alpha1.ClusterManagementAddOn) *[]addonv1alpha1.ConfigMeta {
	return &cma.Spec.SupportedConfigs
}

// decode reads one object.
func decode(manifest string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &u.Object)).To(Succeed())
	return u
}
