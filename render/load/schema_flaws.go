package load

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// wrongType finds the types in kube-openapi's message.
var wrongType = regexp.MustCompile(`must be of type ([a-z,]+): "([a-z]+)"`)

// noAlternative finds the field of a value that is neither integer nor string. kube-openapi names the field only in
// its message, in one of two forms.
var noAlternative = regexp.MustCompile(`^"([^"]+)" must validate at least one schema|must be of type integer \([^)]*\) in (\S+)$`)

// spokenPath matches the path at the start of kube-openapi's message.
var spokenPath = regexp.MustCompile(`^\S+ in body `)

// schemaFlaws returns the flaws for which the API server would refuse a completed object: its types, bounds and
// patterns, duplicates in lists with keys, the metadata of embedded resources, and its rules. The Reason
// of a flaw depends on the role of the object and on the field. It may drop metadata fields of embedded resources that the API server drops.
func schemaFlaws(object map[string]any, k kindSchema, r role) []flaw.Flaw {
	var errs field.ErrorList
	errs = append(errs, validation.ValidateCustomResource(nil, object, k.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if err := objectmeta.Coerce(nil, object, k.structural, false, false); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, objectmeta.Validate(nil, object, k.structural, false)...)
	}
	if len(errs) == 0 { // like the API server, which does not evaluate rules on an invalid object
		errs = append(errs, k.rules(object)...)
	}
	var flaws []flaw.Flaw
	for _, err := range errs {
		if f := flawOf(err, r); !leftToRollout(f, err.Type) {
			flaws = append(flaws, f)
		}
	}
	slices.SortStableFunc(flaws, func(a, b flaw.Flaw) int { return strings.Compare(string(a.Field), string(b.Field)) })
	return flaws
}

func flawOf(err *field.Error, r role) flaw.Flaw {
	at := flaw.Path(strings.TrimPrefix(err.Field, "<nil>"))
	if alternative := noAlternative.FindStringSubmatch(err.Detail); alternative != nil {
		return flaw.Flaw{Field: flaw.Path(alternative[1] + alternative[2]), Reason: flaw.ReasonInvalidType, Message: "must be an integer or a string"}
	}
	f := flaw.Flaw{Field: at, Reason: reasonOf(r, at, err.Type)}
	types := wrongType.FindStringSubmatch(err.Detail)
	switch {
	case types != nil:
		f.Reason = flaw.ReasonInvalidType
		f.Message, f.Hint = strict.MustBe(types[1], types[2])
		return f
	case strings.Contains(err.Detail, "must be of type byte"):
		f.Message, f.Hint = "is not base64", "encode the text as base64"
		return f
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		f.Message, f.Missing = flaw.IsRequired, true
	case field.ErrorTypeDuplicate:
		f.Message = "is there twice"
	case field.ErrorTypeNotSupported:
		f.Message = err.ErrorBody()
	case field.ErrorTypeTooLong:
		// The schema counts characters, although the API server's message says bytes.
		f.Message = strings.ReplaceAll(spokenPath.ReplaceAllString(err.Detail, ""), "byte", "character")
	default:
		f.Message = spokenPath.ReplaceAllString(err.Detail, "")
		if f.Message == "" {
			f.Message = err.ErrorBody()
		}
		if value, isString := err.BadValue.(string); isString && strings.HasSuffix(string(at), "].metadata.namespace") {
			f.Message = fmt.Sprintf("%q: %s", flaw.Shown(value), f.Message)
		}
	}
	return f
}

// reasonOf is the documented reason of an error in a field of a kind.
func reasonOf(r role, at flaw.Path, kind field.ErrorType) problem.Reason {
	if at.Under(metadataKey) {
		return flaw.ReasonInvalidManifest
	}
	switch r {
	case roleHubConfig:
		return flaw.ReasonInvalidConfig
	case roleConfig:
		return configReason(at, kind)
	case roleTemplate:
		return templateReason(at)
	case roleRollout:
		return flaw.ReasonInvalidRolloutStrategy
	case roleAddOn:
		if kind == field.ErrorTypeDuplicate && at.Under("spec.installStrategy.placements") {
			return flaw.ReasonDuplicatePlacement
		}
	default:
	}
	return flaw.ReasonInvalidManifest
}

func configReason(at flaw.Path, kind field.ErrorType) problem.Reason {
	switch {
	case at.Under("spec.customizedVariables") && kind == field.ErrorTypeDuplicate:
		return flaw.ReasonDuplicateVariable
	case at.Under("spec.customizedVariables"):
		return flaw.ReasonInvalidVariable
	case at.Under("spec.agentInstallNamespace"):
		return flaw.ReasonInvalidRegistration
	default:
		return flaw.ReasonInvalidConfig
	}
}

func templateReason(at flaw.Path) problem.Reason {
	switch {
	case at.Under("spec.registration") && strings.Contains(string(at), ".customSigner"):
		return flaw.ReasonInvalidSigner
	case at.Under("spec.registration"):
		return flaw.ReasonInvalidRegistration
	case at.Under("spec.agentSpec.workload"):
		return flaw.ReasonInvalidManifest
	default:
		return flaw.ReasonInvalidTemplate
	}
}
