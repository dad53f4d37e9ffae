package hubclient

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// onHub is a hub: a client of it, and how the operator's cache is made.
type onHub struct {
	client.WithWatch
	config  *rest.Config
	options cache.Options
}

func startHub(t *testing.T) onHub {
	t.Helper()
	h := hubtest.Start(t, hub.Options{Namespaces: []string{"cluster1"}})
	s := scheme(t)
	httpClient, err := rest.HTTPClientFor(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(h.Config(), client.Options{Scheme: s, HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	selector, err := labels.Parse(addonv1alpha1.AddonLabelKey)
	if err != nil {
		t.Fatal(err)
	}
	return onHub{c, h.Config(), cache.Options{
		Scheme: s, HTTPClient: httpClient, Mapper: c.RESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&workv1.ManifestWork{}: {Label: selector}},
	}}
}

// open opens a watch here.
func (h onHub) open(t *testing.T, k kind, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := newWatches(h.config, h.options, k)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := w.open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Stop)
	return opened
}

// openStandard opens the same watch with client-go's decoders.
func (h onHub) openStandard(t *testing.T, list client.ObjectList, options metav1.ListOptions, selector labels.Selector) watch.Interface {
	t.Helper()
	opened, err := h.Watch(t.Context(), list, &client.ListOptions{Raw: &options, LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Stop)
	return opened
}

// until reads a watch up to an event that ends it, or its own end.
func until(t *testing.T, w watch.Interface, last func(watch.Event) bool) []watch.Event {
	t.Helper()
	limit := time.NewTimer(hubtest.Patience)
	defer limit.Stop()
	var out []watch.Event
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return out
			}
			if w, ok := e.Object.(*workv1.ManifestWork); ok {
				w.ManagedFields = nil
			}
			if o, ok := e.Object.(client.Object); ok && e.Type == watch.Bookmark && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "" {
				continue // the server sends them when it likes
			}
			out = append(out, e)
			if last(e) {
				return out
			}
		case <-limit.C:
			t.Fatalf("waited in vain after %d events", len(out))
		}
	}
}

// isLast reports whether an event is about the object the scene ends with.
func isLast(e watch.Event) bool {
	o, ok := e.Object.(client.Object)
	return ok && o.GetName() == "last" && e.Type == watch.Deleted
}

// TestOnAHub runs what needs a real API server, on one.
func TestOnAHub(t *testing.T) {
	h := startHub(t)
	t.Run("watches end as client-go's end", h.watchesEnd)
	t.Run("the cache follows the hub", h.cacheFollows)
	t.Run("watches tell what client-go's tell", h.watchesTell)
	t.Run("updates of works", h.updatesWorks)
}

// updatesWorks: an update does what controller-runtime's does, but for what it hands back.
func (h onHub) updatesWorks(t *testing.T) {
	c, err := NewClient(h.config, client.Options{Scheme: h.options.Scheme, HTTPClient: h.options.HTTPClient})
	if err != nil {
		t.Fatal(err)
	}
	c = client.WithFieldOwner(c, "tester")
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "updated"}}
	write(t, "create", c.Create(t.Context(), work))
	work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
	write(t, "update the status of", c.Status().Update(t.Context(), work))

	stale := work.DeepCopy()
	work.Labels = map[string]string{"a": "b"}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)}}}
	write(t, "update", c.Update(t.Context(), work))
	stored := &workv1.ManifestWork{}
	write(t, "read", h.Get(t.Context(), client.ObjectKeyFromObject(work), stored))
	if diff := cmp.Diff(stored.ObjectMeta, work.ObjectMeta); diff != "" || work.Generation != 2 || work.ResourceVersion == stale.ResourceVersion {
		t.Errorf("the metadata is not the hub's (-hub +ours):\n%s", diff)
	}
	if diff := cmp.Diff(work.Spec.Workload, stored.Spec.Workload); diff != "" || len(stored.Status.Conditions) != 1 {
		t.Errorf("not stored as sent, or its status is lost:\n%s", diff)
	}
	if !slices.ContainsFunc(work.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "tester" && e.Subresource == "" }) {
		t.Errorf("not written as the field owner: %v", work.ManagedFields)
	}

	before := stale.DeepCopy()
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}
	if diff := cmp.Diff(before.ObjectMeta, stale.ObjectMeta); diff != "" {
		t.Errorf("an update that failed changed the object:\n%s", diff)
	}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{FeedbackRules: []workv1.FeedbackRule{{Type: "Nonsense"}}}}
	if err := c.Update(t.Context(), work); !apierrors.IsInvalid(err) {
		t.Errorf("an update that the hub refuses: %v, want its refusal", err)
	}
	write(t, "delete", c.Delete(t.Context(), stored))
	if err := c.Update(t.Context(), stored); !apierrors.IsNotFound(err) {
		t.Errorf("an update of what is gone: %v, want not found", err)
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "updated"}}
	write(t, "create", c.Create(t.Context(), addOn))
	addOn.Labels = map[string]string{"a": "b"}
	write(t, "update", c.Update(t.Context(), addOn), c.Delete(t.Context(), addOn))
}

// watchesTell: of works and add-ons, from a list that comes as events to the deletion of
// the last object.
func (h onHub) watchesTell(t *testing.T) {
	writeWorks(t, h, "before")
	writeAddOns(t, h, "before")
	yes, limit := true, int64(600)
	options := metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true, TimeoutSeconds: &limit,
	}
	lists := map[string]client.ObjectList{"ManifestWork": &workv1.ManifestWorkList{}, "ManagedClusterAddOn": &addonv1alpha1.ManagedClusterAddOnList{}}
	type pair struct{ ours, theirs watch.Interface }
	pairs := map[string]pair{}
	for _, k := range kinds() {
		var selector labels.Selector
		if k.Kind == "ManifestWork" {
			selector = h.selector()
		}
		pairs[k.Kind] = pair{h.open(t, k, options), h.openStandard(t, lists[k.Kind], options, selector)}
	}
	for _, name := range []string{"during", "last"} {
		writeWorks(t, h, name)
		writeAddOns(t, h, name)
	}
	for kind, p := range pairs {
		ours, theirs := until(t, p.ours, isLast), until(t, p.theirs, isLast)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s: client-go tells -, this package tells +:\n%s", kind, diff)
		}
		told := map[watch.EventType]int{}
		for _, e := range ours {
			told[e.Type]++
		}
		// What was deleted before has no events; one bookmark says where the list ends.
		want := map[watch.EventType]int{watch.Added: 2, watch.Modified: 4, watch.Deleted: 2, watch.Bookmark: 1}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", kind, diff)
		}
	}
}

// selector is the one the cache has for works.
func (h onHub) selector() labels.Selector {
	for _, by := range h.options.ByObject {
		return by.Label
	}
	return nil
}

// odd is a text that JSON must escape, or may.
const odd = "line\nbreak \"}}\" <&> \u2028 \U0001F600 \\"

// writeWorks creates a work, changes it and its status and deletes it; beside it one
// that is of no add-on.
func writeWorks(t *testing.T, h onHub, name string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
		"data": map[string]any{"odd": odd, "large": strings.Repeat(odd, 2000), "number": 9007199254740993, "ratio": 1.0, "none": nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster1", Name: name, Annotations: map[string]string{"odd": odd},
		Labels: map[string]string{addonv1alpha1.AddonLabelKey: "hello"},
	}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	stranger := w.DeepCopy()
	stranger.Name, stranger.Labels = "stranger-"+name, nil
	write(t, "create", h.Create(t.Context(), stranger), h.Create(t.Context(), w))
	w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	write(t, "update", h.Update(t.Context(), w))
	w.Status.Conditions = []metav1.Condition{{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", Message: odd, LastTransitionTime: metav1.Now().Rfc3339Copy(), ObservedGeneration: 2,
	}}
	write(t, "update the status of", h.Status().Update(t.Context(), w))
	write(t, "delete", h.Delete(t.Context(), w))
}

// writeAddOns does the same with an add-on's installation.
func writeAddOns(t *testing.T, h onHub, name string) {
	t.Helper()
	a := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name, Annotations: map[string]string{"odd": odd}}}
	write(t, "create", h.Create(t.Context(), a))
	a.Spec.InstallNamespace = "elsewhere"
	write(t, "update", h.Update(t.Context(), a))
	a.Status.Namespace = "elsewhere"
	write(t, "update the status of", h.Status().Update(t.Context(), a))
	write(t, "delete", h.Delete(t.Context(), a))
}

func write(t *testing.T, what string, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("cannot %s: %v", what, err)
	}
}

// watchesEnd: with the server's own words where it has forgotten what was asked for, and
// without any where the time is over.
func (h onHub) watchesEnd(t *testing.T) {
	for _, k := range kinds() {
		got := until(t, h.open(t, k, metav1.ListOptions{ResourceVersion: "1"}), func(e watch.Event) bool { return e.Type == watch.Error })
		if len(got) != 1 || !apierrors.IsResourceExpired(apierrors.FromObject(got[0].Object)) {
			t.Errorf("%s: a version of long ago: %v, want the error Expired, so that the informer lists anew", k.Kind, got)
		}
		second := int64(1)
		got = until(t, h.open(t, k, metav1.ListOptions{TimeoutSeconds: &second}), func(watch.Event) bool { return false })
		if len(got) != 0 {
			t.Errorf("%s: a watch whose time is over: %v, want nothing", k.Kind, got)
		}
	}
}

// cacheFollows: the cache holds what the hub has, of works those with the label only, and
// add-ons with their managed fields.
func (h onHub) cacheFollows(t *testing.T) {
	c, err := NewCache(h.config, h.options)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "w", Labels: map[string]string{addonv1alpha1.AddonLabelKey: "hello"}}}
	stranger := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "stranger"}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "hello"}}
	write(t, "create", h.Create(t.Context(), stranger), h.Create(t.Context(), work))
	var works workv1.ManifestWorkList // the informer begins with a list, and goes on with a watch
	write(t, "list", c.List(t.Context(), &works))
	write(t, "create", h.Create(t.Context(), addOn))
	work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	write(t, "update", h.Update(t.Context(), work))
	hubtest.Eventually(t, "the cache has the works of add-ons as they are", func() bool {
		write(t, "list", c.List(t.Context(), &works))
		return len(works.Items) == 1 && works.Items[0].Name == "w" && works.Items[0].ResourceVersion == work.ResourceVersion && works.Items[0].Spec.DeleteOption != nil
	})
	hubtest.Eventually(t, "the cache has the add-on whole", func() bool {
		var got addonv1alpha1.ManagedClusterAddOn
		err := c.Get(t.Context(), client.ObjectKeyFromObject(addOn), &got)
		return err == nil && cmp.Diff(addOn.ManagedFields, got.ManagedFields) == "" && len(got.ManagedFields) > 0
	})
	write(t, "delete", h.Delete(t.Context(), work), h.Delete(t.Context(), addOn))
	hubtest.Eventually(t, "the work is gone", func() bool {
		write(t, "list", c.List(t.Context(), &works))
		return len(works.Items) == 0
	})
}

// TestOnlyWhatIsUnderstoodIsTakenOver: a cache that is to hold a part of a kind that is
// chosen by more than a label watches it itself.
func TestOnlyWhatIsUnderstoodIsTakenOver(t *testing.T) {
	config := &rest.Config{Host: "https://hub.example.com"}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	one := map[string]cache.Config{"one": {}}
	for name, c := range map[string]struct {
		options cache.Options
		ours    bool
	}{
		"everything":           {cache.Options{}, true},
		"by label":             {cache.Options{ByObject: map[client.Object]cache.ByObject{&workv1.ManifestWork{}: {Label: labels.Everything()}}}, true},
		"by namespace":         {cache.Options{ByObject: map[client.Object]cache.ByObject{&workv1.ManifestWork{}: {Namespaces: one}}}, false},
		"all by namespace":     {cache.Options{DefaultNamespaces: one}, false},
		"all by label":         {cache.Options{DefaultLabelSelector: labels.Everything()}, false},
		"others by namespaces": {cache.Options{ByObject: map[client.Object]cache.ByObject{&addonv1alpha1.ManagedClusterAddOn{}: {Namespaces: one}}}, true},
	} {
		c.options.Scheme, c.options.HTTPClient = scheme(t), httpClient
		w, err := newWatches(config, c.options, kinds()[0])
		if err != nil || (w != nil) != c.ours {
			t.Errorf("%s: %v, %v, want watches: %t", name, w, err, c.ours)
		}
	}
}
