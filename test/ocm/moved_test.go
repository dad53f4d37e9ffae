package ocm

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/sample"
)

// greeter is the sample add-on at a tag: its template and its ClusterManagementAddOn,
// as a team that runs it with OCM has them.
func greeter(name, tag string) []*unstructured.Unstructured {
	GinkgoHelper()
	return corpusFile{name: name, text: sample.Template(name, tag) + "---\n" + sample.AddOn(name, "all")}.objects()
}

// canaryFirst is the policy that goes with it.
const canaryFirst = `  stages:
  - name: canary
    placement: {namespace: default, name: canary}
    progressDeadline: 5m
  - name: everyone
    placement: {namespace: default, name: all}
    progressDeadline: 5m
`

// commit pushes the add-on at a tag and requests a reconcile.
func commit(ctx context.Context, w *demo.World, name, tag string) string {
	GinkgoHelper()
	sha, err := w.Repo.Commit(tag, map[string]string{
		"addons/template.yaml": sample.Template(name, tag),
		"addons/addon.yaml":    sample.AddOn(name, "all"),
		"addons/rollout.yaml":  sample.Rollout(name, canaryFirst),
	})
	Expect(err).NotTo(HaveOccurred())
	look(ctx, w)
	awaitReady(ctx, w)
	return sha
}

// look requests a reconcile of the source, or creates the source.
func look(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	head, err := w.Repo.Head()
	Expect(err).NotTo(HaveOccurred())
	source := corpusSource(w)
	source.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": head}
	err = w.Client.Create(ctx, source)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, head)
		err = w.Client.Patch(ctx, source, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	Expect(err).NotTo(HaveOccurred())
}

// awaitPhase waits until the rollout of a commit is in a phase.
func awaitPhase(ctx context.Context, w *demo.World, name, sha string, phase v1alpha1.Phase) *v1alpha1.AddOnRollout {
	GinkgoHelper()
	ro := &v1alpha1.AddOnRollout{}
	Eventually(func(g Gomega) {
		g.Expect(w.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: name}, ro)).To(Succeed())
		g.Expect(ro.Status.Target).NotTo(BeNil(), fmt.Sprintf("%+v", ro.Status.Conditions))
		g.Expect(ro.Status.Target.Commit).To(HaveSuffix(sha), ro.Status.Message)
		g.Expect(ro.Status.Phase).To(Equal(phase), ro.Status.Message)
	}).Should(Succeed())
	return ro
}

// worksOf are the works of an add-on, by cluster and name.
func worksOf(ctx context.Context, c client.Client, name string) map[string]*workv1.ManifestWork {
	GinkgoHelper()
	var list workv1.ManifestWorkList
	Expect(c.List(ctx, &list, client.MatchingLabels{addOnNameLabel: name})).To(Succeed())
	out := map[string]*workv1.ManifestWork{}
	for i := range list.Items {
		out[join(list.Items[i].Namespace, list.Items[i].Name)] = &list.Items[i]
	}
	return out
}

// changes lists the fields of works that were written, one a line, without those of the status.
func changes(before, after map[string]*workv1.ManifestWork) []string {
	GinkgoHelper()
	return difference(flatWorks(before), flatWorks(after))
}

// written lists the works that were written: they differ from before in more than the status.
func written(before, after map[string]*workv1.ManifestWork) []string {
	GinkgoHelper()
	var out []string
	for key, w := range after {
		one := func(w *workv1.ManifestWork) flat { return flatWorks(map[string]*workv1.ManifestWork{key: w}) }
		if before[key] == nil || len(difference(one(before[key]), one(w))) > 0 {
			out = append(out, key)
		}
	}
	return out
}

// flatWorks lists what the manager of an add-on writes of its works.
func flatWorks(works map[string]*workv1.ManifestWork) flat {
	out := flat{}
	for key, w := range works {
		flatten(out, key, generic(map[string]any{
			"generation": w.Generation, "spec": w.Spec,
			"metadata": []any{w.Labels, w.Annotations, w.OwnerReferences, w.Finalizers},
		}))
	}
	return out
}
