package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// referencedIn collects the variables that a parsed document names.
func referencedIn(names map[string]bool, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			referencedIn(names, v)
		}
	case []any:
		for _, v := range value {
			referencedIn(names, v)
		}
	case string:
		maps.Copy(names, variable.References(value))
	}
}

// clusterVariables are the variables of a template that come from the cluster. They become one text, which is equal
// for clusters with equal values; "": there are none. Problems with them are part of the text.
type clusterVariables struct {
	Values  map[string]string `json:"values,omitempty"`
	Trouble []string          `json:"trouble,omitempty"`
}

// variablesOf reads from the cluster the variables that the template names. For a package, the cluster's annotation
// gives values instead of variables.
func (t *parsedTemplate) variablesOf(c Cluster) string {
	if t.pkg != nil {
		c.Values = ""
	}
	if len(t.ofCluster) == 0 && c.Values == "" {
		return ""
	}
	v := clusterVariables{Values: map[string]string{}}
	if c.Values != "" {
		v.annotated(c.Values, t.referenced)
	}
	if len(t.ofCluster) > 0 {
		for name, value := range c.Labels {
			v.set(t.ofCluster, variable.ClusterLabelPrefix+identifier(name), value, "label")
		}
		for _, claim := range c.Claims {
			v.set(t.ofCluster, variable.ClusterClaimPrefix+identifier(claim.Name), claim.Value, "claim")
		}
	}
	if len(v.Values)+len(v.Trouble) == 0 {
		return ""
	}
	slices.Sort(v.Trouble)
	text, _ := json.Marshal(v) // strings only
	return string(text)
}

// set takes one label or claim if the template names it. If two have the same variable name, neither is taken.
func (v *clusterVariables) set(named map[string]bool, name, value, what string) {
	if !named[name] {
		return
	}
	if _, twice := v.Values[name]; twice {
		v.trouble(fmt.Sprintf("two %ss of the cluster are written %s", what, name))
		return
	}
	if HasNUL(value) {
		v.trouble(fmt.Sprintf("the %s of the cluster that is written %s contains NUL", what, name))
		return
	}
	v.Values[name] = value
}

func (v *clusterVariables) trouble(text string) {
	if !slices.Contains(v.Trouble, text) {
		v.Trouble = append(v.Trouble, text)
	}
}

// annotated takes, from the annotation addon.open-cluster-management.io/values, the variables that the template
// names. The rest of the annotation is for charts.
func (v *clusterVariables) annotated(annotation string, referenced map[string]bool) {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(annotation)))
	d.UseNumber()
	err := d.Decode(&values)
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		v.trouble("the annotation addon.open-cluster-management.io/values is not a JSON object")
		return
	}
	for name, value := range values {
		if !referenced[name] || variable.BuiltIn(name) {
			continue
		}
		text, err := variable.ScalarText(value)
		if err != nil || HasNUL(text) {
			v.trouble(fmt.Sprintf("the annotation addon.open-cluster-management.io/values has no text for %s", name))
			continue
		}
		v.Values[name] = text
	}
}

// identifier returns a name in which _ replaces every character that a variable name cannot contain.
func identifier(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			return c
		}
		return '_'
	}, name)
}

// merge adds the variables of the cluster to a rendering. They override customised ones.
func (b *builder) merge(ofCluster string) {
	maps.Copy(b.variables.values, b.assignment.mapped)
	if ofCluster == "" {
		return
	}
	var v clusterVariables
	if err := json.Unmarshal([]byte(ofCluster), &v); err != nil {
		v.Trouble = append(v.Trouble, err.Error())
	}
	maps.Copy(b.variables.values, v.Values)
	for _, text := range v.Trouble {
		b.found.add(Finding{Template: b.template.name, Reason: flaw.ReasonInvalidVariable, Message: text})
	}
}

// probeVariables are sample values to check variables that only a cluster gives: labels and claims that the template
// names, and values of configurations that a ManagedClusterAddOn may name. The clusters that will get the content are
// not known yet.
func (a *assignment) probeVariables() string {
	t := a.template
	if t == nil || t.pkg != nil {
		return "" // a chart has its own values for a cluster without them
	}
	v := clusterVariables{Values: map[string]string{}}
	for name := range t.ofCluster {
		v.Values[name] = t.probeValue(name)
	}
	for name := range a.unassigned {
		v.Values[name] = t.probeValue(name)
	}
	if len(v.Values) == 0 {
		return ""
	}
	text, _ := json.Marshal(v) // strings only
	return string(text)
}

// probeValue is a sample value of the type that the template declares for a variable.
func (t *parsedTemplate) probeValue(name string) string {
	switch t.typed[name] {
	case variable.TypeInteger, variable.TypeNumber:
		return "1"
	case variable.TypeBoolean:
		return trueText
	default:
		return "value"
	}
}
