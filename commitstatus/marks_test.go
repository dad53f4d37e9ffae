package commitstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/commitstatus"
)

const (
	oldSHA = "1111111111111111111111111111111111111111"
	newSHA = "2222222222222222222222222222222222222222"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// accept lets a forge accept everything that is due.
func accept(marks []commitstatus.Mark, now time.Time) []commitstatus.Mark {
	marks, _ = commitstatus.Begin("gitea", marks, now)
	var results []commitstatus.Result
	for _, m := range marks {
		if m.Posting != nil {
			results = append(results, commitstatus.Result{Of: m, Shows: *m.Posting, At: now.Unix()})
		}
	}
	return commitstatus.WithResults(marks, results)
}

// say is a want of the old commit with content a.
func say(state commitstatus.State, text string, edit ...func(*commitstatus.Want)) commitstatus.Want {
	w := commitstatus.Want{SHA: oldSHA, Context: "c", State: state, Description: text, Content: "a"}
	for _, e := range edit {
		e(&w)
	}
	return w
}

func older(w *commitstatus.Want) { w.Older = true }
func other(w *commitstatus.Want) { w.Content = "b" }
func failed(clusters string) func(*commitstatus.Want) {
	return func(w *commitstatus.Want) { w.Held = clusters }
}

// words of the newest statement.
func words(m commitstatus.Mark) string {
	last := commitstatus.Last(m)
	if last == nil {
		return ""
	}
	return last.State + ": " + last.Description
}

// TestEnter has a row for each change of a context. After a final status only a failure, other content
// and the end of a failure change it; a cluster that joins does not.
func TestEnter(t *testing.T) {
	const pending, success, failure, superseded = commitstatus.Pending, commitstatus.Success, commitstatus.Failure, commitstatus.Error
	for name, c := range map[string]struct {
		before []commitstatus.Want
		now    commitstatus.Want
		want   string
		owed   bool
	}{
		"First":                  {nil, say(pending, "0/2"), "pending: 0/2", true},
		"Same":                   {[]commitstatus.Want{say(pending, "0/2")}, say(pending, "0/2"), "pending: 0/2", false},
		"Progress":               {[]commitstatus.Want{say(pending, "0/2")}, say(pending, "1/2"), "pending: 1/2", true},
		"ProgressOfAnOlder":      {[]commitstatus.Want{say(pending, "0/2")}, say(pending, "1/2", older), "pending: 0/2", false},
		"VerdictOfAnOlder":       {[]commitstatus.Want{say(pending, "0/2")}, say(success, "2/2", older), "success: 2/2", true},
		"Joiner":                 {[]commitstatus.Want{say(success, "2/2")}, say(pending, "2/3"), "success: 2/2", false},
		"JoinerIsDone":           {[]commitstatus.Want{say(success, "2/2")}, say(success, "3/3"), "success: 2/2", false},
		"FailureAfterSuccess":    {[]commitstatus.Want{say(success, "2/2")}, say(failure, "halted"), "failure: halted", true},
		"AnOlderKeepsItsVerdict": {[]commitstatus.Want{say(success, "2/2")}, say(failure, "halted", older), "success: 2/2", false},
		"OtherContent":           {[]commitstatus.Want{say(success, "2/2")}, say(pending, "0/2", other), "pending: 0/2", true},
		"FailureGrows":           {[]commitstatus.Want{say(failure, "1 failed (x: a)", failed("x"))}, say(failure, "2 failed (x: a; y: b)", failed("x y")), "failure: 2 failed (x: a; y: b)", true},
		"FailureShrinks":         {[]commitstatus.Want{say(failure, "2 failed (x: a; y: b)", failed("x y"))}, say(failure, "1 failed (y: b)", failed("y")), "failure: 1 failed (y: b)", true},
		"OthersFail":             {[]commitstatus.Want{say(failure, "1 failed (x: a)", failed("x"))}, say(failure, "1 failed (y: b)", failed("y")), "failure: 1 failed (y: b)", true},
		"OtherWordsOfAFailure":   {[]commitstatus.Want{say(failure, "1 failed (x: a), 2 untouched", failed("x"))}, say(failure, "1 failed (x: b), 3 untouched", failed("x")), "failure: 1 failed (x: a), 2 untouched", false},
		"Resumed":                {[]commitstatus.Want{say(failure, "halted")}, say(pending, "1/2"), "pending: resumed: 1/2", true},
		"FailureIsOver":          {[]commitstatus.Want{say(failure, "halted")}, say(success, "2/2"), "success: 2/2", true},
		"HeadAgain":              {[]commitstatus.Want{say(superseded, "superseded by x")}, say(pending, "0/2"), "pending: 0/2", true},
	} {
		t.Run(name, func(t *testing.T) {
			var marks []commitstatus.Mark
			for _, w := range c.before {
				marks = accept(commitstatus.Enter(marks, w), noon)
			}
			marks = commitstatus.Enter(marks, c.now)
			if got := words(marks[0]); got != c.want || (marks[0].Owed != nil) != c.owed {
				t.Errorf("says %q, owed %v; want %q, %t", got, marks[0].Owed, c.want, c.owed)
			}
			again := commitstatus.Enter(marks, c.now)
			if fmt.Sprint(again[0].Owed) == "" || words(again[0]) != words(marks[0]) {
				t.Errorf("the same want changed the mark: %q", words(again[0]))
			}
		})
	}
}

// TestDuePacesProgressOnly: the first pending and every verdict go at once; progress waits.
func TestDuePacesProgressOnly(t *testing.T) {
	marks := accept(commitstatus.Enter(nil, say(commitstatus.Pending, "0/20")), noon)
	step := func(percent int) func(*commitstatus.Want) { return func(w *commitstatus.Want) { w.Progress = percent } }
	little := commitstatus.Enter(marks, say(commitstatus.Pending, "1/20", step(5)))
	much := commitstatus.Enter(marks, say(commitstatus.Pending, "2/20", step(10)))
	verdict := commitstatus.Enter(marks, say(commitstatus.Failure, "halted"))
	grown := commitstatus.Enter(accept(commitstatus.Enter(marks, say(commitstatus.Failure, "1 failed (x: a)", failed("x"))), noon), say(commitstatus.Failure, "2 failed (x: a)", failed("x y")))
	replaced := commitstatus.Overtake(grown, commitstatus.Succession{Live: []string{newSHA}, By: newSHA, Whole: "c"})
	reopened := commitstatus.Enter(accept(verdict, noon), say(commitstatus.Pending, "1/20"))
	hold := func(why string) func(*commitstatus.Want) { return func(w *commitstatus.Want) { w.Held = why } }
	held := commitstatus.Enter(marks, say(commitstatus.Pending, "0/20, held", hold("no placement")))
	onHold := accept(held, noon.Add(time.Hour))
	onHold[0].AcceptedAt = noon.Unix()
	another := commitstatus.Enter(onHold, say(commitstatus.Pending, "0/20, held otherwise", hold("no cluster")))
	resumed := commitstatus.Enter(onHold, say(commitstatus.Pending, "0/20, 1 in flight"))
	counted := commitstatus.Enter(onHold, say(commitstatus.Pending, "0/20, held; another 1/30", hold("no placement")))
	for name, c := range map[string]struct {
		mark commitstatus.Mark
		due  bool
		wait time.Duration
	}{
		"LessThanTenPercent": {little[0], false, commitstatus.StandstillInterval},
		"TenPercent":         {much[0], false, commitstatus.ProgressInterval},
		"Hold":               {held[0], false, commitstatus.ProgressInterval},
		"AnotherHold":        {another[0], false, commitstatus.ProgressInterval},
		"HoldIsOver":         {resumed[0], false, commitstatus.ProgressInterval},
		"CountsBesideAHold":  {counted[0], false, commitstatus.StandstillInterval},
		"Verdict":            {verdict[0], true, 0},
		"AnotherFailure":     {grown[0], false, commitstatus.ProgressInterval},
		"OfAReplacedCommit":  {replaced[0], true, 0},
		"FailureIsOver":      {reopened[0], true, 0},
		"Nothing":            {marks[0], false, 0},
	} {
		if due, wait := commitstatus.Due("gitea", c.mark, noon); due != c.due || wait != c.wait {
			t.Errorf("%s: due %t after %s, want %t after %s", name, due, wait, c.due, c.wait)
		}
	}
	if due, _ := commitstatus.Due("gitea", much[0], noon.Add(commitstatus.ProgressInterval)); !due {
		t.Error("progress is due after its interval")
	}
	much[0].ProgressPosts = commitstatus.ProgressPostLimit
	if due, wait := commitstatus.Due("gitea", much[0], noon.Add(time.Hour)); due || wait != 0 {
		t.Error("progress posts are limited")
	}
	reopened[0].ProgressPosts = commitstatus.ProgressPostLimit
	if due, _ := commitstatus.Due("gitea", reopened[0], noon.Add(time.Hour)); due {
		t.Error("a context that fails again and again is posted without limit")
	}
	grown[0].Owed, grown[0].ProgressPosts = nil, commitstatus.StandstillPostLimit
	if grown = commitstatus.Enter(grown, say(commitstatus.Failure, "3 failed (x: a)", failed("x y z"))); grown[0].Owed != nil {
		t.Error("clusters that fail and recover again and again are posted without limit")
	}
	future := much[0]
	future.ProgressPosts, future.AcceptedAt = 1, noon.Add(2*time.Hour).Unix()
	if _, wait := commitstatus.Due("gitea", future, noon); wait > commitstatus.ProgressInterval {
		t.Errorf("a clock that was ahead holds nothing for %s", wait)
	}
}

// TestCommitsThatAreNotLiveAnyMoreAreSuperseded: each row has the marks of a commit, what follows it,
// and the last statement of its context.
func TestCommitsThatAreNotLiveAnyMoreAreSuperseded(t *testing.T) {
	by := commitstatus.Succession{Live: []string{newSHA}, By: newSHA, Contents: []string{"b"}, Whole: "c"}
	equal := by
	equal.Contents = []string{"a"}
	judged := equal
	judged.Wants = []commitstatus.Want{say(commitstatus.Success, "2/2")}
	accepted := accept(commitstatus.Enter(nil, say(commitstatus.Pending, "0/2")), noon)
	moving := commitstatus.Enter(accepted, say(commitstatus.Pending, "1/2")) // the newest commit posts it
	stage := commitstatus.Enter(nil, say(commitstatus.Pending, "0/2", func(w *commitstatus.Want) { w.Context = "c/stage" }))
	for name, c := range map[string]struct {
		marks []commitstatus.Mark
		s     commitstatus.Succession
		want  string
	}{
		"OtherContent":             {accepted, by, "error: superseded by 2222222222"},
		"EqualContentWaits":        {accepted, equal, "pending: 0/2"},
		"EqualContentJudged":       {accepted, judged, "success: 2/2"},
		"EqualContentMoves":        {moving, equal, "pending: 0/2"},
		"EqualContentMovedBefore":  {commitstatus.Overtake(moving, equal), judged, "success: 2/2"},
		"StageFollowsWhole":        {accept(stage, noon), judged, "success: 2/2"},
		"NotAccepted":              {commitstatus.Enter(nil, say(commitstatus.Pending, "0/2")), by, "error: superseded by 2222222222"},
		"StageNotAccepted":         {stage, by, ""},
		"VerdictStands":            {accept(commitstatus.Enter(nil, say(commitstatus.Failure, "no")), noon), by, "failure: no"},
		"FailureThatResumedUnseen": {commitstatus.Enter(accept(commitstatus.Enter(nil, say(commitstatus.Failure, "no")), noon), say(commitstatus.Pending, "0/2")), by, "failure: no"},
		"VerdictNotDelivered":      {commitstatus.Enter(accepted, say(commitstatus.Failure, "no")), by, "failure: no"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commitstatus.Overtake(c.marks, c.s)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("kept %q", words(got[0]))
			case c.want != "" && (len(got) != 1 || words(got[0]) != c.want):
				t.Errorf("got %v, want %q", got, c.want)
			}
			twice := commitstatus.Overtake(got, c.s)
			if fmt.Sprint(len(twice)) != fmt.Sprint(len(got)) {
				t.Error("overtaking twice is not overtaking once")
			}
		})
	}
}

// TestPruneKeepsWhatIsOwed: a verdict that the forge has not accepted stays, and so do those
// of the newest commits if there are too many.
func TestPruneKeepsWhatIsOwed(t *testing.T) {
	var marks []commitstatus.Mark
	for i := range commitstatus.KeptLimit + 2 {
		sha := fmt.Sprintf("%040d", i)
		marks = commitstatus.Enter(marks, commitstatus.Want{SHA: sha, Context: "c", State: commitstatus.Failure})
	}
	got := commitstatus.Prune(marks)
	if len(got) != commitstatus.KeptLimit || got[0].SHA != fmt.Sprintf("%040d", 2) {
		t.Errorf("%d kept, the oldest is %s", len(got), got[0].SHA)
	}
	if got := commitstatus.Prune(accept(marks, noon)); len(got) != 0 {
		t.Errorf("%d kept that the forge has", len(got))
	}
	if got := commitstatus.Prune(accept(marks, noon), marks[0].SHA); len(got) != 1 {
		t.Errorf("%d kept of a live commit, want 1", len(got))
	}
	if !strings.HasPrefix(words(got[0]), "failure") {
		t.Error("the verdict is kept")
	}
}
