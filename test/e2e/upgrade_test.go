package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/trace/recording"
)

// midCanary is what an operator of an earlier version left on a hub of six clusters. record.go
// there ran that version and explains how. The placement default/canary selects c1, c2 and c3,
// one at a time: c1 is verified and soaked at v2, the new pods of c2 do not start yet, and
// every other cluster has v1. That version's ledger dropped the record of c1 when it was done.
const midCanary = "testdata/midcanary/"

var _ = Describe("A hub that an earlier version left in the middle of a canary", Ordered, func() {
	o := demo.WorldOptions{
		Clusters: []string{"c1", "c2", "c3", "c4", "c5", "c6"}, Canaries: []string{"c1", "c2", "c3"}, Fleet: fleet.Options{Latency: 50 * time.Millisecond},
	}
	var w *demo.World

	BeforeAll(func(ctx SpecContext) {
		o.Binary, o.Output, o.CRDs = options.Binary, GinkgoWriter, [][]byte{unzipped("crds.yaml.gz")}
		var err error
		w, err = demo.StartWorld(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(w.Stop()).To(Succeed()) })
		DeferCleanup(func(ctx SpecContext) {
			found, err := w.Shown(ctx, "", nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(BeEmpty(), "what only Secrets may hold")
		})
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() && w != nil && w.Operator != nil {
			GinkgoWriter.Println(w.Operator.Tail(30))
		}
	})

	It("continues: no cluster is admitted twice, and no unproven content goes further", func(ctx SpecContext) {
		Expect(w.Client.Create(ctx, w.ForgeSecret())).To(Succeed())
		fetch := exec.CommandContext(ctx, "git", "-C", w.Repo.Dir(), "fetch", "--quiet", absolute(midCanary+"fleet.bundle"), "main:main")
		Expect(fetch.Run()).To(Succeed())
		w.Fleet.Hold("c2")
		restore(ctx, w)
		ro := &unstructured.Unstructured{}
		ro.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind))
		Expect(w.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.AddOn}, ro)).To(Succeed())
		waves, _, _ := unstructured.NestedSlice(ro.Object, "status", "ledger", "waves")
		Expect(waves).To(HaveLen(1), "the ledger as it was")

		By("applying this version's definitions, and starting its operator")
		installCRDs(ctx, w.Client)
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		seen, err := recording.Record(watching, w.Client)
		Expect(err).NotTo(HaveOccurred())
		plans := filepath.Join(w.Dir, "plans.jsonl")
		o.OperatorFlags = []string{"--log-level=debug", "--trace-file=" + plans}
		before := worksOf(ctx, w)
		Expect(before).To(HaveLen(6))
		Expect(w.StartOperator(o)).To(Succeed())

		target := func() rolloutView { return viewOf(ctx, w) }
		Eventually(target).Should(HaveField("InFlight", ConsistOf("c2")), "c1 is proven anew, c2 still holds its slot")
		Consistently(func() []string { return moved(before, worksOf(ctx, w)) }, "6s").Should(BeEmpty(), "nothing goes further, nothing is written again")

		By("letting c2 start its pods")
		w.Fleet.Release("c2")
		Eventually(target).Should(HaveField("Phase", v1alpha1.PhaseSucceeded))
		Expect(moved(before, worksOf(ctx, w))).To(Equal([]string{"c3", "c4", "c5", "c6"}))
		for cluster, generation := range worksOf(ctx, w) {
			if cluster != "c1" && cluster != "c2" {
				Expect(generation).To(Equal(before[cluster]+1), "written once on "+cluster)
			}
		}
		expectRunning(w, "example.com/hello:v2")
		expectOneAdmissionEach(seen.Versions(demo.AddOn))
		expectAllowed(ctx, seen, w.Client, plans)
	})

	It("gets its objects back without their statuses, and moves no cluster", func(ctx SpecContext) {
		before := worksOf(ctx, w)
		saved := lose(ctx, w)
		putBack(ctx, w, saved, false)
		o.OperatorFlags = []string{"--log-level=debug", "--enable-leader-election", "--removal-grace-period=1h"}
		Expect(w.StartOperator(o)).To(Succeed())
		Eventually(func() rolloutView { return viewOf(ctx, w) }).Should(HaveField("Phase", v1alpha1.PhaseSucceeded))
		Expect(moved(before, worksOf(ctx, w))).To(BeEmpty())
	})

	It("gets its objects back in the middle of a rollout, with their statuses, and moves no cluster twice", func(ctx SpecContext) {
		before := worksOf(ctx, w)
		w.Fleet.Hold("c1")
		commitV3(ctx, w)
		Eventually(func() []string { return moved(before, worksOf(ctx, w)) }).Should(Equal([]string{"c1"}))
		Eventually(func() rolloutView { return viewOf(ctx, w) }).Should(HaveField("InFlight", ConsistOf("c1")))

		saved := lose(ctx, w)
		putBack(ctx, w, saved, true)
		Expect(w.StartOperator(o)).To(Succeed())
		Consistently(func() []string { return moved(before, worksOf(ctx, w)) }, "3s").Should(Equal([]string{"c1"}), "it still holds the only slot of the canary")
		w.Fleet.Release("c1")
		Eventually(func() rolloutView { return viewOf(ctx, w) }).Should(HaveField("Phase", v1alpha1.PhaseSucceeded))
		for cluster, generation := range worksOf(ctx, w) {
			Expect(generation).To(Equal(before[cluster]+1), "written once on "+cluster)
		}
		expectRunning(w, "example.com/hello:v3")
	})

	It("loses every add-on and then the operator, if both are asked for", func(ctx SpecContext) {
		deployment := &appsv1.Deployment{}
		text, err := os.ReadFile("../../manifests/operator/deployment.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(text, deployment)).To(Succeed())
		deployment.Labels = map[string]string{"app.kubernetes.io/name": "addonflow", "app.kubernetes.io/part-of": "addonflow"}
		Expect(w.Client.Create(ctx, deployment)).To(Succeed())
		go func() { // as a kubelet does, and nothing else here
			defer GinkgoRecover()
			Eventually(func() bool {
				return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment))
			}).WithContext(ctx).Should(BeTrue())
			Expect(worksOf(ctx, w)).To(BeEmpty(), "the operator goes after the add-ons")
			Expect(w.Operator.Stop()).To(Succeed())
		}()
		uninstall := func(more ...string) (string, error) {
			out, err := exec.CommandContext(ctx, o.Binary, append([]string{"uninstall", "--kubeconfig", w.Kubeconfig}, more...)...).CombinedOutput()
			return string(out), err
		}
		out, err := uninstall("--remove-add-ons", "--confirm", "https://another.example.com")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("default/hello: from 6 clusters"), ContainSubstring("nothing was removed")))
		Expect(worksOf(ctx, w)).To(HaveLen(6))

		out, err = uninstall("--remove-add-ons", "--confirm", w.Hub.Config().Host)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(And(ContainSubstring("AddOnRollout default/hello: "), ContainSubstring("Deployment addonflow-system/addonflow: deleted")))
		for _, name := range o.Clusters {
			Expect(w.Fleet.Running(name)).To(BeEmpty())
		}
		var sources v1alpha1.AddOnSourceList
		Expect(w.Client.List(ctx, &sources)).To(Succeed())
		Expect(sources.Items).To(BeEmpty())
	})
})

// expectRunning: every cluster runs the image.
func expectRunning(w *demo.World, image string) {
	GinkgoHelper()
	for _, name := range []string{"c1", "c2", "c3", "c4", "c5", "c6"} {
		Expect(w.Fleet.Running(name)["Deployment/"+agentNamespace+"/"+demo.AddOn].ReadyImages).To(Equal([]string{image}))
	}
}

// commitV3 commits the next version of the add-on, and asks for a look at Git.
func commitV3(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	script := `cd "$1" && git pull --quiet "$2" main && sed -i s/hello:v2/hello:v3/ addons/template.yaml && git -c user.name=a -c user.email=a@example.com commit --quiet -am v3 && git push --quiet "$2" HEAD:main`
	out, err := exec.CommandContext(ctx, "sh", "-c", script, "sh", w.Repo.Clone(), w.Repo.Dir()).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.SourceName}}
	Expect(w.Client.Patch(ctx, source, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)))).To(Succeed())
}

// lose stops the operator and deletes AddonFlow's objects, as with a namespace that is lost. It
// returns them as the backup of docs/how-to/upgrade.md has them.
func lose(ctx context.Context, w *demo.World) []*unstructured.Unstructured {
	GinkgoHelper()
	Expect(w.Operator.Stop()).To(Succeed())
	var saved []*unstructured.Unstructured
	for _, kind := range []string{v1alpha1.AddOnSourceKind, v1alpha1.AddOnRolloutKind, v1alpha1.AddOnRevisionKind} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		Expect(w.Client.List(ctx, list)).To(Succeed())
		Expect(list.Items).NotTo(BeEmpty(), kind)
		for i := range list.Items {
			live := &list.Items[i]
			copied := live.DeepCopy()
			for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences", "managedFields"} {
				unstructured.RemoveNestedField(copied.Object, "metadata", field)
			}
			saved = append(saved, copied)
			live.SetFinalizers(nil)
			Expect(w.Client.Update(ctx, live)).To(Succeed())
			Expect(client.IgnoreNotFound(w.Client.Delete(ctx, live))).To(Succeed())
			Eventually(func() bool { return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(live), live)) }).Should(BeTrue())
		}
	}
	return saved
}

// putBack restores what was saved, on request with the statuses.
func putBack(ctx context.Context, w *demo.World, saved []*unstructured.Unstructured, statuses bool) {
	GinkgoHelper()
	for _, o := range saved {
		restored := o.DeepCopy()
		Expect(w.Client.Create(ctx, restored)).To(Succeed())
		status, found := o.Object["status"]
		if found && statuses {
			restored.Object["status"] = status
			Expect(w.Client.Status().Update(ctx, restored)).To(Succeed())
		}
	}
}

// rolloutView is the part of the rollout's status that the spec compares.
type rolloutView struct {
	Phase    v1alpha1.Phase
	Message  string
	InFlight []string
}

func viewOf(ctx context.Context, w *demo.World) rolloutView {
	var ro v1alpha1.AddOnRollout
	_ = w.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.AddOn}, &ro) // absent: empty
	v := rolloutView{Phase: ro.Status.Phase, Message: ro.Status.Message}
	records, err := rollout.Records(ro.Status.Ledger)
	if err != nil {
		v.Message = err.Error()
	}
	for _, r := range records {
		if r.InFlight() {
			v.InFlight = append(v.InFlight, r.Cluster)
		}
	}
	return v
}

// expectOneAdmissionEach reads every ledger that was stored: each cluster was admitted to the
// target once, at most two held a slot, and the stage after the canary began when every canary
// was done.
func expectOneAdmissionEach(versions []*v1alpha1.AddOnRollout) {
	GinkgoHelper()
	admitted := map[string]time.Time{}
	for _, v := range versions {
		records, err := rollout.Records(v.Status.Ledger)
		Expect(err).NotTo(HaveOccurred())
		inFlight, canaries, further := 0, 0, 0
		for _, r := range records {
			Expect(r.Revision).To(Equal(v.Spec.Target.Digest))
			at, before := admitted[r.Cluster]
			if r.InFlight() {
				inFlight++
				Expect(!before || at.Equal(r.Admitted)).To(BeTrue(), "%s was admitted at %s, and at %s", r.Cluster, at, r.Admitted)
			}
			if !before {
				admitted[r.Cluster] = r.Admitted
			}
			switch {
			case r.Stage != "canary":
				further++
			case r.State == rollout.Done:
				canaries++
			}
		}
		Expect(inFlight).To(BeNumerically("<=", 2))
		Expect(further == 0 || canaries == 3).To(BeTrue(), "%d clusters got v2 with %d canaries done", further, canaries)
	}
	Expect(admitted).To(HaveLen(6))
}

func worksOf(ctx context.Context, w *demo.World) map[string]int64 {
	GinkgoHelper()
	var works workv1.ManifestWorkList
	Expect(w.Client.List(ctx, &works)).To(Succeed())
	generations := map[string]int64{}
	for i := range works.Items {
		generations[works.Items[i].Namespace] = works.Items[i].Generation
	}
	return generations
}

// restore stores the recorded objects as etcd had them, statuses, UIDs and managed fields
// included. Only the addresses of the Git server and the forge are this world's.
func restore(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	text := strings.NewReplacer(
		"http://git.example.com", w.Git.URL(),
		"http://forge.example.com/", strings.TrimSuffix(w.Forge.Address(demo.ForgeRepository), demo.ForgeRepository),
	).Replace(string(unzipped("hub.yaml.gz")))
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed())
		kind := object.GroupVersionKind()
		resource, _ := apimeta.UnsafeGuessKindToResource(kind)
		value, err := json.Marshal(object.Object)
		Expect(err).NotTo(HaveOccurred())
		key := strings.Join([]string{"/registry", kind.Group, resource.Resource, object.GetNamespace(), object.GetName()}, "/")
		Expect(w.Hub.Put(ctx, strings.ReplaceAll(key, "//", "/"), value)).To(Succeed())
	}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	Expect(w.Client.List(ctx, &addOns)).To(Succeed())
	Expect(addOns.Items).To(HaveLen(6))
}

// installCRDs replaces AddonFlow's definitions on the hub by those of this tree, with the policy.
func installCRDs(ctx context.Context, c client.Client) {
	GinkgoHelper()
	files, err := manifests.CRDFiles()
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(file, crd)).To(Succeed())
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), live)
		if apierrors.IsNotFound(err) {
			Expect(c.Create(ctx, crd)).To(Succeed())
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		crd.ResourceVersion = live.ResourceVersion
		Expect(c.Update(ctx, crd)).To(Succeed())
	}
	pruned := func(g Gomega) {
		ro := &unstructured.Unstructured{}
		ro.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind))
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.AddOn}, ro)).To(Succeed())
		_, found, _ := unstructured.NestedSlice(ro.Object, "status", "ledger", "waves")
		g.Expect(found).To(BeFalse(), "the API server serves the new definition")
	}
	Eventually(pruned).Should(Succeed())
	Expect(rights.InstallPolicy(ctx, c)).To(Succeed())
}

func unzipped(name string) []byte {
	GinkgoHelper()
	packed, err := os.ReadFile(midCanary + name)
	Expect(err).NotTo(HaveOccurred())
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(reader)
	Expect(err).NotTo(HaveOccurred())
	return text
}

func absolute(name string) string {
	GinkgoHelper()
	path, err := filepath.Abs(name)
	Expect(err).NotTo(HaveOccurred())
	return path
}
