package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/sample"
)

// agentNamespace is where the add-ons run on the managed clusters.
const agentNamespace = "open-cluster-management-agent-addon"

// scene is one add-on with a repository, a source and placements of its own.
type scene struct {
	ctx   context.Context //nolint:containedctx // a scene lives as long as its spec
	addOn string
	repo  *gitserver.Repo
	// sharing is the source of the add-on; empty: it has the name of the add-on.
	sharing string
}

// newScene selects the add-on's clusters with the placements <add-on>-all and <add-on>-canary, the first of them, and
// declares its source. The repository has no add-on yet.
func newScene(ctx context.Context, addOn string, members []string, groups ...fleet.Group) *scene {
	GinkgoHelper()
	s := &scene{ctx: ctx, addOn: addOn}
	s.place(addOn+"-all", members, groups...)
	s.place(addOn+"-canary", members[:1])
	var err error
	s.repo, err = world.Git.Create(addOn) //nolint:contextcheck // git on this machine, at once
	Expect(err).NotTo(HaveOccurred())
	source := &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: addOn},
		Spec: v1alpha1.AddOnSourceSpec{
			URL: s.repo.URL(), Reference: &v1alpha1.GitReference{Branch: "main"}, Path: "addons",
			Interval: metav1.Duration{Duration: time.Hour},
			CommitStatus: &v1alpha1.CommitStatusSpec{
				Provider: "gitea", Address: world.Forge.Address(demo.ForgeRepository), SecretRef: &meta.LocalObjectReference{Name: "fleet-forge"},
			},
		},
	}
	s.push("begin", map[string]string{"addons/README.md": "nothing yet"}) //nolint:contextcheck // git on this machine, at once
	Expect(world.Client.Create(ctx, source)).To(Succeed())
	return s
}

func (s *scene) place(name string, members []string, groups ...fleet.Group) {
	GinkgoHelper()
	Expect(world.Fleet.Place(s.ctx, fleet.Placement{Namespace: demo.Namespace, Name: name, Clusters: members, Groups: groups})).To(Succeed())
}

// push commits files without requesting a reconcile.
func (s *scene) push(message string, files map[string]string) string {
	GinkgoHelper()
	sha, err := s.repo.Commit(message, files)
	Expect(err).NotTo(HaveOccurred())
	return sha
}

// submit commits files and requests a reconcile.
func (s *scene) submit(message string, files map[string]string) string {
	GinkgoHelper()
	sha := s.push(message, files)
	s.reconcile()
	return sha
}

// commit submits the add-on at a tag with a policy: YAML of the fields below spec of the AddOnRollout, indented by two
// spaces; "" for none. The result of stages is an example.
func (s *scene) commit(tag, policy string) string {
	GinkgoHelper()
	return s.submit(tag, s.tree(tag, policy))
}

// deliver submits files and waits for their success.
func (s *scene) deliver(message string, files map[string]string) string {
	GinkgoHelper()
	sha := s.submit(message, files)
	s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
	return sha
}

// revert reverts a commit with git revert, and requests a reconcile.
func (s *scene) revert(sha string) string {
	GinkgoHelper()
	reverted, err := s.repo.Revert(sha)
	Expect(err).NotTo(HaveOccurred())
	s.reconcile()
	return reverted
}

// reconcile asks for a look at Git.
func (s *scene) reconcile() {
	GinkgoHelper()
	s.patchSource(fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano)))
}

func (s *scene) patchSource(patch string) {
	GinkgoHelper()
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: s.addOn}}
	Expect(world.Client.Patch(s.ctx, source, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// stages is the usual policy: the canary, then the rest, limit at a time.
func (s *scene) stages(soak, deadline, limit string, failures int) string {
	return fmt.Sprintf(`  stages:
  - name: canary
    placement: {namespace: default, name: %[1]s-canary}
    minSuccessTime: %[2]s
    progressDeadline: %[3]s
  - name: everyone
    placement: {namespace: default, name: %[1]s-all}
    maxConcurrency: %[4]s
    progressDeadline: %[3]s
    maxFailures: %[5]d
`, s.addOn, soak, deadline, limit, failures)
}

// atV1 rolls out v1 to every cluster of the scene with the usual policy, which it returns.
func (s *scene) atV1(soak, deadline, limit string, failures int) string {
	GinkgoHelper()
	policy := s.stages(soak, deadline, limit, failures)
	s.awaitPhase(s.commit("v1", policy), v1alpha1.PhaseSucceeded)
	return policy
}

// tree is the add-on as files. An empty policy has no addonrollout.yaml.
func (s *scene) tree(tag, policy string) map[string]string {
	files := map[string]string{
		"addons/template.yaml": sample.Template(s.addOn, tag),
		"addons/addon.yaml":    sample.AddOn(s.addOn, s.addOn+"-all"),
	}
	if policy != "" {
		files["addons/rollout.yaml"] = sample.Rollout(s.addOn, policy)
	}
	return files
}

// annotateRollout sets an annotation of the rollout.
func (s *scene) annotateRollout(key, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	Expect(world.Client.Patch(s.ctx, s.rollout(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// handMade installs the add-on by hand on a cluster.
func (s *scene) handMade(cluster string, annotations map[string]string) {
	GinkgoHelper()
	Expect(world.Client.Create(s.ctx, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn, Annotations: annotations},
	})).To(Succeed())
}

// discard deletes the add-on of a cluster as its owner would.
func (s *scene) discard(cluster string, policy metav1.DeletionPropagation) {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn}}
	Expect(world.Client.Delete(s.ctx, addOn, client.PropagationPolicy(policy))).To(Succeed())
}

// annotateAddOn sets an annotation of a cluster's add-on; nil removes it.
func (s *scene) annotateAddOn(cluster, annotation string) {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn}}
	Expect(world.Client.Patch(s.ctx, addOn, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{`+annotation+`}}}`)))).To(Succeed())
}

// wave commits v2 while every cluster but the canary holds back its new pods; the canary too if
// it alone is to move. It returns the commit, and the generations from before, when the given
// number of clusters has moved.
func (s *scene) wave(policy string, members []string, moving int) (before map[string]int64, sha string) {
	GinkgoHelper()
	held := members[1:]
	if moving == 1 {
		held = members
	}
	hold(held...)
	before = s.generations()
	sha = s.commit("v2", policy)
	Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(moving))
	return before, sha
}

// hold makes clusters keep back new pods until they are released, or the spec ends.
func hold(members ...string) {
	for _, name := range members {
		world.Fleet.Hold(name)
	}
	DeferCleanup(func() { release(members...) })
}

// release ends hold for clusters; without a hold it changes nothing.
func release(members ...string) {
	for _, name := range members {
		world.Fleet.Release(name)
	}
}
