package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// Package is an AddOnPackage with everything that it names: enough to render any cluster again, even without the
// repository. An add-on with a Package has no Templates; every cluster gets the Package.
type Package struct {
	// Name of the AddOnPackage.
	Name string `json:"name"`
	// Engine reads the files.
	Engine chart.Kind `json:"engine"`
	// Files of the folder, sorted by path.
	Files []PackageFile `json:"files"`
	// Values are the value files and the values of the package, merged; nulls are kept.
	Values map[string]any `json:"values,omitempty"`
	// FromConfigs are the variables that configurations give, as in a Template.
	FromConfigs []variable.FromConfig `json:"fromConfigs,omitempty"`
	// Newer are the names of fields and kinds that the annotation strict.NewerNamesAnnotation lists.
	Newer []string `json:"newer,omitempty"`
	// Variables, Registration and ManifestConfigs as declared.
	Variables       []v1alpha1.PackageVariable       `json:"variables,omitempty"`
	Registration    []addonv1alpha1.RegistrationSpec `json:"registration,omitempty"`
	ManifestConfigs []workv1.ManifestConfigOption    `json:"manifestConfigs,omitempty"`
}

// PackageFile is one file of a Package: as text if it is UTF-8, else as bytes.
type PackageFile struct {
	Path   string `json:"path"`
	Text   string `json:"text,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// NewPackageFile keeps a file as text, if it is UTF-8.
func NewPackageFile(path string, content []byte) PackageFile {
	if utf8.Valid(content) {
		return PackageFile{Path: path, Text: string(content)}
	}
	return PackageFile{Path: path, Binary: content}
}

// files returns the package's files in the form of package chart.
func (p *Package) files() []chart.File {
	out := make([]chart.File, 0, len(p.Files))
	for _, f := range p.Files {
		content := f.Binary
		if content == nil {
			content = []byte(f.Text)
		}
		out = append(out, chart.File{Path: f.Path, Content: content})
	}
	return out
}

// FolderField is the field of the AddOnPackage that names its folder, spec.helm.path or spec.manifests.path. As
// content, a chart of a registry equals the chart of a folder, so Load replaces this field by spec.helm.oci.
func (p *Package) FolderField() string { return "spec." + string(p.Engine) + ".path" }

// parsedPackage is a Package with the engine that renders its files.
type parsedPackage struct {
	*Package
	source *chart.Source
	charts chart.Engine
}

// parsePackage reads a package in place of a template.
func parsePackage(addOn string, p *Package, charts chart.Engine) *parsedTemplate {
	t := &parsedTemplate{
		pkg: &parsedPackage{Package: p, source: chart.NewSource(p.Engine, p.files()), charts: charts}, newer: p.Newer, configs: p.ManifestConfigs, configsAt: "spec.manifestConfigs",
		registration: p.Registration, registers: len(p.Registration) > 0,
		fromConfigs: p.FromConfigs, ofCluster: map[string]bool{},
	}
	for _, v := range p.Variables {
		if variable.ClusterGives(v.Name) {
			t.ofCluster[v.Name] = true
		}
	}
	about := Finding{Package: p.Name}
	text, err := json.Marshal(p)
	if err != nil {
		t.found.addAll(about, flaw.Flaw{Field: specKey, Reason: flaw.ReasonInvalidPackage, Message: err.Error()})
		return t
	}
	sum := sha256.Sum256(text)
	t.sum = hex.EncodeToString(sum[:])
	if _, err := registrationVolumes(addOn, p.Registration); err != nil {
		t.found.addAll(about, flaw.Flaw{Field: "spec.registration", Reason: flaw.ReasonInvalidRegistration, Message: err.Error()})
	}
	t.found.addAll(about, t.configFlaws()...)
	return t
}

// finding is an error of rendering, with its position.
func (p *Package) finding(err error) Finding {
	f := Finding{Package: p.Name, Reason: flaw.ReasonRenderFailed, Message: err.Error()}
	if failed, ok := errors.AsType[*chart.Error](err); ok {
		f.File, f.Line, f.Message, f.Hint = failed.File, failed.Line, failed.Message, failed.Hint
	}
	if f.File == "" {
		f.Field = p.FolderField()
	}
	return f
}

// ErrInvalidValues means that the annotation addon.open-cluster-management.io/values of a ManagedClusterAddOn is not a usable
// JSON object.
var ErrInvalidValues = errors.New("annotation addon.open-cluster-management.io/values is invalid")

// parseValues reads the annotation of a ManagedClusterAddOn.
func parseValues(annotation string) (map[string]any, error) {
	if annotation == "" {
		return nil, nil
	}
	values := map[string]any{}
	if err := json.Unmarshal([]byte(annotation), &values); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	if strings.Contains(annotation, `\u0000`) {
		return nil, fmt.Errorf("%w: it contains NUL", ErrInvalidValues)
	}
	return values, nil
}
