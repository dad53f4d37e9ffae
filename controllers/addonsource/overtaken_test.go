package addonsource_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	testforge "github.com/addonflow/addonflow/test/forge"
)

var _ = Describe("Content that is overtaken before its rollout saw it", func() {
	It("is reported in the context of the add-on, unless the rollout saw it", func() {
		w := newWorld()
		saying := func(greeting string) map[string]string {
			return addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying(greeting)})
		}
		first := w.commit("add hello", addOnFiles())
		w.passes()
		second := w.commit("change it", saying("again"))
		w.look()
		Expect(w.delivered(first, "error", w.addOn).Description).To(Equal("superseded by " + second[:10]))
		Expect(w.delivered(first, "error").Description).To(Equal("superseded by " + second[:10]))

		By("a rollout that saw its target reports on that commit itself")
		w.rolloutLooks()
		third := w.commit("change it again", saying("and again"))
		w.look()
		w.delivered(third, "pending")
		_, shown := w.forge.Latest(second, "addonflow/fleet/"+w.addOn)
		Expect(shown).To(BeFalse(), "log: %v", w.forge.Log())

		By("taking an unseen one back to what the rollout has")
		fourth := w.commit("back", saying("again"))
		w.look()
		Expect(w.delivered(third, "error", w.addOn).Description).To(Equal("superseded by " + fourth[:10]))

		By("a rollout whose status was lost after the content had succeeded")
		w.rolloutLooks()
		w.succeeded(w.rolloutTarget().Revision)
		w.rolloutForgets()
		fifth := w.commit("one more", saying("five"))
		w.look()
		w.delivered(fifth, "pending")
		_, shown = w.forge.Latest(fourth, "addonflow/fleet/"+w.addOn)
		Expect(shown).To(BeFalse(), "log: %v", w.forge.Log())
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})

	It("is superseded once if the rollout looks while the source replaces it", func() {
		w := newWorld()
		saying := func(greeting string) map[string]string {
			return addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying(greeting)})
		}
		// looks lets the rollout look once, before the next write of the source to the path while the rollout has a target.
		looks := func(path, target string) {
			w.requests.before = func(r *http.Request) {
				if strings.Contains(r.URL.Path, path) && !r.URL.Query().Has("dryRun") && strings.HasSuffix(w.rolloutTarget().Commit, target) {
					w.requests.before = nil
					w.rolloutLooks()
				}
			}
		}
		first := w.commit("add hello", addOnFiles())
		w.passes()

		By("a rollout that sees the target between the source's look and its write: it reports on the commit itself")
		looks("/addonrollouts/", first)
		second := w.commit("change it", saying("again"))
		w.look()
		Expect(w.requests.before).To(BeNil())
		w.delivered(second, "pending")
		_, shown := w.forge.Latest(first, "addonflow/fleet/"+w.addOn)
		Expect(shown).To(BeFalse(), "log: %v", w.forge.Log())

		By("a rollout that looks between that write and the post of the source: it sees the next target only")
		third := w.commit("change it again", saying("and again"))
		looks("/addonsources/", third)
		w.look()
		Expect(w.requests.before).To(BeNil())
		Expect(w.delivered(second, "error", w.addOn).Description).To(Equal("superseded by " + third[:10]))
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})
})

var _ = Describe("A commit that is replaced before the source saw how its rollout ended", func() {
	It("says the end, and not where it stood when the source looked last", func() {
		w := newWorld()
		saying := func(greeting string) map[string]string {
			return addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying(greeting)})
		}
		stands := func(phase v1alpha1.Phase, outcome, message string) {
			w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
				r.Status.Outcome, r.Status.ObservedGeneration, r.Status.Phase = outcome, r.Generation, phase
				r.Status.Target, r.Status.Override = r.Spec.Target, nil
				if outcome == "failure" {
					r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *r.Spec.Target, Reason: "a cluster failed"}
				}
				conditions.MarkFalse(r, fluxmeta.ReadyCondition, string(phase), "%s", message)
			})
		}
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(first)
		bad := w.commit("change it", saying("bad"))
		w.look()
		stands(v1alpha1.PhaseRollingBack, "failure", "rolling back")
		w.passes()
		Expect(w.delivered(bad, "failure").Description).To(ContainSubstring("rolling back"))

		resume := w.stopCache()
		stands(v1alpha1.PhaseRolledBack, "failure", "rolled back")
		good := w.commit("change it again", saying("good"))
		w.look()
		resume()
		w.passes()
		Expect(w.delivered(bad, "failure").Description).To(ContainSubstring("rolled back"))

		By("a success that the source did not see")
		resume = w.stopCache()
		stands(v1alpha1.PhaseSucceeded, "success", "4/4 updated")
		last := w.commit("and again", saying("best"))
		w.look()
		resume()
		w.passes()
		w.delivered(good, "success")
		w.delivered(last, "pending")
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})
})

var _ = Describe("A source that is annotated while a commit is being applied", func() {
	It("records the commit, so that it gets a verdict when the next one replaces it", func() {
		w := newWorld()
		saying := func(greeting string) map[string]string {
			return addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying(greeting)})
		}
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(first)
		second := w.commit("change it", saying("again"))
		w.clock.Step(2 * time.Minute)
		w.cache.meanwhile = func() {
			patch := []byte(`{"metadata":{"annotations":{"` + fluxmeta.ReconcileRequestAnnotation + `":"while it is applied"}}}`)
			Expect(admin.Patch(context.Background(), w.source(), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		}
		w.pass()
		Expect(w.cache.meanwhile).To(BeNil())
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(second))
		Expect(w.source().Status.LastHandledReconcileAt).To(BeEmpty(), "the request came after the look")

		third := w.commit("change it again", saying("and again"))
		w.passes()
		Expect(w.source().Status.LastHandledReconcileAt).To(Equal("while it is applied"))
		Expect(w.delivered(second, "error").Description).To(Equal("superseded by " + third[:10]))
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})
})

var _ = Describe("A commit that is replaced while the operator is down", func() {
	It("is superseded, and nothing of it stays, after whichever write the operator was killed", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Prune = true })
		placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"}}
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(first)
		interrupted := 0
		for writes, done := 1, false; !done; writes++ {
			By(fmt.Sprintf("killed after %d writes", writes))
			revisions := len(w.revisions())
			killed := w.commit("change it", addOnFilesWith(map[string]string{
				"addons/addondeploymentconfig.yaml": configSaying(fmt.Sprintf("to-%d", writes)), "addons/placement.yaml": placementYAML,
			}))
			w.clock.Step(2 * time.Minute)
			left := writes
			w.requests.left = &left
			_, err := w.passOf("fleet")
			done = err == nil
			w.start()
			begun := slices.ContainsFunc(w.source().Status.CommitStatuses, func(m v1alpha1.CommitMark) bool { return m.SHA == killed })
			if !begun {
				Expect(exists(placement)).To(BeFalse())
				Expect(w.revisions()).To(HaveLen(revisions))
			}
			w.commit("change it again", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying(fmt.Sprintf("after-%d", writes))}))
			next := w.remove("no placement", "addons/placement.yaml")
			w.look()
			if begun {
				Expect(w.delivered(killed, "error").Description).To(Equal("superseded by " + next[:10]))
			}
			if begun && !done {
				interrupted++
			}
			Expect(exists(placement)).To(BeFalse())
			Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
		}
		Expect(interrupted).To(BeNumerically(">", 3))
	})
})

var _ = Describe("A commit whose rollout was written when the operator was killed", func() {
	DescribeTable("says how that rollout ends, although the next commit is invalid", func(begin func(w *world) (first string)) {
		w := newWorld()
		first := begin(w)
		w.requests.before = func(r *http.Request) {
			if strings.Contains(r.URL.Path, "/addonrollouts/") && !r.URL.Query().Has("dryRun") {
				w.requests.left = new(int)
			}
		}
		written := w.commit("change it", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")}))
		w.clock.Step(2 * time.Minute)
		_, err := w.passOf("fleet")
		Expect(err).To(HaveOccurred())
		Expect(w.rolloutTarget().Commit).To(HaveSuffix(written))
		w.start()
		invalid := w.commit("break it", map[string]string{"addons/broken.yaml": "kind: Nonsense"})
		w.look()
		w.delivered(invalid, "failure")
		w.rolledOut()
		Expect(w.delivered(written, "success").Description).To(Equal("applied; 1 add-on up to date"))
		if first != "" {
			w.delivered(first, "success")
		}
		mended := w.remove("mend it", "addons/broken.yaml")
		w.look()
		w.delivered(mended, "success")
		w.delivered(written, "success")
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	},
		Entry("the first one", func(*world) string { return "" }),
		Entry("a later one", func(w *world) string {
			first := w.commit("add hello", addOnFiles())
			w.passes()
			w.green(first)
			return first
		}),
	)
})

var _ = Describe("A commit whose content the next one brings before it is written", func() {
	It("is not superseded, and says how that rollout ends", func() {
		files := addOnFilesWith(map[string]string{"addons/placement.yaml": placementYAML})
		w := newWorld()
		first := w.commit("add hello", files)
		w.passes()
		w.green(first)
		files["addons/placement.yaml"] = strings.Replace(placementYAML, "spec: {}", "spec: {numberOfClusters: 1}", 1)
		files["addons/addondeploymentconfig.yaml"] = configSaying("again")
		edited := w.commit("edit the placement, change it", files)
		w.clock.Step(2 * time.Minute)
		w.pass()
		w.delivered(edited, "pending")
		readme := w.commit("explain", map[string]string{"README.md": "hello"})
		w.look()
		w.rolledOut()
		Expect(w.rolloutTarget().Commit).To(HaveSuffix(readme))
		w.delivered(readme, "success")
		w.delivered(edited, "success")
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())

		By("a placement alone")
		files["addons/placement.yaml"] = strings.Replace(placementYAML, "spec: {}", "spec: {numberOfClusters: 2}", 1)
		placed := w.commit("edit the placement alone", files)
		w.clock.Step(2 * time.Minute)
		w.pass()
		w.delivered(placed, "pending")
		readme = w.commit("explain again", map[string]string{"README.md": "hello again"})
		w.look()
		w.rolledOut()
		w.delivered(readme, "success")
		w.delivered(placed, "success")

		By("a head that cannot be fetched brings nothing")
		files["addons/placement.yaml"] = placementYAML
		files["addons/addondeploymentconfig.yaml"] = configSaying("and again")
		edited = w.commit("edit the placement again", files)
		w.clock.Step(2 * time.Minute)
		w.pass()
		w.delivered(edited, "pending")
		stored := func() []string {
			objects, err := filepath.Glob(filepath.Join(w.repo.Dir(), "objects", "??", "*"))
			Expect(err).NotTo(HaveOccurred())
			return objects
		}
		before := stored()
		head := w.commit("explain more", map[string]string{"README.md": "hello, hello"})
		for _, object := range stored() {
			if !slices.Contains(before, object) && !strings.HasSuffix(object, head[2:]) {
				Expect(os.Remove(object)).To(Succeed())
			}
		}
		w.clock.Step(2 * time.Minute)
		w.pass()
		Expect(w.delivered(edited, "error").Description).To(Equal("superseded by " + head[:10]))
		Expect(w.delivered(head, "pending").Description).To(Equal("cannot be fetched yet: FetchFailed, see AddOnSource fleet"))
	})
})

var _ = Describe("A commit whose rollout ends before a newer one follows", func() {
	It("says how that rollout is, and then how it ended", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus.Detail = v1alpha1.DetailSource })
		finish := func(greeting string) map[string]string {
			return addOnFilesWith(map[string]string{
				"addons/addondeploymentconfig.yaml": configSaying(strings.ToLower(greeting)),
				"addons/addonrollout.yaml":          rolloutYAML + "  onNewCommit: Finish\n",
			})
		}
		runs := func(updated int32, phase v1alpha1.Phase, reason string) {
			w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
				r.Status.Phase, r.Status.Outcome, r.Status.ObservedGeneration = phase, "pending", r.Generation
				r.Status.Counts = v1alpha1.Counts{Updated: updated, Total: 3}
				h := &r.Status.History[0]
				h.Phase, h.Counts, h.Reason = phase, r.Status.Counts, reason
			})
		}
		ends := map[v1alpha1.Phase]string{
			v1alpha1.PhaseSucceeded: "success: applied; 1 add-on up to date",
			v1alpha1.PhaseFailed:    "failure: " + w.addOn + ": halted in canary",
		}
		for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed} {
			running := w.commit("begin to end "+string(phase), finish("ends "+string(phase)))
			w.look()
			w.rolloutLooks()
			w.passes()
			w.delivered(running, "pending")
			waits := w.commit("follow "+string(phase), finish("follows "+string(phase)))
			w.look()
			By("the rollout has not seen the newer commit yet")
			w.delivered(running, "pending")
			By("the rollout is going to end first")
			declared := w.rolloutTarget()
			w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
				r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: *declared, Reason: "onNewCommit is Finish"}
			})
			runs(1, v1alpha1.PhaseProgressing, "canary 1/3")
			w.clock.Step(time.Minute)
			w.passes()
			Eventually(func() string { w.pass(); return w.delivered(running, "pending").Description }).WithTimeout(patience).Should(ContainSubstring(w.addOn + " 1/3"))
			w.delivered(waits, "pending")

			runs(3, phase, "halted in canary")
			w.rolledOut() // and the newer commit as well
			w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
				r.Status.Override = nil
				r.Status.History = append([]v1alpha1.HistoryEntry{{Target: *declared, Phase: v1alpha1.PhaseSucceeded, Started: metav1.Now()}}, r.Status.History...)
			})
			Eventually(func() string {
				w.pass()
				latest, _ := w.forge.Latest(running, "addonflow/fleet")
				return latest.State + ": " + latest.Description
			}).WithTimeout(patience).Should(Equal(ends[phase]))
			w.delivered(waits, "success")
		}
		Expect(testforge.Violations(w.forge.Log())).To(BeEmpty())
	})
})

var _ = Describe("A commit whose pace cannot work", func() {
	It("fails, although a commit without content came before its rollout looked, and stays red when a later one fixes it", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(first)
		pace := w.commit("set a pace", addOnFilesWith(map[string]string{"addons/addonrollout.yaml": rolloutYAML}))
		w.look()
		w.delivered(pace, "pending")
		readme := w.commit("explain", map[string]string{"README.md": "hello"})
		w.look()
		w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
			r.Status.Outcome, r.Status.ObservedGeneration = "failure", r.Generation
			refused := "no such group at " + r.Annotations[v1alpha1.PacePlaceAnnotation] + ": " + r.Annotations[v1alpha1.PaceObjectAnnotation]
			conditions.MarkStalled(r, v1alpha1.InvalidRolloutStrategyReason, "%s", refused)
			conditions.MarkFalse(r, fluxmeta.ReadyCondition, v1alpha1.InvalidRolloutStrategyReason, "%s", refused)
		})
		w.passes()
		w.delivered(readme, "failure")
		Expect(w.delivered(pace, "failure").Description).To(Equal(w.addOn + ": no such group at addons/addonrollout.yaml:7: AddOnRollout/" + w.addOn + ": spec.stages"))
		fix := w.remove("fix it", "addons/addonrollout.yaml")
		w.look()
		w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) { conditions.Delete(r, fluxmeta.StalledCondition) })
		w.green(fix)
		w.passes()
		w.delivered(pace, "failure")
		w.delivered(first, "success")
	})
})

var _ = Describe("A commit that waits for an object of the hub", func() {
	It("is pending, however often the repository is looked at: no older commit supersedes it", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFiles())
		w.passes()
		w.green(first)
		waits := w.commit("name a configuration of the hub", map[string]string{
			"addons/clustermanagementaddon.yaml": strings.Replace(addOnYAML, "namespace: NAMESPACE\n      name: ADDON", "namespace: NAMESPACE\n      name: nowhere", 1),
		})
		for range 5 {
			w.clock.Step(2 * time.Minute)
			for range 3 {
				w.pass()
			}
		}
		w.delivered(waits, "pending")
		Expect(w.forge.Log()).NotTo(ContainElement(HaveField("State", "error")))
	})
})

// rolloutLooks writes the rollout's status as its controller does when it sees the target.
func (w *world) rolloutLooks() {
	GinkgoHelper()
	w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
		r.Status.Target = r.Spec.Target
		r.Status.History = []v1alpha1.HistoryEntry{{Target: *r.Spec.Target, Phase: v1alpha1.PhaseProgressing, Started: metav1.Now()}}
	})
}

// rolloutForgets clears the status of the rollout.
func (w *world) rolloutForgets() {
	GinkgoHelper()
	w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) { r.Status = v1alpha1.AddOnRolloutStatus{} })
}

func (w *world) changeRolloutStatus(change func(*v1alpha1.AddOnRollout)) {
	GinkgoHelper()
	r := w.rollout()
	w.read(r)
	change(r)
	Expect(admin.Status().Update(context.Background(), r)).To(Succeed())
}

// rolloutTarget is the rollout's target.
func (w *world) rolloutTarget() *v1alpha1.Target {
	GinkgoHelper()
	r := w.rollout()
	w.read(r)
	return r.Spec.Target
}

// succeeded marks a revision as the rollout controller does.
func (w *world) succeeded(revision string) {
	GinkgoHelper()
	stored := &v1alpha1.AddOnRevision{}
	stored.Namespace, stored.Name = w.namespace, revision
	w.read(stored)
	stored.Annotations = map[string]string{v1alpha1.SucceededAtAnnotation: "2026-01-01T00:00:00Z"}
	Expect(admin.Update(context.Background(), stored)).To(Succeed())
}
