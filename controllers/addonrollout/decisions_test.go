package addonrollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// logLine is a line of the log.
type logLine struct {
	Level                                                                    int
	Msg, Rollout, Commit, Revision, Stage, Cluster, From, To, Reason, Logger string
	Clusters                                                                 int
}

// logged collects the log of the turns from now on.
func (s *scene) logged() *[]logLine {
	lines := &[]logLine{}
	s.log = funcr.NewJSON(func(text string) {
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Errorf("a line of the log is not JSON: %v: %s", err, text)
		}
		*lines = append(*lines, l)
	}, funcr.Options{Verbosity: 1})
	return lines
}

// linesAt are the log lines of a level as "Kind stage cluster".
func linesAt(lines []logLine, level int) []string {
	var out []string
	for _, l := range lines {
		if l.Level == level {
			out = append(out, strings.Join(strings.Fields(l.Msg+" "+l.Stage+" "+l.Cluster), " "))
		}
	}
	return out
}

// journaled is the journal as "Decision stage".
func journaled(ro *v1alpha1.AddOnRollout) []string {
	var out []string
	for _, e := range ro.Status.Journal {
		out = append(out, strings.TrimSpace(e.Decision+" "+e.Stage))
	}
	return out
}

// TestAFailedAndRevertedRolloutIsInLogJournalAndHistory: which clusters got the content, why the
// rollout was halted, and which clusters moved back.
func TestAFailedAndRevertedRolloutIsInLogJournalAndHistory(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	lines := s.logged()
	v1 := s.target("v1")
	s.settle()
	*lines = nil
	s.announced()
	v2 := s.target("v2")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	s.target("v1")
	s.settle()

	want := []string{"Admitted everyone c1", "Moved everyone c1", "TimedOut everyone c1", "Admitted everyone c1", "Moved everyone c1", "Verified everyone c1"}
	if got := linesAt(*lines, 1); !slices.Equal(got, want) {
		t.Errorf("debug lines\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
	for _, l := range *lines {
		if l.Rollout != "team/hello" || l.Commit == "" || l.Revision == "" || l.Level == 1 && (l.From == "" || l.To == "") {
			t.Errorf("a line lacks what it is about: %+v", l)
		}
		if wantCommit := map[string]string{v1: commitNamed("v1"), v2: commitNamed("v2")}[l.Revision]; !strings.HasSuffix(l.Commit, wantCommit) {
			t.Errorf("%s of revision %s is said of commit %s", l.Msg, l.Revision, l.Commit)
		}
		if l.Msg == "TimedOut" && l.Cluster == "c1" && l.Reason != "past its progress deadline: Deployment hello has not got the new content" {
			t.Errorf("the cluster timed out with the reason %q", l.Reason)
		}
	}
	ro := s.rollout()
	wantSteps := []string{
		"Started", "StageStarted everyone", "Admitted everyone", "Moved everyone", "TimedOut everyone", "Halted everyone",
		"Reverted", "StageStarted everyone", "Admitted everyone", "Moved everyone", "Verified everyone", "StageCompleted everyone", "Succeeded",
	}
	if got := linesAt(*lines, 0); !slices.Equal(got, wantSteps) {
		t.Errorf("info lines\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(wantSteps, "\n "))
	}
	if got := journaled(ro); !slices.Equal(got[len(got)-len(wantSteps):], wantSteps) {
		t.Errorf("the journal ends\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(wantSteps, "\n "))
	}
	for _, e := range ro.Status.Journal {
		if e.At.IsZero() || e.Commit == "" || e.Reason == "" && e.Decision != "StageStarted" {
			t.Errorf("an entry lacks time, commit or reason: %+v", e)
		}
	}
	h := ro.Status.History[1]
	if h.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(h.Reason, "halted in everyone: 1 failed (c1: ") ||
		len(h.Failing) != 1 || h.Failing[0].Cluster != "c1" || len(h.Stages) != 1 || h.Stages[0].Phase != "Failed" || h.Stages[0].Finished == nil ||
		!h.Stages[0].Finished.After(h.Stages[0].Started.Time) {
		t.Errorf("the history of the failed rollout says %+v", h)
	}
	if got := s.announced(); len(got) != 6 {
		t.Errorf("announced\n %s", strings.Join(got, "\n "))
	} else {
		for i, begin := range []string{
			"Normal RolloutProgressing Started the rollout of main@sha1:" + commitNamed("v2"),
			"Normal StageStarted Started stage everyone of main@sha1:" + commitNamed("v2"),
			"Warning RolloutFailed Halted the rollout of main@sha1:" + commitNamed("v2") + ": halted in everyone: 1 failed (c1: ",
			"Normal RolloutReverted Started the revert to main@sha1:" + commitNamed("v1"),
			"Normal StageStarted Started stage everyone of main@sha1:" + commitNamed("v1"),
			"Normal RolloutSucceeded Completed the rollout of main@sha1:" + commitNamed("v1"),
		} {
			if !strings.HasPrefix(got[i], begin) {
				t.Errorf("event %d is %q, want %q", i, got[i], begin)
			}
		}
	}
}

// TestTheLogNamesWhyAClusterFailed: the line of the cluster has the reason.
func TestTheLogNamesWhyAClusterFailed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.within(0, "30m")
	s.target("v1")
	s.turns(2)
	lines := s.logged()
	s.fails("c1")
	s.turn()
	failed := slices.DeleteFunc(*lines, func(l logLine) bool { return l.Msg != "Failed" || l.Cluster != "c1" })
	if len(failed) != 1 || failed[0].Level != 1 || failed[0].Reason != "Deployment hello: ProgressDeadlineExceeded" {
		t.Errorf("the log has %+v", failed)
	}
}

// TestDecisionsOfOneTurnFollowTheirCauses: in one turn, the canary is verified, its stage is complete and the next stage
// starts; and a gate passes, so that the rollout goes on and the stage starts.
func TestDecisionsOfOneTurnFollowTheirCauses(t *testing.T) {
	for name, tc := range map[string]struct {
		gates *v1alpha1.Gates
		want  []string
	}{
		"a stage after another": {want: []string{
			"Started", "StageStarted canary", "Admitted canary", "Moved canary", "Verified canary", "StageCompleted canary",
			"StageStarted fleet", "Admitted fleet", "Moved fleet", "Verified fleet", "StageCompleted fleet", "Succeeded",
		}},
		"a stage after its gate": {gates: approvals(1), want: []string{
			"Started", "StageStarted canary", "Admitted canary", "Moved canary", "Verified canary", "StageCompleted canary", "GateWaits fleet", "Held",
			"GatePassed fleet", "Resumed", "StageStarted fleet", "Admitted fleet", "Moved fleet", "Verified fleet", "StageCompleted fleet", "Succeeded",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := gatedScene(t, nil, tc.gates)
			s.installPolicy()
			known := len(s.rollout().Status.Journal)
			s.upgrade()
			if tc.gates != nil {
				s.decide("ann", v1alpha1.Approve)
			}
			s.settle()
			if got := journaled(s.rollout())[known:]; !slices.Equal(got, tc.want) {
				t.Errorf("the journal is\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(tc.want, "\n "))
			}
		})
	}
}

// TestPaceThatCannotWork_HidesNoDecision: it admits no cluster and ends no soak, and what becomes of the clusters in
// flight is logged.
func TestPaceThatCannotWork_HidesNoDecision(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turn()
	lines, known := s.logged(), len(s.rollout().Status.Journal)
	ro := s.rollout()
	ro.Spec.Stages, ro.Spec.Strategy = nil, unknownGroup()
	s.update(ro)
	for range 3 {
		s.settleOnce()
	}
	if got, want := linesAt(*lines, 1), []string{"Moved everyone c1", "Verified everyone c1"}; !slices.Equal(got, want) {
		t.Errorf("debug lines %q, want %q", got, want)
	}
	if got := journaled(s.rollout())[known:]; !slices.Contains(got, "Moved everyone") || !slices.Contains(got, "Verified everyone") {
		t.Errorf("the journal has %q", got)
	}
}

// TestFleetAtRest_CausesNoDecisionAndNoWrite: neither a turn nor a restart makes a decision, or a write.
func TestFleetAtRest_CausesNoDecisionAndNoWrite(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	before := s.rollout()
	lines := s.logged()
	s.turns(3)
	s.restart()
	s.turns(3)
	if after := s.rollout(); after.ResourceVersion != before.ResourceVersion || len(*lines) > 0 {
		t.Errorf("version %s to %s, logged %+v", before.ResourceVersion, after.ResourceVersion, *lines)
	}
}

// TestInfoLinesGrowWithDoublingsAndNotWithClusters: every cluster has its lines at debug, but the
// steps at info are tens. A test of rollout/journal counts them for 10,000 clusters.
func TestInfoLinesGrowWithDoublingsAndNotWithClusters(t *testing.T) {
	const clusters = 64
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("c%03d", i)
	}
	s := newScene(t, interceptor.Funcs{}, names...)
	s.oneByOne()
	ro := s.rollout()
	limit := intstr.FromInt32(8)
	ro.Spec.Stages[0].MaxConcurrency = &limit
	s.update(ro)
	lines := s.logged()
	s.target("v1")
	for turn := 0; turn < 3*clusters && s.rollout().Status.Phase != v1alpha1.PhaseSucceeded; turn++ {
		s.turn()
		var some []string // agents report at different times
		for i := turn % 5; i < clusters; i += 5 {
			some = append(some, names[i])
		}
		s.report(some...)
	}
	debug, info := linesAt(*lines, 1), linesAt(*lines, 0)
	if len(debug) != 3*clusters {
		t.Errorf("%d lines at debug, want Admitted, Moved and Verified of each of %d clusters", len(debug), clusters)
	}
	if len(info) > 40 || info[len(info)-1] != "Succeeded" {
		t.Errorf("%d lines at info:\n %s", len(info), strings.Join(info, "\n "))
	}
	for _, w := range s.works() {
		s.delete(w)
	}
	for turn := 0; turn < 3*clusters && (len(s.works()) < clusters || s.rollout().Status.Counts.Updated < clusters); turn++ {
		s.turn()
		var some []string
		for i := turn % 5; i < clusters; i += 5 {
			some = append(some, names[i])
		}
		s.report(some...)
	}
	again := linesAt(*lines, 0)[len(info):]
	repairs := 0
	for _, e := range s.announced() {
		if strings.HasPrefix(e, "Normal Repaired Repaired ") {
			repairs++
		}
	}
	if repairs == 0 || repairs > len(again) {
		t.Errorf("a repair of all clusters makes %d events, and %d lines at info", repairs, len(again))
	}
	if len(again) == 0 || len(again) > 10 {
		t.Errorf("a repair of all clusters makes %d lines at info:\n %s", len(again), strings.Join(again, "\n "))
	}
	if repaired := s.journalled("Repaired"); len(repaired) != 1 || s.rollout().Status.Journal[len(s.rollout().Status.Journal)-1].Clusters != clusters {
		t.Errorf("the journal has %v", repaired)
	}
}

// TestAManagedClusterAddOnThatAUserDeletedIsRepaired: it is created again, which is in the journal, whether the garbage
// collector was there before or not.
func TestAManagedClusterAddOnThatAUserDeletedIsRepaired(t *testing.T) {
	for name, collected := range map[string]bool{"WithItsWorks": true, "BeforeItsWorks": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			s.target("v1")
			s.settle()
			if got := s.journalled("Repaired"); len(got) != 0 {
				t.Fatalf("an installation is no repair: %v", got)
			}
			s.delete(s.addOn("c1"))
			if collected {
				s.delete(s.works()["c1"])
			}
			s.settle()
			if got := s.journalled("Repaired"); len(got) != 1 || !strings.HasPrefix(got[0], "everyone: c1: ") {
				t.Errorf("the journal has %v", got)
			}
		})
	}
}

// TestARepairOfDriftIsADecision: it is logged and in the journal at once. Its event names commit, cluster and work.
func TestARepairOfDriftIsADecision(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	lines := s.logged()
	s.announced()
	w := s.works()["c2"]
	w.Spec.Workload.Manifests = []workv1.Manifest{}
	s.update(w)
	s.turns(2)
	want := "Normal Repaired Repaired 1 cluster of stage everyone with the content of main@sha1:" + commitNamed("v1") + ": c2: work " + w.Name + " differed from the revision"
	if got := s.announced(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("announced %q, want %q", got, want)
	}
	if got := linesAt(*lines, 1); !slices.Contains(got, "Repaired everyone c2") {
		t.Errorf("logged %v", got)
	}
	if got := journaled(s.rollout()); got[len(got)-1] != "Repaired everyone" && !slices.Contains(got, "Repaired everyone") {
		t.Errorf("the journal has %v", got)
	}
}

// TestALostWriteIsADecision: it names the object, and is logged at once, and in the journal with the next write.
func TestALostWriteIsADecision(t *testing.T) {
	overtaken := false
	s := newScene(t, overtaking(&overtaken), "c1")
	s.oneByOne()
	s.target("v1")
	lines := s.logged()
	s.turn()
	if got := linesAt(*lines, 0); !slices.Equal(got, []string{"WriteLost"}) {
		t.Errorf("logged %v: a plan that was dropped decided nothing", got)
	}
	s.turns(2)
	count := 0
	for _, e := range s.rollout().Status.Journal {
		if e.Decision == "WriteLost" && strings.Contains(e.Reason, "addonrollouts/hello") {
			count++
		}
	}
	if got := linesAt(*lines, 0); count != 1 || strings.Count(strings.Join(got, " "), "WriteLost") != 1 {
		t.Errorf("%d in the journal, logged %v", count, got)
	}
}

// TestARepairOfARoundWhoseStatusIsRefusedIsInTheJournal: the work is written, so that no later turn repairs it again.
func TestARepairOfARoundWhoseStatusIsRefusedIsInTheJournal(t *testing.T) {
	overtaken := true
	s := newScene(t, overtaking(&overtaken), "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	w := s.works()["c2"]
	w.Spec.Workload.Manifests = []workv1.Manifest{}
	s.update(w)
	overtaken = false
	s.turns(3)
	if got := s.journalled("Repaired"); !overtaken || len(got) != 1 || !strings.HasPrefix(got[0], "everyone: c2: work ") {
		t.Errorf("the journal has %v", got)
	}
}

// TestDecisionsOfATurnWhoseOtherWritesFailAreAnnounced: the status has them, so that no later turn decides them again.
func TestDecisionsOfATurnWhoseOtherWritesFailAreAnnounced(t *testing.T) {
	fails := false
	s := newScene(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == v1alpha1.AddOnRevisionKind && fails {
			fails = false
			return apierrors.NewConflict(schema.GroupResource{Group: "addonflow.io", Resource: "addonrevisions"}, o.GetName(), errors.New("it was changed"))
		}
		return c.Patch(ctx, o, p, opts...)
	}}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.turns(2)
	s.report()
	s.turn()
	s.report()
	s.announced()
	lines := s.logged()
	fails = true // the mark of the success
	s.turns(2)
	if got := linesAt(*lines, 0); fails || !slices.Contains(got, "Succeeded") {
		t.Errorf("logged %v", got)
	}
	if got := strings.Join(s.announced(), "\n"); !strings.Contains(got, "RolloutSucceeded") {
		t.Errorf("announced %s", got)
	}
}

// skewed is a scene whose wall clock can be set. Both clocks advance together; skew is added to the
// wall clock only.
func skewed(t *testing.T, clusters ...string) (s *scene, set func(time.Duration)) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, clusters...)
	start, skew := s.clock.Now(), time.Duration(0)
	s.elapsed = func() time.Duration { return s.clock.Now().Sub(start) - skew }
	s.restart()
	return s, func(d time.Duration) {
		skew += d
		s.clock.SetTime(s.clock.Now().Add(d))
	}
}

// soaking makes the rollout move clusters one by one, with a soak.
func (s *scene) soaking(soak time.Duration, deadline string) {
	s.t.Helper()
	s.within(0, deadline)
	ro := s.rollout()
	ro.Spec.Stages[0].MinSuccessTime = metav1.Duration{Duration: soak}
	s.update(ro)
}

// TestAClockThatIsSetMovesStoredTimes: measured by the monotonic clock, a soak takes as long as
// declared, whether the wall clock is set back or ahead, for good or for a moment.
func TestAClockThatIsSetMovesStoredTimes(t *testing.T) {
	for name, steps := range map[string][]time.Duration{
		"ahead": {2 * time.Hour}, "back": {-2 * time.Hour}, "ahead for 3s": {2 * time.Hour, -2 * time.Hour}, "back for 3s": {-2 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, set := skewed(t, "c1", "c2")
			s.soaking(10*time.Minute, "30m")
			s.target("v1")
			s.turns(2)
			s.report()
			s.turns(2)
			began := s.elapsed()
			lines := s.logged()
			for _, step := range steps {
				set(step)
				result := s.turn()
				if result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
					t.Errorf("after a step of %s the next look is in %s", step, result.RequeueAfter)
				}
				s.turns(2)
			}
			if got := linesAt(*lines, 0); len(got) != len(steps) || got[0] != "ClockStepped" {
				t.Errorf("logged %v", got)
			}
			for s.rollout().Status.Counts.Updated == 0 {
				if s.elapsed()-began > time.Hour {
					t.Fatalf("the soak does not end: %+v", s.rollout().Status.Stages)
				}
				s.turn()
			}
			if took := s.elapsed() - began; took < 10*time.Minute-5*time.Second || took > 10*time.Minute+5*time.Second {
				t.Errorf("a soak of 10m took %s", took)
			}
		})
	}
}

// TestAClockThatIsSetTimesNoClusterOut: measured by the monotonic clock, a cluster that is Updating has its whole deadline.
func TestAClockThatIsSetTimesNoClusterOut(t *testing.T) {
	for name, steps := range map[string][]time.Duration{
		"ahead": {2 * time.Hour}, "back": {-2 * time.Hour}, "ahead for 3s": {2 * time.Hour, -2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, set := skewed(t, "c1")
			s.within(0, "30m")
			s.target("v1")
			s.turns(2)
			began := s.elapsed()
			s.advance(29 * time.Minute)
			s.turn()
			for _, step := range steps {
				set(step)
				s.turns(2)
			}
			for s.rollout().Status.Counts.Failed == 0 {
				if s.elapsed()-began > time.Hour {
					t.Fatalf("the deadline does not end: %+v", s.rollout().Status.Stages)
				}
				s.turn()
			}
			if took := s.elapsed() - began; took < 30*time.Minute-5*time.Second || took > 30*time.Minute+5*time.Second {
				t.Errorf("a deadline of 30m took %s", took)
			}
		})
	}
}

// TestAStepIsStoredOnce: a decision is stored with the status write of its turn, or with the next one if that write
// was lost.
func TestAStepIsStoredOnce(t *testing.T) {
	s, set := skewed(t, "c1")
	s.soaking(10*time.Minute, "30m")
	s.target("v1")
	s.turns(2)
	admitted := s.rollout().Status.Ledger.Records[0].Times[0].Admitted.Time
	set(time.Hour)
	s.turns(5)
	if got := s.rollout().Status.Ledger.Records[0].Times[0].Admitted.Time; !got.Equal(admitted.Add(time.Hour)) {
		t.Errorf("admitted at %s, is %s", admitted, got)
	}
	set(time.Second)
	s.turns(2)
	if got := s.rollout().Status.Ledger.Records[0].Times[0].Admitted.Time; !got.Equal(admitted.Add(time.Hour)) {
		t.Errorf("a step of a second is within the tolerance: %s", got)
	}
}

// TestARestartClampsTimesOfTheFuture: such times were stored while the clock was ahead.
func TestARestartClampsTimesOfTheFuture(t *testing.T) {
	s, set := skewed(t, "c1")
	s.soaking(10*time.Minute, "30m")
	s.target("v1")
	s.turns(2)
	set(-3 * time.Hour)
	s.restart()
	s.turns(1)
	now := s.clock.Now()
	if got := s.rollout().Status.Ledger.Records[0].Times[0].Admitted.Time; got.After(now.Add(time.Second)) || got.Before(now.Add(-time.Second)) {
		t.Errorf("admitted at %s, it is %s", got, now)
	}
	if got := s.rollout().Status.TargetSince; got.After(now) {
		t.Errorf("the target is planned for since %s, it is %s", got, now)
	}
}

// TestInFlightIsLookedAtEveryMinute: the operator does not sleep until a deadline far away.
func TestInFlightIsLookedAtEveryMinute(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.soaking(time.Hour, "3h")
	s.target("v1")
	var result ctrl.Result
	for range 5 {
		result = s.turn()
	}
	if result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
		t.Errorf("the next look is in %s", result.RequeueAfter)
	}
	s.report()
	for range 5 {
		result = s.turn()
	}
	if result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
		t.Errorf("of a soak of an hour, the next look is in %s", result.RequeueAfter)
	}
}

// TestRemovalIsLookedAtEveryMinute: also while no cluster is in flight, however far away the next deadline is.
func TestRemovalIsLookedAtEveryMinute(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	addOn := s.addOn("c2")
	addOn.Finalizers = append(addOn.Finalizers, "example.com/waits")
	s.update(addOn)
	expect := func(when string, deleting bool) {
		t.Helper()
		s.turns(4)
		result, counts := s.turn(), s.rollout().Status.Counts
		if deleted := s.addOn("c2").DeletionTimestamp != nil; deleted != deleting || counts.InFlight != 0 || counts.Removing != 1 {
			t.Fatalf("%s: deleted %t, %+v", when, deleted, counts)
		}
		if result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
			t.Errorf("%s, the next look is in %s", when, result.RequeueAfter)
		}
	}
	s.selects("c1")
	expect("in the grace period", false)
	s.advance(5 * time.Minute)
	expect("while the budget is spent", true)
	s.advance(5 * time.Minute)
	expect("without a deadline", true)
	addOn = s.addOn("c2")
	addOn.Finalizers = nil
	s.update(addOn)
	s.turns(4)
	if after := s.turn().RequeueAfter; after != 0 {
		t.Errorf("at rest, the next look is in %s", after)
	}
}

// TestRemovalIsReportedWithItsCommit: the start, each cluster and the end name the commit.
func TestRemovalIsReportedWithItsCommit(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.announced()
	lines := s.logged()
	s.removed()
	if got := linesAt(*lines, 1); !slices.Contains(got, "Removed c1") || !slices.Contains(got, "Removed c2") {
		t.Errorf("logged %v", got)
	}
	begun, ended := false, false
	for _, e := range s.rollout().Status.Journal {
		ours := strings.HasPrefix(commitNamed("v9"), e.Commit)
		begun = begun || e.Decision == "RemovalStarted" && ours
		ended = ended || e.Decision == "RemovalEnded" && ours
	}
	events := strings.Join(s.announced(), "\n")
	if !begun || !ended || !strings.Contains(events, "RemovalStarted Started the removal that follows from "+commitNamed("v9")) || !strings.Contains(events, "RemovalEnded Completed the removal that follows from "+commitNamed("v9")) {
		t.Errorf("the journal has %v, announced\n%s", journaled(s.rollout()), events)
	}
}

// A cluster that failed with earlier content recovers while the canary of the new content is halted. Why it waits is not why
// it recovered.
func TestJournal_DoesNotSayOfARecoveredClusterWhatItWaitsFor(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.canary("c1")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		for i := range spec.Stages {
			spec.Stages[i].ProgressDeadline = "1m"
		}
	})
	s.target("v1")
	s.settle()
	s.target("v2")
	s.ticks(6, 0, "c1")
	s.ticks(3, time.Minute, "c1")
	s.target("v3")
	s.ticks(4, time.Minute)
	s.ticks(3, 0, "c2")
	ro := s.rollout()
	i := slices.IndexFunc(ro.Status.Journal, func(e v1alpha1.JournalEntry) bool { return e.Decision == "Recovered" })
	if i < 0 || ro.Status.Journal[i].Reason != "c2" || !strings.HasPrefix(ro.Status.Message, "halted in canary") {
		t.Errorf("%s; the journal is %+v", ro.Status.Message, ro.Status.Journal)
	}
}

// TestAClusterThatIsAdmittedAgainIsARepair: the work of a cluster that was Done is deleted. The journal says what was
// wrong and counts one cluster; the stage and the rollout decide nothing.
func TestAClusterThatIsAdmittedAgainIsARepair(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	before := journaled(s.rollout())
	s.delete(s.works()["c2"])
	s.settle()
	got := s.rollout().Status.Journal
	if len(got) != len(before)+1 {
		t.Fatalf("the journal has %v, and had %v", journaled(s.rollout()), before)
	}
	last := got[len(got)-1]
	if last.Decision != "Repaired" || last.Clusters != 1 || !strings.HasPrefix(last.Reason, "c2: its works ") {
		t.Errorf("the journal says %+v", last)
	}
}

// TestStepsCountNoFormerMemberOfAStage: a cluster that was a canary, and is in the next stage now, is no canary that the
// revert admits.
func TestStepsCountNoFormerMemberOfAStage(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3", "c4")
	s.place("three", "c1", "c2", "c3")
	s.place("two", "c1", "c2")
	canary := func(placement string) {
		s.oneByOne()
		ro := s.rollout()
		everyone, two := ro.Spec.Stages[0], intstr.FromInt32(2)
		first := v1alpha1.Stage{
			Name: "canary", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: placement}, MaxConcurrency: &two, ProgressDeadline: "None",
		}
		ro.Spec.Stages = []v1alpha1.Stage{first, everyone}
		s.update(ro)
	}
	canary("three")
	s.target("v1")
	s.settle()
	canary("two")
	s.settle()
	s.target("v2")
	s.turns(2)
	lines := s.logged()
	s.target("v1")
	s.turn()
	admitted := 0
	for _, l := range *lines {
		if l.Msg != "Admitted" || l.Stage != "canary" || l.Cluster != "" {
			continue
		}
		if admitted++; l.Clusters != 2 || l.Reason != "+2: c1, c2" {
			t.Errorf("%d clusters: %s", l.Clusters, l.Reason)
		}
	}
	if admitted == 0 {
		t.Error("no canary is admitted")
	}
}
