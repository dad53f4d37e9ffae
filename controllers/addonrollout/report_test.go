package addonrollout

import (
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// reported is the newest statement in a context below the add-on's, of the newest commit that has
// one.
func (s *scene) reported(parts ...string) string {
	s.t.Helper()
	context := strings.Join(append([]string{"addonflow/fleet/hello"}, parts...), "/")
	text := ""
	for _, m := range s.rollout().Status.CommitStatuses {
		if m.Context == context {
			last := commitstatus.Last(m)
			text = last.State + ": " + last.Description
		}
	}
	return text
}

// reporting gives the source a forge that cannot be reached.
func (s *scene) reporting() {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		s.t.Fatal(err)
	}
	source.Spec.Interval = metav1.Duration{Duration: 60e9}
	source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{
		Provider: "gitea", Address: "https://forge.example.com/team/fleet", SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"},
	}
	s.update(source)
}

func TestDroppedStageEndsWithTheAddOn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.turns(2)
	if got := s.reported("everyone"); !strings.HasPrefix(got, "pending: ") {
		t.Fatalf("the stage has begun, got %q", got)
	}
	ro := s.rollout()
	ro.Spec.Stages[0].Name = "fleet"
	s.update(ro)
	s.turn()
	if got := s.reported("everyone"); !strings.HasPrefix(got, "pending: ") {
		t.Errorf("a stage that is gone ends with the add-on, got %q", got)
	}
	s.settle()
	if got := s.reported("everyone"); got != "success: stage removed; see addonflow/fleet/hello" {
		t.Errorf("every context of a commit has an end, got %q", got)
	}
	if got := s.reported("fleet"); !strings.HasPrefix(got, "success: ") {
		t.Errorf("and so has the new stage, got %q", got)
	}
}

// TestStagesEndWithAnAddOnThatIsStopped: if the add-on is stopped, its stages are red as well, although
// they had clusters in flight. They continue with the add-on.
func TestStagesEndWithAnAddOnThatIsStopped(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.target("v1")
	s.turns(2)
	ro := s.rollout()
	group := []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}}
	stages := ro.Spec.Stages
	ro.Spec.Stages = nil
	ro.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{
		RolloutConfig: clusterv1alpha1.RolloutConfig{}, MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{MandatoryDecisionGroups: group},
	}}
	s.update(ro)
	s.turn()
	if got := s.reported("everyone"); !strings.HasPrefix(got, "failure: stopped: unknown mandatory decision group") {
		t.Errorf("nothing is in flight any more, got %q", got)
	}
	ro = s.rollout()
	ro.Spec.Stages, ro.Spec.Strategy = stages, nil
	s.update(ro)
	s.settle()
	if got := s.reported("everyone"); got != "success: 2/2" {
		t.Errorf("it goes on, got %q", got)
	}
}

// TestFailureNamesTheFailedClusters: a failure names the failed clusters at once, with the counts at that time.
// It is not posted again when more clusters fail, but when all named clusters have recovered.
func TestFailureNamesTheFailedClusters(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.within(0, "10m")
	three := intstr.FromInt32(3)
	ro := s.rollout()
	ro.Spec.Stages[0].MaxConcurrency = &three
	s.update(ro)
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2)
	s.fails("c1")
	s.turns(2)
	first := s.reported("everyone")
	if !strings.HasPrefix(first, "failure: 0/3, 2 in flight, 1 failed (c1: Deployment hello: ProgressDeadlineExceeded") {
		t.Errorf("the stage says %q", first)
	}
	if got := s.reported(); !strings.HasPrefix(got, "failure: halted in everyone: 1 failed (c1: Deployment hello: ProgressDeadlineExceeded") {
		t.Errorf("the add-on says %q", got)
	}
	if got := s.rollout().Status.Message; !strings.HasSuffix(got, ", 2 in flight, 0 untouched") {
		t.Errorf("no cluster is left out of the count: %q", got)
	}
	s.advance(10 * time.Minute)
	s.turn()
	if got := s.reported("everyone"); !strings.HasPrefix(got, "failure: 0/3, 3 failed (c1: Deployment hello: ProgressDeadlineExceeded") {
		t.Errorf("the commit does not count the clusters that failed after the halt: %q", got)
	}
	s.report("c1")
	s.turns(2)
	for _, context := range [][]string{{}, {"everyone"}} {
		got := s.reported(context...)
		if !strings.HasPrefix(got, "failure: ") || !strings.Contains(got, "2 failed (c2: past its progress deadline") {
			t.Errorf("c1 has recovered, and the commit does not name the clusters that still fail: %q", got)
		}
	}
	text := s.reported()
	s.turns(3)
	if got := s.reported(); got != text {
		t.Errorf("it is reported once: %q, then %q", text, got)
	}
}

// TestContextsFollowTheirSource: if an older source owns the context, the rollout posts nothing and
// continues. After the source gets a context of its own, the current state is posted.
func TestContextsFollowTheirSource(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		t.Fatal(err)
	}
	older := source.DeepCopy()
	older.Namespace, older.ResourceVersion = "another", ""
	s.create(older)
	s.target("v1")
	s.settle()
	want := "False OwnershipConflict: the commit status context belongs to source another/fleet, "
	if got := s.says(v1alpha1.CommitStatusReportedCondition); !strings.HasPrefix(got, want) || len(s.rollout().Status.CommitStatuses) > 0 {
		t.Errorf("the rollout says %q and keeps %v", got, s.rollout().Status.CommitStatuses)
	}
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Errorf("no cluster hangs on it: %s", got)
	}
	if got := s.reconciler.ofSource(t.Context(), older); len(got) != 1 || got[0].Name != "hello" {
		t.Errorf("it looks again when the other source changes or goes, got %v", got)
	}
	s.delete(older)
	s.turn()
	if got := s.reported(); got != "success: 2/2 updated" {
		t.Errorf("with the context its own it says: %q", got)
	}
}
