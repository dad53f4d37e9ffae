package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/gitserver"
)

// agentNamespace is where the add-ons run on the managed clusters.
const agentNamespace = "open-cluster-management-agent-addon"

// scene is one add-on with a repository, a source and placements of its own.
type scene struct {
	ctx   context.Context //nolint:containedctx // a scene lives as long as its spec
	addOn string
	repo  *gitserver.Repo
}

// newScene places the add-on's clusters and declares its source. The repository is
// still empty.
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
				Provider: "gitea", Address: world.Forge.Address(demo.ForgeRepository), SecretRef: secretRef("fleet-forge"),
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

// push commits files without asking anybody to look.
func (s *scene) push(message string, files map[string]string) string {
	GinkgoHelper()
	sha, err := s.repo.Commit(message, files)
	Expect(err).NotTo(HaveOccurred())
	return sha
}

// commit pushes the add-on at a tag with a policy, and asks the operator to look.
func (s *scene) commit(tag, policy string) string {
	GinkgoHelper()
	sha := s.push(tag, s.tree(tag, policy))
	s.reconcile()
	return sha
}

// revert reverts a commit with git revert, and asks the operator to look.
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

// tree is the add-on as files. An empty policy has no addonrollout.yaml.
func (s *scene) tree(tag, policy string) map[string]string {
	files := map[string]string{
		"addons/template.yaml": strings.NewReplacer("ADDON", s.addOn, "TAG", tag).Replace(templateText),
		"addons/addon.yaml":    strings.NewReplacer("ADDON", s.addOn, "STRATEGY", "type: All").Replace(addOnText),
	}
	if policy != "" {
		files["addons/rollout.yaml"] = "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata:\n  name: " + s.addOn + "\nspec:\n" + policy
	}
	return files
}

const templateText = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: ADDON
spec:
  addonName: ADDON
  agentSpec:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: ADDON
          namespace: open-cluster-management-agent-addon
        spec:
          replicas: 1
          selector: {matchLabels: {app: ADDON}}
          template:
            metadata: {labels: {app: ADDON}}
            spec:
              containers:
              - name: agent
                image: example.com/ADDON:TAG
                args: ["--cluster={{CLUSTER_NAME}}"]
`

const addOnText = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: ADDON
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig: {name: ADDON}
  installStrategy:
    type: Placements
    placements:
    - namespace: default
      name: ADDON-all
      rolloutStrategy:
        STRATEGY
`

// rollout reads the rollout; empty while it does not exist.
func (s *scene) rollout() *v1alpha1.AddOnRollout {
	var ro v1alpha1.AddOnRollout
	_ = world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, &ro) // absent: empty
	return &ro
}

// awaitPhase waits until the rollout of a commit is in a phase.
func (s *scene) awaitPhase(sha string, phase v1alpha1.Phase) *v1alpha1.AddOnRollout {
	GinkgoHelper()
	var ro *v1alpha1.AddOnRollout
	Eventually(func(g Gomega) {
		ro = s.rollout()
		g.Expect(ro.Status.Target).NotTo(BeNil())
		g.Expect(ro.Status.Target.Commit).To(HaveSuffix(sha), ro.Status.Message)
		g.Expect(ro.Status.Phase).To(Equal(phase), ro.Status.Message)
	}).Should(Succeed())
	return ro
}

// running are the images whose pods are ready, by cluster.
func (s *scene) running(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		w := world.Fleet.Running(n)["Deployment/"+agentNamespace+"/"+s.addOn]
		out[n] = strings.TrimPrefix(strings.Join(w.ReadyImages, ","), "example.com/"+s.addOn+":")
	}
	return out
}

// allAt is what running returns when everybody runs a tag.
func allAt(tag string, names ...string) types.GomegaMatcher {
	want := map[string]string{}
	for _, n := range names {
		want[n] = tag
	}
	return Equal(want)
}

// generations of the add-on's works, by cluster.
func (s *scene) generations() map[string]int64 {
	GinkgoHelper()
	var works workv1.ManifestWorkList
	Expect(world.Client.List(s.ctx, &works, client.MatchingLabels{"open-cluster-management.io/addon-name": s.addOn})).To(Succeed())
	out := map[string]int64{}
	for i := range works.Items {
		out[works.Items[i].Namespace] = works.Items[i].Generation
	}
	return out
}

// moved are the clusters whose works changed between two looks, sorted.
func moved(before, after map[string]int64) []string {
	var out []string
	for name, g := range after {
		if before[name] != g {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// installed are the clusters that have the add-on, sorted.
func (s *scene) installed() []string {
	GinkgoHelper()
	var list addonv1alpha1.ManagedClusterAddOnList
	Expect(world.Client.List(s.ctx, &list, client.MatchingFields{"metadata.name": s.addOn})).To(Succeed())
	var out []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, list.Items[i].Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// told is what the forge shows for a commit: state and text of the add-on's context.
func (s *scene) told(sha string, parts ...string) string {
	context := strings.Join(append([]string{"addonflow/" + s.addOn, s.addOn}, parts...), "/")
	latest, ok := world.Forge.Latest(sha, context)
	if !ok {
		return ""
	}
	return latest.State + ": " + latest.Description
}

// secretRef names a Secret beside the source.
func secretRef(name string) *meta.LocalObjectReference { return &meta.LocalObjectReference{Name: name} }

// addOnOf reads the add-on of one cluster.
func (s *scene) addOnOf(cluster string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: cluster, Name: s.addOn}, addOn)).To(Succeed())
	return addOn
}

// annotateRollout sets an annotation of the rollout.
func (s *scene) annotateRollout(key, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	Expect(world.Client.Patch(s.ctx, s.rollout(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}
