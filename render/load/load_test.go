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

// A pace that the schema defaults is not declared.
func TestAddOn_DeclaresPace(t *testing.T) {
	const pace = "      rolloutStrategy:\n        type: Progressive\n        progressive: {maxConcurrency: 25%, minSuccessTime: 1h30m, progressDeadline: 10m}\n"
	for name, c := range map[string]struct {
		addOn string
		files []string // that are omitted
		want  bool
	}{
		"Stages":     {addOn: strings.Replace(hello()[addOnFile], pace, "", 1), want: true},
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
			addOn := load(t, files, nil).AddOns[0]
			if got := addOn.DeclaresPace(); got != c.want {
				t.Errorf("got %t; installed %+v", got, addOn.Install)
			}
		})
	}
}
