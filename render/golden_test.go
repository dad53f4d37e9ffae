package render

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files under testdata/golden")

// Each directory of testdata/golden is an add-on: template.yaml and agentconfig.yaml
// hold specs, want.yaml the objects of cluster1 and the works they go into.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			content := contentOf(t, read(t, dir, "template.yaml"), read(t, dir, "agentconfig.yaml"))
			if found := newRenderer(t, content).Check(); len(found) > 0 {
				t.Fatalf("findings: %v", found)
			}
			rendered := renderedFor(t, content, Cluster{Name: "cluster1"})
			works, _, err := rendered.Works(owner, nil)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			fmt.Fprintf(&out, "# namespace: %s\n# digest: %s\n", rendered.Namespace, rendered.Digest)
			for _, work := range works {
				text, err := yaml.Marshal(work)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "---\n%s", text)
			}
			golden := filepath.Join(dir, "want.yaml")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(read(t, dir, "want.yaml"), "\n"), strings.Split(out.String(), "\n")); diff != "" {
				t.Errorf("(-want +got; -update writes it)\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
