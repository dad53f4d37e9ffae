package agents_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/leaks"
	"github.com/addonflow/addonflow/test/rights"
)

// One control plane and one operator serve every spec; each spec has its own clusters and
// add-on. The operator has exactly the rights that are installed.
var (
	theHub *hub.Hub
	scheme *runtime.Scheme
	admin  client.Client
	book   *agents.Book
	events *record.FakeRecorder
)

const caNamespace = "open-cluster-management-hub"

func TestRegistration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Registration")
}

var _ = BeforeSuite(func() {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	crds, err := manifests.CRDFiles()
	Expect(err).NotTo(HaveOccurred())
	theHub, err = hub.Start(context.Background(), hub.Options{CRDYAML: crds, Output: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(theHub.Stop()).To(Succeed()) })
	var said bytes.Buffer
	GinkgoWriter.TeeTo(&said)
	DeferCleanup(func() {
		stored, err := leaks.Read(context.Background(), theHub.Config(), admin)
		Expect(err).NotTo(HaveOccurred())
		for len(events.Events) > 0 {
			GinkgoWriter.Println("event:", <-events.Events)
		}
		found, err := stored.Shown(map[string][]byte{"log and events of the operator": said.Bytes()}, "planted")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeEmpty(), "what only Secrets may hold")
	})
	scheme = hub.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	admin, err = client.New(theHub.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	_, err = rights.Install(context.Background(), admin)
	Expect(err).NotTo(HaveOccurred())
	Expect(rights.GrantReplace(context.Background(), admin)).To(Succeed())
	startOperator()
})

// grant gives the operator one more rule, as an admin would.
func grant(name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	Expect(rights.Grant(context.Background(), admin, name, rule)).To(Succeed())
}

func startOperator() {
	GinkgoHelper()
	config, _, err := theHub.User(rights.User, rights.Groups()...)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&certificatesv1.CertificateSigningRequest{}: {Label: agents.Selector()},
			&rbacv1.RoleBinding{}:                       {Label: agents.Selector()},
			&rbacv1.ClusterRole{}:                       {Label: agents.RoleSelector()},
			&rbacv1.Role{}:                              {Label: agents.RoleSelector()},
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.Background())
	for _, obj := range []client.Object{&addonv1alpha1.ManagedClusterAddOn{}, &v1alpha1.AddOnRollout{}} {
		Expect(mgr.GetFieldIndexer().IndexField(ctx, obj, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })).To(Succeed())
	}
	book, events = agents.NewBook(), record.NewFakeRecorder(1000)
	options := agents.Options{
		Client: client.WithFieldOwner(mgr.GetClient(), v1alpha1.FieldManager), Live: mgr.GetAPIReader(),
		Recorder: events, Book: book, Clock: clock.RealClock{}, Random: rand.Reader,
		Roles:             registration.RolePolicy{Allowed: []string{"ClusterRole/by-flag"}},
		SigningNamespaces: []string{caNamespace},
	}
	Expect(agents.NewRequests(options).SetupWithManager(ctx, mgr, controller.Options{})).To(Succeed())
	Expect(agents.NewBindings(options).SetupWithManager(mgr, controller.Options{})).To(Succeed())
	objects, err := cache.New(config, cache.Options{Scheme: scheme, DefaultLabelSelector: agents.TokenSelector()})
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(objects)).To(Succeed())
	Expect((&agents.Tokens{Options: options}).SetupWithManager(mgr, objects, controller.Options{})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended, "60s").Should(Receive(BeNil()))
	})
}
