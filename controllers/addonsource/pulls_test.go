package addonsource

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"golang.org/x/crypto/ssh"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout/forecast"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/registry"
)

// requestForge answers as Gitea does for pull requests, comments and statuses. It keeps what is written.
type requestForge struct {
	mu       sync.Mutex
	requests []map[string]any
	comments []string
	statuses []string
	// shown is the newest status of each commit.
	shown  map[string]map[string]any
	writes int
	// hang blocks every answer until it is closed; nil: nothing hangs.
	hang chan struct{}
	// refused ends the paths for which the token has no permission; "": none.
	refused string
}

func (f *requestForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var sent struct{ Body, State, Context, Description string }
	if r.Method != http.MethodGet {
		f.writes++
		_ = json.NewDecoder(r.Body).Decode(&sent)
	}
	path, code := strings.TrimPrefix(r.URL.Path, "/api/v1"), http.StatusOK
	var answer any
	comment := func(i int) any {
		return map[string]any{"id": i + 1, "body": f.comments[i], "user": map[string]any{"id": 5}}
	}
	switch {
	case f.refused != "" && strings.HasSuffix(path, f.refused):
		code, answer = http.StatusForbidden, map[string]any{"message": "token does not have the scope"}
	case path == "/user":
		answer = map[string]any{"id": 5}
	case path == "/repos/team/fleet/pulls" && r.URL.Query().Get("page") == "1":
		answer = f.requests
	case path == "/repos/team/fleet/pulls":
		answer = []any{}
	case strings.HasSuffix(path, "/comments") && r.Method == http.MethodPost:
		f.comments, code = append(f.comments, sent.Body), http.StatusCreated
		answer = comment(len(f.comments) - 1)
	case strings.HasSuffix(path, "/comments"):
		list := []any{}
		for i := range f.comments {
			list = append(list, comment(i))
		}
		answer = list
	case strings.HasSuffix(path, "/issues/comments/1") && r.Method == http.MethodPatch:
		f.comments[0] = sent.Body
		answer = comment(0)
	case strings.Contains(path, "/statuses/"):
		f.statuses, code = append(f.statuses, sent.State+" "+sent.Context+": "+sent.Description), http.StatusCreated
		status := map[string]any{"id": len(f.statuses), "status": sent.State, "context": sent.Context, "description": sent.Description}
		f.shown[path[strings.LastIndex(path, "/")+1:]], answer = status, status
	case strings.HasSuffix(path, "/status"):
		answer = map[string]any{"statuses": []any{}}
		if newest := f.shown[strings.TrimSuffix(strings.TrimPrefix(path, "/repos/team/fleet/commits/"), "/status")]; newest != nil && r.URL.Query().Get("page") == "1" {
			answer = map[string]any{"statuses": []any{newest}}
		}
	default:
		code, answer = http.StatusNotFound, map[string]any{"message": r.Method + " " + path}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// planScene is a source with a repository, and request 7 on a forge.
type planScene struct {
	t       *testing.T
	forge   *requestForge
	repo    *gitserver.Repo
	planner *Planner
	events  *record.FakeRecorder
	request ctrl.Request
	hub     client.WithWatch
	// passed is the time that has passed in the scene.
	passed atomic.Int64
}

// requestReconcile requests a reconcile, as `addonflow reconcile source` does.
func (s *planScene) requestReconcile() {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), s.request.NamespacedName, source); err != nil {
		s.t.Fatal(err)
	}
	source.Annotations = map[string]string{fluxmeta.ReconcileRequestAnnotation: "now"}
	if err := s.hub.Update(s.t.Context(), source); err != nil {
		s.t.Fatal(err)
	}
}

// denied is the condition of the source about the token, "reason message".
func (s *planScene) denied() string {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), s.request.NamespacedName, source); err != nil {
		s.t.Fatal(err)
	}
	book := s.planner.Desk.Open(forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: s.request.NamespacedName}, source, nil)
	book.Address(s.t.Context(), source)
	book.SetConditions(source)
	c := conditions.Get(source, v1alpha1.CommitStatusDeniedCondition)
	if c == nil {
		return ""
	}
	return c.Reason + " " + c.Message
}

// TestPlanner_ATokenThatMayNotPlanIsNamedInACondition: with the permission, also after a visit to which no plan is due.
func TestPlanner_ATokenThatMayNotPlanIsNamedInACondition(t *testing.T) {
	for path, want := range map[string]string{
		"/comments": "PermissionMissing cannot use the token for plans of pull requests: ",
		"/pulls":    "PermissionMissing cannot use the token for the list of pull requests: ",
	} {
		t.Run(path, func(t *testing.T) {
			s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
			s.ask("v2", 1)
			s.plan()
			if got := s.denied(); got != "" {
				t.Errorf("denied %q", got)
			}
			s.ask("v3", 1)
			s.forge.refused = path
			s.planAfter(time.Minute)
			s.planAfter(time.Second)
			if got := s.denied(); !strings.HasPrefix(got, want) || !strings.Contains(got, "write:issue and read:user") || !strings.Contains(got, "Secret fleet/forge has the token") {
				t.Errorf("denied %q", got)
			}
			s.forge.refused = ""
			s.planAfter(time.Minute)
			if got := s.denied(); got != "" {
				t.Errorf("denied %q", got)
			}
		})
	}
}

// TestPlanner_TheConditionEndsWithTheRequest: the request that could not be answered is closed, and no other is due.
func TestPlanner_TheConditionEndsWithTheRequest(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.forge.refused = "/comments"
	s.plan()
	if got := s.denied(); !strings.Contains(got, "request 7: ") {
		t.Errorf("denied %q", got)
	}
	s.forge.requests = []map[string]any{}
	s.planAfter(time.Minute)
	if got := s.denied(); got != "" {
		t.Errorf("denied %q", got)
	}
}

const planTemplate = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello}}
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, defaultConfig: {name: settings, namespace: fleet}}
  installStrategy: {type: Placements, placements: [{namespace: fleet, name: all}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: fleet}
spec: {clusterSets: [global]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello}
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: hello, namespace: default}
        data: {version: VERSION}
`

func newPlanScene(t *testing.T, spec v1alpha1.PullRequestsSpec) *planScene {
	t.Helper()
	git, err := gitserver.Start(gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	s := &planScene{t: t, forge: &requestForge{shown: map[string]map[string]any{}}, events: record.NewFakeRecorder(20), request: ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "fleet"}}}
	if s.repo, err = git.Create("fleet"); err != nil {
		t.Fatal(err)
	}
	s.commit("main", "v1")
	server := httptest.NewServer(s.forge)
	t.Cleanup(server.Close)
	spec.Enabled = true
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fleet", Generation: 1}, Spec: v1alpha1.AddOnSourceSpec{
		URL: s.repo.URL(), Reference: &v1alpha1.GitReference{Branch: "main"}, Interval: metav1.Duration{Duration: time.Minute}, PullRequests: &spec,
		CommitStatus: &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: server.URL + "/team/fleet", SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"}},
	}}
	scheme := hub.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "AddOnDeploymentConfig"}, meta.RESTScopeNamespace)
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	s.hub = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, "metadata.name", byName).WithObjects(source,
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addonrevisions.addonflow.io"}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addonrollouts.addonflow.io"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "forge"}, Data: map[string][]byte{"token": []byte("word")}},
		&addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "settings"}, Spec: addonv1alpha1.AddOnDeploymentConfigSpec{
			CustomizedVariables:   []addonv1alpha1.CustomizedVariable{{Name: "PASSWORD", Value: "hunter2"}},
			AgentInstallNamespace: "hidden-namespace",
			Registries:            []addonv1alpha1.ImageMirror{{Source: "example.com", Mirror: "hidden-mirror.internal"}},
			NodePlacement:         &addonv1alpha1.NodePlacement{NodeSelector: map[string]string{"hidden-pool": "gold"}},
			ProxyConfig:           addonv1alpha1.ProxyConfig{HTTPProxy: "http://hidden-proxy.internal"},
		}},
	).Build()
	desk := forge.NewDesk(forge.Options{Secrets: s.hub, Sources: s.hub, HTTP: &http.Client{Timeout: 2 * time.Second}, Now: time.Now})
	s.planner = NewPlanner(New(Config{Client: s.hub, Live: s.hub, Events: s.events, Desk: desk, Git: gitsource.Access{AllowLoopback: true, AllowHTTPCredentials: true}, Clock: s.now}),
		func(context.Context) (proposal.Fleet, error) {
			fleet := proposal.Fleet{}
			for i := range 3 {
				fleet.Clusters = append(fleet.Clusters, clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("payments-%d", i)}})
			}
			return fleet, nil
		})
	return s
}

// commit writes the add-on with a version to a branch.
func (s *planScene) commit(branch, version string) {
	s.t.Helper()
	s.commitFile(branch+" "+version, strings.Replace(planTemplate, "VERSION", version, 1))
}

// commitFile writes the file of the add-on.
func (s *planScene) commitFile(message, text string) string {
	s.t.Helper()
	sha, err := s.repo.Commit(message, map[string]string{"addon.yaml": text})
	if err != nil {
		s.t.Fatal(err)
	}
	return sha
}

// ask makes a commit with a version the head of request 7.
func (s *planScene) ask(version string, repo int) {
	s.t.Helper()
	s.askFor(strings.Replace(planTemplate, "VERSION", version, 1), repo)
}

// askFor makes a commit with a text the head of request 7, and takes the branch back to where it was.
func (s *planScene) askFor(text string, repo int) {
	s.t.Helper()
	main, err := s.repo.Head()
	if err != nil {
		s.t.Fatal(err)
	}
	sha := s.commitFile("request", text)
	if err := s.repo.SetRef("refs/pull/7/head", sha); err != nil {
		s.t.Fatal(err)
	}
	if err := s.repo.ForcePush(main); err != nil {
		s.t.Fatal(err)
	}
	s.forge.mu.Lock()
	defer s.forge.mu.Unlock()
	s.forge.requests = []map[string]any{{
		"number": 7, "head": map[string]any{"sha": sha, "repo": map[string]any{"id": repo}},
		"base": map[string]any{"ref": "main", "repo": map[string]any{"id": 1}},
	}}
}

// now is the time of the scene.
func (s *planScene) now() time.Time { return time.Unix(1_800_000_000, s.passed.Load()) }

// plan makes one visit after the longest pause, and returns the comments and statuses on the forge.
func (s *planScene) plan() (comments, statuses []string) {
	s.t.Helper()
	return s.planAfter(planRarely)
}

// planAfter makes one visit after a time.
func (s *planScene) planAfter(pause time.Duration) (comments, statuses []string) {
	s.t.Helper()
	s.passed.Add(int64(pause))
	if _, err := s.planner.Reconcile(s.t.Context(), s.request); err != nil {
		s.t.Fatal(err)
	}
	<-s.planner.visits.of[s.request.NamespacedName].done
	result, err := s.planner.Reconcile(s.t.Context(), s.request)
	if err != nil || result.RequeueAfter <= 0 {
		s.t.Fatalf("%v, %v", result, err)
	}
	s.forge.mu.Lock()
	defer s.forge.mu.Unlock()
	return s.forge.comments, s.forge.statuses
}

func TestPlanner_KeepsOneCommentAndOneStatus(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	comments, statuses := s.plan()
	if len(comments) != 1 || !strings.HasPrefix(comments[0], "<!-- addonflow-plan/fleet -->\n### AddonFlow plan: `#7 into main`") ||
		!strings.Contains(comments[0], "new content, 3 of 3 clusters change") || !strings.Contains(comments[0], "+  version: v2") {
		t.Errorf("comments: %v; %v", comments, s.event())
	}
	if len(statuses) != 1 || statuses[0] != "success addonflow-plan/fleet: 1 add-on: hello; 3 cluster changes" {
		t.Errorf("statuses: %v", statuses)
	}
	writes := s.forge.writes
	s.plan()
	s.planner = NewPlanner(s.planner.Reconciler, s.planner.Fleet) // a new leader knows nothing
	s.forge.mu.Lock()
	s.forge.statuses = nil
	clear(s.forge.shown) // a status that is missing is posted again
	s.forge.mu.Unlock()
	if s.plan(); s.forge.writes > writes+1 {
		t.Errorf("%d writes without a change", s.forge.writes-writes)
	}
	s.ask("[not, a, string]", 1)
	comments, statuses = s.plan()
	if len(comments) != 1 || !strings.Contains(comments[0], "**Would be refused.**") || !strings.HasPrefix(statuses[len(statuses)-1], "failure addonflow-plan/fleet: would be refused: addon.yaml:") {
		t.Errorf("comments: %v, statuses: %v", comments, statuses)
	}
}

// packaged is another add-on, with a chart of a registry.
const packaged = `---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: agent}
spec: {installStrategy: {type: Placements, placements: [{namespace: fleet, name: all}]}}
---
apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata: {name: agent}
spec:
  addOn: agent
  helm: {oci: "charts.example.com/agent:1.0.1@sha256:DIGEST"}
`

// TestPlanner_FailsForWhatTheHubRefuses: a request is judged by the checks of a commit, and nothing is written.
func TestPlanner_FailsForWhatTheHubRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		more, owner, want, comment string
		repository                 int
	}{
		"an add-on of another source":           {owner: "default/fleet", want: "failure addonflow-plan/fleet: would be refused: addon.yaml:1: ", comment: "addon.yaml:1: ClusterManagementAddOn/hello: belongs to source default/fleet; declare it in one source only"},
		"an add-on of a source that is deleted": {owner: "default/gone", want: "success addonflow-plan/fleet: 1 add-on: hello; 3 cluster changes"},
		"an unlisted registry":                  {more: packaged, want: "failure addonflow-plan/fleet: would be refused: addon.yaml:38: AddOnPackage/agent: spec.helm.oci: charts are not read from charts.example.com"},
		"a fork":                                {owner: "default/fleet", repository: 2, want: "success addonflow-plan/fleet: 1 add-on, 1 not compared: hello"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlanScene(t, v1alpha1.PullRequestsSpec{Forks: true})
			s.ask("v2", 1)
			if c.more != "" || c.repository > 0 {
				text := strings.Replace(planTemplate, "VERSION", "v2", 1) + strings.Replace(c.more, "DIGEST", strings.Repeat("0", 64), 1)
				s.askFor(text, max(1, c.repository))
			}
			var owned *addonv1alpha1.ClusterManagementAddOn
			if c.owner != "" {
				owned = &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Annotations: map[string]string{v1alpha1.SourceAnnotation: c.owner}}}
				other := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"}}
				for _, o := range []client.Object{owned, other} {
					if err := s.hub.Create(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
			}
			comments, statuses := s.plan()
			if len(statuses) != 1 || !strings.HasPrefix(statuses[0], c.want) || !strings.Contains(comments[0], c.comment) || strings.Contains(comments[0], "not checked on the hub") {
				t.Errorf("%v; %v; %s", statuses, comments, s.event())
			}
			if owned != nil {
				live := &addonv1alpha1.ClusterManagementAddOn{}
				if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(owned), live); err != nil || live.ResourceVersion != owned.ResourceVersion {
					t.Errorf("the plan wrote %+v, %v", live, err)
				}
			}
		})
	}
}

// TestPlanner_PlansAgainWhileThePlanIsRed: the cause of a red plan ends on the hub, and neither the source nor a commit
// changes. Nothing is written as long as the plan is the same.
func TestPlanner_PlansAgainWhileThePlanIsRed(t *testing.T) {
	for name, cause := range map[string]func(*planScene) []client.Object{
		"failure addonflow-plan/fleet: would be refused: addon.yaml:1: ": func(*planScene) []client.Object {
			return []client.Object{
				&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Annotations: map[string]string{v1alpha1.SourceAnnotation: "default/fleet"}}},
				&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"}},
			}
		},
		"failure addonflow-plan/fleet: would not be rolled out: hello: content ": func(s *planScene) []client.Object {
			quarantine, err := json.Marshal(v1alpha1.Quarantine{Time: metav1.NewTime(time.Unix(1e9, 0)), Reason: "1 of 3 clusters failed"})
			if err != nil {
				s.t.Fatal(err)
			}
			digest := s.planned().AddOns[0].To
			return []client.Object{
				&v1alpha1.AddOnRevision{ObjectMeta: metav1.ObjectMeta{
					Namespace: "fleet", Name: render.RevisionName("hello", digest), Annotations: map[string]string{v1alpha1.QuarantinedAnnotation: string(quarantine)},
				}, Spec: v1alpha1.AddOnRevisionSpec{AddOn: "hello", Digest: digest}},
				&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello"}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
			exact := strings.Replace(planTemplate, "  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, defaultConfig: {name: settings, namespace: fleet}}\n", "", 1)
			s.commitFile("without a configuration of the hub", strings.Replace(exact, "VERSION", "v1", 1))
			s.askFor(strings.Replace(exact, "VERSION", "v2", 1), 1)
			objects := cause(s)
			for _, o := range objects {
				if err := s.hub.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if _, statuses := s.plan(); len(statuses) != 1 || !strings.HasPrefix(statuses[0], name) {
				t.Fatalf("statuses: %v; %s", statuses, s.event())
			}
			writes := s.forge.writes
			if s.plan(); s.forge.writes != writes {
				t.Errorf("%d writes without a change", s.forge.writes-writes)
			}
			for _, o := range objects {
				if err := s.hub.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			comments, statuses := s.plan()
			if len(statuses) != 2 || statuses[1] != "success addonflow-plan/fleet: 1 add-on: hello; 3 cluster changes" || !strings.Contains(comments[0], "new content, 3 of 3 clusters change") {
				t.Errorf("statuses: %v, comments: %v; %s", statuses, comments, s.event())
			}
			s.planner.Fleet = func(context.Context) (proposal.Fleet, error) {
				t.Error("a green plan was made again")
				return proposal.Fleet{}, nil
			}
			s.plan()
		})
	}
}

// TestPlanner_PlansRedOnesAgainAfterAPauseThatDoubles: a red plan that does not change costs a few requests to the forge,
// however short the interval is. A new commit of the request or the user's request ends the pause.
func TestPlanner_PlansRedOnesAgainAfterAPauseThatDoubles(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("[not, a, string]", 1)
	plans, fleet := 0, s.planner.Fleet
	s.planner.Fleet = func(ctx context.Context) (proposal.Fleet, error) {
		plans++
		return fleet(ctx)
	}
	visit := func(when string, after time.Duration, want int) {
		t.Helper()
		before := plans
		if _, statuses := s.planAfter(after); plans-before != want || !strings.HasPrefix(statuses[0], "failure ") {
			t.Errorf("%s: %d plans, want %d; statuses %v; %s", when, plans-before, want, statuses, s.event())
		}
	}
	visit("first", 0, 1)
	for _, pause := range []time.Duration{1, 2, 4, 8, 15, 15} {
		visit("during the pause", pause*time.Minute-time.Second, 0)
		visit(fmt.Sprintf("after %d minutes", pause), time.Second, 1)
	}
	s.requestReconcile()
	visit("the user's request", 0, 1)
	visit("the same request", 0, 0)
	s.ask("[neither, a, string]", 1)
	visit("a new commit", 0, 1)
	visit("after the first pause", planAgain, 1)
	s.commit("main", "v3")
	visit("a new commit of the branch", 0, 1)
}

// planned is the plan of request 7 as data.
func (s *planScene) planned() proposal.Proposal {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), s.request.NamespacedName, source); err != nil {
		s.t.Fatal(err)
	}
	plan, err := s.planner.PlanBeside(s.t.Context(), source, commitstatus.Request{Number: 7, Ref: "refs/pull/7/head"})
	if err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// TestPlanner_ReplacesAForeignGreenOfARedPlan: a client with the right to write statuses turns the check green.
func TestPlanner_ReplacesAForeignGreenOfARedPlan(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("[not, a, string]", 1)
	s.plan()
	s.forge.mu.Lock()
	for _, shown := range s.forge.shown {
		shown["status"] = "success"
	}
	s.forge.mu.Unlock()
	if _, statuses := s.plan(); len(statuses) != 2 || statuses[1] != statuses[0] || !strings.HasPrefix(statuses[0], "failure ") {
		t.Errorf("statuses: %v; %s", statuses, s.event())
	}
}

// TestPlanner_PlansAgainWhenTheRequestIsBackAtAnEarlierCommit: the comment is about the commit between.
func TestPlanner_PlansAgainWhenTheRequestIsBackAtAnEarlierCommit(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.plan()
	s.forge.mu.Lock()
	first := s.forge.requests
	s.forge.mu.Unlock()
	s.ask("[not, a, string]", 1)
	if comments, _ := s.plan(); !strings.Contains(comments[0], "**Would be refused.**") {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
	head, _ := first[0]["head"].(map[string]any)
	if err := s.repo.SetRef("refs/pull/7/head", fmt.Sprint(head["sha"])); err != nil {
		t.Fatal(err)
	}
	s.forge.mu.Lock()
	s.forge.requests = first
	s.forge.mu.Unlock()
	if comments, _ := s.plan(); !strings.Contains(comments[0], "3 of 3 clusters change") {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
}

// askAlso adds an older request with the same head.
func (s *planScene) askAlso(number int) {
	s.t.Helper()
	older := maps.Clone(s.forge.requests[0])
	older["number"] = number
	head, _ := older["head"].(map[string]any)
	if err := s.repo.SetRef(fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprint(head["sha"])); err != nil {
		s.t.Fatal(err)
	}
	s.forge.requests = append(s.forge.requests, older)
}

// TestPlanner_SlowPlansEndTheVisit: the plans of the two newest requests are never made in time, as if the API server hung.
// The next visit begins with the request that had no turn, and tries the others again after their pause, which doubles.
func TestPlanner_SlowPlansEndTheVisit(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.askAlso(6)
	s.askAlso(5)
	slow, reads, fleet := true, 0, s.planner.Fleet
	s.planner.Fleet = func(ctx context.Context) (proposal.Fleet, error) {
		if reads++; slow {
			return proposal.Fleet{}, fmt.Errorf("cannot list the clusters: %w", context.DeadlineExceeded)
		}
		return fleet(ctx)
	}
	visit := func(when string, after time.Duration, want int) (comments []string) {
		t.Helper()
		before := reads
		if comments, _ = s.planAfter(after); reads-before != want {
			t.Errorf("%s: %d plans, want %d; %s", when, reads-before, want, s.event())
		}
		return comments
	}
	visit("the first visit", 0, 2)
	slow = false
	if comments := visit("the second visit", 0, 1); len(comments) != 1 || !strings.Contains(comments[0], "`#5 into main`") {
		t.Errorf("comments: %v", comments)
	}
	slow = true
	visit("after the first pause", planAgain, 2)
	visit("during the second pause", planAgain, 0)
	visit("after the second pause", planAgain, 2)
}

// TestPlanner_ASlowPlanStopsNoOther: the plan of the newest request is never made in time.
func TestPlanner_ASlowPlanStopsNoOther(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.askAlso(6)
	reads, fleet := 0, s.planner.Fleet
	s.planner.Fleet = func(ctx context.Context) (proposal.Fleet, error) {
		if reads++; reads == 1 {
			return proposal.Fleet{}, fmt.Errorf("cannot list the clusters: %w", context.DeadlineExceeded)
		}
		return fleet(ctx)
	}
	comments, _ := s.plan()
	if len(comments) != 1 || !strings.Contains(comments[0], "`#6 into main`") {
		t.Errorf("comments: %v", comments)
	}
	if e := s.event(); !strings.HasSuffix(e, "PullRequestsNotPlanned cannot plan pull request 7: cannot list the clusters: context deadline exceeded") {
		t.Errorf("event %q", e)
	}
}

// event is the first event; "" without one.
func (s *planScene) event() string {
	select {
	case e := <-s.events.Events:
		return e
	default:
		return ""
	}
}

// TestPlanner_KeepsThePlansOfTwoSourcesOfOneNameApart: sources with different contexts have different contexts for
// plans, so that the green plan of one source does not replace the red plan of the other.
func TestPlanner_KeepsThePlansOfTwoSourcesOfOneNameApart(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	var first v1alpha1.AddOnSource
	if err := s.hub.Get(t.Context(), s.request.NamespacedName, &first); err != nil {
		t.Fatal(err)
	}
	second := first.DeepCopy()
	second.Namespace, second.ResourceVersion = "eu", ""
	second.Spec.AddOns, second.Spec.CommitStatus.Context = []string{"other"}, "addonflow/eu/fleet"
	for _, o := range []client.Object{second, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "forge"}, Data: map[string][]byte{"token": []byte("word")}}} {
		if err := s.hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.ask("v2", 1)
	s.plan()
	s.request.Namespace = "eu"
	comments, statuses := s.plan()
	if len(comments) != 2 || !strings.HasPrefix(comments[1], "<!-- addonflow-plan/eu/fleet -->\n") || !strings.Contains(comments[0], "3 of 3 clusters change") {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
	if len(statuses) != 2 || !strings.HasPrefix(statuses[0], "success addonflow-plan/fleet: ") || !strings.HasPrefix(statuses[1], "failure addonflow-plan/eu/fleet: ") {
		t.Errorf("statuses: %v", statuses)
	}
}

// TestPlanner_ReadsNothingOfAFork: the request of a fork has no plan unless the source asks for it.
func TestPlanner_ReadsNothingOfAFork(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 2)
	if comments, statuses := s.plan(); len(comments)+len(statuses) > 0 {
		t.Errorf("comments: %v, statuses: %v", comments, statuses)
	}
	s = newPlanScene(t, v1alpha1.PullRequestsSpec{Forks: true})
	s.ask("v2", 2)
	if comments, _ := s.plan(); len(comments) != 1 {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
}

// TestPlanner_SaysThatTheSignatureIsNotChecked: the commit of the merge may be refused, whatever the head of the request
// is signed with.
func TestPlanner_SaysThatTheSignatureIsNotChecked(t *testing.T) {
	for _, verified := range []bool{false, true} {
		s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
		source := &v1alpha1.AddOnSource{}
		if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
			t.Fatal(err)
		}
		if verified {
			source.Spec.Verify = &v1alpha1.VerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "signers"}}
		}
		_, public, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := ssh.NewPublicKey(public.Public())
		if err != nil {
			t.Fatal(err)
		}
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "signers"}, Data: map[string][]byte{"ana.sshpub": ssh.MarshalAuthorizedKey(signer)}}
		if err := errors.Join(s.hub.Update(t.Context(), source), s.hub.Create(t.Context(), keys)); err != nil {
			t.Fatal(err)
		}
		s.ask("v2", 1)
		comments, statuses := s.plan()
		const note = "not checked: the signature, because the commit of the merge does not exist yet; spec.verify refuses it unless a listed key signs it"
		if len(comments) != 1 || strings.Contains(comments[0], note) != verified || statuses[0] != "success addonflow-plan/fleet: 1 add-on: hello; 3 cluster changes" {
			t.Errorf("verified %v: %v, %v; %s", verified, comments, statuses, s.event())
		}
	}
}

// TestPlanner_WaitsForTheSignatureOfAChart: a request that names a chart is refused while its signature is missing, and is
// planned again. Nothing that a fork names is read from a registry.
func TestPlanner_WaitsForTheSignatureOfAChart(t *testing.T) {
	content := map[string]string{"Chart.yaml": "apiVersion: v2\nname: agent\nversion: 1.0.0\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n"}
	server := registry.Start(t, registry.Options{})
	digest := server.PushChart(t, "charts", content)
	signer := registry.NewSigner(t)
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{Forks: true})
	s.planner.Charts = chart.InProcess{}
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
		t.Fatal(err)
	}
	source.Spec.Registries = []v1alpha1.RegistrySpec{{
		Host: server.Host, Insecure: true, Verify: &v1alpha1.OCIVerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "cosign"}},
	}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "cosign"}, Data: map[string][]byte{"cosign.pub": signer.Public(t)}}
	if err := errors.Join(s.hub.Update(t.Context(), source), s.hub.Create(t.Context(), key)); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(planTemplate, "VERSION", "v1", 1) + strings.Replace(packaged, "charts.example.com/agent:1.0.1@sha256:DIGEST", server.Host+"/charts/agent@"+digest, 1)
	want := func(status string) {
		t.Helper()
		if _, statuses := s.plan(); statuses[len(statuses)-1] != status {
			t.Errorf("got %q, want %q; %s", statuses[len(statuses)-1], status, s.event())
		}
	}

	s.askFor(text, 2)
	want("success addonflow-plan/fleet: 1 add-on, 1 not compared: agent")
	s.askFor(text, 1)
	refused := func(why string) {
		t.Helper()
		comments, statuses := s.plan()
		if !strings.HasPrefix(statuses[len(statuses)-1], "failure addonflow-plan/fleet: would be refused: addon.yaml:38: AddOnPackage/agent: spec.helm.oci: ") || !strings.Contains(comments[0], why) {
			t.Errorf("got %q and %s, want %q; %s", statuses, comments[0], why, s.event())
		}
	}
	refused("signature refused: it is not signed")
	server.Sign(t, "charts/agent", digest, signer.Signature(t, server.Host, digest))
	want("success addonflow-plan/fleet: 1 add-on: agent; 3 cluster changes")
}

// TestPlanner_AsksARegistryOnceAVisit: for all requests, the charts of the branch are read once, and a registry that hangs
// is asked once.
func TestPlanner_AsksARegistryOnceAVisit(t *testing.T) {
	content := map[string]string{"Chart.yaml": "apiVersion: v2\nname: agent\nversion: 1.0.0\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n"}
	server := registry.Start(t, registry.Options{})
	first := server.PushChart(t, "charts", content)
	content["Chart.yaml"] = strings.Replace(content["Chart.yaml"], "1.0.0", "1.0.1", 1)
	second := server.PushChart(t, "charts", content)
	asked := map[string]int{}
	var mu sync.Mutex
	target := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Host})
	hangs := false
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if strings.Contains(r.URL.Path, "/manifests/") {
			asked[path.Base(r.URL.Path)]++
		}
		wait := hangs
		mu.Unlock()
		if wait {
			<-r.Context().Done()
			return
		}
		target.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.planner.Charts = chart.InProcess{}
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
		t.Fatal(err)
	}
	source.Spec.Registries = []v1alpha1.RegistrySpec{{Host: strings.TrimPrefix(front.URL, "http://"), Insecure: true}}
	source.Spec.Timeout = &metav1.Duration{Duration: 2 * time.Second}
	if err := s.hub.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	with := func(version, digest string) string {
		return strings.Replace(planTemplate, "VERSION", version, 1) + strings.Replace(packaged, "charts.example.com/agent:1.0.1@sha256:DIGEST", strings.TrimPrefix(front.URL, "http://")+"/charts/agent@"+digest, 1)
	}
	s.commitFile("main with a chart", with("v1", first))
	ask := func(texts ...string) {
		t.Helper()
		var all []map[string]any
		for i, text := range texts {
			s.askFor(text, 1)
			request := maps.Clone(s.forge.requests[0])
			request["number"] = 20 + i
			head, _ := request["head"].(map[string]any)
			if err := s.repo.SetRef(fmt.Sprintf("refs/pull/%d/head", 20+i), fmt.Sprint(head["sha"])); err != nil {
				t.Fatal(err)
			}
			all = append(all, request)
		}
		s.forge.mu.Lock()
		defer s.forge.mu.Unlock()
		s.forge.requests = all
	}

	ask(with("v2", second), with("v3", first))
	if _, statuses := s.plan(); len(statuses) != 2 || asked[first] != 1 || asked[second] != 1 {
		t.Errorf("%d statuses; asked %v; %s", len(statuses), asked, s.event())
	}
	hangs = true
	s.planner = NewPlanner(s.planner.Reconciler, s.planner.Fleet)
	clear(asked)
	ask(with("v2", second), with("v3", first), with("v4", second))
	s.plan()
	requests := 0
	for _, n := range asked {
		requests += n
	}
	if e := s.event(); requests != 1 || !strings.Contains(e, "no complete answer within 2s") || !strings.Contains(e, "(and 2 more)") {
		t.Errorf("%d requests to the registry that hangs; %q", requests, e)
	}
}

// TestPlanner_AnswersAForkNothingAboutTheHub: a request asks what is on the hub by its files. Inside the
// repository a right and a wrong guess have different plans; of a fork they have the same.
func TestPlanner_AnswersAForkNothingAboutTheHub(t *testing.T) {
	const all = "spec: {clusterSets: [global]}"
	for question, c := range map[string]struct{ old, asks, right, wrong string }{
		"a label of a cluster": {all, "spec: {predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: GUESS}}}}]}", "moonbase", "nonesuch"},
		"a bound set":          {all, "spec: {clusterSets: [GUESS]}", "moon-set", "none-set"},
		"a placement":          {"placements: [{namespace: fleet, name: all}]", "placements: [{namespace: fleet, name: GUESS}]", "moon-place", "none-place"},
		"a configuration":      {"{name: settings, namespace: fleet}", "{name: GUESS, namespace: fleet}", "moon-config", "none-config"},
		"a variable":           {"VERSION", `"{{GUESS}}"`, "PASSWORD", "NOSUCH"},
		"a rollout":            {"hello", "GUESS", "moon-addon", "none-addon"},
	} {
		for _, repository := range []int{1, 2} {
			var answers []string
			for _, guess := range []string{c.right, c.wrong} {
				s := newPlanScene(t, v1alpha1.PullRequestsSpec{Forks: true, ClusterNames: true})
				s.furnish()
				text := strings.ReplaceAll(strings.ReplaceAll(planTemplate, c.old, c.asks), "GUESS", guess)
				s.askFor(strings.ReplaceAll(text, "VERSION", "v2"), repository)
				comments, statuses := s.plan()
				if len(comments) != 1 || len(statuses) != 1 {
					t.Fatalf("%s: %v; %s", question, comments, s.event())
				}
				answers = append(answers, strings.ReplaceAll(comments[0]+statuses[0], guess, "GUESS"))
			}
			if fork := repository == 2; (answers[0] == answers[1]) != fork {
				t.Errorf("%s, fork %v: the right guess has the plan\n%s\nand the wrong one\n%s", question, fork, answers[0], answers[1])
			}
		}
	}
}

// furnish puts on the hub what a request may guess.
func (s *planScene) furnish() {
	s.t.Helper()
	for _, o := range []client.Object{
		&addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "moon-config"}},
		&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "moon-addon", Annotations: map[string]string{v1alpha1.SuspendAnnotation: "true"}}},
	} {
		if err := s.hub.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	s.planner.Fleet = func(context.Context) (proposal.Fleet, error) {
		fleet := proposal.Fleet{Known: forecast.Known{AllBindings: true}}
		for _, set := range []string{"global", "moon-set"} {
			b := clusterv1beta2.ManagedClusterSetBinding{Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
			b.Namespace, b.Name = "fleet", set
			fleet.Bindings = append(fleet.Bindings, b)
		}
		fleet.Observed = []clusterv1beta1.Placement{{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "moon-place"}}}
		fleet.Clusters = []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "payments-0", Labels: map[string]string{
			"region": "moonbase", clusterv1beta2.ClusterSetLabel: "moon-set",
		}}}}
		return fleet, nil
	}
}

// TestPlanner_ShowsNoValueOfTheHub: a request prints a variable of a configuration that is only on the hub, and
// the name of the cluster.
func TestPlanner_ShowsNoValueOfTheHub(t *testing.T) {
	for names, shown := range map[bool]bool{false: false, true: true} {
		s := newPlanScene(t, v1alpha1.PullRequestsSpec{ClusterNames: names})
		s.ask(`"{{PASSWORD}} on {{CLUSTER_NAME}}"`, 1)
		comments, _ := s.plan()
		if len(comments) != 1 || strings.Contains(comments[0], "hunter2") || !strings.Contains(comments[0], "*** on ") {
			t.Fatalf("comments: %v; %s", comments, s.event())
		}
		if strings.Contains(comments[0], "payments-0") != shown {
			t.Errorf("clusterNames: %v: %s", names, comments[0])
		}
	}
}

// TestPlanner_CountsNoClusterOfASetThatTheAccountMayNotBind: a request binds a set of another tenant to its namespace.
// The hub would refuse it, so the plan shows neither the number nor the names of its clusters.
func TestPlanner_CountsNoClusterOfASetThatTheAccountMayNotBind(t *testing.T) {
	for _, may := range []bool{false, true} {
		s := newPlanScene(t, v1alpha1.PullRequestsSpec{ClusterNames: true})
		s.furnish()
		furnished, err := s.planner.Fleet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		furnished.Bindings = furnished.Bindings[:1] // global has every cluster, also that of moon-set
		furnished.Bindings[0].Namespace = "another"
		s.planner.Fleet = func(context.Context) (proposal.Fleet, error) { return furnished, nil }
		s.planner.Accounts = func(account client.ObjectKey) (client.Client, error) {
			if account.String() != "fleet/deployer" {
				t.Errorf("account %s", account)
			}
			return interceptor.NewClient(s.hub, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
				if !ok {
					return fmt.Errorf("creates %T", o)
				}
				asked := *review.Spec.ResourceAttributes
				review.Status.Allowed = may && asked == authorizationv1.ResourceAttributes{
					Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: "bind", Verb: "create", Name: "moon-set",
				}
				return nil
			}}), nil
		}
		var source v1alpha1.AddOnSource
		if err := s.hub.Get(t.Context(), s.request.NamespacedName, &source); err != nil {
			t.Fatal(err)
		}
		source.Spec.ServiceAccountName = "deployer"
		if err := s.hub.Update(t.Context(), &source); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("VERSION", "v2", "spec: {clusterSets: [global]}", "spec: {clusterSets: [moon-set]}").Replace(planTemplate)
		s.askFor(text+"---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: moon-set, namespace: fleet}\nspec: {clusterSet: moon-set}\n", 1)
		comments, statuses := s.plan()
		if len(comments) != 1 || len(statuses) != 1 {
			t.Fatalf("%v; %s", statuses, s.event())
		}
		if shown := strings.Contains(comments[0], "payments-0"); shown != may || strings.HasSuffix(statuses[0], "; 0 cluster changes") == may ||
			strings.Contains(comments[0], "may not bind cluster set moon-set") == may {
			t.Errorf("may bind: %v: %s\n%s", may, statuses[0], comments[0])
		}
	}
}

// TestPlanner_MasksEverythingOfAConfigurationOfTheHub: a template prints what a configuration changes besides
// its variables. A digest of values is no line to copy.
func TestPlanner_MasksEverythingOfAConfigurationOfTheHub(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	const policy = `
---
apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata: {name: hello, namespace: fleet}
spec:
  stages:
  - name: fleet
    placement: {namespace: fleet, name: all}
    gates: {before: [{name: qa, type: approval, approval: {forge: {permission: maintain}}}]}
`
	const deployment = `
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: hello, namespace: default}
        spec:
          selector: {matchLabels: {app: hello}}
          template:
            metadata: {labels: {app: hello}}
            spec: {containers: [{name: hello, image: "example.com/hello:v2"}]}
`
	s.askFor(strings.Replace(strings.TrimSuffix(planTemplate, "\n"), "VERSION", "v2", 1)+deployment+policy, 1)
	comments, _ := s.plan()
	if len(comments) != 1 || !strings.Contains(comments[0], "example.com/hello:v2") || strings.Contains(comments[0], "hidden") {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
	if strings.Contains(comments[0], "/addonflow approve") || !strings.Contains(comments[0], "the commit status has the comment that approves") {
		t.Errorf("a line to copy: %s", comments[0])
	}
}

// TestPlanner_SaysWhyThereIsNoPlan: a forge that hangs is an event, and is asked again after the interval.
func TestPlanner_SaysWhyThereIsNoPlan(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.forge.mu.Lock()
	s.forge.hang = make(chan struct{})
	s.forge.mu.Unlock()
	s.plan()
	close(s.forge.hang)
	if e := s.event(); !strings.Contains(e, "PullRequestsNotPlanned cannot list pull requests: cannot reach ") {
		t.Errorf("event %q", e)
	}
}

// owners are those for which engines were asked.
type owners []string

func (o *owners) For(owner string) chart.Engine {
	*o = append(*o, owner)
	return nil
}

// TestPlanner_RendersAsItsNamespace: namespaces take turns in rendering, and no two owners share a child.
func TestPlanner_RendersAsItsNamespace(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	asked := &owners{}
	s.planner.Charts = asked
	s.ask("v2", 1)
	if comments, _ := s.plan(); len(comments) != 1 || len(*asked) == 0 {
		t.Fatalf("comments: %v; asked: %v; %s", comments, *asked, s.event())
	}
	for _, owner := range *asked {
		if !strings.HasPrefix(owner, "fleet/AddOnSource/fleet/plan") {
			t.Errorf("charts of %q are not those of plans of the source", owner)
		}
	}
}

// TestPlanner_WaitsForNoServerThatHangs: the Git server answers which commits there are, and sends none. It holds no
// worker, is asked once for all requests, and delays no other source.
func TestPlanner_WaitsForNoServerThatHangs(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	s.forge.requests = append(s.forge.requests, maps.Clone(s.forge.requests[0]))
	s.forge.requests[1]["number"] = 8
	head, _ := s.forge.requests[0]["head"].(map[string]any)
	if err := s.repo.SetRef("refs/pull/8/head", fmt.Sprint(head["sha"])); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(s.repo.URL())
	if err != nil {
		t.Fatal(err)
	}
	fetches := make(chan struct{}, 10)
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: server.Scheme, Host: server.Host})
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			behind.ServeHTTP(w, r)
			return
		}
		fetches <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
		t.Fatal(err)
	}
	source.Name, source.ResourceVersion, source.Spec.URL = "hangs", "", hangs.URL+server.Path
	source.Spec.Timeout = &metav1.Duration{Duration: 2 * time.Second}
	if err := s.hub.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(source)
	if _, err := s.planner.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	<-fetches
	if comments, _ := s.plan(); len(comments) != 1 {
		t.Errorf("comments: %v; %s", comments, s.event())
	}
	if e := s.event(); e != "" {
		t.Errorf("the visit to the server that hangs has ended: %s", e)
	}
	<-s.planner.visits.of[key].done
	if result, err := s.planner.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || result.RequeueAfter <= 0 {
		t.Errorf("%v, %v", result, err)
	}
	if e := s.event(); !strings.Contains(e, "PullRequestsNotPlanned cannot plan pull request ") || len(fetches) > 0 {
		t.Errorf("event %q, and %d more fetches", e, len(fetches))
	}
}

// TestPlanner_PushDuringAVisitCausesAnother: a push makes the request or the branch another, and a webhook says so.
func TestPlanner_PushDuringAVisitCausesAnother(t *testing.T) {
	s := newPlanScene(t, v1alpha1.PullRequestsSpec{})
	s.ask("v2", 1)
	visit := func() (result ctrl.Result) {
		t.Helper()
		result, err := s.planner.Reconcile(t.Context(), s.request)
		if err != nil {
			t.Fatal(err)
		}
		if sent := s.planner.visits.of[s.request.NamespacedName]; sent != nil {
			<-sent.done
		}
		return result
	}
	visit()
	s.requestReconcile()
	s.ask("v3", 1)
	visit()
	if visit(); len(s.forge.comments) != 1 || !strings.Contains(s.forge.comments[0], "+  version: v3") {
		t.Errorf("comments: %v; %s", s.forge.comments, s.event())
	}
}
