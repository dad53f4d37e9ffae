package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddOnApprovalKind is the kind of AddOnApproval.
const AddOnApprovalKind = "AddOnApproval"

// Decision is the value of an AddOnApproval.
type Decision string

const (
	// Approve lets the stage continue.
	Approve Decision = "Approve"
	// Reject stops the stage.
	Reject Decision = "Reject"
)

// AddOnApprovalSpec is the decision of one user on one gate of type approval. It counts for one
// stage, digest and attempt of one rollout.
type AddOnApprovalSpec struct {
	// RolloutUID is the UID of the AddOnRollout. A rollout that was deleted and created again needs new decisions.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RolloutUID types.UID `json:"rolloutUID"`
	// Rollout is the name of the AddOnRollout, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Rollout string `json:"rollout"`
	// Stage of the rollout.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Stage string `json:"stage"`
	// Gate of the stage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Gate string `json:"gate"`
	// Digest of the content of the decision.
	// +kubebuilder:validation:Pattern="^v[0-9]+:sha256:[0-9a-f]{64}$"
	// +kubebuilder:validation:MaxLength=100
	Digest string `json:"digest"`
	// Attempt is status.attempt of the rollout.
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`
	// Decision is Approve or Reject.
	// +kubebuilder:validation:Enum=Approve;Reject
	Decision Decision `json:"decision"`
	// Comment says why.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`
	// Approver is the user that creates the object. The API server refuses every other name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Approver string `json:"approver"`
	// Groups of the approver on which the decision relies. The API server refuses a group of which the user is not a
	// member.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`
	// Forge is set by the operator if an account of a forge decided by a comment. The API server lets
	// no other user set it.
	// +optional
	Forge *ForgeAuthor `json:"forge,omitempty"`
}

// ForgeAuthor is the account of a forge that decided by a comment.
type ForgeAuthor struct {
	// Host of the forge.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host"`
	// Login of the account at the time of the comment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Login string `json:"login"`
	// AccountID is the number of the account. It stays if the login changes, so that an account counts once. Without it,
	// accounts are compared by login.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AccountID int64 `json:"accountID,omitempty"`
	// CommentID is the number of the comment.
	// +kubebuilder:validation:Minimum=1
	CommentID int64 `json:"commentID"`
}

// String is login@host.
func (f ForgeAuthor) String() string { return f.Login + "@" + f.Host }

// By names the approver, or the account of the forge that decided.
func (s AddOnApprovalSpec) By() string {
	if s.Forge != nil {
		return s.Forge.String()
	}
	return s.Approver
}

// AddOnApproval is the decision of one user on a gate of type approval. It never changes. Deleting it withdraws the
// decision, if no cluster was admitted because of it yet.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=aoa,categories=addonflow
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Gate",type=string,JSONPath=`.spec.gate`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`
// +kubebuilder:printcolumn:name="Login",type=string,JSONPath=`.spec.forge.login`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.spec.digest`,priority=1
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.spec.attempt`,priority=1
// +kubebuilder:printcolumn:name="Comment",type=string,JSONPath=`.spec.comment`,priority=1
type AddOnApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an AddOnApproval is immutable"
	Spec AddOnApprovalSpec `json:"spec"`
}

// AddOnApprovalList is a list of AddOnApprovals.
// +kubebuilder:object:root=true
type AddOnApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnApproval `json:"items"`
}
