package fleet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func names(n int) []string {
	var found []string
	for _, c := range Numbered("c", n) {
		found = append(found, c.Name)
	}
	return found
}

// shape is a group as "name: clusters", long ones by count.
func shape(groups []decided) []string {
	var lines []string
	for _, g := range groups {
		if len(g.clusters) > 5 {
			lines = append(lines, fmt.Sprintf("%s: %d", g.name, len(g.clusters)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %v", g.name, g.clusters))
	}
	return lines
}

func TestDecide(t *testing.T) {
	fleet := map[string]map[string]string{
		"c-001": {"region": "eu"}, "c-002": {"region": "us"}, "c-003": {"region": "eu"}, "c-004": {},
	}
	inEurope := &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}
	everything := &metav1.LabelSelector{}
	for name, tc := range map[string]struct {
		reason string
		in     Placement
		want   []string
	}{
		"Empty":    {reason: "one empty group, so that there is a decision", want: []string{": []"}},
		"Names":    {reason: "sorted, each once", in: Placement{Clusters: []string{"b", "a", "b"}}, want: []string{": [a b]"}},
		"Selector": {in: Placement{Selector: inEurope}, want: []string{": [c-001 c-003]"}},
		"Groups": {
			reason: "the first group that matches takes a cluster, the rest follows",
			in: Placement{Selector: everything, Groups: []Group{
				{Name: "canary", Clusters: []string{"c-003"}}, {Name: "europe", Selector: inEurope},
			}},
			want: []string{"canary: [c-003]", "europe: [c-001]", ": [c-002 c-004]"},
		},
		"EmptyGroup": {
			reason: "a group that matches nothing is not there",
			in:     Placement{Selector: everything, Groups: []Group{{Name: "canary", Clusters: []string{"gone"}}}},
			want:   []string{": [c-001 c-002 c-003 c-004]"},
		},
		"Cut": {
			reason: "groups longer than the length are cut, under the same name",
			in: Placement{Clusters: names(10), ClustersPerGroup: intstr.FromInt32(4), Groups: []Group{
				{Name: "first", Clusters: names(5)},
			}},
			want: []string{
				"first: [c-001 c-002 c-003 c-004]", "first: [c-005]",
				": [c-006 c-007 c-008 c-009]", ": [c-010]",
			},
		},
		"Percent": {
			reason: "25 % of 10, rounded up",
			in:     Placement{Clusters: names(10), ClustersPerGroup: intstr.FromString("25%")},
			want:   []string{": [c-001 c-002 c-003]", ": [c-004 c-005 c-006]", ": [c-007 c-008 c-009]", ": [c-010]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.in.decide(fleet)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shape(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecisionObjects(t *testing.T) {
	p := Placement{Namespace: "default", Name: "all", Clusters: names(250), Groups: []Group{{Name: "canary", Clusters: names(2)}}}
	groups, err := p.decide(nil)
	if err != nil {
		t.Fatal(err)
	}
	decisions, status := p.objects(groups, &clusterv1beta1.Placement{})
	var got []string
	for _, d := range decisions {
		got = append(got, fmt.Sprintf("%s group=%q index=%s of=%s clusters=%d", d.Name,
			d.Labels[clusterv1beta1.DecisionGroupNameLabel], d.Labels[clusterv1beta1.DecisionGroupIndexLabel],
			d.Labels[clusterv1beta1.PlacementLabel], len(d.Status.Decisions)))
	}
	want := []string{
		`all-decision-1 group="canary" index=0 of=all clusters=2`,
		`all-decision-2 group="" index=1 of=all clusters=100`,
		`all-decision-3 group="" index=1 of=all clusters=100`,
		`all-decision-4 group="" index=1 of=all clusters=48`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantGroups := []clusterv1beta1.DecisionGroupStatus{
		{DecisionGroupIndex: 0, DecisionGroupName: "canary", Decisions: []string{"all-decision-1"}, ClustersCount: 2},
		{DecisionGroupIndex: 1, Decisions: []string{"all-decision-2", "all-decision-3", "all-decision-4"}, ClustersCount: 248},
	}
	if diff := cmp.Diff(wantGroups, status.DecisionGroups); diff != "" || status.NumberOfSelectedClusters != 250 {
		t.Errorf("%d selected, -want +got:\n%s", status.NumberOfSelectedClusters, diff)
	}
}
