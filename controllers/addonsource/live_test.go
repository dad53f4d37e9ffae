package addonsource_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/test/gitserver"
)

// patience is a generous timeout for slow machines, not an expected duration.
const patience = time.Minute

// run starts a manager for the sources of the world's namespace, and of others.
func (w *world) run(others ...string) {
	GinkgoHelper()
	only := cache.ByObject{Namespaces: map[string]cache.Config{w.namespace: {}}}
	for _, other := range others {
		only.Namespaces[other] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(theHub.Config(), ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&v1alpha1.AddOnSource{}: only, &v1alpha1.AddOnRollout{}: only},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	desk := forge.NewDesk(forge.Options{Secrets: mgr.GetAPIReader(), Sources: mgr.GetClient(), HTTP: &http.Client{Timeout: time.Minute}, Now: time.Now})
	Expect(mgr.Add(desk)).To(Succeed())
	reconciler := addonsource.New(addonsource.Config{
		Git: gitsource.Access{AllowLoopback: true, AllowHTTPCredentials: true}, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: record.NewFakeRecorder(1000), Desk: desk, Charts: chart.InProcess{},
	})
	Expect(reconciler.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2})).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-stopped).To(Succeed())
	})
}

var _ = Describe("A running operator", func() {
	It("follows Git, repairs drift when it happens, and hears of deliveries", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Interval.Duration = time.Hour })
		first := w.commit("add hello", addOnFiles())
		w.run()
		applied := func(sha string) {
			GinkgoHelper()
			Eventually(func() string { return w.source().Status.LastAppliedRevision }).WithTimeout(patience).Should(HaveSuffix(sha))
		}
		applied(first)
		w.rolledOut()
		w.delivered(first, "success")
		Eventually(func() bool {
			return conditions.IsTrue(w.source(), v1alpha1.CommitStatusReportedCondition)
		}).WithTimeout(patience).Should(BeTrue())

		second := w.commit("explain", map[string]string{"README.md": "hello"})
		w.request("now")
		applied(second)

		theGit.ResetRequests()
		Expect(admin.Delete(context.Background(), w.rollout())).To(Succeed())
		Eventually(func() bool { return exists(w.rollout()) }).WithTimeout(patience).Should(BeTrue())

		cma := w.cma()
		w.read(cma)
		cma.Spec.AddOnMeta.DisplayName = "Goodbye"
		Expect(admin.Update(context.Background(), cma)).To(Succeed())
		Eventually(func() string {
			w.read(cma)
			return cma.Spec.AddOnMeta.DisplayName
		}).WithTimeout(patience).Should(Equal("Hello"))

		revision := w.revisions()[0]
		Expect(admin.Delete(context.Background(), &revision)).To(Succeed())
		Eventually(w.revisions).WithTimeout(patience).Should(HaveLen(1))
		Expect(theGit.Requests()).To(Equal(gitserver.Requests{}), "none of this needs the repository")
	})

	It("is not held up by a repository that hangs", func() {
		slow, err := gitserver.Start(gitserver.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(slow.Close()).To(Succeed()) })
		hanging, err := slow.Create("hanging")
		Expect(err).NotTo(HaveOccurred())
		slow.Hang()
		DeferCleanup(slow.Heal)

		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = nil })
		other := w.newSource("hanging", func(s *v1alpha1.AddOnSource) {
			s.Spec.URL, s.Spec.Timeout = hanging.URL(), &metav1.Duration{Duration: time.Second}
		})
		w.create(other)
		w.run()
		sha := w.commit("add hello", addOnFiles())
		w.request("now")
		Eventually(func() string { return w.source().Status.LastAppliedRevision }).WithTimeout(patience).Should(HaveSuffix(sha))
		Eventually(func() string {
			w.read(other)
			return conditions.GetReason(other, "Ready")
		}).WithTimeout(patience).Should(Equal(v1alpha1.FetchFailedReason), "spec.timeout bounds the look")
	})

	It("applies a source while 128 of another namespace hang on four hosts", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = nil })
		evil := w.namespace + "-evil"
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: evil}})
		var asked atomic.Int32
		for host := range 4 {
			hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				<-r.Context().Done()
			}))
			DeferCleanup(hangs.Close)
			for i := range 32 {
				w.create(w.newSource(fmt.Sprintf("hangs-%d-%d", host, i), func(s *v1alpha1.AddOnSource) {
					s.Namespace, s.Spec.URL, s.Spec.CommitStatus = evil, hangs.URL+"/hangs.git", nil
					s.Spec.Timeout = &metav1.Duration{Duration: v1alpha1.MaxTimeout}
				}))
			}
		}
		w.run(evil)
		Eventually(asked.Load).WithTimeout(patience).Should(BeNumerically(">=", 50), "about as many as one namespace may have")
		sha := w.commit("add hello", addOnFiles())
		w.request("now")
		Eventually(func() string { return w.source().Status.LastAppliedRevision }).WithTimeout(patience).Should(HaveSuffix(sha))
	})

	It("says that it waits for a place for longer than its timeout", func() {
		w := newWorld()
		w.commit("add hello", addOnFiles())
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
		w.clock.Step(time.Hour)

		free := w.reconciler.TakeAllPlaces()
		key := client.ObjectKeyFromObject(w.source())
		waits := func() {
			GinkgoHelper()
			result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
			w.clock.Step(result.RequeueAfter)
		}
		waits()
		Expect(conditions.IsReady(w.source())).To(BeTrue(), "a short wait is nothing to report")
		for range 4 { // the desk may ask for passes in between
			waits()
		}
		source := w.source()
		Expect(conditions.GetMessage(source, "Reconciling")).To(ContainSubstring("not been read for longer than spec.timeout"))
		Expect(conditions.IsReady(source)).To(BeFalse())

		free()
		w.passes()
		Expect(conditions.IsReady(w.source())).To(BeTrue())
	})

	It("applies 190 sources with large repositories while the servers of 10 others send a line a second", func() {
		const all, hanging, large = 200, 10, 1200 << 10
		released := make(chan struct{})
		reference := fmt.Sprintf("003f%040x refs/heads/a\n", 1)
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000"+strings.Repeat(reference, large/len(reference)))
			for {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-released:
					return
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
					_, _ = io.WriteString(w, reference)
				}
			}
		}))
		DeferCleanup(func() { close(released); slow.Close() })

		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus, s.Spec.Suspend = nil, true })
		noise := make([]byte, large)
		_, err := rand.Read(noise)
		Expect(err).NotTo(HaveOccurred())
		files := map[string]string{"noise.bin": string(noise)}
		var sources []*v1alpha1.AddOnSource
		for i := range all {
			name := fmt.Sprintf("source-%d", i)
			files["teams/"+name+"/placement.yaml"] = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n" +
				"metadata:\n  name: " + name + "\n  namespace: NAMESPACE\nspec: {}\n"
			sources = append(sources, w.newSource(name, func(s *v1alpha1.AddOnSource) {
				s.Spec.CommitStatus, s.Spec.Path = nil, "teams/"+name
				if i%(all/hanging) == 0 {
					s.Spec.URL, s.Spec.Timeout = slow.URL+"/hangs.git", &metav1.Duration{Duration: v1alpha1.MaxTimeout}
				}
			}))
		}
		sha := w.commit("add placements", files)
		for _, s := range sources {
			w.create(s)
		}
		w.run()
		applied := func(sha string) int {
			list := &v1alpha1.AddOnSourceList{}
			Expect(admin.List(context.Background(), list, client.InNamespace(w.namespace))).To(Succeed())
			n := 0
			for _, s := range list.Items {
				if strings.HasSuffix(s.Status.LastAppliedRevision, sha) && conditions.IsReady(&s) {
					n++
				}
			}
			return n
		}
		Eventually(applied).WithArguments(sha).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(Equal(all - hanging))
	})
})
