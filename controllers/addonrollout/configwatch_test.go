package addonrollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// startHub starts an API server for one test.
func startHub(t *testing.T) (*hub.Hub, client.WithWatch) {
	t.Helper()
	h := hubtest.Start(t, hub.Options{})
	c, err := client.NewWithWatch(h.Config(), client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": value}}
}

func mapReference(name string) render.ConfigReference {
	return render.ConfigReference{Resource: "configmaps", Namespace: "default", Name: name}
}

// createConfigMaps creates ConfigMaps with value 1.
func createConfigMaps(t *testing.T, c client.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := c.Create(t.Context(), configMap(name, "1")); err != nil {
			t.Fatal(err)
		}
	}
}

// updateConfigMaps gives ConfigMaps value 2.
func updateConfigMaps(t *testing.T, c client.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := c.Update(t.Context(), configMap(name, "2")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfigurationsAreWatchedAsLongAsTheyAreNamed: a kind has one informer, however many rollouts
// name objects of it. A rollout is woken only for the objects it names, and the informer is stopped
// with the last rollout.
func TestConfigurationsAreWatchedAsLongAsTheyAreNamed(t *testing.T) {
	h, c := startHub(t)
	createConfigMaps(t, c, "a", "b")
	informers, err := cache.New(h.Config(), cache.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(t.Context()) }()
	woken := make(chan client.ObjectKey, 100)
	w := newKindWatch(informers, func(of client.ObjectKey) { woken <- of })
	store := newConfigStore(c, c.RESTMapper, clock.RealClock{})
	one, two := client.ObjectKey{Name: "one"}, client.ObjectKey{Name: "two"}
	a, missing := store.locate(mapReference("a")), store.locate(mapReference("missing"))
	unknown := store.locate(render.ConfigReference{Group: "example.com", Resource: "nothings", Name: "x"})
	if unknown.err == nil {
		t.Error("a kind that the hub does not serve was found")
	}

	w.use(t.Context(), one, []namedConfig{a, missing, unknown})
	w.use(t.Context(), two, []namedConfig{a})
	informer := w.kinds[a.kind]
	if len(w.kinds) != 1 {
		t.Fatalf("watches %d kinds, want ConfigMaps only", len(w.kinds))
	}
	hubtest.Eventually(t, "the version of a is known", func() bool {
		version, known := w.version(t.Context(), a)
		return known && version != ""
	})
	if version, known := w.version(t.Context(), missing); !known || version != "" {
		t.Errorf("an object that is not there: version %q, known %t", version, known)
	}
	// The first list wakes both rollouts; after that, only named objects do.
	got := []client.ObjectKey{next(t, woken), next(t, woken)}
	updateConfigMaps(t, c, "b", "a")
	got = append(got, next(t, woken), next(t, woken))
	slices.SortFunc(got, func(a, b client.ObjectKey) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	if want := []client.ObjectKey{one, one, two, two}; !slices.Equal(got, want) || len(woken) > 0 {
		t.Errorf("woke %v and %d more, want %v: no cluster names b", got, len(woken), want)
	}

	w.use(t.Context(), one, nil)
	if w.kinds[a.kind] != informer || informer.IsStopped() {
		t.Error("stopped while a rollout still names an object")
	}
	w.use(t.Context(), two, nil)
	if len(w.kinds) != 0 {
		t.Errorf("still watches %v", w.kinds)
	}
	hubtest.Eventually(t, "the informer is stopped", informer.IsStopped)
	if _, known := w.version(t.Context(), a); known {
		t.Error("claims to know what it does not watch")
	}
}

// next returns the rollouts that were woken.
func next(t *testing.T, woken <-chan client.ObjectKey) client.ObjectKey {
	t.Helper()
	select {
	case of := <-woken:
		return of
	case <-time.After(hubtest.Patience):
		t.Fatal("no rollout was woken")
		return client.ObjectKey{}
	}
}

// TestUnreadableConfigurationDoesNotAffectOthers: a configuration that cannot be read, does not
// exist or has an unknown kind is an error of its own. The others are read in their current state.
func TestUnreadableConfigurationDoesNotAffectOthers(t *testing.T) {
	_, c := startHub(t)
	createConfigMaps(t, c, "good", "broken")
	reads := 0
	flaky := interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		reads++
		if key.Name == "broken" {
			return apierrors.NewInternalError(errors.New("etcd is away"))
		}
		return w.Get(ctx, key, o, opts...)
	}})
	s := newConfigStore(flaky, c.RESTMapper, clock.RealClock{})
	references := map[render.ConfigReference]bool{
		mapReference("good"): true, mapReference("broken"): true, mapReference("missing"): true,
		{Group: "example.com", Resource: "nothings", Name: "x"}: true,
	}
	of := client.ObjectKey{Namespace: "default", Name: "hello"}
	read := s.read(t.Context(), of, references, nil)
	good := read[mapReference("good")]
	if good.err != nil || good.config.SpecHash == "" || good.config.Kind != "ConfigMap" {
		t.Errorf("good: %+v", good)
	}
	if err := read[mapReference("missing")].err; !errors.Is(err, errConfigMissing) {
		t.Errorf("missing: %v", err)
	}
	for _, name := range []string{"broken", "x"} {
		for reference, r := range read {
			if reference.Name == name && (r.err == nil || errors.Is(r.err, errConfigMissing)) {
				t.Errorf("%s: %v; trouble is not absence", name, r.err)
			}
		}
	}
	updateConfigMaps(t, c, "good")
	before := reads
	again := s.read(t.Context(), of, references, read)
	if again[mapReference("good")].config.SpecHash == good.config.SpecHash {
		t.Error("an edit was not seen")
	}
	if reads-before != 2 {
		t.Errorf("%d reads, want good and missing: what was broken a moment ago is left alone for a while", reads-before)
	}
}

func TestUnsupportedKindsAreReportedInOCMsWords(t *testing.T) {
	// The message is OCM's, to the letter.
	kind := schema.GroupResource{Group: "example.com", Resource: "things"}
	const want = "Configuration with gvr example.com/things is not supported for this addon"
	if got := render.UnsupportedMessage(kind.Group, kind.Resource); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	conditions := plan.Hindrance{Unsupported: true, Message: want}.Conditions()
	if len(conditions) != 2 || conditions[1].Reason != "ConfigurationUnsupported" || conditions[1].Message != want {
		t.Errorf("conditions: %+v", conditions)
	}
}
