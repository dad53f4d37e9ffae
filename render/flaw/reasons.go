package flaw

import "github.com/addonflow/addonflow/api/problem"

// Reasons of the problems found while a commit is loaded. They are the words of
// the documented bad inputs.
const (
	// ReasonUnknownField: the field does not exist; nothing is accepted and ignored.
	ReasonUnknownField problem.Reason = "UnknownField"
	// ReasonInvalidType: the value has another type than the field; values are not coerced.
	ReasonInvalidType problem.Reason = "InvalidType"
	// ReasonUnsupportedKind: kind or apiVersion is none a commit may hold.
	ReasonUnsupportedKind problem.Reason = "UnsupportedKind"
	// ReasonDuplicateObject: two files declare the same object.
	ReasonDuplicateObject problem.Reason = "DuplicateObject"
	// ReasonInvalidManifest: an object, or a manifest of a template, the API server would refuse.
	ReasonInvalidManifest problem.Reason = "InvalidManifest"
	// ReasonManifestTooLarge: a manifest does not fit into a ManifestWork.
	ReasonManifestTooLarge problem.Reason = "ManifestTooLarge"
	// ReasonInvalidTemplate: an AddOnTemplate that cannot be rendered.
	ReasonInvalidTemplate problem.Reason = "InvalidTemplate"
	// ReasonInvalidPackage: an AddOnPackage that cannot be used.
	ReasonInvalidPackage problem.Reason = "InvalidPackage"
	// ReasonRenderFailed: a chart or manifest of an AddOnPackage does not render.
	ReasonRenderFailed problem.Reason = "RenderFailed"
	// ReasonInvalidConfig: an AddOnDeploymentConfig with a value that cannot be used.
	ReasonInvalidConfig problem.Reason = "InvalidConfig"
	// ReasonInvalidVariable: a variable whose name or value breaks the rule.
	ReasonInvalidVariable problem.Reason = "InvalidVariable"
	// ReasonDuplicateVariable: one configuration sets a variable twice.
	ReasonDuplicateVariable problem.Reason = "DuplicateVariable"
	// ReasonReservedVariable: a configuration sets a variable that is always computed.
	ReasonReservedVariable problem.Reason = "ReservedVariable"
	// ReasonUnresolvedVariable: a template uses a variable nobody sets.
	ReasonUnresolvedVariable problem.Reason = "UnresolvedVariable"
	// ReasonInvalidRegistration: a registration block that cannot be used.
	ReasonInvalidRegistration problem.Reason = "InvalidRegistration"
	// ReasonInvalidSigner: a custom signer that cannot be used.
	ReasonInvalidSigner problem.Reason = "InvalidSigner"
	// ReasonReferenceNotFound: a reference that nothing on the hub can satisfy either.
	ReasonReferenceNotFound problem.Reason = "ReferenceNotFound"
	// ReasonInvalidReference: a reference to an object that belongs to someone else.
	ReasonInvalidReference problem.Reason = "InvalidReference"
	// ReasonCrossNamespaceReference: an object in a namespace that is not the source's.
	ReasonCrossNamespaceReference problem.Reason = "CrossNamespaceReference"
	// ReasonConfigurationUnsupported: a configuration of a kind the add-on does not list (OCM's word).
	ReasonConfigurationUnsupported problem.Reason = "ConfigurationUnsupported"
	// ReasonDuplicatePlacement: one installStrategy lists a placement twice.
	ReasonDuplicatePlacement problem.Reason = "DuplicatePlacement"
	// ReasonInvalidRolloutStrategy: a pace that is no number, percent or duration at all.
	ReasonInvalidRolloutStrategy problem.Reason = "InvalidRolloutStrategy"
	// ReasonInvalidDuration: a soak that is no duration.
	ReasonInvalidDuration problem.Reason = "InvalidDuration"
	// ReasonObjectConflict: two add-ons bring different versions of one object to one cluster.
	ReasonObjectConflict problem.Reason = "ObjectConflict"
	// ReasonAddOnNotAllowed: the source may not declare an add-on of this name.
	ReasonAddOnNotAllowed problem.Reason = "AddOnNotAllowed"
	// ReasonInvalidHealth: a health policy that cannot be judged.
	ReasonInvalidHealth problem.Reason = "InvalidHealth"
	// ReasonLimitExceeded: more of something than is allowed.
	ReasonLimitExceeded problem.Reason = "LimitExceeded"
)
