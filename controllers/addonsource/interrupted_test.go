package addonsource_test

import (
	"context"
	"maps"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/render/chart"
)

// packagedFiles is an add-on with a Helm chart.
func packagedFiles() map[string]string {
	return map[string]string{
		"addons/clustermanagementaddon.yaml": "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ClusterManagementAddOn\nmetadata: {name: ADDON}\n" +
			"spec: {installStrategy: {type: Placements, placements: [{namespace: NAMESPACE, name: all}]}}\n",
		"addons/package.yaml":                "apiVersion: addonflow.io/v1alpha1\nkind: AddOnPackage\nmetadata: {name: ADDON}\nspec: {addOn: ADDON, helm: {path: chart}}\n",
		"addons/chart/Chart.yaml":            "apiVersion: v2\nname: agent\nversion: 1.0.0\n",
		"addons/chart/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata: {greeting: hello}\n",
	}
}

var _ = Describe("A commit whose charts cannot be rendered now", func() {
	It("is not refused if the render worker is killed from outside, and is applied afterwards", func() {
		w := newWorld()
		killed := renderworker.NewPool(renderworker.Options{Command: []string{"sh", "-c", "sleep 0.1; kill -9 $$"}})
		DeferCleanup(killed.Close)
		w.charts = killed
		w.start()
		files := packagedFiles()
		sha := w.commit("add a chart", files)
		for range 2 {
			_, err := w.passOf("fleet")
			Expect(err).To(MatchError(chart.ErrInterrupted), "the queue tries again")
			source := w.source()
			Expect(conditions.GetReason(source, fluxmeta.ReconcilingCondition)).To(Equal(v1alpha1.RenderInterruptedReason))
			Expect(conditions.IsStalled(source)).To(BeFalse())
			Expect(source.Status.LastAttemptedRevision).To(BeEmpty())
		}
		w.delivered(sha, "pending")

		By("and what is on the hub stays, the commit that it came from unblamed")
		w.charts = chart.InProcess{}
		w.start()
		w.look()
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
		revisions := w.revisions()
		Expect(revisions).To(HaveLen(1))
		w.charts = killed
		w.start()
		next := maps.Clone(files)
		next["addons/chart/templates/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata: {greeting: again}\n"
		w.commit("greet again", next)
		_, err := w.passOf("fleet")
		Expect(err).To(HaveOccurred())
		Expect(w.source().Status.LastAppliedRevision).To(HaveSuffix(sha))
		rollout := w.rollout()
		Expect(admin.Get(context.Background(), client.ObjectKeyFromObject(rollout), rollout)).To(Succeed())
		Expect(rollout.Spec.Target.Commit).To(HaveSuffix(sha))
		Expect(w.revisions()).To(HaveLen(1))
	})
})
