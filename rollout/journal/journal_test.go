package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	waiting    = v1alpha1.ClusterWaiting
	admitted   = v1alpha1.ClusterAdmitted
	updating   = v1alpha1.ClusterUpdating
	soaking    = v1alpha1.ClusterSoaking
	done       = v1alpha1.ClusterDone
	failed     = v1alpha1.ClusterFailed
	timedOut   = v1alpha1.ClusterTimedOut
	notWritten = v1alpha1.ClusterNotWritten
	lost       = v1alpha1.ClusterLost
	parked     = v1alpha1.ClusterParked
	left       = v1alpha1.ClusterLeft
	leftFailed = v1alpha1.ClusterLeftFailed
)

// TestEveryChangeOfARecordIsOneDecision: each pair of states has the decision that the
// table names.
func TestEveryChangeOfARecordIsOneDecision(t *testing.T) {
	states := []v1alpha1.ClusterState{waiting, admitted, updating, soaking, done, failed, timedOut, lost, parked, left, leftFailed, notWritten}
	want := map[v1alpha1.ClusterState][]Kind{
		// to:    waiting admitted  updating   soaking   done      failed    timedOut  lost      parked    left      leftFailed notWritten
		admitted:   {Admitted, "", "", SoakReset, Repaired, Admitted, Admitted, Returned, Admitted, Admitted, Admitted, Admitted},
		updating:   {Adopted, Moved, "", SoakReset, Moved, Moved, Moved, Returned, Returned, Returned, Returned, Moved},
		soaking:    {Verified, Verified, Verified, "", Verified, Recovered, Recovered, Returned, Returned, Returned, Returned, Verified},
		done:       {"", Verified, Verified, Soaked, "", Recovered, Recovered, Verified, Verified, Verified, Verified, Verified},
		failed:     {Failed, Failed, Failed, Failed, Failed, "", Failed, Failed, Failed, Failed, Returned, Failed},
		timedOut:   {TimedOut, TimedOut, TimedOut, TimedOut, TimedOut, TimedOut, "", TimedOut, TimedOut, TimedOut, TimedOut, TimedOut},
		lost:       {Lost, Lost, Lost, Lost, Lost, Lost, Lost, "", Lost, Lost, Lost, Lost},
		parked:     {Parked, Parked, Parked, Parked, Parked, Parked, Parked, Parked, "", Parked, Parked, Parked},
		left:       {Left, Left, Left, Left, Left, Left, Left, Left, Left, "", Left, Left},
		leftFailed: {Left, Left, Left, Left, Left, Left, Left, Left, Left, Left, "", Left},
		notWritten: {Failed, Failed, Failed, Failed, Failed, Failed, Failed, Failed, Failed, Failed, Returned, ""},
	}
	for to, kinds := range want {
		for i, from := range states {
			var before []Standing
			if from != waiting {
				before = []Standing{{Cluster: "c", Revision: "r", Stage: "s", State: from}}
			}
			var got Kind
			if d := Clusters(before, []Standing{{Cluster: "c", Revision: "r", Stage: "s", State: to, Reason: "why"}}); len(d) > 0 {
				last := d[len(d)-1]
				got = last.Kind
				if d[0].From != string(from) || last.To != string(to) || last.Reason != "why" {
					t.Errorf("from %s to %s: %+v", from, to, d)
				}
			}
			if got != kinds[i] {
				t.Errorf("from %s to %s is %q, want %q", from, to, got, kinds[i])
			}
		}
	}
}

// TestARecordThatTakesTheNewRevisionIsKept: its state did not change, its revision did.
func TestARecordThatTakesTheNewRevisionIsKept(t *testing.T) {
	before := []Standing{{Cluster: "a", Revision: "old", State: soaking}, {Cluster: "b", Revision: "old", State: admitted}, {Cluster: "gone", Revision: "old", State: done}}
	after := []Standing{{Cluster: "a", Revision: "new", State: soaking}, {Cluster: "b", Revision: "new", State: admitted}}
	got := Clusters(before, after)
	if len(got) != 2 || got[0].Kind != Kept || got[1].Kind != Admitted {
		t.Errorf("got %+v", got)
	}
}

// TestASoakThatStartsAnewIsADecision: the cluster was away while no operator looked.
func TestASoakThatStartsAnewIsADecision(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	before := []Standing{{Cluster: "a", Revision: "r", Stage: "s", State: soaking, Since: noon}}
	after := []Standing{{Cluster: "a", Revision: "r", Stage: "s", State: soaking, Since: noon.Add(time.Minute)}}
	got := Clusters(before, after)
	if len(got) != 1 || got[0].Kind != SoakReset {
		t.Fatalf("got %+v", got)
	}
	if steps := Steps(got, before, after, map[string]int{"s": 4}); len(steps) != 1 || steps[0].Kind != SoakReset || steps[0].Count != 1 {
		t.Errorf("got %+v", steps)
	}
}

// TestAMoveThatWasVerifiedAtOnceIsTwoDecisions: the works were written and verified between two looks.
func TestAMoveThatWasVerifiedAtOnceIsTwoDecisions(t *testing.T) {
	got := Clusters([]Standing{{Cluster: "a", Revision: "r", State: admitted}}, []Standing{{Cluster: "a", Revision: "r", State: done}})
	if len(got) != 2 || got[0].Kind != Moved || got[0].To != string(updating) || got[1].Kind != Verified || got[1].From != string(updating) {
		t.Errorf("got %+v", got)
	}
}

// TestATenThousandClustersMakeTensOfSteps: the info log and the journal stay readable.
func TestATenThousandClustersMakeTensOfSteps(t *testing.T) {
	const clusters, limit = 10_000, 1_000
	states := make([]v1alpha1.ClusterState, clusters) // "" waits
	standings := func() []Standing {
		var out []Standing
		for i, s := range states {
			if s != "" {
				out = append(out, Standing{Cluster: fmt.Sprintf("c%05d", i), Revision: "r", Stage: "everyone", State: s})
			}
		}
		return out
	}
	next := map[v1alpha1.ClusterState]v1alpha1.ClusterState{admitted: updating, updating: soaking, soaking: done}
	steps, decided, before := 0, 0, standings()
	for turn := 0; ; turn++ {
		flying, moved := 0, false
		for i, s := range states {
			if to, ok := next[s]; ok {
				flying++
				if (i+turn)%7 == 0 { // clusters are of different speed
					states[i] = to
				}
				moved = true
			}
		}
		for i := range states {
			if states[i] == "" && flying < limit {
				states[i] = admitted
				flying, moved = flying+1, true
			}
		}
		after := standings()
		of := Clusters(before, after)
		decided += len(of)
		steps += len(Steps(of, before, after, map[string]int{"everyone": clusters}))
		before = after
		if !moved {
			break
		}
	}
	if decided != 4*clusters {
		t.Errorf("%d decisions about clusters, want 4 of each", decided)
	}
	t.Logf("%d decisions about clusters make %d steps", decided, steps)
	if steps < 4 || steps > 80 {
		t.Errorf("%d steps, want tens", steps)
	}
}

// TestRepairsOfAWholeFleetLeaveTheJournalOfTheRollout: every cluster that was Done is written again, 25 at a time. No stage
// is admitted, moved or verified again, and the decisions of the rollout stay in the journal.
func TestRepairsOfAWholeFleetLeaveTheJournalOfTheRollout(t *testing.T) {
	const clusters, batch = 10_000, 25
	journal := Append(nil, metav1.Time{}, []Decision{{Kind: Started, Commit: "c"}, {Kind: Admitted, Stage: "everyone", Commit: "c", Count: clusters}, {Kind: Succeeded, Commit: "c"}})
	standings := make([]Standing, clusters)
	for i := range standings {
		standings[i] = Standing{Cluster: fmt.Sprintf("c%05d", i), Revision: "r", Stage: "everyone", State: done}
	}
	next := func(state v1alpha1.ClusterState, from int) {
		after := slices.Clone(standings)
		for i := from; i < min(from+batch, clusters); i++ {
			after[i].State, after[i].Reason = state, "its works were deleted"
		}
		steps := Steps(Clusters(standings, after), standings, after, nil)
		for _, s := range steps {
			if s.Kind != Repaired || s.Count != batch {
				t.Fatalf("a repair makes %+v", s)
			}
		}
		journal, standings = Append(journal, metav1.Time{}, steps), after
	}
	for from := 0; from < clusters; from += batch {
		for _, state := range []v1alpha1.ClusterState{admitted, updating, soaking, done} {
			next(state, from)
		}
	}
	if len(journal) != 4 || journal[0].Decision != "Started" || journal[3].Decision != "Repaired" || journal[3].Clusters != clusters {
		t.Errorf("the journal is %+v", journal)
	}
	if last := journal[len(journal)-1]; !strings.Contains(last.Reason, "c09975: its works were deleted") {
		t.Errorf("the newest repairs are not named: %s", last.Reason)
	}
}

// TestRepairsOfAWholeFleetAreFewLines: the log has the repairs of a stage once, and not once for each batch.
func TestRepairsOfAWholeFleetAreFewLines(t *testing.T) {
	const clusters, batch = 10_000, 100
	state := func(i, from int) v1alpha1.ClusterState {
		if i >= from && i < from+batch {
			return admitted
		}
		return done
	}
	standings := func(from int) []Standing {
		all := make([]Standing, clusters)
		for i := range all {
			all[i] = Standing{Cluster: fmt.Sprintf("c%05d", i), Revision: "r", Stage: "everyone", State: state(i, from)}
		}
		return all
	}
	before, lines, repaired := standings(clusters), 0, 0
	for from := 0; from < clusters; from += batch {
		after := standings(from)
		for _, s := range Steps(Clusters(before, after), before, after, nil) {
			if s.Kind == Repaired {
				repaired += s.Count
			}
			if !s.Continues {
				lines++
			}
		}
		before = after
	}
	if lines != 1 || repaired != clusters {
		t.Errorf("%d repairs make %d lines", repaired, lines)
	}
}

// TestRepairsOfOneClusterAreOneEntry: a writer that changes a work again and again evicts no other decision.
func TestRepairsOfOneClusterAreOneEntry(t *testing.T) {
	journal := Append(nil, metav1.Time{}, []Decision{{Kind: Halted, Stage: "canary", Commit: "c"}})
	for range 1000 {
		of := []Decision{{Kind: Repaired, Cluster: "eu-02", Stage: "everyone", Commit: "c", Reason: "work addon-hello-deploy-0 differed"}}
		steps := Steps(of, nil, nil, nil)
		steps[0].Commit = "c"
		journal = Append(journal, metav1.Time{}, steps)
	}
	if len(journal) != 2 || journal[0].Decision != "Halted" || journal[1].Clusters != 1000 {
		t.Errorf("the journal is %+v", journal)
	}
}

// TestAFailureIsNamedWithItsReason: the decision of the step and that of the cluster have the reason.
func TestAFailureIsNamedWithItsReason(t *testing.T) {
	before := []Standing{{Cluster: "a", Revision: "r", Stage: "canary", State: updating}}
	after := []Standing{{Cluster: "a", Revision: "r", Stage: "canary", State: failed, Reason: "Deployment hello: ImagePullBackOff"}}
	got := Steps(Clusters(before, after), before, after, map[string]int{"canary": 1})
	if len(got) != 1 || got[0].Kind != Failed || got[0].Count != 1 || got[0].Reason != "a: Deployment hello: ImagePullBackOff" {
		t.Errorf("got %+v", got)
	}
}

// TestJournalIsBounded: whatever is appended, it has at most 100 entries and 16 KiB, and
// the newest are kept.
func TestJournalIsBounded(t *testing.T) {
	for name, reason := range map[string]string{
		"short": "why", "long": strings.Repeat("long ", 100), "wide": strings.Repeat("ü", 500), "escaped": strings.Repeat("\"<\x01\\", 100),
	} {
		var journal []v1alpha1.JournalEntry
		for i := range 250 {
			journal = Append(journal, metav1.NewTime(time.Unix(int64(i), 0).UTC()), []Decision{{
				Kind: StageCompleted, Commit: "main@sha1:0123456789abcdef0123456789abcdef01234567", Stage: strings.Repeat("s", 63), Count: 50_000, Reason: reason,
			}})
			text, err := json.Marshal(journal)
			if err != nil {
				t.Fatal(err)
			}
			if len(journal) > v1alpha1.JournalEntries || len(text) > v1alpha1.JournalBytes {
				t.Fatalf("%s: %d entries in %d bytes", name, len(journal), len(text))
			}
		}
		if last := journal[len(journal)-1]; last.At.Unix() != 249 || last.Commit != "0123456789ab" {
			t.Errorf("%s: the newest entry is %+v", name, last)
		}
		if len(journal) < 10 {
			t.Errorf("%s: only %d entries are left", name, len(journal))
		}
	}
}

// TestAppendLeavesItsArgument: a status that is compared with the next one stays as it is.
func TestAppendLeavesItsArgument(t *testing.T) {
	all := make([]v1alpha1.JournalEntry, 8)
	Append(all[:1], metav1.Time{}, []Decision{{Kind: Started}})
	if all[1].Decision != "" {
		t.Errorf("written behind the argument: %+v", all[1])
	}
}

// TestRolloutDecisionsNameTargetStagesAndEnd: a failed rollout and its revert.
func TestRolloutDecisionsNameTargetStagesAndEnd(t *testing.T) {
	target := func(name string) *v1alpha1.Target {
		return &v1alpha1.Target{Digest: name, Commit: "main@sha1:" + strings.Repeat(name, 40)}
	}
	status := func(name string, phase v1alpha1.Phase, canary, everyone string) v1alpha1.AddOnRolloutStatus {
		return v1alpha1.AddOnRolloutStatus{
			Target: target(name), Phase: phase, Message: "because",
			Stages: []v1alpha1.StageStatus{{Name: "canary", Phase: canary}, {Name: "everyone", Phase: everyone}},
		}
	}
	reverting := status("a", v1alpha1.PhaseProgressing, "Progressing", "Waiting")
	reverting.Reverting = true
	story := []v1alpha1.AddOnRolloutStatus{
		{},
		status("a", v1alpha1.PhaseProgressing, "Progressing", "Waiting"),
		status("a", v1alpha1.PhaseProgressing, "Soaking", "Waiting"),
		status("a", v1alpha1.PhaseProgressing, "Complete", "Progressing"),
		status("a", v1alpha1.PhaseSucceeded, "Complete", "Complete"),
		status("b", v1alpha1.PhaseProgressing, "Progressing", "Waiting"),
		status("b", v1alpha1.PhaseFailed, "Failed", "Waiting"),
		reverting,
		status("a", v1alpha1.PhaseSucceeded, "Complete", "NothingToDo"),
		status("c", v1alpha1.PhaseProgressing, "Progressing", "Waiting"),
		status("d", v1alpha1.PhaseProgressing, "Progressing", "Waiting"),
		status("d", v1alpha1.PhaseSucceeded, "Progressing", "NothingToDo"),
		status("d", v1alpha1.PhaseSucceeded, "Progressing", "Complete"), // a cluster of it is repaired
	}
	var got []string
	for i := 1; i < len(story); i++ {
		for _, d := range Rollout(story[i-1], story[i]) {
			got = append(got, strings.TrimSpace(string(d.Kind)+" "+d.Stage))
		}
	}
	want := []string{
		"Started", "StageStarted canary", "StageCompleted canary", "StageStarted everyone", "StageCompleted everyone", "Succeeded",
		"Started", "StageStarted canary", "Halted canary",
		"Reverted", "StageStarted canary", "StageCompleted canary", "Succeeded",
		"Started", "StageStarted canary", "Superseded", "Started", "StageStarted canary", "Succeeded",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

// BenchmarkTurn is a turn of 10,000 clusters in which 100 move on.
func BenchmarkTurn(b *testing.B) {
	const clusters = 10_000
	before, after := make([]Standing, clusters), make([]Standing, clusters)
	for i := range clusters {
		before[i] = Standing{Cluster: fmt.Sprintf("eu-west-1-prod-%05d", i), Revision: "r", Stage: "everyone", State: done}
		if i%100 == 0 {
			before[i].State = updating
		}
		after[i] = before[i]
		after[i].State = done
	}
	for b.Loop() {
		Steps(Clusters(before, after), before, after, map[string]int{"everyone": clusters})
	}
}

// TestStartSaysWhatTheContentReplaces: if the status was lost, that is the content that succeeded last.
func TestStartSaysWhatTheContentReplaces(t *testing.T) {
	older, newer := v1alpha1.Target{Digest: "a", Commit: "main@a"}, v1alpha1.Target{Digest: "b", Commit: "main@b"}
	for name, tc := range map[string]struct {
		before, next v1alpha1.AddOnRolloutStatus
		want         string
	}{
		"FirstContent":           {next: v1alpha1.AddOnRolloutStatus{Target: &newer}, want: "Started: the first content of this add-on"},
		"NewContent":             {before: v1alpha1.AddOnRolloutStatus{Target: &older}, next: v1alpha1.AddOnRolloutStatus{Target: &newer}, want: "Started: replaces main@a"},
		"LostStatus":             {next: v1alpha1.AddOnRolloutStatus{Target: &newer, Stable: &older}, want: "Started: replaces main@a"},
		"Revert":                 {before: v1alpha1.AddOnRolloutStatus{Target: &older}, next: v1alpha1.AddOnRolloutStatus{Target: &newer, Reverting: true}, want: "Reverted: to content that succeeded here before; replaces main@a"},
		"LostStatusOfAnEndedOne": {next: v1alpha1.AddOnRolloutStatus{Target: &newer, Stable: &newer, Reverting: true}, want: "Reverted: to content that succeeded here before"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Rollout(tc.before, tc.next)
			if i := slices.IndexFunc(d, func(d Decision) bool { return d.Kind == Started || d.Kind == Reverted }); i < 0 || string(d[i].Kind)+": "+d[i].Reason != tc.want {
				t.Errorf("the decisions are %+v, want %s", d, tc.want)
			}
		})
	}
}

// TestGatesRemoved_NamesTheVerdictThatAPolicyLifts: a gate that failed is renamed or removed, alone or with its stage, by
// a commit that declares no other content.
func TestGatesRemoved_NamesTheVerdictThatAPolicyLifts(t *testing.T) {
	failed := v1alpha1.GateStatus{Name: "qa", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateFailed, Reason: "rejected by alice"}
	waiting := v1alpha1.GateStatus{Name: "qb", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting}
	status := func(attempt int32, gates ...v1alpha1.GateStatus) v1alpha1.AddOnRolloutStatus {
		return v1alpha1.AddOnRolloutStatus{
			Target: &v1alpha1.Target{Digest: "v2", Commit: "main@sha1:bbb"}, Attempt: attempt,
			Stages: []v1alpha1.StageStatus{{Name: "fleet", Gates: gates}},
		}
	}
	policy := func(gates ...string) v1alpha1.AddOnRolloutSpec {
		stage := v1alpha1.Stage{Name: "fleet", Gates: &v1alpha1.Gates{}}
		for _, name := range gates {
			stage.Gates.Before = append(stage.Gates.Before, v1alpha1.Gate{Name: name})
		}
		return v1alpha1.AddOnRolloutSpec{PolicyCommit: "main@sha1:ccc", Stages: []v1alpha1.Stage{stage}}
	}
	lifted := []Decision{{
		Kind: GateRemoved, Commit: "main@sha1:ccc", Stage: "fleet", From: "Failed", Reason: "the policy no longer has approval qa: rejected by alice",
	}}
	for name, c := range map[string]struct {
		next v1alpha1.AddOnRolloutStatus
		spec v1alpha1.AddOnRolloutSpec
		want []Decision
	}{
		"renamed":                  {status(1, waiting), policy("qb"), lifted},
		"removed":                  {status(1), policy(), lifted},
		"removed with its stage":   {v1alpha1.AddOnRolloutStatus{Target: status(1).Target, Attempt: 1}, v1alpha1.AddOnRolloutSpec{PolicyCommit: "main@sha1:ccc"}, lifted},
		"kept":                     {status(1, failed), policy("qa"), nil},
		"not planned":              {status(1, failed), policy(), nil},
		"another attempt":          {status(2), policy("qa"), nil},
		"removed in a new attempt": {status(2), policy(), nil},
	} {
		if got := GatesRemoved(status(1, failed), c.next, c.spec); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
