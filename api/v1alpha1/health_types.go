package v1alpha1

// ProberType names a way to determine the health of an add-on on a cluster.
type ProberType string

const (
	// ProberLease requires the conditions of ProberWorkloadAvailability, and that the add-on's agent renews its
	// lease. The klusterlet watches the lease and writes Available.
	ProberLease ProberType = "Lease"
	// ProberWork requires that the works are applied and their objects exist.
	ProberWork ProberType = "Work"
	// ProberDeploymentAvailability requires available pods of Deployments.
	ProberDeploymentAvailability ProberType = "DeploymentAvailability"
	// ProberWorkloadAvailability requires available pods of every workload.
	ProberWorkloadAvailability ProberType = "WorkloadAvailability"
	// ProberCEL evaluates healthCheckExprs.
	ProberCEL ProberType = "CEL"
	// ProberNone requires the conditions of ProberWork, and leaves the Available condition to another writer.
	ProberNone ProberType = "None"
)

// Health says how the health of an add-on on a cluster is determined. It is policy: a change
// creates no new content.
// +kubebuilder:validation:XValidation:rule="(self.prober == 'CEL') == (has(self.healthCheckExprs) && size(self.healthCheckExprs) > 0)",message="prober CEL and healthCheckExprs must be set together"
type Health struct {
	// Prober is the name of the check, as in OCM's add-on framework, or CEL.
	// +kubebuilder:validation:Enum=Lease;Work;DeploymentAvailability;WorkloadAvailability;CEL;None
	// +kubebuilder:default=WorkloadAvailability
	// +optional
	Prober ProberType `json:"prober,omitempty"`
	// HealthCheckExprs of the prober CEL, as in Flux's Kustomization. Every object that an entry selects must be
	// current.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
}

// HealthCheckExpr judges the objects of one kind by the work agent's report about them. Expressions read feedback
// (values of feedbackRules by name), conditions (of the manifest in the work, by type, each with status, reason and
// message), apiVersion, kind, and metadata with name and namespace. They are evaluated in the order inProgress,
// failed, current, degraded.
type HealthCheckExpr struct {
	// APIVersion of the objects.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Namespace of the objects; any namespace if absent.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; any name if absent.
	// +optional
	Name string `json:"name,omitempty"`
	// InProgress is true while the object has not reached its final state.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	InProgress string `json:"inProgress,omitempty"`
	// Failed is true when the object failed. The cluster then fails at once.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Failed string `json:"failed,omitempty"`
	// Current is true when the object is in its desired state.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Current string `json:"current"`
	// Degraded is true when the object is current but serves less than it should. It sets the
	// add-on's Degraded condition and does not affect a rollout.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Degraded string `json:"degraded,omitempty"`
}
