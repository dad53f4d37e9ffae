package ocm

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/sample"
	"github.com/addonflow/addonflow/test/trace/recording"
)

const differencesFile = "testdata/differences.txt"

// memberNames are the clusters of both hubs; the first is the canary.
func memberNames() []string { return []string{"cluster-001", "cluster-002"} }

// startWorld starts a hub with two simulated clusters, and stops it with the spec.
func startWorld(ctx SpecContext, release hub.Release, flags ...string) (*demo.World, demo.WorldOptions) {
	GinkgoHelper()
	options := demo.WorldOptions{
		Release: release,
		Binary:  addonflow, Clusters: memberNames(), Canaries: memberNames()[:1], Output: GinkgoWriter,
		Fleet:         fleet.Options{DeadlineAfter: time.Second, Namespaces: []string{"addon-here", "somewhere-else", "elsewhere"}},
		OperatorFlags: append([]string{"--concurrent=8"}, flags...),
	}
	w, err := demo.StartWorld(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(w.Stop()).To(Succeed()) })

	watching, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	seen, err := recording.Record(watching, w.Client)
	Expect(err).NotTo(HaveOccurred())
	plans := filepath.Join(w.Dir, "plans.jsonl")
	options.OperatorFlags = append(options.OperatorFlags, "--trace-file="+plans)
	DeferCleanup(func(ctx SpecContext) {
		report, err := seen.Judge(ctx, w.Client, plans)
		GinkgoWriter.Printf("traces: %+v\n", report)
		Expect(err).NotTo(HaveOccurred())
	})
	Expect(w.Client.Create(ctx, w.ForgeSecret())).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		if w.Operator == nil {
			return // only OCM ran
		}
		found, err := w.Shown(ctx, "", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeEmpty(), "what only Secrets may hold")
	})
	return w, options
}

var _ = Describe("The same add-ons", func() {
	It("become the same works and statuses under OCM's addon-manager and under AddonFlow", func(ctx SpecContext) {
		files := corpus()
		Expect(len(files)).To(BeNumerically(">=", 30))

		mine := startCorpus(ctx, hub.OCM12, files)
		newer := startCorpus(ctx, hub.OCM13, files)
		theirs, _ := startWorld(ctx, hub.OCM12)
		furnish(ctx, theirs, files)
		for _, f := range files {
			inGit, _ := f.declared()
			apply(ctx, theirs.Client, inGit...)
		}
		startOCM("addon-manager", theirs.Kubeconfig)
		for _, f := range files {
			if f.name == "hosted" {
				awaitCondition(ctx, theirs.Client, f, "OCM", "Progressing", "WaitingForHostingManifestApplied")
			} else {
				awaitAvailable(ctx, theirs.Client, f, "OCM")
			}
			awaitAvailable(ctx, mine.Client, f, "AddonFlow")
			awaitAvailable(ctx, newer.Client, f, "AddonFlow on a hub of OCM 1.3")
		}
		for _, w := range []*demo.World{theirs, mine, newer} {
			askForCertificates(ctx, w)
			startDeparture(ctx, w)
		}
		compare(ctx, files, theirs.Client, mine.Client)
		By("comparing with a hub of OCM 1.3")
		compare(ctx, files, theirs.Client, newer.Client)
		for _, w := range []*demo.World{theirs, mine, newer} {
			endDeparture(ctx, w)
		}
	}, SpecTimeout(15*time.Minute))
})

// startCorpus has AddonFlow run the corpus on a hub of its own.
func startCorpus(ctx SpecContext, release hub.Release, files []corpusFile) *demo.World {
	GinkgoHelper()
	w, options := startWorld(ctx, release, "--addon-manager=replace")
	furnish(ctx, w, files)
	_, err := w.Repo.Commit("the corpus", tree(files))
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Client.Create(ctx, corpusSource(w))).To(Succeed())
	Expect(w.StartOperator(options)).To(Succeed())
	awaitReady(ctx, w)
	return w
}

// furnish writes what the hub's admins write, and what clusters say of themselves.
func furnish(ctx SpecContext, w *demo.World, files []corpusFile) {
	GinkgoHelper()
	Expect(w.Fleet.AddClusters(ctx, fleet.Cluster{Name: memberNames()[1], Annotations: map[string]string{
		"open-cluster-management.io/image-registries": `{"registries":[{"source":"quay.io/annotated","mirror":"mirror.example.com/annotated"}]}`,
	}})).To(Succeed())
	Expect(w.Fleet.Place(ctx, fleet.Placement{Namespace: demo.Namespace, Name: "rest", Clusters: memberNames()[1:]})).To(Succeed())
	for _, name := range []string{"custom-signer-ca", "both-ca"} {
		ca, _, err := sample.CA("open-cluster-management-hub", name)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Client.Create(ctx, ca)).To(Succeed())
	}
	for _, f := range files {
		_, onHub := f.declared()
		apply(ctx, w.Client, onHub...)
	}
}

// corpusSource declares the corpus.
func corpusSource(w *demo.World) *v1alpha1.AddOnSource {
	return &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "corpus"},
		Spec: v1alpha1.AddOnSourceSpec{
			URL: w.Repo.URL(), Reference: &v1alpha1.GitReference{Branch: "main"}, Path: "addons",
			Interval: metav1.Duration{Duration: time.Hour},
			CommitStatus: &v1alpha1.CommitStatusSpec{
				Provider: "gitea", Address: w.Forge.Address(demo.ForgeRepository), SecretRef: &fluxmeta.LocalObjectReference{Name: w.ForgeSecret().Name},
			},
		},
	}
}

// awaitReady waits until the commit was applied, and shows what is wrong with it if not.
func awaitReady(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	source := corpusSource(w)
	Eventually(func(g Gomega) {
		g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(source), source)).To(Succeed())
		g.Expect(source.Status.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Status", metav1.ConditionTrue))),
			fmt.Sprintf("%+v", source.Status.Conditions))
	}).Should(Succeed())
}

// awaitAvailable waits until every cluster of an add-on reports its health.
func awaitAvailable(ctx SpecContext, c client.Client, f corpusFile, who string) {
	GinkgoHelper()
	awaitCondition(ctx, c, f, who, "Available", "ProbeAvailable")
}

// awaitCondition waits until a condition has a reason on every cluster of an add-on.
func awaitCondition(ctx SpecContext, c client.Client, f corpusFile, who, kind, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var list addonv1alpha1.ManagedClusterAddOnList
		g.Expect(c.List(ctx, &list, client.MatchingFields{"metadata.name": f.name})).To(Succeed())
		g.Expect(list.Items).NotTo(BeEmpty())
		for i := range list.Items {
			g.Expect(list.Items[i].Status.Conditions).To(ContainElement(And(HaveField("Type", kind), HaveField("Reason", reason))),
				"%s on %s: %+v", f.name, list.Items[i].Namespace, list.Items[i].Status)
		}
	}).Should(Succeed(), who+", "+f.name)
}

// everywhere are the deliberate differences that every add-on shows: where, and why.
func everywhere() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"Progressing has the reasons of OCM's own design": regexp.MustCompile(
			`^addon/[^/]+\.status\.conditions\[Progressing\]: "False Completed completed with no errors\." -> "False InstallSucceed `),
		"Degraded is written beside Available": regexp.MustCompile(
			`^addon/[^/]+\.status\.conditions\[Degraded\]: nothing -> "False ProbeNotDegraded `),
		"system:authenticated is no organisation to ask for: Kubernetes adds it to every user": regexp.MustCompile(
			`^addon/[^/]+\.status\.registrations\[\d\]\.subject\.groups\[2\]: "system:authenticated" -> nothing$` +
				`|^request/.*\.certificate\.organization\[system:authenticated\]: true -> nothing$`),
		"a certificate of a custom signer is for clients alone": regexp.MustCompile(
			`^request/.*\.certificate\.extKeyUsage\[1\]: true -> nothing$`),
		"permissions are bound to the group of the cluster's own agent alone": regexp.MustCompile(
			`^rolebinding/.*\.subjects\[system:open-cluster-management:`),
		"a ManagedClusterAddOn made by hand gets no owner that would delete it": regexp.MustCompile(
			`^addon/[^/]+\.owner\.ClusterManagementAddOn: "[a-z-]+" -> nothing$`),
	}
}

// compare compares every difference with the deliberate ones in differencesFile.
func compare(ctx SpecContext, files []corpusFile, theirs, mine client.Client) {
	GinkgoHelper()
	report := differences{file: differencesFile}
	met := map[string]bool{}
	for _, f := range files {
		report.add(f.name, f.differs, slices.DeleteFunc(difference(seenOf(ctx, theirs, f.name), seenOf(ctx, mine, f.name)), func(line string) bool {
			for why, where := range everywhere() {
				if where.MatchString(line) {
					met[why] = true
					return true
				}
			}
			return false
		}))
	}
	Expect(met).To(HaveLen(len(everywhere())), "a listed difference no longer exists: %v", met)
	report.hold()
}
