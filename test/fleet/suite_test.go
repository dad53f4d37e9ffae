package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/hub"
)

// One hub serves all tests; each has its own clusters.
var hubConfig *rest.Config

func TestMain(m *testing.M) {
	os.Exit(withHub(m))
}

func withHub(m *testing.M) int {
	before := goleak.IgnoreCurrent()
	h, err := hub.Start(context.Background(), hub.Options{Output: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	hubConfig = h.Config()
	code := m.Run()
	if err := h.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := goleak.Find(before); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience is the limit of a wait, never a measure.
const patience = 2 * time.Minute

// scene is a fleet of one cluster with a work in it.
type scene struct {
	*testing.T
	fleet   *fleet.Fleet
	hub     client.WithWatch
	cluster string
}

// newScene starts a fleet and lets a cluster named after the test join.
func newScene(t *testing.T, opts fleet.Options) *scene {
	t.Helper()
	s := &scene{T: t, cluster: strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))}
	var err error
	if s.hub, err = client.NewWithWatch(hubConfig, client.Options{Scheme: hub.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	if s.fleet, err = fleet.New(hubConfig, opts); err != nil {
		t.Fatal(err)
	}
	if err := s.fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context ended just before.
		s.fleet.Wait()
		wantNoGoroutines(t)
	})
	if err := s.fleet.AddClusters(t.Context(), fleet.Cluster{Name: s.cluster}); err != nil {
		t.Fatal(err)
	}
	return s
}

// wantNoGoroutines waits for the last goroutine of a fleet that has ended: Wait returns when
// its channel is closed, and the goroutine that closes it ends a moment later.
func wantNoGoroutines(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "fleet.(*Fleet)"), nil
	})
	if err != nil {
		t.Errorf("goroutines of the fleet are left:\n%s", stacks)
	}
}

// put creates the cluster's work or gives it new content.
func (s *scene) put(image, digest string) *workv1.ManifestWork {
	s.Helper()
	work := &workv1.ManifestWork{}
	key := client.ObjectKey{Namespace: s.cluster, Name: "addon-hello-deploy-0"}
	err := s.hub.Get(s.Context(), key, work)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	before := work.DeepCopy()
	work.Spec = workSpec(s.T, image, digest)
	if err != nil {
		work.Name, work.Namespace = key.Name, key.Namespace
		err = s.hub.Create(s.Context(), work)
	} else {
		// Not an update: the agent's finalizer may come in between.
		err = s.hub.Patch(s.Context(), work, client.MergeFrom(before))
	}
	if err != nil {
		s.Fatal(err)
	}
	return work
}

func workSpec(tb testing.TB, image, digest string) workv1.ManifestWorkSpec {
	tb.Helper()
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "hello", "namespace": "default",
			"annotations": map[string]any{"addonflow.io/digest": digest},
		},
		"spec": map[string]any{
			"replicas": 1,
			"selector": map[string]any{"matchLabels": map[string]any{"app": "hello"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "hello"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "hello", "image": image}}},
			},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	spec := workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "default", Name: "hello"},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
			{Name: "digest", Path: `.metadata.annotations.addonflow\.io/digest`},
			{Name: "generation", Path: ".metadata.generation"},
			{Name: "observed", Path: ".status.observedGeneration"},
			{Name: "total", Path: ".status.replicas"},
			{Name: "updated", Path: ".status.updatedReplicas"},
			{Name: "ready", Path: ".status.readyReplicas"},
			{Name: "progressing", Path: `.status.conditions[?(@.type=="Progressing")].reason`},
		}}},
	}}}
	spec.Workload.Manifests = []workv1.Manifest{{RawExtension: apiruntime.RawExtension{Raw: manifest}}}
	return spec
}

// see is a work's status in one line, for the current generation g:
// "applied=g available=g digest=... ".
func see(work *workv1.ManifestWork) string {
	var line strings.Builder
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		shown := "-"
		if c := meta.FindStatusCondition(work.Status.Conditions, kind); c != nil {
			shown = fmt.Sprintf("%s@%d", c.Status, c.ObservedGeneration)
		}
		fmt.Fprintf(&line, "%s=%s ", strings.ToLower(kind), shown)
	}
	for _, manifest := range work.Status.ResourceStatus.Manifests {
		for _, v := range manifest.StatusFeedbacks.Values {
			switch v.Value.Type {
			case workv1.Integer:
				fmt.Fprintf(&line, "%s=%d ", v.Name, *v.Value.Integer)
			case workv1.String:
				fmt.Fprintf(&line, "%s=%s ", v.Name, *v.Value.String)
			case workv1.Boolean, workv1.JsonRaw:
			}
		}
	}
	return strings.TrimSpace(line.String())
}

// until waits for the cluster's work to look right.
func (s *scene) until(what string, done func(*workv1.ManifestWork) bool) *workv1.ManifestWork {
	s.Helper()
	work := &workv1.ManifestWork{}
	err := wait.PollUntilContextTimeout(s.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.cluster, Name: "addon-hello-deploy-0"}, work)
		return err == nil && done(work), client.IgnoreNotFound(err)
	})
	if err != nil {
		s.Fatalf("%s: %v; it is %s", what, err, see(work))
	}
	return work
}

// untilSeen waits for one line of see.
func (s *scene) untilSeen(want string) {
	s.Helper()
	s.until(want, func(work *workv1.ManifestWork) bool { return see(work) == want })
}

func conditionOf(work *workv1.ManifestWork, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(work.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
