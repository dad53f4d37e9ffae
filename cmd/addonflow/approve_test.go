package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
)

// gated is a rollout whose stage fleet waits for gate qa, which needs two approvers of users
// alice and bob and group qa.
func gated() *v1alpha1.AddOnRollout {
	r := hello(v1alpha1.PhaseProgressing)
	r.UID = "uid-1"
	qa := v1alpha1.Gate{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{
		Count: new(int32(2)), Approvers: &v1alpha1.Approvers{Users: []string{"alice", "bob"}, Groups: []string{"qa", "ops"}},
	}}
	night := v1alpha1.Gate{Name: "night", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{TimeZone: "UTC"}}
	r.Spec.Stages = []v1alpha1.Stage{{Name: "canary"}, {Name: "fleet", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{night, qa}}}}
	r.Status.Attempt = 1
	r.Status.Stable = &v1alpha1.Target{Commit: strings.ReplaceAll(commit, "2", "1")}
	r.Status.Stages = append(r.Status.Stages, v1alpha1.StageStatus{
		Name: "fleet", Phase: "Waiting", Counts: v1alpha1.Counts{Total: 2, Waiting: 2}, Gates: []v1alpha1.GateStatus{
			{Name: "night", When: v1alpha1.GateBefore, Type: v1alpha1.GateWindow, State: v1alpha1.GateWaiting},
			{Name: "qa", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting},
		},
	})
	return r
}

// alsoOps adds an approval gate that waits besides qa.
func alsoOps(r *v1alpha1.AddOnRollout) {
	gates := r.Spec.Stages[1].Gates
	gates.Before = append(gates.Before, v1alpha1.Gate{Name: "ops", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{}})
	r.Status.Stages[1].Gates = append(r.Status.Stages[1].Gates, v1alpha1.GateStatus{Name: "ops", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting})
}

// qaIs gives gate qa a verdict that names its approvers.
func qaIs(state v1alpha1.GateState, reason string, by ...string) func(*v1alpha1.AddOnRollout) {
	return func(r *v1alpha1.AddOnRollout) {
		qa := &r.Status.Stages[1].Gates[1]
		qa.State, qa.Reason, qa.By = state, reason, strings.Join(by, ", ")
	}
}

// replaced has other content than gated: what was decided before counts no more.
func replaced(r *v1alpha1.AddOnRollout) {
	r.Status.Target = &v1alpha1.Target{Digest: "newer", Commit: strings.ReplaceAll(commit, "2", "3")}
	r.Status.Stages[1].Gates = nil
}

// decided is a decision on gate qa.
func decided(decision v1alpha1.Decision, user string) *v1alpha1.AddOnApproval {
	return &v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello-" + user},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: "uid-1", Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: digest, Attempt: 1, Decision: decision, Approver: user,
		},
	}
}

// as makes the hub answer that the requests are made by a user.
func as(user string, groups ...string) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
			review.Status.UserInfo = authenticationv1.UserInfo{Username: user, Groups: groups}
			return nil
		}
		return c.Create(ctx, o, options...)
	}}
}

// counting makes the operator of the hub change the status once a decision was created.
func counting(user string, change func(*v1alpha1.AddOnRollout), groups ...string) interceptor.Funcs {
	funcs := as(user, groups...)
	create := funcs.Create
	funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		err := create(ctx, c, o, options...)
		if _, decision := o.(*v1alpha1.AddOnApproval); !decision || err != nil {
			return err
		}
		r := &v1alpha1.AddOnRollout{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "hello"}, r); err != nil {
			return err
		}
		change(r)
		return c.Status().Update(ctx, r)
	}
	return funcs
}

// created are the AddOnApprovals on the hub that the test did not put there.
func (s *stage) created(t *testing.T) []v1alpha1.AddOnApproval {
	t.Helper()
	var list v1alpha1.AddOnApprovalList
	if err := s.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []v1alpha1.AddOnApproval
	for _, a := range list.Items {
		if a.GenerateName != "" {
			out = append(out, a)
		}
	}
	return out
}

// TestApprove: what is approved is shown first, and the AddOnApproval names what was shown.
func TestApprove(t *testing.T) {
	r := gated()
	qaIs(v1alpha1.GateWaiting, "1 of 2 approvals (alice)")(r)
	s := newStageWith(t, counting("zoe", qaIs(v1alpha1.GatePassed, "approved by alice, zoe", "alice", "zoe"), "system:authenticated", "qa"), r, decided(v1alpha1.Approve, "alice"))
	s.cli.In = strings.NewReader("y\n")
	if code := s.run(t.Context(), "approve", "hello", "fleet", "-m", "seen on staging"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	wantOut := `rollout   default/hello, attempt 1
commit    main@sha1:2222222222222222222222222222222222222222
digest    v1:sha256:2222222222222222222222222222222222222222222222222222222222222222
stable    main@sha1:1111111111111111111111111111111111111111
stage     fleet: 2 clusters, 0 at the target, 0 in flight, 0 failed, 2 waiting
gate      qa: Waiting: 1 of 2 approvals (alice)
change    on us-01, one of 2 clusters of the stage that are not at the target:

--- v1 ConfigMap hello
+++ v1 ConfigMap hello
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  tag: v1
+  tag: v2
 kind: ConfigMap
 metadata:
   name: hello

rollout default/hello: gate qa of stage fleet approved by zoe
`
	if diff := cmp.Diff(wantOut, s.out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Approve gate qa of stage fleet as zoe? [y/N] Gate qa is Passed: approved by alice, zoe\n", s.err.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	want := []v1alpha1.AddOnApproval{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", GenerateName: "hello-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "addonflow.io/v1alpha1", Kind: "AddOnRollout", Name: "hello", UID: "uid-1"}},
		},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: "uid-1", Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: digest, Attempt: 1,
			Decision: v1alpha1.Approve, Comment: "seen on staging", Approver: "zoe", Groups: []string{"qa"},
		},
	}}
	if diff := cmp.Diff(want, s.created(t), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name", "ResourceVersion"), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Errorf("AddOnApproval (-want +got):\n%s", diff)
	}
}

// TestDecisionsThatAreRefused: each names what is wrong. What the operator did not count is not said to be counted.
func TestDecisionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		change  func(*v1alpha1.AddOnRollout)
		earlier *v1alpha1.AddOnApproval
		code    int
		created int
		err     string
	}{
		"NoRollout":    {args: "approve helo fleet --yes", code: exitNotFound, err: "cannot read rollout default/helo"},
		"NoStage":      {args: "approve hello flet --yes", code: exitNotFound, err: `cannot find stage "flet" in rollout default/hello; did you mean fleet?`},
		"StrangeStage": {args: "approve hello everything --yes", code: exitNotFound, err: "its stages are canary, fleet"},
		"StageWithout": {args: "approve hello canary --yes", code: exitFailed, err: "cannot approve: stage canary has no approval gate"},
		"NoGate":       {args: "approve hello fleet --gate q --yes", code: exitNotFound, err: `cannot find approval gate "q" in stage fleet; its approval gates are qa`},
		"Window":       {args: "approve hello fleet --gate night --yes", code: exitNotFound, err: `cannot find approval gate "night"`},
		"Several":      {args: "approve hello fleet --yes", change: alsoOps, code: exitUsage, err: "cannot approve: the decision can be about gates qa, ops of stage fleet; choose one with --gate"},
		"Passed":       {args: "approve hello fleet --yes", change: qaIs(v1alpha1.GatePassed, "approved by zoe"), code: exitFailed, err: "cannot approve: gate qa is Passed: approved by zoe"},
		"Used": {args: "reject hello fleet --yes", change: func(r *v1alpha1.AddOnRollout) {
			qaIs(v1alpha1.GatePassed, "approved by zoe")(r)
			r.Status.Stages[1].Gates[1].EvaluatedAt = new(metav1.NewTime(at()))
		}, code: exitFailed, err: "cannot reject: gate qa is Passed: approved by zoe"},
		"Error": {args: "approve hello fleet --yes", change: qaIs(v1alpha1.GateError, "the policy is missing"), code: exitFailed, err: "cannot approve: gate qa is Error: the policy is missing"},
		"NotAskedYet": {args: "approve hello fleet --yes", change: func(r *v1alpha1.AddOnRollout) {
			r.Status.Stages[1].Gates, r.Status.Stages[1].Message = nil, "stage canary is not complete"
		}, code: exitFailed, err: "cannot approve: gate qa is not asked yet: stage fleet is Waiting, stage canary is not complete"},
		"Aborted":        {args: "approve hello fleet --yes", change: func(r *v1alpha1.AddOnRollout) { r.Status.Aborted = &v1alpha1.GivenOrder{Name: "x", Author: "bob"} }, code: exitFailed, err: "cannot approve: the rollout was aborted; addonflow retry hello -n default begins another attempt, which needs another decision"},
		"Unplanned":      {args: "approve hello fleet --yes", change: func(r *v1alpha1.AddOnRollout) { r.Spec.Target = &v1alpha1.Target{Digest: "newer"} }, code: exitTimeout, err: "has not planned the newest target"},
		"Twice":          {args: "approve hello fleet --yes", change: qaIs(v1alpha1.GateWaiting, "not counted"), earlier: decided(v1alpha1.Approve, "bob"), code: exitFailed, err: "cannot approve: the decision of bob on gate qa is Approve already, and the gate is Waiting: not counted; to withdraw it, delete AddOnApproval hello-bob in namespace default"},
		"AfterRejection": {args: "approve hello fleet --yes", earlier: decided(v1alpha1.Reject, "bob"), code: exitFailed, err: "the decision of bob on gate qa is Reject already"},
		"Uncounted":      {args: "approve hello fleet --yes --timeout 1ms", code: exitTimeout, created: 1, err: "the operator did not count the decision within 1ms: gate qa is Waiting; see addonflow tree hello -n default"},
		"Declined":       {args: "reject hello fleet", code: exitFailed, err: "not rejected: no AddOnApproval was created"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gated()
			if c.change != nil {
				c.change(r)
			}
			objects := []client.Object{r}
			if c.earlier != nil {
				objects = append(objects, c.earlier)
			}
			s := newStageWith(t, as("bob"), objects...)
			if code := s.run(t.Context(), strings.Fields(c.args)...); code != c.code || !strings.Contains(s.err.String(), c.err) {
				t.Errorf("exit code %d, %q, want %d, %q", code, s.err.String(), c.code, c.err)
			}
			if got := s.created(t); len(got) != c.created {
				t.Errorf("created %v", got)
			}
		})
	}
}

// TestDecisionThatDoesNotCount: what happened between the question and the verdict makes it count for nothing, and a
// script sees that.
func TestDecisionThatDoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		change func(*v1alpha1.AddOnRollout)
		code   int
		err    string
	}{
		"WithoutPolicy":   {"approve", qaIs(v1alpha1.GateError, "the policy is missing"), exitFailed, "the decision is stored, and does not count yet: gate qa is Error: the policy is missing"},
		"OlderThanPolicy": {"approve --timeout 300ms", qaIs(v1alpha1.GateWaiting, "0 of 2 approvals; not counted: hello-zoe"), exitTimeout, "the operator did not count the decision within 300ms: gate qa is Waiting: 0 of 2 approvals; not counted: hello-zoe; see"},
		"OtherContent":    {"approve", replaced, exitFailed, "the decision is stored, and does not count: rollout default/hello has other content or another attempt now; repeat the command"},
		"RejectOther":     {"reject", replaced, exitFailed, "the decision is stored, and does not count: rollout default/hello has other content"},
		"OtherAttempt":    {"approve", func(r *v1alpha1.AddOnRollout) { r.Status.Attempt = 2 }, exitFailed, "the decision is stored, and does not count: rollout default/hello has other content or another attempt now"},
		"Outweighed":      {"approve", qaIs(v1alpha1.GateFailed, "rejected by bob", "bob"), exitFailed, "the decision is stored, and has no effect: gate qa is Failed: rejected by bob"},
		"TooLate": {"reject", func(r *v1alpha1.AddOnRollout) {
			qaIs(v1alpha1.GatePassed, "approved by alice, bob", "alice", "bob")(r)
			r.Status.Stages[1].Gates[1].EvaluatedAt = new(metav1.NewTime(at()))
		}, exitFailed, "the decision is stored, and has no effect: gate qa is Passed: approved by alice, bob"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStageWith(t, counting("zoe", c.change, "qa"), gated())
			args := append(strings.Fields(c.args), "hello", "fleet", "--yes")
			if code := s.run(t.Context(), args...); code != c.code || !strings.Contains(s.err.String(), c.err) || len(s.created(t)) != 1 {
				t.Errorf("exit code %d, %q, want %d, %q; created %v", code, s.err.String(), c.code, c.err, s.created(t))
			}
		})
	}
}

// TestDecisionOnContentThatIsReplacedWhileItIsShown: the decision would be about content that is not rolled out.
func TestDecisionOnContentThatIsReplacedWhileItIsShown(t *testing.T) {
	s := newStageWith(t, as("bob"), gated())
	s.cli.change = func(ctx context.Context, _ client.Client, key types.NamespacedName, _ string) (addonrollout.Change, error) {
		r := &v1alpha1.AddOnRollout{}
		if err := s.hub.Get(ctx, key, r); err != nil {
			return addonrollout.Change{}, err
		}
		replaced(r)
		return addonrollout.Change{}, s.hub.Status().Update(ctx, r)
	}
	code := s.run(t.Context(), "approve", "hello", "fleet", "--yes")
	if want := "cannot approve: rollout default/hello has other content or another attempt than was shown; repeat the command"; code != exitFailed || !strings.Contains(s.err.String(), want) || len(s.created(t)) != 0 {
		t.Errorf("exit code %d, %q, want %d, %q; created %v", code, s.err.String(), exitFailed, want, s.created(t))
	}
}

// TestRejectionThatRollsBack: the clusters may go back before the command sees the verdict.
func TestRejectionThatRollsBack(t *testing.T) {
	s := newStageWith(t, counting("bob", func(r *v1alpha1.AddOnRollout) {
		left := *r.Status.Target
		replaced(r)
		r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: left, Reason: "approval qa: rejected by bob"}
	}), gated())
	code := s.run(t.Context(), "reject", "hello", "fleet", "--yes")
	if want := "The clusters go back from the rejected content: approval qa: rejected by bob\n"; code != 0 || !strings.HasSuffix(s.err.String(), want) {
		t.Errorf("exit code %d, %q, want 0, %q", code, s.err.String(), want)
	}
}

// TestDecisionDuringFinish: while newer content waits, the decision is about the content that is
// rolled out.
func TestDecisionDuringFinish(t *testing.T) {
	r := gated()
	r.Spec.Target = &v1alpha1.Target{Digest: "newer", Commit: strings.ReplaceAll(commit, "2", "3")}
	r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: *r.Spec.Target}
	s := newStageWith(t, as("bob"), r)
	if code := s.run(t.Context(), "approve", "hello", "fleet", "--yes", "--timeout", "0"); code != 0 || len(s.created(t)) != 1 || s.created(t)[0].Spec.Digest != digest {
		t.Fatalf("exit code %d: %s; created %v", code, s.err.String(), s.created(t))
	}
	if want := "main@3333333 waits until the rollout of the commit below has ended (onNewCommit is Finish); "; !strings.HasPrefix(s.err.String(), want) {
		t.Errorf("got %q, want %q", s.err.String(), want)
	}
}

// TestRejectAfterApproval: a user who approved may still reject, which decides.
func TestRejectAfterApproval(t *testing.T) {
	s := newStageWith(t, counting("bob", qaIs(v1alpha1.GateFailed, "rejected by bob: slow", "bob")), gated(), decided(v1alpha1.Approve, "bob"))
	if code := s.run(t.Context(), "reject", "hello", "fleet", "-m", "slow", "--yes"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	if got := s.created(t); len(got) != 1 || got[0].Spec.Decision != v1alpha1.Reject || !strings.HasSuffix(s.err.String(), "Gate qa is Failed: rejected by bob: slow\n") {
		t.Errorf("created %v, said %q", got, s.err.String())
	}
}

// TestRejectAfterTheGatePassed: while no cluster was admitted by the approvals of others, one rejection
// still decides.
func TestRejectAfterTheGatePassed(t *testing.T) {
	r := gated()
	qaIs(v1alpha1.GatePassed, "approved by alice, zoe")(r)
	s := newStageWith(t, counting("bob", qaIs(v1alpha1.GateFailed, "rejected by bob: slow", "bob")), r, decided(v1alpha1.Approve, "alice"))
	if code := s.run(t.Context(), "reject", "hello", "fleet", "-m", "slow", "--yes"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	if got := s.created(t); len(got) != 1 || got[0].Spec.Decision != v1alpha1.Reject || !strings.HasSuffix(s.err.String(), "Gate qa is Failed: rejected by bob: slow\n") {
		t.Errorf("created %v, said %q", got, s.err.String())
	}
}

// TestDecisionOfAUserWhoIsNoApprover: it would not count, so it is not made, and a script sees that it failed.
func TestDecisionOfAUserWhoIsNoApprover(t *testing.T) {
	s := newStageWith(t, as("mallory", "dev"), gated())
	if code := s.run(t.Context(), "approve", "hello", "fleet", "--yes"); code != exitFailed || len(s.created(t)) != 0 {
		t.Errorf("exit code %d, created %v", code, s.created(t))
	}
	if want := "cannot approve: mallory is not an approver of gate qa (users alice, bob; groups qa, ops), so the decision would not count\n"; s.err.String() != want {
		t.Errorf("said %q, want %q", s.err.String(), want)
	}
}

// TestDecisionOnAChangeThatCannotBeShown: it is made all the same, with a warning.
func TestDecisionOnAChangeThatCannotBeShown(t *testing.T) {
	s := newStageWith(t, counting("alice", qaIs(v1alpha1.GateWaiting, "1 of 2 approvals (alice)", "alice")), gated())
	s.cli.change = func(context.Context, client.Client, types.NamespacedName, string) (addonrollout.Change, error) {
		return addonrollout.Change{}, errors.New("manifestworks is forbidden")
	}
	if code := s.run(t.Context(), "approve", "hello", "fleet", "--yes"); code != 0 || len(s.created(t)) != 1 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	want := "warning: cannot show what changes: manifestworks is forbidden\n" +
		"Gate qa is Waiting: 1 of 2 approvals (alice)\n"
	if diff := cmp.Diff(want, s.err.String()); diff != "" {
		t.Error(diff)
	}
}

// TestDecisionWithoutATerminal: a script says that it means it.
func TestDecisionWithoutATerminal(t *testing.T) {
	s := newStageWith(t, as("bob"), gated())
	s.cli.asks = func() bool { return false }
	if code := s.run(t.Context(), "approve", "hello", "fleet"); code != exitUsage || !strings.Contains(s.err.String(), "use --yes") || len(s.created(t)) != 0 {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}
