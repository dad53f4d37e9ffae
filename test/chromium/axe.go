package chromium

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Violations runs axe-core on the page, with every rule that it has by default, and returns what it
// finds, one finding a line. root is the directory of the repository: `make pages` installs
// axe-core below its bin.
func (t *Tab) Violations(root string) []string {
	t.tb.Helper()
	script, err := os.ReadFile(filepath.Join(root, "bin", "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.tb.Fatalf("%v; make pages", err)
	}
	t.Evaluate(string(script), nil)
	var found []struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []struct {
			HTML    string `json:"html"`
			Summary string `json:"failureSummary"`
		} `json:"nodes"`
	}
	t.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations)`, &found)
	var lines []string
	for _, v := range found {
		for _, n := range v.Nodes {
			lines = append(lines, fmt.Sprintf("%s: %s: %s: %s", v.ID, v.Help, n.HTML, strings.Join(strings.Fields(n.Summary), " ")))
		}
	}
	return lines
}
