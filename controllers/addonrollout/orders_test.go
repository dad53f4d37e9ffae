package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/rollout"
)

// order creates an order of user ann about the current content and attempt, and returns its key.
func (s *scene) order(verb v1alpha1.OrderVerb, digest string, arguments *v1alpha1.OrderArguments) client.ObjectKey {
	s.t.Helper()
	s.proven()
	ro := s.rollout()
	var list v1alpha1.AddOnOrderList
	if err := s.hub.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	order := &v1alpha1.AddOnOrder{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("order-%d", len(list.Items))},
		Spec: v1alpha1.AddOnOrderSpec{
			RolloutUID: ro.UID, Rollout: ro.Name, Verb: verb, Digest: digest, Attempt: max(ro.Status.Attempt, 1),
			Arguments: arguments, Author: "ann", Reason: "incident 7",
		},
	}
	s.create(order)
	return client.ObjectKeyFromObject(order)
}

// proven gives the hub the policy that proves authors, unless it has it.
func (s *scene) proven() {
	s.t.Helper()
	policy, err := admission.Policy()
	if err != nil {
		s.t.Fatal(err)
	}
	binding, err := admission.Binding()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range []client.Object{policy, binding} {
		if err := s.hub.Create(s.t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			s.t.Fatal(err)
		}
	}
}

// Two orders of one second are carried out in the order in which the API server stored them, whatever their names.
func TestOrders_OfOneSecondAreInTheOrderInWhichTheyWereGiven(t *testing.T) {
	second := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	given := func(name, version string, at metav1.Time) v1alpha1.AddOnOrder {
		return v1alpha1.AddOnOrder{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, CreationTimestamp: at}}
	}
	want := []v1alpha1.AddOnOrder{
		given("e", "2000", metav1.NewTime(second.Add(-time.Second))), // labelled later
		given("d", "999", second), given("c", "1000", second), given("b", "1001", second),
		given("a", "900", metav1.NewTime(second.Add(time.Second))),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, givenBefore)
	for i := range want {
		if got[i].Name != want[i].Name {
			t.Errorf("order %d: got %s, want %s", i, got[i].Name, want[i].Name)
		}
	}
}

// An order whose author the API server did not prove is refused.
func TestOrders_OfUnprovenAuthorsAreRefused(t *testing.T) {
	s, _, v2 := stopped(t)
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	policy, err := admission.Policy()
	if err != nil {
		t.Fatal(err)
	}
	s.delete(policy)
	s.turn()
	if got := s.answered(key); !strings.HasPrefix(got, "Refused: ValidatingAdmissionPolicy addonflow-approvals is missing") || s.rollout().Status.Attempt != 1 {
		t.Errorf("%s; attempt %d", got, s.rollout().Status.Attempt)
	}
}

// An order that was given while the API server did not prove authors is refused also after that.
func TestOrders_OfBeforeThePolicyAreRefused(t *testing.T) {
	s, _, v2 := stopped(t)
	s.proven()
	s.advance(time.Minute)
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	s.replaced()
	s.turn()
	if got := s.answered(key); !strings.HasPrefix(got, "Refused: the order was given before, or just when, the policy that proves its author was created") {
		t.Error(got)
	}
	s.advance(time.Minute)
	again := s.order(v1alpha1.OrderRetry, v2, nil)
	s.turn()
	if got := s.answered(again); !strings.HasPrefix(got, "CarriedOut: attempt 2") {
		t.Error(got)
	}
}

// answered is the answer to an order.
func (s *scene) answered(key client.ObjectKey) string {
	s.t.Helper()
	order := &v1alpha1.AddOnOrder{}
	if err := s.hub.Get(s.t.Context(), key, order); err != nil {
		s.t.Fatal(err)
	}
	return string(order.Status.State) + ": " + order.Status.Message
}

// stopped has v1 everywhere and v2 failed on c1, and pauses.
func stopped(t *testing.T) (s *scene, v1, v2 string) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.within(0, "1m")
	v1 = s.target("v1")
	s.settle()
	s.advance(time.Minute)
	v2 = s.target("v2")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	if phase := s.rollout().Status.Phase; phase != v1alpha1.PhaseFailed {
		t.Fatalf("the rollout is %s", phase)
	}
	return s, v1, v2
}

// Retry gives the clusters that failed another attempt with the same content.
func TestRetry_GivesFailedClustersAnotherAttempt(t *testing.T) {
	s, _, v2 := stopped(t)
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	s.turn()
	if got := s.answered(key); got != "CarriedOut: attempt 2; 1 cluster again" {
		t.Fatal(got)
	}
	ro := s.rollout()
	if ro.Status.Attempt != 2 || ro.Status.Phase != v1alpha1.PhaseProgressing {
		t.Fatalf("attempt %d, %s", ro.Status.Attempt, ro.Status.Phase)
	}
	if got := s.holding(v2); !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("%v run v2: the retried cluster holds the only slot", got)
	}
	s.settle()
	if ro := s.rollout(); len(s.holding(v2)) != 3 || len(ro.Status.CarriedOut) != 0 {
		t.Errorf("%v run v2, %d orders are kept in the status", s.holding(v2), len(ro.Status.CarriedOut))
	}
	if !slices.Contains(journaled(s.rollout()), "Ordered") {
		t.Errorf("the journal lacks the order: %v", journaled(s.rollout()))
	}
}

// A conflict does not always come with an event that causes the next turn.
func TestOrders_AreAnsweredAfterAConflict(t *testing.T) {
	conflicts := 1
	s := newScene(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, answer := o.(*v1alpha1.AddOnOrder); answer && conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Group: "addonflow.io", Resource: "addonorders"}, o.GetName(), errors.New("another writer was first"))
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}, "c1", "c2", "c3")
	s.oneByOne()
	s.target("v1")
	s.settle()
	v2 := s.target("v2")
	s.settleOnce()
	key := s.order(v1alpha1.OrderAbort, v2, nil)
	if again := s.turn().RequeueAfter; conflicts != 0 || again == 0 || again > time.Second {
		t.Fatalf("%d conflicts are left; the next turn is in %s", conflicts, again)
	}
	s.turn()
	if got := s.answered(key); got != "CarriedOut: ended the rollout" {
		t.Error(got)
	}
}

// An order is carried out once, also by an operator that was killed before it answered.
func TestOrders_TakeEffectOnceWhenTheAnswerIsLost(t *testing.T) {
	s, _, v2 := stopped(t)
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	s.turn()
	order := &v1alpha1.AddOnOrder{}
	if err := s.hub.Get(t.Context(), key, order); err != nil {
		t.Fatal(err)
	}
	order.Status = v1alpha1.AddOnOrderStatus{} // as if it was never written
	if err := s.hub.Status().Update(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.turns(2)
	if got, attempt := s.answered(key), s.rollout().Status.Attempt; attempt != 2 || !strings.HasPrefix(got, "CarriedOut: attempt 2") {
		t.Errorf("attempt %d, %s", attempt, got)
	}
}

// Orders that make no sense are refused, with the reason, and change nothing.
func TestOrders_AreRefusedWhenTheyMakeNoSense(t *testing.T) {
	s, v1, v2 := stopped(t)
	for name, c := range map[string]struct {
		verb      v1alpha1.OrderVerb
		digest    string
		arguments *v1alpha1.OrderArguments
		want      string
	}{
		"OtherContent":       {v1alpha1.OrderRetry, v1, nil, "the order is about attempt 1 of " + commitNamed("v1")[:10]},
		"ClusterDidNotFail":  {v1alpha1.OrderRetry, v2, &v1alpha1.OrderArguments{Clusters: []string{"c1", "c2"}}, "only clusters that failed with this content can be tried again; these did not: c2"},
		"NothingSoaks":       {v1alpha1.OrderPromote, v2, &v1alpha1.OrderArguments{Stage: "everyone"}, "no cluster is soaking in stage everyone"},
		"AlreadyFailed":      {v1alpha1.OrderAbort, v2, nil, "the rollout is Failed"},
		"NotQuarantined":     {v1alpha1.OrderUnblock, v2, nil, v2 + " is not quarantined"},
		"UnknownDestination": {v1alpha1.OrderRollback, v2, &v1alpha1.OrderArguments{To: v2}, "no other revision succeeded here"},
	} {
		key := s.order(c.verb, c.digest, c.arguments)
		s.turn()
		if got := s.answered(key); !strings.HasPrefix(got, "Refused: "+c.want) && name != "UnknownDestination" || !strings.HasPrefix(got, "Refused: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseFailed || ro.Status.Attempt != 1 || len(s.holding(v2)) != 1 {
		t.Errorf("%s, attempt %d, %v run v2", ro.Status.Phase, ro.Status.Attempt, s.holding(v2))
	}
}

// Promote ends the soak of the clusters that are soaking, and of no other.
func TestPromote_EndsTheSoakOfAStage(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Stages[0].MinSuccessTime = metav1.Duration{Duration: time.Hour}
	})
	v1 := s.target("v1")
	for range 4 {
		s.settleOnce()
	}
	if got := s.holding(v1); !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("%v run v1 during the first soak", got)
	}
	silent := s.works()["c1"]
	silent.Status = workv1.ManifestWorkStatus{}
	if err := s.hub.Status().Update(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	key := s.order(v1alpha1.OrderPromote, v1, &v1alpha1.OrderArguments{Stage: "everyone"})
	s.settleOnce()
	if got := s.answered(key); got != "Refused: no cluster that soaks in stage everyone is verified now" {
		t.Fatal(got)
	}
	key = s.order(v1alpha1.OrderPromote, v1, &v1alpha1.OrderArguments{Stage: "everyone"})
	s.settleOnce()
	if got := s.answered(key); got != "CarriedOut: ended the soak of 1 cluster" {
		t.Fatal(got)
	}
	s.settleOnce()
	s.settleOnce()
	if got := s.holding(v1); len(got) != 2 {
		t.Fatalf("%v run v1 after the soak was ended", got)
	}
	s.turns(3)
	if phase := s.rollout().Status.Phase; phase != v1alpha1.PhaseProgressing {
		t.Errorf("the rollout is %s: the second cluster has a soak of its own", phase)
	}
}

// Abort ends a rollout as Failed without a rollback; a retry resumes it.
func TestAbort_EndsTheRolloutWithoutRollback(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.declare(rollsBack)
	s.target("v1")
	s.settle()
	v2 := s.target("v2")
	s.settleOnce()
	key := s.order(v1alpha1.OrderAbort, v2, nil)
	for range 4 {
		s.settleOnce()
	}
	ro := s.rollout()
	if got := s.answered(key); got != "CarriedOut: ended the rollout" || ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, "aborted by ann: incident 7") {
		t.Fatalf("%s; %s: %s", got, ro.Status.Phase, ro.Status.Message)
	}
	if got := s.holding(v2); !slices.Equal(got, []string{"c1"}) {
		t.Errorf("%v run v2 after the abort", got)
	}
	if _, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); quarantined {
		t.Error("an aborted rollout was rolled back")
	}
	s.order(v1alpha1.OrderRetry, v2, nil)
	s.settle()
	if got := s.holding(v2); len(got) != 3 {
		t.Errorf("after the retry %v run v2", got)
	}
}

// The history of a rollout that was aborted and replaced says of no stage that its clusters still soak.
func TestAbort_LeavesNoStageSoakingInTheHistory(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.soaking(0, "None")
	s.target("v1")
	s.settle()
	s.soaking(time.Hour, "None")
	v2 := s.target("v2")
	s.turns(1)
	s.report()
	s.turns(1)
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.turns(2)
	if got := s.rollout().Status.History[0].Stages; len(got) != 1 || got[0].Phase != rollout.StageSoaking {
		t.Fatalf("while c1 soaks: %+v", got)
	}
	s.target("v3")
	s.turns(2)
	if got := s.rollout().Status.History[1].Stages; len(got) != 1 || got[0].Phase != rollout.StageHeld {
		t.Errorf("after v3 replaced it: %+v", got)
	}
}

// A stage that was complete keeps its verdict and its end in the history while its placement cannot be relied upon, also
// if the rollout is aborted meanwhile.
func TestAbort_OfACompletedStageWhosePlacementIsNotSettled(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.canary("c1")
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	v2 := s.target("v2")
	s.applied("v2", "")
	s.turns(2)
	s.report("c1")
	s.turns(2)
	s.expect("v2", "success: ", "canary")
	s.unsettle("canary")
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.report()
	s.turns(2)
	s.expect("v2", "failure: aborted by ")
	s.expect("v2", "success: ", "canary")
	s.target("v3")
	s.applied("v3", "")
	s.turns(2)
	s.expect("v2", "success: ", "canary")
	if got := s.rollout().Status.History[1].Stages[0]; got.Phase != rollout.StageComplete || got.Finished == nil {
		t.Errorf("the history says of the canary: %+v", got)
	}
}

// unsettle lets a placement count a cluster more than its decisions have.
func (s *scene) unsettle(name string) {
	s.t.Helper()
	var p clusterv1beta1.Placement
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, &p); err != nil {
		s.t.Fatal(err)
	}
	p.Status.NumberOfSelectedClusters++
	s.update(&p)
}

// A rollback order takes green content back, to the content that it names, until it is unblocked.
func TestRollbackOrder_MovesTheFleetOffGreenContentUntilItIsUnblocked(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	digests := map[string]string{}
	for _, tag := range []string{"v1", "v2", "v3"} {
		digests[tag] = s.target(tag)
		s.settle()
		s.advance(time.Minute)
	}
	key := s.order(v1alpha1.OrderRollback, digests["v3"], &v1alpha1.OrderArguments{To: commitNamed("v1")[:10]})
	ro := s.rolledBack()
	if got := s.answered(key); got != "CarriedOut: quarantined "+digests["v3"]+"; back to "+commitNamed("v1")[:10] {
		t.Error(got)
	}
	o := ro.Status.Override
	if len(s.holding(digests["v1"])) != 3 || o.Kind != v1alpha1.OverrideRecall || o.Author != "ann" || o.Reason != "incident 7" || ro.Status.Stable.Digest != digests["v1"] {
		t.Fatalf("%v run v1, override %+v, stable %s", s.holding(digests["v1"]), o, ro.Status.Stable.Digest)
	}
	key = s.order(v1alpha1.OrderUnblock, digests["v3"], nil)
	s.settle()
	if got := s.answered(key); !strings.HasPrefix(got, "CarriedOut: ") || len(s.holding(digests["v3"])) != 3 {
		t.Errorf("%s; %v run v3", got, s.holding(digests["v3"]))
	}
}

// A stage that was green says no success of content that no cluster runs, nor before its clusters have it again.
func TestRollbackOrder_TurnsTheStatusesOfTheStagesRed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	for _, tag := range []string{"v1", "v2"} {
		s.target(tag)
		s.applied(tag, "")
		s.settle()
		s.advance(time.Minute)
		s.expect(tag, "success: 2/2", "everyone")
	}
	digest := s.rollout().Spec.Target.Digest
	s.order(v1alpha1.OrderRollback, digest, nil)
	s.turns(2)
	s.expect("v2", "failure: the content is not rolled back yet; see addonflow/fleet/hello", "everyone")
	s.rolledBack()
	s.expect("v2", "failure: the content is rolled back; see addonflow/fleet/hello", "everyone")
	s.expect("v1", "success: 2/2", "everyone")
	s.order(v1alpha1.OrderUnblock, digest, nil)
	s.turns(2)
	s.expect("v2", "pending: 0/2", "everyone")
	s.settle()
	s.expect("v2", "success: 2/2", "everyone")
}

// A rollback order is about content: an attempt that began meanwhile does not keep it.
func TestRollbackOrder_IsOfTheContentInEveryAttempt(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	var last string
	for _, tag := range []string{"v1", "v2"} {
		last = s.target(tag)
		s.settle()
		s.advance(time.Minute)
	}
	key := s.order(v1alpha1.OrderRollback, last, nil)
	ro := s.rollout()
	ro.Status.Attempt++
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	s.rolledBack()
	if got := s.answered(key); !strings.HasPrefix(got, "CarriedOut: ") {
		t.Error(got)
	}
}

// A rollback order of a suspended rollout is carried out, but moves no cluster before the rollout is resumed: the answer says so.
func TestRollbackOrder_OfASuspendedRolloutSaysThatNothingMoves(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	of := s.succeed("v1", "v2")
	s.suspend()
	key := s.order(v1alpha1.OrderRollback, of[1], nil)
	s.ticks(3, 0, "c1", "c2", "c3")
	if got := s.answered(key); !strings.HasSuffix(got, "; back to "+commitNamed("v1")[:10]+"; the rollout is suspended, and no cluster moves until it is resumed") {
		t.Error(got)
	}
	s.runs(of[1], "c1", "c2", "c3")
}

// A retry of content from which the fleet went back names the order that rolls it out again.
func TestRetry_OfContentThatWasRolledBackNamesUnblock(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	of := s.succeed("v1", "v2")
	s.order(v1alpha1.OrderRollback, of[1], nil)
	s.rolledBack()
	key := s.order(v1alpha1.OrderRetry, of[0], nil)
	s.ticks(3, 0, "c1", "c2", "c3")
	if got, want := s.answered(key), "Refused: the clusters were rolled back from the content; unblock ends its quarantine, and rolls it out again"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Answered orders are deleted after 30 days.
func TestOrders_AreDeletedAfterThirtyDays(t *testing.T) {
	s, _, v2 := stopped(t)
	key := s.order(v1alpha1.OrderRetry, v2, nil)
	s.settle()
	s.advance(29 * 24 * time.Hour)
	s.turn()
	s.answered(key)
	s.advance(24 * time.Hour)
	s.turn()
	if err := s.hub.Get(t.Context(), key, &v1alpha1.AddOnOrder{}); !apierrors.IsNotFound(err) {
		t.Errorf("the order is still there: %v", err)
	}
}

// TestOrders_OfARolloutThatIsGoneAreDeletedAsWell: answered or not.
func TestOrders_OfARolloutThatIsGoneAreDeletedAsWell(t *testing.T) {
	s, _, v2 := stopped(t)
	answered := s.order(v1alpha1.OrderRetry, v2, nil)
	s.settle()
	open := s.order(v1alpha1.OrderAbort, v2, nil)
	ro := s.rollout()
	ro.Finalizers = nil
	s.update(ro)
	s.delete(ro)
	for _, days := range []int{29, 1} {
		s.advance(time.Duration(days) * 24 * time.Hour)
		s.turn()
		for _, key := range []client.ObjectKey{answered, open} {
			if err := s.hub.Get(t.Context(), key, &v1alpha1.AddOnOrder{}); apierrors.IsNotFound(err) != (days == 1) {
				t.Errorf("after %d more days, %s: %v", days, key.Name, err)
			}
		}
	}
}

// An abort stays when every cluster in flight succeeds, and when the status is lost.
func TestAbort_NeverTurnsGreen(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.target("v2")
	s.turns(2) // all clusters are in flight
	s.order(v1alpha1.OrderAbort, v2, nil)
	for range 4 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseFailed || ro.Status.Stable.Digest == v2 {
		t.Fatalf("%s, stable %s: %s", ro.Status.Phase, ro.Status.Stable.Digest, ro.Status.Message)
	}
	ro := s.rollout()
	ro.Status = v1alpha1.AddOnRolloutStatus{}
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	s.restart()
	for range 4 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, "aborted by ann") {
		t.Errorf("after its status was lost: %s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// TestRollbackOrder_AcceptsTheFirstDigitsOfADigest: ten digits are what is shown of a digest.
func TestRollbackOrder_AcceptsTheFirstDigitsOfADigest(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	of := s.succeed("v1", "v2", "v3")
	digits := strings.TrimPrefix(of[0], "v1:sha256:")[:10]
	key := s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: digits})
	s.rolledBack()
	if got := s.answered(key); !strings.HasPrefix(got, "CarriedOut: ") || len(s.holding(of[0])) != 2 {
		t.Errorf("%s; %v run v1", got, s.holding(of[0]))
	}
}
