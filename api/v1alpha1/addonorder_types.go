package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddOnOrderKind is the kind of AddOnOrder.
const AddOnOrderKind = "AddOnOrder"

// OrderVerb is the action of an AddOnOrder.
type OrderVerb string

const (
	// OrderRetry gives clusters that failed another attempt with the same content, and gates a new
	// verdict.
	OrderRetry OrderVerb = "retry"
	// OrderPromote ends the soak of the clusters that are soaking in a stage.
	OrderPromote OrderVerb = "promote"
	// OrderAbort ends the rollout as Failed. Clusters keep their content.
	OrderAbort OrderVerb = "abort"
	// OrderRollback quarantines the content of the target, even if it succeeded, and moves its clusters back.
	OrderRollback OrderVerb = "rollback"
	// OrderUnblock ends the quarantine of content.
	OrderUnblock OrderVerb = "unblock"
)

// AddOnOrderSpec is the order of one user. It is about one rollout, its content and attempt.
// +kubebuilder:validation:XValidation:rule="(self.verb == 'promote') == (has(self.arguments) && has(self.arguments.stage))",message="promote needs arguments.stage, and no other verb takes it"
// +kubebuilder:validation:XValidation:rule="self.verb == 'retry' || !(has(self.arguments) && has(self.arguments.clusters))",message="arguments.clusters is for retry"
// +kubebuilder:validation:XValidation:rule="self.verb == 'rollback' || !(has(self.arguments) && (has(self.arguments.to) || has(self.arguments.withCRDs)))",message="arguments.to and arguments.withCRDs are for rollback"
// +kubebuilder:validation:XValidation:rule="self.verb != 'rollback' || has(self.reason) && size(self.reason) > 0",message="rollback needs a reason"
type AddOnOrderSpec struct {
	// RolloutUID is the UID of the AddOnRollout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RolloutUID types.UID `json:"rolloutUID"`
	// Rollout is the name of the AddOnRollout, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Rollout string `json:"rollout"`
	// Verb is the action: retry, promote, abort, rollback or unblock.
	// +kubebuilder:validation:Enum=retry;promote;abort;rollback;unblock
	Verb OrderVerb `json:"verb"`
	// Digest of the content of the order: the target of the rollout, or for unblock the quarantined content.
	// +kubebuilder:validation:Pattern="^v[0-9]+:sha256:[0-9a-f]{64}$"
	// +kubebuilder:validation:MaxLength=100
	Digest string `json:"digest"`
	// Attempt is status.attempt of the rollout. Orders rollback and unblock are about the content in every attempt.
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`
	// Arguments of the verb.
	// +optional
	Arguments *OrderArguments `json:"arguments,omitempty"`
	// Author is the user that creates the object. The API server refuses every other name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Author string `json:"author"`
	// Reason in words.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}

// OrderArguments are the arguments of a verb.
type OrderArguments struct {
	// Stage of promote.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Stage string `json:"stage,omitempty"`
	// Clusters of retry; absent: every cluster that failed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// To is the content to which rollback returns: its digest, the sha of its commit, or at least seven hexadecimal
	// digits with which one of them begins. Absent: the content that succeeded last. A commit is known while it is in
	// status.history.
	// +kubebuilder:validation:Pattern="^(v[0-9]+:sha256:[0-9a-f]{64}|[0-9a-f]{7,40})$"
	// +kubebuilder:validation:MaxLength=100
	// +optional
	To string `json:"to,omitempty"`
	// WithCRDs permits a rollback that changes a CustomResourceDefinition.
	// +optional
	WithCRDs bool `json:"withCRDs,omitempty"`
}

// OrderState is the result of an order.
type OrderState string

const (
	// OrderCarriedOut: the rollout follows the order.
	OrderCarriedOut OrderState = "CarriedOut"
	// OrderRefused: the order is not possible now, and has no effect.
	OrderRefused OrderState = "Refused"
)

// GivenOrder is an order in the status of the rollout.
type GivenOrder struct {
	// Name of the AddOnOrder.
	Name string `json:"name"`
	// Author of the order.
	Author string `json:"author"`
	// Reason in words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is the answer.
	// +optional
	Message string `json:"message,omitempty"`
}

// AddOnOrderStatus is the answer to an order.
type AddOnOrderStatus struct {
	// State is CarriedOut or Refused; absent: not answered yet.
	// +kubebuilder:validation:Enum=CarriedOut;Refused
	// +optional
	State OrderState `json:"state,omitempty"`
	// Message says what the operator did, or why it did nothing.
	// +optional
	Message string `json:"message,omitempty"`
	// AnsweredAt is when the order was answered.
	// +optional
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
}

// AddOnOrder requests an action of the operator on a rollout. Its spec never changes. The operator carries it out at
// most once, writes the answer into its status, and deletes it 30 days after the answer.
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.state) || has(self.status)",message="an AddOnOrder is answered once"
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aoo,categories=addonflow
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="Verb",type=string,JSONPath=`.spec.verb`
// +kubebuilder:printcolumn:name="Author",type=string,JSONPath=`.spec.author`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
type AddOnOrder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an AddOnOrder is immutable"
	Spec AddOnOrderSpec `json:"spec"`
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || self == oldSelf",message="an AddOnOrder is answered once"
	// +optional
	Status AddOnOrderStatus `json:"status,omitempty"`
}

// AddOnOrderList is a list of AddOnOrders.
// +kubebuilder:object:root=true
type AddOnOrderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnOrder `json:"items"`
}
