package dashboard

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// states are the pages in the states that users meet.
func states(tb testing.TB) map[string]any {
	tb.Helper()
	s := subject(tb)
	hidden := subject(tb)
	hidden.Plan, hidden.Change = nil, nil
	hidden.Unplanned = "Single clusters are not shown: you may not get managedclusters."
	refused := subject(tb)
	refused.Source, refused.Asked = refusedSource(), sha("3")
	fleet := []v1alpha1.AddOnRollout{*failed(), *progressing().Rollout, *waiting().Rollout, *succeeded().Rollout, *rolledBack().Rollout}
	for i, name := range []string{"hello", "config-policy-controller", "node-exporter", "cert-manager", "fleet-inventory"} {
		fleet[i].Name = name
	}
	local := Frame{Base: "/", Path: ""}
	return map[string]any{
		"failed":      NewRollout(frame(RolloutPath("default", "hello", sha("2"))), s),
		"progressing": NewRollout(frame(RolloutPath("default", "hello", sha("2"))), progressing()),
		"waiting":     NewRollout(frame(RolloutPath("default", "hello", sha("2"))), waiting()),
		"succeeded":   NewRollout(frame(RolloutPath("default", "hello", sha("2"))), succeeded()),
		"rolled-back": NewRollout(frame(RolloutPath("default", "hello", sha("2"))), rolledBack()),
		"hidden":      NewRollout(frame(RolloutPath("default", "hello", sha("2"))), hidden),
		"thousands":   NewRollout(frame(RolloutPath("default", "hello", sha("2"))), inThousands()),
		"refused":     NewRollout(frame(RolloutPath("default", "hello", sha("3"))), refused),
		"restored":    NewPast(frame(RolloutPath("default", "hello", sha("1"))), rolledBack(), 2),
		"past":        NewPast(frame(RolloutPath("default", "hello", sha("1"))), s, 1),
		"fleet":       NewFleet(frame(""), fleet, []v1alpha1.AddOnSource{*fleetSource(), *refusedSource()}, nil, at()),
		"nothing":     NewFleet(local, nil, nil, nil, at()),
		"source":      NewSource(frame(SourcePath("default", "fleet", "")), fleetSource()),
		"mistakes":    NewSource(frame(SourcePath("default", "fleet", "")), refusedSource()),
		"cluster":     NewCluster(frame(clusterPath("eu-01")), "eu-01", []On{{failed(), planOf().Clusters[1]}, {succeeded().Rollout, rollout.ClusterPlan{Name: "eu-01", Stage: "canary", State: rollout.Done}}}, nil),
		"empty":       NewCluster(frame(clusterPath("eu-09")), "eu-09", nil, nil),
		"clusters":    NewClusters(frame("clusters"), progressing(), ClustersOf{Stage: "everyone"}),
		"login":       Login{Frame: frame("login"), Refused: "The hub does not know this token, or it is longer than a cookie can be."},
		"message":     Message{Frame: Frame{Base: "/", Path: "rollouts/default/hello/" + sha("9"), Title: "No longer kept"}, Text: "This commit is neither rolled out now nor among the last 50 rollouts of hello, which are kept.", To: Link{"The current rollout", RolloutPath("default", "hello", "")}},
	}
}

// fleetOf is the plan of n clusters, two of them in the stage canary and the others in the stage
// everyone, in the states that are given by their index.
func fleetOf(n int, states func(i int) (rollout.State, string)) *rollout.Plan {
	p := &rollout.Plan{}
	for i := range n {
		stage, region := "everyone", []string{"eu", "us", "ap"}[i%3]
		if i < 2 {
			stage = "canary"
		}
		state, reason := states(i)
		p.Clusters = append(p.Clusters, rollout.ClusterPlan{Name: fmt.Sprintf("%s-%02d", region, i/3+1), Stage: stage, State: state, Reason: reason})
	}
	return p
}

// staged is a rollout in a phase, without a failure, with the counts of a plan.
func staged(phase v1alpha1.Phase, message string, plan *rollout.Plan) Subject {
	r := failed()
	r.Status.Phase, r.Status.Message, r.Status.Failing, r.Status.Conditions = phase, message, nil, nil
	r.Status.Counts, r.Status.Journal, r.Status.History = v1alpha1.Counts{}, r.Status.Journal[:1], r.Status.History[1:]
	r.Spec.Stages[1].MaxConcurrency = new(intstr.FromString("25%"))
	stages := map[string]*v1alpha1.StageStatus{}
	for i := range r.Status.Stages {
		st := &r.Status.Stages[i]
		st.Counts, st.Message = v1alpha1.Counts{}, ""
		stages[st.Name] = st
	}
	for _, c := range plan.Clusters {
		for _, counts := range []*v1alpha1.Counts{&r.Status.Counts, &stages[c.Stage].Counts} {
			counts.Total++
			switch c.State {
			case rollout.Done:
				counts.Updated++
			case rollout.Waiting:
				counts.Waiting++
			case rollout.Parked:
				counts.Parked++
			case rollout.Failed:
				counts.Failed++
			default:
				counts.InFlight++
			}
		}
	}
	return Subject{Rollout: r, Source: fleetSource(), Plan: plan, Now: at(), Asked: sha("2")}
}

// progressing is a rollout in its second stage, with clusters in every state of a good one.
func progressing() Subject {
	s := staged(v1alpha1.PhaseProgressing, "everyone 7/22, 6 in flight", fleetOf(24, func(i int) (rollout.State, string) {
		switch {
		case i < 9:
			return rollout.Done, ""
		case i < 13:
			return rollout.Updating, "Deployment hello: 1 of 2 updated replicas are available"
		case i < 15:
			return rollout.Soaking, ""
		case i == 20:
			return rollout.Parked, "the klusterlet has not reported since 2026-03-04T13:12:00Z"
		}
		return rollout.Waiting, "all slots of the stage are taken"
	}))
	s.Rollout.Status.Stages[0].Phase, s.Rollout.Status.Stages[1].Phase = "Complete", "Progressing"
	begun := ago(2 * time.Minute)
	s.Rollout.Status.Stages[1].Gates = []v1alpha1.GateStatus{{Name: "qa", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GatePassed, Since: &begun, By: "alice"}}
	return s
}

// inThousands is a rollout to ten thousand clusters that is under way.
func inThousands() Subject {
	plan := fleetOf(10000, func(i int) (rollout.State, string) {
		switch {
		case i == 2711, i == 3502, i == 3907:
			return rollout.Failed, "Deployment hello: ImagePullBackOff"
		case i%701 == 300:
			return rollout.Parked, "the klusterlet has not reported for 5m"
		case i < 3900:
			return rollout.Done, ""
		case i < 4150:
			return rollout.Updating, "Deployment hello: 1 of 2 updated replicas are available"
		}
		return rollout.Waiting, "all slots of the stage are taken"
	})
	s := staged(v1alpha1.PhaseProgressing, "everyone 3890/9998, 249 in flight", plan)
	s.Rollout.Status.Stages[0].Phase, s.Rollout.Status.Stages[1].Phase = "Complete", "Progressing"
	s.Rollout.Status.Failing = []v1alpha1.ClusterReason{{Cluster: plan.Clusters[2711].Name, Reason: plan.Clusters[2711].Reason}}
	return s
}

// waiting is a rollout whose second stage waits for an approval.
func waiting() Subject {
	s := staged(v1alpha1.PhaseProgressing, "everyone 0/22, waits for gate qa", fleetOf(24, func(i int) (rollout.State, string) {
		if i < 2 {
			return rollout.Done, ""
		}
		return rollout.Waiting, "gate qa of stage everyone waits for an approval"
	}))
	s.Rollout.Status.Stages[0].Phase = "Complete"
	s.Rollout.Status.Stages[1].Message = "waits for gate qa"
	since := ago(2 * time.Minute)
	s.Rollout.Status.Stages[1].Gates = []v1alpha1.GateStatus{{Name: "qa", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &since, Reason: "0 of 1 approvals"}}
	return s
}

// succeeded is a rollout that reached every cluster.
func succeeded() Subject {
	s := staged(v1alpha1.PhaseSucceeded, "", fleetOf(24, func(int) (rollout.State, string) { return rollout.Done, "" }))
	s.Rollout.Status.Stages[0].Phase, s.Rollout.Status.Stages[1].Phase = "Complete", "Complete"
	return s
}

// rolledBack is a rollout that failed by a measurement and was rolled back to the content before.
func rolledBack() Subject {
	s := staged(v1alpha1.PhaseRolledBack, "gate errors: 12.5 % of requests fail, at most 5 % may; 2 clusters rolled back to main@1111111", fleetOf(24, func(int) (rollout.State, string) { return rollout.Done, "" }))
	r := s.Rollout
	r.Status.Stages[0].Phase, r.Status.Stages[1].Phase = "Complete", "Complete"
	r.Status.Target = targetOf("1")
	begun, ended := ago(4*time.Minute), ago(time.Minute)
	r.Status.History = append([]v1alpha1.HistoryEntry{
		{Target: *targetOf("1"), Phase: v1alpha1.PhaseRolledBack, Started: ended, Finished: &ended, Counts: r.Status.Counts},
		{Target: *targetOf("2"), Phase: v1alpha1.PhaseFailed, Started: begun, Finished: &ended, Counts: v1alpha1.Counts{Total: 24, Failed: 2, Waiting: 22}},
	}, r.Status.History...)
	r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2"), Reason: "gate errors: 12.5 % of requests fail, at most 5 % may"}
	return s
}

// TestPast_OfTheOldestRolloutThatIsKept: the page of a commit shows how its rollout ended, although the list of clusters
// and stages is not kept for as long.
func TestPast_OfTheOldestRolloutThatIsKept(t *testing.T) {
	s := rolledBack()
	s.Rollout.Status.History = nil
	for i := range 50 {
		s.Rollout.Status.History = append(s.Rollout.Status.History, v1alpha1.HistoryEntry{
			Target: v1alpha1.Target{Revision: "hello-1", Commit: fmt.Sprintf("main@sha1:%040d", i)}, Phase: v1alpha1.PhaseFailed,
			Counts: v1alpha1.Counts{Total: 24, Updated: 2}, Reason: "halted in canary: 1 failed",
		})
	}
	oldest := fmt.Sprintf("%040d", 49)
	current, past := Concerns(s.Rollout, s.Source, oldest)
	if current || past != 49 {
		t.Fatalf("current %t, past %d", current, past)
	}
	p := NewPast(frame(RolloutPath("default", "hello", oldest)), s, past)
	if p.Standing != "2 of 24 clusters ran it when its rollout ended: halted in canary: 1 failed." || p.Commit.SHA != oldest {
		t.Errorf("got %q of %s", p.Standing, p.Commit.SHA)
	}
}
