package ocm

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/hub"
)

// quietWindow is how long no client may write after everything has settled.
const quietWindow = 2 * time.Minute

var _ = Describe("OCM's addon-manager and AddonFlow on one hub", Ordered, ContinueOnFailure, func() {
	// resting is a hub with an add-on of each, which is left alone while another spec runs.
	var (
		resting *demo.World
		settled map[string]string
		since   time.Time
	)

	BeforeAll(func(ctx SpecContext) {
		w, options := startWorld(ctx, hub.OCM12)
		apply(ctx, w.Client, greeter("theirs", "v1")...)
		startOCM("addon-manager", w.Kubeconfig)
		Expect(w.StartOperator(options)).To(Succeed())
		sha := commit(ctx, w, "mine", "v1")
		awaitPhase(ctx, w, "mine", sha, v1alpha1.PhaseSucceeded)
		awaitAvailable(ctx, w.Client, corpusFile{name: "theirs"}, "OCM")
		awaitAvailable(ctx, w.Client, corpusFile{name: "mine"}, "AddonFlow")

		By("settling: ten seconds without a write")
		Eventually(func(g Gomega) {
			settled, since = versions(ctx, w.Client), time.Now()
			g.Consistently(func() map[string]string { return versions(ctx, w.Client) }, "10s", "1s").Should(Equal(settled))
		}).Should(Succeed())
		resting = w
	}, NodeTimeout(10*time.Minute))

	It("hand an add-on over and back: no work is rewritten, and no cluster moves ahead of its turn", func(ctx SpecContext) {
		w, options := startWorld(ctx, hub.OCM12)
		apply(ctx, w.Client, greeter("moved", "v1")...)
		startOCM("addon-manager", w.Kubeconfig)
		awaitAvailable(ctx, w.Client, corpusFile{name: "moved"}, "OCM")
		deployed := worksOf(ctx, w.Client, "moved")

		By("taking over equal content")
		Expect(w.StartOperator(options)).To(Succeed())
		sha := commit(ctx, w, "moved", "v1")
		awaitPhase(ctx, w, "moved", sha, v1alpha1.PhaseSucceeded)
		taken := worksOf(ctx, w.Client, "moved")
		Expect(written(deployed, taken)).To(BeEmpty(), "equal content writes no work: %q", changes(deployed, taken))

		By("changing the template in place right after, the canary held")
		canary := memberNames()[0]
		w.Fleet.Hold(canary)
		sha = commit(ctx, w, "moved", "v2")
		Eventually(func() []string { return written(deployed, worksOf(ctx, w.Client, "moved")) }).ShouldNot(BeEmpty())
		Consistently(func() []string { return written(deployed, worksOf(ctx, w.Client, "moved")) }, "10s").
			Should(ConsistOf(HavePrefix(canary+"/")), "only the canary moves, though OCM's addon-manager sees the new template")
		w.Fleet.Release(canary)
		awaitPhase(ctx, w, "moved", sha, v1alpha1.PhaseSucceeded)

		By("handing it back")
		handBack(ctx, w, greeter("moved", "v2"))
	}, SpecTimeout(10*time.Minute))

	It("each run their own add-ons and write nothing at rest", func(ctx SpecContext) {
		Eventually(func() time.Duration { return time.Since(since) }).Should(BeNumerically(">=", quietWindow))
		Expect(resting.Operator.Done()).NotTo(BeClosed(), resting.Operator.Tail(20))
		Expect(versions(ctx, resting.Client)).To(Equal(settled), "every write changes a resource version")
	}, SpecTimeout(10*time.Minute))
})

// versions are the resource versions of everything that either of the two writes.
// OCM's token infrastructure is not among it: this spec's agents use certificates.
func versions(ctx context.Context, c client.Client) map[string]string {
	out := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"addon":   &addonv1alpha1.ManagedClusterAddOnList{},
		"cma":     &addonv1alpha1.ClusterManagementAddOnList{},
		"work":    &workv1.ManifestWorkList{},
		"rollout": &v1alpha1.AddOnRolloutList{},
		"source":  &v1alpha1.AddOnSourceList{},
		"binding": &rbacv1.RoleBindingList{},
	} {
		Expect(c.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				out[join(kind, o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
			}
			return err
		})).To(Succeed())
	}
	return out
}

// handBack hands an add-on back to OCM as docs/migrating.md describes, from a source that
// prunes, and counts the writes.
func handBack(ctx context.Context, w *demo.World, declared []*unstructured.Unstructured) {
	GinkgoHelper()
	before := worksOf(ctx, w.Client, "moved")
	patch := func(o client.Object, text string) {
		GinkgoHelper()
		Expect(w.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(text)))).To(Succeed())
	}
	By("releasing it, and taking it out of Git")
	rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "moved"}}
	patch(rollout, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.ReleaseAnnotation))
	patch(corpusSource(w), `{"spec":{"prune":true}}`)
	_, err := w.Repo.Commit("say where it went", map[string]string{"addons/README.md": "OCM runs it"})
	Expect(err).NotTo(HaveOccurred())
	_, err = w.Repo.Remove("hand it back", "addons/addon.yaml", "addons/rollout.yaml")
	Expect(err).NotTo(HaveOccurred())
	look(ctx, w)
	Eventually(func() bool {
		return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(rollout), rollout))
	}).Should(BeTrue(), "the operator lets go by itself")
	Expect(written(before, worksOf(ctx, w.Client, "moved"))).To(BeEmpty(), "a release writes no work")

	By("giving it to OCM")
	apply(ctx, w.Client, declared...)
	Eventually(func(g Gomega) {
		var list addonv1alpha1.ManagedClusterAddOnList
		g.Expect(w.Client.List(ctx, &list, client.MatchingFields{"metadata.name": "moved"})).To(Succeed())
		g.Expect(list.Items).NotTo(BeEmpty())
		for i := range list.Items {
			g.Expect(templateHash(&list.Items[i])).NotTo(BeEmpty(), "OCM reports the template it runs")
			g.Expect(list.Items[i].Labels).NotTo(HaveKey(v1alpha1.ManagedByLabel))
		}
	}).Should(Succeed())
	Consistently(func(g Gomega) {
		for key, work := range worksOf(ctx, w.Client, "moved") {
			g.Expect(work.Generation).To(BeNumerically("<=", before[key].Generation+1), "at most one write of "+key)
		}
	}, "15s", "1s").Should(Succeed())

	By("deleting the source")
	Expect(w.Client.Delete(ctx, corpusSource(w))).To(Succeed())
	Eventually(func() bool {
		source := corpusSource(w)
		return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(source), source))
	}).Should(BeTrue(), "nothing of it is left to wait for")
	Consistently(func(g Gomega) {
		g.Expect(worksOf(ctx, w.Client, "moved")).To(HaveLen(len(before)), "what OCM runs stays")
	}, "10s", "1s").Should(Succeed())
}

// templateHash is the hash of the template in an add-on's status.
func templateHash(a *addonv1alpha1.ManagedClusterAddOn) string {
	for _, r := range a.Status.ConfigReferences {
		if r.Resource == "addontemplates" && r.DesiredConfig != nil {
			return r.DesiredConfig.SpecHash
		}
	}
	return ""
}
