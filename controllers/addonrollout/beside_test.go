package addonrollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// denied is the answer of a hub whose policy freezes objects.
func denied() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "addonflow.io", Resource: "addonrevisions"}, "x",
		errors.New("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: frozen"))
}

// frozenRevisions refuses changes of revisions while frozen.
func frozenRevisions(frozen *bool) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == v1alpha1.AddOnRevisionKind && *frozen {
			return denied()
		}
		return c.Patch(ctx, o, p, opts...)
	}}
}

// frozenWorks refuses changes of works while frozen.
func frozenWorks(frozen *bool) interceptor.Funcs {
	return interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if _, ok := o.(*workv1.ManifestWork); ok && *frozen {
			return denied()
		}
		return c.Update(ctx, o, opts...)
	}}
}

// slow takes turns that are a minute apart.
func (s *scene) slow(turns int) {
	s.t.Helper()
	for range turns {
		s.turn()
		s.advance(time.Minute)
	}
}

// TestRefusedQuarantineStopsOnlyTheRollback: the failure is shown with the refusal, works are repaired,
// and no cluster moves until the quarantine is written.
func TestRefusedQuarantineStopsOnlyTheRollback(t *testing.T) {
	frozen := false
	s := newScene(t, frozenRevisions(&frozen), "c1", "c2", "c3")
	s.reporting()
	s.within(0, "1m")
	s.declare(rollsBack)
	v1 := s.target("v1")
	s.applied("v1", "")
	s.settle()
	frozen = true
	v2 := s.target("v2")
	s.applied("v2", "")
	s.slow(6)
	const why = "cannot change the quarantine of revision "
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRollingBack || !strings.Contains(ro.Status.Message, why) || !strings.Contains(ro.Status.Message, "frozen") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: ")
	if got := journaled(s.rollout()); !slices.Contains(got, "WriteRefused") {
		t.Errorf("the journal lacks the refusal: %v", got)
	}
	refused := slices.DeleteFunc(s.announced(), func(e string) bool { return !strings.HasPrefix(e, "Warning WriteRefused ") })
	if len(refused) != 1 || !strings.Contains(refused[0], commitNamed("v2")+": "+why) {
		t.Errorf("want one event of the refusal, got %q", refused)
	}
	work := s.works()["c2"]
	work.Spec.Workload.Manifests = []workv1.Manifest{}
	s.update(work)
	s.slow(2)
	if len(s.works()["c2"].Spec.Workload.Manifests) == 0 {
		t.Error("the work of c2 was not repaired")
	}
	if got := s.holding(v2); !slices.Equal(got, []string{"c1"}) {
		t.Errorf("%v have v2 while the quarantine is not written", got)
	}
	frozen = false
	s.slow(6)
	for range 4 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack || len(s.holding(v1)) != 3 || strings.Contains(ro.Status.Message, why) {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// TestRefusedMarkOfASuccessIsShown: the rollout has ended, and the mark is written when the hub lets it.
func TestRefusedMarkOfASuccessIsShown(t *testing.T) {
	frozen := true
	s := newScene(t, frozenRevisions(&frozen), "c1", "c2", "c3")
	s.reporting()
	v1 := s.target("v1")
	s.applied("v1", "")
	for range 6 {
		s.turn()
		s.report()
		s.advance(time.Minute)
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || !strings.HasPrefix(ro.Status.Message, "3/3 updated; cannot record the success of revision ") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.expect("v1", "success: 3/3 updated; cannot record the success of revision ")
	frozen = false
	s.slow(6)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Message != "3/3 updated" || s.succeededAt(v1) == "" {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.expect("v1", "success: 3/3 updated")
}

// succeededAt is the mark of a success on the revision of a digest.
func (s *scene) succeededAt(digest string) string {
	return s.revision(digest).Annotations[v1alpha1.SucceededAtAnnotation]
}

// TestSuccess_WhoseMarkIsLostIsMarkedAgain: the marks of the target and of an older content get the times that they had,
// and nothing is written after that.
func TestSuccess_WhoseMarkIsLostIsMarkedAgain(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	of := s.succeed("v1", "v2")
	v1, v2 := s.succeededAt(of[0]), s.succeededAt(of[1])
	if v1 == "" || v1 >= v2 {
		t.Fatalf("v1 %s, v2 %s", v1, v2)
	}
	s.neverSucceeded()
	s.advance(time.Hour)
	s.turns(1)
	if s.succeededAt(of[0]) != v1 || s.succeededAt(of[1]) != v2 {
		t.Errorf("v1 %q, want %s; v2 %q, want %s", s.succeededAt(of[0]), v1, s.succeededAt(of[1]), v2)
	}
	revision, status := s.revision(of[1]).ResourceVersion, s.rollout().ResourceVersion
	s.turns(2)
	if s.revision(of[1]).ResourceVersion != revision || s.rollout().ResourceVersion != status {
		t.Error("it is written at rest")
	}
}

// TestSuccess_IsMarkedByTheNextTurnAfterAKill: the operator died after it stored the status.
func TestSuccess_IsMarkedByTheNextTurnAfterAKill(t *testing.T) {
	dead := true
	s := newScene(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == v1alpha1.AddOnRevisionKind && dead {
			return errors.New("killed")
		}
		return c.Patch(ctx, o, p, opts...)
	}}, "c1", "c2")
	v1 := s.target("v1")
	for range 6 {
		_, _ = s.reconciler.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: s.key})
		s.report()
		s.advance(time.Minute)
	}
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded || s.succeededAt(v1) != "" {
		t.Fatalf("%s, succeeded at %q", got, s.succeededAt(v1))
	}
	dead = false
	s.restart()
	s.turn()
	if s.succeededAt(v1) == "" {
		t.Error("the revision says no success")
	}
}

// TestRefusedAnswerStopsNoRollout: the rollout goes on, and the order is answered when the hub lets it.
func TestRefusedAnswerStopsNoRollout(t *testing.T) {
	frozen := true
	s := newScene(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, ok := o.(*v1alpha1.AddOnOrder); ok && frozen {
			return denied()
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}, "c1", "c2", "c3")
	s.within(0, "10m")
	v1 := s.target("v1")
	s.turns(1)
	key := s.order(v1alpha1.OrderRetry, v1, nil)
	for range 8 {
		s.turn()
		s.report()
		s.advance(time.Minute)
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || !strings.Contains(ro.Status.Message, "; cannot answer order ") {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
	frozen = false
	s.slow(7)
	if got := s.answered(key); !strings.HasPrefix(got, "Refused: ") {
		t.Errorf("answered %q", got)
	}
	if got := s.rollout().Status.Message; got != "3/3 updated" {
		t.Error(got)
	}
}

// TestTimeoutOfAnAnswerIsNoRefusal: the answer was written, and neither status nor commit says that it cannot be. If
// the hub never answers, that is said after a while, and the rollout goes on.
func TestTimeoutOfAnAnswerIsNoRefusal(t *testing.T) {
	applies := true
	s := newScene(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, ok := o.(*v1alpha1.AddOnOrder); !ok {
			return c.SubResource(sub).Update(ctx, o, opts...)
		}
		if applies {
			if err := c.SubResource(sub).Update(ctx, o, opts...); err != nil {
				return err
			}
		}
		return apierrors.NewTimeoutError("injected", 0)
	}}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "10m")
	v1 := s.target("v1")
	s.applied("v1", "")
	s.settle()
	key := s.order(v1alpha1.OrderRetry, v1, nil)
	for range 4 {
		_, _ = s.reconciler.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: s.key})
		if got := s.rollout().Status.Message; got != "3/3 updated" {
			t.Fatal(got)
		}
		s.advance(2 * time.Second)
	}
	if got := s.answered(key); !strings.HasPrefix(got, "Refused: ") {
		t.Errorf("answered %q", got)
	}
	s.expect("v1", "success: 3/3 updated")

	applies = false
	s.order(v1alpha1.OrderRetry, v1, nil)
	for range 20 {
		_, _ = s.reconciler.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: s.key})
		s.advance(2 * time.Second)
	}
	if got := s.rollout().Status.Message; !strings.HasPrefix(got, "3/3 updated; cannot answer order ") {
		t.Error(got)
	}
}

// TestRefusedRemovalLetsOthersLeave: a cluster whose ManagedClusterAddOn the hub does not delete holds no
// share of the budget, and says why it stays.
func TestRefusedRemovalLetsOthersLeave(t *testing.T) {
	frozen := true
	s := newScene(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if _, ok := o.(*addonv1alpha1.ManagedClusterAddOn); ok && frozen && o.GetNamespace() == "c1" {
			return denied()
		}
		return c.Delete(ctx, o, opts...)
	}}, "c1", "c2", "c3", "c4")
	s.target("v1")
	s.settle()
	s.decides("c4")
	s.slow(40)
	if got := s.installed(); !slices.Equal(got, []string{"c1", "c4"}) {
		t.Errorf("%v have the add-on", got)
	}
	if got := s.says("Ready"); !strings.Contains(got, "1 cluster to remove: the hub refuses: c1: cannot remove: frozen") {
		t.Error(got)
	}
	frozen = false
	s.slow(10)
	if got := s.installed(); !slices.Equal(got, []string{"c4"}) {
		t.Errorf("%v have the add-on after the hub deletes again", got)
	}
}

// TestCommitThatIsTheHeadAgainIsDerivedAfresh: also if the forge has not yet accepted its earlier verdict.
func TestCommitThatIsTheHeadAgainIsDerivedAfresh(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.commit(tag)
		s.applied(tag, "")
		s.settle()
		s.expect(tag, "success: 3/3 updated")
	}
	s.advance(time.Hour)
	s.commit("v1")
	s.applied("v1", "")
	s.turn()
	s.expect("v1", "pending: everyone 0/3, 1 in flight")
}

// TestRefusedRollbackShowsThePresentProblemFirst: status and commit status show the refusal before the failure that
// started the rollback. They name the clusters that cannot be written, during the rollback and after it stopped.
func TestRefusedRollbackShowsThePresentProblemFirst(t *testing.T) {
	frozen := false
	s := newScene(t, frozenWorks(&frozen), "c1", "c2", "c3")
	s.reporting()
	s.failed()
	s.applied("v2", "")
	frozen = true
	s.turns(3)
	way := "rolling back to " + commitNamed("v1")[:10] + " from " + commitNamed("v2")[:10] + ", 1 cannot be written (c1)"
	if got := s.rollout().Status.Message; !strings.HasPrefix(got, way) {
		t.Error(got)
	}
	s.expect("v2", "failure: "+way)
	s.slow(30)
	problem := "halted in everyone: 1 failed (c1: past its progress deadline: cannot update work "
	got := s.rollout().Status.Message
	if !strings.HasPrefix(got, problem) || !strings.Contains(got, "; stopped "+way) {
		t.Error(got)
	}
	s.expect("v2", "failure: halted in everyone: 1 failed (c1: past its ")
	if said := s.reportedOn("v2"); !strings.Contains(said, "; stopped "+way) {
		t.Error(said)
	}
}

// frozenAnswers refuses the answers of orders while frozen.
func frozenAnswers(frozen *bool) interceptor.Funcs {
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, ok := o.(*v1alpha1.AddOnOrder); ok && *frozen {
			return denied()
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}
}

// TestRollbackOrderWithoutAnswerMovesTheFleet: the revision is quarantined once. The rollback, an unblock and the next
// commit continue as if the hub had stored the answers to the orders.
func TestRollbackOrderWithoutAnswerMovesTheFleet(t *testing.T) {
	frozen := true
	s := newScene(t, frozenAnswers(&frozen), "c1", "c2", "c3")
	of := s.succeed("v1", "v2", "v3")
	rests := func(at string) {
		t.Helper()
		s.ticks(12, time.Second, "c1", "c2", "c3")
		if got := s.holding(at); len(got) != 3 {
			t.Fatalf("%v run it: %s", got, s.rollout().Status.Message)
		}
		before := s.revision(of[2]).ResourceVersion
		s.ticks(3, time.Second, "c1", "c2", "c3")
		if after := s.revision(of[2]).ResourceVersion; after != before {
			t.Errorf("the revision is written at rest: %s and %s", before, after)
		}
	}
	s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[0]})
	s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[1]})
	rests(of[1])
	s.order(v1alpha1.OrderUnblock, of[2], nil)
	rests(of[2])
	rests(s.commit("v4"))
}

// TestUnblockWithoutAnswerLiftsNoLaterQuarantine: the content fails again, and the fleet goes back again.
func TestUnblockWithoutAnswerLiftsNoLaterQuarantine(t *testing.T) {
	frozen := true
	s := newScene(t, frozenAnswers(&frozen), "c1", "c2", "c3")
	v1, v2 := s.failed()
	s.rolledBack()
	s.order(v1alpha1.OrderUnblock, v2, nil)
	s.turns(4)
	s.advance(time.Minute)
	s.turns(2)
	s.ticks(12, 0, "c1", "c2", "c3")
	if _, q := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); !q || len(s.holding(v1)) != 3 {
		t.Errorf("quarantined %t, %v run v1: %s", q, s.holding(v1), s.rollout().Status.Message)
	}
}
