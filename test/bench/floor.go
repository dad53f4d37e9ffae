package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
)

var (
	addOns = schema.GroupVersionResource{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Resource: "managedclusteraddons"}
	works  = schema.GroupVersionResource{Group: workv1.GroupName, Version: "v1", Resource: "manifestworks"}
)

// pair is one cluster's add-on and work as AddonFlow and the agent left them.
type pair struct {
	addOn *addonv1alpha1.ManagedClusterAddOn
	work  *workv1.ManifestWork
}

// capture reads what AddonFlow wrote, for the floor to write again.
func capture(ctx context.Context, c client.Client) ([]pair, error) {
	var a addonv1alpha1.ManagedClusterAddOnList
	var w workv1.ManifestWorkList
	if err := c.List(ctx, &a, client.MatchingFields{"metadata.name": demo.AddOn}); err != nil {
		return nil, err
	}
	if err := c.List(ctx, &w); err != nil {
		return nil, err
	}
	byCluster := map[string]*workv1.ManifestWork{}
	for i := range w.Items {
		byCluster[w.Items[i].Namespace] = &w.Items[i]
	}
	var out []pair
	for i := range a.Items {
		if work := byCluster[a.Items[i].Namespace]; work != nil {
			out = append(out, pair{addOn: &a.Items[i], work: work})
		}
	}
	return out, nil
}

// measureFloor times the bare writes, thrice each, and keeps the median.
func (b *bench) measureFloor(ctx context.Context) error {
	c, err := dynamic.NewForConfig(b.config())
	if err != nil {
		return err
	}
	// The agents go on watching and say nothing: the floor writes their statuses.
	b.world.Fleet.Silence(fleet.AllClusters)
	stop, err := audience(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	for kind, once := range map[string]func(context.Context, dynamic.Interface, pair, int) error{
		floorOfInstall: floorInstall, floorOfUpgrade: floorUpgrade,
	} {
		var times []time.Duration
		for round := range 3 {
			took, err := timed(ctx, b.captured, func(ctx context.Context, p pair) error { return once(ctx, c, p, round) })
			if err != nil {
				return fmt.Errorf("cannot measure the floor of %s: %w", kind, err)
			}
			times = append(times, took)
		}
		b.floors[kind] = median(times)
		fmt.Printf("  ✔ floor: %-27s %4.1fs (of %v)\n", kind, b.floors[kind].Seconds(), times)
	}
	return nil
}

// audience opens the same watches on works and add-ons as the operator. The agents already
// watch their works.
func audience(ctx context.Context, c dynamic.Interface) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	for _, resource := range []schema.GroupVersionResource{works, addOns} {
		w, err := c.Resource(resource).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			cancel()
			return nil, err
		}
		go func() {
			for range w.ResultChan() {
			}
		}()
	}
	return cancel, nil
}

// timed runs 32 workers over the clusters.
func timed(ctx context.Context, pairs []pair, once func(context.Context, pair) error) (time.Duration, error) {
	begun := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for _, p := range pairs {
		g.Go(func() error { return once(ctx, p) })
	}
	err := g.Wait()
	return time.Since(begun), err
}

// floorUpgrade makes the four writes of one content change: add-on started, work
// spec, work status, add-on done.
func floorUpgrade(ctx context.Context, c dynamic.Interface, p pair, round int) error {
	if err := patchStatus(ctx, c, addOns, p.addOn, started(p.addOn, round)); err != nil {
		return err
	}
	if err := floorWork(ctx, c, p, round); err != nil {
		return err
	}
	return patchStatus(ctx, c, addOns, p.addOn, p.addOn.Status)
}

// floorWork writes a work's spec as AddonFlow does, and its status as the agent does.
func floorWork(ctx context.Context, c dynamic.Interface, p pair, round int) error {
	namespaced := c.Resource(works).Namespace(p.work.Namespace)
	current, err := asUnstructured(p.work)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(current.Object, fmt.Sprint("floor-", round), "spec", "executor", "subject", "serviceAccount", "name"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(current.Object, "floor", "spec", "executor", "subject", "serviceAccount", "namespace"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(current.Object, "ServiceAccount", "spec", "executor", "subject", "type"); err != nil {
		return err
	}
	// The version is that of the last answer: the floor reads nothing.
	if _, err := namespaced.Update(ctx, current, metav1.UpdateOptions{}); err != nil {
		return err
	}
	status := p.work.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration += int64(round) + 1
	}
	return patchStatus(ctx, c, works, p.work, *status)
}

// floorInstall makes the same writes with creates, and one for the add-on besides.
func floorInstall(ctx context.Context, c dynamic.Interface, p pair, round int) error {
	q := pair{addOn: renamed(p.addOn, fmt.Sprint("floor-", round)), work: renamedWork(p.work, fmt.Sprint("floor-", round))}
	for _, step := range []struct {
		resource schema.GroupVersionResource
		object   client.Object
		statuses []any
	}{
		{addOns, q.addOn, []any{started(q.addOn, round)}},
		{works, q.work, []any{q.work.Status}},
		{addOns, nil, []any{q.addOn.Status}},
	} {
		if step.object != nil {
			u, err := asUnstructured(step.object)
			if err != nil {
				return err
			}
			unstructured.RemoveNestedField(u.Object, "status")
			if _, err := c.Resource(step.resource).Namespace(p.addOn.Namespace).Create(ctx, u, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		object := step.object
		if object == nil {
			object = q.addOn
		}
		if err := patchStatus(ctx, c, step.resource, object, step.statuses[0]); err != nil {
			return err
		}
	}
	return nil
}

// started is an add-on's status as it is when a move begins.
func started(a *addonv1alpha1.ManagedClusterAddOn, round int) addonv1alpha1.ManagedClusterAddOnStatus {
	s := a.Status.DeepCopy()
	for i := range s.Conditions {
		if s.Conditions[i].Type == "Progressing" {
			s.Conditions[i].Status, s.Conditions[i].Reason = metav1.ConditionTrue, "Upgrading"
			s.Conditions[i].Message = fmt.Sprintf("upgrade %d in progress.", round)
		}
	}
	return *s
}

// renamed is a new add-on with the same bytes.
func renamed(a *addonv1alpha1.ManagedClusterAddOn, name string) *addonv1alpha1.ManagedClusterAddOn {
	out := a.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: a.Namespace, Labels: a.Labels, Annotations: a.Annotations, OwnerReferences: a.OwnerReferences}
	return out
}

// renamedWork is a new work with the same bytes.
func renamedWork(w *workv1.ManifestWork, name string) *workv1.ManifestWork {
	out := w.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: w.Labels, Annotations: w.Annotations, OwnerReferences: w.OwnerReferences}
	return out
}

// patchStatus merges a whole status, as AddonFlow and the agents do.
func patchStatus(ctx context.Context, c dynamic.Interface, resource schema.GroupVersionResource, object client.Object, status any) error {
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	answer, err := c.Resource(resource).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	object.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

// asUnstructured encodes an object the way it is sent.
func asUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, err
	}
	kind := "ManagedClusterAddOn"
	version := addOns.GroupVersion()
	if _, ok := o.(*workv1.ManifestWork); ok {
		kind, version = "ManifestWork", works.GroupVersion()
	}
	u.SetGroupVersionKind(version.WithKind(kind))
	u.SetManagedFields(nil)
	return u, nil
}
