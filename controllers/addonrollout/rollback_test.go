package addonrollout

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// runs are the clusters whose works name a revision.
func (s *scene) holding(digest string) []string {
	s.t.Helper()
	var names []string
	for name, w := range s.works() {
		if w.Annotations[v1alpha1.RevisionAnnotation] == digest {
			names = append(names, name)
		}
	}
	return slices.Sorted(slices.Values(names))
}

// declare changes the policy.
func (s *scene) declare(change func(*v1alpha1.AddOnRolloutSpec)) {
	s.t.Helper()
	ro := s.rollout()
	change(&ro.Spec)
	ro.Generation++
	s.update(ro)
}

// rollsBack is a policy with one failure, one at a time, that rolls back.
func rollsBack(spec *v1alpha1.AddOnRolloutSpec) { spec.OnFailure = v1alpha1.OnFailureRollback }

// failed lets v2 fail on its first cluster, after v1 succeeded everywhere. It returns both digests.
func (s *scene) failed() (v1, v2 string) {
	s.t.Helper()
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 = s.target("v1")
	s.settle()
	v2 = s.target("v2")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRollingBack || ro.Status.Outcome != "failure" || ro.Status.History[0].Phase != v1alpha1.PhaseFailed {
		s.t.Fatalf("the rollout is %s, %s, and in the history %s, want RollingBack at once: %s", ro.Status.Phase, ro.Status.Outcome, ro.Status.History[0].Phase, ro.Status.Message)
	}
	return v1, v2
}

func (s *scene) rolledBack() *v1alpha1.AddOnRollout {
	s.t.Helper()
	const phase = v1alpha1.PhaseRolledBack
	for range 10 {
		s.settleOnce()
		if ro := s.rollout(); ro.Status.Phase == phase {
			return ro
		}
	}
	s.t.Fatalf("the rollout is %s, want %s: %s", s.rollout().Status.Phase, phase, s.rollout().Status.Message)
	return nil
}

// A rollout that fails quarantines its content before the first cluster moves back, and ends
// RolledBack, with the fleet on the revision that succeeded before.
func TestRollback_TakesAFailedRolloutBack(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	v1, v2 := s.failed()
	if _, ok := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); !ok {
		t.Fatal("the failed content is not quarantined")
	}
	if got := s.holding(v2); !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("before the next turn %v run v2", got)
	}
	s.announced()
	s.turn()
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseRollingBack || ro.Status.Outcome != "failure" || ro.Status.Override == nil || ro.Status.Override.Declared.Digest != v2 || ro.Status.Target.Digest != v1 {
		t.Fatalf("%s, outcome %s, override %+v, target %+v", ro.Status.Phase, ro.Status.Outcome, ro.Status.Override, ro.Status.Target)
	}
	ro = s.rolledBack()
	if got := s.holding(v1); len(got) != 3 {
		t.Errorf("only %v are back at v1", got)
	}
	for _, word := range []string{"rolled back to " + commitNamed("v1")[:10], "from " + commitNamed("v2")[:10], "halted in everyone"} {
		if !strings.Contains(ro.Status.Message, word) {
			t.Errorf("the message %q lacks %q", ro.Status.Message, word)
		}
	}
	got := s.announced()
	for _, begin := range []string{"Warning RollingBack Rolling back to main@sha1:" + commitNamed("v1"), "Warning RolledBack Rolled back to main@sha1:" + commitNamed("v1")} {
		failed := revisionMetadata + ":main@sha1:" + commitNamed("v2")
		if !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, begin) && strings.Contains(e, failed) }) {
			t.Errorf("no event %q with metadata %q in\n %s", begin, failed, strings.Join(got, "\n "))
		}
	}
	if ro.Status.Stable.Digest != v1 {
		t.Errorf("stable is %s", ro.Status.Stable.Digest)
	}
	if got := strings.Join(journaled(ro), " "); !strings.Contains(got, "Halted everyone") || strings.Contains(got, "Superseded") || strings.Contains(got, "Resumed") {
		t.Errorf("the journal is %v", got)
	}
	before := ro.ResourceVersion
	s.turns(3)
	if after := s.rollout().ResourceVersion; after != before {
		t.Error("a rolled back rollout is written again and again")
	}
}

// An operator that finds the status of before the bad content moves the clusters back without their soak, and says so.
func TestRollback_WithAnOlderStatusHasNoSoak(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.canary("c1")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages[0].MinSuccessTime.Duration, spec.Stages[0].ProgressDeadline = time.Hour, "1m"
	})
	v1 := s.commit("v1")
	s.ticks(12, 20*time.Minute, "c1", "c2", "c3")
	older := s.rollout().Status
	v2 := s.commit("v2")
	s.ticks(3, 0, "c2", "c3")
	s.advance(time.Minute)
	s.turn()
	if got := s.holding(v2); older.Phase != v1alpha1.PhaseSucceeded || s.rollout().Status.Phase != v1alpha1.PhaseRollingBack || !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("the older status is %s, the rollout %s, and %v have the content", older.Phase, s.rollout().Status.Phase, got)
	}
	s.restoreStatus(older)
	s.ticks(6, time.Second, "c1", "c2", "c3")
	ro := s.rollout()
	if want := "rolled back to " + commitNamed("v1")[:10] + " from " + commitNamed("v2")[:10]; ro.Status.Phase != v1alpha1.PhaseRolledBack || !strings.HasPrefix(ro.Status.Message, want) {
		t.Errorf("%s: %s, want %q", ro.Status.Phase, ro.Status.Message, want)
	}
	if h := ro.Status.History[1]; h.Target.Digest != v2 || h.Phase != v1alpha1.PhaseFailed || h.Quarantine == nil {
		t.Errorf("the history does not have the content that failed: %+v", ro.Status.History)
	}
	s.runs(v1, "c1", "c2", "c3")
}

// The quarantine is all that a rollback depends on: an operator that finds an empty status goes on
// with it.
func TestRollback_ContinuesWhenTheStatusIsLost(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	v1, v2 := s.failed()
	s.turn()
	ro := s.rollout()
	ro.Status = v1alpha1.AddOnRolloutStatus{}
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	s.restart()
	ro = s.rolledBack()
	if ro.Status.Override.Declared.Digest != v2 || len(s.holding(v1)) != 3 {
		t.Errorf("override %+v, %v run v1", ro.Status.Override, s.holding(v1))
	}
}

// New content proceeds normally and lifts no quarantine; the quarantined content is not rolled out
// when another commit declares it again, until it is unblocked.
func TestRollback_NewContentProceedsAndTheOldStaysQuarantined(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	_, v2 := s.failed()
	s.rolledBack()
	v3 := s.target("v3")
	s.settle()
	if ro := s.rollout(); ro.Status.Override != nil || len(s.holding(v3)) != 3 {
		t.Fatalf("override %+v, %v run v3", ro.Status.Override, s.holding(v3))
	}
	s.target("v2")
	ro := s.rolledBack()
	if len(s.holding(v2)) != 0 || len(s.holding(v3)) != 3 || ro.Status.Target.Digest != v3 {
		t.Fatalf("%v run the quarantined content, %v run v3", s.holding(v2), s.holding(v3))
	}
	s.order(v1alpha1.OrderUnblock, v2, nil)
	s.settle()
	if len(s.holding(v2)) != 3 {
		t.Errorf("after the quarantine %v run v2", s.holding(v2))
	}
}

// Quarantined content that Git declares again moves no cluster. The success of the content that the clusters keep stays
// in the history, and the message does not say that clusters left the content.
func TestHistory_KeepsTheSuccessIfQuarantinedContentIsDeclaredAgain(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	_, v2 := s.failed()
	s.rolledBack()
	s.targetOf(contentAt("v1"), "w3")
	s.settle()
	succeeded := s.rollout().Status.History[0]
	if succeeded.Phase != v1alpha1.PhaseSucceeded {
		t.Fatalf("the revert is %s: %s", succeeded.Phase, succeeded.Reason)
	}
	s.advance(time.Hour)
	s.targetOf(contentAt("v2"), "w4")
	ro := s.rolledBack()
	kept := ro.Status.History[1]
	kept.Attempt = succeeded.Attempt // written when the rollout is over
	if ro.Status.History[0].Phase != v1alpha1.PhaseRolledBack || !equality.Semantic.DeepEqual(kept, succeeded) {
		t.Errorf("the history is %+v, want the success as it was: %+v", ro.Status.History, succeeded)
	}
	want := "keeps " + commitNamed("w3")[:10] + " instead of " + commitNamed("w4")[:10] + " ("
	if len(s.holding(v2)) != 0 || !strings.HasPrefix(ro.Status.Message, want) {
		t.Errorf("the message is %q, want %q", ro.Status.Message, want)
	}
	s.restart()
	s.turns(3)
	if again := s.rollout(); again.ResourceVersion != ro.ResourceVersion {
		t.Error("the rollout is written again")
	}
}

// Without a revision that succeeded there is nothing to go back to: the rollout pauses and says so.
func TestRollback_OfAFirstInstallPauses(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.turns(3)
	s.advance(time.Minute)
	s.turns(3)
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, "not rolled back: no other revision succeeded here") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if _, ok := v1alpha1.ReadQuarantine(s.revision(v1).Annotations); ok {
		t.Error("the content is quarantined although there is no other")
	}
}

// spec.blocked takes content back that was green, and lets it be again when the entry goes.
func TestBlocked_ContentGoesBackUntilTheEntryIsRemoved(t *testing.T) {
	for name, entry := range map[string]func(digest, tag string) v1alpha1.BlockedContent{
		"ByDigest": func(digest, _ string) v1alpha1.BlockedContent {
			return v1alpha1.BlockedContent{Digest: digest, Reason: "leaks memory"}
		},
		"ByCommit": func(_, tag string) v1alpha1.BlockedContent {
			return v1alpha1.BlockedContent{Commit: commitNamed(tag)[:10], Reason: "leaks memory"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			v1 := s.target("v1")
			s.settle()
			s.advance(time.Minute)
			v2 := s.target("v2")
			s.settle()
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				spec.Blocked = []v1alpha1.BlockedContent{entry(v2, "v2")}
			})
			ro := s.rolledBack()
			if strings.Contains(ro.Status.Message, "git restore") {
				t.Errorf("the older files may lack the entry: %q", ro.Status.Message)
			}
			if len(s.holding(v1)) != 3 || ro.Status.Override.Kind != v1alpha1.OverrideBlocked || ro.Status.Stable.Digest != v1 {
				t.Fatalf("%v run v1, override %+v, stable %s", s.holding(v1), ro.Status.Override, ro.Status.Stable.Digest)
			}
			key := s.order(v1alpha1.OrderRetry, v1, nil)
			s.turns(2)
			if got, want := s.answered(key), "Refused: spec.blocked names it: remove the entry in Git"; got != want {
				t.Errorf("a retry is answered with %q", got)
			}
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Blocked = nil })
			s.settle()
			if !slices.Equal(s.holding(v2), slices.Sorted(maps.Keys(s.works()))) {
				t.Errorf("%v run v2", s.holding(v2))
			}
		})
	}
}

// A blocked commit stays blocked when the history of the rollout does not name it any more.
func TestBlocked_HoldsACommitThatLeftTheHistory(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v0")
	s.settle()
	bad := s.target("v1")
	s.settle()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Commit: commitNamed("v1"), Reason: "leaks memory"}}
	})
	var last string
	for tag := range strings.SplitSeq("abcdefghijkl", "") {
		s.advance(time.Minute)
		last = s.target(tag)
		s.settle()
	}
	s.targetOf(contentAt("v1"), "w9") // another commit with the same content
	ro := s.rolledBack()
	if got := s.holding(last); len(got) != 1 || ro.Status.Override.Kind != v1alpha1.OverrideBlocked {
		t.Errorf("%v run the blocked content, override %+v", s.holding(bad), ro.Status.Override)
	}
}

// A revert is not rolled back when its content fails: the clusters would get what Git took back.
func TestRollback_OfARevertPauses(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.target("v2")
	s.settle()
	s.target("v1")
	s.turns(3)
	s.advance(time.Minute)
	s.turns(5)
	ro := s.rollout()
	want := "not rolled back: Git already reverted " + commitNamed("v2")[:10]
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, want) {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if got := s.holding(v1); !slices.Equal(got, []string{"c1"}) || len(s.holding(v2)) != 2 {
		t.Errorf("%v run v1, %v run v2", got, s.holding(v2))
	}
}

// propose notes the pull request that takes content out of Git.
func (s *scene) propose(digest, address string) {
	s.t.Helper()
	rev := s.revision(digest)
	q, _ := v1alpha1.ReadQuarantine(rev.Annotations)
	q.Proposed = address
	value, err := json.Marshal(q)
	if err != nil {
		s.t.Fatal(err)
	}
	rev.Annotations[v1alpha1.QuarantinedAnnotation] = string(value)
	s.update(rev)
}

// The commit that failed says where the fleet is, and so does a newer commit with its content.
func TestRollback_IsSaidOnTheCommits(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.declare(rollsBack)
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.target("v2")
	s.applied("v2", "")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: ")
	s.turn()
	undo := " from " + commitNamed("v2")[:10] + " (git restore -SWs " + commitNamed("v1")[:10] + " PATH ':!*addonrollout.*'): halted in everyone"
	s.expect("v2", "failure: rolling back to "+commitNamed("v1")[:10]+undo)
	s.rolledBack()
	s.expect("v2", "failure: rolled back to "+commitNamed("v1")[:10]+undo)
	s.propose(s.rollout().Status.Override.Declared.Digest, "https://gitea.example/team/fleet/pulls/12")
	s.turn()
	s.expect("v2", "failure: rolled back to "+commitNamed("v1")[:10]+" from "+commitNamed("v2")[:10]+" (pull request 12 makes Git agree): halted in everyone")
	if got := s.rollout().Status.Override.Proposed; got != "https://gitea.example/team/fleet/pulls/12" {
		t.Errorf("the status names pull request %q", got)
	}
	s.applied("w3", "")
	s.turn()
	s.expect("w3", "failure: rolled back to "+commitNamed("v1")[:10])
	s.expect("v1", "success: ")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.expect("v1", "success: ")
	if got := s.rollout().Status; got.Override != nil || got.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("after git revert: %s, override %+v", got.Phase, got.Override)
	}
}

// A rollback never removes a CustomResourceDefinition, and changes one only where the policy
// permits that.
func TestRollback_OfCustomResourceDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		policy        *v1alpha1.RollbackPolicy
		want          string
	}{
		"Removed":                 {before: "", after: "v1", policy: &v1alpha1.RollbackPolicy{WithCRDs: true}, want: "it would remove CustomResourceDefinition things.example.com"},
		"Changed":                 {before: "v1", after: "v2", want: "it would change CustomResourceDefinition things.example.com"},
		"ChangedWithPermission":   {before: "v1", after: "v2", policy: &v1alpha1.RollbackPolicy{WithCRDs: true}},
		"Equal":                   {before: "v1", after: "v1"},
		"AddedAgainByTheRollback": {before: "v1", after: ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.within(0, "1m")
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { rollsBack(spec); spec.Rollback = c.policy })
			s.targetOf(s.defining("v1", c.before), "v1")
			s.settle()
			v2 := s.targetOf(s.defining("v2", c.after), "v2")
			s.turns(3)
			s.advance(time.Minute)
			s.turn()
			_, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations)
			if message := s.rollout().Status.Message; quarantined != (c.want == "") || !strings.Contains(message, c.want) {
				t.Errorf("quarantined %t: %s", quarantined, message)
			}
		})
	}
}

// defining is the add-on at a tag with a CustomResourceDefinition of a version; "": without.
func (s *scene) defining(tag, version string) render.Content {
	s.t.Helper()
	content := contentAt(tag)
	if version == "" {
		return content
	}
	manifests, found, err := unstructured.NestedSlice(content.Templates[0].Spec, "agentSpec", "workload", "manifests")
	if err != nil || !found {
		s.t.Fatal("the content has no manifests", err)
	}
	definition := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"kind": "Thing", "plural": "things"},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}
	if err := unstructured.SetNestedSlice(content.Templates[0].Spec, append(manifests, definition), "agentSpec", "workload", "manifests"); err != nil {
		s.t.Fatal(err)
	}
	return content
}

// With onNewCommit: Finish the rollout that is running ends first; of the contents that came
// meanwhile, the newest follows.
func TestOnNewCommit_FinishesTheRunningRolloutFirst(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.oneByOne()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.OnNewCommit = v1alpha1.OnNewCommitFinish })
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	v2 := s.target("v2")
	s.applied("v2", "")
	s.settleOnce()
	s.settleOnce()
	if got := s.holding(v2); len(got) == 0 || len(got) == 3 {
		t.Fatalf("%v run v2, want some", got)
	}
	v3 := s.target("v3")
	s.applied("v3", "")
	s.settleOnce()
	s.expect("v3", "pending: waits until the rollout of "+commitNamed("v2")[:10]+" has ended")
	waits := "Unknown RolloutProgressing: main@" + commitNamed("v3")[:7] + " waits for main@" + commitNamed("v2")[:7] + " (onNewCommit is Finish); everyone "
	if got := s.says(meta.ReadyCondition); !strings.HasPrefix(got, waits) {
		t.Errorf("Ready is %q, want %q", got, waits)
	}
	v4 := s.target("v4")
	s.applied("v4", "")
	most := 0
	for range 20 {
		s.settleOnce()
		if ro := s.rollout(); conditions.IsReady(ro) && len(s.holding(v4)) != 3 {
			t.Errorf("Ready says %s while %v run v4", s.says(meta.ReadyCondition), s.holding(v4))
		}
		if len(s.holding(v4)) == 0 {
			most = max(most, len(s.holding(v2)))
		}
	}
	if most != 3 || len(s.holding(v3)) != 0 || len(s.holding(v4)) != 3 {
		t.Errorf("at most %d ran v2; %v run v3, %v run v4", most, s.holding(v3), s.holding(v4))
	}
	s.expect("v2", "success: ")
	s.expect("v3", "error: superseded by "+commitNamed("v4")[:10])
	s.expect("v4", "success: ")
}

// With onNewCommit: Finish new content waits for the rollback of the content before it, from the
// failure to the end.
func TestOnNewCommit_WaitsForARollback(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.OnNewCommit = v1alpha1.OnNewCommitFinish
	})
	v1 := s.target("v1")
	s.applied("v1", "")
	s.settle()
	v2 := s.target("v2")
	s.applied("v2", "")
	s.turns(3)
	v3 := s.target("v3")
	s.applied("v3", "")
	s.turn()
	s.advance(time.Minute)
	s.turn() // v2 fails
	s.turn()
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRollingBack || ro.Status.Override.Leaves().Digest != v2 || ro.Status.Override.Declared.Digest != v3 || ro.Status.Outcome != "pending" {
		t.Fatalf("%s, outcome %s, override %+v", ro.Status.Phase, ro.Status.Outcome, ro.Status.Override)
	}
	s.expect("v2", "failure: rolling back to "+commitNamed("v1")[:10]+" from "+commitNamed("v2")[:10]+": ")
	s.expect("v3", "pending: waits until the rollback from "+commitNamed("v2")[:10]+" has ended")
	back := false
	rollback := "Unknown RolloutProgressing: main@" + commitNamed("v3")[:7] + " waits for the rollback from main@" + commitNamed("v2")[:7] + " (onNewCommit is Finish); rolling back to "
	if got := s.says(meta.ReadyCondition); !strings.HasPrefix(got, rollback) {
		t.Errorf("Ready is %q, want %q", got, rollback)
	}
	for range 10 {
		s.settleOnce()
		back = back || len(s.holding(v1)) == 3 && s.rollout().Status.Phase == v1alpha1.PhaseRolledBack
	}
	if ro := s.rollout(); !back || len(s.holding(v3)) != 3 || ro.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("rolled back before v3: %t; %v run v3; %s: %s", back, s.holding(v3), ro.Status.Phase, ro.Status.Message)
	}
	s.expect("v3", "success: ")
}

// A revert never waits.
func TestOnNewCommit_ARevertDoesNotWait(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.OnNewCommit = v1alpha1.OnNewCommitFinish })
	v1 := s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2)
	s.target("v1")
	s.settle()
	if ro := s.rollout(); ro.Status.Target.Digest != v1 || ro.Status.Override != nil {
		t.Errorf("target %s, override %+v", ro.Status.Target.Digest, ro.Status.Override)
	}
}

// No cluster is admitted to content in the turn that withdraws it.
func TestRollbackOrder_AdmitsNoClusterInTheTurnThatWithdrawsTheContent(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.target("v2")
	s.settleOnce()
	s.settleOnce()
	before := s.holding(v2)
	key := s.order(v1alpha1.OrderRollback, v2, nil)
	s.turn()
	if got := s.holding(v2); !slices.Equal(got, before) {
		t.Errorf("%v held the content before the rollback order, %v after it (%s)", before, got, s.answered(key))
	}
	s.rolledBack()
	if got := s.holding(v2); len(got) != 0 {
		t.Errorf("%v still hold the content that was rolled back", got)
	}
}

// A revision that is deleted and comes back is still quarantined, until it is unblocked: the history
// remembers it, also when newer content has proceeded.
func TestQuarantine_OutlivesTheRevision(t *testing.T) {
	for name, newer := range map[string]func(s *scene){
		"WithoutNewerContent":       func(*scene) {},
		"BeforeNewerContent":        func(s *scene) { s.target("v2"); s.turns(2); s.target("v3"); s.settle() },
		"BeforeNewerContentUnseen":  func(s *scene) { s.target("v2"); s.target("v3"); s.settle() },
		"AfterNewerContent":         func(s *scene) { s.turn(); s.target("v3"); s.settle() },
		"AfterARestartOfAnOperator": func(s *scene) { s.restart(); s.target("v3"); s.settle(); s.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			_, v2 := s.failed()
			s.rolledBack()
			s.delete(s.revision(v2))
			newer(s)
			s.targetOf(contentAt("v2"), "w9") // its source stores it again, from another commit
			s.turns(5)
			ro := s.rollout()
			if got := s.holding(v2); len(got) != 0 || ro.Status.Phase != v1alpha1.PhaseRolledBack || !strings.Contains(ro.Status.Message, "halted in everyone") {
				t.Errorf("%v run the quarantined content; the rollout is %s: %s", got, ro.Status.Phase, ro.Status.Message)
			}
			if q, ok := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); !ok || !strings.Contains(q.Reason, "halted in everyone") {
				t.Errorf("the revision that was made anew says %+v", q)
			}
			s.order(v1alpha1.OrderUnblock, v2, nil)
			s.settle()
			s.runs(v2, "c1", "c2", "c3")
		})
	}
}

// An unblock ends the quarantine of a revision that does not exist.
func TestUnblock_OfADeletedRevision(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	_, v2 := s.failed()
	s.rolledBack()
	s.delete(s.revision(v2))
	s.order(v1alpha1.OrderUnblock, v2, nil)
	s.turns(2)
	s.target("v2")
	s.settle()
	s.runs(v2, "c1", "c2", "c3")
}

// spec.blocked removes no CustomResourceDefinition, and without another revision the clusters keep
// what they run: the rollout says that it failed, and the revision is not proven again.
func TestBlocked_KeepsWhatCannotGoBack(t *testing.T) {
	for name, first := range map[string]bool{"Definition": true, "OnlyRevision": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			if first {
				s.target("v1")
				s.settle()
				s.advance(time.Minute)
			}
			v2 := s.targetOf(s.defining("v2", "v1"), "v2")
			s.settle()
			proven := s.revision(v2).Annotations[v1alpha1.SucceededAtAnnotation]
			s.advance(time.Minute)
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks memory"}}
			})
			s.turns(4)
			ro := s.rollout()
			if got := s.holding(v2); len(got) != 2 || ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, "the clusters keep it") {
				t.Errorf("%v run it; %s: %s", got, ro.Status.Phase, ro.Status.Message)
			}
			if got := ro.Status.History[0]; got.Phase != v1alpha1.PhaseFailed || got.Reason != ro.Status.Message {
				t.Errorf("the history says %s: %s", got.Phase, got.Reason)
			}
			if got := ro.Status.Stages[0].Phase; got != rollout.StageHeld {
				t.Errorf("the stage is %s: its clusters run blocked content", got)
			}
			if again := s.revision(v2).Annotations[v1alpha1.SucceededAtAnnotation]; again != proven {
				t.Errorf("the blocked revision is proven again: %s, before %s", again, proven)
			}
		})
	}
}

// A cluster that had failed with the content, and fails in the rollback as well, does not stop the
// rollback of the others.
func TestRollback_IsNotStoppedByAClusterThatHadFailedBefore(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.settle()
	v2 := s.target("v2")
	for range 6 { // c3 never reports
		s.turn()
		s.report("c1", "c2")
	}
	if got := s.holding(v2); len(got) != 3 {
		t.Fatalf("%v run v2", got)
	}
	s.advance(time.Minute)
	for range 12 {
		silent := s.works()["c3"]
		silent.Status = workv1.ManifestWorkStatus{}
		if err := s.hub.Status().Update(t.Context(), silent); err != nil {
			t.Fatal(err)
		}
		s.turn()
		s.report("c1", "c2")
		s.advance(20 * time.Second)
	}
	ro := s.rollout()
	if got := s.holding(v1); len(got) != 3 || ro.Status.Phase != v1alpha1.PhaseRolledBack {
		t.Errorf("%v are back; %s: %s", got, ro.Status.Phase, ro.Status.Message)
	}
}

// The order in which contents succeeded does not depend on the clock.
func TestRollback_ReturnsToTheContentThatSucceededLastWhenTheClockWasSetBack(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	s.target("v1")
	s.settle()
	s.advance(-2 * time.Hour)
	v2 := s.target("v2")
	s.settle()
	s.target("v3")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	s.rolledBack()
	s.runs(v2, "c1", "c2", "c3")
}

// A cluster that a hold keeps on the bad content is named on the commit, and leaves the text when the
// hold is over.
func TestRollback_NamesTheClustersThatAreHeld(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.advance(time.Minute)
	v2 := s.target("v2")
	s.applied("v2", "")
	s.settle()
	s.hold("c2", "true")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks memory"}}
	})
	s.rolledBack()
	back := "failure: rolled back to " + commitNamed("v1")[:10] + " from " + commitNamed("v2")[:10]
	s.expect("v2", back+", 1 held by annotation (c2)")
	if got := s.holding(v2); !slices.Equal(got, []string{"c2"}) {
		t.Errorf("%v hold v2", got)
	}
	s.hold("c2", "")
	for range 4 {
		s.settleOnce()
	}
	s.expect("v2", back+": leaks memory")
}

// A rollout that never succeeded moved some clusters. They go back as well, and the status of the commit
// names the content that they leave.
func TestRollback_NamesTheContentThatClustersLeaveBesides(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.settle()
	v2 := s.target("v2")
	for range 10 {
		if len(s.holding(v2)) == 2 {
			break
		}
		s.settleOnce()
	}
	s.target("v3")
	s.turns(3)
	s.advance(time.Minute)
	s.turns(2)
	ro := s.rolledBack()
	if got := s.holding(v1); len(got) != 3 {
		t.Errorf("%v run v1", got)
	}
	if !strings.Contains(ro.Status.Override.Reason, ", 1 cluster leaves "+commitNamed("v2")[:10]) && !strings.Contains(ro.Status.Override.Reason, ", 1 untouched, 1 cluster leaves "+commitNamed("v2")[:10]) {
		t.Errorf("the reason is %q", ro.Status.Override.Reason)
	}
}

// A gate that refuses content before the first cluster gets it leaves nothing to roll back. The rollout is Failed,
// and a retry asks the gate again.
func TestRollback_OfContentThatNoClusterHasDoesNotBegin(t *testing.T) {
	s := gatedScene(t, nil, nil)
	s.reporting()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages = spec.Stages[1:]
		spec.Stages[0].Gates = approvals(1)
	})
	s.installPolicy()
	v2 := s.upgrade()
	s.applied("v2", "")
	s.decide("bob", v1alpha1.Reject)
	s.ticks(4, time.Second, "c1", "c2", "c3")
	ro := s.rollout()
	if _, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); quarantined || ro.Status.Phase != v1alpha1.PhaseFailed {
		t.Fatalf("quarantined %t, %s: %s", quarantined, ro.Status.Phase, ro.Status.Message)
	}
	if want := "not rolled back: every cluster has content that succeeded here"; !strings.Contains(ro.Status.Message, want) {
		t.Errorf("the message is %q, want %q in it", ro.Status.Message, want)
	}
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	s.turns(2)
	if got := s.answered(key); !strings.HasPrefix(got, "CarriedOut") {
		t.Errorf("the retry is %s", got)
	}
	if ro = s.rollout(); ro.Status.Phase != v1alpha1.PhaseHeld || !strings.Contains(ro.Status.Message, "waits for approval qa") {
		t.Errorf("after the retry %s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// Clusters with content that never succeeded, of a rollout that was superseded, go back when a gate refuses the
// newer content.
func TestRollback_AfterARejectionTakesSupersededContentBack(t *testing.T) {
	s := gatedScene(t, nil, nil)
	s.reporting()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		rollsBack(spec)
		spec.Stages = spec.Stages[1:]
	})
	v1 := s.rollout().Status.Stable.Digest
	superseded := s.target("v2")
	s.turns(2)
	if got := s.holding(superseded); len(got) == 0 {
		t.Fatal("no cluster has v2")
	}
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Stages[0].Gates = approvals(1) })
	s.installPolicy()
	s.target("v3")
	s.ticks(2, time.Second)
	s.decide("bob", v1alpha1.Reject)
	s.ticks(14, time.Second, "c1", "c2", "c3")
	s.runs(v1, "c1", "c2", "c3")
}

// A quarantine outlives its revision although no turn saw the annotation, and the cluster that failed recovers.
func TestQuarantine_OutlivesARevisionThatIsDeletedAtOnce(t *testing.T) {
	all := []string{"c1", "c2", "c3"}
	for name, withdrawn := range map[string]func(s *scene) (v1, v2 string){
		"Rollback": (*scene).failed,
		"Recall": func(s *scene) (v1, v2 string) {
			of := s.succeed("v1", "v2")
			s.order(v1alpha1.OrderRollback, of[1], nil)
			s.turn()
			return of[0], of[1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, all...)
			v1, v2 := withdrawn(s)
			s.delete(s.revision(v2))
			s.ticks(4, time.Second, all...)
			s.targetOf(contentAt("v2"), "w9") // its source stores it again
			s.ticks(14, time.Second, all...)
			s.runs(v1, all...)
			if _, ok := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); !ok {
				t.Errorf("the revision that was made anew is not quarantined; %s: %s", s.rollout().Status.Phase, s.rollout().Status.Message)
			}
		})
	}
}

// TestRollback_InstallsNothingOfBeforeARemoval: an add-on that was removed and is declared again is a first install. Its
// failure pauses, because what succeeded before the removal was never on the clusters of this installation.
func TestRollback_InstallsNothingOfBeforeARemoval(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.settle()
	s.removed()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Removal = nil })
	s.target("v2")
	s.turns(4)
	s.advance(time.Minute)
	s.turns(10)
	st := s.rollout().Status
	if st.Phase != v1alpha1.PhaseFailed || !strings.HasSuffix(st.Message, "; not rolled back: there is no stable revision") || len(s.holding(v1)) > 0 {
		t.Errorf("got %s: %s; %v have v1", st.Phase, st.Message, s.holding(v1))
	}
}

// TestRollback_NamesTheLastCommitThatHadTheContent: later commits may have changed the placements beside the content. The
// command that restores Git must not take these back.
func TestRollback_NamesTheLastCommitThatHadTheContent(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	v1, _ := s.failed()
	last := strings.Repeat("b", 40)
	ro := s.rollout()
	ro.Annotations = map[string]string{v1alpha1.LastCommitsAnnotation: render.RevisionName(ro.Name, v1) + "=main@sha1:" + last}
	s.update(ro)
	want := "rolled back to " + commitNamed("v1")[:10] + " from " + commitNamed("v2")[:10] + " (" + v1alpha1.RestoreCommand(last[:10]) + ")"
	if got := s.rolledBack().Status.Message; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
