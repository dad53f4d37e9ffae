package commitstatus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
)

func TestClaim(t *testing.T) {
	report := func(holder string, age time.Duration) commitstatus.Report {
		r := commitstatus.Report{SHA: "a", Context: hello, Attempt: 1, State: commitstatus.Success, ClaimedBy: holder}
		if holder != "" {
			r.ClaimedAt = now.Add(-age).Unix()
		}
		return r
	}
	done := report("", 0)
	done.AcceptedState = commitstatus.Success
	later := report("", 0)
	later.NextTry = now.Add(time.Minute).Unix()
	cases := map[string]struct {
		reason string
		before commitstatus.Report
		want   commitstatus.Report
		wait   time.Duration
		// elected to lead; zero: nobody is.
		elected time.Time
	}{
		"Free":         {reason: "nobody else is posting", before: report("", 0), want: report("me", 0)},
		"Mine":         {reason: "a claim that was just made costs no second write", before: report("me", 10*time.Second), want: report("me", 10*time.Second)},
		"MineOld":      {reason: "a post must begin soon after its claim", before: report("me", 20*time.Second), want: report("me", 0)},
		"Theirs":       {reason: "their post may be on its way", before: report("them", 20*time.Second), want: report("them", 20*time.Second), wait: 70 * time.Second},
		"TheirsLapsed": {reason: "by now it has arrived, or never will", before: report("them", 90*time.Second), want: report("me", 0)},
		"TheirsBefore": {reason: "who claimed it does not lead any more, and what it had begun is over", before: report("them", 20*time.Second), elected: now.Add(-15 * time.Second), want: report("me", 0)},
		"TheirsJustBefore": {
			reason: "what it had begun may not be over", before: report("them", 20*time.Second), elected: now.Add(-5 * time.Second),
			want: report("them", 20*time.Second), wait: 10 * time.Second,
		},
		"TheirsLongBefore": {
			reason: "being elected makes nobody wait longer", before: report("them", 85*time.Second), elected: now,
			want: report("them", 85*time.Second), wait: 5 * time.Second,
		},
		"TheirsAfter": {
			reason: "it is the leader after this one, which has yet to notice", before: report("them", 20*time.Second), elected: now.Add(-time.Hour),
			want: report("them", 20*time.Second), wait: 70 * time.Second,
		},
		"Done":   {reason: "there is nothing to post", before: done, want: done},
		"NotDue": {reason: "a claim that nobody uses would only keep others waiting", before: later, want: later},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, wait := commitstatus.Claim([]commitstatus.Report{c.before}, commitstatus.Claimant{Holder: "me", Elected: c.elected}, now)
			if diff := cmp.Diff([]commitstatus.Report{c.want}, got); diff != "" || wait != c.wait {
				t.Errorf("%s: wait %s, want %s (-want +got):\n%s", c.reason, wait, c.wait, diff)
			}
		})
	}
}

func TestOutcomeEndsTheClaim(t *testing.T) {
	me := commitstatus.Claimant{Holder: "me"}
	claimed, _ := commitstatus.Claim([]commitstatus.Report{{SHA: "a", Context: hello, Attempt: 1, State: commitstatus.Success}}, me, now)
	if got := commitstatus.Accepted(claimed[0], now); got.ClaimedBy != "" || got.ClaimedAt != 0 {
		t.Errorf("an accepted report is nobody's: %+v", got)
	}
	refused := commitstatus.Result{SHA: "a", Context: hello, Rejection: commitstatus.Rejection{
		Attempt: 1, State: commitstatus.Success, Tries: 1, NextTry: now.Add(time.Minute).Unix(), LastError: "no",
	}}
	settled := commitstatus.Settle(claimed, []commitstatus.Result{refused})
	if settled[0].ClaimedBy != "" {
		t.Errorf("a refused report is nobody's: %+v", settled[0])
	}
	again, _ := commitstatus.Claim(settled, me, now.Add(time.Minute))
	if kept := commitstatus.Settle(again, []commitstatus.Result{refused}); kept[0].ClaimedBy != "me" {
		t.Errorf("what was recorded already ends no claim made since: %+v", kept[0])
	}
}
