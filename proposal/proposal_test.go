package proposal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/forecast"
)

const declared = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello}}]
  installStrategy: {type: Placements, placements: [{namespace: default, name: all}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [global]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello}
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: hello, namespace: default}
        data: {version: v1}
`

// side compiles a text.
func side(t *testing.T, name, text string) Side {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, problems := tree.Build(t.Context(), gitsource.BuildOptions{})
	located := make([]load.Located, 0, len(objects))
	for _, o := range objects {
		located = append(located, o)
	}
	commit, more := load.Load(located, nil, load.Options{})
	return Side{Name: name, Commit: commit, Problems: append(problems, more...)}
}

// TestOf_HidesTheFleet: a pull request that prints everything that a template can name learns nothing of
// the clusters but their number.
func TestOf_HidesTheFleet(t *testing.T) {
	base := side(t, "main", declared)
	head := side(t, "head", strings.Replace(declared, "data: {version: v1}",
		`data: {version: "{{CLUSTER_NAME}} {{CLUSTER_LABEL_region}} {{CLUSTER_CLAIM_account}}"}`, 1))
	fleet := Fleet{Known: forecast.Known{}}
	for i := range 3 {
		fleet.Clusters = append(fleet.Clusters, clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("payments-%d", i), Labels: map[string]string{"region": fmt.Sprintf("moon-%d", i)}},
			Status: clusterv1.ManagedClusterStatus{
				ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: "account", Value: fmt.Sprintf("4711-%d", i)}},
				Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1.32.7+acme-1"},
			},
		})
	}
	for privacy, shown := range map[Privacy][]string{
		ShowFleet: {"payments-0", "moon-0", "4711-0"}, HideValues: {"payments-0"}, HideNames: nil,
	} {
		fleet.Privacy = privacy
		p, err := Of(base, head, fleet, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.AddOns) != 1 || p.AddOns[0].Clusters.Changed != 3 || len(p.AddOns[0].Diffs) == 0 {
			t.Fatalf("%s: got %+v", privacy, p)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		all := string(text) + p.Markdown()
		for _, value := range []string{"payments-0", "moon-0", "4711-0"} {
			if got, want := strings.Contains(all, value), strings.Contains(fmt.Sprint(shown), value); got != want {
				t.Errorf("%s shows %s: %v, want %v", privacy, value, got, want)
			}
		}
		if privacy != ShowFleet && len(p.AddOns[0].Diffs) != 1 {
			t.Errorf("%s: %d groups of clusters", privacy, len(p.AddOns[0].Diffs))
		}
	}
}

// TestOf_IsTheSameForForksWhateverIsOnTheHub: a fork that guesses a label value, an add-on or content gets one answer.
func TestOf_IsTheSameForForksWhateverIsOnTheHub(t *testing.T) {
	base := side(t, "main", declared)
	head := side(t, "head", strings.NewReplacer("clusterSets: [global]", "predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: moon}}}}]",
		"version: v1", "version: v2").Replace(declared))
	revision := render.RevisionName("hello", head.Commit.AddOns[0].Digest)
	known := Fleet{Privacy: HideFleet, Installed: map[string]map[string]bool{"hello": {"payments-0": true}}, Standings: map[string]Standing{"hello": {
		Took: 41 * time.Minute, Moved: moved(3 * time.Minute), Suspended: true, Proven: map[string]bool{revision: true}, Quarantined: map[string]string{revision: "rolled back"},
	}}}
	known.Clusters = []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "payments-0", Labels: map[string]string{"region": "moon"}}}}
	var answers []string
	for _, fleet := range []Fleet{known, {Privacy: HideFleet}} {
		p, err := Of(base, head, fleet, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, string(text)+p.Summary()+p.Markdown())
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], "clusters are not counted for forks") || !strings.Contains(answers[0], "+  version: v2") {
		t.Errorf("%s\nwithout a hub:\n%s", answers[0], answers[1])
	}
}

// TestOf_CountsWhoHasAnAddOnThatIsInstalledByHand: no placement bounds it, and other clusters do not get it.
func TestOf_CountsWhoHasAnAddOnThatIsInstalledByHand(t *testing.T) {
	manual := strings.Replace(declared, "{type: Placements, placements: [{namespace: default, name: all}]}", "{type: Manual}", 1)
	base, head := side(t, "main", manual), side(t, "head", strings.Replace(manual, "v1}", "v2}", 1))
	fleet := Fleet{Privacy: HideValues, Installed: map[string]map[string]bool{"hello": {"mine": true}, "other": {"theirs": true}}}
	for _, name := range []string{"mine", "theirs"} {
		fleet.Clusters = append(fleet.Clusters, clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	p, err := Of(base, head, fleet, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.AddOns) != 1 || p.AddOns[0].Clusters.Total != 1 || p.AddOns[0].Clusters.Changed != 1 || strings.Contains(p.Markdown(), "theirs") {
		t.Errorf("%+v\n%s", p, p.Markdown())
	}
}

// TestOf_CountsNoClusterOfASetThatTheSourceMayNotBind: a binding that the hub would refuse selects nothing.
func TestOf_CountsNoClusterOfASetThatTheSourceMayNotBind(t *testing.T) {
	const binding = `
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
`
	for _, c := range []struct {
		head       string
		unbindable map[string]bool
		want       int
		note       string
	}{
		{"", nil, 0, "cluster set global is not bound to namespace default"},
		{binding, nil, 1, ""},
		{binding, map[string]bool{"global": true}, 0, "may not bind cluster set global"},
	} {
		fleet := Fleet{Known: forecast.Known{AllBindings: true}, Privacy: HideValues, Unbindable: c.unbindable}
		fleet.Clusters = []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "payments-0"}}}
		p, err := Of(side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1)+c.head), fleet, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := p.Markdown()
		if len(p.AddOns) != 1 || p.AddOns[0].Clusters.Total != c.want || strings.Contains(text, "payments-0") != (c.want > 0) || !strings.Contains(text, c.note) {
			t.Errorf("%+v:\n%s", c, text)
		}
	}
}

// TestOf_ShowsTheDiffWithoutAKnownCluster: the content is reviewed, also if the clusters that get it are not known.
func TestOf_ShowsTheDiffWithoutAKnownCluster(t *testing.T) {
	content, placement, _ := strings.Cut(declared, "---\napiVersion: cluster.open-cluster-management.io")
	_, template, _ := strings.Cut(placement, "---\n")
	outside := content + "---\n" + template
	const policy = "---\napiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\n" +
		"spec: {stages: [{name: fleet, placement: {namespace: default, name: all}}]}\n"
	known := Fleet{Privacy: ShowFleet}
	known.Clusters = []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}}
	unbound := known
	unbound.AllBindings = true
	for name, c := range map[string]struct {
		base  string
		fleet Fleet
		total int
		note  string
	}{
		"the Placement is not in the fleet": {outside + policy, known, 100, "the clusters are not known: Placement default/all is neither in the directory nor in the fleet"},
		"no cluster is selected":            {declared + policy, unbound, 0, "no known cluster changes: the diff is that of assumed clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			base, head := side(t, "main", c.base), side(t, "head", strings.Replace(c.base, "v1}", "v2}", 1))
			without, err := Of(base, head, Fleet{Privacy: ShowFleet}, nil)
			if err != nil || len(without.AddOns) != 1 {
				t.Fatalf("%v %+v", err, without)
			}
			p, err := Of(base, head, c.fleet, nil)
			if err != nil || len(p.AddOns) != 1 {
				t.Fatalf("%v %+v", err, p)
			}
			got, want := p.AddOns[0], without.AddOns[0]
			if len(want.Diffs) == 0 || !reflect.DeepEqual(got.Diffs, want.Diffs) || len(got.Stages) != 1 || !slices.Contains(got.Notes, c.note) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.Clusters.Total != c.total || got.Assumed != (c.total > 0) || p.Assumed != got.Assumed {
				t.Errorf("%s: %+v", p.Summary(), got)
			}
		})
	}
}

// TestOf_RendersWithinTheBoundsOfTheTenant: what the operator would write to no cluster is said, and not shown as a change.
func TestOf_RendersWithinTheBoundsOfTheTenant(t *testing.T) {
	fleet := Fleet{Privacy: HideNames, Bounds: &render.Bounds{Namespaces: []string{"team-*"}}}
	fleet.Clusters = []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}}
	p, err := Of(side(t, "main", declared), side(t, "head", strings.Replace(declared, "version: v1", "version: v2", 1)), fleet, nil)
	if err != nil || len(p.AddOns) != 1 || len(p.AddOns[0].Diffs) != 1 {
		t.Fatalf("got %+v, %v", p, err)
	}
	if d := p.AddOns[0].Diffs[0]; len(d.Lines) > 0 || !strings.Contains(d.NotCompared, `the tenant may not use namespace "default"`) {
		t.Errorf("got %+v", d)
	}
}

// moved are the records of clusters that took so long.
func moved(took ...time.Duration) []rollout.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var records []rollout.Record
	for _, d := range took {
		records = append(records, rollout.Record{RecordKey: v1alpha1.RecordKey{State: rollout.Done}, Admitted: at, Since: at.Add(d)})
	}
	return records
}

func TestOf_SaysWhatTheHubKnows(t *testing.T) {
	base, head := side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1))
	revision := render.RevisionName("hello", head.Commit.AddOns[0].Digest)
	p, err := Of(base, head, Fleet{Standings: map[string]Standing{"hello": {
		Took: 41 * time.Minute, Clusters: 12, Moved: moved(3*time.Minute, 40*time.Second), Suspended: true,
		Proven: map[string]bool{revision: true}, Quarantined: map[string]string{revision: "rolled back"},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Markdown()
	for _, want := range []string{
		"the last rollout that succeeded took 41m for 12 clusters", "if every cluster takes 3m, the median of 2 clusters before, without the waits", "the content is in quarantine: rolled back",
		"the rollout is suspended on the hub", "a rollout of this content succeeded before",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

// TestOf_QuarantineNamesNoClusterWithoutNames: the reason is that of the rollout, which lists clusters.
func TestOf_QuarantineNamesNoClusterWithoutNames(t *testing.T) {
	base, head := side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1))
	digest := head.Commit.AddOns[0].Digest
	for privacy, want := range map[Privacy]string{
		HideNames:  "content " + shortDigest(digest) + " is in quarantine; declare other content",
		HideValues: "the content is in quarantine: halted in canary: 1 failed (eu-01: timed out); declare other content",
	} {
		p, err := Of(base, head, Fleet{Privacy: privacy, Standings: map[string]Standing{"hello": {
			Quarantined: map[string]string{render.RevisionName("hello", digest): "halted in canary: 1 failed (eu-01: timed out)"},
		}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		all := string(text) + p.Markdown() + p.Summary()
		if p.Accepted() || !strings.Contains(p.Summary(), want) || strings.Contains(all, "eu-01") != (privacy == HideValues) {
			t.Errorf("%s: %s\n%s", privacy, p.Summary(), all)
		}
	}
}

// TestOf_FailsForContentThatWouldNotBeRolledOut: the commit would be applied, and no cluster would change. A policy that
// blocks the content of the fleet is no failure.
func TestOf_FailsForContentThatWouldNotBeRolledOut(t *testing.T) {
	base, head := side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1))
	digest := head.Commit.AddOns[0].Digest
	revision := render.RevisionName("hello", digest)
	blocks := func(text, what string) Side {
		return side(t, "head", text+"---\napiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\nspec: {blocked: [{"+what+", reason: leaks}]}\n")
	}
	for name, c := range map[string]struct {
		head        Side
		quarantined map[string]string
		want        string
	}{
		"quarantine": {
			head,
			map[string]string{revision: "rolled back"},
			"would not be rolled out: hello: the content is in quarantine: rolled back; declare other content, or run addonflow unblock hello " + shortDigest(digest),
		},
		"blocked": {
			blocks(strings.Replace(declared, "v1}", "v2}", 1), "digest: "+digest), nil,
			"would not be rolled out: hello: spec.blocked has the content: leaks; remove the entry, or declare other content",
		},
		"blocked by the commit that introduced it": {
			blocks(strings.Replace(declared, "v1}", "v2}", 1), "commit: '0123456789'"), nil,
			"would not be rolled out: hello: spec.blocked has the content: leaks; remove the entry, or declare other content",
		},
		"blocks another commit":     {blocks(strings.Replace(declared, "v1}", "v2}", 1), "commit: '9876543210'"), nil, ""},
		"blocks what the fleet has": {blocks(declared, "digest: "+base.Commit.AddOns[0].Digest), nil, ""},
		"another quarantine":        {head, map[string]string{"hello-other": "rolled back"}, ""},
	} {
		p, err := Of(base, c.head, Fleet{Standings: map[string]Standing{"hello": {
			Quarantined: c.quarantined, Commits: map[string][]string{revision: {"main@sha1:0123456789012345678901234567890123456789"}},
		}}}, nil)
		if err != nil || len(p.Refused) > 0 {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		if p.Accepted() != (c.want == "") || c.want != "" && (p.Summary() != c.want || !strings.Contains(p.Markdown(), "**Would not be rolled out.**")) {
			t.Errorf("%s: %s\n%s", name, p.Summary(), p.Markdown())
		}
	}
}

// TestOf_CountsNoClusterThatARollbackTookBack: the base declares content that was withdrawn, and the change restores what
// the clusters have.
func TestOf_CountsNoClusterThatARollbackTookBack(t *testing.T) {
	base, head := side(t, "main", strings.Replace(declared, "v1}", "v2}", 1)), side(t, "head", declared)
	p, err := Of(base, head, Fleet{Standings: map[string]Standing{"hello": {Back: head.Commit.AddOns[0].Digest}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := p.AddOns[0]; a.Change != Content || a.Clusters.Changed != 0 || !slices.Contains(a.Notes, "a rollback moves the clusters back to this content already") {
		t.Errorf("%s: %+v", p.Summary(), a)
	}
}

// TestOf_HoldsNothingForADeadlineThatIsShorterThanTheEstimate: clusters may well be faster than the estimate.
func TestOf_HoldsNothingForADeadlineThatIsShorterThanTheEstimate(t *testing.T) {
	const policy = "---\napiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\n" +
		"spec: {stages: [{name: fleet, placement: {namespace: default, name: all}, progressDeadline: 30s}]}\n"
	p, err := Of(side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1)+policy), Fleet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Markdown(); strings.Contains(text, "held") || !strings.Contains(text, "no estimate: clusters of fleet time out if they take 2m; give them a longer progressDeadline") {
		t.Errorf("%+v\n%s", p.Refused, text)
	}
}

// TestOf_NamesTheCommentThatApproves: the line to copy has the digits of the content that the change brings.
func TestOf_NamesTheCommentThatApproves(t *testing.T) {
	const policy = `
---
apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata: {name: hello}
spec:
  stages:
  - name: fleet
    placement: {namespace: default, name: all}
    gates: {before: [{name: qa, type: approval, approval: {forge: {permission: maintain}}}, {name: people, type: approval, approval: {}}]}
`
	base, head := side(t, "main", declared), side(t, "head", strings.Replace(declared, "v1}", "v2}", 1)+policy)
	p, err := Of(base, head, Fleet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.TrimPrefix(head.Commit.AddOns[0].Digest, "v1:sha256:")
	if text := p.Markdown(); !strings.Contains(text, "`/addonflow approve hello fleet qa "+digest[:10]+"`\n") || strings.Contains(text, "fleet people") {
		t.Errorf("%+v\n%s", p.Refused, text)
	}
}

// TestOf_ShowsPlacementsThatChange: a placement is not content of an add-on, and moves clusters all the same.
func TestOf_ShowsPlacementsThatChange(t *testing.T) {
	base := side(t, "main", declared)
	head := side(t, "head", strings.Replace(declared, "clusterSets: [global]", "clusterSets: [global], numberOfClusters: 7", 1))
	p, err := Of(base, head, Fleet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.AddOns) != 1 || p.AddOns[0].Change != Policy || p.AddOns[0].Clusters.Leaving != 93 || !strings.Contains(strings.Join(p.Objects, "\n"), "+  numberOfClusters: 7") {
		t.Errorf("got %+v", p)
	}
}

// incomplete declares two add-ons of which a plan without a hub and a registry does not know all content.
const incomplete = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: charted}
spec: {installStrategy: {type: Placements, placements: [{namespace: default, name: all}]}}
---
apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata: {name: charted}
spec:
  addOn: charted
  helm: {oci: "charts.example.com/agent:1.0.1@sha256:DIGEST"}
  values: {a: 1}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: told}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: told}}
  - {resource: configmaps, defaultConfig: {namespace: default, name: settings}}
  installStrategy: {type: Placements, placements: [{namespace: default, name: all}]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: told}
spec:
  addonName: told
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: told, namespace: default}, data: {told: v1}}]}}
---` + declared

// TestOf_ComparesWhatIsDeclaredOfContentThatItDoesNotKnow: a chart that is not read and an object that is only on the hub
// do not make an add-on a changed one, and a change of such an add-on is said as not compared.
func TestOf_ComparesWhatIsDeclaredOfContentThatItDoesNotKnow(t *testing.T) {
	base := strings.Replace(incomplete, "DIGEST", strings.Repeat("0", 64), 1)
	for name, c := range map[string]struct{ old, new, want, addOn, note string }{
		"nothing":                      {"", "", "nothing to roll out", "", ""},
		"another add-on":               {"version: v1", "version: v2", "1 add-on: hello", "", ""},
		"the tag of the chart":         {"agent:1.0.1@", "agent:1.0.1-mirrored@", "nothing to roll out", "", ""},
		"the digest of the chart":      {strings.Repeat("0", 64), strings.Repeat("1", 64), "1 add-on, 1 not compared: charted", "charted", "chart charts.example.com/agent:1.0.1@sha256:" + strings.Repeat("1", 64) + " was not read from its registry: what changes on the clusters is not known"},
		"values of the chart":          {"{a: 1}", "{a: 2}", "1 add-on, 1 not compared: charted", "charted", "chart charts.example.com/agent:1.0.1@sha256:" + strings.Repeat("0", 64) + " was not read from its registry: what changes on the clusters is not known"},
		"beside the object on the hub": {"told: v1", "told: v2", "1 add-on, 1 not compared: told", "told", "ConfigMap default/settings is only on the hub: what changes on the clusters is not known"},
		"the name of the object":       {"name: settings", "name: others", "1 add-on, 1 not compared: told", "told", "ConfigMap default/others is only on the hub: what changes on the clusters is not known"},
		"the chart and another add-on": {"{version: v1}", "{version: v2}\n---\n" + strings.NewReplacer("charted", "second", "DIGEST", strings.Repeat("2", 64)).Replace(strings.Split(incomplete, "\n---\napiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ClusterManagementAddOn\nmetadata: {name: told}")[0]), "2 add-ons, 1 not compared: hello, second", "second", "chart charts.example.com/agent:1.0.1@sha256:" + strings.Repeat("2", 64) + " was not read from its registry: what changes on the clusters is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			head := side(t, "head", strings.Replace(base, c.old, c.new, 1))
			p, err := Of(side(t, "main", base), head, Fleet{}, nil)
			if err != nil || len(p.Refused) > 0 {
				t.Fatal(err, p.Refused)
			}
			if p.Summary() != c.want || !p.Accepted() {
				t.Errorf("got %q", p.Summary())
			}
			for _, a := range p.AddOns {
				if (a.Change == Unknown) != (a.Name == c.addOn) || a.Name == c.addOn && !slices.Contains(a.Notes, c.note) {
					t.Errorf("%s: %s, %q", a.Name, a.Change, a.Notes)
				}
			}
		})
	}
}

// TestReverts_ComparesWhatIsDeclaredOfOtherAddOns: a chart that is not read is no reason against the revert of another
// add-on.
func TestReverts_ComparesWhatIsDeclaredOfOtherAddOns(t *testing.T) {
	base := strings.Replace(incomplete, "DIGEST", strings.Repeat("0", 64), 1)
	good := side(t, "the result", strings.Replace(base, "version: v1", "version: v0", 1))
	at := slices.IndexFunc(good.Commit.AddOns, func(a load.AddOn) bool { return a.Name == "hello" })
	digest := good.Commit.AddOns[at].Digest
	for name, c := range map[string]struct{ old, new, addOn, want string }{
		"only the add-on":                       {"", "", "hello", ""},
		"the chart of another one, too":         {strings.Repeat("0", 64), strings.Repeat("1", 64), "hello", "it would change the content of charted, too"},
		"another one with an object of the hub": {"told: v1", "told: v2", "hello", "it would change the content of told, too"},
		"the add-on with the chart":             {"", "", "charted", "chart charts.example.com/agent:1.0.1@sha256:" + strings.Repeat("0", 64) + " is in a registry, which is not read for this"},
		"the add-on with the object":            {"", "", "told", "ConfigMap default/settings is not on the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			head := side(t, "the result", strings.NewReplacer("version: v1", "version: v0", cmp.Or(c.old, "-"), cmp.Or(c.new, "-")).Replace(base))
			if got := Reverts(side(t, "main", base), head, c.addOn, digest); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestMarkdown_CutsWholeAddOns: first diffs are omitted, then add-ons, and the last line names them.
func TestMarkdown_CutsWholeAddOns(t *testing.T) {
	p := Proposal{Base: "main", Head: "head"}
	for i := range 900 {
		p.AddOns = append(p.AddOns, AddOn{
			Name: fmt.Sprintf("addon-%03d", i), Change: Content, Clusters: &Clusters{Total: 3, Changed: 3},
			Diffs: []Diff{{Clusters: 3, Lines: strings.Split(strings.Repeat("+line\n", 2000), "\n")}},
		})
	}
	text := p.Markdown()
	if len(text) > markdownLimit {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{
		"#### `addon-000`: new content, 3 of 3 clusters change\n\n\n<details>", "The diff is too long for this comment; `addonflow plan -o json` shows it.",
		"**Not shown, because the comment would be too long (", "`addonflow plan -o json` shows everything.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	shown := strings.Count(text, "\n#### ")
	if !strings.Contains(text, fmt.Sprintf("(%d):**", 900-shown)) {
		t.Errorf("%d add-ons are shown, and the last line is %q", shown, text[strings.LastIndex(text, "**Not"):])
	}
}

// TestOf_NamesObjectsThatAreTooLarge: they are not compared, and the others are.
func TestOf_NamesObjectsThatAreTooLarge(t *testing.T) {
	const padding = "version: v2, padding: "
	long := strings.Repeat("x", 300_000)
	head := strings.Replace(declared, "version: v1}\n", "version: v2}\n", 1)
	for _, name := range []string{"a", "b"} {
		head += "      - apiVersion: v1\n        kind: ConfigMap\n        metadata: {name: " + name + ", namespace: default}\n        data: {" + padding + long + "}\n"
	}
	p, err := Of(side(t, "main", declared), side(t, "head", head), Fleet{}, nil)
	if err != nil || len(p.AddOns) != 1 || len(p.AddOns[0].Diffs) != 1 {
		t.Fatalf("got %v, %v, %d add-ons", err, p.Refused, len(p.AddOns))
	}
	lines, text := strings.Join(p.AddOns[0].Diffs[0].Lines, "\n"), p.Markdown()
	for _, want := range []string{"-  version: v1\n+  version: v2", "--- v1 ConfigMap default/b\n+++ v1 ConfigMap default/b\n@@ too large to be compared @@"} {
		if !strings.Contains(lines, want) || !strings.Contains(text, want) {
			t.Errorf("%q is missing in %d bytes of lines, or in\n%s", want, len(lines), text)
		}
	}
	if !strings.Contains(lines, "+++ v1 ConfigMap default/a\n@@ -0,0 ") || !strings.Contains(text, "Left out: 1 object: `v1 ConfigMap default/a`.") {
		t.Errorf("%d bytes of lines\n%s", len(lines), text)
	}
}

// TestMarkdown_LeavesLongObjectsOutFirst: no amount of other content displaces the change of a Deployment, and the
// objects that are left out are counted and named.
func TestMarkdown_LeavesLongObjectsOutFirst(t *testing.T) {
	object := func(name, text string, n int) []string {
		lines := []string{"--- (absent)", "+++ " + name, "@@ -0,0 +1,9 @@"}
		return append(lines, slices.Repeat([]string{"+" + text}, n)...)
	}
	deployment := []string{"--- apps/v1 Deployment a/hello", "+++ apps/v1 Deployment a/hello", "@@ -1 +1 @@", "-  image: v1", "--- - not a name", "+++ + not a name", "+  image: v2"}
	var padding []string
	for i := range 200 {
		padding = append(padding, object(fmt.Sprintf("v1 ConfigMap a/pad-%03d", i), strings.Repeat("x", 90), 10)...)
	}
	policy := object("addonflow.io/v1alpha1 AddOnRollout hello", "policy", 3)
	addOn := func(name string, lines ...[]string) AddOn {
		return AddOn{Name: name, Change: Content, Diffs: []Diff{{Clusters: 3, Lines: slices.Concat(lines...)}}, Policy: policy}
	}
	for name, c := range map[string]struct {
		p       Proposal
		want    []string
		longest bool
	}{
		"many objects": {Proposal{AddOns: []AddOn{addOn("hello", padding, deployment)}}, []string{"Left out: 1", " objects: `v1 ConfigMap a/pad-", "pad-000"}, true},
		"one long object": {
			Proposal{AddOns: []AddOn{addOn("hello", object("v1 ConfigMap a/long", "y", 40_000), deployment)}},
			[]string{"Left out: 1 object: `v1 ConfigMap a/long`."},
			false,
		},
		"two long add-ons": {
			Proposal{AddOns: []AddOn{addOn("a-padded", padding), addOn("hello", padding, deployment)}},
			[]string{"#### `a-padded`", "#### `hello`", "pad-000"},
			true,
		},
		"other objects on the hub": {
			Proposal{AddOns: []AddOn{addOn("a-padded", padding)}, Objects: slices.Concat(padding, deployment)},
			[]string{"#### `a-padded`", "Other objects on the hub"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.p.Markdown()
			if len(text) > markdownLimit || c.longest && len(text) < markdownLimit*3/4 {
				t.Errorf("%d bytes", len(text))
			}
			for _, want := range append(c.want, strings.Join(deployment, "\n"), strings.Join(policy, "\n"), "The diff is too long for this comment; `addonflow plan -o json` shows it.") {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
		})
	}
}

// TestMarkdown_IsOnlyCodeWhereTheAuthorWrites: a diff cannot end its block, mention a team, or hide what
// it does.
func TestMarkdown_IsOnlyCodeWhereTheAuthorWrites(t *testing.T) {
	p := Proposal{Base: "main", Head: "a` @all <b>", AddOns: []AddOn{{
		Name: "hello", Change: Content, Holds: []string{"`@all`\n| <script>"},
		Diffs:  []Diff{{Cluster: "</summary><b>", Lines: []string{"+````", "+@everyone", "+safe\u202e;live"}}},
		Stages: []Stage{{Name: "a|b`c"}},
	}}}
	text := p.Markdown()
	for _, want := range []string{
		"`a' @all <b> into main`", "`'@all' / <script>`", "`````diff\n+````\n+@everyone\n+safe\\u202e;live\n`````\n", "| `a/b'c` |", "such as /summaryb",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestRevert_IsOnlyCodeWhereOthersWrite: the reason can have texts of an agent or of a user.
func TestRevert_IsOnlyCodeWhereOthersWrite(t *testing.T) {
	text := Revert{AddOn: "hello", Author: "ana` @all", Reason: "leaks\n````\n@everyone <script> [x](http://evil.example)"}.Markdown()
	for _, want := range []string{"rolled back by `ana' @all`:", "`````text\nleaks ```` @everyone <script> [x](http://evil.example)\n`````\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestSummary_SaysWhyItWouldBeRefused(t *testing.T) {
	p := Proposal{Refused: problem.List{{Path: "a.yaml", Line: 1, Message: "wrong"}, {Message: "worse"}}}
	if got := p.Summary(); got != "would be refused: a.yaml:1: wrong (and 1 more)" {
		t.Errorf("got %q", got)
	}
}
