package registration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
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
	agents "github.com/addonflow/addonflow/controllers/registration"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/hub"
)

// One control plane and one operator serve every spec; a spec has its own clusters
// and add-on. The operator has the rights that are installed, and no others.
var (
	theHub *hub.Hub
	scheme *runtime.Scheme
	admin  client.Client
	book   *agents.Book
	events *record.FakeRecorder
)

const (
	operatorName = "addonflow-operator"
	caNamespace  = "open-cluster-management-hub"
)

func TestRegistration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Registration")
}

var _ = BeforeSuite(func() {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	crds, err := ownCRDs()
	Expect(err).NotTo(HaveOccurred())
	theHub, err = hub.Start(context.Background(), hub.Options{CRDYAML: crds, Output: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(theHub.Stop()).To(Succeed()) })
	scheme = hub.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	admin, err = client.New(theHub.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	grantInstalled()
	startOperator()
})

// ownCRDs are the definitions that users install.
func ownCRDs() ([][]byte, error) {
	paths, err := fs.Glob(manifests.CRDs, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, path := range paths {
		content, err := manifests.CRDs.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	return out, nil
}

// grantInstalled gives the operator what manifests/rbac gives it, and what
// manifests/replace adds. Nothing aggregates ClusterRoles here, so those that hold the
// rules are bound.
func grantInstalled() {
	GinkgoHelper()
	grantFile("../../manifests/rbac/clusterrole.yaml", "addonflow-base")
	grantFile("../../manifests/replace/clusterrole.yaml", "addonflow-replace")
}

// grantFile gives the operator a ClusterRole that is in a file.
func grantFile(path, name string) {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		role := &rbacv1.ClusterRole{}
		err := decoder.Decode(role)
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		if role.Kind == "ClusterRole" && role.Name == name {
			Expect(admin.Create(context.Background(), role)).To(Succeed())
		}
	}
	bindCluster(name)
}

// bindCluster gives the operator a ClusterRole.
func bindCluster(role string) {
	GinkgoHelper()
	Expect(admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorName}},
	})).To(Succeed())
}

// grant gives the operator one rule more, as an admin would.
func grant(name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	Expect(admin.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}})).To(Succeed())
	bindCluster(name)
}

func startOperator() {
	GinkgoHelper()
	config, _, err := theHub.User(operatorName)
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
