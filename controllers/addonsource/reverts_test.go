package addonsource

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/hubclient"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/hub"
)

// proposalForge answers as Gitea does about branches and pull requests. Its branches are in a real repository.
type proposalForge struct {
	t    *testing.T
	repo *gitserver.Repo

	mu     sync.Mutex
	pulls  []map[string]string
	writes int
	// failing is the write that fails, counted from 1, and takes whether it takes effect before.
	failing int
	takes   bool
	// code is the answer to each write; 0: it is accepted.
	code int
}

func (f *proposalForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/repos/team/fleet/")
	code, answer := http.StatusNotFound, any(map[string]any{"message": r.Method + " " + path})
	fails := false
	if r.Method == http.MethodPost {
		f.writes++
		fails = f.writes == f.failing
		if f.code != 0 || fails && !f.takes {
			w.WriteHeader(max(f.code, http.StatusInternalServerError*min(1, f.failing)))
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && strings.HasPrefix(path, "pulls/main/"):
		for i, p := range f.pulls {
			if p["head"] == strings.TrimPrefix(path, "pulls/main/") {
				code, answer = http.StatusOK, map[string]any{"number": i + 1, "html_url": "https://gitea.example/pulls/1"}
			}
		}
	case path == "contents":
		code, answer = f.branch(r), map[string]any{}
	case path == "pulls":
		var sent map[string]string
		_ = json.NewDecoder(r.Body).Decode(&sent)
		f.pulls = append(f.pulls, sent)
		code, answer = http.StatusCreated, map[string]any{"number": len(f.pulls), "html_url": "https://gitea.example/pulls/1"}
	}
	if fails {
		code = http.StatusInternalServerError
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// branch makes the branch of a request with one commit, and returns the code of the answer.
func (f *proposalForge) branch(r *http.Request) int {
	var sent struct {
		Branch  string
		New     string `json:"new_branch"`
		Message string
		Files   []struct{ Operation, Path, Content, SHA string }
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		return http.StatusUnprocessableEntity
	}
	dir, ctx := f.t.TempDir(), r.Context()
	git := func(args ...string) string {
		command := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=robot", "-c", "user.email=robot@example.com"}, args...)...)
		out, err := command.CombinedOutput()
		if err != nil {
			f.t.Errorf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if exec.CommandContext(ctx, "git", "-C", f.repo.Dir(), "rev-parse", "--verify", "--quiet", "refs/heads/"+sent.New).Run() == nil {
		return http.StatusUnprocessableEntity
	}
	git("clone", "--quiet", "--branch", sent.Branch, f.repo.Dir(), ".")
	for _, c := range sent.Files {
		file := filepath.Join(dir, c.Path)
		if c.Operation != "create" && git("rev-parse", "HEAD:"+c.Path) != c.SHA {
			return http.StatusUnprocessableEntity
		}
		if c.Operation == "delete" {
			git("rm", "--quiet", c.Path)
			continue
		}
		content, _ := base64.StdEncoding.DecodeString(c.Content)
		_ = os.MkdirAll(filepath.Dir(file), 0o755)
		_ = os.WriteFile(file, content, 0o644)
	}
	git("add", "--all")
	git("commit", "--quiet", "-m", sent.Message)
	git("push", "--quiet", "origin", "HEAD:refs/heads/"+sent.New)
	return http.StatusCreated
}

// revertScene is a repository with the add-ons hello and other, of which the fleet has taken hello back from v2
// to v1.
type revertScene struct {
	t        *testing.T
	forge    *proposalForge
	repo     *gitserver.Repo
	hub      client.Client
	git      *gitserver.Server
	events   *record.FakeRecorder
	reverter *Reverter
	request  ctrl.Request
	good     string
}

// revertTree is the repository with a version of both add-ons.
func revertTree(hello, other string) map[string]string {
	addOn := func(name, version string) string {
		return fmt.Sprintf(`apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: %[1]s}
spec:
  supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: %[1]s}}]
  installStrategy: {type: Placements, placements: [{namespace: fleet, name: all}]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: %[1]s}
spec:
  addonName: %[1]s
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}, data: {version: %[2]s}}
`, name, version)
	}
	return map[string]string{
		"placement.yaml":  "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: all, namespace: fleet}\nspec: {clusterSets: [global]}\n",
		"hello/all.yaml":  addOn("hello", hello),
		"other/all.yaml":  addOn("other", other),
		"hello/README.md": "about " + hello + "\n",
	}
}

// digestIn is the digest of hello in a tree.
func digestIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, problems := tree.Build(t.Context(), gitsource.BuildOptions{})
	commit, more := Compile(objects, nil, CompileOptions{Options: load.Options{Namespace: "fleet"}})
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	return commit.AddOns[0].Digest
}

// newRevertScene pushes the good commit, and then the trees. The last tree has the content that is rolled back.
func newRevertScene(t *testing.T, then ...map[string]string) *revertScene {
	t.Helper()
	return newRevertSceneFrom(t, revertTree("v1", "v1"), then...)
}

// newRevertSceneFrom is newRevertScene with another good commit.
func newRevertSceneFrom(t *testing.T, good map[string]string, then ...map[string]string) *revertScene {
	t.Helper()
	s := &revertScene{t: t, events: record.NewFakeRecorder(20), request: ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "fleet"}}}
	var err error
	if s.git, err = gitserver.Start(gitserver.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.git.Close() })
	if s.repo, err = s.git.Create("fleet"); err != nil {
		t.Fatal(err)
	}
	if s.good, err = s.repo.Commit("good", good); err != nil {
		t.Fatal(err)
	}
	for _, files := range then {
		if _, err := s.repo.Commit("then", files); err != nil {
			t.Fatal(err)
		}
	}
	bad, err := s.repo.Head()
	if err != nil {
		t.Fatal(err)
	}
	s.forge = &proposalForge{t: t, repo: s.repo}
	server := httptest.NewServer(s.forge)
	t.Cleanup(server.Close)
	scheme := hub.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	from, to := digestIn(t, then[len(then)-1]), digestIn(t, good)
	quarantine, err := json.Marshal(v1alpha1.Quarantine{Time: metav1.NewTime(time.Unix(1e9, 0)), Reason: "1 of 3 clusters failed"})
	if err != nil {
		t.Fatal(err)
	}
	s.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fleet", Generation: 1}, Spec: v1alpha1.AddOnSourceSpec{
			URL: s.repo.URL(), Reference: &v1alpha1.GitReference{Branch: "main"}, Interval: metav1.Duration{Duration: time.Minute},
			CommitStatus: &v1alpha1.CommitStatusSpec{
				Provider: "gitea", Address: server.URL + "/team/fleet", SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"}, RevertPullRequest: true,
			},
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "forge"}, Data: map[string][]byte{"token": []byte("word")}},
		&v1alpha1.AddOnRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello-bad", Annotations: map[string]string{v1alpha1.QuarantinedAnnotation: string(quarantine)}}},
		&v1alpha1.AddOnRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hello", Annotations: map[string]string{v1alpha1.SourceAnnotation: "fleet/fleet"}},
			Status: v1alpha1.AddOnRolloutStatus{
				Phase: v1alpha1.PhaseRolledBack, Target: &v1alpha1.Target{Revision: "hello-good", Digest: to, Commit: "main@sha1:" + s.good},
				Override: &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: v1alpha1.Target{Revision: "hello-bad", Digest: from, Commit: "main@sha1:" + bad}},
			},
		},
	).Build()
	s.restart()
	return s
}

// restart begins an operator without memory.
func (s *revertScene) restart() {
	desk := forge.NewDesk(forge.Options{Secrets: s.hub, Sources: s.hub, HTTP: &http.Client{Timeout: 5 * time.Second}, Now: time.Now})
	s.reverter = NewReverter(New(Config{Client: s.hub, Live: s.hub, Events: s.events, Desk: desk, Git: gitsource.Access{AllowLoopback: true, AllowHTTPCredentials: true}}))
}

// visit makes one visit to the end, and returns what follows.
func (s *revertScene) visit() ctrl.Result {
	s.t.Helper()
	result, err := s.reverter.Reconcile(s.t.Context(), s.request)
	if sent := s.reverter.visits.of[s.request.NamespacedName]; sent != nil && err == nil {
		<-sent.done
		result, err = s.reverter.Reconcile(s.t.Context(), s.request)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// propose makes one visit, and returns the condition of the source as "Status Reason: message".
func (s *revertScene) propose() string {
	s.t.Helper()
	s.visit()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), s.request.NamespacedName, source); err != nil {
		s.t.Fatal(err)
	}
	p := &pass{Reconciler: s.reverter.Reconciler, source: source}
	p.setRevertProposed()
	for _, c := range source.Status.Conditions {
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return ""
}

// noted is the pull request that the quarantine of the content names.
func (s *revertScene) noted() string {
	s.t.Helper()
	revision := &v1alpha1.AddOnRevision{}
	if err := s.hub.Get(s.t.Context(), types.NamespacedName{Namespace: "fleet", Name: "hello-bad"}, revision); err != nil {
		s.t.Fatal(err)
	}
	quarantine, _ := v1alpha1.ReadQuarantine(revision.Annotations)
	return quarantine.Proposed
}

// branches are those of the repository besides main, and what they change.
func (s *revertScene) branches() []string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "git", "-C", s.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/heads/addonflow").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for ref := range strings.FieldsSeq(string(out)) {
		changed, err := exec.CommandContext(s.t.Context(), "git", "-C", s.repo.Dir(), "diff", "--name-status", "main", ref).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, strings.Join(strings.Fields(string(changed)), " "))
	}
	return all
}

// TestReverter_ProposesOnceWheneverItIsKilled: a write that fails, before or after it took effect, is where an
// operator ended; the next one knows nothing of it.
func TestReverter_ProposesOnceWheneverItIsKilled(t *testing.T) {
	for failing := range 3 {
		for _, takes := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, %v", failing, takes), func(t *testing.T) {
				s := newRevertScene(t, revertTree("v2", "v2"))
				s.forge.failing, s.forge.takes = failing, takes
				var condition string
				for range 3 {
					condition = s.propose()
					s.restart()
				}
				if !strings.HasPrefix(condition, "True Proposed: hello: pull request 1 restores commit "+s.good[:10]+": https://") {
					t.Errorf("condition %q", condition)
				}
				if got := s.noted(); got != "https://gitea.example/pulls/1" {
					t.Errorf("the quarantine names %q", got)
				}
				if got := s.branches(); !slices.Equal(got, []string{"M hello/all.yaml"}) {
					t.Errorf("branches %q", got)
				}
				if len(s.forge.pulls) != 1 || s.forge.pulls[0]["base"] != "main" || !strings.Contains(s.forge.pulls[0]["body"], "1 of 3 clusters failed") {
					t.Errorf("pulls %v", s.forge.pulls)
				}
			})
		}
	}
}

// TestReverter_ProposesNothingElse: a change that does more or less than taking the content back is not proposed.
func TestReverter_ProposesNothingElse(t *testing.T) {
	with := func(files map[string]string, name, content string) map[string]string {
		files[name] = content
		return files
	}
	kustomized := with(revertTree("v2", "v2"), "hello/kustomization.yaml", "resources: [all.yaml]\nlabels: [{pairs: {team: x}}]\n")
	cases := map[string]struct {
		tree map[string]string
		want string
	}{
		"another object in the file": {
			with(revertTree("v2", "v2"), "hello/all.yaml", revertTree("v2", "")["hello/all.yaml"]+"---\n"+strings.Replace(revertTree("", "")["placement.yaml"], "name: all", "name: more", 1)),
			"it would change other objects on the hub, too",
		},
		"both add-ons in one file": {
			with(with(revertTree("v2", "v2"), "hello/all.yaml", revertTree("v2", "")["hello/all.yaml"]+"---\n"+revertTree("", "v2")["other/all.yaml"]), "other/all.yaml", "# moved\n"),
			"it would remove the add-on other",
		},
		"the placements of the add-on": {
			with(revertTree("v2", "v2"), "hello/all.yaml", strings.Replace(revertTree("v2", "")["hello/all.yaml"], "name: all}", "name: all, rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}", 1)),
			"it would change the policy of hello, too",
		},
		"a kustomization was added": {kustomized, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newRevertScene(t, c.tree)
			condition := s.propose()
			if c.want == "" {
				if !strings.HasPrefix(condition, "True ") {
					t.Errorf("condition %q", condition)
				}
				return
			}
			if !strings.HasPrefix(condition, "False NotRevertible: hello: no pull request restores it: ") || !strings.Contains(condition, c.want) {
				t.Errorf("condition %q", condition)
			}
			if len(s.branches())+len(s.forge.pulls) > 0 {
				t.Errorf("branches %q, pulls %v", s.branches(), s.forge.pulls)
			}
		})
	}
}

// TestReverter_RestoresOnlyFilesThatABuildReads: a file of the add-on is in the root of the repository, so that every
// file is below its directory. What changed is a patch.
func TestReverter_RestoresOnlyFilesThatABuildReads(t *testing.T) {
	tree := func(version string) map[string]string {
		files := revertTree("v0", "v1")
		files["hello.yaml"] = files["hello/all.yaml"]
		delete(files, "hello/all.yaml")
		files["kustomization.yaml"] = "resources: [hello.yaml, other/all.yaml, placement.yaml]\npatches: [{path: patch.yaml, target: {kind: AddOnTemplate, name: hello}}]\n"
		files["patch.yaml"] = "[{op: replace, path: /spec/agentSpec/workload/manifests/0/data/version, value: " + version + "}]\n"
		for _, name := range []string{"README.md", "src/main.go", "src/values.yaml", ".github/workflows/test.yaml"} {
			files[name] = version + "\n"
		}
		return files
	}
	s := newRevertSceneFrom(t, tree("v1"), tree("v2"))
	if condition := s.propose(); !strings.HasPrefix(condition, "True Proposed: ") {
		t.Errorf("condition %q", condition)
	}
	if got := s.branches(); !slices.Equal(got, []string{"M patch.yaml"}) {
		t.Errorf("branches %q", got)
	}
}

// TestReverter_RevertsInABusyRepository: other directories changed more than a pull request can restore.
func TestReverter_RevertsInABusyRepository(t *testing.T) {
	tree := func(version string) map[string]string {
		files := revertTree(version, "v1")
		files["a/large.txt"] = strings.Repeat(version, 2<<20)
		return files
	}
	s := newRevertSceneFrom(t, tree("v1"), tree("v2"))
	if condition := s.propose(); !strings.HasPrefix(condition, "True Proposed: ") {
		t.Errorf("condition %q", condition)
	}
	if got := s.branches(); len(got) != 1 || !strings.HasPrefix(got[0], "M hello/all.yaml") {
		t.Errorf("branches %q", got)
	}
}

// TestReverter_TriesRarelyInARepositoryAboveTheLimits: a directory that differs has more entries than are compared, which
// only a later commit can change. The names are long, because a directory counts by its size.
func TestReverter_TriesRarelyInARepositoryAboveTheLimits(t *testing.T) {
	tree := func(version string) map[string]string {
		files := revertTree(version, "v1")
		for n := range 700 {
			files[fmt.Sprintf("a/%0200d.txt", n)] = version
		}
		return files
	}
	s := newRevertSceneFrom(t, tree("v1"), tree("v2"))
	condition := s.propose()
	if want := "False NotRevertible: hello: no pull request restores it: "; !strings.HasPrefix(condition, want) || !strings.Contains(condition, "more files and directories than are read") {
		t.Errorf("condition %q", condition)
	}
	if outcomes, _ := s.reverter.reverts.get(s.request.NamespacedName); len(outcomes) != 1 || outcomes[0].again != revertRarely {
		t.Errorf("outcomes %+v", outcomes)
	}
}

// TestReverter_RevertsBesideAChart: a chart in a registry, which is not read, is no reason against the revert of another
// add-on. Its own add-on is not restored.
func TestReverter_RevertsBesideAChart(t *testing.T) {
	for addOn, want := range map[string]string{
		"remote": "True Proposed: ",
		"hello":  "False NotRevertible: hello: no pull request restores it: chart charts.example.com/hello:1.0.1@sha256:" + strings.Repeat("0", 64) + " is in a registry",
	} {
		t.Run(addOn, func(t *testing.T) {
			tree := revertTree("v2", "v2")
			s := newRevertScene(t, tree)
			tree[addOn+"/all.yaml"] = strings.NewReplacer("agent", addOn, "DIGEST", strings.Repeat("0", 64)).Replace(packaged)
			if _, err := s.repo.Commit("a chart", tree); err != nil {
				t.Fatal(err)
			}
			source := &v1alpha1.AddOnSource{}
			if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
				t.Fatal(err)
			}
			source.Spec.Registries = []v1alpha1.RegistrySpec{{Host: "charts.example.com"}}
			if err := s.hub.Update(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			if condition := s.propose(); !strings.HasPrefix(condition, want) {
				t.Errorf("condition %q", condition)
			}
		})
	}
}

// TestReverter_LeavesABranchOfAnotherAlone: a branch of the name that changes something else is not proposed.
func TestReverter_LeavesABranchOfAnotherAlone(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v2"))
	s.forge.failing, s.forge.takes = 2, false // the branch is made, and not proposed
	s.propose()
	if err := s.repo.SetRef(ref(t, s.repo), s.good); err != nil {
		t.Fatal(err)
	}
	s.restart()
	if condition := s.propose(); !strings.Contains(condition, "exists and changes something else") || len(s.forge.pulls) > 0 {
		t.Errorf("condition %q, pulls %v", condition, s.forge.pulls)
	}
}

// TestReverter_DoesNotNameARequestThatChangesSomethingElse: the operator makes the branch, and may not open requests. Another
// author pushes to the branch and opens the request, or the branch is gone. A request that was named is named no longer.
func TestReverter_DoesNotNameARequestThatChangesSomethingElse(t *testing.T) {
	for name, named := range map[string]bool{"opened by another author": false, "opened by the operator": true} {
		t.Run(name, func(t *testing.T) {
			s := newRevertScene(t, revertTree("v2", "v2"))
			if !named {
				s.forge.failing, s.forge.takes = 2, false
			}
			s.propose()
			branch := ref(t, s.repo)
			made, err := exec.CommandContext(t.Context(), "git", "-C", s.repo.Dir(), "rev-parse", branch).Output()
			if err != nil {
				t.Fatal(err)
			}
			if !named {
				s.forge.pulls = []map[string]string{{"head": strings.TrimPrefix(branch, "refs/heads/")}}
			}
			look := func() string {
				t.Helper()
				s.restart()
				return s.propose()
			}
			if got := look(); !strings.HasPrefix(got, "True Proposed: ") || s.noted() == "" {
				t.Errorf("a request with the commit of the operator: %q, noted %q", got, s.noted())
			}
			if err := s.repo.SetRef(branch, s.good); err != nil {
				t.Fatal(err)
			}
			if got := look(); !strings.HasPrefix(got, "False NotRevertible: ") || !strings.HasSuffix(got, " exists and changes something else; it can be deleted; see pull request 1") || s.noted() != "" {
				t.Errorf("a request with another commit: %q, noted %q", got, s.noted())
			}
			if out, err := exec.CommandContext(t.Context(), "git", "-C", s.repo.Dir(), "update-ref", "-d", branch).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := look(); !strings.HasSuffix(got, " does not exist; see pull request 1") || s.noted() != "" || len(s.branches()) > 0 {
				t.Errorf("a request without its branch: %q, noted %q, branches %q", got, s.noted(), s.branches())
			}
			if err := s.repo.SetRef(branch, strings.TrimSpace(string(made))); err != nil {
				t.Fatal(err)
			}
			if got := look(); !strings.HasPrefix(got, "True Proposed: ") || s.noted() == "" || len(s.forge.pulls) != 1 {
				t.Errorf("the branch is as the operator made it: %q, noted %q, %d pulls", got, s.noted(), len(s.forge.pulls))
			}
		})
	}
}

// ref is the only branch of a proposal.
func ref(t *testing.T, repo *gitserver.Repo) string {
	t.Helper()
	refs, err := exec.CommandContext(t.Context(), "git", "-C", repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/heads/addonflow").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(refs))
}

// TestReverter_NamesThePermission: if the token may not push, the condition names the missing permission; with a
// better token, the pull request is opened.
func TestReverter_NamesThePermission(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v2"))
	s.forge.code = http.StatusForbidden
	if got := s.propose(); !strings.HasPrefix(got, "False PermissionMissing: hello: no pull request restores it: ") || !strings.HasSuffix(got, "; it needs write:repository, of a user who may push branches") {
		t.Errorf("condition %q", got)
	}
	s.forge.code = 0
	if got := s.propose(); !strings.HasPrefix(got, "True Proposed: ") {
		t.Errorf("condition %q", got)
	}
	if e := <-s.events.Events; !strings.HasPrefix(e, "Warning PermissionMissing hello: ") {
		t.Errorf("event %q", e)
	}
}

// TestReverter_ProposesNothingThatGitTookBack: without the option, after other content in Git, and for content that
// Git itself blocks, nothing is read or written.
func TestReverter_ProposesNothingThatGitTookBack(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v2"))
	change := func(edit func(*v1alpha1.AddOnRollout)) {
		t.Helper()
		r := &v1alpha1.AddOnRollout{}
		if err := s.hub.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "hello"}, r); err != nil {
			t.Fatal(err)
		}
		edit(r)
		if err := s.hub.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		edit func(*v1alpha1.AddOnRollout)
	}{
		{"blocked", func(r *v1alpha1.AddOnRollout) { r.Status.Override.Kind = v1alpha1.OverrideBlocked }},
		{"on its way", func(r *v1alpha1.AddOnRollout) {
			r.Status.Override.Kind, r.Status.Phase = v1alpha1.OverrideRecall, v1alpha1.PhaseRollingBack
		}},
		{"newer content", func(r *v1alpha1.AddOnRollout) { r.Status.Override, r.Status.Phase = nil, v1alpha1.PhaseSucceeded }},
	} {
		change(c.edit)
		if got := s.propose(); got != "" || s.forge.writes > 0 {
			t.Errorf("%s: condition %q, %d writes", c.name, got, s.forge.writes)
		}
	}
}

// TestReturned_ToOtherContentWakesTheReverter: the pull request of before restores what the clusters no longer run. If
// the two contents render the same there, the rollout is back in one turn.
func TestReturned_ToOtherContentWakesTheReverter(t *testing.T) {
	before := &v1alpha1.AddOnRollout{}
	before.Status.Phase, before.Status.Target = v1alpha1.PhaseRolledBack, &v1alpha1.Target{Digest: "v2", Commit: "main@sha1:bbb"}
	before.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: v1alpha1.Target{Digest: "v3", Commit: "main@sha1:ccc"}}
	before.Name = "hello"
	after := before.DeepCopy()
	after.Status.Target = &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:aaa"}
	if !returned().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("no pull request restores v1")
	}
	if returned().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after.DeepCopy()}) {
		t.Error("an update without a change wakes the reverter")
	}
}

// TestReverter_ContinuesAfterTheBranchMoved: another team merges between the branch of the proposal and its pull request.
// A commit that was put below the change is one of another, whatever the last one changes.
func TestReverter_ContinuesAfterTheBranchMoved(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		s := newRevertScene(t, revertTree("v2", "v1"))
		s.forge.failing, s.forge.takes = 2, false // the branch is made, and not proposed
		s.propose()
		if foreign {
			if err := s.repo.ForcePush(s.good); err != nil {
				t.Fatal(err)
			}
		} else if _, err := s.repo.Commit("another team merges", revertTree("v2", "v3")); err != nil {
			t.Fatal(err)
		}
		if foreign {
			if _, err := s.repo.Commit("other content", revertTree("v2", "v3")); err != nil {
				t.Fatal(err)
			}
		}
		s.restart()
		condition := s.propose()
		if foreign && (!strings.Contains(condition, "changes something else") || len(s.forge.pulls) > 0) {
			t.Errorf("foreign: condition %q, pulls %v", condition, s.forge.pulls)
		}
		if !foreign && (!strings.HasPrefix(condition, "True Proposed: ") || len(s.forge.pulls) != 1) {
			t.Errorf("condition %q, pulls %v", condition, s.forge.pulls)
		}
	}
}

// TestReverter_KnowsItsRequestAfterALaterCommitToTheSameFile: the later commit keeps the content of the add-on, so that the
// clusters stay on the earlier content. Then the operator restarts. Newer content of the add-on ends the proposal.
func TestReverter_KnowsItsRequestAfterALaterCommitToTheSameFile(t *testing.T) {
	v2 := revertTree("v2", "")["hello/all.yaml"]
	for name, c := range map[string]struct{ later, want string }{
		"the policy changed": {
			strings.Replace(v2, "name: all}", "name: all, rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}", 1), "True Proposed: hello: pull request 1 restores ",
		},
		"a comment was added": {"# of another team\n" + v2, "True Proposed: hello: pull request 1 restores "},
		"the content changed": {
			revertTree("v3", "")["hello/all.yaml"], "False NotRevertible: hello: no pull request restores it: the newest commit does not declare the content that was rolled back; see pull request 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRevertScene(t, revertTree("v2", "v2"))
			if condition := s.propose(); !strings.HasPrefix(condition, "True Proposed: ") {
				t.Fatalf("condition %q", condition)
			}
			if _, err := s.repo.Commit("later", map[string]string{"hello/all.yaml": c.later}); err != nil {
				t.Fatal(err)
			}
			s.restart()
			if condition := s.propose(); !strings.HasPrefix(condition, c.want) || (s.noted() != "") != strings.HasPrefix(c.want, "True") || len(s.forge.pulls) != 1 {
				t.Errorf("condition %q, noted %q, %d pulls", condition, s.noted(), len(s.forge.pulls))
			}
		})
	}
}

// TestReverter_WaitsForNoServerThatHangs: a Git server that answers nothing holds no worker. A source that wants no pull
// request any more ends the visit.
func TestReverter_WaitsForNoServerThatHangs(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v1"))
	asked, left := make(chan struct{}, 10), make(chan struct{}, 10)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	defer hangs.Close()
	edit := func(change func(*v1alpha1.AddOnSource)) {
		source := &v1alpha1.AddOnSource{}
		if err := s.hub.Get(t.Context(), s.request.NamespacedName, source); err != nil {
			t.Fatal(err)
		}
		change(source)
		if err := s.hub.Update(t.Context(), source); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(source *v1alpha1.AddOnSource) { source.Spec.URL = hangs.URL + "/fleet.git" })
	if _, err := s.reverter.Reconcile(t.Context(), s.request); err != nil {
		t.Fatal(err)
	}
	if outcomes, known := s.reverter.reverts.get(s.request.NamespacedName); known {
		t.Errorf("the worker waited for the server: %+v", outcomes)
	}
	<-asked
	edit(func(source *v1alpha1.AddOnSource) { source.Spec.CommitStatus.RevertPullRequest = false })
	if _, err := s.reverter.Reconcile(t.Context(), s.request); err != nil {
		t.Fatal(err)
	}
	<-left
}

// TestReverter_ForgetsAProposalWhoseReasonEndsDuringTheVisit: the content is unblocked while its pull request is opened. The
// end of the visit and the change of the rollout are one request.
func TestReverter_ForgetsAProposalWhoseReasonEndsDuringTheVisit(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v1"))
	if _, err := s.reverter.Reconcile(t.Context(), s.request); err != nil {
		t.Fatal(err)
	}
	<-s.reverter.visits.of[s.request.NamespacedName].done
	ro := &v1alpha1.AddOnRollout{}
	if err := s.hub.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "hello"}, ro); err != nil {
		t.Fatal(err)
	}
	ro.Status.Override, ro.Status.Phase = nil, v1alpha1.PhaseSucceeded
	if err := s.hub.Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reverter.Reconcile(t.Context(), s.request); err != nil {
		t.Fatal(err)
	}
	if outcomes, _ := s.reverter.reverts.get(s.request.NamespacedName); len(outcomes) > 0 {
		t.Errorf("the source still shows %+v", outcomes)
	}
}

// TestReverter_TriesAgainAfterAMistakeOfAnother: the newest commit cannot be built at the moment of the rollback.
func TestReverter_TriesAgainAfterAMistakeOfAnother(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v1"))
	broken := revertTree("v2", "v1")
	broken["other/all.yaml"] = "apiVersion: v1\nkind: Nonsense\n"
	if _, err := s.repo.Commit("a typo of another team", broken); err != nil {
		t.Fatal(err)
	}
	if result := s.visit(); result.RequeueAfter != revertRarely {
		t.Errorf("tried again after %s", result.RequeueAfter)
	}
	before := &v1alpha1.AddOnSource{}
	after := before.DeepCopy()
	after.Status.LastAppliedRevision = "main@sha1:2"
	if !hubclient.NewestCommitChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) || hubclient.NewestCommitChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) {
		t.Error("a commit that is applied is not what it is tried again for")
	}
	if _, err := s.repo.Commit("fixed", revertTree("v2", "v2")); err != nil {
		t.Fatal(err)
	}
	if condition := s.propose(); !strings.HasPrefix(condition, "True Proposed: ") {
		t.Errorf("condition %q", condition)
	}
}

// TestReverter_TriesMoreRarelyWhileTheReasonIsTheSame: a rollback may last for weeks. Another reason begins the pauses anew.
func TestReverter_TriesMoreRarelyWhileTheReasonIsTheSame(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v1"))
	broken := func(kind string) {
		t.Helper()
		tree := revertTree("v2", "v1")
		tree["other/all.yaml"] = "apiVersion: v1\nkind: " + kind + "\n"
		if _, err := s.repo.Commit("a typo of another team", tree); err != nil {
			t.Fatal(err)
		}
	}
	broken("Nonsense")
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if result := s.visit(); result.RequeueAfter != want*time.Minute {
			t.Errorf("tried again after %s, want %d minutes", result.RequeueAfter, want)
		}
	}
	broken("Rubbish")
	if result := s.visit(); result.RequeueAfter != revertRarely {
		t.Errorf("another reason: tried again after %s", result.RequeueAfter)
	}
}

// While clusters run content that Git does not declare, the source says which add-on, why, and how Git agrees again.
func TestTheSourceSaysWhichAddOnsWereRolledBack(t *testing.T) {
	s := newRevertScene(t, revertTree("v2", "v2"))
	condition := func(change func(*v1alpha1.AddOnRollout)) string {
		t.Helper()
		ro := &v1alpha1.AddOnRollout{}
		if err := s.hub.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "hello"}, ro); err != nil {
			t.Fatal(err)
		}
		change(ro)
		if err := s.hub.Update(t.Context(), ro); err != nil {
			t.Fatal(err)
		}
		source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fleet"}}
		conditions.MarkTrue(source, v1alpha1.OverriddenCondition, v1alpha1.RollingBackReason, "of an earlier pass")
		p := &pass{Reconciler: s.reverter.Reconciler, source: source}
		if err := p.setOverridden(t.Context()); err != nil {
			t.Fatal(err)
		}
		return conditions.GetReason(source, v1alpha1.OverriddenCondition) + " " + conditions.GetMessage(source, v1alpha1.OverriddenCondition)
	}
	const back = "rolled back to main@good (git restore -SWs good PATH ':!*addonrollout.*')"
	for _, tc := range []struct {
		change func(*v1alpha1.AddOnRollout)
		want   string
	}{
		{func(ro *v1alpha1.AddOnRollout) { ro.Status.Message = back }, "RolledBack hello: " + back},
		{func(ro *v1alpha1.AddOnRollout) { ro.Status.Phase = v1alpha1.PhaseRollingBack }, "RollingBack hello: " + back},
		{func(ro *v1alpha1.AddOnRollout) { ro.Status.Override.Kind = v1alpha1.OverrideFinish }, " "},
		{func(ro *v1alpha1.AddOnRollout) { ro.Status.Override = nil }, " "},
	} {
		if got := condition(tc.change); got != tc.want {
			t.Errorf("the condition is %q, want %q", got, tc.want)
		}
	}
}
