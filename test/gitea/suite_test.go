//go:build gitea

package gitea

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"go.uber.org/goleak"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/freeport"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hubbin"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/trace/recording"
)

// fleetSize is how many clusters the specs share.
const fleetSize = 4

var (
	world   *demo.World
	options demo.WorldOptions
	forge   *Server
	// ana administers the forge, and owns the organization team. The operator is a user of its own.
	ana, robot *API
	// hooks is where the operator receives webhooks, and metrics where it serves metrics.
	hooks, metrics string
	// seen is everything that the hub stored of rollouts and works, and plans the file of all plans of the operators.
	seen  *recording.Recording
	plans string
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) {
	ginkgos := goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2")
	filters := goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop")
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), ginkgos, filters)
}

func TestAddonFlowOnGitea(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "AddonFlow on Gitea "+hubbin.GiteaVersion)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	program, err := hubbin.FindGitea(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	binary, err := gexec.Build("github.com/addonflow/addonflow/cmd/addonflow")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)

	begun := time.Now()
	forge, err = Start(ctx, program, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(forge.Stop()).To(Succeed()) })
	ana, err = forge.CreateUser(ctx, "ana", "--admin")
	Expect(err).NotTo(HaveOccurred())
	robot, err = forge.CreateUser(ctx, "addonflow")
	Expect(err).NotTo(HaveOccurred())
	Expect(ana.Do(ctx, http.MethodPost, "orgs", map[string]any{"username": team}, nil)).To(Succeed())
	AddReportEntry("Gitea was there after", time.Since(begun).Round(100*time.Millisecond).String())

	for _, address := range []*string{&hooks, &metrics} {
		*address, err = freeport.Address(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	key := filepath.Join(GinkgoT().TempDir(), "notify.key")
	Expect(os.WriteFile(key, []byte(planted+"-key"), 0o600)).To(Succeed())
	nowhere, err := freeport.Address(ctx)
	Expect(err).NotTo(HaveOccurred())
	options = demo.WorldOptions{
		Release: hub.OCM13, Binary: binary, Clusters: clusters(fleetSize), Canaries: clusters(1), Output: GinkgoWriter, ShippedRights: true,
		Fleet: fleet.Options{Latency: 50 * time.Millisecond, DeadlineAfter: time.Second},
		OperatorFlags: []string{
			"--webhook-addr=" + hooks, "--metrics-addr=" + metrics, "--log-level=debug",
			// Nothing listens there, so that each notification is a reason to speak of the URL.
			"--notify-url=http://" + nowhere + "/?key=" + planted + "-url", "--notify-key-file=" + key,
		},
	}
	world, err = demo.StartWorld(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(world.Stop()).To(Succeed()) })
	watching, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	seen, err = recording.Record(watching, world.Client)
	Expect(err).NotTo(HaveOccurred())
	plans = filepath.Join(world.Dir, "plans.jsonl")
	options.OperatorFlags = append(options.OperatorFlags, "--trace-file="+plans)
	Expect(world.StartOperator(options)).To(Succeed())
})

var _ = BeforeEach(func() {
	Expect(world.Operator.Done()).NotTo(BeClosed(), "the operator has ended:\n%s", world.Operator.Tail(20))
})

var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(world.Operator.Tail(20))
		GinkgoWriter.Println(forge.Tail(20))
	}
})

var _ = AfterSuite(func(ctx SpecContext) {
	if world == nil {
		return
	}
	report, err := seen.Judge(ctx, world.Client, plans)
	Expect(err).NotTo(HaveOccurred(), "every ledger that was stored is one that the second planner allows")
	AddReportEntry("traces", report)
	Expect(report.Planned).NotTo(BeZero(), "the operator wrote no plans to %s", plans)
	Expect(report.Believed).To(BeZero(), "every record was admitted or adopted by a plan in %s", plans)
	log, err := os.Open(world.AuditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(log.Close()).To(Succeed()) }()
	record, err := rights.Read(log)
	Expect(err).NotTo(HaveOccurred())
	Expect(record.Refused).To(BeEmpty(), "what manifests/rbac does not grant")
	Expect(secretsShown(ctx)).To(BeEmpty(), "what only Secrets may hold, and what URLs and variables do")
})

// clusters are the first n names of the shared fleet.
func clusters(n int) []string {
	names := make([]string, 0, n)
	for _, c := range fleet.Numbered("cluster", fleetSize)[:n] {
		names = append(names, c.Name)
	}
	return names
}

// operatorLog is what the operators printed.
func operatorLog() string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(world.Dir, "operator.log"))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// operatorMetrics is what the operator serves, with the code of the answer.
func operatorMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, body), err
}
