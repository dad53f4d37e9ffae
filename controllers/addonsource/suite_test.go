package addonsource_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/leaks"
)

// One control plane and one Git server serve every spec; each spec has its own namespace,
// repository and add-on names.
var (
	theHub *hub.Hub
	theGit *gitserver.Server
	scheme *runtime.Scheme
	// admin reads and writes as a user would; its requests are not counted.
	admin client.Client
	// texts are what the operators of all specs said in events, to the forge and in the log.
	texts bytes.Buffer
)

// planted begins every value that the specs put into a URL or a variable to be found again.
const planted = "planted-9c1e"

func TestAddOnSource(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "AddOnSource")
}

var _ = BeforeSuite(func() {
	GinkgoWriter.TeeTo(&texts)
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	scheme = hub.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	useHub()
	var err error
	theGit, err = gitserver.Start(gitserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(theGit.Close()).To(Succeed()) })
})

// useHub starts a control plane for the rest of the spec or suite.
func useHub() {
	GinkgoHelper()
	crds, err := manifests.CRDFiles()
	Expect(err).NotTo(HaveOccurred())
	started, err := hub.Start(context.Background(), hub.Options{CRDYAML: crds, Output: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	writer, err := client.New(started.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(writer.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "planted"}, StringData: map[string]string{"token": planted + "-token"},
	})).To(Succeed(), "a spec that deletes Namespaces deletes the other Secrets")
	before, wrote := theHub, admin
	theHub, admin = started, writer
	DeferCleanup(func() {
		showNoSecret()
		theHub, admin = before, wrote
		Expect(started.Stop()).To(Succeed())
	})
}

// showNoSecret expects that what only Secrets may hold is in no other object of the hub, nor in any text of the operators.
func showNoSecret() {
	GinkgoHelper()
	stored, err := leaks.Read(context.Background(), theHub.Config(), admin)
	Expect(err).NotTo(HaveOccurred())
	measured, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	Expect(measured).NotTo(BeEmpty())
	found, err := stored.Shown(map[string][]byte{"the operators' texts": texts.Bytes(), "the metrics": fmt.Append(nil, measured)}, planted)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeEmpty())
}
