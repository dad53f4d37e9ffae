package addonrollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
)

// troubled is the reason and message of ClustersWritten; "": it does not exist.
func (s *scene) troubled() string {
	c := conditions.Get(s.rollout(), v1alpha1.ClustersWrittenCondition)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func TestMissingRevisionIsAskedForOnceAndNamed(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	s := newScene(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, ok := obj.(*v1alpha1.AddOnRevision); ok {
			mu.Lock()
			defer mu.Unlock()
			asked[key.Name]++
		}
		return c.Get(ctx, key, obj, opts...)
	}}, "c1", "c2", "c3", "c4")
	s.oneByOne()
	first := s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2) // c1 is in flight, the others stay at the first
	revision := s.revision(first)
	s.delete(revision)
	s.restart()
	s.announced()
	clear(asked)
	s.turn()
	if got := asked[revision.Name]; got != 1 {
		t.Errorf("a revision that is gone is asked for once a turn, not once a cluster: got %d", got)
	}
	why := "revision is missing: " + revision.Name
	want := "RevisionMissing: held 3 clusters: c2: " + why + "; c3: " + why + "; c4: " + why
	if got := s.troubled(); got != want {
		t.Errorf("the condition does not name the held clusters:\n got %q\nwant %q", got, want)
	}
	s.turns(3)
	if got := s.announced(); len(got) != 1 || !strings.Contains(got[0], "held 3 clusters") {
		t.Errorf("want one event per change: got %v", got)
	}
	revision.ResourceVersion = ""
	s.create(revision)
	s.turns(1)
	if got := s.troubled(); got != "" {
		t.Errorf("with the body back no cluster is held: got %q", got)
	}
}

// TestRound_EndsWhenTheSpecChanges: no cluster is written with content that was replaced meanwhile.
func TestRound_EndsWhenTheSpecChanges(t *testing.T) {
	written, respecify := 0, func() {}
	s := newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if _, ok := obj.(*workv1.ManifestWork); ok {
			if written++; written == 1 {
				respecify()
			}
		}
		return c.Create(ctx, obj, opts...)
	}}, "c1", "c2", "c3", "c4")
	respecify = func() {
		s.target("v2")
		ro := s.rollout()
		ro.Generation++ // as the API server does
		s.update(ro)
	}
	s.reconciler.Workers = 1
	s.target("v1")
	for written == 0 {
		s.turn()
	}
	if written > 2 { // one may be on its way when the spec changes
		t.Errorf("%d works have the content that was replaced", written)
	}
	s.settle()
	if ro := s.rollout(); ro.Status.Counts.Updated != 4 || ro.Status.Stable == nil || ro.Status.Stable.Digest != ro.Spec.Target.Digest {
		t.Errorf("the rollout is %s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

func TestDeletedRevisionDoesNotBlockTheSuccessOfItsRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	digest := s.target("v1")
	s.turns(2)
	s.delete(s.revision(digest))
	s.settle()
	if got := s.rollout().Status.Stable; got == nil || got.Digest != digest {
		t.Errorf("what runs runs, though nothing is left to note it on: stable is %+v", got)
	}
}

func TestClusterThatCannotBeWrittenIsNamedAndStopsNoOther(t *testing.T) {
	refused := errors.New("the namespace is full")
	s := newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if _, ok := obj.(*workv1.ManifestWork); ok && obj.GetNamespace() == "c2" {
			return refused
		}
		return c.Create(ctx, obj, opts...)
	}}, "c1", "c2", "c3")
	s.target("v1")
	result := s.turn()
	if got := len(s.works()); got != 2 {
		t.Errorf("the others are written: got %d works", got)
	}
	if got, want := s.troubled(), "ApplyFailed: cannot write 1 cluster: c2: cannot create work addon-hello-deploy-0: the namespace is full"; got != want {
		t.Errorf("it is that cluster's trouble:\n got %q\nwant %q", got, want)
	}
	if result.RequeueAfter == 0 || result.RequeueAfter > retryAfter {
		t.Errorf("it is tried again soon, got %s", result.RequeueAfter)
	}
}

func TestReconcileRequestStandsUntilTheRoundEnds(t *testing.T) {
	lost := errors.New("etcdserver: request timed out")
	failing := true
	var s *scene
	s = newScene(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if obj.GetObjectKind().GroupVersionKind() == addOnKind() && failing {
			s.advance(time.Minute) // the round's time is up
			return lost
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}, "c1", "c2", "c3")
	s.reconciler.Workers = 1
	s.target("v1")
	ro := s.rollout()
	ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	s.update(ro)
	s.turn()
	if got := s.rollout().Status.LastHandledReconcileAt; got != "" {
		t.Errorf("the round ended before every cluster was written, and the request is still to be done: got %q", got)
	}
	failing = false
	s.turns(2)
	if got := s.rollout().Status.LastHandledReconcileAt; got != "now" {
		t.Errorf("the round got to its end: got %q", got)
	}
}

func TestWritesStartWithDeparturesThenActions(t *testing.T) {
	cases := map[string]struct {
		reason string
		next   string
		removed, moved,
		want string
	}{
		"FromTheStart": {reason: "nothing was left", want: "abcdef"},
		"Rotated":      {reason: "clusters that were left come first, so that none starves", next: "d", want: "defabc"},
		"LeftIsGone":   {reason: "the cluster that was next has left", next: "cc", want: "defabc"},
		"PastTheEnd":   {reason: "the last one has left", next: "z", want: "abcdef"},
		"Departures":   {reason: "departures free what others wait for, moves go before repairs", removed: "ef", moved: "c", want: "efcabd"},
		"Both":         {reason: "each kind begins where the last round ended", next: "f", removed: "ef", moved: "c", want: "fecabd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var clusters []plan.Cluster
			for name := range strings.SplitSeq("abcdef", "") {
				clusters = append(clusters, plan.Cluster{
					Judged: plan.Judged{Member: &plan.Member{Name: name}},
					Remove: strings.Contains(tc.removed, name), Move: strings.Contains(tc.moved, name),
				})
			}
			var got strings.Builder
			for _, i := range inOrder(clusters, tc.next) {
				got.WriteString(clusters[i].Name)
			}
			if got.String() != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got.String(), tc.want)
			}
		})
	}
	if got := inOrder(nil, "x"); len(got) != 0 {
		t.Errorf("no cluster is in order: %v", got)
	}
}

// A fleet that does not fit into one round is written completely after some rounds, although one
// cluster uses the time of every round.
func TestSlowClusterDelaysNoOtherForEver(t *testing.T) {
	names := []string{"a-slow", "b", "c", "d"}
	var s *scene
	s = newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if _, ok := obj.(*workv1.ManifestWork); ok {
			s.advance(applyFor / 2) // two fit into a round, and the second is its last
			if obj.GetNamespace() == "a-slow" {
				s.advance(applyFor)
				return errors.New("too slow")
			}
		}
		return c.Create(ctx, obj, opts...)
	}}, names...)
	s.reconciler.Workers = 1
	s.target("v1")
	s.turns(4)
	var written []string
	for name := range s.works() {
		written = append(written, name)
	}
	slices.Sort(written)
	if diff := cmp.Diff([]string{"b", "c", "d"}, written); diff != "" {
		t.Errorf("clusters that were not reached come first in the next round (-want +got):\n%s", diff)
	}
}

func TestTroublesOfClustersNotReachedAreRemembered(t *testing.T) {
	m := newMemory()
	bad := trouble{reason: v1alpha1.ApplyFailedReason, text: "bad"}
	m.enter(&applied{troubles: map[string]trouble{"a": bad, "b": bad}})
	got := m.enter(&applied{troubles: map[string]trouble{}, unfinished: []string{"b", "c"}, next: "b"})
	if diff := cmp.Diff(map[string]trouble{"b": bad}, got, cmp.AllowUnexported(trouble{})); diff != "" {
		t.Errorf("a was written since, b was not looked at (-want +got):\n%s", diff)
	}
	if m.next != "b" {
		t.Errorf("the next round begins with %q", m.next)
	}
}

// TestRenderersOfPastRevisionsAreDropped: a renderer remembers every cluster of the fleet.
func TestRenderersOfPastRevisionsAreDropped(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	for _, version := range []string{"v1", "v2", "v3"} {
		s.target(version)
		s.settle()
		if kept := len(s.reconciler.renderers.kept); kept != 1 {
			t.Errorf("every cluster runs %s, and %d revisions are kept decoded", version, kept)
		}
	}
	s.reconciler.forget(s.key)
	if kept := len(s.reconciler.renderers.kept); kept != 0 {
		t.Errorf("the rollout is gone, and %d revisions are kept decoded", kept)
	}
}

func TestMemoriesOfClustersThatLeftAreDropped(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	m := s.reconciler.memories.get(s.key)
	if len(m.unchanged) != 2 || len(m.authors) != 2 {
		t.Fatalf("both are remembered: %d, %d", len(m.unchanged), len(m.authors))
	}
	s.delete(s.addOn("c2"))
	s.selects("c1")
	s.turns(3)
	if len(m.unchanged) != 1 || len(m.authors) != 1 {
		t.Errorf("a cluster that left is forgotten: %v, %v", m.unchanged, m.authors)
	}
	s.reconciler.forget(s.key)
	if len(s.reconciler.memories.of) != 0 {
		t.Error("a rollout that is gone is forgotten whole")
	}
}

func TestNamed(t *testing.T) {
	c := func(name string) v1alpha1.ClusterReason { return v1alpha1.ClusterReason{Cluster: name, Reason: "r"} }
	got := named([]v1alpha1.ClusterReason{c("d"), c("b"), c("a"), c("c")})
	if want := "4 clusters: a: r; b: r; c: r; and 1 more"; got != want {
		t.Errorf("workers finish in any order, the text is the same: got %q, want %q", got, want)
	}
}
