package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/hubclient"
	testforge "github.com/addonflow/addonflow/test/forge"
)

// applied writes the status that the source controller writes after it applied a commit; the content
// of hello came with the target. refused is a newer commit that was refused.
func (s *scene) applied(tag, refused string) {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		s.t.Fatal(err)
	}
	spec := s.rollout().Spec
	source.Status.AddOns = []v1alpha1.SourcedAddOn{{
		Name: "hello", Revision: spec.Target.Revision, Digest: spec.Target.Digest, Commit: spec.Target.Commit, PolicyCommit: spec.PolicyCommit,
	}}
	source.Status.LastAppliedRevision = "main@sha1:" + commitNamed(tag)
	source.Status.LastAttemptedRevision, source.Status.LastAttemptedSpec = source.Status.LastAppliedRevision, "spec"
	if refused != "" {
		source.Status.LastAttemptedRevision = "main@sha1:" + commitNamed(refused)
		source.Status.LastAttemptedSpec += v1alpha1.RefusedSuffix
	}
	if err := s.hub.Status().Update(s.t.Context(), source); err != nil {
		s.t.Fatal(err)
	}
}

// policy writes the spec that the source controller writes if a commit changes only the policy. The
// status of the source follows with applied.
func (s *scene) policy(tag string, spec v1alpha1.AddOnRolloutSpec) {
	s.t.Helper()
	ro := s.rollout()
	spec.Target, spec.Install = ro.Spec.Target, ro.Spec.Install
	spec.PolicyCommit = "main@sha1:" + commitNamed(tag)
	ro.Spec = spec
	s.update(ro)
}

// judged enters a success of a commit as a whole into the status of the source.
func (s *scene) judged(tag string) {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		s.t.Fatal(err)
	}
	source.Status.CommitStatuses = []v1alpha1.CommitMark{{
		SHA: commitNamed(tag), Context: "addonflow/fleet", Accepted: &v1alpha1.CommitStatement{State: "success"},
	}}
	if err := s.hub.Status().Update(s.t.Context(), source); err != nil {
		s.t.Fatal(err)
	}
}

// reportedOn is the newest statement on a commit in a context below the add-on's.
func (s *scene) reportedOn(tag string, parts ...string) string {
	s.t.Helper()
	context := strings.Join(append([]string{"addonflow/fleet/hello"}, parts...), "/")
	for _, m := range s.rollout().Status.CommitStatuses {
		if m.SHA == commitNamed(tag) && m.Context == context {
			last := commitstatus.Last(m)
			return last.State + ": " + last.Description
		}
	}
	return ""
}

// expect fails unless the statuses of a commit begin with the given text; "" expects none.
func (s *scene) expect(tag, want string, parts ...string) {
	s.t.Helper()
	if got := s.reportedOn(tag, parts...); !strings.HasPrefix(got, want) || want == "" && got != "" {
		s.t.Errorf("%s says %q, want %q", tag, got, want)
	}
}

// reportedScene has v1 everywhere, and its commit is applied.
func reportedScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "10m")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	return s
}

// failingScene has v1 everywhere and v2 failed on its first cluster.
func failingScene(t *testing.T) *scene {
	t.Helper()
	s := reportedScene(t)
	s.targetOf(zonedAt("v2"), "v2")
	s.applied("v2", "")
	s.turns(2)
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: ")
	return s
}

// TestNewestCommitMirrorsAFailedRollout: after a failed rollout, a commit that changes no content is
// red as well. The commit that introduced the content keeps its final status.
func TestNewestCommitMirrorsAFailedRollout(t *testing.T) {
	s := failingScene(t)
	s.applied("w3", "")
	s.turn()
	s.expect("w3", "failure: halted in everyone: 1 failed (c1: ")
	s.expect("w3", "failure: ", "everyone")

	for _, cluster := range []string{"c1", "c2", "c3"} {
		s.zone(cluster)
	}
	s.settle()
	s.expect("w3", "success: ")
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: ")
}

// TestCommitCountsTheClustersThatFailAfterTheHalt: a cluster that was in flight at the halt and fails after it is a new
// failure. The commit counts it once.
func TestCommitCountsTheClustersThatFailAfterTheHalt(t *testing.T) {
	s := reportedScene(t)
	two := intstr.FromInt32(2)
	ro := s.rollout()
	ro.Spec.Stages[0].MaxConcurrency = &two
	s.update(ro)
	s.target("v2")
	s.applied("v2", "")
	s.turns(2)
	s.fails("c1")
	s.turns(2)
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: ")
	if got := s.reportedOn("v2"); !strings.Contains(got, "1 in flight, 1 untouched") {
		t.Fatalf("v2 says %q", got)
	}
	s.accepted()
	s.advance(10 * time.Minute)
	s.turn()
	s.expect("v2", "failure: halted in everyone: 2 failed (c1: ")
	s.expect("v2", "failure: 0/3, 2 failed (c1: ", "everyone")
	s.accepted()
	s.turns(2)
	for _, m := range s.rollout().Status.CommitStatuses {
		if !commitstatus.Delivered(m) {
			t.Errorf("%s is posted again: %+v", m.Context, m.Owed)
		}
	}
}

// TestOlderCommitThatFailedGetsNoContextOfALaterStage: a commit that changes only the pace declares a stage after the
// rollout has failed.
func TestOlderCommitThatFailedGetsNoContextOfALaterStage(t *testing.T) {
	s := failingScene(t)
	spec := s.rollout().Spec
	stages := slices.Clone(spec.Stages)
	stages[0].Name = "all"
	spec.Stages = stages
	s.policy("w3", spec)
	s.applied("w3", "")
	s.turns(2)
	s.expect("w3", "failure: ", "all")
	s.expect("v2", "", "all")
	s.expect("v2", "failure: ", "everyone")
}

// TestNewestCommitMirrorsARunningRollout: progress is posted on the newest commit, and the final
// status on every commit with the content.
func TestNewestCommitMirrorsARunningRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.applied("v1", "")
	s.turns(2)
	first := s.reportedOn("v1")
	if !strings.HasPrefix(first, "pending: ") {
		t.Fatalf("v1 says %q", first)
	}
	s.applied("w2", "")
	s.turn()
	s.expect("w2", "pending: ")
	s.applied("w3", "")
	s.turn()
	s.report("c1")
	s.turn()
	s.expect("v1", first)
	s.expect("w3", "pending: ")
	s.settle()
	s.expect("v1", "success: 2/2 updated")
	s.expect("w3", "success: 2/2 updated")
	s.expect("w2", "success: 2/2 updated")
	s.applied("w4", "")
	s.turn()
	s.expect("w4", "")
}

// TestPolicyThatCannotWorkIsRedOnItsCommit: the commit that declares an invalid pace is red at once,
// also before the status of its source names it. The older commit that introduced the content is
// not red: it keeps its final status, or stays pending until the pace works again.
func TestPolicyThatCannotWorkIsRedOnItsCommit(t *testing.T) {
	for name, c := range map[string]struct {
		// turns before the pace breaks, and what v1 says then and to the end.
		turns           int
		before, verdict string
		// readme: a commit that changes nothing is applied before the rollout looks.
		readme bool
		// health: the policy is broken in its health, and not in its strategy.
		health bool
	}{
		"AfterTheVerdict":    {turns: 10, before: "success: ", verdict: "success: "},
		"DuringTheRollout":   {turns: 2, before: "pending: ", verdict: "success: 2/2 updated"},
		"FollowedByAReadme":  {turns: 2, before: "pending: ", verdict: "success: 2/2 updated", readme: true},
		"Health":             {turns: 2, before: "pending: ", verdict: "success: 2/2 updated", health: true},
		"BeforeTheFirstTurn": {turns: 0, before: "", verdict: "success: 2/2 updated"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.reporting()
			s.oneByOne()
			s.target("v1")
			s.applied("v1", "")
			for range c.turns {
				s.settleOnce()
			}
			s.expect("v1", c.before)
			good := s.rollout().Spec
			bad, broken := v1alpha1.AddOnRolloutSpec{Strategy: unknownGroup()}, "failure: unknown mandatory decision group"
			if c.health {
				bad, broken = v1alpha1.AddOnRolloutSpec{Health: expression("feedback.x ==")}, "failure: health cannot be judged"
			}
			s.policy("w2", bad)
			if c.readme {
				s.applied("w3", "")
			}
			s.turn()
			s.expect("w2", broken)
			s.expect("v1", c.before)
			s.applied("w3", "")
			s.turn()
			s.expect("w3", broken)
			s.expect("w2", broken)
			s.expect("v1", c.before)

			s.policy("w4", good)
			s.settle()
			s.applied("w4", "")
			s.settle()
			s.expect("v1", c.verdict)
			s.expect("w2", broken)
		})
	}
}

// TestPaceBrokenOnTheHub_FailsOnlyTheNewestCommit: a pace that was broken on the hub is red on the
// newest commit while it lasts. The commits that declared the policy and the content stay as they
// were, also after the source restored the pace.
func TestPaceBrokenOnTheHub_FailsOnlyTheNewestCommit(t *testing.T) {
	for name, turns := range map[string]int{"AtRest": 10, "DuringTheRollout": 2} {
		t.Run(name, func(t *testing.T) {
			edited := false
			s := newScene(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				if ro, ok := o.(*v1alpha1.AddOnRollout); ok && edited {
					ro.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:strategy":{}}}`)}}
				}
				return err
			}}, "c1", "c2")
			s.reporting()
			s.oneByOne()
			s.target("v1")
			s.applied("v1", "")
			good := s.rollout().Spec
			for range turns {
				s.settleOnce()
			}
			s.policy("w2", good)
			s.applied("w2", "")
			for range turns {
				s.settleOnce()
			}
			s.applied("w3", "")
			s.turn()
			s.accepted()
			s.turn()
			before := map[string]string{"v1": s.reportedOn("v1"), "w2": s.reportedOn("w2")}

			ro := s.rollout()
			ro.Spec.Stages, ro.Spec.Strategy = nil, unknownGroup()
			s.update(ro)
			edited = true
			s.turn()
			s.expect("w3", "failure: unknown mandatory decision group")
			for tag, want := range before {
				if got := s.reportedOn(tag); got != want {
					t.Errorf("%s says %q, want %q as before", tag, got, want)
				}
			}

			s.policy("w2", good)
			edited = false
			s.settle()
			s.expect("w3", "success: 2/2 updated")
			for tag := range before {
				if got := s.reportedOn(tag); strings.HasPrefix(got, "failure") {
					t.Errorf("%s says %q", tag, got)
				}
			}
		})
	}
}

// TestEqualContentOfAnEmptyFleetIsNotSuperseded: a commit that carries the content of an older one
// waits for the verdict, also while no cluster is counted.
func TestEqualContentOfAnEmptyFleetIsNotSuperseded(t *testing.T) {
	s := newScene(t, interceptor.Funcs{})
	s.reporting()
	canary := v1alpha1.PlacementReference{Namespace: "team", Name: "canary"}
	s.policy("v1", v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary", Placement: canary}}})
	s.target("v1")
	s.applied("v1", "")
	s.turn()
	s.applied("w2", "")
	s.turn()
	s.expect("w2", "pending: ")
	s.applied("w3", "")
	s.turn()
	s.expect("w2", "pending: ")
	s.place("canary")
	s.turn()
	for _, tag := range []string{"v1", "w2", "w3"} {
		s.expect(tag, "success: no cluster to roll out to")
	}
}

// TestStageThatBeginsLaterIsShownByTheNewestCommit: progress goes to the newest commit, also that
// of a stage that no commit shows yet.
func TestStageThatBeginsLaterIsShownByTheNewestCommit(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.applied("v1", "")
	s.turns(2)
	s.applied("w2", "")
	s.turn()
	ro := s.rollout()
	late := ro.Spec.Stages[0]
	late.Name = "late"
	ro.Spec.Stages = []v1alpha1.Stage{late, ro.Spec.Stages[0]}
	s.update(ro)
	s.turn()
	s.expect("w2", "pending: ", "late")
	s.expect("v1", "", "late")
	s.settle()
	s.expect("w2", "success: ", "late")
}

// TestStatusOfTheSourceAheadOfTheSpec: a rollout that was read before its source wrote the spec
// anew tells the commit of the spec that it read, and not the newest one.
func TestStatusOfTheSourceAheadOfTheSpec(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.applied("v1", "")
	before := s.rollout().Spec
	s.policy("w2", before)
	s.applied("w2", "")
	ro := s.rollout()
	ro.Spec = before
	s.update(ro)
	s.turns(2)
	s.expect("w2", "")
	s.expect("v1", "pending: ")
}

// TestReasonOfAHoldIsReportedSoon: a hold is posted soon, with its current reason, in the contexts of the add-on and
// of its stage.
func TestReasonOfAHoldIsReportedSoon(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.reporting()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	canary := v1alpha1.PlacementReference{Namespace: "team", Name: "canary"}
	s.policy("v1", v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary", Placement: canary}}})
	s.target("v2")
	s.applied("v2", "")
	s.turn()
	s.expect("v2", "pending: canary 0/0, held: Placement team/canary does not exist")
	s.accepted()
	s.place("canary")
	s.turn()
	s.expect("v2", "pending: canary 0/0, held: Placement team/canary of stage canary selects no cluster")
	for _, m := range s.rollout().Status.CommitStatuses {
		if m.SHA != commitNamed("v2") {
			continue
		}
		m.AcceptedAt = s.clock.Now().Unix()
		if _, after := commitstatus.Due("gitea", m, s.clock.Now()); after != commitstatus.ProgressInterval {
			t.Errorf("%s is due after %s: %+v", m.Context, after, m.Owed)
		}
	}
}

// TestReasonOfAWaitIsReportedSoon: the forge gets the reason of a wait within seconds, while
// no cluster moves: the content is missing, or every cluster in flight is unreachable.
func TestReasonOfAWaitIsReportedSoon(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(*scene)
		want  string
	}{
		"RevisionMissing": {func(s *scene) {
			s.delete(s.revision(s.target("v2")))
		}, "pending: revision hello-"},
		"Unreachable": {func(s *scene) {
			s.target("v2")
			s.turns(2)
			s.accepted()
			for _, name := range []string{"c1", "c2"} {
				cluster := &clusterv1.ManagedCluster{}
				if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
					s.t.Fatal(err)
				}
				s.lose(cluster)
			}
		}, "pending: everyone 0/2, waits for 1 unavailable cluster (c1), 1 not available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.reporting()
			s.within(0, "10m")
			s.target("v1")
			s.applied("v1", "")
			s.settle()
			c.begin(s)
			s.applied("v2", "")
			s.turn()
			s.expect("v2", c.want)
			s.expectHeld("v2")
		})
	}
}

// TestSuspensionIsReportedSoon: the commit says that its rollout is suspended, within the time that
// progress waits, while clusters in flight go on.
func TestSuspensionIsReportedSoon(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.target("v2")
	s.applied("v2", "")
	s.turn()
	s.accepted()
	s.suspend()
	s.expect("v2", "pending: suspended")
	for _, m := range s.rollout().Status.CommitStatuses {
		if m.SHA != commitNamed("v2") || m.Owed == nil || !strings.HasPrefix(m.Owed.Description, "suspended") {
			continue
		}
		m.AcceptedAt = s.clock.Now().Unix()
		if _, after := commitstatus.Due("gitea", m, s.clock.Now()); after == commitstatus.ProgressInterval {
			return
		}
		t.Errorf("%s is not due soon: %+v", m.Context, m)
	}
	t.Error("the forge is owed no suspension")
}

// expectHeld fails unless the add-on, and each stage that has begun, says on a commit what it
// waits for.
func (s *scene) expectHeld(tag string) {
	s.t.Helper()
	for _, m := range s.rollout().Status.CommitStatuses {
		if last := commitstatus.Last(m); m.SHA == commitNamed(tag) && last.State == "pending" && last.Held == "" && last.Description != "0/2" {
			s.t.Errorf("%s moves: %q", m.Context, last.Description)
		}
	}
}

// unknownGroup is a strategy that names a decision group that does not exist.
func unknownGroup() *v1alpha1.RolloutStrategy {
	return &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{
		MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
			MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "typo"}},
		},
	}}
}

// TestRolloutThatCannotBePlannedIsRedAtOnce: the commit, an event and the outcome show the failure,
// whatever the cause, whether the first plan or a later one fails.
func TestRolloutThatCannotBePlannedIsRedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*scene)
		want  string
	}{
		"UnknownGroup": {func(s *scene) {
			ro := s.rollout()
			ro.Spec.Strategy = unknownGroup()
			s.update(ro)
		}, "InvalidRolloutStrategy"},
		"InvalidHealth": {func(s *scene) {
			s.judgeBy(expression("feedback.x =="))
		}, "InvalidHealth"},
		"OwnershipConflict": {func(s *scene) {
			cma := &addonv1alpha1.ClusterManagementAddOn{}
			if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: "hello"}, cma); err != nil {
				s.t.Fatal(err)
			}
			cma.Annotations = map[string]string{v1alpha1.SourceAnnotation: "other/source"}
			s.update(cma)
		}, "OwnershipConflict"},
	} {
		for _, installed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Installed=%t", name, installed), func(t *testing.T) {
				s := newScene(t, interceptor.Funcs{}, "c1", "c2")
				s.reporting()
				if installed {
					s.target("v1")
					s.applied("v1", "")
					s.settle()
					s.announced()
				}
				s.target("v2")
				s.applied("v2", "")
				c.spoil(s)
				s.turn()
				s.expect("v2", "failure: ")
				ro := s.rollout()
				if (ro.Status.Target != nil) != installed || ro.Status.Outcome != "failure" || !strings.HasPrefix(s.stalled(), c.want) {
					t.Errorf("outcome %q, target %v, stalled %q", ro.Status.Outcome, ro.Status.Target, s.stalled())
				}
				warned := func() []string {
					return slices.DeleteFunc(s.announced(), func(e string) bool { return !strings.HasPrefix(e, "Warning ") })
				}
				if events := warned(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+c.want) {
					t.Errorf("events %q", events)
				}
				s.turn()
				if events := warned(); len(events) > 0 {
					t.Errorf("said again: %q", events)
				}
			})
		}
	}
}

// TestPaceThatCannotWorkIsReportedOnceWithItsPlace: commit status and event name file and line, within the limit of the
// forge, also before the status of the source names the commit. Neither is repeated.
func TestPaceThatCannotWorkIsReportedOnceWithItsPlace(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.target("v2")
	ro := s.rollout()
	ro.Spec.Strategy = unknownGroup()
	ro.Annotations = map[string]string{
		v1alpha1.PacePlaceAnnotation: "addons/hello/addonrollout.yaml:7", v1alpha1.PaceObjectAnnotation: "AddOnRollout/hello: spec.strategy",
	}
	s.update(ro)
	s.turn()
	got := s.reportedOn("v2")
	if !strings.HasPrefix(got, `failure: unknown mandatory decision group: no decision group is named "typo"`) || !strings.Contains(got, " at addons/hello/addonrollout.yaml:7") ||
		utf8.RuneCountInString(got) > len("failure: ")+commitstatus.DescriptionLimit {
		t.Errorf("%q", got)
	}
	s.applied("v2", "")
	s.turns(2)
	s.restart()
	s.turns(2)
	if again := s.reportedOn("v2"); again != got {
		t.Errorf("posted again: %q", again)
	}
	if events := s.announced(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning InvalidRolloutStrategy ") ||
		!strings.HasSuffix(events[0], " at addons/hello/addonrollout.yaml:7: AddOnRollout/hello: spec.strategy") {
		t.Errorf("got %d events, want one with the place:\n%s", len(events), strings.Join(events, "\n"))
	}
}

// TestRefusedCommitIsNotApplied: the context of an add-on that moves is red on a refused commit. Its rollout
// continues for the commit before. An add-on that is Succeeded has no context there: the source's is red for all.
func TestRefusedCommitIsNotApplied(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.applied("v1", "w2")
	s.turns(2)
	s.expect("w2", "failure: not applied: the commit is refused, see addonflow/fleet")
	s.settle()
	s.expect("v1", "success: 2/2 updated")
	s.applied("w2", "") // the reason was on the hub, and is gone
	s.turn()
	s.expect("w2", "success: 2/2 updated")
	s.applied("w2", "w3")
	s.turns(2)
	s.expect("w3", "")
}

// TestRefusedCommitSaysNothingOfARemovedAddOn: an add-on that no cluster has and Git does not declare cannot turn the
// refused commit green again.
func TestRefusedCommitSaysNothingOfARemovedAddOn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.within(0, "10m")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.removed()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		t.Fatal(err)
	}
	source.Status = v1alpha1.AddOnSourceStatus{
		LastAppliedRevision: "main@sha1:" + commitNamed("v9"), LastAttemptedRevision: "main@sha1:" + commitNamed("w10"),
		LastAttemptedSpec: "spec" + v1alpha1.RefusedSuffix,
	}
	if err := s.hub.Status().Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	s.turns(2)
	s.expect("w10", "")
}

// detail sets commitStatus.detail of the source.
func (s *scene) detail(detail v1alpha1.CommitStatusDetail) {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		s.t.Fatal(err)
	}
	source.Spec.CommitStatus.Detail = detail
	s.update(source)
}

// contexts are what is reported on a commit, sorted.
func (s *scene) contexts(tag string) []string {
	s.t.Helper()
	names := []string{}
	for _, m := range s.rollout().Status.CommitStatuses {
		if m.SHA == commitNamed(tag) {
			names = append(names, m.Context)
		}
	}
	slices.Sort(names)
	return names
}

// TestDetailSaysWhichContextsACommitHas: less detail begins no context, and ends those that a commit shows already.
func TestDetailSaysWhichContextsACommitHas(t *testing.T) {
	const addOn, stage = "addonflow/fleet/hello", "addonflow/fleet/hello/everyone"
	for detail, want := range map[v1alpha1.CommitStatusDetail][]string{
		"": {addOn, stage}, v1alpha1.DetailStage: {addOn, stage}, v1alpha1.DetailAddOn: {addOn}, v1alpha1.DetailSource: {},
	} {
		s := newScene(t, interceptor.Funcs{}, "c1", "c2")
		s.reporting()
		s.within(0, "10m")
		s.target("v1")
		s.applied("v1", "")
		s.turn()
		s.detail(detail)
		s.settle()
		s.expect("v1", "success: 2/2 updated")
		s.expect("v1", "success: ", "everyone")
		s.targetOf(zonedAt("v2"), "v2")
		s.applied("v2", "")
		s.turns(2)
		if got := s.contexts("v2"); !slices.Equal(got, want) {
			t.Errorf("detail %q: %q, want %q", detail, got, want)
		}
		s.applied("v2", "w3")
		s.turn()
		if got := s.contexts("w3"); len(got) != min(len(want), 1) {
			t.Errorf("detail %q on a refused commit: %q", detail, got)
		}
	}
}

// TestJoinersDoNotChangeAFinalStatus: neither on the commit that introduced the content nor on a
// newer commit with a final status.
func TestJoinersDoNotChangeAFinalStatus(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "10m")
	one := intstr.FromInt32(1)
	ro := s.rollout()
	ro.Spec.Stages[0].MaxConcurrency = &one
	s.update(ro)
	s.selects("c1", "c2")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.expect("v1", "success: ")
	s.applied("w2", "")
	s.judged("w2")
	s.turn()
	s.selects("c1", "c2", "c3")
	s.turns(2)
	if got := s.rollout().Status.Message; got != "now 2/3 updated, 1 to update" {
		t.Fatalf("a cluster joins: %s", got)
	}
	s.expect("v1", "success: ")
	s.expect("w2", "")
}

// TestCommitThatEditsAPlacementIsPendingWhileTheFleetMoves: a placement that Git declares is
// policy. The clusters that join by an edit of it are of the commit, and it waits for them.
func TestCommitThatEditsAPlacementIsPendingWhileTheFleetMoves(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.oneByOne()
	s.selects("c1", "c2")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.selects("c1", "c2", "c3")
	edited := s.rollout().Spec
	edited.PlacementDigest = "edited"
	s.policy("w2", edited)
	ro := s.rollout()
	ro.Generation++ // as a hub does
	s.update(ro)
	s.applied("w2", "")
	s.turn()
	if got := s.rollout().Status.Outcome; got != "pending" {
		t.Errorf("the rollout says %q", got)
	}
	s.expect("w2", "pending: everyone 2/3, 1 in flight")
	s.expect("v1", "success: ")
	s.settle()
	s.expect("w2", "success: 3/3 updated")
}

// TestOvertakenCommitIsSuperseded: other content supersedes every context that the forge shows.
func TestOvertakenCommitIsSuperseded(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.turns(2)
	s.target("v2")
	s.turn()
	s.expect("v1", "error: superseded by "+commitNamed("v2")[:10])
	s.expect("v2", "pending: ")
}

// TestLostStatusLeavesNoCommitPending: the status is emptied, or an older one is restored, before the rollout has ended the
// contexts of a commit that is replaced. The forge shows them as pending.
func TestLostStatusLeavesNoCommitPending(t *testing.T) {
	for name, c := range map[string]struct{ emptied bool }{"Emptied": {true}, "Older": {false}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.reconciler.Desk = forge.NewDesk(forge.Options{Secrets: s.hub, Sources: s.hub, Now: s.clock.Now})
			f := s.forge()
			s.oneByOne()
			s.target("v1")
			s.shows(f, "v1", "pending: ")
			to := s.rollout().Status
			s.target("v2")
			s.shows(f, "v2", "pending: ")
			s.target("v3")
			ro := s.rollout()
			if ro.Status = to; c.emptied {
				ro.Status = v1alpha1.AddOnRolloutStatus{}
			}
			if err := s.hub.Status().Update(t.Context(), ro); err != nil {
				t.Fatal(err)
			}
			s.shows(f, "v3", "pending: ")
			s.shows(f, "v2", "error: superseded by "+commitNamed("v3")[:10])
			s.shows(f, "v1", "error: superseded by "+commitNamed("v2")[:10])
			if bad := testforge.Violations(f.Log()); len(bad) > 0 {
				t.Error(bad)
			}
		})
	}
}

// shows takes turns until the forge shows a text that begins so in the contexts of the add-on and of its stage.
func (s *scene) shows(f *testforge.Forge, tag, text string) {
	s.t.Helper()
	said := func(part string) string {
		e, _ := f.Latest(commitNamed(tag), "addonflow/fleet/hello"+part)
		return e.State + ": " + e.Description
	}
	shown := func([]testforge.Entry) bool {
		return strings.HasPrefix(said(""), text) && strings.HasPrefix(said("/everyone"), text)
	}
	for range 40 {
		s.turn()
		waiting, stop := context.WithTimeout(s.t.Context(), 100*time.Millisecond)
		err := f.WaitFor(waiting, shown)
		stop()
		if err == nil {
			return
		}
	}
	s.t.Errorf("the forge shows %q and %q on %s, want %q", said(""), said("/everyone"), tag, text)
}

// TestNewestCommitWakesWhatHasToReport: a Succeeded rollout posts nothing on a commit that does not
// change it, unless the commit is refused.
func TestNewestCommitWakesWhatHasToReport(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.reporting()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.accepted()
	source := &v1alpha1.AddOnSource{}
	read := func() *v1alpha1.AddOnSource {
		if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
			t.Fatal(err)
		}
		return source.DeepCopy()
	}
	before := read()
	s.applied("w2", "")
	if !hubclient.NewestCommitChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: read()}) {
		t.Error("another commit is applied")
	}
	if hubclient.NewestCommitChanged().Update(event.UpdateEvent{ObjectOld: read(), ObjectNew: read()}) {
		t.Error("nothing changed")
	}
	moved := read()
	moved.Status.AddOns[0].Digest = "v1:sha256:of-another-path"
	if !hubclient.NewestCommitChanged().Update(event.UpdateEvent{ObjectOld: read(), ObjectNew: moved}) {
		t.Error("the same commit is applied from another path")
	}
	if got := s.reconciler.ofNewestCommit(t.Context(), read()); len(got) != 0 {
		t.Errorf("a rollout at rest is woken: %v", got)
	}
	s.applied("v1", "w3")
	if got := s.reconciler.ofNewestCommit(t.Context(), read()); len(got) != 1 {
		t.Errorf("a refused commit is the business of every add-on: %v", got)
	}
}

// TestStoredStatusesArePostedAlthoughALaterWriteFails: a status that is stored as Posting is posted,
// even if a later write of the turn fails. Otherwise the next turn would take the post for another
// operator's.
func TestStoredStatusesArePostedAlthoughALaterWriteFails(t *testing.T) {
	refuse := errors.New("the webhook is down")
	for name, calls := range map[string]interceptor.Funcs{
		"CompletionLost": {SubResourceUpdate: func(ctx context.Context, c client.Client, kind string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if ro, ok := o.(*v1alpha1.AddOnRollout); ok && ro.Status.LastHandledReconcileAt != "" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "addonrollouts"}, o.GetName(), refuse)
			}
			return c.SubResource(kind).Update(ctx, o, opts...)
		}},
		"PublishFails": {SubResourcePatch: func(ctx context.Context, c client.Client, kind string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, ok := o.(*addonv1alpha1.ClusterManagementAddOn); ok {
				return refuse
			}
			return c.SubResource(kind).Patch(ctx, o, patch, opts...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, calls, "c1")
			s.replaces()
			f := s.forge()
			ro := s.rollout()
			ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
			s.update(ro)
			s.target("v1")
			after := s.turn().RequeueAfter
			if after <= 0 || after > retryAfter {
				t.Errorf("again after %s", after)
			}
			waiting, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			if err := f.WaitFor(waiting, func(log []testforge.Entry) bool { return len(log) > 0 }); err != nil {
				t.Error("nothing was posted")
			}
		})
	}
}

// forge gives the source a forge and starts the delivery.
func (s *scene) forge() *testforge.Forge {
	s.t.Helper()
	f := testforge.New("team/fleet")
	if _, err := f.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = f.Close() })
	s.reporting()
	s.readdress(f.Address("team/fleet"))
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "forge"}, Data: map[string][]byte{"token": []byte("x")}})
	ctx, cancel := context.WithCancel(s.t.Context())
	stopped := make(chan struct{})
	desk := s.reconciler.Desk
	go func() { defer close(stopped); _ = desk.Start(ctx) }()
	s.t.Cleanup(func() { cancel(); <-stopped })
	return f
}

// accepted enters into the status that the forge accepted every post.
func (s *scene) accepted() {
	s.t.Helper()
	ro := s.rollout()
	for i := range ro.Status.CommitStatuses {
		m := &ro.Status.CommitStatuses[i]
		m.Accepted, m.Posting, m.Owed = commitstatus.Last(*m), nil, nil
	}
	if err := s.hub.Status().Update(s.t.Context(), ro); err != nil {
		s.t.Fatal(err)
	}
}

// TestForgeWithoutATokenDelaysNoRollout: the condition says what is missing and what it needs, and the clusters move.
func TestForgeWithoutATokenDelaysNoRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting() // its Secret does not exist
	s.oneByOne()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	ro := s.rollout()
	denied := apimeta.FindStatusCondition(ro.Status.Conditions, v1alpha1.CommitStatusDeniedCondition)
	if ro.Status.Phase != v1alpha1.PhaseSucceeded || denied == nil || denied.Reason != v1alpha1.TokenMissingReason || !strings.Contains(denied.Message, "write:repository") {
		t.Errorf("%s, denied %+v", ro.Status.Phase, denied)
	}
}

// TestNewContent_IsPlannedAtOnceAfterAnotherTurn: the AddOnRevision of new content wakes the rollout before the content is its target. The
// turn for that must not make the target wait a second.
func TestNewContent_IsPlannedAtOnceAfterAnotherTurn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.within(0, "10m")
	s.target("v1")
	s.settle()
	s.turn()
	again := func() time.Duration {
		result, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	spent := func(turns int) { // the turns at once are without a wait, the next one is not
		t.Helper()
		for range turns {
			if wait := again(); 0 < wait && wait <= time.Second {
				t.Errorf("one of the turns at once waits %s", wait)
			}
		}
		if wait := again(); wait <= 0 || wait > time.Second {
			t.Errorf("after the turns at once, a turn waits %s", wait)
		}
	}
	spent(turnsAtOnce - 1)
	digest := s.targetOf(zonedAt("v2"), "v2")
	ro := s.rollout()
	ro.Generation++ // as the API server does
	s.update(ro)
	again()
	if got := s.rollout().Status.Target; got == nil || got.Digest != digest {
		t.Errorf("the target is %+v, want %s", got, digest)
	}
	spent(turnsAtOnce - 1)
}
