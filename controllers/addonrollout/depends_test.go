package addonrollout

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// base is an add-on that hello depends on, on the hub of its scene.
type base struct {
	*scene
	digests map[string]string
}

// baseKey names the rollout of base.
func baseKey() client.ObjectKey { return client.ObjectKey{Namespace: "team", Name: "base"} }

// besideBase is a fleet of c1 and c2 that runs v1 of the add-on and of its dependency.
func besideBase(s *scene) *base {
	s.t.Helper()
	b := newBase(s, "c1", "c2")
	b.to("v1")
	s.target("v1")
	b.moves("c1", "c2")
	s.settle()
	return b
}

// newBase lets hello depend on base and installs that on clusters.
func newBase(s *scene, clusters ...string) *base {
	s.t.Helper()
	b := &base{s, map[string]string{}}
	s.place("based", clusters...)
	s.create(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "base", UID: "base"}})
	s.create(&v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "base"},
		Spec: v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
			{PlacementReference: v1alpha1.PlacementReference{Namespace: "team", Name: "based"}},
		}}},
	})
	s.needs(v1alpha1.Dependency{AddOn: "base"})
	return b
}

// needs makes hello depend on add-ons.
func (s *scene) needs(all ...v1alpha1.Dependency) {
	s.t.Helper()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.DependsOn = all })
}

// to makes content the target of base.
func (b *base) to(tag string) {
	b.t.Helper()
	content := contentAt(tag)
	content.AddOn = "base"
	content.Defaults[0].Name, content.Templates[0].Name = "base", "base"
	content.Templates[0].Spec["addonName"] = "base"
	workload, _ := content.Templates[0].Spec["agentSpec"].(map[string]any)["workload"].(map[string]any)
	manifests, _ := workload["manifests"].([]any)
	deployment, _ := manifests[0].(map[string]any)
	metadata, _ := deployment["metadata"].(map[string]any)
	metadata["name"] = "base"
	digest, err := content.Digest()
	if err != nil {
		b.t.Fatal(err)
	}
	body, err := content.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	name := render.RevisionName("base", digest)
	err = b.hub.Create(b.t.Context(), &v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.AddOnLabel: "base"}, Annotations: map[string]string{v1alpha1.RevisionAnnotation: digest}},
		Spec:       v1alpha1.AddOnRevisionSpec{AddOn: "base", Digest: digest, Body: body},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		b.t.Fatal(err)
	}
	b.change(func(ro *v1alpha1.AddOnRollout) {
		ro.Spec.Target = &v1alpha1.Target{Source: "fleet", Revision: name, Digest: digest, Commit: "main@sha1:" + commitNamed(tag)}
	})
}

func (b *base) get() *v1alpha1.AddOnRollout {
	b.t.Helper()
	ro := &v1alpha1.AddOnRollout{}
	if err := b.hub.Get(b.t.Context(), baseKey(), ro); err != nil {
		b.t.Fatal(err)
	}
	return ro
}

func (b *base) change(do func(*v1alpha1.AddOnRollout)) {
	b.t.Helper()
	ro := b.get()
	do(ro)
	b.update(ro)
}

// moves runs turns of base; its agents on clusters report that it runs.
func (b *base) moves(clusters ...string) {
	b.t.Helper()
	for range 3 {
		b.advance(time.Second)
		if _, err := b.reconciler.Reconcile(ctrl.LoggerInto(b.t.Context(), b.log), ctrl.Request{NamespacedName: baseKey()}); err != nil {
			b.t.Fatal(err)
		}
		var list workv1.ManifestWorkList
		if err := b.hub.List(b.t.Context(), &list); err != nil {
			b.t.Fatal(err)
		}
		for i := range list.Items {
			w := &list.Items[i]
			if !strings.HasPrefix(w.Name, "addon-base-") || !slices.Contains(clusters, w.Namespace) {
				continue
			}
			w.Status = runningStatus(w)
			w.Status.ResourceStatus.Manifests[0].ResourceMeta.Name = "base"
			if err := b.hub.Status().Update(b.t.Context(), w); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// waits fails unless a cluster waits with that reason.
func (s *scene) waits(cluster, reason string) {
	s.t.Helper()
	plan := s.plan()
	if c, _ := plan.Why(cluster); c.State != rollout.Waiting || c.Reason != reason {
		s.t.Errorf("%s is %s: %q, want Waiting: %q", cluster, c.State, c.Reason, reason)
	}
}

// TestDependency_EachLookStartsFromTheLastOne: otherwise the works of the whole fleet would be compared at each look.
func TestDependency_EachLookStartsFromTheLastOne(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	b := newBase(s, "c1")
	b.to("v1")
	s.target("v1")
	b.moves("c1")
	s.turn()
	if m := s.reconciler.memories.get(s.key).dependencies["base"].plan; reflect.ValueOf(m).IsZero() {
		t.Error("the look at the dependency left no memory")
	}
}

// A dependent is installed on each cluster as soon as its dependency is verified there, also by the
// same commit.
func TestDependency_ComesFirstOnEveryCluster(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	b := newBase(s, "c1", "c2", "c3")
	b.to("v1")
	v1 := s.target("v1")
	s.turns(2)
	if got := s.holding(v1); len(got) != 0 {
		t.Fatalf("%v have hello before base", got)
	}
	s.waits("c1", "waits for add-on base to be verified here")
	if ro := s.rollout(); !strings.Contains(ro.Status.Message, "3 not admitted yet (c1: waits for add-on base to be verified here; and 2 more)") {
		t.Errorf("the rollout says %q", ro.Status.Message)
	}
	b.moves("c2")
	s.turns(2)
	if got := s.holding(v1); !slices.Equal(got, []string{"c2"}) {
		t.Fatalf("base is verified on c2, and %v have hello", got)
	}
	s.advance(2 * time.Hour) // no deadline of hello runs where it waits
	b.moves("c1", "c2", "c3")
	s.settle()
	if got := s.holding(v1); len(got) != 3 {
		t.Errorf("base is verified everywhere, and %v have hello", got)
	}
}

// New content of the dependency has to be verified before the dependent gets content again. An
// earlier version there is not enough, and a cluster that the new content does not change is.
func TestDependency_ContentThatItIsToRunCounts(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	b := newBase(s, "c1", "c2")
	b.to("v1")
	v1 := s.target("v1")
	b.moves("c1", "c2")
	s.settle()
	b.to("v2") // no turn of base has seen it
	v2 := s.target("v2")
	s.turns(2)
	s.waits("c1", "waits for add-on base to be verified here")
	b.to("v1") // a revert: nothing of v2 ever reached a cluster
	s.turns(2)
	if got := s.holding(v2); len(got) != 2 {
		t.Errorf("base changes nothing, and %v have v2, %v have v1", got, s.holding(v1))
	}
}

// While the dependency is Failed, content of the dependent reaches no cluster, not even one where
// the dependency is verified. A revert of the dependent does not wait.
func TestDependency_ThatFailedHoldsItsDependents(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	b := newBase(s, "c1", "c2")
	b.to("v1")
	v1 := s.target("v1")
	b.moves("c1", "c2")
	s.settle()
	v2 := s.target("v2")
	s.settle()
	b.change(func(ro *v1alpha1.AddOnRollout) {
		ro.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "based"}, ProgressDeadline: "1m"}}
	})
	b.to("v2")
	b.moves("c1")
	b.advance(2 * time.Minute)
	b.moves("c1")
	if phase := b.get().Status.Phase; phase != v1alpha1.PhaseFailed {
		t.Fatalf("base is %s first: %s", phase, b.get().Status.Message)
	}
	v3 := s.target("v3")
	s.turns(2)
	s.waits("c1", "waits for add-on base, which is Failed")
	if got := s.holding(v3); len(got) != 0 {
		t.Errorf("%v have v3", got)
	}
	s.target("v1")
	s.turns(2)
	if got := s.holding(v1); len(got) != 2 {
		t.Errorf("the revert moved %v back; %v have v2", got, s.holding(v2))
	}
}

// While another owner claims the dependency, what its clusters have proves nothing, although it was verified there.
func TestDependency_ThatIsContestedHoldsItsDependents(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	b := besideBase(s)
	claim := func(source string) {
		t.Helper()
		owner := &addonv1alpha1.ClusterManagementAddOn{}
		if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "base"}, owner); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&owner.ObjectMeta, v1alpha1.SourceAnnotation, source)
		s.update(owner)
		before := b.get()
		b.moves("c1", "c2")
		if after := b.get(); !dependencyChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("owned by %s: the dependents are not woken; %+v", source, after.Status.Conditions)
		}
	}
	claim("other/fleet")
	v2 := s.target("v2")
	s.turns(2)
	s.waits("c1", "waits for add-on base, which has an ownership conflict")
	if got := s.holding(v2); len(got) != 0 {
		t.Errorf("%v have v2", got)
	}
	claim("team/fleet")
	s.settle()
	if got := s.holding(v2); len(got) != 2 {
		t.Errorf("after the conflict only %v have v2", got)
	}
}

// What a dependent waits for is named if the dependency is not there; an optional one is not waited
// for then.
func TestDependency_ThatIsNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		depends v1alpha1.Dependency
		reason  string
	}{
		"absent":                {v1alpha1.Dependency{AddOn: "none"}, "waits for add-on none, which does not exist in namespace team"},
		"absent and optional":   {v1alpha1.Dependency{AddOn: "none", Optional: true}, ""},
		"elsewhere":             {v1alpha1.Dependency{AddOn: "base"}, "waits for add-on base, which is not to be installed here"},
		"elsewhere, optional":   {v1alpha1.Dependency{AddOn: "base", Optional: true}, ""},
		"not read from Git yet": {v1alpha1.Dependency{AddOn: "young"}, "waits for add-on young, which has no content yet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			b := newBase(s, "c1")
			b.to("v1")
			b.moves("c1")
			s.create(&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "young"}})
			s.needs(tc.depends)
			v1 := s.target("v1")
			s.turns(2)
			if tc.reason != "" {
				s.waits("c2", tc.reason)
			}
			if got := slices.Contains(s.holding(v1), "c2"); got != (tc.reason == "") {
				t.Errorf("c2 has hello: %t", got)
			}
		})
	}
}

// A cycle that two sources make is Stalled on each of its rollouts and ends when one of them takes
// the other out.
func TestDependency_CycleIsStalledOnEachRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	b := newBase(s, "c1")
	b.change(func(ro *v1alpha1.AddOnRollout) { ro.Spec.DependsOn = []v1alpha1.Dependency{{AddOn: "hello"}} })
	b.to("v1")
	v1 := s.target("v1")
	s.turns(2)
	b.moves("c1")
	for _, tc := range []struct {
		ro    *v1alpha1.AddOnRollout
		cycle string
	}{{s.rollout(), "hello -> base -> hello"}, {b.get(), "base -> hello -> base"}} {
		c := conditions.Get(tc.ro, meta.StalledCondition)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.DependencyCycleReason || !strings.Contains(c.Message, tc.cycle) {
			t.Errorf("%s: Stalled is %+v", tc.ro.Name, c)
		}
	}
	if len(s.works()) != 0 {
		t.Fatalf("hello was written: %v", s.works())
	}
	b.change(func(ro *v1alpha1.AddOnRollout) { ro.Spec.DependsOn = nil })
	if got := s.reconciler.ofDependency(t.Context(), b.get()); !slices.Equal(got, []ctrl.Request{{NamespacedName: s.key}}) {
		t.Errorf("a change of base wakes %v", got)
	}
	b.moves("c1")
	s.settle()
	if got := s.holding(v1); len(got) != 1 {
		t.Errorf("without the cycle %v have hello", got)
	}
}

// A cycle that another source closes makes a green commit red, because the rollout is Stalled.
func TestDependency_CycleTurnsTheNewestCommitRed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.reporting()
	s.target("v1")
	s.applied("v1", "")
	s.settle()
	s.expect("v1", "success: 1/1 updated")
	b := newBase(s, "c1")
	b.change(func(ro *v1alpha1.AddOnRollout) { ro.Spec.DependsOn = []v1alpha1.Dependency{{AddOn: "hello"}} })
	b.to("v1")
	s.turns(2)
	if ro := s.rollout(); ro.Status.Outcome != string(rollout.Failure) || conditions.GetReason(ro, meta.StalledCondition) != v1alpha1.DependencyCycleReason {
		t.Errorf("the outcome is %s: %s", ro.Status.Outcome, s.says(meta.StalledCondition))
	}
	s.expect("v1", "failure: dependsOn is a cycle: hello -> base -> hello")
	b.change(func(ro *v1alpha1.AddOnRollout) { ro.Spec.DependsOn = nil })
	b.moves("c1")
	s.turns(2)
	s.expect("v1", "success: 1/1 updated")
}

// Add-ons that leave Git together are removed in reverse order: on each cluster the dependent goes
// first, with its works, and then its dependency.
func TestDependency_IsRemovedAfterItsDependents(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	b := besideBase(s)
	has := func(addOn string) []string {
		var list addonv1alpha1.ManagedClusterAddOnList
		if err := s.hub.List(t.Context(), &list, client.MatchingFields{indexName: addOn}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Namespace)
		}
		return names
	}
	remove := func(ro *v1alpha1.AddOnRollout) {
		ro.Spec.Removal = &v1alpha1.Removal{Commit: "c", Approved: true}
		metav1.SetMetaDataAnnotation(&ro.ObjectMeta, v1alpha1.ApproveRemovalAnnotation, "c")
		ro.Generation++
	}
	b.change(remove)
	b.moves()
	if got := has("base"); len(got) != 2 {
		t.Fatalf("hello needs base, which is left on %v", got)
	}
	if got := conditions.GetMessage(b.get(), meta.ReconcilingCondition); !strings.Contains(got, "2 clusters to remove: wait until hello, which depends on it, is removed there") {
		t.Errorf("base says %q", got)
	}
	ro := s.rollout()
	remove(ro)
	s.update(ro)
	s.turns(3)
	if got := has("hello"); len(got) != 0 {
		t.Fatalf("hello is left on %v", got)
	}
	b.moves()
	if got := has("base"); len(got) != 2 {
		t.Fatalf("the works of hello are still there, and base is left on %v", got)
	}
	s.delete(s.works()["c1"])
	b.moves()
	if got := has("base"); !slices.Equal(got, []string{"c2"}) {
		t.Errorf("hello is gone from c1, and base is left on %v", got)
	}
}
