package gitsource

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/addonflow/addonflow/api/problem"
)

// patchNamedIn starts the problem of a build that failed in a directory. If an operation of a JSON patch does not
// apply, kustomize names its path, but no position. If exactly one patch has such an operation, the problem is at
// that patch; otherwise it is at the kustomization.
func (w *walker) patchNamedIn(dir, message string) problem.Problem {
	at, longest := problem.Problem{Path: w.kustomizationOf(dir)}, 0
	for _, k := range w.kustomizations {
		if k.file != at.Path {
			continue
		}
		for _, name := range []string{"patches", "patchesJson6902"} {
			list, _ := w.values[k.file][name].([]any)
			for i := range list {
				entry, _ := list[i].(map[string]any)
				field, text := "patch", []byte(nil)
				if inline, ok := entry["patch"].(string); ok && inline != "" {
					text = []byte(inline)
				} else if file, ok := entry["path"].(string); ok {
					field, text = "path", w.files[path.Join(dir, file)]
				}
				switch n := longestNamed(text, message); {
				case n == 0 || n < longest:
				case n == longest:
					at.Line, at.Field = 0, "" // one of several
				default:
					longest, at = n, k.problem(fmt.Sprintf("%s[%d].%s", name, i, field))
				}
			}
		}
	}
	return at
}

// longestNamed returns the length of the longest path of an operation that a message names; 0 if the text is not a JSON
// patch.
func longestNamed(text []byte, message string) int {
	var operations []struct{ Path, From string }
	if json.Unmarshal(text, &operations) != nil {
		return 0
	}
	longest := 0
	for _, o := range operations {
		for _, named := range []string{o.Path, o.From} {
			if strings.Contains(message, named) {
				longest = max(longest, len(named))
			}
		}
	}
	return longest
}
