package addonsource

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/contest"
)

// TestClientThatReplacesAClusterManagementAddOnIsAConflict: such a client removes AddonFlow's annotations as well, the fence
// and its time included, after the whole object was applied or as soon as it is fenced off.
func TestClientThatReplacesAClusterManagementAddOnIsAConflict(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := addonv1alpha1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	const theirs = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: hello}, spec: {addOnMeta: {displayName: Theirs}, installStrategy: {type: Manual}}}`
	for name, atOnce := range map[string]bool{"AtOnce": true, "Later": false} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(parse(t, theirs)).Build()
			p := &pass{Reconciler: New(Config{Client: hub}), now: time.Now(), memory: &memory{}, source: &v1alpha1.AddOnSource{}}
			read := func() *unstructured.Unstructured {
				t.Helper()
				live := parse(t, theirs)
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
					t.Fatal(err)
				}
				return live
			}
			writes := 0
			for ; writes < 3*contest.Writes; p.now = p.now.Add(2 * time.Second) {
				live := read()
				desired := liveForm(parse(t, strings.Replace(theirs, "Theirs", "Ours", 1)), "team/fleet", Coexist)
				markFenced(desired, live, "team/fleet", p.now)
				todo := plan{addOnObjects: []change{{desired: desired, live: live}}}
				if conflicts := p.contests(todo.changes()); len(conflicts) > 0 {
					break
				}
				writes++
				if step, takes := takeOverOf("hello", planInput{source: "team/fleet", mode: Coexist, seen: &observation{live: map[objectKey]*unstructured.Unstructured{addOnKey("hello"): live}}}); takes {
					todo.takeOvers = append(todo.takeOvers, step)
				}
				if p.takeOver(t.Context(), todo) == nil {
					p.writes.record(keyOf(desired), desired, desired, p.now)
				} else if !atOnce {
					continue
				}
				before := read()
				replaced := parse(t, theirs)
				replaced.SetResourceVersion(before.GetResourceVersion())
				if err := hub.Update(t.Context(), replaced); err != nil {
					t.Fatal(err)
				}
			}
			if writes > contest.Writes {
				t.Errorf("%d writes, and no conflict", writes)
			}
		})
	}
}
