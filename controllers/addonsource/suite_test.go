package addonsource_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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

// One control plane and one Git server serve every spec; a spec has its own
// namespace, repository and add-on names.
var (
	theHub *hub.Hub
	theGit *gitserver.Server
	scheme *runtime.Scheme
	// admin reads and writes as a user would, and is not counted.
	admin client.Client
)

func TestAddOnSource(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "AddOnSource")
}

var _ = BeforeSuite(func() {
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	crds, err := manifests.CRDFiles()
	Expect(err).NotTo(HaveOccurred())
	theHub, err = hub.Start(context.Background(), hub.Options{CRDYAML: crds, Output: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(theHub.Stop()).To(Succeed()) })
	theGit, err = gitserver.Start(gitserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(theGit.Close()).To(Succeed()) })

	scheme = hub.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	admin, err = client.New(theHub.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})
