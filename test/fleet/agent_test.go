package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/fleet"
)

const (
	v1Settled = "applied=True@1 available=True@1 digest=d1 generation=1 observed=1 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable"
	v2Settled = "applied=True@2 available=True@2 digest=d2 generation=2 observed=2 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable"
)

func TestOneWritePerChange(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.put("hello:v2", "d2")
	s.untilSeen(v2Settled)
	work := s.until("the finalizer", func(w *workv1.ManifestWork) bool {
		return slices.Contains(w.Finalizers, workv1.ManifestWorkFinalizer)
	})
	if got := s.fleet.StatusWrites(s.cluster); got != 2 {
		t.Errorf("%d status writes for two contents", got)
	}
	before := work.DeepCopy()
	metav1.SetMetaDataLabel(&work.ObjectMeta, "unrelated", "change")
	if err := s.hub.Patch(t.Context(), work, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.put("hello:v3", "d3")
	s.until("the third content", func(w *workv1.ManifestWork) bool { return conditionOf(w, workv1.WorkAvailable).ObservedGeneration == 3 })
	if got := s.fleet.StatusWrites(s.cluster); got != 3 {
		t.Errorf("%d status writes for three contents", got)
	}
}

// TestReportsLag records every status that the hub showed for an upgrade to an image that never
// starts.
func TestReportsLag(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.fleet.SetLatency(5 * time.Millisecond)
	watch, err := s.hub.Watch(t.Context(), &workv1.ManifestWorkList{}, client.InNamespace(s.cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	s.put("hello:bad", "d2")
	want := []string{
		v1Settled,
		"applied=True@2 available=True@1 digest=d1 generation=1 observed=1 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable",
		"applied=True@2 available=True@2 digest=d2 generation=2 observed=1 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable",
		"applied=True@2 available=True@2 digest=d2 generation=2 observed=2 total=2 updated=1 ready=1 progressing=ReplicaSetUpdated",
		"applied=True@2 available=True@2 digest=d2 generation=2 observed=2 total=2 updated=1 ready=1 progressing=ProgressDeadlineExceeded",
	}
	var got []string
	for event := range watch.ResultChan() {
		work, ok := event.Object.(*workv1.ManifestWork)
		if !ok {
			t.Fatalf("the watch brought %T", event.Object)
		}
		if line := see(work); len(got) == 0 || got[len(got)-1] != line {
			got = append(got, line)
		}
		if len(got) == len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	running := s.fleet.Running(s.cluster)["Deployment/default/hello"]
	if diff := cmp.Diff([]string{"hello:v1"}, running.ReadyImages); diff != "" || running.Updated != 1 {
		t.Errorf("%+v: %s", running, diff)
	}
}

func TestDeadlineAfter(t *testing.T) {
	s := newScene(t, fleet.Options{DeadlineAfter: time.Second})
	s.put("hello:bad", "d1")
	s.untilSeen("applied=True@1 available=True@1 digest=d1 generation=1 observed=1 total=1 updated=1 progressing=ProgressDeadlineExceeded")
	if got := s.fleet.StatusWrites(s.cluster); got > 2 {
		t.Errorf("%d status writes, want at most one before the deadline and one after", got)
	}
}

func TestSilence(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.fleet.Silence(s.cluster)
	s.put("hello:v1", "d1")
	s.whenSettled()
	if got := s.fleet.StatusWrites(s.cluster); got != 0 || len(s.fleet.Objects(s.cluster)) != 0 {
		t.Errorf("a silent agent made %d writes and has %v", got, s.fleet.Objects(s.cluster))
	}
	s.fleet.Speak(s.cluster)
	s.untilSeen(v1Settled)
}

// An agent that has answered for a generation answers for the one before it, and for the newest one in the end.
func TestOutdate(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.put("hello:v2", "d2")
	s.untilSeen(v2Settled)
	s.fleet.Outdate(s.cluster)
	s.untilSeen(v1Settled)
	s.fleet.Update(s.cluster)
	s.untilSeen(v2Settled)
}

// whenSettled waits until the agents have seen what was written and have nothing to do. The
// fleet cannot know of a write that its watch has not delivered yet. So a work of another
// cluster, written later, marks the position in the same watch.
func (s *scene) whenSettled() {
	s.Helper()
	probe := &scene{T: s.T, fleet: s.fleet, hub: s.hub, cluster: s.cluster + "-probe"}
	if err := s.fleet.AddClusters(s.Context(), fleet.Cluster{Name: probe.cluster}); err != nil {
		s.Fatal(err)
	}
	probe.put("hello:v1", "d1")
	probe.untilSeen(v1Settled)
}

func TestFailAndRepair(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.fleet.Fail(s.cluster, "admission webhook denied the request")
	s.put("hello:v2", "d2")
	work := s.until("the refusal", func(w *workv1.ManifestWork) bool {
		return conditionOf(w, workv1.WorkApplied).Status == metav1.ConditionFalse && conditionOf(w, workv1.WorkApplied).ObservedGeneration == 2
	})
	applied := meta.FindStatusCondition(work.Status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestApplied)
	if applied.Message != "Failed to apply manifest: admission webhook denied the request" {
		t.Errorf("%+v", applied)
	}
	if got := s.fleet.Running(s.cluster)["Deployment/default/hello"].Images; got[0] != "hello:v1" {
		t.Errorf("refused and running: %v", got)
	}
	s.fleet.Recover(s.cluster)
	s.untilSeen(v2Settled)
}

func TestLie(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.fleet.Lie(s.cluster)
	s.put("hello:bad", "d2")
	s.untilSeen("applied=True@2 available=True@2 digest=d1 generation=1 observed=1 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable")
	s.fleet.Honest(s.cluster)
	s.untilSeen("applied=True@2 available=True@2 digest=d2 generation=2 observed=2 total=2 updated=1 ready=1 progressing=ProgressDeadlineExceeded")
}

func TestHold(t *testing.T) {
	s := newScene(t, fleet.Options{})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.fleet.Hold(s.cluster)
	s.put("hello:v2", "d2")
	s.untilSeen("applied=True@2 available=True@2 digest=d2 generation=2 observed=1 total=1 updated=1 ready=1 progressing=NewReplicaSetAvailable")
	s.fleet.Release(s.cluster)
	s.untilSeen(v2Settled)
}

func TestFlap(t *testing.T) {
	s := newScene(t, fleet.Options{FlapEvery: 5 * time.Millisecond})
	s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	s.fleet.Flap(s.cluster)
	for _, want := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse} {
		s.until("Available="+string(want), func(w *workv1.ManifestWork) bool { return conditionOf(w, workv1.WorkAvailable).Status == want })
	}
	s.fleet.Steady(s.cluster)
	s.untilSeen(v1Settled)
}

func TestDisappearAndReturn(t *testing.T) {
	s := newScene(t, fleet.Options{})
	if err := s.fleet.Disappear(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	s.put("hello:v1", "d1")
	s.whenSettled()
	cluster := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: s.cluster}, cluster); err != nil {
		t.Fatal(err)
	}
	available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if available.Status != metav1.ConditionUnknown || len(cluster.Spec.Taints) != 1 {
		t.Errorf("%+v, taints %v", available, cluster.Spec.Taints)
	}
	if got := s.fleet.StatusWrites(s.cluster); got != 0 {
		t.Errorf("a vanished cluster made %d writes", got)
	}
	if err := s.fleet.Return(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	s.untilSeen(v1Settled)
}

func TestDeletedWorksAreCleanedUp(t *testing.T) {
	for name, latency := range map[string]time.Duration{"AtOnce": 0, "Slowly": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, fleet.Options{Latency: latency})
			work := s.put("hello:v1", "d1")
			s.untilSeen(v1Settled)
			s.fleet.Silence(s.cluster)
			if err := s.hub.Delete(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			s.whenSettled()
			if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				t.Fatalf("a silent agent let a work go: %v", err)
			}
			s.fleet.Speak(s.cluster)
			s.untilGone(work)
			if got := s.fleet.Objects(s.cluster); len(got) != 0 {
				t.Errorf("left on the cluster: %v", got)
			}
			s.put("hello:v1", "d1")
			s.untilSeen(v1Settled)
		})
	}
}

func (s *scene) untilGone(work *workv1.ManifestWork) {
	s.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := s.hub.Get(s.Context(), client.ObjectKeyFromObject(work), work)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			s.Fatal(err)
		}
		<-ticker.C
	}
}

func TestWorksOfRemovedClustersLoseTheirFinalizer(t *testing.T) {
	s := newScene(t, fleet.Options{})
	work := s.put("hello:v1", "d1")
	s.untilSeen(v1Settled)
	if err := s.fleet.RemoveCluster(t.Context(), s.cluster); err != nil {
		t.Fatal(err)
	}
	if err := s.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	s.untilGone(work)
}

// TestManyWorks checks the results for many works; BenchmarkAnswer measures the time.
func TestManyWorks(t *testing.T) {
	s := newScene(t, fleet.Options{})
	clusters := fleet.Numbered("crowd", 60)
	if err := s.fleet.AddClusters(t.Context(), clusters...); err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		one := &scene{T: t, fleet: s.fleet, hub: s.hub, cluster: c.Name}
		one.put("hello:v1", "d1")
	}
	for _, c := range clusters {
		one := &scene{T: t, fleet: s.fleet, hub: s.hub, cluster: c.Name}
		one.untilSeen(v1Settled)
		if got := s.fleet.StatusWrites(c.Name); got != 1 {
			t.Errorf("%s: %d status writes", c.Name, got)
		}
	}
	if got := s.fleet.StatusWrites(fleet.AllClusters); got != len(clusters) {
		t.Errorf("%d status writes in all", got)
	}
}

// TestKindsAreNamedAsAnAPIServerNamesThem: for every stable kind of Kubernetes, the agent reports the resource and the
// scope that the API server has.
func TestKindsAreNamedAsAnAPIServerNamesThem(t *testing.T) {
	s := newScene(t, fleet.Options{})
	discovery, err := discovery.NewDiscoveryClientForConfig(hubConfig)
	if err != nil {
		t.Fatal(err)
	}
	served, err := discovery.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	var spec workv1.ManifestWorkSpec
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			gvk := version.WithKind(r.Kind)
			if !clientgoscheme.Scheme.Recognizes(gvk) || !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "get") || strings.Contains(version.Version, "beta") {
				continue
			}
			namespace := map[bool]string{true: "default"}[r.Namespaced]
			want = append(want, gvk.String()+" "+r.Name+" "+namespace)
			spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: apiruntime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion": %q, "kind": %q, "metadata": {"name": "x", "namespace": "default"}}`, list.GroupVersion, r.Kind)}})
		}
	}
	if len(want) < 40 {
		t.Fatalf("the API server serves %q only", want)
	}
	work := &workv1.ManifestWork{Spec: spec}
	work.Name, work.Namespace = "addon-hello-deploy-0", s.cluster
	if err := s.hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	work = s.until("the answer", func(w *workv1.ManifestWork) bool { return len(w.Status.ResourceStatus.Manifests) > 0 })
	var got []string
	for _, m := range work.Status.ResourceStatus.Manifests {
		gvk := schema.GroupVersionKind{Group: m.ResourceMeta.Group, Version: m.ResourceMeta.Version, Kind: m.ResourceMeta.Kind}
		got = append(got, gvk.String()+" "+m.ResourceMeta.Resource+" "+m.ResourceMeta.Namespace)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
