package gitsource

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/addonflow/addonflow/api/problem"
)

const (
	// scalarOnly is a delimiter that occurs in no value. Kustomize splits only scalars, so this
	// delimiter makes it refuse any other source. Splitting a value at an absent delimiter
	// returns the value.
	scalarOnly = "\x01addonflow\x01"
	// scalarError is kustomize's error for a source that is not a scalar.
	scalarError = "delimiter option can only be used with scalar nodes"
	// maxFeedback is how often replacements may write to fields that other replacements read.
	maxFeedback = 8
)

// Replacements can copy a field into itself. Twenty-five of them turn a kilobyte into more memory than the machine
// has (measured: 16 take 160 MiB, each further one doubles it). Two rules limit this, but still allow to copy a name
// or a host: a source is a string, number or boolean, and only a few replacements may write to a field that a
// replacement reads.

// replacementsIn checks and rewrites one list of replacements, or a single one.
func (w *walker) replacementsIn(value any, at func(field string) problem.Problem) {
	if value == nil {
		return
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for i, item := range list {
		field := ""
		if isList {
			field = fmt.Sprintf("[%d]", i)
		}
		r, ok := item.(map[string]any)
		if !ok {
			continue // kustomize reports the error
		}
		if source, ok := r["source"].(map[string]any); ok {
			splitNothing(source)
		}
		var typed types.Replacement
		if err := json.Unmarshal(canonical(r), &typed); err != nil {
			p := at(field)
			p.Reason, p.Message = RenderFailed, "invalid replacement: "+oneLine(err.Error())
			w.add(p)
			continue
		}
		w.noteReplacement(typed, at(field))
	}
}

// replacementFile checks a file of replacements and keeps it as rewritten.
func (w *walker) replacementFile(name string, docs []document) {
	if w.rewritten[name] {
		return
	}
	w.rewritten[name] = true
	var values []any
	for _, d := range docs {
		w.replacementsIn(d.value, func(field string) problem.Problem {
			return problem.Problem{Path: name, Line: source{node: d.node}.line(field), Field: field}
		})
		values = append(values, d.value)
	}
	w.files[name] = canonical(values...)
}

// splitNothing makes kustomize require a scalar. A source with the user's own delimiter must already be a scalar.
func splitNothing(source map[string]any) {
	options, _ := source["options"].(map[string]any)
	if delimiter, _ := options["delimiter"].(string); delimiter != "" {
		return
	}
	if options == nil {
		options = map[string]any{}
		source["options"] = options
	}
	options["delimiter"], options["index"] = scalarOnly, int64(0)
}

// fieldOf is a field of all objects of a kind, up to the first selector of its path.
type fieldOf struct {
	kind  string
	steps []string
}

func (w *walker) noteReplacement(r types.Replacement, at problem.Problem) {
	if r.Source != nil {
		path := r.Source.FieldPath
		if path == "" {
			path = types.DefaultReplacementFieldPath
		}
		w.reads = append(w.reads, fieldOf{r.Source.Kind, literalSteps(path)})
	}
	for _, t := range r.Targets {
		kind := ""
		if t.Select != nil && word.MatchString(t.Select.Kind) {
			kind = t.Select.Kind
		}
		for _, path := range t.FieldPaths {
			w.writes = append(w.writes, fieldOf{kind, literalSteps(path)})
		}
	}
	feedback := 0
	for _, target := range w.writes {
		feedback += target.readAgain(w.reads)
	}
	if feedback > maxFeedback && !w.loops {
		w.loops = true
		at.Reason = LimitExceeded
		at.Message = fmt.Sprintf("replacements write more than %d times to fields that replacements read", maxFeedback)
		w.add(at)
	}
}

var word = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// literalSteps splits a field path and stops at the first selector.
func literalSteps(path string) []string {
	if i := strings.IndexAny(path, `[*\`); i >= 0 {
		path = strings.TrimSuffix(path[:i], ".")
	}
	return strings.Split(path, ".")
}

// readAgain is the weight of a target that the sources read: 1 if it is a source itself; 2 if one contains the other,
// because a copy may end up inside the original.
func (f fieldOf) readAgain(reads []fieldOf) int {
	weight := 0
	for _, r := range reads {
		if f.kind != "" && r.kind != "" && f.kind != r.kind {
			continue
		}
		n := min(len(f.steps), len(r.steps))
		if strings.Join(f.steps[:n], ".") != strings.Join(r.steps[:n], ".") {
			continue
		}
		if len(f.steps) == len(r.steps) {
			weight = max(weight, 1)
			continue
		}
		weight = 2
	}
	return weight
}
