package addonsource_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/hub"
)

// One control plane and one Git server serve every spec; each spec has its own namespace,
// repository and add-on names.
var (
	theHub *hub.Hub
	theGit *gitserver.Server
	scheme *runtime.Scheme
	// admin reads and writes as a user would; its requests are not counted.
	admin client.Client
)

func TestAddOnSource(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "AddOnSource")
}

var _ = BeforeSuite(func() {
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
	before, wrote := theHub, admin
	theHub, admin = started, writer
	DeferCleanup(func() {
		theHub, admin = before, wrote
		Expect(started.Stop()).To(Succeed())
	})
}
