package flaw

import "github.com/addonflow/addonflow/api/problem"

// Reasons of the problems found while a commit is loaded, as documented in the list of bad
// inputs.
const (
	// ReasonUnknownField: the field does not exist; no field is silently ignored.
	ReasonUnknownField problem.Reason = "UnknownField"
	// ReasonInvalidType: the value has another type than the field; values are not converted.
	ReasonInvalidType problem.Reason = "InvalidType"
	// ReasonUnsupportedKind: a commit may not contain objects of this kind or apiVersion.
	ReasonUnsupportedKind problem.Reason = "UnsupportedKind"
	// ReasonDuplicateObject: two files declare the same object.
	ReasonDuplicateObject problem.Reason = "DuplicateObject"
	// ReasonInvalidManifest: the API server would refuse an object, or a manifest of a template.
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
	// ReasonUnresolvedVariable: a template uses a variable without a value.
	ReasonUnresolvedVariable problem.Reason = "UnresolvedVariable"
	// ReasonInvalidRegistration: a registration block that cannot be used.
	ReasonInvalidRegistration problem.Reason = "InvalidRegistration"
	// ReasonInvalidSigner: a custom signer that cannot be used.
	ReasonInvalidSigner problem.Reason = "InvalidSigner"
	// ReasonReferenceNotFound: a reference that even the hub cannot resolve.
	ReasonReferenceNotFound problem.Reason = "ReferenceNotFound"
	// ReasonInvalidReference: a reference to an object that belongs to another owner.
	ReasonInvalidReference problem.Reason = "InvalidReference"
	// ReasonCrossNamespaceReference: an object in a namespace that is not the source's.
	ReasonCrossNamespaceReference problem.Reason = "CrossNamespaceReference"
	// ReasonConfigurationUnsupported: a configuration of a kind the add-on does not list (OCM's word).
	ReasonConfigurationUnsupported problem.Reason = "ConfigurationUnsupported"
	// ReasonDuplicatePlacement: one installStrategy lists a placement twice.
	ReasonDuplicatePlacement problem.Reason = "DuplicatePlacement"
	// ReasonInvalidRolloutStrategy: a pace that is not a number, percent or duration.
	ReasonInvalidRolloutStrategy problem.Reason = "InvalidRolloutStrategy"
	// ReasonInvalidDuration: a soak that is not a duration.
	ReasonInvalidDuration problem.Reason = "InvalidDuration"
	// ReasonObjectConflict: two add-ons deploy different versions of one object to one cluster.
	ReasonObjectConflict problem.Reason = "ObjectConflict"
	// ReasonAddOnNotAllowed: the source may not declare an add-on of this name.
	ReasonAddOnNotAllowed problem.Reason = "AddOnNotAllowed"
	// ReasonInvalidHealth: a health policy that cannot be used.
	ReasonInvalidHealth problem.Reason = "InvalidHealth"
	// ReasonLimitExceeded: more than a limit allows.
	ReasonLimitExceeded problem.Reason = "LimitExceeded"
)
