package load

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// Foldered is a Located AddOnPackage with the content of its paths.
type Foldered interface {
	Located
	// Folder returns the content of the path in a field, such as spec.helm.path or spec.valueFiles[0]: its path in
	// the repository, and its files by their relative path ("" for a single file). Without files the path does not
	// exist; this was already reported. For spec.helm.oci it returns the chart of the registry; without files, the
	// chart was not fetched.
	Folder(field string) (dir string, files map[string][]byte)
}

// declaredPackage is an AddOnPackage for strict decoding.
type declaredPackage struct {
	APIVersion string                    `json:"apiVersion"`
	Kind       string                    `json:"kind"`
	Spec       v1alpha1.AddOnPackageSpec `json:"spec"`
}

// normalisePackage checks the fields of an AddOnPackage, for which the hub has no schema.
func normalisePackage(object map[string]any) []flaw.Flaw {
	flaws := strictTopLevel(object, reflect.TypeFor[declaredPackage]())
	spec, _ := object[specKey].(map[string]any)
	values := spec["values"] // a null value is meaningful here
	delete(spec, "values")
	dropNulls(object)
	if values != nil {
		spec["values"] = values
	}
	return flaws
}

// packagedAddOns returns the add-ons that AddOnPackages of the commit name, even if the packages have problems. Such
// an add-on needs no template.
func packagedAddOns(objects []Located) map[string]bool {
	out := map[string]bool{}
	for _, located := range objects {
		declared := located.GetUnstructured()
		if name, _ := valueAt(declared.Object, specKey, "addOn").(string); roleOf(declared.GroupVersionKind(), nil) == rolePackage {
			out[name] = true
		}
	}
	return out
}

// packageOf returns the first AddOnPackage of an add-on; checkPackages reports a second one.
func (l *loader) packageOf(addOn string) *loaded {
	for _, o := range l.objects {
		if o.role == rolePackage && packageAddOn(o) == addOn {
			return o
		}
	}
	return nil
}

func packageAddOn(o *loaded) string {
	name, _ := valueAt(o.GetUnstructured().Object, specKey, "addOn").(string)
	return name
}

// checkPackages finds packages whose add-on is not in the commit, and second packages of one add-on.
func (l *loader) checkPackages() {
	for _, o := range l.objects {
		if o.role != rolePackage {
			continue
		}
		addOn := packageAddOn(o)
		l.checkAllowed(o, "spec.addOn", addOn)
		if first := l.packageOf(addOn); first != o {
			p, line := first.Position("")
			l.reportNormalised(o, flaw.Flaw{
				Field: "spec.addOn", Reason: flaw.ReasonDuplicateObject,
				Message: fmt.Sprintf("add-on %q has a package already, in %s:%d", addOn, p, line), Hint: "keep one of them",
			})
		}
		if addOn != "" && !l.declared[addOn] {
			l.reportNormalised(o, flaw.Flaw{
				Field: "spec.addOn", Reason: flaw.ReasonReferenceNotFound,
				Message: fmt.Sprintf("the commit declares no ClusterManagementAddOn %q", addOn), Hint: "declare the add-on in the same commit",
			})
		}
	}
}

// takePackage adds the add-on's package to its content.
func (l *loader) takePackage(d *draft, c *render.Content) {
	o := l.packageOf(d.Name)
	if o == nil {
		return
	}
	d.pkg = o
	if slices.Contains(c.Supported, templateGroupResource()) {
		l.reportNormalised(o, flaw.Flaw{
			Field: "spec.addOn", Reason: flaw.ReasonInvalidPackage,
			Message: fmt.Sprintf("add-on %q lists addontemplates, and has a package", d.Name),
			Hint:    "remove addontemplates from its supportedConfigs, or the package",
		})
		d.broken = true
		return
	}
	if chart, fetched := chartOf(o); !fetched {
		d.Unfetched = chart
	}
	pkg := l.readPackage(o)
	if d.broken = d.broken || pkg == nil; pkg != nil {
		c.Package = pkg
	}
}

// ociField names a chart in a registry.
const ociField = "spec.helm.oci"

// chartOf returns the registry's chart that a package names, and whether its files are there; "": the package names
// none.
func chartOf(o *loaded) (reference string, fetched bool) {
	reference, _ = valueAt(o.GetUnstructured().Object, specKey, "helm", "oci").(string)
	foldered, ok := o.Located.(Foldered)
	if reference == "" || !ok {
		return "", true
	}
	_, files := foldered.Folder(ociField)
	return reference, files != nil
}

// folderField is the field that names the rendered folder or chart.
func folderField(o *loaded, pkg *render.Package) flaw.Path {
	if reference, _ := chartOf(o); reference != "" {
		return ociField
	}
	return flaw.Path(pkg.FolderField())
}

// readPackage reads a package with the files it names; nil if they have problems.
func (l *loader) readPackage(o *loaded) *render.Package {
	foldered, ok := o.Located.(Foldered)
	var declared declaredPackage
	object := o.object
	if object == nil || !ok || strict.Convert(object.Object, &declared) != nil {
		return nil
	}
	spec := declared.Spec
	pkg := &render.Package{
		Name: object.GetName(), Engine: chart.HelmChart, Values: map[string]any{},
		Variables: spec.Variables, Registration: spec.Registration, ManifestConfigs: spec.ManifestConfigs,
	}
	pkg.FromConfigs, _ = variable.ParseFromConfigs(object.GetAnnotations()[variable.FromConfigsAnnotation]) // packageFlaws checked both
	pkg.Newer, _ = strict.ParseNewerNames(object.GetAnnotations()[strict.NewerNamesAnnotation])
	if spec.Manifests != nil {
		pkg.Engine = chart.ManifestsFolder
	}
	_, files := foldered.Folder(string(folderField(o, pkg)))
	if text, fetched := chartOf(o); !fetched {
		reference, _ := v1alpha1.ParseChartReference(text) // packageFlaws checked it
		files = map[string][]byte{reference.Digest: nil}   // instead of the chart, which the digest identifies
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		pkg.Files = append(pkg.Files, render.NewPackageFile(name, files[name]))
	}
	good := files != nil
	for i := range spec.ValueFiles {
		values := l.valueFile(o, foldered, flaw.Path("spec.valueFiles").Index(i))
		pkg.Values = chart.MergeValues(pkg.Values, values)
		good = good && values != nil
	}
	pkg.Values = chart.MergeValues(pkg.Values, spec.Values)
	if hasNUL(pkg.Values) {
		l.reportNormalised(o, flaw.Flaw{Field: "spec.values", Reason: flaw.ReasonInvalidPackage, Message: "character NUL cannot be used"})
		return nil
	}
	if !good {
		return nil
	}
	return pkg
}

func (l *loader) valueFile(o *loaded, foldered Foldered, at flaw.Path) map[string]any {
	name, files := foldered.Folder(string(at))
	if files == nil {
		return nil // the reader reported why
	}
	values, err := chart.ReadValues(files[""])
	if err != nil {
		failed := flaw.Flaw{Field: at, File: name, Reason: flaw.ReasonInvalidPackage, Message: err.Error()}
		if e, ok := errors.AsType[*chart.Error](err); ok {
			failed.Line, failed.Message = max(e.Line, 1), e.Message
		}
		l.reportNormalised(o, failed)
		return nil
	}
	return values
}

// hasNUL reports whether values contain NUL, which no manifest may hold.
func hasNUL(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if render.HasNUL(key) || hasNUL(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasNUL)
	case string:
		return render.HasNUL(value)
	}
	return false
}

// packageFlaw converts a finding in a package to its position in the commit: in a file of the folder (line 1 if the
// line is unknown), with the field that names the folder.
func packageFlaw(o *loaded, f render.Finding) flaw.Flaw {
	about := flawOfFinding(f)
	foldered, ok := o.Located.(Foldered)
	if reference, _ := chartOf(o); reference != "" {
		return inChart(about, f)
	}
	if f.File == "" || !ok {
		return about
	}
	for _, engine := range []chart.Kind{chart.HelmChart, chart.ManifestsFolder} {
		if dir, files := foldered.Folder("spec." + string(engine) + ".path"); files != nil {
			at := flaw.Path(specKey).Child(string(engine)).Child("path")
			about.File, about.Line, about.Field = path.Join(dir, archive(f.File, files)), max(f.Line, 1), at
			if about.File != path.Join(dir, f.File) {
				about.Line, about.Message = 1, f.File+": "+about.Message
			}
			break
		}
	}
	return about
}

// inChart returns a finding in a chart of a registry. Its files are not in the commit, so the
// position is that of the field, and the file is part of the message.
func inChart(about flaw.Flaw, f render.Finding) flaw.Flaw {
	if f.File == "" && about.Field != "spec.helm.path" {
		return about // in a field of the package
	}
	about.Field = ociField
	if f.File != "" {
		about.Message = fmt.Sprintf("%s:%d: %s", f.File, max(f.Line, 1), about.Message)
	}
	return about
}

// archive returns the file of the commit that contains a file of a chart. If there is no such file, the file is in
// the archive of a sub-chart, which was unpacked into a folder of its name.
func archive(name string, files map[string][]byte) string {
	if _, known := files[name]; known {
		return name
	}
	if parts := strings.SplitN(name, "/", 3); len(parts) == 3 && parts[0] == "charts" {
		packed := "charts/" + parts[1] + ".tgz"
		if _, known := files[packed]; known {
			return packed
		}
	}
	return name
}
