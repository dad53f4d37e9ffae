package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// TestExpansionIsBounded: a template of a megabyte with a variable of a kilobyte in every line
// expands to a gigabyte; it is refused before it is expanded.
func TestExpansionIsBounded(t *testing.T) {
	var found findings
	s := &substitution{template: "t", values: map[string]string{"V": strings.Repeat("v", maxVariableValue)}, found: &found}
	list := make([]any, 100_000)
	for i := range list {
		list[i] = "{{V}}"
	}
	list[0] = strings.Repeat("{{V}}", 100_000)
	out, _ := json.Marshal(s.value(map[string]any{"list": list}, ""))
	if len(out) > 2*maxBrought {
		t.Errorf("%d bytes", len(out))
	}
	if len(found.list) != 1 || found.list[0].Reason != flaw.ReasonLimitExceeded || found.list[0].Field != "list[0]" {
		t.Errorf("found %v", found.list)
	}
	within := &substitution{values: s.values, found: &found}
	if got := within.value("{{V}}{{V}}", ""); got != s.values["V"]+s.values["V"] {
		t.Errorf("within the limit: %.40v", got)
	}
}

// TestFindingsAreBounded: a template with a hundred thousand mistakes is refused in the time
// that it takes to read it.
func TestFindingsAreBounded(t *testing.T) {
	var found findings
	for i := range 3 * maxFindings {
		found.add(Finding{Message: fmt.Sprint(i)})
	}
	if len(found.list) != maxFindings {
		t.Errorf("%d are kept", len(found.list))
	}
	var text strings.Builder
	for i := range 3 * maxFindings {
		fmt.Fprintf(&text, "{{V%d}}", i)
	}
	if _, missing := variable.Expand(text.String(), nil, text.Len()); len(missing) != 1000 {
		t.Errorf("%d variables without a value are named", len(missing))
	}
}

// TestValuesOfPackagesAreNotShared: a customised variable that a package maps below the node
// selector changes the values of one rendering, not the configuration.
func TestValuesOfPackagesAreNotShared(t *testing.T) {
	for _, engine := range []chart.Kind{chart.HelmChart, chart.ManifestsFolder} {
		selector := map[string]any{"zone": "a"}
		b := &builder{
			agent:      &agentConfig{nodeSelector: selector, variables: []addonv1alpha1.CustomizedVariable{{Name: "DISK", Value: "ssd"}}},
			template:   &parsedTemplate{pkg: &parsedPackage{Package: &Package{Engine: engine}}},
			assignment: &assignment{},
		}
		at := map[chart.Kind]string{chart.HelmChart: "global.nodeSelector.disk", chart.ManifestsFolder: "NodeSelector.disk"}[engine]
		b.template.pkg.Variables = []v1alpha1.PackageVariable{{Name: "DISK", Value: at}}
		values := b.agentValues()
		if global, ok := values["global"].(map[string]any); ok {
			values = map[string]any{"NodeSelector": global["nodeSelector"]}
		}
		if got, _ := values["NodeSelector"].(map[string]any); got["disk"] != "ssd" {
			t.Errorf("%s: the values are %v", engine, got)
		}
		if len(selector) != 1 {
			t.Errorf("%s: the configuration became %v", engine, selector)
		}
	}
}

// TestWildcardsMatchAsTheAgentDoes checks the matching against OCM's documentation: * is any
// text.
func TestWildcardsMatchAsTheAgentDoes(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"ab*ba", "aba", false},
		{"*a*", "bab", true},
		{"*a*a*", "bab", false},
		{"**", "x", true},
		{"a.c*", "abcd", false},
		{"*ab*b", "abb", true},
		{"*ab*b", "ab", false},
	} {
		if got := MatchesWildcard(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.text, got)
		}
	}
}
