package addonrollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// lagging reads as a watch cache that does not show the last changes: past changes a list to what it was.
type lagging struct {
	client.Client
	past func(client.ObjectList)
}

func (l lagging) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Client.List(ctx, list, opts...); err != nil || l.past == nil {
		return err
	}
	l.past(list)
	return nil
}

// TestLedgerOfAnotherOperatorIsPlannedWithACacheThatShowsAsMuch: two operators run, or one takes over. The second one
// reads the ledger of the first, and its watch cache does not show yet what that ledger was made from. It decides
// nothing until the cache does. Otherwise it would admit a cluster that is done once more, take a cluster in flight for
// one that left, or admit clusters above the limit.
func TestLedgerOfAnotherOperatorIsPlannedWithACacheThatShowsAsMuch(t *testing.T) {
	for _, c := range []struct {
		name string
		past func(before []workv1.ManifestWork, list client.ObjectList)
	}{
		{"the works of the canary", func(before []workv1.ManifestWork, list client.ObjectList) {
			works, ok := list.(*workv1.ManifestWorkList)
			if !ok {
				return
			}
			for i, w := range works.Items {
				if at := slices.IndexFunc(before, func(b workv1.ManifestWork) bool { return b.UID == w.UID }); at >= 0 {
					works.Items[i] = before[at]
				}
			}
		}},
		{"a cluster in flight", func(_ []workv1.ManifestWork, list client.ObjectList) {
			if clusters, ok := list.(*clusterv1.ManagedClusterList); ok {
				clusters.Items = slices.DeleteFunc(clusters.Items, func(c clusterv1.ManagedCluster) bool { return c.Name == "c2" })
			}
		}},
		{"the add-on of a cluster in flight", func(_ []workv1.ManifestWork, list client.ObjectList) {
			if addOns, ok := list.(*addonv1alpha1.ManagedClusterAddOnList); ok {
				addOns.Items = slices.DeleteFunc(addOns.Items, func(a addonv1alpha1.ManagedClusterAddOn) bool { return a.Namespace == "c2" })
			}
		}},
		{"a decision", func(_ []workv1.ManifestWork, list client.ObjectList) {
			if decisions, ok := list.(*clusterv1beta1.PlacementDecisionList); ok {
				decisions.Items = nil
			}
		}},
		{"that an add-on was deleted", func(_ []workv1.ManifestWork, list client.ObjectList) {
			if addOns, ok := list.(*addonv1alpha1.ManagedClusterAddOnList); ok && len(addOns.Items) > 0 {
				gone := addOns.Items[0].DeepCopy()
				gone.Namespace, gone.UID, gone.ResourceVersion = "c0", "gone", "0"
				addOns.Items = append(addOns.Items, *gone)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3", "c4", "c5")
			s.place("canary", "c1")
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				two := intstr.FromInt32(2)
				spec.Stages = []v1alpha1.Stage{
					{Name: "canary", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "canary"}},
					{Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "all"}, MaxConcurrency: &two},
				}
			})
			s.target("v1")
			s.settle()
			var before workv1.ManifestWorkList
			if err := s.hub.List(t.Context(), &before); err != nil {
				t.Fatal(err)
			}
			s.target("v2")
			s.turns(2)
			s.report("c1")
			s.turns(3)
			stored := s.rollout()
			if stored.Status.Counts.InFlight != 2 || stored.Status.Counts.Updated != 1 {
				t.Fatalf("want the canary done and two in flight, got %+v", stored.Status.Counts)
			}

			cache := s.reconciler.Client
			s.restart()
			s.reconciler.Client = lagging{cache, func(list client.ObjectList) { c.past(before.Items, list) }}
			if after := s.turn().RequeueAfter; after > time.Second || after == 0 {
				t.Errorf("the next turn is in %s, want a pace", after)
			}
			if now := s.rollout(); now.ResourceVersion != stored.ResourceVersion {
				t.Errorf("it decided with an older cache: %+v became %+v", stored.Status.Counts, now.Status.Counts)
			}
			s.reconciler.Client = cache
			s.settle()
		})
	}
}

// TestOwnLedgerNeedsNoComparison: a process reads an object never in an older version than before, so that its own
// ledger costs no further request.
func TestOwnLedgerNeedsNoComparison(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	lists := 0
	s.reconciler.Live = countingLists{s.hub, &lists}
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), s.reconciler.memories.get(s.key)); err != nil || lists != 0 {
		t.Errorf("%d lists, %v", lists, err)
	}
	s.restart()
	s.reconciler.Live = countingLists{s.hub, &lists}
	for range 2 { // a turn that stores nothing does not make the next one compare again
		if err := s.reconciler.catchUp(t.Context(), s.rollout(), s.reconciler.memories.get(s.key)); err != nil || lists != 5 {
			t.Errorf("after a restart: %d lists, %v", lists, err)
		}
	}
}

// TestComparisonEndsWhileAFleetReports: the works of a fleet in flight change all the time. The second comparison looks
// only for what the watch cache did not show at the first one, and asks the hub nothing.
func TestComparisonEndsWhileAFleetReports(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.restart()
	lists, late := 0, "c1"
	s.reconciler.Live = countingLists{s.hub, &lists}
	s.reconciler.Client = lagging{s.reconciler.Client, func(list client.ObjectList) {
		if works, ok := list.(*workv1.ManifestWorkList); ok {
			for i := range works.Items {
				if works.Items[i].Namespace == late {
					works.Items[i].ResourceVersion = "1"
				}
			}
		}
	}}
	mem := s.reconciler.memories.get(s.key)
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), mem); !errors.Is(err, errBehind) || !strings.Contains(err.Error(), "ManifestWork c1/") {
		t.Errorf("the cache is behind on c1, got %v", err)
	}
	lists, late = 0, "c2"
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), mem); err != nil || lists != 0 {
		t.Errorf("c1 has come, and only c2 changes: %d lists, %v", lists, err)
	}
}

// TestObjectThatIsDeletedMeanwhileEndsTheComparison: an object that the watch cache did not show, and that is deleted
// before it does, is not awaited.
func TestObjectThatIsDeletedMeanwhileEndsTheComparison(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.restart()
	s.reconciler.Client = lagging{s.reconciler.Client, func(list client.ObjectList) {
		if clusters, ok := list.(*clusterv1.ManagedClusterList); ok {
			clusters.Items = slices.DeleteFunc(clusters.Items, func(c clusterv1.ManagedCluster) bool { return c.Name == "c2" })
		}
	}}
	mem := s.reconciler.memories.get(s.key)
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), mem); !errors.Is(err, errBehind) {
		t.Errorf("got %v", err)
	}
	s.delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}})
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), mem); !errors.Is(err, errBehind) {
		t.Errorf("got %v", err)
	}
	if err := s.reconciler.catchUp(t.Context(), s.rollout(), mem); err != nil {
		t.Errorf("it waits for a cluster that was deleted: %v", err)
	}
}

// cacheOnly is a client that reads everything from the watch cache, which has no pages.
type cacheOnly struct{ client.Client }

func (c cacheOnly) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	if options.ApplyOptions(opts); options.Limit > 0 || options.Continue != "" {
		return errors.New("the watch cache has no pages")
	}
	return c.Client.List(ctx, list, opts...)
}

// TestPageOfARolloutWithADependency: a page reads everything from the watch cache, and compares nothing.
func TestPageOfARolloutWithADependency(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.needs(v1alpha1.Dependency{AddOn: "base"})
	s.target("v1")
	s.turns(2)
	ro := s.rollout()
	base := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "base"}, Spec: *ro.Spec.DeepCopy()}
	base.Spec.DependsOn = nil
	s.create(base)
	if _, err := s.reconciler.Inspector(cacheOnly{s.hub}, s.key).Inspect(t.Context()); err != nil {
		t.Error(err)
	}
}

// countingLists counts the lists that are read uncached.
type countingLists struct {
	client.Reader
	lists *int
}

func (c countingLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	*c.lists++
	return c.Reader.List(ctx, list, opts...)
}
