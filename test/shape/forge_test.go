package shape

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields of GitHub's workflows that ours use; any other is an error.
type workflow struct {
	Name        string              `json:"name"`
	On          map[string]any      `json:"on"`
	Permissions map[string]string   `json:"permissions"`
	Concurrency map[string]any      `json:"concurrency,omitempty"`
	Jobs        map[string]forgeJob `json:"jobs"`
}

type forgeJob struct {
	RunsOn         string `json:"runs-on"`
	TimeoutMinutes int    `json:"timeout-minutes"`
	Environment    string `json:"environment,omitempty"`
	Steps          []struct {
		Name string            `json:"name,omitempty"`
		Uses string            `json:"uses,omitempty"`
		If   string            `json:"if,omitempty"`
		Run  string            `json:"run,omitempty"`
		With map[string]any    `json:"with,omitempty"`
		Env  map[string]string `json:"env,omitempty"`
	} `json:"steps"`
}

var (
	// pinned is an action by the name of its commit.
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	// inserted is an expression that the runner replaces before a shell sees it.
	inserted = regexp.MustCompile(`\$\{\{`)
	// makes is a call of make with its target.
	makes = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// TestWorkflows: they have no unknown field, pin every action by commit, have few rights and a
// limit of time, call only targets that exist, and insert nothing into a shell.
func TestWorkflows(t *testing.T) {
	var targets string
	found := 0
	for _, f := range tree(t) {
		if f.path == "Makefile" {
			targets = string(f.text)
		}
	}
	for _, f := range tree(t) {
		if path.Dir(f.path) != ".github/workflows" {
			continue
		}
		found++
		var w workflow
		if err := yaml.UnmarshalStrict(f.text, &w); err != nil {
			t.Errorf("%s: %v", f.path, err)
			continue
		}
		if w.Permissions["contents"] == "" || !strings.HasPrefix(string(f.text), "# Written for GitHub.") {
			t.Errorf("%s has no permissions, or does not say that it was not run", f.path)
		}
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == 0 || job.RunsOn == "" {
				t.Errorf("%s: job %s has no limit of time or no runner", f.path, name)
			}
			for _, step := range job.Steps {
				if (step.Uses == "") == (step.Run == "") || step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: a step runs nothing, or an action that is not pinned: %+v", f.path, step)
				}
				if inserted.MatchString(step.Run) {
					t.Errorf("%s: pass it by env: %s", f.path, step.Run)
				}
				for _, call := range makes.FindAllStringSubmatch(step.Run, -1) {
					if !strings.Contains(targets, "\n"+call[1]+":") {
						t.Errorf("%s: there is no target %s", f.path, call[1])
					}
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d workflows", found)
	}
}

// TestIssueForms: each has what GitHub requires, and no element without an id and a label.
func TestIssueForms(t *testing.T) {
	type form struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Labels      []string `json:"labels"`
		Body        []struct {
			Type        string         `json:"type"`
			ID          string         `json:"id"`
			Attributes  map[string]any `json:"attributes"`
			Validations map[string]any `json:"validations,omitempty"`
		} `json:"body"`
	}
	for _, f := range tree(t) {
		if path.Dir(f.path) != ".github/ISSUE_TEMPLATE" || path.Base(f.path) == "config.yml" {
			continue
		}
		var issue form
		if err := yaml.UnmarshalStrict(f.text, &issue); err != nil || issue.Name == "" || issue.Description == "" || len(issue.Body) == 0 {
			t.Errorf("%s: %+v, %v", f.path, issue, err)
		}
		var ids []string
		for _, element := range issue.Body {
			if !slices.Contains([]string{"textarea", "input", "dropdown", "checkboxes"}, element.Type) || element.Attributes["label"] == nil || slices.Contains(ids, element.ID) {
				t.Errorf("%s: %+v", f.path, element)
			}
			ids = append(ids, element.ID)
		}
	}
}
