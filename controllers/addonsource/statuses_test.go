package addonsource

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
)

// TestFleet_RolloutMadeAnewCountsFromOne: generations distinguish versions of one object, but
// not those of a new object with its name.
func TestFleet_RolloutMadeAnewCountsFromOne(t *testing.T) {
	ro := &v1alpha1.AddOnRollout{}
	ro.UID, ro.Generation = "new", 1
	ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
	ro.Status.ObservedGeneration, ro.Status.Outcome = 1, "success"
	for _, c := range []struct {
		reason  string
		written writtenRollout
		want    int
	}{
		{"nothing was written", writtenRollout{}, 1},
		{"this one was written", writtenRollout{uid: "new", generation: 1}, 1},
		{"the cache lags behind", writtenRollout{uid: "new", generation: 2}, 0},
		{"the one before was written", writtenRollout{uid: "old", generation: 7}, 1},
	} {
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, c.written)
		if f.upToDate != c.want {
			t.Errorf("%s: %d up to date, %v moving", c.reason, f.upToDate, f.moving)
		}
	}
}

// TestFleet_SuccessWithoutEveryClusterHasItsCounts: a cluster is parked, failed within the budget, or held by the strategy.
func TestFleet_SuccessWithoutEveryClusterHasItsCounts(t *testing.T) {
	f := fleet{}
	for name, updated := range map[string]int32{"hello": 11, "other": 12} {
		ro := &v1alpha1.AddOnRollout{}
		ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
		ro.Status.Outcome, ro.Status.Counts = "success", v1alpha1.Counts{Total: 12, Updated: updated}
		f.add(ro, v1alpha1.SourcedAddOn{Name: name, Digest: "v1"}, writtenRollout{})
	}
	if got := f.text("applied"); f.state() != commitstatus.Success || got != "applied; hello 11/12 updated; 1 add-on up to date" {
		t.Errorf("%s: %q", f.state(), got)
	}
}

// TestFleet_ClusterThatFailsAfterTheHaltIsReported: the commit of the source counts the clusters that failed.
func TestFleet_ClusterThatFailsAfterTheHaltIsReported(t *testing.T) {
	p := &pass{source: &v1alpha1.AddOnSource{}}
	var marks []commitstatus.Mark
	says := func(counts v1alpha1.Counts, message string, clusters ...string) (*v1alpha1.AddOnRollout, string) {
		ro := &v1alpha1.AddOnRollout{}
		ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
		ro.Status.Outcome, ro.Status.Message, ro.Status.Counts = "failure", message, counts
		for _, name := range clusters {
			ro.Status.Failing = append(ro.Status.Failing, v1alpha1.ClusterReason{Cluster: name})
		}
		conditions.MarkStalled(ro, v1alpha1.RolloutFailedReason, "%s", message)
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, writtenRollout{})
		marks = commitstatus.Enter(marks, p.verdict(f))
		return ro, commitstatus.Last(marks[0]).Description
	}
	var before *v1alpha1.AddOnRollout
	for _, c := range []struct {
		counts   v1alpha1.Counts
		message  string
		clusters []string
		want     string
	}{
		{v1alpha1.Counts{Failed: 1, InFlight: 2}, "1 failed, 2 in flight", []string{"c1"}, "1 failed, 2 in flight"},
		{v1alpha1.Counts{Failed: 1, InFlight: 1}, "1 failed, 1 in flight", []string{"c1"}, "1 failed, 2 in flight"},
		{v1alpha1.Counts{Failed: 2}, "2 failed", []string{"c1", "c2"}, "2 failed"},
		{v1alpha1.Counts{Failed: 1}, "1 failed", []string{"c2"}, "1 failed"},
	} {
		ro, got := says(c.counts, c.message, c.clusters...)
		if got != "hello: "+c.want {
			t.Errorf("%s: %q, want %q", c.message, got, "hello: "+c.want)
		}
		if before != nil && !moved(before, ro) {
			t.Errorf("%s: the source does not look at it", c.message)
		}
		before = ro
	}
}

// TestFleet_SpecOfANewerCommitIsNoVerdictOnTheApplied: the operator was killed between the write
// of the spec and that of the status. What the rollout makes of the spec is reported on its commit.
func TestFleet_SpecOfANewerCommitIsNoVerdictOnTheApplied(t *testing.T) {
	ro := &v1alpha1.AddOnRollout{}
	ro.Spec.Target = &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:aaa"}
	ro.Spec.PolicyCommit = "main@sha1:bbb"
	ro.Status.Outcome = "failure"
	conditions.MarkStalled(ro, v1alpha1.InvalidRolloutStrategyReason, "no such group")
	for _, c := range []struct {
		reason, policy string
		want           commitstatus.State
	}{
		{"the status is that of the commit before", "", commitstatus.Pending},
		{"the status is that of the policy's commit", "main@sha1:bbb", commitstatus.Failure},
	} {
		f := fleet{leftGit: map[string][]string{}}
		applied := v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1", Commit: "main@sha1:aaa", PolicyCommit: c.policy}
		f.declare(v1alpha1.AddOnSourceStatus{LastAppliedRevision: "main@sha1:aaa", AddOns: []v1alpha1.SourcedAddOn{applied}}, nil, map[string]*v1alpha1.AddOnRollout{"hello": ro})
		f.add(ro, applied, writtenRollout{})
		if ahead := c.policy == ""; f.ahead != ahead {
			t.Errorf("%s: the rollout is ahead: %t", c.reason, f.ahead)
		}
		if got := f.state(); got != c.want || f.contentFailed {
			t.Errorf("%s: %s, want %s; the content failed: %t", c.reason, got, c.want, f.contentFailed)
		}
	}
}

// TestFleet_KnowsWhichCommitsRolloutsHaveBeforeTheStatusDoes: the status may be one commit behind, for each add-on.
func TestFleet_KnowsWhichCommitsRolloutsHaveBeforeTheStatusDoes(t *testing.T) {
	rollout := func(name, commit string) *v1alpha1.AddOnRollout {
		return &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Digest: commit, Commit: "main@sha1:" + commit}}}
	}
	left := rollout("left", "aaa")
	left.Spec.Removal = &v1alpha1.Removal{Commit: "bbb"}
	uninstalled := rollout("uninstalled", "aaa")
	uninstalled.Spec.Removal = &v1alpha1.Removal{Commit: "aaa", Deleting: "AddOnSource/fleet"}
	status := v1alpha1.AddOnSourceStatus{LastAppliedRevision: "main@sha1:aaa"}
	for _, name := range []string{"as-before", "changed", "left", "not-yet-made", "uninstalled"} {
		status.AddOns = append(status.AddOns, v1alpha1.SourcedAddOn{Name: name, Digest: "aaa", Commit: "main@sha1:aaa"})
	}
	var f fleet
	f.declare(status, nil, map[string]*v1alpha1.AddOnRollout{
		"added": rollout("added", "bbb"), "as-before": rollout("as-before", "aaa"), "changed": rollout("changed", "bbb"), "left": left, "uninstalled": uninstalled,
	})
	var got []string
	for _, addOn := range f.addOns {
		got = append(got, addOn.Name+" "+addOn.Digest)
	}
	want := []string{"added bbb", "as-before aaa", "changed bbb", "not-yet-made aaa", "uninstalled aaa"}
	if !slices.Equal(got, want) || !f.ahead {
		t.Errorf("%q, ahead: %t", got, f.ahead)
	}
}

// TestTellHead_NamesWhatADefinitionLacksNow: a verdict on no content stands as long as its text does.
func TestTellHead_NamesWhatADefinitionLacksNow(t *testing.T) {
	p := &pass{source: &v1alpha1.AddOnSource{}, before: &v1alpha1.AddOnSource{}, head: gitsource.Revision{Commit: strings.Repeat("2", 40)}}
	book := forge.NewDesk(forge.Options{Now: time.Now}).Open(forge.Key{}, nil, nil)
	for _, text := range []string{"it is being deleted", "it is missing"} {
		p.enterHead(book, outcome{}, wait(v1alpha1.DefinitionMissingReason, time.Second, "%s", text))
		if said := commitstatus.Last(book.Marks()[0]); said.Description != text {
			t.Errorf("%q, want %q", said.Description, text)
		}
	}
}

// TestFleet_HandBrokenPaceFailsNoOlderCommit: a pace that was edited on the hub belongs to no commit. So it fails
// neither the commit of the policy nor other commits with the same content.
func TestFleet_HandBrokenPaceFailsNoOlderCommit(t *testing.T) {
	for _, policy := range []string{"", "main@sha1:bbb"} {
		ro := &v1alpha1.AddOnRollout{}
		ro.Spec.Target = &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:aaa"}
		ro.Spec.PolicyCommit = policy
		ro.Status.Outcome = "failure"
		conditions.MarkStalled(ro, v1alpha1.InvalidRolloutStrategyReason, "no such group")
		ro.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:strategy":{}}}`)}}
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1", Commit: "main@sha1:aaa", PolicyCommit: policy}, writtenRollout{})
		if f.state() != commitstatus.Failure || f.contentFailed || len(f.policies) > 0 {
			t.Errorf("policy %q: %s; the content failed: %t, the policies of %q", policy, f.state(), f.contentFailed, f.policies)
		}
	}
}

// TestFleet_DeletingAFailedRolloutChangesNoStatus: how to end the deletion is said in the
// condition. The text for the forge is cut, and what is left of an advice is wrong there.
func TestFleet_DeletingAFailedRolloutChangesNoStatus(t *testing.T) {
	ro := &v1alpha1.AddOnRollout{}
	ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
	ro.Status.Target = ro.Spec.Target
	ro.Generation, ro.Status.ObservedGeneration = 4, 4
	ro.Status.Outcome, ro.Status.Message = "failure", "halted in all: 1 failed (c1: no such image)"
	conditions.MarkStalled(ro, v1alpha1.RolloutFailedReason, "%s", ro.Status.Message)
	conditions.MarkFalse(ro, fluxmeta.ReadyCondition, v1alpha1.RolloutFailedReason, "%s", ro.Status.Message)
	said := func() string {
		f := fleet{leftGit: map[string][]string{}}
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, writtenRollout{})
		return string(f.state()) + ": " + f.text("applied")
	}
	before := said()
	now := metav1.Now()
	ro.DeletionTimestamp, ro.Generation = &now, 5 // as the API server does
	if got := said(); got != before {
		t.Errorf("before the rollout saw it: %q, was %q", got, before)
	}
	ro.Status.ObservedGeneration = 5
	conditions.MarkFalse(ro, fluxmeta.ReadyCondition, v1alpha1.RolloutFailedReason, "%s; the AddOnRollout is being deleted", ro.Status.Message)
	if got := said(); got != before {
		t.Errorf("after the rollout saw it: %q, was %q", got, before)
	}
}

// TestFleet_NamesWhatIsHeld: the context of the whole says that an add-on is held, and why. A
// change of that is a change of where the add-on stands.
func TestFleet_NamesWhatIsHeld(t *testing.T) {
	at := func(phase v1alpha1.Phase, message string) *v1alpha1.AddOnRollout {
		ro := &v1alpha1.AddOnRollout{}
		ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
		ro.Status.Phase, ro.Status.Message, ro.Status.Outcome = phase, message, "pending"
		ro.Status.Counts.Total = 3
		return ro
	}
	moving := at(v1alpha1.PhaseProgressing, "canary 0/1, 1 in flight")
	absent := at(v1alpha1.PhaseHeld, "canary 0/0, Placement team/canary does not exist")
	empty := at(v1alpha1.PhaseHeld, "canary 0/0, held: Placement team/canary selects no cluster")
	missing := at(v1alpha1.PhaseProgressing, "revision hello-0123456789 is missing; canary 0/1")
	conditions.MarkReconciling(missing, v1alpha1.RevisionMissingReason, "how to get it")
	leaving := at(v1alpha1.PhaseHeld, "removal waits for approval")
	leaving.Name, leaving.Spec.Removal = "hello", &v1alpha1.Removal{}
	for _, c := range []struct {
		ro         *v1alpha1.AddOnRollout
		text, held string
	}{
		{moving, "applied; hello not yet up to date", ""},
		{absent, "applied; hello held: canary 0/0, Placement team/canary does not exist", "hello held: canary 0/0, Placement team/canary does not exist"},
		{empty, "applied; hello held: canary 0/0, Placement team/canary selects no cluster", "hello held: canary 0/0, Placement team/canary selects no cluster"},
		{at(v1alpha1.PhaseSuspended, "suspended; canary 0/1"), "applied; hello suspended; canary 0/1", "hello suspended; canary 0/1"},
		{missing, "applied; hello held: revision hello-0123456789 is missing; canary 0/1", "hello held: revision hello-0123456789 is missing; canary 0/1"},
		{leaving, "applied; hello held: removal waits for approval", "hello held: removal waits for approval"},
	} {
		f := fleet{}
		f.add(c.ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, writtenRollout{})
		if got := f.text("applied"); got != c.text || f.held() != c.held || f.state() != commitstatus.Pending {
			t.Errorf("%s: %q, held %q; want %q, held %q", f.state(), got, f.held(), c.text, c.held)
		}
	}
	counted := fleet{counted: true}
	counted.add(moving, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, writtenRollout{})
	if got := counted.text("applied"); got != "applied; hello 0/3" {
		t.Errorf("with detail: source, whose add-ons have no contexts: %q", got)
	}
	if !moved(moving, absent) || !moved(absent, empty) {
		t.Error("the source does not report that a hold began or has another reason")
	}
}

// TestFleet_SaysHowItGoesBack: the rollout names the pull request after the failure was posted, and maybe after the
// pass that opened it.
func TestFleet_SaysHowItGoesBack(t *testing.T) {
	at := func(phase v1alpha1.Phase, proposed string) *v1alpha1.AddOnRollout {
		ro := &v1alpha1.AddOnRollout{}
		ro.Name, ro.Spec.Target = "hello", &v1alpha1.Target{Digest: "v2"}
		ro.Status.Phase, ro.Status.Outcome = phase, "failure"
		ro.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Proposed: proposed}
		return ro
	}
	going, back, proposed := at(v1alpha1.PhaseRollingBack, ""), at(v1alpha1.PhaseRolledBack, ""), at(v1alpha1.PhaseRolledBack, "https://gitea.example/team/fleet/pulls/12")
	if !moved(going, back) || !moved(back, proposed) || moved(proposed, proposed.DeepCopy()) {
		t.Error("the source does not report that the fleet is back, or which pull request makes Git agree")
	}
}

// TestMoved_ByAllThatTheSourceReportsOfARollout: a status or condition of the source that depends on a rollout does not
// stay as it was until the next look at the repository. Counts of clusters that move wake the source once per tenth.
func TestMoved_ByAllThatTheSourceReportsOfARollout(t *testing.T) {
	running := &v1alpha1.AddOnRollout{}
	running.Name, running.Spec.Target = "hello", &v1alpha1.Target{Digest: "v2", Commit: "main@sha1:bbb"}
	running.Status.Target = running.Spec.Target
	running.Status.Phase, running.Status.Outcome = v1alpha1.PhaseProgressing, "pending"
	running.Status.Counts = v1alpha1.Counts{Total: 100, Updated: 11, Failed: 1}
	running.Status.History = []v1alpha1.HistoryEntry{{Target: *running.Spec.Target, Phase: v1alpha1.PhaseProgressing, Counts: running.Status.Counts}}
	failed := running.DeepCopy()
	failed.Status.Phase, failed.Status.Outcome, failed.Status.Message = v1alpha1.PhaseFailed, "failure", "canary 1/3, 1 failed (c1: it crashes)"
	conditions.MarkStalled(failed, v1alpha1.RolloutFailedReason, "it crashes")
	rolling := failed.DeepCopy()
	rolling.Status.Phase, rolling.Status.Override = v1alpha1.PhaseRollingBack, &v1alpha1.Override{Kind: v1alpha1.OverrideRollback}
	back := rolling.DeepCopy()
	back.Status.Phase = v1alpha1.PhaseRolledBack
	leaving := running.DeepCopy()
	leaving.Spec.Removal, leaving.Status.Phase = &v1alpha1.Removal{Commit: "ccc"}, v1alpha1.PhaseRemoving
	deleted := leaving.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.Finalizer}
	for name, c := range map[string]struct {
		before *v1alpha1.AddOnRollout
		change func(*v1alpha1.AddOnRollout)
		want   bool
	}{
		"it fails on another cluster": {failed, func(r *v1alpha1.AddOnRollout) { r.Status.Message = "canary 1/3, 2 failed (c1: it crashes)" }, true},
		"it fails for its policy": {failed, func(r *v1alpha1.AddOnRollout) {
			conditions.MarkStalled(r, v1alpha1.InvalidRolloutStrategyReason, "no group")
		}, true},
		"it is back on all but held ones": {back, func(r *v1alpha1.AddOnRollout) { r.Status.Message = "rolled back, 1 held by annotation (c1)" }, true},
		"it stops rolling back":           {rolling, func(r *v1alpha1.AddOnRollout) { r.Status.Phase = v1alpha1.PhaseFailed }, true},
		"a cluster goes back": {rolling, func(r *v1alpha1.AddOnRollout) {
			r.Status.Counts.Updated++
			r.Status.Message = "rolling back; 12/100 updated"
		}, false},
		"a tenth is back":                    {rolling, func(r *v1alpha1.AddOnRollout) { r.Status.Counts.Updated = 21 }, true},
		"a cluster is updated":               {running, func(r *v1alpha1.AddOnRollout) { r.Status.Counts.Updated++; r.Status.History[0].Counts.Updated++ }, false},
		"it is removed from a cluster":       {leaving, func(r *v1alpha1.AddOnRollout) { r.Status.Counts.Removing++ }, false},
		"it is to be released":               {leaving, func(r *v1alpha1.AddOnRollout) { r.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"} }, true},
		"it is to be released while deleted": {deleted, func(r *v1alpha1.AddOnRollout) { r.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"} }, true},
		"an earlier rollout ended":           {running, func(r *v1alpha1.AddOnRollout) { r.Status.History[0].SupersededBy = "main@sha1:ddd" }, true},
		"only its journal grows":             {running, func(r *v1alpha1.AddOnRollout) { r.Status.Journal = []v1alpha1.JournalEntry{{}} }, false},
	} {
		after := c.before.DeepCopy()
		c.change(after)
		if moved(c.before, after) != c.want {
			t.Errorf("%s: wakes the source: %t, want %t", name, !c.want, c.want)
		}
	}
}

// The watch may lag behind the removal that the same pass wrote: the commit is pending all the same.
func TestFleet_RemovalThatTheWatchDoesNotShowYetIsPending(t *testing.T) {
	ro := &v1alpha1.AddOnRollout{}
	ro.Name, ro.Status.Phase, ro.Status.Outcome = "hello", v1alpha1.PhaseSucceeded, "success"
	f := fleet{leftGit: map[string][]string{}}
	f.undeclared(ro)
	if got := f.text("applied"); f.state() != commitstatus.Pending || got != "applied; hello not yet removed" {
		t.Errorf("%s: %q", f.state(), got)
	}
}

// TestFleet_DeletedRolloutStartsWithNewContent: a rollout that a user deleted, and that is kept,
// has not looked at the new content yet.
func TestFleet_DeletedRolloutStartsWithNewContent(t *testing.T) {
	for _, c := range []struct {
		outcome, planned string
		failed, moving   int
	}{
		{"success", "v1", 0, 1},
		{"failure", "v1", 0, 1},
		{"failure", "v2", 1, 0},
	} {
		ro := &v1alpha1.AddOnRollout{}
		now := metav1.Now()
		ro.UID, ro.Generation, ro.DeletionTimestamp = "one", 3, &now
		ro.Spec.Target = &v1alpha1.Target{Digest: "v2"}
		ro.Status.Target = &v1alpha1.Target{Digest: c.planned}
		ro.Status.ObservedGeneration, ro.Status.Outcome = 2, c.outcome
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v2"}, writtenRollout{})
		if len(f.failed) != c.failed || len(f.moving) != c.moving {
			t.Errorf("%s with %s: %+v", c.outcome, c.planned, f)
		}
	}
}

// TestCommitThatTouchesOneOf200AddOnsCostsThreePosts: all other add-ons are a number in the context of the source, and an
// add-on that is Succeeded posts nothing itself (TestRefusedCommitIsNotApplied, TestNewestCommitMirrorsARunningRollout).
func TestCommitThatTouchesOneOf200AddOnsCostsThreePosts(t *testing.T) {
	p := &pass{source: &v1alpha1.AddOnSource{}}
	p.source.Name, p.source.Spec.CommitStatus = "fleet", &v1alpha1.CommitStatusSpec{Provider: "github"}
	sha, now := strings.Repeat("2", 40), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rollouts := map[string]*v1alpha1.AddOnRollout{}
	for i := range 200 {
		name := fmt.Sprintf("addon-%03d", i)
		ro := &v1alpha1.AddOnRollout{}
		ro.Name, ro.Spec.Target = name, &v1alpha1.Target{Digest: name}
		ro.Status.Outcome, ro.Status.Counts = "success", v1alpha1.Counts{Total: 24, Updated: 24}
		rollouts[name] = ro
	}
	var marks []commitstatus.Mark
	var posts []string
	tell := func(want commitstatus.Want) {
		marks = commitstatus.Enter(marks, want)
		var began []commitstatus.Mark
		marks, began = commitstatus.Begin("github", marks, now)
		for _, m := range began {
			posts = append(posts, m.Posting.State+": "+m.Posting.Description)
			marks = commitstatus.WithResults(marks, []commitstatus.Result{{Of: m, Shows: *m.Posting, At: now.Unix()}})
		}
	}
	tell(p.want(sha, commitstatus.Pending, "fetched main@2222222, applying"))
	changed := rollouts["addon-007"]
	pace := 30 * time.Second         // after it, the text of the applied commit is posted
	for updated := range int32(25) { // two hours in all
		now, pace = now.Add(pace), 5*time.Minute
		changed.Status.Outcome, changed.Status.Counts.Updated = "pending", updated
		if updated == 24 {
			changed.Status.Outcome = "success"
		}
		f := fleet{leftGit: map[string][]string{}}
		for name, ro := range rollouts {
			f.add(ro, v1alpha1.SourcedAddOn{Name: name, Digest: name}, writtenRollout{})
		}
		want := p.want(sha, f.state(), f.text("applied"))
		want.Progress, want.Content, want.Held = f.progress(), "content", f.held()
		tell(want)
	}
	if want := []string{
		"pending: fetched main@2222222, applying",
		"pending: applied; addon-007 not yet up to date; 199 add-ons up to date",
		"success: applied; 200 add-ons up to date",
	}; !slices.Equal(posts, want) {
		t.Errorf("posts %q", posts)
	}
}

// TestWebhookPathIsRandomAndStays: it cannot be guessed from the source, does not change while webhooks are declared, and
// is gone with them.
func TestWebhookPathIsRandomAndStays(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		p := &pass{source: &v1alpha1.AddOnSource{}}
		p.setWebhookPath()
		if p.source.Status.WebhookPath != "" {
			t.Fatal("a path without spec.webhook")
		}
		p.source.Spec.Webhook = &v1alpha1.WebhookSpec{}
		p.setWebhookPath()
		path := p.source.Status.WebhookPath
		if random, ok := strings.CutPrefix(path, "/hook/"); !ok || len(random) != 32 || strings.Trim(random, "0123456789abcdef") != "" || seen[path] {
			t.Fatalf("path %q", path)
		}
		seen[path] = true
		if p.setWebhookPath(); p.source.Status.WebhookPath != path {
			t.Error("the path changed")
		}
		p.source.Spec.Webhook = nil
		if p.setWebhookPath(); p.source.Status.WebhookPath != "" {
			t.Error("the path outlives spec.webhook")
		}
	}
}

// TestFleet_RollbackIsNewsAboutAFailure: without it the source's context would stay at the text of
// the first turn of the rollback.
func TestFleet_RollbackIsNewsAboutAFailure(t *testing.T) {
	declared := v1alpha1.Target{Digest: "v2", Commit: "main@sha1:bbb"}
	ro := &v1alpha1.AddOnRollout{Spec: v1alpha1.AddOnRolloutSpec{Target: &declared}}
	ro.Status.Target, ro.Status.Outcome = &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:aaa"}, "failure"
	ro.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideBlocked, Declared: declared}
	texts := map[string]bool{}
	for _, now := range []struct {
		phase    v1alpha1.Phase
		proposed string
	}{{v1alpha1.PhaseRollingBack, ""}, {v1alpha1.PhaseRolledBack, ""}, {v1alpha1.PhaseRolledBack, "https://gitea.example/pulls/1"}} {
		ro.Status.Phase, ro.Status.Override.Proposed = now.phase, now.proposed
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v2", Commit: declared.Commit}, writtenRollout{})
		texts[f.back] = true
	}
	if len(texts) != 3 || texts[""] {
		t.Errorf("the contents are %v", texts)
	}
}

// TestUnseen_ContentThatTheFleetLeftWasSeen: a rollout whose status was lost and rebuilt knows the
// content that it went back from by its override alone, and reports on its commit itself.
func TestUnseen_ContentThatTheFleetLeftWasSeen(t *testing.T) {
	bad := v1alpha1.Target{Digest: "v2", Commit: "main@sha1:bbb"}
	ro := v1alpha1.AddOnRollout{Spec: v1alpha1.AddOnRolloutSpec{Target: &bad}}
	ro.Status.Target = &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:aaa"}
	ro.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: bad}
	revert := v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1", Commit: "main@sha1:ccc"}
	if got := unseen(ro, revert, nil); got.Commit != "" {
		t.Errorf("%s is superseded, although the rollout reported on it", got.Commit)
	}
}

// TestFinished_SaysNoProgressOfARollback: newer content follows at once after a rollback, and nothing reports on the
// commit then. So its text, of a time before or after the newer commit, does not say how far the rollback is.
func TestFinished_SaysNoProgressOfARollback(t *testing.T) {
	sha := strings.Repeat("a", 40)
	target := v1alpha1.Target{Digest: "v2", Commit: "main@sha1:" + sha}
	ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	ro.Spec.OnNewCommit, ro.Status.Phase, ro.Status.Outcome = v1alpha1.OnNewCommitFinish, v1alpha1.PhaseRollingBack, "pending"
	ro.Status.Message = "rolling back to c51eb1958b: leaks; canary 0/2, 2 in flight"
	ro.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRecall, Declared: v1alpha1.Target{Digest: "v3"}, From: &target, Reason: "leaks"}
	ro.Status.History = []v1alpha1.HistoryEntry{{Target: target, Phase: v1alpha1.PhaseFailed}}
	other := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	other.Status.Phase, other.Status.Outcome = v1alpha1.PhaseProgressing, "pending"
	other.Status.History = []v1alpha1.HistoryEntry{{Target: target, Phase: v1alpha1.PhaseProgressing}}
	for name, before := range map[string]commitstatus.Want{
		"before the rollback": {State: commitstatus.Pending, Description: "applied; hello not yet up to date"},
		"during the rollback": {State: commitstatus.Failure, Description: "hello: " + ro.Status.Message},
	} {
		p := &pass{source: &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}}
		book := forge.NewDesk(forge.Options{Now: time.Now}).Open(forge.Key{}, nil, nil)
		before.SHA, before.Context = sha, forge.ContextName(p.source)
		book.Enter(before)
		for range 2 {
			var f fleet
			f.finish(ro)
			f.finish(other)
			book.Enter(p.finished(book, f, nil)...)
			last := commitstatus.Last(book.Marks()[0])
			if last.State != "failure" || last.Description != "hello: content quarantined: leaks" {
				t.Errorf("%s: %+v", name, last)
			}
		}
	}
}

// TestFinished_JudgesACommitByAllOfItsAddOns: one add-on finishes although newer content is declared; the others have
// ended, wait, or were superseded.
func TestFinished_JudgesACommitByAllOfItsAddOns(t *testing.T) {
	sha := strings.Repeat("a", 40)
	rollout := func(name string, on v1alpha1.NewCommitAction, phase v1alpha1.Phase, supersededBy string) *v1alpha1.AddOnRollout {
		ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: name}}
		target := v1alpha1.Target{Digest: name, Commit: "main@sha1:" + sha}
		ro.Spec.Target, ro.Status.Target, ro.Spec.OnNewCommit = &target, &target, on
		ro.Status.Phase, ro.Status.Outcome, ro.Status.Message = phase, "pending", "waits for approval qa"
		ro.Status.History = []v1alpha1.HistoryEntry{{Target: target, Phase: phase, SupersededBy: supersededBy}}
		return ro
	}
	for name, c := range map[string]struct {
		other *v1alpha1.AddOnRollout
		want  commitstatus.State // "" for none
	}{
		"the other succeeded as well": {rollout("other", v1alpha1.OnNewCommitSupersede, v1alpha1.PhaseSucceeded, ""), commitstatus.Success},
		"the other is held":           {rollout("other", v1alpha1.OnNewCommitSupersede, v1alpha1.PhaseHeld, ""), commitstatus.Pending},
		"the other was superseded":    {rollout("other", v1alpha1.OnNewCommitSupersede, v1alpha1.PhaseProgressing, "bbb"), ""},
		"the other failed":            {rollout("other", v1alpha1.OnNewCommitSupersede, v1alpha1.PhaseFailed, ""), commitstatus.Failure},
	} {
		p := &pass{source: &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}}
		book := forge.NewDesk(forge.Options{Now: time.Now}).Open(forge.Key{}, nil, nil)
		book.Enter(commitstatus.Want{SHA: sha, Context: forge.ContextName(p.source), State: commitstatus.Pending})
		var f fleet
		f.finish(rollout("hello", v1alpha1.OnNewCommitFinish, v1alpha1.PhaseSucceeded, ""))
		f.finish(c.other)
		var got commitstatus.State
		if wants := p.finished(book, f, nil); len(wants) > 0 {
			got = wants[0].State
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
