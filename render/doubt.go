package render

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// doubt is what the flaws of an object leave open. The object is judged on without what
// is flawed, so that one mistake does not hide another; what is then found wrong where
// a flaw may be the cause would be the same mistake told twice (decision 34).
type doubt struct {
	declared map[string]any
	// flawed are the fields with flaws, meant those that misspelt ones were meant to be.
	flawed, meant []fieldPath
	// strange are the objects that have a field nobody knows. It may be any field that
	// they lack.
	strange []fieldPath
}

// note adds the flaws of the object.
func (d *doubt) note(flaws ...flaw) {
	for _, f := range flaws {
		switch {
		case f.reason != ReasonUnknownField:
			d.flawed = append(d.flawed, f.field)
		case f.meant != "":
			d.meant = append(d.meant, f.meant)
		default:
			d.strange = append(d.strange, f.field.parent())
		}
	}
}

// lacks reports whether a field may only be missing because it is misspelt.
func (d *doubt) lacks(field fieldPath) bool {
	return slices.ContainsFunc(d.meant, field.under) || slices.ContainsFunc(d.strange, func(object fieldPath) bool {
		rest, inside := strings.CutPrefix(string(field), string(object))
		if steps := fieldPath(rest).steps(); inside && len(steps) > 0 {
			fields, _ := object.in(d.declared).(map[string]any)
			_, present := fields[steps[0]]
			return !present
		}
		return false
	})
}

// open reports whether it is not known what a field was meant to say.
func (d *doubt) open(field fieldPath) bool {
	return slices.ContainsFunc(d.flawed, field.under) || d.lacks(field)
}

// explains reports whether what is found wrong with a field may come from one of the
// flaws: it is the field itself, or one around it, or stands beside it in one entry of a
// list.
func (d *doubt) explains(field fieldPath) bool {
	around := func(flawed fieldPath) bool { return flawed.under(field) || field == "" }
	inEntry := func(object fieldPath) bool { return object.position() >= 0 && field.under(object) }
	return d.open(field) || slices.ContainsFunc(d.strange, around) || slices.ContainsFunc(d.strange, inEntry) ||
		slices.ContainsFunc(slices.Concat(d.flawed, d.meant), func(flawed fieldPath) bool {
			return around(flawed) || field.under(leftOpen(flawed))
		})
}

// registrationAt is where an AddOnTemplate says what credentials its agent needs.
const registrationAt fieldPath = "spec.registration"

// withoutFlaws returns a normalised object without the fields that have flaws, which can
// be decoded; nil where nothing is left to be judged. Manifests stay as they are: they are
// rendered one by one.
func (d *doubt) withoutFlaws(object *unstructured.Unstructured, flaws []flaw) *unstructured.Unstructured {
	if len(flaws) == 0 {
		return object
	}
	if object == nil || slices.ContainsFunc(flaws, func(f flaw) bool { return f.field == "" || f.field == metadataKey }) {
		return nil
	}
	if _, isObject := object.Object[specKey].(map[string]any); !isObject {
		return nil
	}
	part := object.DeepCopy()
	for _, f := range flaws {
		if f.reason != ReasonUnknownField && !inManifest(f.field) {
			f.field.removeFrom(part.Object)
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
func leftOpen(p fieldPath) fieldPath {
	inEntry := slices.ContainsFunc(p.steps(), func(step string) bool { _, err := strconv.Atoi(step); return err == nil })
	manifest := manifestOf(p)
	switch {
	case inManifest(p) && p.parent() == manifest:
		return manifest
	case inManifest(p) && p.under(manifest.child(metadataKey)):
		return manifest.child(metadataKey)
	case inManifest(p), p.position() >= 0, !inEntry && p.last() != "type":
		return p
	default:
		return p.parent()
	}
}

// inManifest reports whether the field is one of a manifest.
func inManifest(p fieldPath) bool {
	return strings.HasPrefix(string(p), string(manifestsAt)+"[")
}

// manifestOf is the manifest that the field is in, the list of them for a field that is in
// none.
func manifestOf(p fieldPath) fieldPath {
	rest, _ := strings.CutPrefix(string(p), string(manifestsAt))
	return manifestsAt + fieldPath(rest[:strings.IndexByte(rest, ']')+1])
}
