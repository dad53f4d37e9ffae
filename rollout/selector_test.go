package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// byLabels is a fleet of three clusters on the edge that have the add-on, a fourth
// there without it, and a fifth elsewhere.
func byLabels() *rollouttest.Fleet {
	names := rollouttest.Names(3)
	f := rollouttest.NewFleet("v1", names...)
	f.Policy.Spec.Install = &v1alpha1.Install{Type: "Manual"}
	f.Policy.Spec.ClusterLabelSelector = edge()
	f.Join("cluster-04")
	f.Join("cluster-05")
	for _, name := range rollouttest.Names(4) {
		f.Clusters[name].Labels, f.Clusters[name].SelectedBy = onEdge(), rollout.ByLabels
	}
	return f
}

// TestClusterLabelSelector: labels install the add-on, and remove it.
func TestClusterLabelSelector(t *testing.T) {
	none := map[string]string(nil)
	for name, tc := range map[string]struct {
		reason  string
		change  func(*rollouttest.Fleet)
		after   time.Duration
		install []string
		removed []string
		why     map[string]string
	}{
		"labels select": {
			reason: "clusters with the labels get the add-on", change: func(*rollouttest.Fleet) {},
			install: []string{"cluster-04"},
		},
		"an empty selector": {
			reason: "it selects every cluster, as everywhere in Kubernetes",
			change: func(f *rollouttest.Fleet) {
				f.Policy.Spec.ClusterLabelSelector = &metav1.LabelSelector{}
			},
			install: []string{"cluster-04", "cluster-05"},
		},
		"a label is removed": {
			reason:  "the cluster waits out its grace period like a cluster that left a placement",
			change:  func(f *rollouttest.Fleet) { f.Clusters["cluster-02"].Labels = none },
			install: []string{"cluster-04"},
			why:     map[string]string{"cluster-02": "it left the install set: grace period until 12:05 UTC"},
		},
		"a label is removed for good": {
			reason: "it loses the add-on after the grace period",
			change: func(f *rollouttest.Fleet) { f.Clusters["cluster-02"].Labels = none },
			after:  5 * time.Minute, install: []string{"cluster-04"}, removed: []string{"cluster-02"},
		},
		"hand-made without the labels": {
			reason: "it stays, whatever its labels", after: time.Hour,
			change: func(f *rollouttest.Fleet) {
				f.Clusters["cluster-02"].Labels, f.Clusters["cluster-02"].Installed = none, rollout.HandMade
			},
			install: []string{"cluster-04"},
		},
		"the selector is removed": {
			reason: "Manual neither installs nor removes", after: time.Hour,
			change: func(f *rollouttest.Fleet) { f.Policy.Spec.ClusterLabelSelector = nil },
		},
		"installation disabled": {
			reason: "nothing is installed where the ManagedCluster asks for that, and what is there stays", after: time.Hour,
			change: func(f *rollouttest.Fleet) {
				f.Clusters["cluster-02"].InstallDisabled, f.Clusters["cluster-04"].InstallDisabled = true, true
			},
			why: map[string]string{"cluster-04": "its ManagedCluster disables automatic installation"},
		},
		"terminating": {
			reason: "it is left alone", after: time.Hour,
			change: func(f *rollouttest.Fleet) {
				f.Clusters["cluster-02"].Labels, f.Clusters["cluster-02"].Gone, f.Clusters["cluster-04"].Gone = none, true, true
			},
			why: map[string]string{"cluster-04": "its ManagedCluster is terminating or absent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := byLabels()
			tc.change(f)
			first := planned(t, f.Input())
			f.Store(first)
			f.Now = f.Now.Add(tc.after)
			plan := planned(t, f.Input())
			if diff := cmp.Diff(tc.install, acted(plan, rollout.Install)); diff != "" {
				t.Errorf("%s (-want +installed):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.removed, acted(plan, rollout.Remove)); diff != "" {
				t.Errorf("%s (-want +removed):\n%s", tc.reason, diff)
			}
			for cluster, want := range tc.why {
				if got, _ := plan.Why(cluster); got.Reason != want {
					t.Errorf("%s: %s says %q, want %q", tc.reason, cluster, got.Reason, want)
				}
			}
		})
	}
}

func acted(plan rollout.Plan, kind rollout.ActionKind) []string {
	var names []string
	for _, a := range plan.Actions {
		if a.Kind == kind {
			names = append(names, a.Cluster)
		}
	}
	return names
}

// TestSwitchingInstallStrategy switches the type of the install strategy, in both directions
// between each two. A switch keeps what is installed. A cluster leaves if the type that
// selected it selects it no more.
func TestSwitchingInstallStrategy(t *testing.T) {
	const left = "cluster-03"
	manual := func(f *rollouttest.Fleet) {
		f.Policy.Spec.Install, f.Policy.Spec.ClusterLabelSelector = &v1alpha1.Install{Type: "Manual"}, nil
	}
	placements := func(f *rollouttest.Fleet) {
		f.Policy.Spec.Install, f.Policy.Spec.ClusterLabelSelector = installedBy("all"), nil
	}
	byLabel := func(f *rollouttest.Fleet) {
		f.Policy.Spec.Install, f.Policy.Spec.ClusterLabelSelector = &v1alpha1.Install{Type: "Manual"}, edge()
	}
	for name, tc := range map[string]struct {
		from, to func(*rollouttest.Fleet)
		removed  []string
	}{
		"Placements to Manual":         {placements, manual, nil},
		"labels to Manual":             {byLabel, manual, nil},
		"Manual to Placements":         {manual, placements, nil},
		"Manual to labels":             {manual, byLabel, nil},
		"Placements to labels":         {placements, byLabel, nil},
		"labels to Placements":         {byLabel, placements, nil},
		"Placements to Placements":     {placements, placements, []string{left}},
		"labels to labels":             {byLabel, byLabel, []string{left}},
		"Placements with none: Manual": {placements, func(f *rollouttest.Fleet) { f.Policy.Spec.Install = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := rollouttest.NewFleet("v1", rollouttest.Names(4)...)
			f.Clusters["cluster-04"].Installed = rollout.HandMade
			// selected says whether both placements and labels select the one in question.
			selected := func(it bool) {
				names := []string{"cluster-01", "cluster-02"}
				f.Clusters[left].Labels = nil
				if it {
					names, f.Clusters[left].Labels = append(names, left), onEdge()
				}
				f.Policy.Placements = []rollout.Placement{placement("all", names...)}
			}
			for _, c := range []string{"cluster-01", "cluster-02"} {
				f.Clusters[c].Labels = onEdge()
			}
			selected(true)
			tc.from(f)
			if removed := minutes(t, f, 1); len(removed) > 0 {
				t.Errorf("removed %v", removed)
			}
			selected(false)
			tc.to(f)
			if removed := minutes(t, f, 6); !slices.Equal(removed, tc.removed) {
				t.Errorf("removed %v, want %v", removed, tc.removed)
			}
			if f.Policy.Spec.Install == nil || len(tc.removed) > 0 {
				return
			}
			selected(true)
			minutes(t, f, 1)
			selected(false)
			want := []string{left}
			if f.Policy.Spec.Install.Type == "Manual" && f.Policy.Spec.ClusterLabelSelector == nil {
				want = nil
			}
			if removed := minutes(t, f, 6); !slices.Equal(removed, want) {
				t.Errorf("selected by the new type and then no more: removed %v, want %v", removed, want)
			}
		})
	}
}

// minutes plans and carries out, once a minute, and returns the removed clusters. None is to
// be written to or installed.
func minutes(t *testing.T, f *rollouttest.Fleet, n int) []string {
	t.Helper()
	var removed []string
	for range n {
		plan := planned(t, f.Input())
		for _, a := range plan.Actions {
			if a.Kind != rollout.Remove {
				t.Errorf("%s %s: %s", a.Kind, a.Cluster, a.Reason)
			}
		}
		removed = append(removed, acted(plan, rollout.Remove)...)
		f.Store(plan)
		f.CarryOut(plan.Actions)
		f.Collect()
		f.Now = f.Now.Add(time.Minute)
	}
	return removed
}

// TestLabelSelectorRefused: a malformed selector is an error, and so is a selector beside
// placements.
func TestLabelSelectorRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.AddOnRolloutSpec
		want string
	}{
		"a value that is not a label":   {v1alpha1.AddOnRolloutSpec{ClusterLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "a b"}}}, "clusterLabelSelector.matchLabels"},
		"an operator that is not there": {v1alpha1.AddOnRolloutSpec{ClusterLabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "site", Operator: "Is"}}}}, "clusterLabelSelector.matchExpressions[0].operator"},
		"beside placements":             {v1alpha1.AddOnRolloutSpec{ClusterLabelSelector: edge(), Install: installedBy("all")}, "clusterLabelSelector: the ClusterManagementAddOn installs by placements"},
	} {
		t.Run(name, func(t *testing.T) {
			found := rollout.Validate(tc.spec)
			if len(found) != 1 || !strings.HasPrefix(found[0].Error(), tc.want) || found[0].Reason != rollout.InvalidLabelSelector {
				t.Errorf("%v, want a single problem that begins with %q", found, tc.want)
			}
		})
	}
}
