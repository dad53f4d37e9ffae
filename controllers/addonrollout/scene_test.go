package addonrollout

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/gatechecks"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// scene is a hub in memory with one rollout of the add-on hello, and a reconciler that the test runs
// turn by turn. The test also moves the clock.
type scene struct {
	t          *testing.T
	hub        client.Client
	reconciler *Reconciler
	events     *record.FakeRecorder
	clock      *clocktesting.FakePassiveClock
	key        client.ObjectKey
	// log of the turns, and the clock that is never set; zero: none.
	log     logr.Logger
	elapsed func() time.Duration
	trace   *trace
	// gates measures for the current operator. Nothing is measured before it is started.
	gates *gatechecks.Desk
}

// newScene installs hello on clusters by one placement. Nothing is rolled out yet. With calls a test
// observes and changes requests.
func newScene(t *testing.T, calls interceptor.Funcs, clusters ...string) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, admissionregistrationv1.AddToScheme, v1alpha1.AddToScheme, addonv1alpha1.Install, clusterv1.Install, clusterv1beta1.Install, workv1.Install, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	create := calls.Create
	created := 0
	calls.Create = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		obj.SetUID(types.UID(obj.GetNamespace() + "/" + obj.GetName())) // as a hub would
		if _, revision := obj.(*v1alpha1.AddOnRevision); revision {
			created++
			obj.SetUID(types.UID(obj.GetName() + "/" + strconv.Itoa(created)))
		}
		switch obj.(type) {
		case *v1alpha1.AddOnApproval, *v1alpha1.AddOnOrder: // compared with the policy that proves their authors
			obj.SetCreationTimestamp(metav1.NewTime(clock.Now()))
		}
		if create != nil {
			return create(ctx, c, obj, opts...)
		}
		return c.Create(ctx, obj, opts...)
	}
	tr := newTrace(t)
	calls = tr.storing(calls)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithInterceptorFuncs(calls).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, indexName, byName).
		WithIndex(&workv1.ManifestWork{}, indexName, byName).
		WithIndex(&v1alpha1.AddOnRollout{}, indexName, byName).
		WithStatusSubresource(&addonv1alpha1.ClusterManagementAddOn{}, &v1alpha1.AddOnRollout{}, &v1alpha1.AddOnOrder{}, &v1alpha1.AddOnSource{}, &addonv1alpha1.ManagedClusterAddOn{}, &workv1.ManifestWork{}).
		Build()
	s := &scene{
		t: t, hub: hub, events: record.NewFakeRecorder(100),
		clock: clock,
		key:   client.ObjectKey{Namespace: "team", Name: "hello"}, trace: tr,
	}
	s.restart()
	s.create(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}})
	s.create(&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}})
	s.place("all", clusters...)
	for _, name := range clusters {
		s.create(&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
			}}},
		})
	}
	s.create(&v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello"},
		Spec: v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
			{PlacementReference: v1alpha1.PlacementReference{Namespace: "team", Name: "all"}},
		}}},
	})
	return s
}

// restart replaces the operator by a new one without memory.
func (s *scene) restart() {
	s.gates = gatechecks.NewDesk(gatechecks.Options{Secrets: s.hub, Measure: gatesOptions(), Clock: movedClock{s.clock}})
	s.reconciler = New(Options{
		Charts: chart.InProcess{},
		Client: watchCache{s.hub, render.NewAbridger()}, Live: s.hub, Recorder: s.events, Clock: s.clock, Desk: forge.NewDesk(forge.Options{Secrets: s.hub, Sources: s.hub, Now: time.Now}),
		Gates: s.gates, Elapsed: s.elapsed, ParkAfter: 10 * time.Minute, RemovalGrace: 5 * time.Minute, HidesTemplateHash: true,
		Trace: s.trace.planned,
	})
}

// watchCache reads works as the operator's cache has them.
type watchCache struct {
	client.Client
	manifests *render.Abridger
}

func (c watchCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if works, ok := list.(*workv1.ManifestWorkList); ok {
		for i := range works.Items {
			TrimWork(&works.Items[i], c.manifests)
		}
	}
	return err
}

// Status marks the operator's writes of a status.
func (c watchCache) Status() client.SubResourceWriter { return operatorStatus{c.Client.Status()} }

// operatorStatus writes a status as the operator.
type operatorStatus struct{ client.SubResourceWriter }

// byOperator is the key of a context in which the operator writes.
type byOperator struct{}

func (s operatorStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.SubResourceWriter.Update(context.WithValue(ctx, byOperator{}, true), o, opts...)
}

// place writes a placement with its decisions, as OCM's placement controller does.
func (s *scene) place(name string, clusters ...string) {
	s.t.Helper()
	s.create(&clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Status: clusterv1beta1.PlacementStatus{
			NumberOfSelectedClusters: int32(len(clusters)), //nolint:gosec // a handful
			Conditions:               []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue}},
		},
	})
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name + "-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: name},
	}}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	s.create(decision)
}

// target stores the content of hello at a tag and makes it the target; it returns
// the digest.
func (s *scene) target(tag string) string {
	s.t.Helper()
	return s.targetOf(contentAt(tag), tag)
}

// targetOf stores content, makes it the target and returns the digest.
func (s *scene) targetOf(content render.Content, tag string) string {
	s.t.Helper()
	digest, err := content.Digest()
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := content.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	name := render.RevisionName("hello", digest)
	revision := &v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.AddOnLabel: "hello"}, Annotations: map[string]string{v1alpha1.RevisionAnnotation: digest}},
		Spec:       v1alpha1.AddOnRevisionSpec{AddOn: "hello", Digest: digest, Body: body},
	}
	if err := s.hub.Create(s.t.Context(), revision); client.IgnoreAlreadyExists(err) != nil {
		s.t.Fatal(err)
	}
	commit := "main@sha1:" + commitNamed(tag)
	if revision = s.revision(digest); v1alpha1.AddCommit(&revision.ObjectMeta, commit) {
		s.update(revision)
	}
	ro := s.rollout()
	ro.Spec.Target = &v1alpha1.Target{Source: "fleet", Revision: name, Digest: digest, Commit: commit}
	s.update(ro)
	return digest
}

// commitNamed is a sha for a tag.
func commitNamed(tag string) string {
	sha := ""
	for len(sha) < 40 {
		sha += strconv.FormatInt(int64(tag[len(tag)-1]), 16)
	}
	return sha[:40]
}

// contentAt is the add-on hello, one Deployment, at a tag.
func contentAt(tag string) render.Content { return contentWith(tag, "--cluster={{CLUSTER_NAME}}") }

// contentWith is contentAt with other arguments of the container.
func contentWith(tag string, args ...any) render.Content {
	group := addonv1alpha1.GroupName
	return render.Content{
		AddOn:    "hello",
		Defaults: []render.ConfigReference{{Group: group, Resource: "addontemplates", Name: "hello"}},
		Templates: []render.Template{{Name: "hello", SpecHash: "hash-" + tag, Spec: map[string]any{
			"addonName": "hello",
			"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "hello", "namespace": "agents"},
				"spec": map[string]any{
					"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "hello"}},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "hello"}},
						"spec": map[string]any{"containers": []any{map[string]any{
							"name": "agent", "image": "example.com/hello:" + tag, "args": args,
						}}},
					},
				},
			}}}},
		}}},
	}
}

// turn runs one reconcile, a pace after the one before. A rollout is Ready only if its commit is green.
func (s *scene) turn() ctrl.Result {
	s.t.Helper()
	s.advance(time.Second)
	result, err := s.reconciler.Reconcile(ctrl.LoggerInto(s.t.Context(), s.log), ctrl.Request{NamespacedName: s.key})
	if err != nil {
		s.t.Fatalf("the turn failed: %v", err)
	}
	ro := &v1alpha1.AddOnRollout{}
	if err := s.hub.Get(s.t.Context(), s.key, ro); err == nil && conditions.IsReady(ro) && ro.Status.Outcome != string(rollout.Success) {
		s.t.Errorf("Ready while the commit is %s: %s", ro.Status.Outcome, s.says(meta.ReadyCondition))
	}
	return result
}

// turns runs several turns.
func (s *scene) turns(n int) {
	s.t.Helper()
	for range n {
		s.turn()
	}
}

// settle runs turns until the rollout is complete. The agents report that their works run.
func (s *scene) settle() {
	s.t.Helper()
	for range 10 {
		s.settleOnce()
	}
	if phase := s.rollout().Status.Phase; phase != v1alpha1.PhaseSucceeded {
		s.t.Fatalf("the rollout is %s: %s", phase, s.rollout().Status.Message)
	}
}

// settleOnce runs a turn and makes every agent report.
func (s *scene) settleOnce() {
	s.t.Helper()
	s.turn()
	s.report()
}

// explained is the plan as the command line shows it.
func (s *scene) explained() (rollout.Plan, error) {
	s.t.Helper()
	i, err := NewInspector(s.hub, s.key, chart.InProcess{}).Inspect(s.t.Context())
	return i.Plan(), err
}

// plan is the planner's present plan.
func (s *scene) plan() rollout.Plan {
	s.t.Helper()
	plan, err := s.explained()
	if _, missing := errors.AsType[*MissingError](err); err != nil && !missing {
		s.t.Fatal(err)
	}
	return plan
}

// report makes every agent report that its work runs.
func (s *scene) report(clusters ...string) {
	s.t.Helper()
	for _, w := range s.works() {
		if len(clusters) > 0 && !slices.Contains(clusters, w.Namespace) {
			continue
		}
		w.Status = runningStatus(w)
		if err := s.hub.Status().Update(s.t.Context(), w); err != nil {
			s.t.Fatal(err)
		}
	}
}

// fails reports that the Deployments of clusters gave up.
func (s *scene) fails(clusters ...string) {
	s.t.Helper()
	s.report(clusters...)
	for _, name := range clusters {
		w := s.works()[name]
		feedback := &w.Status.ResourceStatus.Manifests[0].StatusFeedbacks
		reason := "ProgressDeadlineExceeded"
		feedback.Values = append(feedback.Values, workv1.FeedbackValue{Name: "addonflow.reason", Value: workv1.FieldValue{Type: workv1.String, String: &reason}})
		if err := s.hub.Status().Update(s.t.Context(), w); err != nil {
			s.t.Fatal(err)
		}
	}
}

// runningStatus is the status of a work whose Deployment runs.
func runningStatus(w *workv1.ManifestWork) workv1.ManifestWorkStatus {
	text := func(name, value string) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value}}
	}
	values := []workv1.FeedbackValue{text("addonflow.digest", w.Annotations[v1alpha1.DigestAnnotation])}
	for _, name := range []string{"generation", "observedGeneration", "desired", "total", "updated", "ready", "available"} {
		one := int64(1)
		values = append(values, workv1.FeedbackValue{Name: "addonflow." + name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &one}})
	}
	return workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{
			{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: w.Generation},
			{Type: workv1.WorkAvailable, Status: metav1.ConditionTrue, ObservedGeneration: w.Generation},
		},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta:    workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "agents", Name: "hello"},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: values},
		}}},
	}
}

func (s *scene) advance(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

func (s *scene) create(o client.Object) {
	s.t.Helper()
	if err := s.hub.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) update(o client.Object) {
	s.t.Helper()
	if err := s.hub.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) delete(o client.Object) {
	s.t.Helper()
	if err := s.hub.Delete(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) rollout() *v1alpha1.AddOnRollout {
	s.t.Helper()
	ro := &v1alpha1.AddOnRollout{}
	if err := s.hub.Get(s.t.Context(), s.key, ro); err != nil {
		s.t.Fatal(err)
	}
	return ro
}

// revision reads the revision of a digest.
func (s *scene) revision(digest string) *v1alpha1.AddOnRevision {
	s.t.Helper()
	rev := &v1alpha1.AddOnRevision{}
	key := client.ObjectKey{Namespace: "team", Name: render.RevisionName("hello", digest)}
	if err := s.hub.Get(s.t.Context(), key, rev); err != nil {
		s.t.Fatal(err)
	}
	return rev
}

// works of hello, by cluster.
func (s *scene) works() map[string]*workv1.ManifestWork {
	s.t.Helper()
	var list workv1.ManifestWorkList
	if err := s.hub.List(context.Background(), &list); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]*workv1.ManifestWork{}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, "addon-hello-") {
			out[list.Items[i].Namespace] = &list.Items[i]
		}
	}
	return out
}

// installed are the clusters that have the add-on, by name.
func (s *scene) installed() []string {
	s.t.Helper()
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := s.hub.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Namespace)
	}
	slices.Sort(names)
	return names
}

// addOn reads the ManagedClusterAddOn of a cluster.
func (s *scene) addOn(cluster string) *addonv1alpha1.ManagedClusterAddOn {
	s.t.Helper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: cluster, Name: "hello"}, addOn); err != nil {
		s.t.Fatal(err)
	}
	return addOn
}

// announced returns the events since the last call.
func (s *scene) announced() []string {
	var out []string
	for {
		select {
		case e := <-s.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}
