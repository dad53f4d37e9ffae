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
	// Its format is base64, not byte. If a CEL rule compares a field of format byte, the API server decodes it with
	// the URL alphabet. It then refuses every update of most bodies, even an update that changes only annotations.
	// The API server ignores the unknown format base64.
	// +kubebuilder:validation:Format=base64
	Body []byte `json:"body"`
}

// AddOnRevision is an immutable snapshot of one add-on's content, named <add-on>-<10 hex of its digest>. Commits with
// equal content share one revision.
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
