package forecast

import (
	"errors"
	"strings"
	"testing"

	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/rollout"
)

// fiveClusters are two of a cluster set, one of them a canary; one with a taint of its own, and
// one that is unreachable.
const fiveClusters = `
- {metadata: {name: eu-1, labels: {region: eu, canary: "true", cluster.open-cluster-management.io/clusterset: prod}}, status: {clusterClaims: [{name: platform, value: AWS}]}}
- {metadata: {name: eu-2, labels: {region: eu, cluster.open-cluster-management.io/clusterset: prod}}}
- {metadata: {name: us-1, labels: {region: us}}, spec: {taints: [{key: gpu, effect: NoSelect}]}}
- {metadata: {name: us-2, labels: {region: us}}, spec: {taints: [{key: cluster.open-cluster-management.io/unreachable, effect: NoSelect}]}}
- {metadata: {name: us-3, labels: {region: us}, deletionTimestamp: "2026-01-01T00:00:00Z"}}
`

func known(tb testing.TB, declared string) Known {
	tb.Helper()
	k := Known{Declared: placements(tb, declared)}
	if err := yaml.UnmarshalStrict([]byte(fiveClusters), &k.Clusters); err != nil {
		tb.Fatal(err)
	}
	return k
}

// TestKnownFleet has the placements of the directory and what lint says of a rollout for the
// five clusters.
func TestKnownFleet(t *testing.T) {
	const canary = `canary: {clusterSets: [global], predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}`
	for name, c := range map[string]struct{ policy, placements, want string }{
		"Labels": {
			policy: canaryThenEveryone, placements: "{all: {clusterSets: [prod]}, " + canary + "}",
			want: "canary 1 cluster, soak 10m; everyone 1 cluster; about 14m if every cluster takes 2m\n",
		},
		"TaintsAreNotEvaluated": {
			policy: "{}", placements: "{all: {clusterSets: [global]}}",
			want: "all 4 clusters at once; about 2m if every cluster takes 2m\n" +
				"~ taints of 1 cluster that Placement default/all selects are not evaluated\n",
		},
		"AnyPredicate": {
			policy: "{}", placements: `all: {clusterSets: [prod], predicates: [
  {requiredClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}},
  {requiredClusterSelector: {labelSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}}]}`,
			want: "all 2 clusters at once; about 2m if every cluster takes 2m\n",
		},
		"Claims": {
			policy:     "{}",
			placements: `all: {clusterSets: [prod], predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: platform, operator: In, values: [AWS]}]}}}]}`,
			want:       "all 1 cluster; about 2m if every cluster takes 2m\n",
		},
		"PrioritiesAreNotEvaluated": {
			policy: "{}", placements: "{all: {clusterSets: [prod], numberOfClusters: 1}}",
			want: "all 1 cluster; about 2m if every cluster takes 2m\n" +
				"~ Placement default/all selects 1 of 2 clusters; taken are the first by name, not those of its priorities\n",
		},
		"BindingsAreUnknown": {
			policy: "{}", placements: "{all: {numberOfClusters: 4}}",
			want: "all 4 clusters at once; about 2m if every cluster takes 2m\n" +
				"~ the cluster sets that are bound to namespace default are not known: Placement default/all selects from all clusters\n" +
				"~ taints of 1 cluster that Placement default/all selects are not evaluated\n",
		},
		"EmptyStage": {
			policy: canaryThenEveryone, placements: `{all: {clusterSets: [prod]}, canary: {clusterSets: [prod], predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {canary: "yes"}}}}]}}`,
			want: "canary no cluster; everyone 2 clusters\n" +
				"! stages[0].placement: the rollout never ends: canary 0/0, held: Placement default/canary of stage canary selects no cluster of the install set; select one, or set whenEmpty: Pass; \n",
		},
		"MandatoryGroupWithoutClusters": {
			policy:     "strategy: {type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: asia}]}}",
			placements: `all: {clusterSets: [prod], decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: asia, groupClusterSelector: {labelSelector: {matchLabels: {region: asia}}}}]}}}`,
			want: "all 2 clusters\n! strategy.progressive.mandatoryDecisionGroups: the rollout never ends: held: unknown mandatory decision group: " +
				"no decision group is named \"asia\"; the groups are 0 (without a name); \n",
		},
		"GroupsByLabel": {
			policy:     "strategy: {type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: canary}], minSuccessTime: 5m}}",
			placements: `all: {clusterSets: [prod], decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}}}`,
			want:       "group-canary 1 cluster, soak 5m; rest 1 cluster, soak 5m; about 14m if every cluster takes 2m\n",
		},
		"ByLabelsOfManagedClusters": {
			policy: "{install: {type: Manual}, clusterLabelSelector: {matchLabels: {region: us}}}", placements: "{}",
			want: "all 2 clusters at once; about 2m if every cluster takes 2m\n",
		},
		"NoClusterIsSelected": {
			policy: "{}", placements: "{all: {clusterSets: [none]}}", want: "all no cluster\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := policy(t, c.policy)
			fleet, err := known(t, c.placements).Fleet(spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := said(t, spec, fleet); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestWhatCannotBeEvaluated(t *testing.T) {
	for name, c := range map[string]struct{ placements, want string }{
		"UnknownPlacement": {"{}", "Placement default/all is neither in the directory nor in the fleet"},
		"CEL": {
			`all: {clusterSets: [prod], predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}]}`,
			"Placement default/all: a celSelector is evaluated on the hub only",
		},
		"NoClaims": {
			`all: {clusterSets: [prod], predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: platform, operator: Exists}]}}}]}`,
			"Placement default/all: it has a claimSelector, and no cluster of the fleet has status.clusterClaims",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := known(t, c.placements)
			for i := range k.Clusters {
				k.Clusters[i].Status.ClusterClaims = nil
			}
			if _, err := k.Fleet(policy(t, "{}")); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDecisionsOfTheHubCount(t *testing.T) {
	spec := policy(t, "{}")
	k := known(t, "{}")
	k.Observed = placements(t, "{all: {clusterSets: [prod]}}")
	k.Decisions = []rollout.Placement{{Namespace: "default", Name: "all", Groups: []rollout.Group{{Clusters: []string{"us-1"}}}}}
	text := func() string {
		fleet, err := k.Fleet(spec)
		if err != nil {
			t.Fatal(err)
		}
		return said(t, spec, fleet)
	}
	if got, want := text(), "all 1 cluster; about 2m if every cluster takes 2m\n"; got != want {
		t.Errorf("decided: got %q, want %q", got, want)
	}
	k.Declared = placements(t, "{all: {clusterSets: [prod]}}")
	if got, want := text(), "all 1 cluster; about 2m if every cluster takes 2m\n"; got != want {
		t.Errorf("declared as decided: got %q, want %q", got, want)
	}
	k.Declared[0].Spec.ClusterSets = []string{"global"}
	if got, want := text(), "all 4 clusters at once; about 2m if every cluster takes 2m\n"; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "~ Placement default/all is not as on the hub, and its decisions there do not count\n") {
		t.Errorf("declared otherwise: got %q, want %q and a note", got, want)
	}
}

func TestClusterSets(t *testing.T) {
	spec := policy(t, "{}")
	k := known(t, "{all: {}}")
	k.Sets = []clusterv1beta2.ManagedClusterSet{{Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector,
	}}}}
	k.Sets[0].Name = "everything"
	if err := yaml.Unmarshal([]byte(`{matchLabels: {region: us}}`), &k.Sets[0].Spec.ClusterSelector.LabelSelector); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"prod", "everything"} {
		b := clusterv1beta2.ManagedClusterSetBinding{Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
		b.Namespace, b.Name = "default", set
		k.Bindings = append(k.Bindings, b)
	}
	k.Bindings[1].Namespace = "other"
	for _, want := range []string{"all 2 clusters at once", "all 4 clusters at once"} {
		fleet, err := k.Fleet(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, spec, fleet); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		k.Bindings[1].Namespace = "default"
	}
}

// TestClusterSets_NotBoundToTheNamespaceHaveNoCluster: what the hub would not select is not counted.
func TestClusterSets_NotBoundToTheNamespaceHaveNoCluster(t *testing.T) {
	spec := policy(t, "{}")
	for _, declared := range []string{"{all: {}}", "{all: {clusterSets: [global, prod]}}"} {
		k := known(t, declared)
		k.AllBindings = true
		b := clusterv1beta2.ManagedClusterSetBinding{Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "prod"}}
		b.Namespace, b.Name = "other", "prod"
		k.Bindings = append(k.Bindings, b)
		for _, want := range []string{"all no cluster\n", "all 2 clusters at once"} {
			fleet, err := k.Fleet(spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := said(t, spec, fleet); !strings.HasPrefix(got, want) || strings.Contains(got, "bound to namespace default: ") != (want == "all no cluster\n" || declared != "{all: {}}") {
				t.Errorf("%s: got %q, want %q", declared, got, want)
			}
			k.Bindings[0].Namespace = "default"
		}
	}
}

func TestDisabledInstallation(t *testing.T) {
	spec := policy(t, "{}")
	k := known(t, "{all: {clusterSets: [prod]}}")
	k.Clusters[0].Annotations = map[string]string{"addon.open-cluster-management.io/disable-automatic-installation": "true"}
	fleet, err := k.Fleet(spec)
	if err != nil || len(fleet.Clusters) != 1 || fleet.Clusters[0].Name != "eu-2" {
		t.Errorf("got %+v, %v; want eu-2 alone", fleet.Clusters, err)
	}
}

func TestTooManySteps(t *testing.T) {
	spec := policy(t, canaryThenEveryone)
	r := newRun("hello", spec, Assumed(spec, nil), Windows{})
	r.budget = 500
	if err := r.simulate(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
}
