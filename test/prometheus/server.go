package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/freeport"
)

const (
	// scrapeEvery is how often targets are scraped.
	scrapeEvery = 200 * time.Millisecond
	// readyWithin bounds a start on a busy machine.
	readyWithin = time.Minute
)

// Start runs a Prometheus that scrapes a target (host:port), until the test ends, and returns
// its address. It skips the test if the program is not installed.
func Start(tb testing.TB, target string) string {
	tb.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		tb.Skip("prometheus is not installed; on Debian: apt-get install prometheus")
	}
	listen, err := freeport.Address(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: %[1]s, scrape_timeout: %[1]s}
scrape_configs:
- job_name: clusters
  static_configs: [{targets: [%[2]q]}]
`, scrapeEvery, target)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+listen, "--log.level=warn") //nolint:noctx // it ends with the test
	cmd.Stdout, cmd.Stderr = tb.Output(), tb.Output()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // ended by the signal
	})
	address := "http://" + listen
	if err := awaitReady(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return address
}

// awaitReady waits until Prometheus answers queries.
func awaitReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("prometheus does not get ready"))
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/-/ready", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				http.DefaultClient.CloseIdleConnections()
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(scrapeEvery):
		}
	}
}
