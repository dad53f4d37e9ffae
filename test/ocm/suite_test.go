package ocm

import (
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/addonflow/addonflow/test/hubbin"
)

// addonflow and ocm are the paths of the two programs.
var addonflow, ocm string

func TestAddonFlowAndOCMOnOneHub(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "OCM")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	var err error
	ocm, err = hubbin.FindOCM(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	addonflow, err = gexec.Build("github.com/addonflow/addonflow/cmd/addonflow")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
})

// startOCM runs one of OCM's programs until the spec ends, or stops it before.
func startOCM(program, kubeconfig string, flags ...string) *gexec.Session {
	GinkgoHelper()
	args := append([]string{program, "--kubeconfig=" + kubeconfig}, flags...)
	session, err := gexec.Start(exec.Command(ocm, args...), GinkgoWriter, GinkgoWriter) //nolint:noctx // ended by the cleanup below
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { stop(session) })
	return session
}

// stop ends a program as its supervisor would.
func stop(session *gexec.Session) {
	session.Terminate()
	select {
	case <-session.Exited:
	case <-time.After(20 * time.Second):
		session.Kill().Wait()
	}
}
