package render

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/api/problem"
)

// wrongType finds the types in kube-openapi's words.
var wrongType = regexp.MustCompile(`must be of type ([a-z,]+): "([a-z]+)"`)

// noAlternative finds the field of a value that is neither integer nor string,
// which kube-openapi says in its message only, in one of two ways.
var noAlternative = regexp.MustCompile(`^"([^"]+)" must validate at least one schema|must be of type integer \([^)]*\) in (\S+)$`)

// spokenPath finds the path that kube-openapi says before its message.
var spokenPath = regexp.MustCompile(`^\S+ in body `)

// schemaFlaws returns what the API server would refuse in a completed object: its
// types, bounds and patterns, duplicates in lists with keys, and the metadata of
// embedded resources. Each flaw has the reason of the object's kind and field.
// It may drop metadata fields of embedded resources that the API server drops.
func schemaFlaws(object map[string]any, k kindSchema, r role) []flaw {
	var errs field.ErrorList
	errs = append(errs, validation.ValidateCustomResource(nil, object, k.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if err := objectmeta.Coerce(nil, object, k.structural, false, false); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, objectmeta.Validate(nil, object, k.structural, false)...)
	}
	var flaws []flaw
	for _, err := range errs {
		if f := flawOf(err, r); !leftToRollout(f, err.Type) {
			flaws = append(flaws, f)
		}
	}
	slices.SortStableFunc(flaws, func(a, b flaw) int { return strings.Compare(string(a.field), string(b.field)) })
	return flaws
}

func flawOf(err *field.Error, r role) flaw {
	at := fieldPath(strings.TrimPrefix(err.Field, "<nil>"))
	if alternative := noAlternative.FindStringSubmatch(err.Detail); alternative != nil {
		return flaw{field: fieldPath(alternative[1] + alternative[2]), reason: ReasonInvalidType, message: "must be an integer or a string"}
	}
	f := flaw{field: at, reason: reasonOf(r, at, err.Type)}
	types := wrongType.FindStringSubmatch(err.Detail)
	switch {
	case types != nil:
		f.reason = ReasonInvalidType
		f.message, f.hint = mustBe(types[1], types[2])
		return f
	case strings.Contains(err.Detail, "must be of type byte"):
		f.message, f.hint = "is not base64", "encode the text as base64"
		return f
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		f.message, f.missing = isRequired, true
	case field.ErrorTypeDuplicate:
		f.message = "is there twice"
	case field.ErrorTypeNotSupported:
		f.message = err.ErrorBody()
	case field.ErrorTypeTooLong:
		// The schema counts characters, whatever the API server's words for it are.
		f.message = strings.ReplaceAll(spokenPath.ReplaceAllString(err.Detail, ""), "byte", "character")
	default:
		f.message = spokenPath.ReplaceAllString(err.Detail, "")
		if f.message == "" {
			f.message = err.ErrorBody()
		}
	}
	return f
}

// reasonOf is the documented reason of a value that a field of a kind refuses.
func reasonOf(r role, at fieldPath, kind field.ErrorType) problem.Reason {
	if at.under(metadataKey) {
		return ReasonInvalidManifest
	}
	switch r {
	case roleHubConfig:
		return ReasonInvalidConfig
	case roleConfig:
		return configReason(at, kind)
	case roleTemplate:
		return templateReason(at)
	case roleAddOn:
		if kind == field.ErrorTypeDuplicate && at.under("spec.installStrategy.placements") {
			return ReasonDuplicatePlacement
		}
	default:
	}
	return ReasonInvalidManifest
}

func configReason(at fieldPath, kind field.ErrorType) problem.Reason {
	switch {
	case at.under("spec.customizedVariables") && kind == field.ErrorTypeDuplicate:
		return ReasonDuplicateVariable
	case at.under("spec.customizedVariables"):
		return ReasonInvalidVariable
	case at.under("spec.agentInstallNamespace"):
		return ReasonInvalidRegistration
	default:
		return ReasonInvalidConfig
	}
}

func templateReason(at fieldPath) problem.Reason {
	switch {
	case at.under("spec.registration") && strings.Contains(string(at), ".customSigner"):
		return ReasonInvalidSigner
	case at.under("spec.registration"):
		return ReasonInvalidRegistration
	case at.under("spec.agentSpec.workload"):
		return ReasonInvalidManifest
	default:
		return ReasonInvalidTemplate
	}
}
