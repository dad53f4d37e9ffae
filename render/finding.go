package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// ReasonNotSupported: the template uses a feature that cannot be delivered yet.
const ReasonNotSupported problem.Reason = "NotSupported"

// Finding is one error in a content, found by rendering it. Template or Config names the object (a Config as
// namespace/name), Field the path inside that object.
type Finding struct {
	Template, Config, Field string
	// About is the configuration of another kind with the finding; otherwise zero.
	About ConfigReference
	// Package names an AddOnPackage; File and Line (0: unknown) are in its folder.
	Package, File string
	Line          int
	Reason        problem.Reason
	Message, Hint string
}

// String returns object: field: message; hint.
func (f Finding) String() string {
	parts := make([]string, 0, 4)
	switch {
	case f.Package != "":
		parts = append(parts, v1alpha1.AddOnPackageKind+"/"+f.Package)
	case f.Template != "":
		parts = append(parts, "AddOnTemplate/"+f.Template)
	case f.Config != "":
		parts = append(parts, "AddOnDeploymentConfig/"+f.Config)
	case f.About.Name != "":
		parts = append(parts, f.About.String())
	}
	if f.File != "" {
		parts = append(parts, f.place(""))
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	text := strings.Join(append(parts, f.Message), ": ")
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	return text
}

// place is file:line, the file below dir.
func (f Finding) place(dir string) string {
	file := path.Join(dir, f.File)
	if f.Line > 0 {
		file = fmt.Sprintf("%s:%d", file, f.Line)
	}
	return file
}

// InvalidError means that content cannot be rendered. It has all findings. A retry does not help.
type InvalidError struct {
	AddOn    string
	Findings []Finding
	// more counts findings that were omitted.
	more int
}

// shortened has only the findings that the texts name.
func (e *InvalidError) shortened() *InvalidError {
	kept := min(brief.Shown, len(e.Findings))
	return &InvalidError{AddOn: e.AddOn, Findings: slices.Clone(e.Findings[:kept]), more: e.more + len(e.Findings) - kept}
}

// Brief is the first finding, with the problem before its position, for texts that may be cut.
func (e *InvalidError) Brief() string {
	if len(e.Findings) == 0 {
		return e.Error()
	}
	at := e.Findings[0]
	what := at.Message
	at.Message, at.Hint = "", ""
	if place := strings.TrimSuffix(at.String(), ": "); place != "" {
		what += " (" + place + ")"
	}
	if more := len(e.Findings) - 1 + e.more; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return what
}

// Error names the add-on and the first findings.
func (e *InvalidError) Error() string {
	var first []string
	for _, f := range e.Findings[:min(brief.Shown, len(e.Findings))] {
		first = append(first, f.String())
	}
	return fmt.Sprintf("cannot render add-on %q: %s", e.AddOn, brief.NamesOf(len(e.Findings)+e.more, first))
}

// maxFindings bounds the findings that are kept of one rendering.
const maxFindings = 1000

// findings collects the errors. Rendering continues, so that all errors are reported at once.
type findings struct {
	list []Finding
}

func (f *findings) add(finding Finding) {
	if len(f.list) == maxFindings {
		return
	}
	if !slices.Contains(f.list, finding) {
		f.list = append(f.list, finding)
	}
}

// addAll adds the flaws of an object; about names the object.
func (f *findings) addAll(about Finding, flaws ...flaw.Flaw) {
	for _, found := range flaws {
		about.Field, about.Reason, about.Message, about.Hint = string(found.Field), found.Reason, found.Message, found.Hint
		f.add(about)
	}
}

func (f *findings) err(addOn string) error {
	if len(f.list) == 0 {
		return nil
	}
	return &InvalidError{AddOn: addOn, Findings: f.list}
}
