package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestLoadGoodCommit(t *testing.T) {
	commit := load(t, hello(), nil)
	if len(commit.AddOns) != 1 || len(commit.Missing) != 0 {
		t.Fatalf("got %d add-ons and missing %v, want one add-on and nothing missing", len(commit.AddOns), commit.Missing)
	}
	addOn := commit.AddOns[0]
	if addOn.Name != "hello" || addOn.Digest == "" || addOn.ClusterManagementAddOn == nil {
		t.Errorf("add-on is not complete: %+v", addOn)
	}
	var kinds []string
	for _, object := range commit.Objects {
		kinds = append(kinds, object.GetKind())
	}
	want := []string{"Namespace", "Placement", "AddOnDeploymentConfig", "AddOnTemplate", "ClusterManagementAddOn"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("objects to apply (-want +got):\n%s", diff)
	}
	t.Run("policy", func(t *testing.T) {
		pace := addOn.Install.Placements[0].RolloutStrategy.Progressive
		if pace.MaxConcurrency != intstr.FromString("25%") || pace.ProgressDeadline != "10m" {
			t.Errorf("pace is %+v, want what was written", pace)
		}
		want := &v1alpha1.AddOnRolloutSpec{
			Stages: []v1alpha1.Stage{{
				Name: "canary", Placement: v1alpha1.PlacementReference{Namespace: "hello", Name: "everyone"},
				MaxConcurrency: new(intstr.FromInt32(1)), MinSuccessTime: metav1.Duration{Duration: 600e9},
			}},
			RevisionHistoryLimit: new(int32(5)),
		}
		if diff := cmp.Diff(want, addOn.Rollout); diff != "" {
			t.Errorf("rollout (-want +got):\n%s", diff)
		}
		if path, line := addOn.Position("ClusterManagementAddOn", "spec.installStrategy"); path != addOnFile || line != 13 {
			t.Errorf("installStrategy stands at %s:%d", path, line)
		}
	})
}

// A pace that the schema defaults is not declared. An AddOnRollout of an add-on without a declared pace is a warning.
func TestAddOn_DeclaresPace(t *testing.T) {
	const pace = "      rolloutStrategy:\n        type: Progressive\n        progressive: {maxConcurrency: 25%, minSuccessTime: 1h30m, progressDeadline: 10m}\n"
	const noPolicy = "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\n"
	for name, c := range map[string]struct {
		addOn   string
		files   []string // that are omitted
		rollout string   // "": as it is
		want    bool
		warned  bool
	}{
		"Stages":     {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), want: true},
		"Strategy":   {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), rollout: noPolicy + "spec: {strategy: {type: All}}\n", want: true},
		"NoSpec":     {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), rollout: noPolicy, warned: true},
		"NoStages":   {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), rollout: noPolicy + "spec: {onFailure: Rollback, stages: []}\n", warned: true},
		"OnlyOfOCM":  {addOn: hello()[addOnFile], rollout: noPolicy, want: true},
		"Placement":  {addOn: hello()[addOnFile], files: []string{rolloutFile}, want: true},
		"Everything": {addOn: strings.Replace(hello()[addOnFile], pace, "      rolloutStrategy: {type: All}\n", 1), files: []string{rolloutFile}, want: true},
		"None":       {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), files: []string{rolloutFile}},
		"Empty":      {addOn: strings.Replace(hello()[addOnFile], pace, "      rolloutStrategy: {}\n", 1), files: []string{rolloutFile}},
	} {
		t.Run(name, func(t *testing.T) {
			files := hello()
			files[addOnFile] = c.addOn
			for _, f := range c.files {
				delete(files, f)
			}
			if c.rollout != "" {
				files[rolloutFile] = c.rollout
			}
			loaded := load(t, files, nil)
			if got := loaded.AddOns[0].DeclaresPace(); got != c.want {
				t.Errorf("got %t; installed %+v", got, loaded.AddOns[0].Install)
			}
			const warning = " AddOnRollout/hello: spec: no pace is declared: a commit moves all clusters at once, unless the operator runs with --default-canary; declare stages or strategy"
			if strings.Contains(loaded.Warnings.Error(), warning) != c.warned {
				t.Errorf("warnings: %v", loaded.Warnings)
			}
		})
	}
}

// A webhook gate without a Secret is a warning: its requests are not signed.
func TestWarnings_GateWithUnsignedRequests(t *testing.T) {
	files := hello()
	files[rolloutFile] = `apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata: {name: hello}
spec:
  stages:
  - name: canary
    placement: {namespace: hello, name: everyone}
    gates:
      during:
      - {name: probe, type: webhook, webhook: {url: "https://probe.example.com"}}
      before:
      - {name: board, type: webhook, webhook: {url: "https://board.example.com", secretRef: {name: board}}}
`
	loaded := load(t, files, nil)
	const want = rolloutFile + ":10: AddOnRollout/hello: spec.stages[0].gates.during[0].webhook: the requests are not signed; set secretRef to a Secret with the key that signs them"
	if got := loaded.Warnings.Error(); got != want {
		t.Errorf("warnings:\n%s\nwant:\n%s", got, want)
	}
}
