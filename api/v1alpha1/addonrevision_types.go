package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnRevisionKind is the kind of AddOnRevision.
const AddOnRevisionKind = "AddOnRevision"

// MaxRevisionBody is the size limit of the gzip'd body of an AddOnRevision, in bytes.
const MaxRevisionBody = 1 << 20

// AddOnRevisionSpec is an immutable snapshot of one add-on's content.
type AddOnRevisionSpec struct {
	// AddOn is the name of the add-on.
	AddOn string `json:"addOn"`
	// Digest of the content, v1:sha256:<hex>.
	// +kubebuilder:validation:Pattern="^v[0-9]+:sha256:[0-9a-f]{64}$"
	Digest string `json:"digest"`
	// Body is the gzip'd canonical content.
	//
	// Its format is base64, not byte: the API server decodes byte with the URL alphabet when a
	// CEL rule compares it, and then refuses every update of most bodies, even one that changes
	// only annotations. It leaves a format that it does not know alone.
	// +kubebuilder:validation:Format=base64
	Body []byte `json:"body"`
}

// AddOnRevision is an immutable snapshot of one add-on's content, named
// <add-on>-<10 hex of its digest>. Equal content of two commits is one revision.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=aorev,categories=addonflow
// +kubebuilder:printcolumn:name="Add-On",type=string,JSONPath=`.spec.addOn`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.spec.digest`,priority=1
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.metadata.annotations.addonflow\.io/succeeded-at`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AddOnRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an AddOnRevision is immutable"
	Spec AddOnRevisionSpec `json:"spec"`
}

// AddOnRevisionList is a list of AddOnRevisions.
// +kubebuilder:object:root=true
type AddOnRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnRevision `json:"items"`
}
