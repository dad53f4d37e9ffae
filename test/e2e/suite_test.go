package e2e

import (
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/forge"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/trace/recording"
)

// fleetSize is how many clusters the specs share.
const fleetSize = 8

var (
	world   *demo.World
	options demo.WorldOptions
	// seen is everything that the hub stored of rollouts and works, and plans the file of all
	// plans of the operators.
	seen  *recording.Recording
	plans string
	// notified replaces Flux's notification-controller.
	notified *receiver
	// posted are the CloudEvents.
	posted notices
	// ingress serves the operator's pages over TLS.
	ingress *httptest.Server
	// webhooks and metrics are addresses of the operator's servers. A second operator needs noServers.
	webhooks, metrics string
)

// noServers are flags of an operator beside another one.
func noServers() []string {
	return []string{"--webhook-addr=0", "--metrics-addr=0", "--dashboard-addr="}
}

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	binary, err := gexec.Build("github.com/addonflow/addonflow/cmd/addonflow")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)

	notified = startReceiver()
	DeferCleanup(notified.server.Close)
	pages := freeAddress()
	ingress = httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: pages}))
	DeferCleanup(ingress.Close)
	options = demo.WorldOptions{
		Release: hub.OCM13, // the demo and test/ocm tell the same story on a hub of OCM 1.2
		Binary:  binary, Clusters: clusters(fleetSize), Canaries: clusters(1), Output: GinkgoWriter, ShippedRights: true,
		Fleet: fleet.Options{
			Latency: 50 * time.Millisecond, DeadlineAfter: time.Second,
			FlapEvery: 2 * time.Second, // longer than a turn of a rollout, so that no turn misses it
		},
		OperatorFlags: []string{
			"--removal-grace-period=6s", "--park-after=4s", "--concurrent=8", "--pre-delete-timeout=4s",
			"--log-level=debug", "--events-addr=" + notified.server.URL,
			"--gate-allow-http", "--gate-allow-loopback",
			"--dashboard-addr=" + pages, "--public-url=" + ingress.URL,
		},
	}
	world, err = demo.StartWorld(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(world.Stop()).To(Succeed()) })
	Expect(world.Client.Create(ctx, world.ForgeSecret())).To(Succeed())

	watching, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	seen, err = recording.Record(watching, world.Client)
	Expect(err).NotTo(HaveOccurred())
	plans = filepath.Join(world.Dir, "plans.jsonl")
	webhooks, metrics = freeAddress(), freeAddress()
	options.OperatorFlags = append(options.OperatorFlags, "--trace-file="+plans, "--webhook-addr="+webhooks, "--metrics-addr="+metrics)
	options.OperatorFlags = append(options.OperatorFlags, noticed(world.Dir)...)
	Expect(world.StartOperator(options)).To(Succeed())
})

var _ = BeforeEach(func() {
	Expect(world.Operator.Done()).NotTo(BeClosed(), "the operator has ended:\n%s", world.Operator.Tail(20))
})

var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(world.Operator.Tail(20))
	}
})

var _ = AfterSuite(func(ctx SpecContext) {
	if world == nil {
		return
	}
	expectAllowed(ctx, seen, world.Client, plans)
	Expect(shown(ctx)).To(BeEmpty(), "what only Secrets may hold, and what URLs and variables do")
	Expect(forge.Violations(world.Forge.Log())).To(BeEmpty(), "all statuses at the forge, over all specs")
	Expect(reportRights().Refused).To(BeEmpty(), "what manifests/rbac does not grant")
})

// reportRights reads what the operator requested from the hub. Unused rights are only reported,
// because specs do not exercise every grant; the tests of manifests check that all of them are
// needed.
func reportRights() rights.Record {
	GinkgoHelper()
	log, err := os.Open(world.AuditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(log.Close()).To(Succeed()) }()
	record, err := rights.Read(log)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("grants that no spec used:\n  %s\n", strings.Join(record.Unused(world.Rights), "\n  "))
	return record
}

// clusters are the first n names of the shared fleet.
func clusters(n int) []string {
	names := make([]string, 0, n)
	for _, c := range fleet.Numbered("cluster", fleetSize)[:n] {
		names = append(names, c.Name)
	}
	return names
}
