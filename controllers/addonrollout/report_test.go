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
	"github.com/addonflow/addonflow/rollout"
)

// told is state and text of a context below the add-on's, as the ledger wants it: of its
// last attempt.
func (s *scene) told(parts ...string) string {
	s.t.Helper()
	context := strings.Join(append([]string{"addonflow/fleet/hello"}, parts...), "/")
	reports := s.rollout().Status.CommitReports
	told := ""
	for _, r := range reports {
		if r.Context == context {
			told = r.State + ": " + r.Description
		}
	}
	return told
}

// reporting gives the source a forge, which nobody can reach.
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
	if got := s.told("everyone"); !strings.HasPrefix(got, "pending: ") {
		t.Fatalf("the stage has begun, got %q", got)
	}
	ro := s.rollout()
	ro.Spec.Stages[0].Name = "fleet"
	s.update(ro)
	s.turn()
	if got := s.told("everyone"); got != "pending: no longer reported apart: ends with the add-on" {
		t.Errorf("a stage that is gone must not look as if it went on, got %q", got)
	}
	s.settle()
	if got := s.told("everyone"); got != "success: no longer reported apart; 2/2 updated" {
		t.Errorf("every context of a commit has an end, got %q", got)
	}
	if got := s.told("fleet"); !strings.HasPrefix(got, "success: ") {
		t.Errorf("and so has the new stage, got %q", got)
	}
}

// TestStagesEndWithAnAddOnThatIsStopped: what stops the add-on stops its stages, which told
// of clusters in flight until then; they go on with it.
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
	if got := s.told("everyone"); !strings.HasPrefix(got, "failure: stopped: unknown mandatory decision group") {
		t.Errorf("nothing is in flight any more, got %q", got)
	}
	ro = s.rollout()
	ro.Spec.Stages, ro.Spec.Strategy = stages, nil
	s.update(ro)
	s.settle()
	if got := s.told("everyone"); got != "success: 2/2" {
		t.Errorf("it goes on, got %q", got)
	}
}

// TestRemovalsArePassedOn: a commit that was overtaken is none the worse for clusters
// that go on waiting to be removed.
func TestRemovalsArePassedOn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	o := &observation{rollout: s.rollout(), source: source}
	const overtaken, by = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	ledger := s.reconciler.Desk.Open(ledgerKey(client.ObjectKeyFromObject(o.rollout)), []v1alpha1.CommitReport{{
		SHA: overtaken, Context: contextName(o, rollout.RemovalContext), Attempt: 1, State: "pending", Description: "3 clusters to leave",
	}})
	passOnRemovals(ledger, o, overtaken, by)
	ledger.SupersedeOne(overtaken, by)
	if got := ledger.Reports()[0]; got.State != commitstatus.Success || got.Description != "told of 2222222222 from now on" {
		t.Errorf("got %s: %s", got.State, got.Description)
	}
}

// TestFailureNamesWhoFails: a red verdict says at once who failed, and what was undecided
// then. It stands while more fail, and is told anew when whom it names is mended.
func TestFailureNamesWhoFails(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.zone("c2")
	s.zone("c3")
	s.within(0, "10m")
	three := intstr.FromInt32(3)
	ro := s.rollout()
	ro.Spec.Stages[0].MaxConcurrency = &three
	s.update(ro)
	s.target("v1")
	s.settle()
	s.targetOf(zonedAt("v2"), "v2")
	s.turns(2)
	first := s.told("everyone")
	if !strings.HasPrefix(first, "failure: 0/3, 2 in flight, 1 failed (c1: no value for CLUSTER_LABEL_zone") {
		t.Errorf("the stage says %q", first)
	}
	if got := s.told(); !strings.HasPrefix(got, "failure: halted in everyone: 1 failed (c1: no value for CLUSTER_LABEL_zone") {
		t.Errorf("the add-on says %q", got)
	}
	if got := s.rollout().Status.Message; !strings.HasSuffix(got, ", 2 in flight, 0 untouched") {
		t.Errorf("nobody is left out of the count: %q", got)
	}
	s.advance(10 * time.Minute)
	s.turn()
	if got := s.told("everyone"); got != first {
		t.Errorf("the verdict stands while others fail as well, got %q", got)
	}
	s.zone("c1")
	s.turns(2)
	for _, context := range [][]string{{}, {"everyone"}} {
		got := s.told(context...)
		if !strings.HasPrefix(got, "failure: ") || !strings.Contains(got, "2 failed (c2: past its progress deadline") {
			t.Errorf("c1 is mended, and the commit names who fails: %q", got)
		}
	}
	reports := len(s.rollout().Status.CommitReports)
	s.turns(3)
	if got := len(s.rollout().Status.CommitReports); got != reports {
		t.Errorf("it is told once: %d reports, then %d", reports, got)
	}
}

// TestContextsFollowTheirSource (row 66): where the context is an older source's, nothing
// of the rollout is told either, and it goes on; with a context of its own it is told what
// holds then.
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
	if got := s.says(v1alpha1.CommitStatusReportedCondition); !strings.HasPrefix(got, want) || len(s.rollout().Status.CommitReports) > 0 {
		t.Errorf("the rollout says %q and keeps %v", got, s.rollout().Status.CommitReports)
	}
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Errorf("no cluster hangs on it: %s", got)
	}
	if got := s.reconciler.ofSource(t.Context(), older); len(got) != 1 || got[0].Name != "hello" {
		t.Errorf("it looks again when the other source changes or goes, got %v", got)
	}
	s.delete(older)
	s.turn()
	if got := s.told(); got != "success: 2/2 updated" {
		t.Errorf("with the context its own it is told: %q", got)
	}
}

// TestOutlived: a red verdict is told anew when nobody it names fails any more, and is no
// other cluster's whose name ends alike.
func TestOutlived(t *testing.T) {
	const sha = "1111111111111111111111111111111111111111"
	cases := map[string]struct {
		told    string
		failing []string
		want    bool
	}{
		"still the one named":  {"halted in canary: 1 failed (east: as told), 3 untouched", []string{"east"}, false},
		"one of those named":   {"halted in canary: 2 failed (a: as told; east: as told), 3 untouched", []string{"east"}, false},
		"somebody else":        {"halted in canary: 1 failed (west: as told), 3 untouched", []string{"east"}, true},
		"a name that ends so":  {"halted in canary: 1 failed (north-east: as told), 3 untouched", []string{"east"}, true},
		"nobody fails":         {"halted in canary: 1 failed (east: as told), 3 untouched", nil, false},
		"nothing was told yet": {"", []string{"east"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reports := []commitstatus.Report{{SHA: sha, Context: "hello", State: commitstatus.Failure, Description: tc.told}}
			if got := outlived(reports, commitstatus.Status{SHA: sha, Context: "hello"}, tc.failing); got != tc.want {
				t.Errorf("%q, and %v fail: %t", tc.told, tc.failing, got)
			}
		})
	}
}
