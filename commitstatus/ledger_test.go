package commitstatus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
)

const (
	hello   = "addonflow/hello"
	otherBy = "abcdef0123456789abcdef0123456789abcdef01"
)

// report returns a first attempt of hello.
func report(state commitstatus.State, description string, changes ...func(*commitstatus.Report)) commitstatus.Report {
	r := commitstatus.Report{SHA: testSHA, Context: hello, Attempt: 1, State: state, Description: description}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// attempt makes the report one of a later attempt.
func attempt(n int) func(*commitstatus.Report) {
	return func(r *commitstatus.Report) { r.Attempt = n }
}

// accepted makes the forge hold what the report says, since second 1000.
func accepted(r *commitstatus.Report) { *r = commitstatus.Accepted(*r, time.Unix(1000, 0)) }

// since makes second s the last in which the forge accepted something.
func since(s int64) func(*commitstatus.Report) {
	return func(r *commitstatus.Report) { r.PostedAt = s }
}

// claimedAt makes second s the last in which a process tried to tell the forge.
func claimedAt(s int64) func(*commitstatus.Report) {
	return func(r *commitstatus.Report) { r.ClaimedAt = s }
}

// progress sets how far the report is.
func progress(percent int) func(*commitstatus.Report) {
	return func(r *commitstatus.Report) { r.Progress = percent }
}

func TestWant(t *testing.T) {
	refused := func(r *commitstatus.Report) { r.Stopped, r.LastError, r.FailedTries = true, "no", 1 }
	waiting := func(r *commitstatus.Report) { r.NextTry, r.LastError, r.FailedTries = 2000, "later", 2 }
	cases := map[string]struct {
		reason   string
		reports  []commitstatus.Report
		state    commitstatus.State
		text     string
		progress int
		want     []commitstatus.Report
	}{
		"First": {
			"A new context begins with attempt 1.",
			nil, commitstatus.Pending, "0/2", 0,
			[]commitstatus.Report{report(commitstatus.Pending, "0/2")},
		},
		"Progress": {
			"A pending text replaces the one before; what the forge has stays known.",
			[]commitstatus.Report{report(commitstatus.Pending, "0/2", accepted)},
			commitstatus.Pending, "1/2", 150,
			[]commitstatus.Report{report(commitstatus.Pending, "0/2", accepted, func(r *commitstatus.Report) { r.Description, r.Progress = "1/2", 100 })},
		},
		"Verdict": {
			"A verdict closes the attempt.",
			[]commitstatus.Report{report(commitstatus.Pending, "1/2")},
			commitstatus.Failure, "eu-1", 0,
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1")},
		},
		"SameVerdict": {
			"The text of a verdict is final, delivered or not.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1")},
			commitstatus.Failure, "eu-1, eu-2", 0,
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1")},
		},
		"GreenAfterRed": {
			"Another state after a verdict is another attempt.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", accepted)},
			commitstatus.Success, "2/2", 100,
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", accepted), report(commitstatus.Success, "2/2", attempt(2), progress(100), since(1000))},
		},
		"GreenAfterUntoldRed": {
			"A verdict that the forge has not heard is not forgotten.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", waiting)},
			commitstatus.Pending, "retry", 0,
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", waiting), report(commitstatus.Pending, "retry", attempt(2))},
		},
		"ShutAgain": {
			"Nobody was told that the context was open again: the verdict holds.",
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted), report(commitstatus.Pending, "1 to leave", attempt(2), since(1000))},
			commitstatus.Success, "none", 100,
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted)},
		},
		"ShutAgainUntold": {
			"The forge has yet to hear the verdict, once.",
			[]commitstatus.Report{report(commitstatus.Success, "none", waiting), report(commitstatus.Pending, "1 to leave", attempt(2))},
			commitstatus.Success, "none", 100,
			[]commitstatus.Report{report(commitstatus.Success, "none", waiting)},
		},
		"SecondFailure": {
			"A verdict for another reason is told, also when nobody heard of what was between.",
			[]commitstatus.Report{report(commitstatus.Failure, "halted in canary", accepted), report(commitstatus.Pending, "5/9", attempt(2), since(1000))},
			commitstatus.Failure, "halted in everyone", 60,
			[]commitstatus.Report{report(commitstatus.Failure, "halted in canary", accepted), report(commitstatus.Failure, "halted in everyone", attempt(2), since(1000), progress(60))},
		},
		"ShutOtherwise": {
			"Another verdict is told, also when nobody heard of what was between.",
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted), report(commitstatus.Pending, "1 to leave", attempt(2), since(1000))},
			commitstatus.Failure, "stuck", 90,
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted), report(commitstatus.Failure, "stuck", attempt(2), since(1000), progress(90))},
		},
		"ShutWhileTold": {
			"Somebody may have told the forge that it was open again, which is to be ended.",
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted), report(commitstatus.Pending, "1 to leave", attempt(2), since(1000), claimedAt(1030))},
			commitstatus.Success, "nobody", 100,
			[]commitstatus.Report{report(commitstatus.Success, "none", accepted), report(commitstatus.Success, "nobody", attempt(2), since(1000), claimedAt(1030), progress(100))},
		},
		"RefusedText": {
			"A refusal for good holds for other texts of the same state.",
			[]commitstatus.Report{report(commitstatus.Pending, "0/2", refused)},
			commitstatus.Pending, "1/2", 0,
			[]commitstatus.Report{report(commitstatus.Pending, "1/2", refused)},
		},
		"RefusedState": {
			"Another state is tried again.",
			[]commitstatus.Report{report(commitstatus.Pending, "0/2", refused)},
			commitstatus.Success, "2/2", 0,
			[]commitstatus.Report{report(commitstatus.Success, "2/2")},
		},
		"WaitingState": {
			"A forge that asked to be left alone is left alone.",
			[]commitstatus.Report{report(commitstatus.Pending, "0/2", waiting)},
			commitstatus.Success, "2/2", 0,
			[]commitstatus.Report{report(commitstatus.Success, "2/2", waiting)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.reports)
			status := commitstatus.Status{SHA: testSHA, Context: hello, State: c.state, Description: c.text}
			got := commitstatus.Want(c.reports, status, c.progress)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(before, c.reports); diff != "" {
				t.Errorf("the ledger was changed in place:\n%s", diff)
			}
			if diff := cmp.Diff(got, commitstatus.Want(got, status, c.progress)); diff != "" {
				t.Errorf("wanting twice is not wanting once:\n%s", diff)
			}
		})
	}
}

func TestSupersede(t *testing.T) {
	foreign := report(commitstatus.Pending, "1/2", func(r *commitstatus.Report) { r.SHA = otherBy })
	done := report(commitstatus.Success, "built", func(r *commitstatus.Report) { r.Context = "addonflow" })
	in := []commitstatus.Report{report(commitstatus.Pending, "1/2", accepted), done, foreign}
	want := slices.Clone(in)
	want[0].State, want[0].Description = commitstatus.Error, "superseded by abcdef0123"
	if diff := cmp.Diff(want, commitstatus.Supersede(in, testSHA, otherBy)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(in, commitstatus.Supersede(in, testSHA, testSHA)); diff != "" {
		t.Errorf("a commit superseded itself:\n%s", diff)
	}
}

func TestEnd(t *testing.T) {
	told := report(commitstatus.Success, "5/5", accepted)
	for name, tc := range map[string]struct {
		reason        string
		reports, want []commitstatus.Report
	}{
		"Judged": {"A verdict stands.", []commitstatus.Report{told}, []commitstatus.Report{told}},
		"OpenInSilence": {
			"A verdict stands also where it was about to be opened again: green does not turn red for that.",
			[]commitstatus.Report{told, report(commitstatus.Pending, "1 to leave", attempt(2), since(1000))},
			[]commitstatus.Report{told},
		},
		"OpenAgain": {
			"What the forge was told to wait for ends.",
			[]commitstatus.Report{report(commitstatus.Pending, "1 to leave", attempt(2), accepted)},
			[]commitstatus.Report{report(commitstatus.Error, "ended", attempt(2), accepted, func(r *commitstatus.Report) {
				r.AcceptedState, r.AcceptedDescription, r.ProgressPosts = commitstatus.Pending, "1 to leave (attempt 2)", 1
			})},
		},
		"AfterARefusal": {
			"The verdict before was never heard of, and is not in the way.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.Stopped = true }), report(commitstatus.Pending, "retry", attempt(2))},
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.Stopped = true }), report(commitstatus.Error, "ended", attempt(2))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, commitstatus.End(tc.reports, testSHA, commitstatus.Error, "ended")); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	stopped := func(r *commitstatus.Report) { r.Stopped = true }
	cases := map[string]struct {
		reason  string
		reports []commitstatus.Report
		current string
		want    []commitstatus.Report
	}{
		"Current": {
			"The current commit's verdicts stay, so that they are not told twice.",
			[]commitstatus.Report{report(commitstatus.Success, "2/2", accepted)},
			testSHA,
			[]commitstatus.Report{report(commitstatus.Success, "2/2", accepted)},
		},
		"Followed": {
			"An attempt that was told and followed is history.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", accepted), report(commitstatus.Pending, "retry", attempt(2), accepted)},
			testSHA,
			[]commitstatus.Report{report(commitstatus.Pending, "retry", attempt(2), accepted)},
		},
		"FollowedInSilence": {
			"Nobody heard that it was followed, and it may hold after all.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", accepted), report(commitstatus.Pending, "retry", attempt(2))},
			testSHA,
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1", accepted), report(commitstatus.Pending, "retry", attempt(2))},
		},
		"OldTold":      {"An old commit's told verdict is history.", []commitstatus.Report{report(commitstatus.Success, "2/2", accepted)}, otherBy, []commitstatus.Report{}},
		"OldUntold":    {"An untold verdict is never dropped.", []commitstatus.Report{report(commitstatus.Error, "x")}, otherBy, []commitstatus.Report{report(commitstatus.Error, "x")}},
		"OldPending":   {"Nor a commit without a verdict.", []commitstatus.Report{report(commitstatus.Pending, "x", accepted)}, otherBy, []commitstatus.Report{report(commitstatus.Pending, "x", accepted)}},
		"OldRefused":   {"What the forge refused for good cannot be told.", []commitstatus.Report{report(commitstatus.Error, "x", stopped)}, otherBy, []commitstatus.Report{}},
		"RefusedStays": {"But it is shown while the commit is current.", []commitstatus.Report{report(commitstatus.Error, "x", stopped)}, testSHA, []commitstatus.Report{report(commitstatus.Error, "x", stopped)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, commitstatus.Prune(c.reports, c.current)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestYearsWithoutAForgeAreBounded: what nobody was told for so long does not fill the
// status; what is told first once the forge is back is about the latest commits.
func TestYearsWithoutAForgeAreBounded(t *testing.T) {
	sha := func(n int) string { return fmt.Sprintf("%040x", n) }
	var ledger []commitstatus.Report
	const commits = 2 * commitstatus.PastLimit
	for n := range commits {
		for _, context := range []string{hello, hello + "/canary"} {
			ledger = commitstatus.Want(ledger, commitstatus.Status{SHA: sha(n), Context: context, State: commitstatus.Pending, Description: strings.Repeat("x", commitstatus.DescriptionLimit)}, 0)
		}
		if n > 0 {
			ledger = commitstatus.Supersede(ledger, sha(n-1), sha(n))
		}
		ledger = commitstatus.Prune(ledger, sha(n))
	}
	if len(ledger) != commitstatus.PastLimit+2 {
		t.Errorf("%d reports are kept", len(ledger))
	}
	for i, r := range ledger {
		if n := commits - 1 - commitstatus.PastLimit/2 + i/2; r.SHA != sha(n) {
			t.Fatalf("report %d is about %s, not about the latest commits in their order", i, r.SHA)
		}
	}
	if got := commitstatus.Prune(ledger, sha(commits-1)); len(got) != len(ledger) {
		t.Errorf("%d reports are left of those", len(got))
	}
}

func TestRetry(t *testing.T) {
	stopped := func(r *commitstatus.Report) { r.Stopped, r.FailedTries, r.LastError = true, 1, "no" }
	got := commitstatus.Retry([]commitstatus.Report{
		report(commitstatus.Failure, "a", stopped),
		report(commitstatus.Success, "b", stopped, attempt(2)),
	})
	want := []commitstatus.Report{report(commitstatus.Failure, "a", stopped), report(commitstatus.Success, "b", attempt(2))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only the last attempt can still be told\n-want +got:\n%s", diff)
	}
}

func TestDue(t *testing.T) {
	moved := func(percent int, text string) func(*commitstatus.Report) {
		return func(r *commitstatus.Report) { r.Progress, r.Description = percent, text }
	}
	cases := map[string]struct {
		reason string
		in     commitstatus.Report
		now    int64
		due    bool
		after  time.Duration
	}{
		"FirstPending":  {"The first pending goes out at once.", report(commitstatus.Pending, "0/9"), 1000, true, 0},
		"Nothing":       {"What the forge has is not said again.", report(commitstatus.Pending, "0/9", accepted), 2000, false, 0},
		"SmallStep":     {"Less than 10 % is told once it has stood for 15 minutes,", report(commitstatus.Pending, "0/20", accepted, moved(9, "1/20")), 1899, false, time.Second},
		"StandsStill":   {"and so is what it waits for,", report(commitstatus.Pending, "0/1", accepted, moved(0, "0/1, 1 not applied (c1: no)")), 1900, true, 0},
		"SmallTooOften": {"30 times per commit.", report(commitstatus.Pending, "0/20", accepted, moved(9, "1/20"), func(r *commitstatus.Report) { r.ProgressPosts = 30 }), 5000, false, 0},
		"Step":          {"10 % is.", report(commitstatus.Pending, "0/20", accepted, moved(10, "2/20")), 1030, true, 0},
		"StepBack":      {"In either direction.", report(commitstatus.Pending, "9/9", progress(100), accepted, moved(0, "0/9")), 1030, true, 0},
		"TooSoon":       {"Progress is told twice a minute at most.", report(commitstatus.Pending, "0/2", accepted, moved(50, "1/2")), 1029, false, time.Second},
		"TooOften":      {"And 60 times per commit.", report(commitstatus.Pending, "0/2", accepted, moved(50, "1/2"), func(r *commitstatus.Report) { r.ProgressPosts = 60 }), 5000, false, 0},
		"LastOne":       {"The 60th goes out.", report(commitstatus.Pending, "0/2", accepted, moved(50, "1/2"), func(r *commitstatus.Report) { r.ProgressPosts = 59 }), 5000, true, 0},
		"Reopens":       {"Pending after a verdict is progress: 30 s after it,", report(commitstatus.Pending, "1 to leave", attempt(2), since(1000)), 1010, false, 20 * time.Second},
		"Reopened":      {"whatever the percentage,", report(commitstatus.Pending, "1 to leave", attempt(2), since(1000)), 1030, true, 0},
		"ReopensOften":  {"and 60 times per commit.", report(commitstatus.Pending, "1 to leave", attempt(61), since(1000), func(r *commitstatus.Report) { r.ProgressPosts = 60 }), 5000, false, 0},
		"ShutAtOnce":    {"The verdict after it is not paced.", report(commitstatus.Success, "nobody", attempt(61), since(2000), func(r *commitstatus.Report) { r.ProgressPosts = 60 }), 2000, true, 0},
		"Verdict":       {"A verdict goes out at once, whatever was posted before.", report(commitstatus.Pending, "0/2", accepted, func(r *commitstatus.Report) { r.State, r.ProgressPosts = commitstatus.Failure, 60 }), 1000, true, 0},
		"Told":          {"Once.", report(commitstatus.Failure, "eu-1", accepted), 9000, false, 0},
		"Waiting":       {"After a failure it waits.", report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.NextTry = 1300 }), 1000, false, 5 * time.Minute},
		"WaitedEnough":  {"And then tries again.", report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.NextTry = 1300 }), 1300, true, 0},
		"Stopped":       {"What was refused for good is not tried.", report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.Stopped = true }), 9000, false, 0},
		"LinkOnly":      {"A new link alone is not posted.", report(commitstatus.Pending, "0/2", accepted, func(r *commitstatus.Report) { r.TargetURL, r.Progress = "https://x/", 100 }), 9000, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			due, after := commitstatus.Due(c.in, time.Unix(c.now, 0))
			if due != c.due || after != c.after {
				t.Errorf("%s\ngot %v after %s, want %v after %s", c.reason, due, after, c.due, c.after)
			}
		})
	}
}

func TestNextKeepsTheOrderOfAttempts(t *testing.T) {
	first := report(commitstatus.Failure, "eu-1")
	second := report(commitstatus.Success, "2/2", attempt(2))
	waiting := report(commitstatus.Pending, "0/2", func(r *commitstatus.Report) { r.Context, r.NextTry = "addonflow/b", 1040 })
	due, after := commitstatus.Next([]commitstatus.Report{second, waiting, first}, time.Unix(1000, 0))
	if diff := cmp.Diff([]commitstatus.Report{first}, due); diff != "" || after != 40*time.Second {
		t.Errorf("after %s, -want +got:\n%s", after, diff)
	}
	accepted(&first)
	if due, _ = commitstatus.Next([]commitstatus.Report{second, waiting, first}, time.Unix(1000, 0)); len(due) != 1 || due[0].Attempt != 2 {
		t.Errorf("got %+v", due)
	}
	first = report(commitstatus.Failure, "eu-1", func(r *commitstatus.Report) { r.Stopped = true })
	if due, _ = commitstatus.Next([]commitstatus.Report{first, second}, time.Unix(1000, 0)); len(due) != 1 || due[0].Attempt != 2 {
		t.Errorf("a verdict that was refused for good holds the next one back: %+v", due)
	}
}

func TestRejectedBacksOff(t *testing.T) {
	r := report(commitstatus.Failure, "eu-1")
	var waits []time.Duration
	at := time.Unix(1000, 1)
	for range 9 {
		r = commitstatus.Rejected(r, &commitstatus.DeliveryError{Reason: "down"}, at)
		waits = append(waits, time.Unix(r.NextTry, 0).Sub(at).Truncate(time.Second))
	}
	want := []time.Duration{5, 10, 20, 40, 80, 160, 300, 300, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.FailedTries != 9 || r.LastError != "down" || r.Stopped {
		t.Errorf("got %+v", r)
	}
}

func TestRejected(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		next   int64
		text   string
		stop   bool
	}{
		"RetryAfter": {"The forge's wish is honoured.", &commitstatus.DeliveryError{Reason: "slow", RetryAfter: time.Minute}, 1060, "slow", false},
		"ShortWish":  {"But never below the backoff.", &commitstatus.DeliveryError{Reason: "slow", RetryAfter: time.Second}, 1005, "slow", false},
		"Permanent":  {"For good is for good.", &commitstatus.DeliveryError{Reason: "no", Permanent: true}, 0, "no", true},
		"LookAgain":  {"Until somebody acts is not for good.", &commitstatus.DeliveryError{Reason: "no", Permanent: true, RetryAfter: time.Hour}, 4600, "no", false},
		"Foreign":    {"Any other error is transient, and cleaned.", errors.New("odd\n" + strings.Repeat("x", 200)), 1005, "odd " + strings.Repeat("x", 135) + "…", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := commitstatus.Rejected(report(commitstatus.Success, "2/2"), c.err, time.Unix(1000, 0))
			if got.NextTry != c.next || got.LastError != c.text || got.Stopped != c.stop || got.FailedTries != 1 {
				t.Errorf("%s\ngot %+v", c.reason, got)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	told := func(state commitstatus.State, text string) []commitstatus.Result {
		return []commitstatus.Result{{SHA: testSHA, Context: hello, Told: commitstatus.Told{State: state, Description: text, Progress: 40, PostedAt: 1000, ProgressPosts: 3}}}
	}
	holds := func(state commitstatus.State, text string) func(*commitstatus.Report) {
		return func(r *commitstatus.Report) {
			r.AcceptedState, r.AcceptedDescription, r.AcceptedProgress, r.PostedAt, r.ProgressPosts = state, text, 40, 1000, 3
		}
	}
	// paced says when and how often something was told before, whoever it was about.
	paced := func(r *commitstatus.Report) { r.PostedAt, r.ProgressPosts = 1000, 3 }
	failed := func(r *commitstatus.Report) { r.FailedTries, r.NextTry, r.LastError = 2, 2000, "down" }
	cases := map[string]struct {
		reason  string
		reports []commitstatus.Report
		results []commitstatus.Result
		want    []commitstatus.Report
	}{
		"Accepted": {
			"The forge has it, and the failures before are over.",
			[]commitstatus.Report{report(commitstatus.Pending, "2/5", failed)},
			told(commitstatus.Pending, "2/5"),
			[]commitstatus.Report{report(commitstatus.Pending, "2/5", holds(commitstatus.Pending, "2/5"))},
		},
		"MovedOn": {
			"The forge has an earlier text.",
			[]commitstatus.Report{report(commitstatus.Success, "5/5")},
			told(commitstatus.Pending, "2/5"),
			[]commitstatus.Report{report(commitstatus.Success, "5/5", holds(commitstatus.Pending, "2/5"))},
		},
		"SameVerdictOtherText": {
			"The first text of a verdict is final.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1, eu-2")},
			told(commitstatus.Failure, "eu-1"),
			[]commitstatus.Report{report(commitstatus.Failure, "eu-1, eu-2", holds(commitstatus.Failure, "eu-1"))},
		},
		"UnrecordedVerdict": {
			"A verdict that the ledger lost moves what waits to the attempt after it.",
			[]commitstatus.Report{report(commitstatus.Success, "5/5", holds(commitstatus.Pending, "2/5")), report(commitstatus.Pending, "0/5", attempt(2))},
			told(commitstatus.Failure, "eu-1 (attempt 4)"),
			[]commitstatus.Report{report(commitstatus.Success, "5/5", attempt(5), paced), report(commitstatus.Pending, "0/5", attempt(6), paced)},
		},
		"OpenAttempt": {
			"An attempt that the ledger lost is gone on with.",
			[]commitstatus.Report{report(commitstatus.Pending, "2/5")},
			told(commitstatus.Pending, "1/5 (attempt 3)"),
			[]commitstatus.Report{report(commitstatus.Pending, "2/5", attempt(3), holds(commitstatus.Pending, "1/5 (attempt 3)"))},
		},
		"EarlierVerdict": {
			"The verdict before is where the next attempt begins.",
			[]commitstatus.Report{report(commitstatus.Failure, "eu-2", attempt(2))},
			told(commitstatus.Failure, "eu-1"),
			[]commitstatus.Report{report(commitstatus.Failure, "eu-2", attempt(2), paced)},
		},
		"Failed": {
			"Failures are remembered.",
			[]commitstatus.Report{report(commitstatus.Success, "5/5")},
			[]commitstatus.Result{{SHA: testSHA, Context: hello, Rejection: commitstatus.Rejection{Attempt: 1, State: commitstatus.Success, Tries: 2, NextTry: 2000, LastError: "down"}}},
			[]commitstatus.Report{report(commitstatus.Success, "5/5", failed)},
		},
		"FailedBefore": {
			"But not those of another wish.",
			[]commitstatus.Report{report(commitstatus.Success, "5/5")},
			[]commitstatus.Result{{SHA: testSHA, Context: hello, Rejection: commitstatus.Rejection{Attempt: 1, State: commitstatus.Pending, Tries: 2, NextTry: 2000, LastError: "down"}}},
			[]commitstatus.Report{report(commitstatus.Success, "5/5")},
		},
		"Forgotten": {
			"What the ledger does not have is not brought back.",
			nil, told(commitstatus.Success, "5/5"), nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := commitstatus.Settle(c.reports, c.results)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(got, commitstatus.Settle(got, c.results)); diff != "" {
				t.Errorf("settling twice is not settling once:\n%s", diff)
			}
		})
	}
}

func TestReportAsJSON(t *testing.T) {
	encoded, err := json.Marshal(report(commitstatus.Pending, ""))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"sha":"` + testSHA + `","context":"addonflow/hello","attempt":1,"state":"pending"}`
	if string(encoded) != want {
		t.Errorf("got  %s\nwant %s", encoded, want)
	}
}

func TestOpen(t *testing.T) {
	said := func(sha, context string, attempt int, state commitstatus.State) commitstatus.Report {
		return commitstatus.Report{SHA: sha, Context: context, Attempt: attempt, State: state}
	}
	ledger := []commitstatus.Report{
		said("a", "going", 1, commitstatus.Pending), said("b", "other", 1, commitstatus.Pending), said("a", "judged", 1, commitstatus.Success),
		said("a", "again", 1, commitstatus.Failure), said("a", "again", 2, commitstatus.Pending), said("a", "over", 1, commitstatus.Pending), said("a", "over", 2, commitstatus.Success),
	}
	if got, want := commitstatus.Open(ledger, "a"), []string{"going", "again"}; !slices.Equal(got, want) {
		t.Errorf("the newest attempt of a context tells whether it has a verdict: got %v, want %v", got, want)
	}
}
