//go:build gitea

package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/leaks"
	"github.com/addonflow/addonflow/test/sample"
)

// team is the organization of all repositories.
const team = "team"

// scene is one add-on with a private repository at Gitea, a source and placements of its own. The
// source looks once an hour, so that whatever happens sooner was caused by a webhook.
type scene struct {
	ctx   context.Context //nolint:containedctx // a scene lives as long as its spec
	addOn string
	// repository is its owner and name.
	repository string
	clone      *Clone
}

// sourceOption changes the source of a scene, and its Secret for Git, before they are created.
type sourceOption func(s *scene, source *v1alpha1.AddOnSource, access *corev1.Secret)

// newScene creates the repository, lets the operator's user read it and write statuses there,
// places the clusters, declares the source and enters the webhook at Gitea as `addonflow webhook`
// says.
func newScene(ctx context.Context, addOn string, change ...sourceOption) *scene {
	GinkgoHelper()
	s := &scene{ctx: ctx, addOn: addOn, repository: team + "/" + addOn}
	Expect(world.Fleet.Place(ctx, fleet.Placement{Namespace: demo.Namespace, Name: addOn + "-all", Clusters: clusters(fleetSize)})).To(Succeed())
	Expect(world.Fleet.Place(ctx, fleet.Placement{Namespace: demo.Namespace, Name: addOn + "-canary", Clusters: clusters(1)})).To(Succeed())
	Expect(ana.Do(ctx, http.MethodPost, "orgs/"+team+"/repos", map[string]any{"name": addOn, "private": true, "default_branch": "main"}, nil)).To(Succeed())
	Expect(ana.Do(ctx, http.MethodPut, "repos/"+s.repository+"/collaborators/"+robot.User, map[string]any{"permission": "write"}, nil)).To(Succeed())
	var err error
	s.clone, err = forge.NewClone(ctx, filepath.Join(world.Dir, "clones", addOn), s.repository, ana.User, password)
	Expect(err).NotTo(HaveOccurred())
	s.push("begin", map[string]string{"addons/README.md": "nothing yet\n"})
	s.declare(change...)
	return s
}

// Names of the Secrets of a scene.
func (s *scene) accessSecret() string { return s.addOn + "-git" }
func (s *scene) tokenSecret() string  { return s.addOn + "-forge" }
func (s *scene) hookSecret() string   { return s.addOn + "-hook" }

// declare creates the source with its Secrets, and the webhook at Gitea.
func (s *scene) declare(change ...sourceOption) {
	GinkgoHelper()
	access := s.secret(s.accessSecret(), map[string]string{
		"username": robot.User, "password": s.token(s.addOn+"-read", "read:repository"), "ca.crt": string(forge.CA()),
	})
	source := &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: s.addOn},
		Spec: v1alpha1.AddOnSourceSpec{
			URL: forge.URL() + "/" + s.repository + ".git", Reference: &v1alpha1.GitReference{Branch: "main"}, Path: "addons",
			Interval:  metav1.Duration{Duration: time.Hour},
			SecretRef: &meta.LocalObjectReference{Name: s.accessSecret()},
			Webhook:   &v1alpha1.WebhookSpec{Type: "gitea", SecretRef: meta.LocalObjectReference{Name: s.hookSecret()}},
			CommitStatus: &v1alpha1.CommitStatusSpec{
				Provider: "gitea", Address: forge.URL() + "/" + s.repository, SecretRef: &meta.LocalObjectReference{Name: s.tokenSecret()},
			},
		},
	}
	for _, c := range change {
		c(s, source, access)
	}
	token := s.secret(s.tokenSecret(), map[string]string{
		"token": s.token(s.addOn+"-status", "write:repository"), "ca.crt": string(forge.CA()),
	})
	secret := "hook-of-" + s.addOn
	for _, object := range []client.Object{access, token, s.secret(s.hookSecret(), map[string]string{"token": secret}), source} {
		Expect(world.Client.Create(s.ctx, object)).To(Succeed())
	}
	Eventually(s.source).Should(HaveField("Status.WebhookPath", Not(BeEmpty())))
	printed := addonflow(s.ctx, "webhook", s.addOn, "-n", demo.Namespace, "--base-url", "http://"+hooks)
	Expect(entry(printed, "Content type")).To(Equal("application/json"))
	Expect(entry(printed, "Trigger on")).To(Equal("Push events"))
	Expect(ana.Do(s.ctx, http.MethodPost, "repos/"+s.repository+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"push"},
		"config": map[string]string{"url": entry(printed, "URL"), "http_method": entry(printed, "HTTP method"), "content_type": "json", "secret": secret},
	}, nil)).To(Succeed())
}

// entry is what `addonflow webhook` prints to be entered in a field of the forge.
func entry(printed, field string) string {
	GinkgoHelper()
	found := regexp.MustCompile(`(?m)^` + field + `: +(\S.*)$`).FindStringSubmatch(printed)
	Expect(found).NotTo(BeNil(), printed)
	return found[1]
}

func (s *scene) secret(name string, values map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: name}, StringData: values}
}

// tokens has every token that the suite created.
var tokens struct {
	sync.Mutex
	all []string
}

// token creates an access token of the operator's user.
func (s *scene) token(name string, scopes ...string) string {
	GinkgoHelper()
	value, err := robot.Token(s.ctx, name, scopes...)
	Expect(err).NotTo(HaveOccurred())
	tokens.Lock()
	defer tokens.Unlock()
	tokens.all = append(tokens.all, value)
	return value
}

// planted begins every value that the suite puts into a URL, a variable or a key to be found again.
const planted = "planted-9c41"

// sealed is the add-on with a planted variable, which its Deployment uses.
func (s *scene) sealed(tag, policy string) map[string]string {
	files := s.tree(tag, policy)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"], "--cluster=", "--cluster={{SEALED}}", 1)
	files["addons/addon.yaml"] = strings.Replace(files["addons/addon.yaml"], "  installStrategy:", `  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
    defaultConfig: {namespace: default, name: `+s.addOn+`}
  installStrategy:`, 1)
	files["addons/config.yaml"] = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {namespace: default, name: ` + s.addOn + `}
spec:
  customizedVariables:
  - {name: SEALED, value: ` + planted + `-variable}
`
	return files
}

// secretsShown names the credentials that occur outside of Secrets and URLs: in the operator's log and metrics, in events,
// statuses and other objects, and at the forge. Tokens that were revoked meanwhile count, too. It names the planted
// variables that occur in all of these but the works and what their author wrote.
func secretsShown(ctx context.Context) []string {
	GinkgoHelper()
	texts := atForge(ctx)
	texts["operator.log"] = []byte(operatorLog())
	var served string
	Eventually(func() (_ string, err error) {
		served, err = operatorMetrics(ctx)
		return served, err
	}).Should(ContainSubstring("gotk_reconcile_duration_seconds"), "the last spec may have restarted the operator")
	texts["the metrics"] = []byte(served)
	hub, err := leaks.Read(ctx, world.Hub.Config(), world.Client)
	Expect(err).NotTo(HaveOccurred())
	found, err := hub.Shown(texts, planted)
	Expect(err).NotTo(HaveOccurred())
	tokens.Lock()
	defer tokens.Unlock()
	for place, text := range texts {
		for _, token := range tokens.all {
			for _, at := range leaks.Appearances(text, token) {
				found = append(found, fmt.Sprintf("a token in %s: %s", place, at))
			}
		}
	}
	return found
}

// atForge is what the repositories have at the forge besides their files: statuses, comments and pull requests.
func atForge(ctx context.Context) map[string][]byte {
	GinkgoHelper()
	places := map[string][]byte{}
	read := func(place, path string, into any) {
		GinkgoHelper()
		var raw json.RawMessage
		Expect(ana.Do(ctx, http.MethodGet, path, nil, &raw)).To(Succeed())
		places[place] = raw
		if into != nil {
			Expect(json.Unmarshal(raw, into)).To(Succeed())
		}
	}
	var repositories []struct {
		Name string `json:"full_name"`
	}
	read("repositories", "orgs/"+team+"/repos?limit=50", &repositories)
	statuses := 0
	for _, r := range repositories {
		read("comments of "+r.Name, "repos/"+r.Name+"/issues/comments?limit=50", nil)
		var commits []struct {
			SHA string `json:"sha"`
		}
		read("commits of "+r.Name, "repos/"+r.Name+"/commits?limit=50&stat=false&files=false", &commits)
		var pulls []struct {
			Head struct {
				SHA string `json:"sha"`
			} `json:"head"`
		}
		read("pull requests of "+r.Name, "repos/"+r.Name+"/pulls?state=all&limit=50", &pulls)
		for _, pull := range pulls {
			commits = append(commits, pull.Head)
		}
		for _, commit := range commits {
			var of []json.RawMessage
			read("statuses of "+commit.SHA, "repos/"+r.Name+"/statuses/"+commit.SHA+"?limit=50", &of)
			statuses += len(of)
		}
	}
	Expect(statuses).NotTo(BeZero())
	return places
}

// setToken gives the operator another token for statuses.
func (s *scene) setToken(token string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"stringData":{"token":%q}}`, token)
	Expect(world.Client.Patch(s.ctx, s.secret(s.tokenSecret(), nil), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// push commits files and pushes them to main.
func (s *scene) push(message string, files map[string]string) string {
	GinkgoHelper()
	sha, err := s.clone.Commit(s.ctx, message, files)
	Expect(err).NotTo(HaveOccurred())
	_, err = s.clone.Git(s.ctx, "push", "--quiet", "origin", "HEAD")
	Expect(err).NotTo(HaveOccurred())
	return sha
}

// pushTag pushes the add-on at a tag of its image, with a policy.
func (s *scene) pushTag(tag, policy string) string {
	GinkgoHelper()
	return s.push(tag, s.tree(tag, policy))
}

// tree is the add-on as files.
func (s *scene) tree(tag, policy string) map[string]string {
	return map[string]string{
		"addons/template.yaml": sample.Template(s.addOn, tag),
		"addons/addon.yaml":    sample.AddOn(s.addOn, s.addOn+"-all"),
		"addons/rollout.yaml":  sample.Rollout(s.addOn, policy),
	}
}

// stages is the usual policy: the canary, then the rest.
func (s *scene) stages() string {
	return fmt.Sprintf(`  stages:
  - name: canary
    placement: {namespace: default, name: %[1]s-canary}
    minSuccessTime: 0s
    progressDeadline: 2m
  - name: everyone
    placement: {namespace: default, name: %[1]s-all}
    maxConcurrency: 2
    progressDeadline: 2m
`, s.addOn)
}

// atV1 brings v1 to every cluster.
func (s *scene) atV1() {
	GinkgoHelper()
	sha := s.pushTag("v1", s.stages())
	s.awaitSuccess(sha)
	Eventually(s.shows).WithArguments(sha).Should(HavePrefix("success: "))
}

func (s *scene) source() *v1alpha1.AddOnSource {
	var source v1alpha1.AddOnSource
	_ = world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, &source) // absent: empty
	return &source
}

// sourceCondition is a condition of the source as "Status Reason: message".
func (s *scene) sourceCondition(kind string) string {
	return conditionOf(s.source().Status.Conditions, kind)
}

// rolloutCondition is a condition of the rollout as "Status Reason: message".
func (s *scene) rolloutCondition(kind string) string {
	return conditionOf(s.rollout().Status.Conditions, kind)
}

func conditionOf(conditions []metav1.Condition, kind string) string {
	c := apimeta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// rollout reads the rollout; empty while it does not exist.
func (s *scene) rollout() *v1alpha1.AddOnRollout {
	var ro v1alpha1.AddOnRollout
	_ = world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, &ro) // absent: empty
	return &ro
}

// awaitSuccess waits until the rollout of a commit has succeeded.
func (s *scene) awaitSuccess(sha string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ro := s.rollout()
		g.Expect(ro.Status.Target).NotTo(BeNil(), s.sourceCondition("Ready"))
		g.Expect(ro.Status.Target.Commit).To(HaveSuffix(sha), ro.Status.Message)
		g.Expect(ro.Status.Phase).To(Equal(v1alpha1.PhaseSucceeded), ro.Status.Message)
	}).Should(Succeed())
}

// running are the images whose pods are ready, by cluster.
func (s *scene) running() map[string]string {
	out := map[string]string{}
	for _, n := range clusters(fleetSize) {
		w := world.Fleet.Running(n)["Deployment/open-cluster-management-agent-addon/"+s.addOn]
		out[n] = strings.TrimPrefix(strings.Join(w.ReadyImages, ","), "example.com/"+s.addOn+":")
	}
	return out
}

// allAt is what running returns when every cluster runs a tag.
func allAt(tag string) types.GomegaMatcher {
	want := map[string]string{}
	for _, n := range clusters(fleetSize) {
		want[n] = tag
	}
	return Equal(want)
}

// wrote reports on how many clusters the works of the add-on have the image tag.
func (s *scene) wrote(tag string) int {
	var works workv1.ManifestWorkList
	Expect(world.Client.List(s.ctx, &works, client.MatchingLabels{"open-cluster-management.io/addon-name": s.addOn})).To(Succeed())
	n := 0
	for i := range works.Items {
		for _, m := range works.Items[i].Spec.Workload.Manifests {
			if strings.Contains(string(m.Raw), "example.com/"+s.addOn+":"+tag+`"`) {
				n++
			}
		}
	}
	return n
}

// shows is what Gitea's API shows of a commit: state and text of the newest status of the source's
// context, or of one below it. Without a status it is empty.
func (s *scene) shows(sha string, parts ...string) string {
	all := s.statuses(sha, parts...)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// statuses returns all statuses of one context of a commit at Gitea, oldest first. Without parts
// the context is that of the source, with parts one below it. While Gitea does not answer, it
// returns nothing.
func (s *scene) statuses(sha string, parts ...string) []string {
	shown, err := ana.Statuses(s.ctx, s.repository, sha)
	if err != nil {
		return nil
	}
	context := strings.Join(append([]string{"addonflow/" + s.addOn}, parts...), "/")
	var all []string
	for _, status := range shown {
		if status.Context == context {
			all = append(all, status.String())
		}
	}
	return all
}

// hold makes clusters keep back new pods until they are released, or the spec ends.
func hold(members ...string) {
	for _, name := range members {
		world.Fleet.Hold(name)
	}
	DeferCleanup(func() { release(members...) })
}

func release(members ...string) {
	for _, name := range members {
		world.Fleet.Release(name)
	}
}

// refused expects that Gitea refused a request, and returns the code and what it says.
func refused(err error) (int, string) {
	GinkgoHelper()
	answer, ok := errors.AsType[*RefusedError](err)
	Expect(ok).To(BeTrue(), "not refused: %v", err)
	return answer.Code, answer.Message
}

// addonflow runs a command of the hub's admin, and returns what it prints.
func addonflow(ctx context.Context, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, options.Binary, args...)
	command.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + world.Kubeconfig})
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	GinkgoWriter.Println(string(out))
	return string(out)
}
