package roundtrip

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render/load"
)

// TestHashesOfAnyKind: an object of a user-defined kind in Git has the same hash as OCM
// computes for it on the hub, whose CustomResourceDefinition says what is filled in and
// dropped.
func TestHashesOfAnyKind(t *testing.T) {
	admin := startHub(t)
	objects, problems := build(t, "testdata/anykind")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	definition := define(t, admin)
	located := make([]load.Located, 0, len(objects))
	for _, o := range objects {
		located = append(located, o)
	}
	reference := load.DefinitionOf(schema.GroupResource{Group: "example.com", Resource: "regions"})
	commit, problems := load.Load(located, load.Lookup{reference: definition}, load.Options{AsksDefinitions: true})
	if len(problems) > 0 || len(commit.Missing) > 0 {
		t.Fatalf("problems %v, missing %v", problems, commit.Missing)
	}
	compared := 0
	for _, config := range commit.AddOns[0].Content.Configs {
		if config.Kind != "Region" {
			continue
		}
		compared++
		t.Run(config.Name, func(t *testing.T) {
			for _, o := range objects {
				if o.GetKind() == config.Kind && o.GetName() == config.Name {
					if got := ocmHash(t, stored(t, admin, o.DeepCopy())); got != config.SpecHash {
						t.Errorf("the hub's is hashed as %s, the file's as %s", got, config.SpecHash)
					}
				}
			}
		})
	}
	if compared < 4 {
		t.Errorf("only %d objects were compared", compared)
	}
}

// define creates the definition and returns it as the hub has it.
func define(t *testing.T, admin client.Client) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "definition", "regions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// stored creates an object and returns it as the hub has it.
func stored(t *testing.T, admin client.Client, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, object)
		served := !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err)
		if !served {
			err = nil
		}
		return served, err
	})
	if err != nil {
		t.Fatal(err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
		t.Fatal(err)
	}
	return live
}
