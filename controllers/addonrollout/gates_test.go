package addonrollout

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// gatesOptions let a gate call a server of the test.
func gatesOptions() measure.Options { return measure.Options{AllowHTTP: true, AllowLoopback: true} }

// movedClock has the time of a scene, and timers that really run.
type movedClock struct{ clock.PassiveClock }

func (movedClock) After(d time.Duration) <-chan time.Time { return clock.RealClock{}.After(d) }
func (movedClock) Sleep(d time.Duration)                  { clock.RealClock{}.Sleep(d) }
func (movedClock) NewTimer(d time.Duration) clock.Timer   { return clock.RealClock{}.NewTimer(d) }
func (movedClock) NewTicker(d time.Duration) clock.Ticker { return clock.RealClock{}.NewTicker(d) }
func (movedClock) Tick(d time.Duration) <-chan time.Time  { return clock.RealClock{}.NewTicker(d).C() }

// gatedScene runs v1 on c1, the canary, and on c2 and c3, the fleet. The stages have the gates.
func gatedScene(t *testing.T, canary, fleet *v1alpha1.Gates) *scene {
	t.Helper()
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.place("canary", "c1")
	s.target("v1")
	s.settle()
	ro := s.rollout()
	ref := func(name string) v1alpha1.PlacementReference {
		return v1alpha1.PlacementReference{Namespace: "team", Name: name}
	}
	ro.Spec.Stages = []v1alpha1.Stage{{Name: "canary", Placement: ref("canary"), Gates: canary}, {Name: "fleet", Placement: ref("all"), Gates: fleet}}
	s.update(ro)
	return s
}

// upgrade commits v2 and lets the agents report for some turns.
func (s *scene) upgrade() string {
	s.t.Helper()
	digest := s.target("v2")
	for range 4 {
		s.settleOnce()
	}
	return digest
}

// installPolicy makes the API server prove approvers.
func (s *scene) installPolicy() {
	s.t.Helper()
	policy, err := admission.Policy()
	if err != nil {
		s.t.Fatal(err)
	}
	binding, err := admission.Binding()
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(policy)
	s.create(binding)
}

// decide creates the decision of a user on gate qa of stage fleet.
func (s *scene) decide(user string, decision v1alpha1.Decision) *v1alpha1.AddOnApproval {
	s.t.Helper()
	ro := s.rollout()
	a := &v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello-fleet-" + user},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: ro.UID, Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: ro.Status.Target.Digest,
			Attempt: ro.Status.Attempt, Decision: decision, Approver: user, Comment: "as agreed",
		},
	}
	s.create(a)
	return a
}

func approvals(count int32) *v1alpha1.Gates {
	return &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Count: &count}}}}
}

// verdict is the stored one of the only gate of a stage.
func (s *scene) verdict(stage string) v1alpha1.GateStatus {
	s.t.Helper()
	for _, st := range s.rollout().Status.Stages {
		if st.Name == stage && len(st.Gates) == 1 {
			return st.Gates[0]
		}
	}
	s.t.Fatalf("stage %s has no gate: %+v", stage, s.rollout().Status.Stages)
	return v1alpha1.GateStatus{}
}

// stands checks phase and message of the rollout.
func (s *scene) stands(phase v1alpha1.Phase, says string) {
	s.t.Helper()
	if st := s.rollout().Status; st.Phase != phase || !strings.Contains(st.Message, says) {
		s.t.Fatalf("got %s: %s, want %s: ...%s", st.Phase, st.Message, phase, says)
	}
}

// runs expects the revision on clusters.
func (s *scene) runs(digest string, clusters ...string) {
	s.t.Helper()
	for _, name := range clusters {
		if got := s.works()[name].Annotations[v1alpha1.RevisionAnnotation]; got != digest {
			s.t.Errorf("%s runs %s, want %s", name, got, digest)
		}
	}
}

// journalled are the journal's decisions of a kind.
func (s *scene) journalled(kind string) []string {
	s.t.Helper()
	var found []string
	for _, e := range s.rollout().Status.Journal {
		if e.Decision == kind {
			found = append(found, e.Stage+": "+e.Reason)
		}
	}
	return found
}

func TestTheFleetWaitsForTwoApprovals(t *testing.T) {
	s := gatedScene(t, nil, approvals(2))
	s.installPolicy()
	first := s.rollout().Status.Target.Digest
	s.announced()
	second := s.upgrade()
	s.runs(second, "c1")
	s.runs(first, "c2", "c3")
	s.stands(v1alpha1.PhaseHeld, "fleet 0/2, waits for approval qa: 0 of 2 approvals (addonflow approve hello fleet)")
	if c, _ := s.plan().Why("c2"); c.Reason != "waits for approval qa: 0 of 2 approvals (addonflow approve hello fleet)" {
		t.Errorf("why c2 waits: %s", c.Reason)
	}
	if got := strings.Join(s.announced(), "\n"); strings.Count(got, v1alpha1.GateWaitingReason) != 1 {
		t.Errorf("the wait is announced once, got\n%s", got)
	}
	if h := s.rollout().Status.History[0]; h.Phase != v1alpha1.PhaseHeld || h.Finished != nil {
		t.Errorf("a rollout that waits has not ended: %+v", h)
	}
	s.decide("ann", v1alpha1.Approve)
	s.turn()
	s.stands(v1alpha1.PhaseHeld, "1 of 2 approvals (ann)")
	used := s.decide("bob", v1alpha1.Approve)
	s.turn()
	s.runs(second, "c2", "c3")
	if got := s.verdict("fleet"); got.State != v1alpha1.GatePassed || got.By != "ann, bob" {
		t.Errorf("got verdict %+v", got)
	}
	s.delete(used) // it was used: a cluster was admitted
	s.settle()
	if got := s.journalled("GateWaits"); len(got) != 1 || got[0] != "fleet: approval qa: 0 of 2 approvals" {
		t.Errorf("journal: %q", got)
	}
	if got := s.journalled("GatePassed"); len(got) != 1 || got[0] != "fleet: approval qa: approved by ann, bob" {
		t.Errorf("journal: %q", got)
	}
	if got := s.journalled("StageHeld"); len(got) != 0 {
		t.Errorf("the gate says what holds the stage; journal: %q", got)
	}
}

// TestDriftIsRepairedBehindAGate: no gate is asked for what a cluster runs already.
func TestDriftIsRepairedBehindAGate(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	first := s.rollout().Status.Target.Digest
	s.upgrade()
	work := s.works()["c2"]
	declared := string(work.Spec.Workload.Manifests[0].Raw)
	work.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(declared, "hello:v1", "hello:by-hand"))
	s.update(work)
	s.turns(2)
	if got := string(s.works()["c2"].Spec.Workload.Manifests[0].Raw); got != declared {
		t.Errorf("the work was not repaired: %s", got)
	}
	s.runs(first, "c2", "c3")
	s.stands(v1alpha1.PhaseHeld, "waits for approval qa")
}

func TestAnApprovalThatIsWithdrawnBeforeItsUseCountsNoMore(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	s.suspend()
	given := s.decide("ann", v1alpha1.Approve)
	s.turn()
	if got := s.verdict("fleet"); got.State != v1alpha1.GatePassed {
		t.Fatalf("got verdict %+v", got)
	}
	s.delete(given)
	s.turn()
	if got := s.verdict("fleet"); got.State != v1alpha1.GateWaiting {
		t.Errorf("suspended, after the withdrawal: got verdict %+v", got)
	}
	s.resume()
	s.turn()
	s.stands(v1alpha1.PhaseHeld, "waits for approval qa")
}

// TestDecisionsAreCountedWhileTheRolloutIsSuspended: approve waits until the operator has counted a decision.
func TestDecisionsAreCountedWhileTheRolloutIsSuspended(t *testing.T) {
	s := gatedScene(t, nil, approvals(2))
	s.installPolicy()
	s.upgrade()
	s.suspend()
	s.turn()
	s.decide("ann", v1alpha1.Approve)
	s.turn()
	if got := s.verdict("fleet"); got.State != v1alpha1.GateWaiting || got.Reason != "1 of 2 approvals (ann)" {
		t.Errorf("got verdict %+v", got)
	}
}

// TestAUsedApprovalStaysUsedAfterARestartWithAnEarlierClock: when it was used is then in the future.
func TestAUsedApprovalStaysUsedAfterARestartWithAnEarlierClock(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		one := intstr.FromInt32(1)
		spec.Stages[1].MaxConcurrency = &one
	})
	s.installPolicy()
	second := s.upgrade()
	used := s.decide("ann", v1alpha1.Approve)
	s.turn()
	s.runs(second, "c1", "c2")
	s.delete(used)
	s.restart()
	s.advance(-time.Hour)
	for range 4 {
		s.settleOnce()
	}
	s.runs(second, "c3")
	if got := s.verdict("fleet"); got.State != v1alpha1.GatePassed || got.By != "ann" {
		t.Errorf("got verdict %+v", got)
	}
}

// TestRolloutIsReadyOnceTheShareOfItsStrategyIsMoved: kubectl wait and Flux take Ready as the end of
// a rollout. A rollout that waits for a placement or is suspended is not Ready, and is not in the history as ended.
func TestRolloutIsReadyOnceTheShareOfItsStrategyIsMoved(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.target("v1")
	s.settle()
	s.place("few")
	half := intstr.FromString("50%")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyRollingUpdateWithPlacement, RollingUpdateWithPlacement: &v1alpha1.RollingUpdateWithPlacement{
			PlacementReference: v1alpha1.PlacementReference{Namespace: "team", Name: "few"}, MaxConcurrentlyUpdating: &half,
		}}
	})
	ready := func(want string, ended bool) {
		t.Helper()
		if got := s.says(meta.ReadyCondition); !strings.HasPrefix(got, want) {
			t.Errorf("Ready is %q, want %s", got, want)
		}
		if h := s.rollout().Status.History[0]; (h.Finished != nil) != ended {
			t.Errorf("ended in history: %+v", h)
		}
	}
	s.upgrade()
	ready("Unknown RolloutHeld: share 0/0, held: Placement team/few selects no cluster", false)
	s.delete(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "few"}})
	s.delete(&clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "few-1"}})
	s.place("few", "c1", "c2")
	for range 4 {
		s.settleOnce()
	}
	ready("True RolloutHeld: 1 of 3, rest held by strategy", true)
	s.suspend()
	ready("Unknown Suspended", false)
	s.resume()
	s.turn()
	ready("True RolloutHeld: 1 of 3, rest held by strategy", true)
	s.target("v3")
	s.turn()
	ready("Unknown RolloutProgressing", false)
}

func (s *scene) suspend() {
	s.t.Helper()
	ro := s.rollout()
	ro.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
	s.update(ro)
	s.turn()
}

func (s *scene) resume() {
	s.t.Helper()
	ro := s.rollout()
	ro.Annotations = nil
	s.update(ro)
}

func TestARejectionHaltsTheRolloutAlsoWhenItIsDeleted(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	first := s.rollout().Status.Target.Digest
	s.upgrade()
	given := s.decide("bob", v1alpha1.Reject)
	s.turn()
	s.stands(v1alpha1.PhaseFailed, "halted in fleet: approval qa: rejected by bob: as agreed, 2 untouched")
	if got := s.rollout().Status.Outcome; got != string(rollout.Failure) {
		t.Errorf("the commit is %s", got)
	}
	s.delete(given)
	s.decide("ann", v1alpha1.Approve)
	s.restart()
	s.turns(2)
	s.stands(v1alpha1.PhaseFailed, "rejected by bob")
	s.runs(first, "c2", "c3")
}

// A commit of the policy may lift a rejection, and the journal names the verdict and that commit.
func TestARejectionThatAPolicyLiftsIsInTheJournal(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	s.decide("bob", v1alpha1.Reject)
	s.turn()
	s.stands(v1alpha1.PhaseFailed, "rejected by bob")
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.PolicyCommit = "main@sha1:" + strings.Repeat("c", 40)
		for i := range spec.Stages {
			spec.Stages[i].Gates = nil
		}
	})
	s.turns(2)
	if got, want := s.journalled("GateRemoved"), []string{"fleet: the policy no longer has approval qa: rejected by bob: as agreed"}; !slices.Equal(got, want) {
		t.Errorf("the journal has %q, want %q", got, want)
	}
	for _, e := range s.rollout().Status.Journal {
		if e.Decision == "GateRemoved" && !strings.HasPrefix(e.Commit, "cccccccccc") {
			t.Errorf("the entry names commit %q", e.Commit)
		}
	}
}

// An attempt that a decision names before it begins is passed over: people decide after the retry.
func TestRetryNeedsDecisionsThatAreGivenAfterIt(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	first := s.rollout().Status.Target.Digest
	s.upgrade()
	early := &v1alpha1.AddOnApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "early"}}
	s.decide("bob", v1alpha1.Reject).Spec.DeepCopyInto(&early.Spec)
	early.Spec.Approver, early.Spec.Decision, early.Spec.Attempt = "ann", v1alpha1.Approve, 2
	s.create(early)
	s.turn()
	s.stands(v1alpha1.PhaseFailed, "rejected by bob")
	s.order(v1alpha1.OrderRetry, s.rollout().Status.Target.Digest, nil)
	s.turns(3)
	s.stands(v1alpha1.PhaseHeld, "waits for approval qa: 0 of 1 approvals")
	s.runs(first, "c2", "c3")
	ro := s.rollout()
	if ro.Status.Attempt != 3 {
		t.Errorf("attempt %d", ro.Status.Attempt)
	}
	s.decide("cid", v1alpha1.Approve)
	s.settle()
}

func TestNewContentNeedsNewApprovals(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	s.decide("ann", v1alpha1.Approve)
	s.settle()
	second := s.rollout().Status.Target.Digest
	s.target("v3")
	for range 4 {
		s.settleOnce()
	}
	s.stands(v1alpha1.PhaseHeld, "waits for approval qa: 0 of 1 approvals")
	s.runs(second, "c2", "c3")
}

func TestARevertPassesTheGatesBy(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	s.decide("ann", v1alpha1.Approve)
	s.settleOnce()
	s.settleOnce()
	s.target("v1")
	s.settle()
}

// TestAnAddOnThatComesBackAfterItsRemovalIsInstalledAnew: nothing of it is left in the fleet, so the content
// before the removal is not the stable one any more, also if the rollout was deleted meanwhile.
func TestAnAddOnThatComesBackAfterItsRemovalIsInstalledAnew(t *testing.T) {
	for name, recreated := range map[string]bool{"the rollout stayed": false, "the rollout was deleted": true} {
		t.Run(name, func(t *testing.T) {
			s := gatedScene(t, nil, approvals(1))
			s.installPolicy()
			s.removed()
			ro := s.rollout()
			if recreated {
				ro.Finalizers = nil
				s.update(ro)
				s.delete(ro)
				ro = &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: ro.Namespace, Name: ro.Name}, Spec: ro.Spec}
				ro.Spec.Removal = nil
				s.create(ro)
			}
			ro.Spec.Removal = nil
			s.update(ro)
			second := s.upgrade()
			s.runs(second, "c1")
			if got := slices.Sorted(maps.Keys(s.works())); len(got) != 1 {
				t.Errorf("before the approval it is on %v", got)
			}
			s.stands(v1alpha1.PhaseHeld, "fleet 0/2, waits for approval qa")
			s.decide("ann", v1alpha1.Approve)
			s.settle()
			s.runs(second, "c1", "c2", "c3")
		})
	}
}

// TestContentThatComesBackAfterItsRemovalStartsAnotherAttempt: Git declares the content of before the removal again.
func TestContentThatComesBackAfterItsRemovalStartsAnotherAttempt(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	first := s.target("v1")
	s.settle()
	s.removed()
	ro := s.rollout()
	ro.Spec.Removal, ro.Spec.Target.Commit = nil, "main@sha1:"+commitNamed("v3")
	s.update(ro)
	s.turns(3)
	if st := s.rollout().Status; len(s.works()) != 1 || st.Attempt != 2 || st.Phase != v1alpha1.PhaseProgressing {
		t.Errorf("%d works, attempt %d, %s: %s", len(s.works()), st.Attempt, st.Phase, st.Message)
	}
	s.settle()
	s.runs(first, "c1", "c2")
	if h := s.rollout().Status.History; len(h) != 2 || h[0].Target.Commit != "main@sha1:"+commitNamed("v3") {
		t.Errorf("history: %+v", h)
	}
}

// TestApprovalsDoNotCountWhileTheirAuthorsAreNotProven, and not afterwards either: any author could be written.
func TestApprovalsDoNotCountWhileTheirAuthorsAreNotProven(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.upgrade()
	s.decide("ann", v1alpha1.Approve)
	result := s.turn()
	s.stands(v1alpha1.PhaseHeld, "waits for approval qa, which cannot be evaluated: ValidatingAdmissionPolicy addonflow-approvals is missing")
	if result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
		t.Errorf("looks for the policy again after %s", result.RequeueAfter)
	}
	s.installPolicy()
	s.advance(time.Minute)
	s.replaced()
	s.restart()
	s.turn()
	s.stands(v1alpha1.PhaseHeld, "0 of 1 approvals; not counted, as older than the admission policy: hello-fleet-ann; delete and decide again")
	s.advance(time.Minute)
	s.decide("bob", v1alpha1.Approve)
	s.settle()
}

// The policy, or its binding, is removed while an approval gate waits: the gate is Error at once.
func TestARolloutWithAnApprovalGateIsWokenByTheProofOfItsApprovers(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	other := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ungated"}}
	s.create(other)
	proof := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admission.Name}}
	if got := s.reconciler.ofProof(t.Context(), proof); len(got) != 1 || got[0].NamespacedName != s.key {
		t.Errorf("wakes %v, want only %s", got, s.key)
	}
	foreign := proof.DeepCopy()
	foreign.Name = "other"
	for o, want := range map[client.Object]bool{proof: true, foreign: false} {
		if got := proofChanged().Delete(event.DeleteEvent{Object: o}); got != want {
			t.Errorf("the deletion of %s passes: %t, want %t", o.GetName(), got, want)
		}
	}
}

// A rejection that is older than the policy counts: it only stops the stage.
func TestARejectionCountsAlsoIfItIsOlderThanThePolicy(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	s.suspend()
	s.decide("bob", v1alpha1.Reject)
	s.advance(time.Minute)
	s.replaced()
	s.resume()
	s.turn()
	s.stands(v1alpha1.PhaseFailed, "halted in fleet: approval qa: rejected by bob: as agreed, 2 untouched")
}

// replaced deletes the binding of the policy and creates it again.
func (s *scene) replaced() {
	s.t.Helper()
	binding, err := admission.Binding()
	if err != nil {
		s.t.Fatal(err)
	}
	s.delete(binding)
	binding.CreationTimestamp = metav1.NewTime(s.clock.Now())
	s.create(binding)
}

func TestTheFleetWaitsForTheWindow(t *testing.T) {
	office := &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "office", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{
		TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Hours: "09:00-17:00"}},
	}}}}
	s := gatedScene(t, nil, office)
	s.upgrade() // at three in the morning
	s.stands(v1alpha1.PhaseHeld, "fleet 0/2, waits for window office: opens Fri 09:00 UTC")
	version := s.rollout().ResourceVersion
	s.advance(time.Hour)
	s.turn()
	if got := s.rollout().ResourceVersion; got != version {
		t.Error("a closed window costs a write")
	}
	s.clock.SetTime(time.Date(2026, 1, 2, 8, 59, 59, 0, time.UTC))
	s.turn()
	s.stands(v1alpha1.PhaseProgressing, "fleet 0/2, 2 in flight")
	s.settle()
}

// gateServer answers a webhook gate with the state that is set.
type gateServer struct {
	*httptest.Server
	state atomic.Value
}

func newGateServer(t *testing.T) *gateServer {
	t.Helper()
	g := &gateServer{}
	g.state.Store(v1alpha1.GatePassed)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"state": %q, "message": "as measured"}`, g.state.Load())
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gateServer) gate() v1alpha1.Gate {
	return v1alpha1.Gate{Name: "slo", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{URL: g.URL}}
}

// measure runs the desk until there is a result that began at or after a time, and takes a turn.
func (s *scene) measure(since time.Time) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.gates.Start(ctx) }()
	hubtest.Eventually(s.t, "a measurement", func() bool {
		return slices.ContainsFunc(s.gates.Results(s.key), func(r gates.Measured) bool { return !r.Began.Before(since) })
	})
	stop()
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	s.turn()
}

func TestTheCanaryIsMeasuredAfterItsSoak(t *testing.T) {
	server := newGateServer(t)
	s := gatedScene(t, &v1alpha1.Gates{During: []v1alpha1.Gate{server.gate()}}, nil)
	first := s.rollout().Status.Target.Digest
	second := s.upgrade()
	s.stands(v1alpha1.PhaseProgressing, "canary 1/1, waits for webhook slo to be evaluated after the soak")
	s.runs(first, "c2", "c3")
	s.measure(s.clock.Now())
	if got := s.verdict("canary"); got.State != v1alpha1.GatePassed || got.Reason != "as measured" {
		t.Fatalf("got verdict %+v", got)
	}
	s.advance(2 * time.Minute) // the ledger has the end of a soak by the minute
	s.turn()
	s.measure(s.clock.Now().Add(-time.Second))
	s.runs(second, "c2", "c3")
	s.settle()
}

func TestAMeasurementThatFailsHaltsTheStageAlsoAfterARestart(t *testing.T) {
	server := newGateServer(t)
	s := gatedScene(t, &v1alpha1.Gates{During: []v1alpha1.Gate{server.gate()}}, nil)
	first := s.rollout().Status.Target.Digest
	s.upgrade()
	server.state.Store(v1alpha1.GateFailed)
	s.measure(time.Time{})
	s.stands(v1alpha1.PhaseFailed, "halted in canary: webhook slo failed: as measured, 2 untouched")
	server.state.Store(v1alpha1.GatePassed)
	s.restart()
	s.advance(time.Hour)
	s.turns(3)
	s.stands(v1alpha1.PhaseFailed, "halted in canary")
	s.runs(first, "c2", "c3")
	if got := s.journalled("GateFailed"); len(got) != 1 {
		t.Errorf("journal: %q", got)
	}
}

func TestAGateThatCannotBeMeasuredRollsNothingBack(t *testing.T) {
	server := newGateServer(t)
	s := gatedScene(t, &v1alpha1.Gates{During: []v1alpha1.Gate{server.gate()}}, nil)
	s.declare(rollsBack)
	first := s.rollout().Status.Target.Digest
	second := s.upgrade()
	for range 4 {
		s.advance(20 * time.Minute) // errorAfter is ten minutes
		s.turns(2)
	}
	s.stands(v1alpha1.PhaseProgressing, "canary 1/1, waits for webhook slo")
	s.runs(first, "c2", "c3")
	s.runs(second, "c1")
	if _, quarantined := v1alpha1.ReadQuarantine(s.revision(second).Annotations); quarantined {
		t.Error("the content is quarantined")
	}
	s.measure(s.clock.Now())
	s.settle()
	s.runs(second, "c2", "c3")
}

func TestVerdictsOutliveAPolicyThatCannotBePlanned(t *testing.T) {
	server := newGateServer(t)
	s := gatedScene(t, &v1alpha1.Gates{During: []v1alpha1.Gate{server.gate()}}, nil)
	s.upgrade()
	server.state.Store(v1alpha1.GateFailed)
	s.measure(time.Time{})
	ro := s.rollout()
	ro.Spec.Stages[0].ProgressDeadline = "soon"
	s.update(ro)
	s.turns(2)
	ro = s.rollout()
	ro.Spec.Stages[0].ProgressDeadline = ""
	s.update(ro)
	s.turns(2)
	s.stands(v1alpha1.PhaseFailed, "halted in canary")
}

func TestAHubWithoutGatesReadsNoApprovals(t *testing.T) {
	s := newScene(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*v1alpha1.AddOnApprovalList); is {
			t.Error("approvals are listed")
		}
		return c.List(ctx, list, opts...)
	}}, "c1")
	s.target("v1")
	s.settle()
}

// TestDecisionAboutAnAttemptThatNeverWasChangesNoAttempt: its author wrote the number. Decisions of the first attempt
// count no more when the content comes again.
func TestDecisionAboutAnAttemptThatNeverWasChangesNoAttempt(t *testing.T) {
	s := gatedScene(t, nil, approvals(1))
	s.installPolicy()
	s.upgrade()
	ro := s.rollout()
	s.create(&v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: ro.UID, Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: ro.Status.Target.Digest, Attempt: math.MaxInt32,
			Decision: v1alpha1.Approve, Approver: "eve",
		},
	})
	s.target("v3")
	s.turns(2)
	s.targetOf(contentAt("v2"), "v2")
	s.turns(3)
	if got := s.rollout().Status.Attempt; got != ro.Status.Attempt+1 {
		t.Errorf("attempt %d after %d", got, ro.Status.Attempt)
	}
}
