package addonsource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/rollout"
)

// spoken is a forge on which accounts have comments and levels.
type spoken map[string]commitstatus.Level

func (spoken) Merged(context.Context, string, string) (commitstatus.MergedRequest, bool, error) {
	return commitstatus.MergedRequest{}, false, nil
}

func (spoken) Line(context.Context, string, string) ([]commitstatus.LineCommit, bool, error) {
	return nil, false, nil
}

func (spoken) Authors(context.Context, commitstatus.MergedRequest) ([]commitstatus.Account, error) {
	return nil, nil
}

func (spoken) After(context.Context, commitstatus.MergedRequest) ([]commitstatus.Comment, error) {
	return nil, nil
}

func (s spoken) Level(_ context.Context, by commitstatus.Account) (commitstatus.Level, error) {
	return s[by.Login], nil
}
func (spoken) Host() string       { return "gitea.example" }
func (spoken) Permission() string { return "admin" }

// TestApprover_CountsCommentsOfThoseWhoMay: each case is what accounts wrote on the merged pull request, and the
// decisions that are entered.
func TestApprover_CountsCommentsOfThoseWhoMay(t *testing.T) {
	digest := "v1:sha256:" + strings.Repeat("0123456789abcdef", 4)
	line := gates.ApproveComment("hello", "fleet", "qa", digest)
	if line != "/addonflow approve hello fleet qa 0123456789" {
		t.Fatal(line)
	}
	merged := time.Unix(1000, 0)
	count := func(n int32) *int32 { return &n }
	forge := spoken{"ana": commitstatus.LevelAdmin, "bob": commitstatus.LevelMaintain, "carol": commitstatus.LevelWrite, "Author": commitstatus.LevelAdmin}
	type said struct {
		by, body string
		edited   bool
		at       time.Duration
		// before is an earlier login of the account.
		before string
	}
	cases := map[string]struct {
		spec    v1alpha1.ApprovalGate
		attempt int32
		used    int64
		said    []said
		known   []v1alpha1.AddOnApproval
		want    []string
	}{
		"a maintainer":              {said: []said{{by: "bob", body: line}}, want: []string{"Approve bob 1"}},
		"with a reason":             {said: []said{{by: "bob", body: "  " + line + "\r\nseen on staging"}}, want: []string{"Approve bob 1 seen on staging"}},
		"a user with write":         {said: []said{{by: "carol", body: line}}},
		"a stranger":                {said: []said{{by: "mallory", body: line}}},
		"an edited comment":         {said: []said{{by: "bob", body: line, edited: true}}},
		"a quoted line":             {said: []said{{by: "bob", body: "> " + line}}},
		"a line within a text":      {said: []said{{by: "bob", body: "I do not want\n" + line}}},
		"words after the line":      {said: []said{{by: "bob", body: line + " unless it rains"}}},
		"another digest":            {said: []said{{by: "bob", body: strings.Replace(line, "0123456789", "0123456780", 1)}}},
		"no digest":                 {said: []said{{by: "bob", body: "/addonflow approve hello fleet qa"}}},
		"another gate":              {said: []said{{by: "bob", body: strings.Replace(line, "qa", "other", 1)}}},
		"another add-on":            {said: []said{{by: "bob", body: strings.Replace(line, "hello", "other", 1)}}},
		"a user that is not listed": {spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Users: []string{"ana"}}}, said: []said{{by: "bob", body: line}}},
		"a listed user":             {spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Users: []string{"BOB"}}}, said: []said{{by: "bob", body: line}}, want: []string{"Approve bob 1"}},
		"a listed user without the permission": {
			spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Users: []string{"carol"}}}, said: []said{{by: "carol", body: line}},
		},
		"write is enough":       {spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Permission: v1alpha1.ForgeWrite}}, said: []said{{by: "carol", body: line}}, want: []string{"Approve carol 1"}},
		"admin is needed":       {spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Permission: v1alpha1.ForgeAdmin}}, said: []said{{by: "bob", body: line}}},
		"an unknown permission": {spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{Permission: "owner"}}, said: []said{{by: "bob", body: line}}},
		"the author":            {said: []said{{by: "Author", body: line}}, want: []string{"Approve Author 1"}},
		"the author, with notAuthor": {
			spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{NotAuthor: true}}, said: []said{{by: "Author", body: line}},
		},
		"the author in another spelling": {
			spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{NotAuthor: true}}, said: []said{{by: "author", body: line}},
		},
		"another author of the merged commits": {
			spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{NotAuthor: true}}, said: []said{{by: "another", body: line}},
		},
		"too few approvals":             {spec: v1alpha1.ApprovalGate{Count: count(2)}, said: []said{{by: "bob", body: line}, {by: "bob", body: line}}},
		"one account with two logins":   {spec: v1alpha1.ApprovalGate{Count: count(2)}, said: []said{{by: "bob", body: line}, {by: "ana", before: "bob", body: line}}},
		"enough approvals":              {spec: v1alpha1.ApprovalGate{Count: count(2)}, said: []said{{by: "bob", body: line}, {by: "ana", body: line}}, want: []string{"Approve bob 1", "Approve ana 2"}},
		"a rejection after an approval": {said: []said{{by: "ana", body: line}, {by: "bob", body: strings.Replace(line, "approve", "reject", 1) + "\nno"}}, want: []string{"Reject bob 2 no"}},
		"a rejection of a stranger": {
			said: []said{{by: "bob", body: line}, {by: "carol", body: strings.Replace(line, "approve", "reject", 1)}}, want: []string{"Approve bob 1"},
		},
		"entered already": {
			said:  []said{{by: "bob", body: line}},
			known: []v1alpha1.AddOnApproval{{Spec: v1alpha1.AddOnApprovalSpec{Decision: v1alpha1.Reject, Forge: &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: "bob", CommentID: 1}}}},
		},
		"withdrawn: the AddOnApproval was deleted, the comment stays": {used: 1, said: []said{{by: "bob", body: line}}},
		"said again after it was withdrawn":                           {used: 1, said: []said{{by: "bob", body: line}, {by: "bob", body: line}}, want: []string{"Approve bob 2"}},
		"before a retry":                                              {attempt: 2, said: []said{{by: "bob", body: line, at: 99 * time.Second}}},
		"after a retry":                                               {attempt: 2, said: []said{{by: "bob", body: line, at: 100 * time.Second}}, want: []string{"Approve bob 1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.spec.Forge == nil {
				c.spec.Forge = &v1alpha1.ForgeApproval{}
			}
			g := awaitedGate{spec: c.spec, used: c.used, began: merged.Add(100 * time.Second), subject: gates.Subject{
				Namespace: "fleet", RolloutUID: "1", Stage: "fleet", Gate: "qa", Digest: digest, Attempt: max(1, c.attempt),
			}}
			var comments []commitstatus.Comment
			for i, s := range c.said {
				comments = append(comments, commitstatus.Comment{
					ID: int64(i + 1), By: commitstatus.Account{ID: accountOf(cmp.Or(s.before, s.by)).ID, Login: s.by}, Body: s.body, Edited: s.edited, Created: merged.Add(s.at),
				})
			}
			rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello", UID: "1"}}
			entered, err := g.decisions(t.Context(), rollout, newLevels(forge, &origin{whole: true, line: []lineCommit{{LineCommit: commitstatus.LineCommit{Author: accountOf("Author")}}, {LineCommit: commitstatus.LineCommit{Author: accountOf("Another")}}}}, func(text string) { t.Log(text) }), comments, c.known)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range entered {
				got = append(got, strings.TrimSpace(string(a.Spec.Decision)+" "+a.Spec.Forge.Login+" "+strconv.FormatInt(a.Spec.Forge.CommentID, 10)+" "+a.Spec.Comment))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// flooded is a forge that refuses requests above its rate limit.
type flooded struct {
	spoken
	asked, left int
}

func (f *flooded) Level(ctx context.Context, by commitstatus.Account) (commitstatus.Level, error) {
	if f.asked++; by.Login == "broken" {
		return 0, &commitstatus.DeliveryError{Reason: "500"}
	}
	if f.asked > f.left {
		return 0, &commitstatus.DeliveryError{Reason: "waiting for our own request limit", Everyone: true}
	}
	return f.spoken.Level(ctx, by)
}

// TestApprover_AFloodOfCommentsStopsNoApproval: accounts that may not decide cost a bounded number of requests in
// each look, and the one that may is asked within a few looks, wherever its comment is.
func TestApprover_AFloodOfCommentsStopsNoApproval(t *testing.T) {
	digest := "v1:sha256:" + strings.Repeat("0123456789abcdef", 4)
	line := gates.ApproveComment("hello", "fleet", "qa", digest)
	numbered := func(name string, n int) (all []string) {
		for i := range n {
			all = append(all, name+strconv.Itoa(i))
		}
		return all
	}
	for name, c := range map[string]struct {
		by          []string
		left, looks int
		asked       int
	}{
		"one account after the approver":     {by: append([]string{"bob"}, slices.Repeat([]string{"mallory"}, 200)...), left: 1, looks: 1, asked: 1},
		"one account before the approver":    {by: append(slices.Repeat([]string{"mallory"}, 200), "bob"), left: 2, looks: 1, asked: 2},
		"thirty accounts before it":          {by: append(numbered("mallory", 30), "bob"), left: 1000, looks: 6, asked: 31},
		"an account that the forge fails on": {by: []string{"broken", "bob"}, left: 1000, looks: 1, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var comments []commitstatus.Comment
			for i, by := range c.by {
				comments = append(comments, commitstatus.Comment{ID: int64(i + 1), By: accountOf(by), Body: line, Created: time.Unix(2000, 0)})
			}
			forge, memory := &flooded{spoken: spoken{"bob": commitstatus.LevelAdmin}, left: c.left}, &origin{whole: true}
			g := awaitedGate{spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{}}, subject: gates.Subject{Stage: "fleet", Gate: "qa", Digest: digest, Attempt: 1}}
			rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello", UID: "1"}}
			var got []v1alpha1.AddOnApproval
			for n := 1; n <= c.looks; n++ {
				if len(got) > 0 {
					t.Errorf("entered before look %d", n)
				}
				got, _ = g.decisions(t.Context(), rollout, newLevels(forge, memory, func(text string) { t.Log(text) }), comments, nil)
			}
			if len(got) != 1 || got[0].Spec.Forge.Login != "bob" || forge.asked != c.asked {
				t.Errorf("%d decisions, %d requests", len(got), forge.asked)
			}
		})
	}
}

// halting is a forge that fails on accounts with a level, as often as faults says.
type halting struct {
	spoken
	faults map[string]int
	fault  error
}

func (h halting) Level(ctx context.Context, by commitstatus.Account) (commitstatus.Level, error) {
	if h.faults[by.Login] > 0 {
		h.faults[by.Login]--
		return 0, h.fault
	}
	return h.spoken.Level(ctx, by)
}

// TestApprover_NoApprovalCountsBeforeEveryRejectionIsJudged: bob approves. Each case is the accounts that reject, and
// the decision of the last visit. The visits before it enter nothing. Each visit looks at gate lab first, which bob
// and the accounts in lab decide.
func TestApprover_NoApprovalCountsBeforeEveryRejectionIsJudged(t *testing.T) {
	digest := "v1:sha256:" + strings.Repeat("0123456789abcdef", 4)
	numbered := func(name string, n int) (all []string) {
		for i := range n {
			all = append(all, name+strconv.Itoa(i))
		}
		return all
	}
	broken, limited := &commitstatus.DeliveryError{Reason: "500"}, &commitstatus.DeliveryError{Reason: "rate limit", Everyone: true}
	for name, c := range map[string]struct {
		rejects, lab []string
		faults       map[string]int
		fault        error
		visits       int
		want         string
	}{
		"a maintainer after six strangers":            {rejects: append(numbered("mallory", 6), "ana"), visits: 2, want: "Reject ana"},
		"thirty strangers":                            {rejects: numbered("mallory", 30), visits: 5, want: "Approve bob"},
		"a maintainer whose permission fails once":    {rejects: []string{"ana"}, faults: map[string]int{"ana": 1}, fault: broken, visits: 2, want: "Reject ana"},
		"a maintainer after the forge is overloaded":  {rejects: []string{"ana"}, faults: map[string]int{"ana": 1}, fault: limited, visits: 2, want: "Reject ana"},
		"a maintainer whose permission always fails":  {rejects: []string{"ana"}, faults: map[string]int{"ana": 100}, fault: broken, visits: 9},
		"a failure at another gate in the same visit": {rejects: []string{"ana"}, lab: []string{"ana"}, faults: map[string]int{"ana": 1}, fault: broken, visits: 2, want: "Reject ana"},
		"a maintainer after six that always fail": {
			rejects: append(numbered("broken", 6), "ana"), visits: 2, want: "Reject ana", fault: broken,
			faults: map[string]int{"broken0": 9, "broken1": 9, "broken2": 9, "broken3": 9, "broken4": 9, "broken5": 9},
		},
	} {
		t.Run(name, func(t *testing.T) {
			forge := halting{spoken: spoken{"ana": commitstatus.LevelAdmin, "bob": commitstatus.LevelAdmin}, faults: c.faults, fault: c.fault}
			rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello", UID: "1"}}
			var comments []commitstatus.Comment
			say := func(gate, verb string, accounts ...string) {
				for _, by := range accounts {
					body := strings.Replace(gates.ApproveComment("hello", "fleet", gate, digest), "approve", verb, 1)
					comments = append(comments, commitstatus.Comment{ID: int64(len(comments) + 1), By: accountOf(by), Body: body, Created: time.Unix(2000, 0)})
				}
			}
			say("qa", "reject", c.rejects...)
			say("lab", "approve", c.lab...)
			say("lab", "approve", "bob")
			say("qa", "approve", "bob")
			memory := &origin{whole: true}
			for visit := 1; visit <= c.visits; visit++ {
				asked, got := newLevels(forge, memory, func(text string) { t.Log(text) }), ""
				for _, gate := range []string{"lab", "qa"} {
					g := awaitedGate{spec: v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{}}, subject: gates.Subject{Stage: "fleet", Gate: gate, Digest: digest, Attempt: 1}}
					entered, err := g.decisions(t.Context(), rollout, asked, comments, nil)
					if gate == "lab" {
						continue
					}
					for _, d := range entered {
						got += string(d.Spec.Decision) + " " + d.Spec.Forge.Login
					}
					if got == "" && (err != nil) != (c.fault != nil) {
						t.Errorf("visit %d: error %v", visit, err)
					}
				}
				want := ""
				if visit == c.visits {
					want = c.want
				}
				if got != want || asked.unjudged != (want == "") {
					t.Errorf("visit %d: entered %q, want %q; unjudged: %v", visit, got, want, asked.unjudged)
				}
			}
		})
	}
}

// TestApprover_ARejectionThatCannotBeJudgedIsReported: the permission of bob cannot be read.
func TestApprover_ARejectionThatCannotBeJudgedIsReported(t *testing.T) {
	a := newApprovalScene(t)
	a.rollout.Spec.Stages[0].Gates.Before[0].Approval.Forge.NotAuthor = false
	if err := a.hub.Update(t.Context(), a.rollout); err != nil {
		t.Fatal(err)
	}
	const at = "2026-01-01T00:01:00Z"
	a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{rejectionOf(1, "bob"), commentOf(2, "carol", at)}
	may := a.answers["collaborators/bob/permission"]
	a.answers["collaborators/bob/permission"] = http.StatusInternalServerError
	a.event()
	for range 3 {
		if got := a.look(); len(got) > 0 || a.after != commentsRarely {
			t.Errorf("entered %q, and the forge is asked again after %s", got, a.after)
		}
	}
	const want = "Warning ApprovalsNotRead cannot read approvals by comment: not every rejection of gate qa of stage fleet is judged: permission of bob: "
	if a.event(); !strings.HasPrefix(a.event(), want) {
		t.Error("the event is missing")
	}
	a.answers["collaborators/bob/permission"] = may
	if got := a.look(); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("entered %q", got)
	}
}

// TestApprover_ARejectionCountsUntilTheApprovalIsUsed: gate qa is approved on the hub, and the stage waits for a window.
// EvaluatedAt is set when the stage begins.
func TestApprover_ARejectionCountsUntilTheApprovalIsUsed(t *testing.T) {
	const at = "2026-01-01T00:01:00Z"
	for name, c := range map[string]struct {
		state   v1alpha1.GateState
		used    *metav1.Time
		comment map[string]any
		want    []string
	}{
		"rejected before the stage begins": {v1alpha1.GatePassed, nil, rejectionOf(1, "carol"), []string{"carol"}},
		"approved again":                   {v1alpha1.GatePassed, nil, commentOf(1, "carol", at), nil},
		"rejected by a stranger":           {v1alpha1.GatePassed, nil, rejectionOf(1, "mallory"), nil},
		"rejected after the stage began":   {v1alpha1.GatePassed, &metav1.Time{Time: time.Unix(2000, 0)}, rejectionOf(1, "carol"), nil},
		"rejected already":                 {v1alpha1.GateFailed, nil, rejectionOf(1, "carol"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApprovalScene(t)
			verdict := &a.rollout.Status.Stages[0].Gates[0]
			verdict.State, verdict.EvaluatedAt = c.state, c.used
			if err := a.hub.Update(t.Context(), a.rollout); err != nil {
				t.Fatal(err)
			}
			a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{c.comment}
			open := c.state == v1alpha1.GatePassed && c.used == nil
			if begins := awaits().Create(event.CreateEvent{Object: a.rollout}); begins != open {
				t.Errorf("comments are read: %v", begins)
			}
			if !open {
				if a.decided(); a.calls > 0 {
					t.Errorf("%d calls", a.calls)
				}
			} else if got := a.look(); !slices.Equal(got, c.want) {
				t.Errorf("entered %q", got)
			}
		})
	}
}

// TestApprover_AnObjectWithTheNameOfADecisionIsReported: the name follows from the comment and the gate, so that every
// user who may create AddOnApprovals can take it.
func TestApprover_AnObjectWithTheNameOfADecisionIsReported(t *testing.T) {
	const at = "2026-01-01T00:01:00Z"
	for name, c := range map[string]struct {
		comment map[string]any
		change  func(*v1alpha1.AddOnApprovalSpec)
	}{
		"a rejection, and an object of a user":        {rejectionOf(1, "carol"), func(d *v1alpha1.AddOnApprovalSpec) { d.Forge, d.Approver = nil, "mallory" }},
		"an approval, and an object of other content": {commentOf(1, "carol", at), func(d *v1alpha1.AddOnApprovalSpec) { d.Digest += "0" }},
		"a rejection, and one of an earlier operator": {rejectionOf(1, "carol"), func(d *v1alpha1.AddOnApprovalSpec) { d.Approver = "mallory" }},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApprovalScene(t)
			a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{c.comment}
			a.look()
			for a.event() != "" {
				continue
			}
			var list v1alpha1.AddOnApprovalList
			if err := a.hub.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
				t.Fatalf("%d decisions, %v", len(list.Items), err)
			}
			decision := &list.Items[0]
			decision.ResourceVersion = ""
			if err := a.approver.create(t.Context(), a.rollout, decision.DeepCopy()); err != nil || a.event() != "" {
				t.Errorf("the decision itself is reported, or %v", err)
			}
			if err := a.hub.Delete(t.Context(), decision); err != nil {
				t.Fatal(err)
			}
			c.change(&decision.Spec)
			if err := a.hub.Create(t.Context(), decision); err != nil {
				t.Fatal(err)
			}
			a.look()
			want := "AddOnApproval " + decision.Name + " is not the decision of comment 1 by carol on gate qa of stage fleet, but has its name"
			if got := a.event(); !strings.HasPrefix(got, "Warning ApprovalsNotRead "+want) {
				t.Errorf("event %q", got)
			}
		})
	}
}

// TestApprover_ARejectionIsNotOverlooked: gate qa passed at 00:05, because comment 9 approved. The rejection of 00:01 was
// read later.
func TestApprover_ARejectionIsNotOverlooked(t *testing.T) {
	at := func(minute int) *metav1.Time { return new(metav1.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	for name, c := range map[string]struct {
		attempt int32
		began   *metav1.Time
		want    []string
	}{
		"older than the approval":               {1, nil, []string{"carol"}},
		"in a later attempt":                    {2, at(0), []string{"carol"}},
		"about an earlier attempt":              {2, at(2), nil},
		"without a beginning, as stored before": {2, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApprovalScene(t)
			a.rollout.Status.Attempt = c.attempt
			verdict := &a.rollout.Status.Stages[0].Gates[0]
			verdict.State, verdict.Since, verdict.BeganAt, verdict.LastComment = v1alpha1.GatePassed, at(5), c.began, 9
			if err := a.hub.Update(t.Context(), a.rollout); err != nil {
				t.Fatal(err)
			}
			a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{rejectionOf(1, "carol")}
			if got := a.look(); !slices.Equal(got, c.want) {
				t.Errorf("entered %q", got)
			}
		})
	}
}

// TestApprover_AStageThatIsOverWaitsForNoComment: all of its clusters left after the approval, or have the content.
func TestApprover_AStageThatIsOverWaitsForNoComment(t *testing.T) {
	for _, phase := range []string{rollout.StageComplete, rollout.StageNothingToDo} {
		a := newApprovalScene(t)
		a.rollout.Status.Stages[0].Phase, a.rollout.Status.Stages[0].Gates[0].State = phase, v1alpha1.GatePassed
		if awaits().Create(event.CreateEvent{Object: a.rollout}) {
			t.Errorf("%s: comments are read", phase)
		}
	}
}

// TestApprover_AnApprovalThatIsWithdrawnIsAwaitedAgainAtOnce: the gate is about the same content and attempt.
func TestApprover_AnApprovalThatIsWithdrawnIsAwaitedAgainAtOnce(t *testing.T) {
	a := newApprovalScene(t)
	passed := a.rollout.DeepCopy()
	passed.Status.Stages[0].Gates[0].State = v1alpha1.GatePassed
	if !awaits().Update(event.UpdateEvent{ObjectOld: passed, ObjectNew: a.rollout}) {
		t.Error("the comments are not read")
	}
}

// TestApprover_ContinuesSoonWhileRejectionsAreNotJudged: each visit reads the permissions of six accounts.
func TestApprover_ContinuesSoonWhileRejectionsAreNotJudged(t *testing.T) {
	a := newApprovalScene(t)
	const at = "2026-01-01T00:01:00Z"
	var comments []any
	for i := range 10 {
		comments = append(comments, rejectionOf(i+1, fmt.Sprintf("mallory%d", i)))
	}
	a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, append(comments, commentOf(11, "carol", at))
	if got := a.look(); len(got) > 0 || a.after != commentsAgain {
		t.Errorf("entered %q, and the comments are read again after %s", got, a.after)
	}
	if got := a.look(); !slices.Equal(got, []string{"carol"}) || a.after != commentsRarely {
		t.Errorf("entered %q, and the comments are read again after %s", got, a.after)
	}
}

// approvalScene is a rollout that waits for comments, of commit 2 and since the stable commit 0, and the answers of its forge
// by path.
type approvalScene struct {
	*planScene
	t       *testing.T
	answers map[string]any
	source  *v1alpha1.AddOnSource
	rollout *v1alpha1.AddOnRollout
	// approver is the one of all looks.
	approver *Approver
	// limit is how many calls of one look the forge answers; 0: all. calls counts them.
	limit, calls int
	// after is the pause that follows the last look.
	after time.Duration
}

// accountOf is the account that has a login at the start. Letters in upper case make no other account.
func accountOf(login string) commitstatus.Account {
	return commitstatus.Account{ID: int64(crc32.ChecksumIEEE([]byte(strings.ToLower(login)))), Login: login}
}

// shownAs is an account in the answers of Gitea.
func shownAs(a commitstatus.Account) any { return map[string]any{"id": a.ID, "login": a.Login} }

// shaOf is a commit of one digit.
func shaOf(digit string) string { return strings.Repeat(digit, 40) }

// commentOf is a comment that approves the content of an approvalScene, as Gitea shows it.
func commentOf(id int, by, at string) map[string]any {
	line := gates.ApproveComment("hello", "fleet", "qa", "v1:sha256:"+strings.Repeat("ab", 32))
	return map[string]any{"id": id, "body": line, "user": shownAs(accountOf(by)), "created_at": at, "updated_at": at}
}

// rejectionOf is a comment that rejects the content of an approvalScene.
func rejectionOf(id int, by string) map[string]any {
	c := commentOf(id, by, "2026-01-01T00:01:00Z")
	c["body"] = strings.Replace(gates.ApproveComment("hello", "fleet", "qa", "v1:sha256:"+strings.Repeat("ab", 32)), "approve", "reject", 1)
	return c
}

// mergedBy is a request of an account that was merged with a commit.
func mergedBy(opened commitstatus.Account, number int, sha string) map[string]any {
	return map[string]any{"number": number, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": sha, "user": shownAs(opened), "base": map[string]any{"ref": "main"}}
}

// containedBy is a commit of a request.
func containedBy(author, committer string) any {
	return map[string]any{"sha": shaOf("5"), "author": shownAs(accountOf(author)), "committer": shownAs(accountOf(committer))}
}

func newApprovalScene(t *testing.T) *approvalScene {
	t.Helper()
	a := &approvalScene{planScene: newPlanScene(t, v1alpha1.PullRequestsSpec{}), t: t, source: &v1alpha1.AddOnSource{}, answers: map[string]any{"commits": []any{
		map[string]any{"sha": shaOf("2"), "parents": []any{map[string]any{"sha": shaOf("1")}}},
		map[string]any{"sha": shaOf("1"), "parents": []any{map[string]any{"sha": shaOf("0")}, map[string]any{"sha": shaOf("9")}}},
		map[string]any{"sha": shaOf("9")},
		map[string]any{"sha": shaOf("0")},
	}}}
	for number, r := range map[int]struct{ sha, author string }{7: {shaOf("1"), "alice"}, 8: {shaOf("2"), "bob"}} {
		a.answers["commits/"+r.sha+"/pull"] = mergedBy(accountOf(r.author), number, r.sha)
		a.answers[fmt.Sprintf("pulls/%d/commits", number)] = []any{containedBy(r.author, r.author)}
	}
	for _, by := range []string{"alice", "bob", "carol"} {
		a.answers["collaborators/"+by+"/permission"] = map[string]any{"permission": "admin"}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := a.answers[strings.TrimPrefix(r.URL.Path, "/api/v1/repos/team/fleet/")]
		if a.calls++; a.limit > 0 && a.calls > a.limit {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if status, failed := answer.(int); failed {
			w.WriteHeader(status)
			return
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		if page := r.URL.Query().Get("page"); page != "" && page != "1" {
			answer = []any{}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	if err := a.hub.Get(t.Context(), a.request.NamespacedName, a.source); err != nil {
		t.Fatal(err)
	}
	a.source.Spec.CommitStatus.Address = server.URL + "/team/fleet"
	if err := a.hub.Update(t.Context(), a.source); err != nil {
		t.Fatal(err)
	}
	a.rollout = &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello", UID: "u", Annotations: map[string]string{v1alpha1.SourceAnnotation: "fleet/fleet"}},
		Spec: v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "fleet", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{{
			Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{NotAuthor: true}},
		}}}}}},
		Status: v1alpha1.AddOnRolloutStatus{
			Attempt: 1, Target: &v1alpha1.Target{Digest: "v1:sha256:" + strings.Repeat("ab", 32), Commit: "main@sha1:" + shaOf("2")}, Stable: &v1alpha1.Target{Commit: "main@sha1:" + shaOf("0")},
			TargetSince: &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)},
			Stages: []v1alpha1.StageStatus{{Name: "fleet", Gates: []v1alpha1.GateStatus{{
				Name: "qa", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &metav1.Time{Time: time.Unix(1000, 0)},
			}}}},
		},
	}
	if err := a.hub.Create(t.Context(), a.rollout); err != nil {
		t.Fatal(err)
	}
	a.planner.Live = a.hub
	a.planner.Client = interceptor.NewClient(a.hub, interceptor.Funcs{Create: func(ctx context.Context, hub client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
			review.Status.UserInfo.Username = "system:serviceaccount:addonflow-system:addonflow"
			return nil
		}
		return hub.Create(ctx, o, options...)
	}})
	return a
}

// look reads the comments and returns the accounts whose decisions are entered.
func (a *approvalScene) look() []string {
	a.t.Helper()
	by := a.decided()
	if a.after == 0 {
		a.t.Error("no later comment is read, although the gate waits")
	}
	return by
}

// decided is look for a gate that may wait for no comment.
func (a *approvalScene) decided() (by []string) {
	a.t.Helper()
	if a.approver == nil {
		a.approver = NewApprover(a.planner.Reconciler)
	}
	a.calls = 0
	result, err := a.approver.Reconcile(a.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(a.rollout)})
	if err != nil {
		a.t.Fatal(err)
	}
	a.after = result.RequeueAfter
	var list v1alpha1.AddOnApprovalList
	if err := a.hub.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	for i := range list.Items {
		if account := list.Items[i].Spec.Forge; account != nil {
			by = append(by, account.Login)
		}
	}
	return by
}

// TestApprover_AuthorsAreThoseOfEverythingSinceTheStableContent: alice's content is merged with request 7, bob's README
// with 8, and both before the operator looks.
func TestApprover_AuthorsAreThoseOfEverythingSinceTheStableContent(t *testing.T) {
	a := newApprovalScene(t)
	a.answers["issues/7/comments"] = []any{commentOf(2, "bob", "2026-01-01T00:01:00Z"), commentOf(3, "carol", "2026-01-01T00:01:00Z")}
	a.answers["issues/8/comments"] = []any{commentOf(1, "alice", "2026-01-01T00:01:00Z")}
	if got := a.look(); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("entered %q", got)
	}
	if got := a.event(); !strings.Contains(got, "comments on pull request 8, 7 are read") {
		t.Errorf("event %q", got)
	}
	for _, want := range []string{
		"comment 1 by alice does not count for gate qa of stage fleet, which has notAuthor: the account is the author of pull request 7 (commit 1111111111); another account must comment",
		"comment 2 by bob does not count for gate qa of stage fleet, which has notAuthor: the account is the author of pull request 8 (commit 2222222222); another account must comment",
	} {
		if got := a.event(); !strings.HasSuffix(got, "ApprovalsNotRead "+want) {
			t.Errorf("event %q", got)
		}
	}
	if a.look(); a.event() != "" {
		t.Error("an event is repeated")
	}
	delete(a.answers, "commits/"+shaOf("1")+"/pull")
	delete(a.answers, "commits/"+shaOf("2")+"/pull")
	a.approver = nil // it asks again
	a.look()
	if got := a.event(); !strings.Contains(got, "ApprovalsNotRead") || !strings.Contains(got, "no pull request into main brought commit 2222222222") {
		t.Errorf("event %q", got)
	}
	if err := a.hub.Delete(t.Context(), a.source); err != nil {
		t.Fatal(err)
	}
	a.look() // until the source is created again
}

// TestApprover_CommentsThatDoNotCountGetFiveEvents: every account may write comments, and the events of a rollout are
// limited.
func TestApprover_CommentsThatDoNotCountGetFiveEvents(t *testing.T) {
	a := newApprovalScene(t)
	var many []any
	for i := range 9 {
		many = append(many, commentOf(i+1, "alice", "2026-01-01T00:01:00Z"))
	}
	a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, many
	a.look()
	a.look()
	n := 0
	for e := a.event(); e != ""; e = a.event() {
		if strings.Contains(e, "does not count") {
			n++
		}
	}
	if n != mostUncounted {
		t.Errorf("%d comments are named, want %d", n, mostUncounted)
	}
}

// TestApprover_AnAuthorWithoutAnAccountMayBeEveryAccount: commit 1 is pushed without a request by an account that the forge
// does not name, which may be carol's.
func TestApprover_AnAuthorWithoutAnAccountMayBeEveryAccount(t *testing.T) {
	a := newApprovalScene(t)
	delete(a.answers, "commits/"+shaOf("1")+"/pull")
	a.answers["issues/8/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
	if got := a.look(); len(got) > 0 {
		t.Errorf("entered %q", got)
	}
	a.event()
	const pattern = "Warning ApprovalsNotRead comment %d by carol does not count for gate qa of stage fleet, which has notAuthor: " +
		"the forge does not name all authors of commit 1111111111; approve with addonflow approve"
	if got := a.event(); got != fmt.Sprintf(pattern, 1) {
		t.Errorf("event %q", got)
	}
	if a.look(); a.event() != "" {
		t.Error("the event is repeated")
	}
	a.answers["issues/8/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z"), commentOf(3, "carol", "2026-01-01T00:02:00Z")}
	a.look()
	if got := a.event(); got != fmt.Sprintf(pattern, 3) || a.event() != "" {
		t.Errorf("event %q", got)
	}
}

// TestApprover_CommentsOnAnEarlierRequestAreOfTheRolloutOfThisContent: a digest in a comment has ten digits, so that two
// contents can have the same.
func TestApprover_CommentsOnAnEarlierRequestAreOfTheRolloutOfThisContent(t *testing.T) {
	for at, want := range map[string][]string{"2026-01-01T00:00:20Z": {"dave"}, "2026-01-01T00:00:40Z": {"carol"}} {
		a := newApprovalScene(t)
		a.answers["collaborators/dave/permission"] = map[string]any{"permission": "admin"}
		a.answers["issues/7/comments"] = []any{commentOf(1, "carol", at)}
		a.answers["issues/8/comments"] = []any{commentOf(2, "dave", at)}
		if got := a.look(); !slices.Equal(got, want) {
			t.Errorf("%s: entered %q", at, got)
		}
	}
}

// fortyRequests replaces the commits of the scene by forty, each merged with its own request. Request 40 is the newest.
func (a *approvalScene) fortyRequests() {
	var commits []any
	for n := 40; n > 0; n-- {
		sha := fmt.Sprintf("%040d", n)
		commits = append(commits, map[string]any{"sha": sha, "parents": []any{map[string]any{"sha": fmt.Sprintf("%040d", n-1)}}})
		a.answers["commits/"+sha+"/pull"] = mergedBy(accountOf("alice"), n, sha)
		a.answers[fmt.Sprintf("issues/%d/comments", n)] = []any{}
		a.answers[fmt.Sprintf("pulls/%d/commits", n)] = []any{containedBy("alice", "alice")}
	}
	a.answers["commits"] = commits
	a.rollout.Status.Target.Commit, a.rollout.Status.Stable.Commit = fmt.Sprintf("main@sha1:%040d", 40), fmt.Sprintf("main@sha1:%040d", 0)
	if err := a.hub.Update(a.t.Context(), a.rollout); err != nil {
		a.t.Fatal(err)
	}
}

// looks makes up to n looks, until a decision is entered.
func (a *approvalScene) looks(n int) (by []string) {
	for ; n > 0 && len(by) == 0; n-- {
		by = a.look()
		for a.event() != "" { // the recorder keeps 20
		}
	}
	return by
}

// TestApprover_ReadsFortyRequestsInSeveralVisits: GitHub's limiter allows 35 calls in the 15 seconds of a visit.
func TestApprover_ReadsFortyRequestsInSeveralVisits(t *testing.T) {
	for _, request := range []int{40, 1} {
		a := newApprovalScene(t)
		a.fortyRequests()
		a.limit = 30
		a.answers[fmt.Sprintf("issues/%d/comments", request)] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
		if got := a.looks(20); !slices.Equal(got, []string{"carol"}) {
			t.Errorf("request %d: entered %q", request, got)
		}
	}
}

// TestApprover_ContinuesAnUnfinishedVisitSoon: the gate waits for years, but the first decision does not wait for its
// pause after each visit. If the forge fails, the pause stays.
func TestApprover_ContinuesAnUnfinishedVisitSoon(t *testing.T) {
	a := newApprovalScene(t)
	a.fortyRequests()
	a.answers["issues/1/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
	for range 20 {
		if got := a.looks(1); len(got) > 0 {
			break
		}
		if a.after != commentsAgain {
			t.Errorf("an unfinished visit is continued after %s", a.after)
		}
	}
	if got := a.looks(1); !slices.Equal(got, []string{"carol"}) || a.after != commentsRarely {
		t.Errorf("entered %q, and the comments are read again after %s", got, a.after)
	}
	delete(a.answers, "commits")
	a.approver = nil // it reads everything again
	if a.look(); a.after != commentsRarely {
		t.Errorf("a forge that fails is called again after %s", a.after)
	}
}

// TestApprover_KeepsTheCommentsThatAVisitRead: the forge stops to answer in the middle of every visit but the last.
func TestApprover_KeepsTheCommentsThatAVisitRead(t *testing.T) {
	a := newApprovalScene(t)
	a.fortyRequests()
	a.limit = 5
	a.answers["issues/1/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
	a.looks(45)
	a.limit = 2 * requestsAtOnce
	if got := a.look(); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("entered %q", got)
	}
}

// TestApprover_ReadsTheNewestRequestInEveryVisit: a comment is usually written there.
func TestApprover_ReadsTheNewestRequestInEveryVisit(t *testing.T) {
	a := newApprovalScene(t)
	a.fortyRequests()
	if got := a.looks(20); len(got) > 0 {
		t.Fatalf("entered %q", got)
	}
	a.answers["issues/40/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
	if got := a.look(); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("entered %q", got)
	}
	if a.calls > 2*requestsAtOnce {
		t.Errorf("%d calls in a look", a.calls)
	}
}

// TestApprover_ARejectionOnAnOldRequestPrecedesAnApproval: the newest request is read in the first visit, the oldest in
// the last.
func TestApprover_ARejectionOnAnOldRequestPrecedesAnApproval(t *testing.T) {
	a := newApprovalScene(t)
	a.fortyRequests()
	a.answers["issues/40/comments"] = []any{commentOf(2, "carol", "2026-01-01T00:02:00Z")}
	a.answers["issues/1/comments"] = []any{rejectionOf(1, "bob")}
	if got := a.looks(20); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("entered %q", got)
	}
}

// TestApprover_AKeptCommentIsReadAgainBeforeItCounts: bob deletes an approval that an earlier visit read.
func TestApprover_AKeptCommentIsReadAgainBeforeItCounts(t *testing.T) {
	for _, deleted := range []bool{true, false} {
		a := newApprovalScene(t)
		two := int32(2)
		a.rollout.Spec.Stages[0].Gates.Before[0].Approval.Count = &two
		a.fortyRequests()
		a.answers["issues/1/comments"] = []any{commentOf(1, "bob", "2026-01-01T00:01:00Z")}
		if got := a.looks(20); len(got) > 0 {
			t.Fatalf("entered %q", got)
		}
		want := []string{"bob", "carol"}
		if deleted {
			a.answers["issues/1/comments"], want = []any{}, nil
		}
		a.answers["issues/40/comments"] = []any{commentOf(2, "carol", "2026-01-01T00:02:00Z")}
		got := a.looks(20)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("deleted %v: entered %q, want %q", deleted, got, want)
		}
	}
}

// TestApprover_AsksAgainForARequestThatTheForgeDoesNotShowYet: GitHub shows the request of a commit seconds after the
// merge, of which the webhook reports at once. Until then bob, who opened request 8, is not known as an author.
func TestApprover_AsksAgainForARequestThatTheForgeDoesNotShowYet(t *testing.T) {
	a := newApprovalScene(t)
	now := a.rollout.Status.TargetSince.Time
	a.planner.Clock = func() time.Time { return now }
	shown := a.answers["commits/"+shaOf("2")+"/pull"]
	delete(a.answers, "commits/"+shaOf("2")+"/pull")
	a.answers["issues/7/comments"] = []any{commentOf(1, "bob", "2026-01-01T00:00:40Z")}
	a.answers["issues/8/comments"] = []any{commentOf(2, "carol", "2026-01-01T00:00:50Z")}
	for range 3 {
		now = now.Add(commentsAgain)
		if got, event := a.look(), a.event(); len(got) > 0 || event != "" {
			t.Errorf("entered %q, event %q", got, event)
		}
	}
	a.answers["commits/"+shaOf("2")+"/pull"] = shown
	now = now.Add(commentsAgain)
	if got := a.look(); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("entered %q", got)
	}
	if got := a.event(); !strings.Contains(got, "comments on pull request 8, 7 are read") {
		t.Errorf("event %q", got)
	}
}

// TestApprover_SaysOnceThatACommitHasNoRequest: after two minutes, the forge is asked again after pauses that double.
func TestApprover_SaysOnceThatACommitHasNoRequest(t *testing.T) {
	a := newApprovalScene(t)
	now := a.rollout.Status.TargetSince.Time
	a.planner.Clock = func() time.Time { return now }
	shown := a.answers["commits/"+shaOf("1")+"/pull"]
	delete(a.answers, "commits/"+shaOf("1")+"/pull")
	delete(a.answers, "commits/"+shaOf("2")+"/pull")
	a.answers["issues/7/comments"] = []any{commentOf(1, "carol", "2026-01-01T00:00:50Z")}
	a.rollout.Spec.Stages[0].Gates.Before[0].Approval.Forge.NotAuthor = false
	if err := a.hub.Update(t.Context(), a.rollout); err != nil {
		t.Fatal(err)
	}
	var events []string
	calls := 0
	for range 180 { // an hour
		now = now.Add(commentsAgain)
		a.look()
		calls += a.calls
		if e := a.event(); e != "" {
			events = append(events, e)
		}
	}
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning ApprovalsNotRead no pull request into main brought commit 2222222222; approve with") {
		t.Errorf("events %q", events)
	}
	if calls > 30 {
		t.Errorf("%d calls", calls)
	}
	a.answers["commits/"+shaOf("1")+"/pull"] = shown
	now = now.Add(time.Hour)
	if got := a.look(); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("entered %q", got)
	}
	if e := a.event(); !strings.Contains(e, "comments on pull request 7 are read") {
		t.Errorf("event %q", e)
	}
}

// TestApprover_AuthorsOfTheCommitsOfARequestAreAuthors: carol pushes to the branch of bob's request, or commits what another
// account wrote. A commit without an account may be of every account.
func TestApprover_AuthorsOfTheCommitsOfARequestAreAuthors(t *testing.T) {
	nameless := map[string]any{"sha": shaOf("6"), "author": nil, "committer": shownAs(accountOf("bob"))}
	for name, c := range map[string]struct {
		commit any
		why    string
	}{
		"author":     {containedBy("carol", "bob"), "the account is the author of pull request 8 (commit 2222222222); another account must comment"},
		"committer":  {containedBy("bob", "Carol"), "the account is the author of pull request 8 (commit 2222222222); another account must comment"},
		"no account": {nameless, "the forge does not name all authors of pull request 8 (commit 2222222222); approve with addonflow approve"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApprovalScene(t)
			a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{commentOf(1, "carol", "2026-01-01T00:01:00Z")}
			a.answers["pulls/8/commits"] = []any{containedBy("bob", "bob"), c.commit}
			if got := a.look(); len(got) > 0 {
				t.Errorf("entered %q", got)
			}
			a.event()
			if got := a.event(); !strings.HasSuffix(got, "which has notAuthor: "+c.why) {
				t.Errorf("event %q", got)
			}
		})
	}
}

// TestApprover_AnAuthorWithANewLoginIsStillTheAuthor: alice changes the login after the operator read the authors. Then
// the forge shows the new login with the comment. Alice opened request 7 in one case, and is only the committer of a
// commit of it in the other.
func TestApprover_AnAuthorWithANewLoginIsStillTheAuthor(t *testing.T) {
	for name, opened := range map[string]string{"opened the request": "alice", "is a committer": "bob"} {
		t.Run(name, func(t *testing.T) {
			a := newApprovalScene(t)
			a.answers["commits/"+shaOf("1")+"/pull"] = mergedBy(accountOf(opened), 7, shaOf("1"))
			a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{}
			a.look()
			a.event()
			comment := commentOf(1, "alice", "2026-01-01T00:01:00Z")
			comment["user"] = shownAs(commitstatus.Account{ID: accountOf("alice").ID, Login: "newcomer"})
			a.answers["issues/8/comments"] = []any{comment}
			a.answers["collaborators/newcomer/permission"] = map[string]any{"permission": "admin"}
			if got := a.look(); len(got) > 0 {
				t.Errorf("entered %q", got)
			}
			if got := a.event(); !strings.HasSuffix(got, "the account is the author of pull request 7 (commit 1111111111); another account must comment") {
				t.Errorf("event %q", got)
			}
		})
	}
}

// TestApprover_AccountsOfAnotherForgeAreReadAnew: an ID is of one forge. The repository moves to another one, where alice has
// another ID.
func TestApprover_AccountsOfAnotherForgeAreReadAnew(t *testing.T) {
	a := newApprovalScene(t)
	a.answers["issues/7/comments"], a.answers["issues/8/comments"] = []any{}, []any{}
	a.look()
	a.event()
	moved := commitstatus.Account{ID: 77, Login: "alice"}
	a.answers["commits/"+shaOf("1")+"/pull"] = mergedBy(moved, 7, shaOf("1"))
	comment := commentOf(1, "alice", "2026-01-01T00:01:00Z")
	comment["user"] = shownAs(moved)
	a.answers["issues/8/comments"] = []any{comment}
	a.source.Spec.CommitStatus.Address = strings.Replace(a.source.Spec.CommitStatus.Address, "127.0.0.1", "localhost", 1)
	if err := a.hub.Update(t.Context(), a.source); err != nil {
		t.Fatal(err)
	}
	if got := a.look(); len(got) > 0 {
		t.Errorf("entered %q", got)
	}
}

// TestApprover_UnreadableAuthorsHoldOnlyGatesWithNotAuthor: the forge does not show the commits of request 8. Gate lab
// takes comments of every account.
func TestApprover_UnreadableAuthorsHoldOnlyGatesWithNotAuthor(t *testing.T) {
	a := newApprovalScene(t)
	a.rollout.Spec.Stages[0].Gates.Before = append(a.rollout.Spec.Stages[0].Gates.Before, v1alpha1.Gate{
		Name: "lab", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{}},
	})
	waiting := a.rollout.Status.Stages[0].Gates[0]
	waiting.Name = "lab"
	a.rollout.Status.Stages[0].Gates = append(a.rollout.Status.Stages[0].Gates, waiting)
	if err := a.hub.Update(t.Context(), a.rollout); err != nil {
		t.Fatal(err)
	}
	const at = "2026-01-01T00:01:00Z"
	line := gates.ApproveComment("hello", "fleet", "lab", a.rollout.Status.Target.Digest)
	forLab := map[string]any{"id": 2, "body": line, "user": shownAs(accountOf("bob")), "created_at": at, "updated_at": at}
	a.answers["issues/7/comments"] = []any{}
	a.answers["issues/8/comments"] = []any{commentOf(1, "carol", at), forLab}
	commits := a.answers["pulls/8/commits"]
	delete(a.answers, "pulls/8/commits")
	if got := a.look(); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("entered %q", got)
	}
	a.event()
	const why = "comment 1 by carol does not count for gate qa of stage fleet, which has notAuthor: " +
		"the authors of pull request 8 (commit 2222222222) cannot be read; approve with addonflow approve"
	if got := a.event(); !strings.HasSuffix(got, "ApprovalsNotRead "+why) {
		t.Errorf("event %q", got)
	}
	if got := a.event(); !strings.Contains(got, "ApprovalsNotRead cannot read approvals by comment: request 8: ") {
		t.Errorf("event %q", got)
	}
	a.answers["pulls/8/commits"] = commits
	got := a.look()
	if slices.Sort(got); !slices.Equal(got, []string{"bob", "carol"}) {
		t.Errorf("entered %q", got)
	}
}
