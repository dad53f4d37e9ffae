package load

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/render/flaw"
)

// doubt is what the flaws of an object leave open. The object is judged on without what
// is flawed, so that one mistake does not hide another; what is then found wrong where
// a flaw may be the cause would be the same mistake told twice.
type doubt struct {
	declared map[string]any
	// flawed are the fields with flaws, meant those that misspelt ones were meant to be.
	flawed, meant []flaw.Path
	// strange are the objects that have a field nobody knows. It may be any field that
	// they lack.
	strange []flaw.Path
}

// note adds the flaws of the object.
func (d *doubt) note(flaws ...flaw.Flaw) {
	for _, f := range flaws {
		switch {
		case f.Reason != flaw.ReasonUnknownField:
			d.flawed = append(d.flawed, f.Field)
		case f.Meant != "":
			d.meant = append(d.meant, f.Meant)
		default:
			d.strange = append(d.strange, f.Field.Parent())
		}
	}
}

// lacks reports whether a field may only be missing because it is misspelt.
func (d *doubt) lacks(field flaw.Path) bool {
	return slices.ContainsFunc(d.meant, field.Under) || slices.ContainsFunc(d.strange, func(object flaw.Path) bool {
		rest, inside := strings.CutPrefix(string(field), string(object))
		if steps := flaw.Path(rest).Steps(); inside && len(steps) > 0 {
			fields, _ := object.In(d.declared).(map[string]any)
			_, present := fields[steps[0]]
			return !present
		}
		return false
	})
}

// open reports whether it is not known what a field was meant to say.
func (d *doubt) open(field flaw.Path) bool {
	return slices.ContainsFunc(d.flawed, field.Under) || d.lacks(field)
}

// explains reports whether what is found wrong with a field may come from one of the
// flaws: it is the field itself, or one around it, or stands beside it in one entry of a
// list.
func (d *doubt) explains(field flaw.Path) bool {
	around := func(flawed flaw.Path) bool { return flawed.Under(field) || field == "" }
	inEntry := func(object flaw.Path) bool { return object.Position() >= 0 && field.Under(object) }
	return d.open(field) || slices.ContainsFunc(d.strange, around) || slices.ContainsFunc(d.strange, inEntry) ||
		slices.ContainsFunc(slices.Concat(d.flawed, d.meant), func(flawed flaw.Path) bool {
			return around(flawed) || field.Under(leftOpen(flawed))
		})
}

// registrationAt is where an AddOnTemplate says what credentials its agent needs.
const registrationAt flaw.Path = "spec.registration"

// withoutFlaws returns a normalised object without the fields that have flaws, which can
// be decoded; nil where nothing is left to be judged. Manifests stay as they are: they are
// rendered one by one.
func (d *doubt) withoutFlaws(object *unstructured.Unstructured, flaws []flaw.Flaw) *unstructured.Unstructured {
	if len(flaws) == 0 {
		return object
	}
	if object == nil || slices.ContainsFunc(flaws, func(f flaw.Flaw) bool { return f.Field == "" || f.Field == metadataKey }) {
		return nil
	}
	if _, isObject := object.Object[specKey].(map[string]any); !isObject {
		return nil
	}
	part := object.DeepCopy()
	for _, f := range flaws {
		if f.Reason != flaw.ReasonUnknownField && !inManifest(f.Field) {
			f.Field.RemoveFrom(part.Object)
		}
	}
	if spec, isObject := part.Object[specKey].(map[string]any); isObject && spec["registration"] == nil && part.GetKind() == templateKind && d.explains(registrationAt) {
		spec["registration"] = []any{} // there is one, and a variable comes with it
	}
	return part
}

// leftOpen is what a wrong value of the field leaves open: beside it in an entry of a list,
// or beside a type, nothing means what it says. Of a manifest it is all or its metadata:
// rendering has other words for what names it.
func leftOpen(p flaw.Path) flaw.Path {
	inEntry := slices.ContainsFunc(p.Steps(), func(step string) bool { _, err := strconv.Atoi(step); return err == nil })
	manifest := manifestOf(p)
	switch {
	case inManifest(p) && p.Parent() == manifest:
		return manifest
	case inManifest(p) && p.Under(manifest.Child(metadataKey)):
		return manifest.Child(metadataKey)
	case inManifest(p), p.Position() >= 0, !inEntry && p.Last() != "type":
		return p
	default:
		return p.Parent()
	}
}

// inManifest reports whether the field is one of a manifest.
func inManifest(p flaw.Path) bool {
	return strings.HasPrefix(string(p), string(manifestsAt)+"[")
}

// manifestOf is the manifest that the field is in, the list of them for a field that is in
// none.
func manifestOf(p flaw.Path) flaw.Path {
	rest, _ := strings.CutPrefix(string(p), string(manifestsAt))
	return manifestsAt + flaw.Path(rest[:strings.IndexByte(rest, ']')+1])
}
