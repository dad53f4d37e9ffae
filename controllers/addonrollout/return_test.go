package addonrollout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// ticks runs turns. Only the healthy clusters report; the clock moves on by step after each.
func (s *scene) ticks(n int, step time.Duration, healthy ...string) {
	s.t.Helper()
	for range n {
		for name, w := range s.works() {
			if slices.Contains(healthy, name) {
				continue
			}
			w.Status = workv1.ManifestWorkStatus{}
			if err := s.hub.Status().Update(s.t.Context(), w); err != nil {
				s.t.Fatal(err)
			}
		}
		s.turn()
		if len(healthy) > 0 {
			s.report(healthy...)
		}
		s.advance(step)
	}
}

// commit makes the content at a tag the target, as a source does: the generation changes as well.
func (s *scene) commit(tag string) string {
	s.t.Helper()
	digest := s.target(tag)
	s.declare(func(*v1alpha1.AddOnRolloutSpec) {})
	return digest
}

// available sets whether a cluster is available.
func (s *scene) available(name string, status metav1.ConditionStatus) {
	s.t.Helper()
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	c.Status.Conditions[0].Status, c.Status.Conditions[0].LastTransitionTime = status, metav1.NewTime(s.clock.Now())
	s.update(c)
}

// restoreStatus stores another status, as a restore does.
func (s *scene) restoreStatus(to v1alpha1.AddOnRolloutStatus) {
	s.t.Helper()
	ro := s.rollout()
	ro.Status = to
	if err := s.hub.Status().Update(s.t.Context(), ro); err != nil {
		s.t.Fatal(err)
	}
	s.restart()
}

func (s *scene) noneHolds(digest string) {
	s.t.Helper()
	if got := s.holding(digest); len(got) != 0 {
		ro := s.rollout()
		s.t.Errorf("%v still run the content that was taken back; %s: %s", got, ro.Status.Phase, ro.Status.Message)
	}
}

// Only new failures count against the budget of a rollback, whatever made another cluster fail before.
func TestRollback_IsNotStoppedByAFailureThatIsOlder(t *testing.T) {
	setup := func(t *testing.T, budget int32) *scene {
		t.Helper()
		s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3", "c4")
		s.canary("c1", "c2")
		s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
			rollsBack(spec)
			failures, two, three := intstr.FromInt32(budget), intstr.FromInt32(2), intstr.FromInt32(3)
			spec.Stages[0].ProgressDeadline, spec.Stages[1].ProgressDeadline = "1m", "1m"
			spec.Stages[0].MaxConcurrency, spec.Stages[1].MaxConcurrency, spec.Stages[1].MaxFailures = &two, &three, &failures
		})
		return s
	}
	t.Run("FailedInAnEarlierRollback", func(t *testing.T) {
		s := setup(t, 0)
		s.commit("v1")
		s.settle()
		s.commit("v2")
		s.ticks(8, 0, "c1", "c2", "c3")
		s.advance(time.Minute)
		s.ticks(12, 20*time.Second, "c1", "c2", "c3")
		v3 := s.commit("v3")
		s.ticks(2, 0, "c2", "c3")
		s.advance(time.Minute)
		s.ticks(2, 0, "c2", "c3")
		s.ticks(15, 20*time.Second, "c1", "c2", "c3")
		s.noneHolds(v3)
	})
	for name, revert := range map[string]bool{"WithinAnOlderBudget": false, "WithinAnOlderBudgetAndGitReverts": true} {
		t.Run(name, func(t *testing.T) {
			s := setup(t, 1)
			s.commit("v1")
			s.ticks(8, 0, "c1", "c2", "c4")
			s.advance(time.Minute)
			s.ticks(6, 0, "c1", "c2", "c4")
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				spec.Stages[1].MaxFailures = nil
				if revert {
					spec.OnFailure = ""
				}
			})
			v2 := s.commit("v2")
			s.ticks(2, 0, "c4")
			s.advance(time.Minute)
			s.ticks(1, 0, "c4")
			if revert {
				s.commit("v1")
			}
			s.ticks(20, 10*time.Second, "c1", "c2", "c4")
			s.noneHolds(v2)
		})
	}
	for name, interrupt := range map[string]func(*scene){
		"GitRevertsMeanwhile": func(s *scene) { s.commit("v1") },
		"TheStatusIsLost":     func(s *scene) { s.restoreStatus(v1alpha1.AddOnRolloutStatus{}) },
		"ThePolicyChangesAfter": func(s *scene) {
			s.ticks(14, 20*time.Second, "c1", "c2")
			s.declare(func(*v1alpha1.AddOnRolloutSpec) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.within(0, "1m")
			s.declare(rollsBack)
			s.commit("v1")
			s.settle()
			v2 := s.commit("v2")
			s.ticks(6, 0, "c1", "c2") // c3 never reports
			s.advance(time.Minute)
			s.ticks(1, 0, "c1", "c2")
			interrupt(s)
			s.ticks(40, 10*time.Second, "c1", "c2")
			s.noneHolds(v2)
			if phase := s.rollout().Status.Phase; phase == v1alpha1.PhaseFailed {
				t.Errorf("the rollout is %s: %s", phase, s.rollout().Status.Message)
			}
		})
	}
}

// RolledBack ends the rollout, not the repair of clusters that come back later: what holds a rollout
// does not hold them.
func TestRollback_TakesBackAClusterThatComesBackAfterTheEnd(t *testing.T) {
	window := func(s *scene) {
		s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.Stages[0].Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{
				Name: "hours", Type: v1alpha1.GateWindow,
				Window: &v1alpha1.WindowGate{TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Hours: "03:00-03:20"}}},
			}}}
		})
	}
	healthy := []string{"c1", "c2"}
	for name, c := range map[string]struct {
		before, meanwhile func(*scene)
		held              bool
		healthy           []string
	}{
		"AfterAnotherFailedForGood":  {healthy: healthy},
		"ReleasedFromAHold":          {held: true, healthy: healthy},
		"WhileAWindowIsClosed":       {before: window, healthy: []string{"c1", "c2", "c3"}},
		"WhileADependencyIsNotThere": {meanwhile: func(s *scene) { newBase(s, "c1", "c2", "c3") }, healthy: []string{"c1", "c2", "c3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.within(0, "1m")
			s.declare(rollsBack)
			s.commit("v1")
			s.settle()
			if c.before != nil {
				c.before(s)
			}
			v2 := s.commit("v2")
			s.ticks(6, 0, healthy...)
			if c.meanwhile != nil {
				c.meanwhile(s)
			}
			if c.held {
				s.hold("c2", "true")
			} else {
				s.available("c2", metav1.ConditionUnknown)
			}
			s.advance(time.Hour)
			s.ticks(14, 20*time.Second, slices.DeleteFunc(slices.Clone(c.healthy), func(n string) bool { return n == "c2" && !c.held })...)
			if got := s.holding(v2); !slices.Equal(got, []string{"c2"}) || s.rollout().Status.Phase != v1alpha1.PhaseRolledBack {
				t.Fatalf("%v run v2; %s: %s", got, s.rollout().Status.Phase, s.rollout().Status.Message)
			}
			if c.held {
				s.hold("c2", "")
			} else {
				s.available("c2", metav1.ConditionTrue)
			}
			s.ticks(10, 30*time.Second, c.healthy...)
			s.noneHolds(v2)
		})
	}
}

// The same holds after a git revert.
func TestRevert_TakesBackAClusterThatComesBackWhileAWindowIsClosed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.commit("v1")
	s.settle()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		three := intstr.FromInt32(3)
		spec.Stages[0].MaxConcurrency = &three
		spec.Stages[0].Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{
			Name: "hours", Type: v1alpha1.GateWindow,
			Window: &v1alpha1.WindowGate{TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Hours: "03:00-03:20"}}},
		}}}
	})
	v2 := s.commit("v2")
	s.ticks(6, 0, "c1", "c2", "c3")
	s.advance(time.Hour)
	s.available("c2", metav1.ConditionUnknown)
	s.commit("v1")
	s.ticks(6, 0, "c1", "c3")
	s.available("c2", metav1.ConditionTrue)
	s.ticks(6, 0, "c1", "c2", "c3")
	s.noneHolds(v2)
}

// A cluster that no stage selects any more goes back as well: it was admitted to the content.
func TestRollback_TakesBackAClusterThatLeftItsStage(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.place("prod", "c2", "c3")
	s.place("canary", "c1")
	ref := func(name string) v1alpha1.PlacementReference {
		return v1alpha1.PlacementReference{Namespace: "team", Name: name}
	}
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages = []v1alpha1.Stage{{Name: "canary", Placement: ref("canary"), ProgressDeadline: "1m"}, {Name: "fleet", Placement: ref("prod"), ProgressDeadline: "1m"}}
	})
	s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.ticks(2, 0, "c2", "c3")
	var decision clusterv1beta1.PlacementDecision
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "canary-1"}, &decision); err != nil {
		t.Fatal(err)
	}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "c2"}}
	s.update(&decision)
	s.advance(time.Minute)
	s.ticks(12, 10*time.Second, "c1", "c2", "c3")
	s.noneHolds(v2)
}

// A rollback removes no CustomResourceDefinition from a cluster, whatever revision that cluster runs.
func TestRollback_TakesNoDefinitionOffAClusterThatRunsAnotherRevision(t *testing.T) {
	for _, how := range []string{"recall", "blocked"} {
		t.Run(how, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
			s.within(0, "10m")
			v1 := s.targetOf(s.defining("v1", ""), "v1")
			s.settle()
			s.advance(time.Minute)
			v2 := s.targetOf(s.defining("v2", "v1"), "v2")
			s.settle()
			s.advance(time.Minute)
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Stages[0].MaxConcurrency = &zero })
			v3 := s.targetOf(s.defining("v3", "v1"), "v3")
			s.ticks(3, 0, "c1", "c2", "c3") // v3 waits before its first cluster
			if how == "recall" {
				s.order(v1alpha1.OrderRollback, v3, &v1alpha1.OrderArguments{To: v1})
			}
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				spec.Stages[0].MaxConcurrency = &one
				if how == "blocked" {
					spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks"}, {Digest: v3, Reason: "leaks"}}
				}
			})
			s.ticks(10, 0, "c1", "c2", "c3")
			if got := s.holding(v1); len(got) != 0 {
				t.Errorf("the definition was taken off %v: %s", got, s.rollout().Status.Message)
			}
		})
	}
}

// A cluster that is away, on content from before, blocks no rollback. When it returns it keeps a
// definition that it would lose, is named, and follows a revert in Git.
func TestRollback_IsNotBlockedByAClusterThatDoesNotMove(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.declare(rollsBack)
	v0 := s.targetOf(s.defining("v0", "v1"), "v0")
	s.settle()
	s.available("c2", metav1.ConditionUnknown)
	s.advance(time.Minute)
	v1 := s.commit("v1")
	s.ticks(6, 0, "c1", "c3")
	v2 := s.commit("v2")
	s.applied("v2", "")
	s.ticks(3, 0)
	s.advance(time.Minute)
	s.ticks(8, 0, "c1", "c3")
	s.noneHolds(v2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || ro.Status.Target.Digest != v1 {
		t.Fatalf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.available("c2", metav1.ConditionTrue)
	s.ticks(4, 0, "c1", "c2", "c3")
	keeps := "1 parked (c2: going back would remove CustomResourceDefinition things.example.com; a revert in Git does that"
	if ro := s.rollout(); !slices.Equal(s.holding(v0), []string{"c2"}) || !strings.Contains(ro.Status.Message, keeps) {
		t.Errorf("%v run v0: %s", s.holding(v0), ro.Status.Message)
	}
	s.expect("v2", "failure: rolled back to "+commitNamed("v1")[:10]+" from "+commitNamed("v2")[:10]+", 1 held by a CRD (c2) (git restore")
	s.commit("v1")
	s.ticks(4, 0, "c1", "c2", "c3")
	s.runs(v1, "c1", "c2", "c3")
}

// A cluster in no stage keeps what it runs, and blocks no rollback either.
func TestRollback_IsNotBlockedByAClusterInNoStage(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.place("prod", "c1", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v0 := s.targetOf(s.defining("v0", "v1"), "v0")
	s.settle()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Stages[0].Placement.Name = "prod" })
	s.advance(time.Minute)
	s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.ticks(3, 0)
	s.advance(time.Minute)
	s.ticks(8, 0, "c1", "c3")
	s.noneHolds(v2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || !slices.Equal(s.holding(v0), []string{"c2"}) {
		t.Errorf("%v run v0; %s: %s", s.holding(v0), ro.Status.Phase, ro.Status.Message)
	}
}

// The message names the clusters in no stage that keep bad content: they got it before the stage was changed, and no
// rollback or commit moves them.
func TestBlocked_NamesTheClustersInNoStageThatKeepIt(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	s := newScene(t, interceptor.Funcs{}, names...)
	s.reporting()
	s.place("prod", names[0])
	s.atOnce(12)
	of := s.succeed("v1", "v2")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Stages[0].Placement.Name = "prod" })
	s.succeed("v3")
	if got := s.rollout().Status.Message; got != "1/1 updated, 11 in no stage" {
		t.Fatal(got)
	}
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: of[1], Reason: "leaks memory"}}
	})
	s.settle()
	const want = "1/1 updated, 11 in no stage; 11 in no stage with quarantined or blocked content (c01, c02, c03, c04, c05, c06, c07, c08, c09, c10, and 1 more)"
	if got := s.rollout().Status.Message; got != want || s.says("Ready") != "True RolloutSucceeded: "+want {
		t.Errorf("%s; Ready %s", got, s.says("Ready"))
	}
	s.commit("v4")
	s.applied("v4", "")
	s.settle()
	s.expect("v4", "success: 1/1 updated, 11 in no stage; 11 in no stage with quarantined or blocked content (c01, ")
}

// A rollback whose clusters all fail again ends as Failed, and as RolledBack when one of them recovers.
func TestRollback_FailsWhenNoClusterIsVerified(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.atOnce(3)
	v1 := s.commit("v1")
	s.settle()
	s.commit("v2")
	s.ticks(3, 0)
	s.advance(time.Minute)
	s.ticks(20, 20*time.Second)
	ro := s.rollout()
	if !strings.Contains(ro.Status.Message, "; stopped rolling back to "+commitNamed("v1")[:10]) || ro.Status.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(ro.Status.Message, "0/3 updated, 3 failed again, not counted (c1: ") {
		t.Fatalf("%v run v1; %s: %s", s.holding(v1), ro.Status.Phase, ro.Status.Message)
	}
	s.ticks(4, 0, "c2")
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || !strings.Contains(ro.Status.Message, "1/3 updated, 2 failed again, not counted (c1: ") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// Unblock stays, also when a status from before it is written back: the quarantine is the annotation.
func TestUnblock_IsNotUndoneByAnOlderStatus(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	_, v2 := s.failed()
	old := s.rolledBack().Status
	s.order(v1alpha1.OrderUnblock, v2, nil)
	s.ticks(3, 0, "c1", "c2", "c3")
	s.restoreStatus(old)
	s.settle()
	s.runs(v2, "c1", "c2", "c3")
}

// A commit is not a success in the turn that unblocks it: its content is on no cluster.
func TestUnblock_IsNoSuccessOfContentThatNoClusterRuns(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.declare(rollsBack)
	s.commit("v1")
	s.applied("v1", "")
	s.settle()
	v2 := s.commit("v2")
	s.applied("v2", "")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	s.rolledBack()
	s.accepted()
	s.order(v1alpha1.OrderUnblock, v2, nil)
	for range 4 {
		s.turn()
		if said := s.reportedOn("v2"); strings.HasPrefix(said, "success") || s.rollout().Status.Outcome == "success" {
			t.Fatalf("the commit says %q, the outcome is %s, and %v run it", said, s.rollout().Status.Outcome, s.holding(v2))
		}
	}
}

// An abort stays, also when a status from before it is written back.
func TestAbort_IsNotUndoneByAnOlderStatus(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "10m")
	s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.ticks(2, 0)
	old := s.rollout().Status
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.ticks(4, 0, "c1")
	s.restoreStatus(old)
	s.ticks(8, 0, "c1", "c2", "c3")
	if got := s.holding(v2); len(got) != 1 {
		t.Errorf("%v got the content after the abort", got)
	}
}

// An abort says nothing about a later attempt that succeeded, also when the status is lost.
func TestAbort_IsOverWhenTheContentSucceeded(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.commit("v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.commit("v2")
	s.turns(2)
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.ticks(4, 0, "c1", "c2")
	s.commit("v3")
	s.settle()
	s.advance(time.Minute)
	s.commit("v2")
	s.settle()
	s.restoreStatus(v1alpha1.AddOnRolloutStatus{})
	s.ticks(6, 0, "c1", "c2")
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// The clusters go back to the stable revision, whatever the clock said when another one succeeded.
func TestRollback_GoesToTheStableRevision(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.commit("v1")
	s.settle()
	s.advance(-2 * time.Hour)
	v2 := s.commit("v2")
	s.settle()
	s.commit("v3")
	s.ticks(3, 0)
	s.advance(time.Minute)
	s.ticks(12, 0, "c1", "c2", "c3")
	if len(s.holding(v2)) != 3 {
		t.Errorf("%v run v2, %v run v1", s.holding(v2), s.holding(v1))
	}
}

// A canary that is deleted proves nothing against the content: the rollout pauses.
func TestRollback_OfContentThatFailedOnNoClusterPauses(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.canary("c1")
	s.commit("v1")
	for range 8 {
		s.settleOnce()
	}
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages[0].MinSuccessTime.Duration = time.Hour
	})
	v2 := s.commit("v2")
	s.ticks(4, 0, "c1", "c2", "c3")
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, c); err != nil {
		t.Fatal(err)
	}
	s.delete(c)
	s.ticks(4, 0, "c1", "c2", "c3")
	ro := s.rollout()
	if _, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); quarantined || !strings.Contains(ro.Status.Message, "not rolled back: no cluster failed with it") {
		t.Errorf("quarantined %t; %s: %s", quarantined, ro.Status.Phase, ro.Status.Message)
	}
}

// With onNewCommit Finish the fleet goes back from content that was rolled back before newer content follows.
func TestRollbackOrder_IsDoneBeforeNewerContentThatWaits(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "10m")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.OnNewCommit = v1alpha1.OnNewCommitFinish })
	v1 := s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.ticks(2, 0)
	v3 := s.commit("v3")
	s.ticks(1, 0)
	s.order(v1alpha1.OrderRollback, v2, nil)
	back := false
	for range 14 {
		s.ticks(1, 0, "c1", "c2", "c3")
		back = back || len(s.holding(v1)) == 3
		if !back && len(s.holding(v3)) > 0 {
			t.Fatalf("%v got newer content before the fleet was back", s.holding(v3))
		}
	}
	if !back || len(s.holding(v3)) != 3 {
		t.Errorf("back %t; %v run v3; %s", back, s.holding(v3), s.rollout().Status.Message)
	}
}

// A placement that OCM decides about again does not end the rollout that newer content waits for.
func TestOnNewCommit_IsNotEndedByAPlacementThatIsNotSettled(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "10m")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.OnNewCommit = v1alpha1.OnNewCommitFinish })
	s.commit("v1")
	s.settle()
	s.commit("v2")
	s.ticks(2, 0)
	v3 := s.commit("v3")
	s.ticks(1, 0)
	for _, n := range []int32{4, 3} {
		var p clusterv1beta1.Placement
		if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "all"}, &p); err != nil {
			t.Fatal(err)
		}
		p.Status.NumberOfSelectedClusters = n
		s.update(&p)
		s.ticks(int(n)-2, 0, "c1", "c2", "c3")
	}
	if got := s.holding(v3); len(got) != 0 {
		t.Errorf("%v got v3 before the end of v2", got)
	}
}

// An approval of a later attempt can be withdrawn and rejected until a cluster was admitted by it:
// the clusters of the attempts before used another one.
func TestApproval_OfALaterAttemptIsOpenUntilItIsUsed(t *testing.T) {
	for _, how := range []string{"rejected", "withdrawn"} {
		t.Run(how, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.place("canary", "c1")
			ref := func(name string) v1alpha1.PlacementReference {
				return v1alpha1.PlacementReference{Namespace: "team", Name: name}
			}
			s.commit("v1")
			s.settle()
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				one := intstr.FromInt32(1)
				spec.Stages = []v1alpha1.Stage{{Name: "canary", Placement: ref("canary")}, {Name: "fleet", Placement: ref("all"), MaxConcurrency: &one, ProgressDeadline: "1m", Gates: approvals(1)}}
			})
			s.installPolicy()
			v2 := s.commit("v2")
			s.ticks(4, 0, "c1")
			s.decide("bob", v1alpha1.Approve)
			s.ticks(3, 0, "c1")
			s.advance(time.Minute)
			s.ticks(2, 0, "c1")
			s.order(v1alpha1.OrderRetry, v2, nil)
			s.ticks(2, 0, "c1")
			approval := s.decide("ann", v1alpha1.Approve)
			s.ticks(2, 0, "c1")
			if how == "rejected" {
				s.decide("eve", v1alpha1.Reject)
			} else {
				s.delete(approval)
			}
			s.ticks(2, 0, "c1")
			s.ticks(6, 0, "c1", "c2", "c3")
			if got := s.holding(v2); len(got) != 2 {
				t.Errorf("%v run v2", got)
			}
		})
	}
}

// A dependency that cannot leave withdrawn content, or that goes back and is suspended meanwhile, keeps
// its dependents where they are.
func TestDependsOn_WaitsForADependencyThatGoesBack(t *testing.T) {
	for name, breaks := range map[string]func(*scene, *base){
		"WithoutARollback": func(_ *scene, b *base) {
			b.change(func(ro *v1alpha1.AddOnRollout) {
				ro.Spec.Blocked = []v1alpha1.BlockedContent{{Digest: ro.Spec.Target.Digest, Reason: "leaks"}}
				ro.Generation++
			})
		},
		"SuspendedOnTheWay": func(s *scene, b *base) {
			b.to("v2")
			b.moves()
			s.advance(time.Minute)
			b.change(func(ro *v1alpha1.AddOnRollout) { ro.Spec.Suspend = true })
			b.moves()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			b := newBase(s, "c1", "c2", "c3")
			b.change(func(ro *v1alpha1.AddOnRollout) {
				one := intstr.FromInt32(1)
				ro.Spec.OnFailure = v1alpha1.OnFailureRollback
				ro.Spec.Stages = []v1alpha1.Stage{{Name: "all", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "based"}, MaxConcurrency: &one, ProgressDeadline: "1m"}}
			})
			b.to("v1")
			for range 5 {
				b.moves("c1", "c2", "c3")
			}
			s.commit("v1")
			s.settle()
			breaks(s, b)
			v2 := s.commit("v2")
			s.ticks(6, 0, "c1", "c2", "c3")
			if got := s.holding(v2); len(got) != 0 {
				t.Errorf("%v got new content; the dependency is %s: %s", got, b.get().Status.Phase, b.get().Status.Message)
			}
		})
	}
}

// succeed rolls out contents one after the other.
func (s *scene) succeed(tags ...string) (digests []string) {
	s.t.Helper()
	for _, tag := range tags {
		digests = append(digests, s.commit(tag))
		s.settle()
		s.advance(time.Minute)
	}
	return digests
}

// The newest decision wins: where an order sends the fleet, it goes, also from content that it went
// back to before.
func TestRollbackOrder_GoesWhereItSaysWhileTheFleetIsBackAlready(t *testing.T) {
	for _, how := range []string{"quarantined", "blocked"} {
		t.Run(how, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.within(0, "1m")
			of := s.succeed("v1", "v2", "v3")
			v4 := s.commit("v4")
			if how == "blocked" {
				s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
					spec.Blocked = []v1alpha1.BlockedContent{{Digest: v4, Reason: "leaks"}}
				})
			} else {
				s.declare(rollsBack)
				s.ticks(3, 0)
				s.advance(time.Minute)
			}
			s.ticks(14, 0, "c1", "c2", "c3")
			s.runs(of[2], "c1", "c2", "c3")
			key := s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[0]})
			s.ticks(14, 0, "c1", "c2", "c3")
			if got := s.holding(of[0]); len(got) != 3 {
				t.Errorf("answered %q; v1 runs on %v, v2 on %v", s.answered(key), got, s.holding(of[1]))
			}
		})
	}
}

// A second rollback order would leave the content to which the fleet was rolled back, although nothing is wrong with it. It is
// refused as an order that was given twice, unless it names the content to move to.
func TestRollbackOrder_TwiceLeavesNoContentThatTheFleetWentBackTo(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	of := s.succeed("v1", "v2", "v3")
	s.order(v1alpha1.OrderRollback, of[2], nil)
	s.ticks(2, 0, "c1", "c2", "c3")
	for _, when := range []string{"on the way", "back"} {
		key := s.order(v1alpha1.OrderRollback, of[1], nil)
		s.ticks(14, 0, "c1", "c2", "c3")
		want := fmt.Sprintf("Refused: the clusters were already rolled back from %.10[2]s to %.10[1]s; to leave %.10[1]s as well, name the destination with --to COMMIT", commitNamed("v2"), commitNamed("v3"))
		if got := s.answered(key); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
		s.runs(of[1], "c1", "c2", "c3")
	}
	s.order(v1alpha1.OrderRollback, of[1], &v1alpha1.OrderArguments{To: of[0]})
	s.ticks(14, 0, "c1", "c2", "c3")
	s.runs(of[0], "c1", "c2", "c3")
}

// A permission of an order is valid for the rollback of that order, whatever Git declares.
func TestRollbackOrder_WithCRDsWhileTheFleetIsBackAlready(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	v1 := s.targetOf(s.defining("v1", "v1"), "v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.targetOf(s.defining("v2", "v2"), "v2")
	s.settle()
	s.advance(time.Minute)
	s.targetOf(s.defining("v3", "v2"), "v3")
	s.declare(rollsBack)
	s.ticks(3, 0)
	s.advance(time.Minute)
	s.ticks(14, 0, "c1", "c2", "c3")
	s.runs(v2, "c1", "c2", "c3")
	key := s.order(v1alpha1.OrderRollback, v2, &v1alpha1.OrderArguments{To: v1, WithCRDs: true})
	s.ticks(14, 0, "c1", "c2", "c3")
	if got := s.holding(v1); len(got) != 3 {
		t.Errorf("answered %q; v1 runs on %v; %s", s.answered(key), got, s.rollout().Status.Message)
	}
}

// An unblock is a new attempt, whatever the clusters that failed before do meanwhile.
func TestUnblock_IsANewAttempt(t *testing.T) {
	for _, how := range []string{"WhileAClusterIsHeld", "WhileAClusterIsOffline", "WhenAClusterReturnsLater", "DuringTheRollback"} {
		t.Run(how, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			_, v2 := s.failed()
			switch how {
			case "WhileAClusterIsHeld":
				s.hold("c1", "true")
			case "WhileAClusterIsOffline", "WhenAClusterReturnsLater":
				s.available("c1", metav1.ConditionUnknown)
			}
			if how != "DuringTheRollback" {
				s.ticks(14, 0, "c1", "c2", "c3")
			}
			s.order(v1alpha1.OrderUnblock, v2, nil)
			s.ticks(21, 0, "c1", "c2", "c3")
			if how == "WhenAClusterReturnsLater" {
				s.available("c1", metav1.ConditionTrue)
				s.ticks(14, 0, "c1", "c2", "c3")
			}
			if q, again := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); again {
				t.Errorf("quarantined again without another try: %s", q.Reason)
			}
		})
	}
}

// An unblock says what spec.blocked holds all the same.
func TestUnblock_SaysThatTheContentIsBlockedAsWell(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	_, v2 := s.failed()
	s.rolledBack()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks"}}
	})
	s.turn()
	key := s.order(v1alpha1.OrderUnblock, v2, nil)
	s.turns(4)
	if got := s.answered(key); !strings.Contains(got, "spec.blocked still names it") {
		t.Errorf("answered %q, and %s", got, s.rollout().Status.Message)
	}
}

// An abort of a rollback does not apply to a later git revert, which moves the fleet.
func TestAbort_OfARollbackDoesNotStopAGitRevert(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.ticks(6, 0, "c1", "c2")
	s.advance(time.Minute)
	s.ticks(2, 0, "c1", "c2")
	s.order(v1alpha1.OrderAbort, v1, nil)
	s.ticks(3, 0, "c1", "c2")
	if len(s.holding(v2)) == 0 {
		t.Fatal("the abort stopped nothing")
	}
	s.commit("v1")
	s.ticks(20, 10*time.Second, "c1", "c2", "c3")
	s.noneHolds(v2)
}

// atOnce moves that many clusters at once, each with a minute to verify. The first failure rolls back.
func (s *scene) atOnce(n int32) {
	s.t.Helper()
	limit := intstr.FromInt32(n)
	s.oneByOne()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages[0].MaxConcurrency, spec.Stages[0].ProgressDeadline = &limit, "1m"
	})
}

// Content is written to no cluster once it is withdrawn, also if the cluster was admitted before.
func TestRollback_WritesNothingToAClusterThatWasOnlyAdmitted(t *testing.T) {
	for name, held := range map[string]bool{"Free": false, "Held": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.atOnce(2)
			s.commit("v1")
			s.settle()
			before := s.works()["c3"].DeepCopy()
			v2 := s.commit("v2")
			for range 6 {
				s.ticks(1, 0, "c2")
				if slices.Contains(s.holding(v2), "c3") {
					break
				}
			}
			now := s.works()["c3"] // the operator was killed before it wrote
			now.Spec, now.Annotations, now.Labels = before.Spec, before.Annotations, before.Labels
			s.update(now)
			s.restart()
			s.advance(time.Minute)
			if held {
				s.hold("c3", "true")
			}
			for range 11 {
				s.ticks(1, 0, "c1", "c2", "c3")
				if got := s.holding(v2); slices.Contains(got, "c3") {
					t.Fatalf("c3 ran v1 when v2 was quarantined, and runs v2 now; %s: %s", s.rollout().Status.Phase, s.rollout().Status.Message)
				}
			}
		})
	}
}

// A repair that stops after the end is no fleet that is back.
func TestRollback_SaysThatTheRepairAfterTheEndStopped(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3", "c4")
	s.reporting()
	s.within(0, "1m")
	s.declare(rollsBack)
	for _, tag := range []string{"v1", "v2"} {
		s.commit(tag)
		s.applied(tag, "")
		s.settle()
		s.advance(time.Minute)
	}
	v2 := s.rollout().Spec.Target.Digest
	s.available("c2", metav1.ConditionUnknown)
	s.available("c3", metav1.ConditionUnknown)
	s.order(v1alpha1.OrderRollback, v2, nil)
	s.ticks(10, 0, "c1", "c4")
	s.available("c2", metav1.ConditionTrue)
	s.ticks(8, 20*time.Second, "c1", "c4") // c2 does not become healthy
	s.available("c3", metav1.ConditionTrue)
	s.ticks(10, 20*time.Second, "c1", "c3", "c4")
	if got := s.holding(v2); !slices.Equal(got, []string{"c3"}) {
		t.Fatalf("%v run v2", got)
	}
	s.expect("v2", "failure: 2/4 updated, 1 failed (")
	if got := s.reportedOn("v2"); !strings.Contains(got, ", halted in everyone, ") || !strings.Contains(got, "; stopped rolling back to "+commitNamed("v1")[:10]+" from "+commitNamed("v2")[:10]+", 1 not moved (c3)") {
		t.Error(got)
	}
}

// A joiner that failed with the older content failed before the rollback, also if one turn sees both.
func TestRollback_IsNotStoppedByAJoinerThatFailedInTheSameLook(t *testing.T) {
	for name, apart := range map[string]bool{"SameLook": false, "LookBefore": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.atOnce(3)
			s.decides("c1", "c2")
			s.commit("v1")
			s.settle()
			v2 := s.commit("v2")
			s.decides("c1", "c2", "c3")
			s.ticks(3, 0, "c2")
			if apart {
				s.ticks(1, 0, "c2")
			}
			s.advance(2 * time.Minute)
			s.ticks(36, 10*time.Second, "c1", "c2")
			s.noneHolds(v2)
		})
	}
}

// decides makes the placement select other clusters.
func (s *scene) decides(clusters ...string) {
	s.t.Helper()
	var d clusterv1beta1.PlacementDecision
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "all-1"}, &d); err != nil {
		s.t.Fatal(err)
	}
	d.Status.Decisions = nil
	for _, c := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	s.update(&d)
	var p clusterv1beta1.Placement
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "all"}, &p); err != nil {
		s.t.Fatal(err)
	}
	p.Status.NumberOfSelectedClusters = int32(len(clusters)) //nolint:gosec // a handful
	s.update(&p)
}

// An entry of spec.blocked that names nothing says so, on the rollout and on the commit.
func TestBlocked_SaysThatAnEntryNamesNoKnownContent(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.commit("v1")
	s.applied("v1", "")
	s.settle()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Commit: "abc1234", Reason: "leaks"}}
	})
	s.turns(2)
	said := "blocked[0]: abc1234 introduced no content known here; known: main@" + commitNamed("v1")[:7]
	if got := s.rollout().Status.Message; !strings.Contains(got, said) {
		t.Errorf("the message is %q", got)
	}
	s.expect("v1", "success: "+said)
}

// An aborted rollout in which a cluster fails says both, and that it is not rolled back.
func TestAbortedRollout_NamesTheAbortAndTheClusterThatFailsLater(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	s.succeed("v1")
	v2 := s.commit("v2")
	s.ticks(2, 0)
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.ticks(2, 0)
	s.advance(time.Minute)
	s.ticks(3, 0)
	got := s.rollout().Status.Message
	for _, want := range []string{"aborted by ", "halted in everyone: 1 failed", "not rolled back: an aborted rollout stays as it is"} {
		if !strings.Contains(got, want) {
			t.Errorf("the message %q does not say %q", got, want)
		}
	}
}

// An order about a stage that does not exist names those that do.
func TestPromote_NamesTheStages(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.canary("c1")
	v1 := s.commit("v1")
	s.turn()
	key := s.order(v1alpha1.OrderPromote, v1, &v1alpha1.OrderArguments{Stage: "nope"})
	s.turns(2)
	if got := s.answered(key); !strings.Contains(got, "there is no stage nope; stages are canary, everyone") {
		t.Errorf("answered %q", got)
	}
}

// A status that is older than the works forgets an admission. Works that were written in part name the target as
// well: their cluster holds a slot.
func TestOlderStatus_AdoptsAClusterWhoseWorksAreWrittenInPart(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	first := s.target("v1")
	s.settle()
	older := s.rollout().Status
	s.hold("c1", "true")
	second := s.target("v2")
	s.turns(2)
	s.hold("c1", "")
	w := s.works()["c2"]
	if got := w.Annotations[v1alpha1.RevisionAnnotation]; got != second {
		t.Fatalf("c2 is at %s, want %s", got, second)
	}
	delete(w.Annotations, v1alpha1.DigestAnnotation)
	s.update(w)
	s.restoreStatus(older)
	s.turns(3)
	if got := s.works()["c1"].Annotations[v1alpha1.RevisionAnnotation]; got != first {
		t.Errorf("c1 is moved beside c2, at a limit of one: %s", s.rollout().Status.Message)
	}
	s.report("c2")
	s.turns(3)
	if got := s.works()["c1"].Annotations[v1alpha1.RevisionAnnotation]; got != second {
		t.Errorf("c1 is not moved after c2: %s", s.rollout().Status.Message)
	}
}

// Content without workloads that differs from the stable revision only in its hooks or its registration has the same objects
// on a cluster. The works name the target, so the cluster holds a slot while it soaks.
func TestOlderStatus_AdoptsAClusterOfContentWithoutWorkloads(t *testing.T) {
	contentOf := func(tag, hook, registration string) render.Content {
		content := contentWith(tag)
		content.Templates[0].Spec["registration"] = []any{map[string]any{"type": "CustomSigner", "customSigner": map[string]any{
			"signerName": "example.com/" + registration, "signingCA": map[string]any{"name": "ca", "namespace": "team"},
		}}}
		content.Templates[0].Spec["agentSpec"] = map[string]any{"workload": map[string]any{"manifests": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello", "namespace": "agents"}},
			map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": hook, "namespace": "agents", "annotations": map[string]any{addonv1alpha1.AddonPreDeleteHookAnnotationKey: ""},
			}},
		}}}
		return content
	}
	for name, tc := range map[string]struct {
		hook, registration string
		lost               string // the annotation that the work of the cluster lost
	}{
		"another hook":                          {hook: "b", registration: "a"},
		"another registration":                  {hook: "a", registration: "b"},
		"another hook, written in part":         {hook: "b", registration: "a", lost: v1alpha1.DigestAnnotation},
		"another registration, written in part": {hook: "a", registration: "b", lost: v1alpha1.DigestAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			first := s.targetOf(contentOf("v1", "a", "a"), "v1")
			s.settle()
			s.soaking(10*time.Minute, "30m")
			older := s.rollout().Status
			s.hold("c1", "true")
			second := s.targetOf(contentOf("v2", tc.hook, tc.registration), "v2")
			s.turns(2)
			s.hold("c1", "")
			s.runs(second, "c2")
			w := s.works()["c2"]
			delete(w.Annotations, tc.lost)
			s.update(w)
			s.restoreStatus(older)
			s.turns(3)
			s.runs(first, "c1")
			s.runs(second, "c2")
			for range 3 {
				s.advance(10 * time.Minute)
				s.turns(3)
			}
			s.runs(second, "c1", "c2")
		})
	}
}

// A work that another client edited so that it names the target, or nothing, has the content that it had. Its cluster is
// not moved to the target beside the cluster in flight, also if the status is lost.
func TestEditedMarks_MoveNoCluster(t *testing.T) {
	stable := func(s *scene) { s.succeed("v1") }
	done := func(s *scene) { s.commit("v1"); s.turns(2); s.report("c1"); s.turns(3) } // of an unfinished install
	revision, digest := v1alpha1.RevisionAnnotation, v1alpha1.DigestAnnotation
	alike := func(s *scene, tag string) string { return s.targetOf(contentWith(tag), tag) } // one digest on all clusters
	for name, tc := range map[string]struct {
		first func(s *scene)
		next  func(s *scene, tag string) string
		edit  func(a map[string]string, target map[string]string)
		lost  bool
		waits bool // the marks are repaired when the cluster is admitted
	}{
		"it names the target":                    {first: stable, edit: func(a, target map[string]string) { a[revision] = target[revision] }},
		"it names the target and another digest": {first: stable, edit: func(a, target map[string]string) { a[revision], a[digest] = target[revision], "bogus" }},
		"it has all marks of another cluster":    {first: stable, edit: func(a, target map[string]string) { a[revision], a[digest] = target[revision], target[digest] }},
		"it has all marks of another cluster, alike": {
			first: func(s *scene) { alike(s, "v1"); s.settle() }, next: alike,
			edit: func(a, target map[string]string) { a[revision], a[digest] = target[revision], target[digest] },
		},
		"it names the target and no digest":          {first: stable, edit: func(a, target map[string]string) { a[revision] = target[revision]; delete(a, digest) }, waits: true},
		"it names nothing":                           {first: stable, edit: func(a, _ map[string]string) { delete(a, revision); delete(a, digest) }, waits: true},
		"it names nothing and the status is lost":    {first: stable, edit: func(a, _ map[string]string) { delete(a, revision); delete(a, digest) }, lost: true},
		"it names the target, with a lost status":    {first: stable, edit: func(a, target map[string]string) { a[revision], a[digest] = target[revision], "bogus" }, lost: true},
		"it names the target, and was done before":   {first: done, edit: func(a, target map[string]string) { a[revision] = target[revision] }},
		"it has wrong marks, and was done before it": {first: done, edit: func(a, target map[string]string) { a[revision], a[digest] = target[revision], "bogus" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.oneByOne()
			tc.first(s)
			v1 := s.works()["c1"].Annotations[revision]
			if tc.next == nil {
				tc.next = (*scene).commit
			}
			v2 := tc.next(s, "v2")
			s.turns(2)
			moved, edited := s.holding(v2), "c1"
			if slices.Equal(moved, []string{edited}) {
				edited = "c2"
			}
			before := s.works()[edited]
			if len(moved) != 1 || before == nil || before.Annotations[revision] != v1 {
				t.Fatalf("%v are at v2: %s", moved, s.rollout().Status.Message)
			}
			w := before.DeepCopy()
			tc.edit(w.Annotations, s.works()[moved[0]].Annotations)
			s.update(w)
			if tc.lost {
				s.restoreStatus(v1alpha1.AddOnRolloutStatus{})
			}
			s.turns(3)
			after := s.works()[edited]
			if !reflect.DeepEqual(after.Spec, before.Spec) || !tc.waits && !reflect.DeepEqual(after.Annotations, before.Annotations) {
				t.Errorf("%s has %v, want %v; %s", edited, after.Annotations, before.Annotations, s.rollout().Status.Message)
			}
		})
	}
}

// While a rollback order can move no cluster, stages, commit statuses and the change of a cluster say that all of them still
// run the content. After the end they count the clusters that still run it.
func TestRollbackOrder_SaysHowManyClustersStillRunTheContent(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.commit(tag)
		s.applied(tag, "")
		s.settle()
		s.expect(tag, "success: 3/3", "everyone")
		s.advance(time.Minute)
	}
	v2 := s.rollout().Spec.Target.Digest
	clusters := []string{"c1", "c2", "c3"}
	for _, name := range clusters {
		s.available(name, metav1.ConditionUnknown)
	}
	s.order(v1alpha1.OrderRollback, v2, nil)
	s.ticks(6, 0)
	ro := s.rollout()
	if st := ro.Status.Stages[0]; st.Phase != rollout.StageWaiting || ro.Status.Phase != v1alpha1.PhaseRollingBack || len(s.holding(v2)) != 3 {
		t.Errorf("%v run v2; %s, stage %s: %s", s.holding(v2), ro.Status.Phase, st.Phase, st.Message)
	}
	s.expect("v2", "failure: the content is not rolled back yet; see addonflow/fleet/hello", "everyone")
	change, err := ChangeOn(t.Context(), s.hub, s.key, "c1", chart.InProcess{})
	if err != nil || image(t, change.Before) != "example.com/hello:v2" || image(t, change.After) != "example.com/hello:v1" || change.From.Digest != v2 {
		t.Errorf("the change is %+v, %v", change, err)
	}

	s.available("c1", metav1.ConditionTrue)
	s.ticks(6, 0, "c1")
	back := "failure: rolled back to " + commitNamed("v1")[:10] + " from " + commitNamed("v2")[:10]
	s.expect("v2", back+", 2 not moved (c2, c3)")
	s.expect("v2", "failure: rolled back on 1/3; see addonflow/fleet/hello", "everyone")
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || !strings.Contains(ro.Status.Message, ", 2 not moved (c2, c3)") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	for _, name := range clusters {
		s.available(name, metav1.ConditionTrue)
	}
	s.ticks(10, 0, clusters...)
	s.noneHolds(v2)
	s.expect("v2", back+" (git restore")
	s.expect("v2", "failure: the content is rolled back; see addonflow/fleet/hello", "everyone")
}

// stopsGoingBack gives the order to roll back, and c1 does not become healthy. It returns the digest that the fleet leaves.
func (s *scene) stopsGoingBack() string {
	s.t.Helper()
	s.within(0, "1m")
	left := s.rollout().Spec.Target.Digest
	s.order(v1alpha1.OrderRollback, left, nil)
	s.ticks(12, 20*time.Second)
	return left
}

// A rollback that stops counts each cluster once: the clusters that were not moved are not untouched.
func TestRollback_ThatStopsCountsEachClusterOnce(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.commit(tag)
		s.applied(tag, "")
		s.settle()
		s.advance(time.Minute)
	}
	v2 := s.stopsGoingBack()
	ro := s.rollout()
	said := s.reportedOn("v2")
	if ro.Status.Phase != v1alpha1.PhaseFailed || !slices.Equal(s.holding(v2), []string{"c2", "c3"}) {
		t.Fatalf("%v run v2; %s: %s", s.holding(v2), ro.Status.Phase, ro.Status.Message)
	}
	for _, text := range []string{said, ro.Status.Message} {
		if strings.Contains(text, "untouched") || strings.Count(text, ", 2 not moved (c2, c3)") != 1 {
			t.Error(text)
		}
	}
	s.expect("v2", "failure: rolled back on 0/3; see addonflow/fleet/hello", "everyone")
}

// show.Next names this for a rollback that stopped.
func TestRetry_ContinuesARollbackThatStopped(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.target(tag)
		s.settle()
		s.advance(time.Minute)
	}
	v2 := s.stopsGoingBack()
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !ro.Status.Override.Returns() {
		t.Fatalf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	key := s.order(v1alpha1.OrderRetry, ro.Status.Target.Digest, nil)
	s.ticks(20, 0, "c1", "c2", "c3")
	if got := s.answered(key); !strings.HasPrefix(got, "CarriedOut: ") {
		t.Fatal(got)
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || len(s.holding(v2)) > 0 {
		t.Errorf("%v run v2; %s: %s", s.holding(v2), ro.Status.Phase, ro.Status.Message)
	}
}

// A cluster of the last stage fails. Its way back does not depend on the healthy canary.
func TestRollback_MovesAFailedClusterWithoutWaitingForEarlierStages(t *testing.T) {
	s := gatedScene(t, nil, nil)
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		one := intstr.FromInt32(1)
		spec.Stages[1].MaxConcurrency, spec.Stages[1].ProgressDeadline = &one, "1m"
	})
	v2 := s.target("v2")
	for range 4 {
		s.turn()
		s.report("c1")
	}
	if got := s.holding(v2); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Fatalf("%v run v2", got)
	}
	s.advance(2 * time.Minute)
	s.turns(3)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRollingBack {
		t.Fatalf("the rollout is %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if got := s.holding(v2); len(got) > 0 {
		t.Errorf("%v wait with v2", got)
	}
	if ro := s.rolledBack(); ro.Status.Counts.Updated != 3 {
		t.Errorf("%s", ro.Status.Message)
	}
}

// The marks of commit statuses are lost with the status. The forge still shows what the stages said before.
func TestRecall_StatesTheStagesOfACommitWhoseMarksAreLost(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.target(tag)
		s.applied(tag, "")
		s.settle()
		s.advance(time.Minute)
	}
	s.order(v1alpha1.OrderRollback, s.rollout().Spec.Target.Digest, nil)
	s.turns(2)
	s.expect("v2", "failure: the content is not rolled back yet; see addonflow/fleet/hello", "everyone")
	s.restoreStatus(v1alpha1.AddOnRolloutStatus{})
	s.rolledBack()
	s.expect("v2", "failure: the content is rolled back; see addonflow/fleet/hello", "everyone")
}
