package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
)

// clocks are steps of the operator's clock, of the clusters' or of both, by hours either way,
// three times in each step.
func clocks() []point {
	var all []point
	for seed := range seeds {
		whose := []string{"operator", "clusters", "operator and clusters"}[seed%3]
		name := fmt.Sprintf("clock of %s steps, seed %d", whose, seed+1)
		all = append(all, point{name: name, class: "clocks", clocked: true, disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice(name, step)
			for range 3 {
				if err := pause(ctx, between(dice, 0, 1500*time.Millisecond)); err != nil {
					return err
				}
				w.stroke()
				by := between(dice, -6*time.Hour, 6*time.Hour).Truncate(time.Second)
				if whose != "clusters" {
					if err := os.WriteFile(w.clock, []byte(by.String()), 0o600); err != nil {
						return err
					}
				}
				if whose != "operator" {
					names := clusterNames()
					w.Fleet.Skew(names[dice.IntN(len(names))], between(dice, -6*time.Hour, 6*time.Hour))
				}
			}
			return nil
		}})
	}
	return all
}

// zombies are two operators that elect a leader. One of them stands still for longer than its
// lease lasts, twice in each step, and continues.
func zombies() []point {
	var all []point
	for seed := range seeds {
		name := fmt.Sprintf("zombie leader, seed %d", seed+1)
		flags := []string{"--enable-leader-election", "--leader-election-lease-duration=2s", "--leader-election-renew-deadline=1500ms", "--leader-election-retry-period=300ms"}
		all = append(all, point{name: name, class: "zombie leader", operators: 2, leaders: true, flags: flags, disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice(name, step)
			for range 2 {
				if err := pause(ctx, between(dice, 0, time.Second)); err != nil {
					return err
				}
				w.stroke()
				if err := w.freezeOperator(ctx, dice.IntN(2), between(dice, 2500*time.Millisecond, 4*time.Second)); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return all
}

// freezeOperator stops an operator as SIGSTOP does, and continues it.
func (w *world) freezeOperator(ctx context.Context, i int, d time.Duration) error {
	w.mu.Lock()
	if len(w.running) == 0 {
		w.mu.Unlock()
		return nil
	}
	pid := w.running[i%len(w.running)].PID()
	err := send(pid, syscall.SIGSTOP)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	err = pause(ctx, d)
	return errors.Join(err, send(pid, syscall.SIGCONT))
}

// send sends a signal to an operator. The operator may have ended, as one that lost its lease does: the world
// judges that.
func send(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot send %q to the operator: %w", s, err)
	}
	return nil
}

// olderStatuses are statuses that are written back after the operator has written newer ones, as
// by a restored backup.
func olderStatuses() []point {
	rollout := v1alpha1.GroupVersion.WithKind("AddOnRollout")
	source := v1alpha1.GroupVersion.WithKind("AddOnSource")
	objects := []struct {
		kind schema.GroupVersionKind
		name string
	}{{rollout, alpha}, {rollout, beta}, {source, demo.SourceName}}
	var all []point
	for seed := range seeds {
		of := objects[seed%len(objects)]
		name := fmt.Sprintf("older status of %s %s, seed %d", of.kind.Kind, of.name, seed+1)
		all = append(all, point{name: name, class: "older status", repeats: 100, restores: true, disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice(name, step)
			if step == "removal" {
				return nil // the older status has no approved removal; it is approved once
			}
			if err := pause(ctx, between(dice, 0, 2*time.Second)); err != nil {
				return err
			}
			old := &unstructured.Unstructured{}
			old.SetGroupVersionKind(of.kind)
			key := client.ObjectKey{Namespace: demo.Namespace, Name: of.name}
			if err := w.Client.Get(ctx, key, old); err != nil {
				return client.IgnoreNotFound(err)
			}
			status, had := old.Object["status"]
			if err := pause(ctx, between(dice, 300*time.Millisecond, 2500*time.Millisecond)); err != nil || !had {
				return err
			}
			w.stroke()
			w.edited(map[string]int{kindOf(of.kind): 1})
			return insist(ctx, func() error {
				now := old.DeepCopy()
				if err := w.Client.Get(ctx, key, now); err != nil {
					return client.IgnoreNotFound(err)
				}
				now.Object["status"] = status
				return w.Client.Status().Update(ctx, now)
			})
		}})
	}
	return all
}

// decisions are the keys of the decisions of placements.
const decisions = "/placementdecisions/"

// flaps are clusters that come and go, and placements that lose them and select them again: of the last stage, and of
// those before it, whose clusters must have verified content before the last one gets it.
func flaps() []point {
	var all []point
	for seed := range seeds {
		last := fmt.Sprintf("clusters and placements flap, seed %d", seed+1)
		first := fmt.Sprintf("clusters of the first stages flap, seed %d", seed+1)
		all = append(all,
			point{name: last, class: "clusters and placements", shrinks: true, gone: []string{decisions}, disturb: flap(last, clusterNames()[3:])},
			point{name: first, class: "clusters and placements", shrinks: true, leaves: true, gone: []string{decisions}, disturb: flap(first, clusterNames()[:3])},
		)
	}
	return append(all, anew()...)
}

// flap lets one of the clusters after another be lost and return, or be selected no more and again.
func flap(name string, of []string) disturbance {
	return func(ctx context.Context, w *workload, step string) error {
		dice := dice(name, step)
		for range 3 {
			cluster := of[dice.IntN(len(of))]
			w.stroke()
			var begin, end func(context.Context) error
			if dice.IntN(2) == 0 {
				begin = func(ctx context.Context) error { return w.Fleet.Disappear(ctx, cluster) }
				end = func(ctx context.Context) error { return w.Fleet.Return(ctx, cluster) }
			} else {
				begin = func(ctx context.Context) error { return w.placeWithout(ctx, cluster) }
				end = func(ctx context.Context) error { return w.placeWithout(ctx, "") }
			}
			if err := insist(ctx, func() error { return begin(ctx) }); err != nil {
				return err
			}
			err := pause(ctx, between(dice, 200*time.Millisecond, 2*time.Second))
			if err := errors.Join(insist(ctx, func() error { return end(ctx) }), err); err != nil {
				return err
			}
		}
		return nil
	}
}

// anew are a placement and a cluster that are deleted and made again, with another UID.
func anew() []point {
	const class = "clusters and placements"
	victim := clusterNames()[5]
	return []point{
		{name: "a placement made anew", class: class, shrinks: true, gone: []string{decisions, "/placements/" + demo.Namespace + "/install"}, disturb: func(ctx context.Context, w *workload, _ string) error {
			w.stroke()
			if err := w.Fleet.DeletePlacement(ctx, demo.Namespace, "install"); err != nil {
				return err
			}
			err := pause(ctx, time.Second)
			return errors.Join(w.Fleet.RestorePlacement(ctx, demo.Namespace, "install"), err)
		}},
		{name: "a cluster made anew", class: class, shrinks: true, gone: []string{decisions, "/" + victim}, disturb: func(ctx context.Context, w *workload, _ string) error {
			w.stroke()
			if err := w.Fleet.RemoveCluster(ctx, victim); err != nil {
				return err
			}
			err := pause(ctx, time.Second)
			if err := errors.Join(w.Fleet.AddClusters(ctx, fleet.Cluster{Name: victim}), err); err != nil {
				return err
			}
			return w.placeWithout(ctx, "")
		}},
	}
}

// placeWithout lets every placement select its clusters except the given one; with "", all of them.
func (w *workload) placeWithout(ctx context.Context, cluster string) error {
	for name, members := range placements() {
		var kept []string
		for _, m := range members {
			if m != cluster {
				kept = append(kept, m)
			}
		}
		if err := w.Fleet.Place(ctx, fleet.Placement{Namespace: demo.Namespace, Name: name, Clusters: kept}); err != nil {
			return err
		}
	}
	return nil
}

// placements are the clusters of each.
func placements() map[string][]string {
	names := clusterNames()
	return map[string][]string{"all": names, "canary": names[:1], "early": names[1:3], "install": names[:clusters-1]}
}
