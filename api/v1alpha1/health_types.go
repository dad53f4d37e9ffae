package v1alpha1

// ProberType names what decides whether an add-on is healthy on a cluster.
type ProberType string

const (
	// ProberLease asks, besides what ProberWorkloadAvailability asks, for the lease
	// that the add-on's agent renews. The klusterlet watches it and writes Available.
	ProberLease ProberType = "Lease"
	// ProberWork asks that the works are applied and their objects are there.
	ProberWork ProberType = "Work"
	// ProberDeploymentAvailability asks for the pods of Deployments.
	ProberDeploymentAvailability ProberType = "DeploymentAvailability"
	// ProberWorkloadAvailability asks for the pods of every workload.
	ProberWorkloadAvailability ProberType = "WorkloadAvailability"
	// ProberCEL asks healthCheckExprs.
	ProberCEL ProberType = "CEL"
	// ProberNone leaves Available to somebody else and asks what ProberWork asks.
	ProberNone ProberType = "None"
)

// Health says what decides the health of an add-on on a cluster. It is policy:
// changing it makes no new content.
// +kubebuilder:validation:XValidation:rule="(self.prober == 'CEL') == (has(self.healthCheckExprs) && size(self.healthCheckExprs) > 0)",message="prober CEL and healthCheckExprs need each other"
type Health struct {
	// Prober is who is asked; the names are those of OCM's add-on framework, and CEL.
	// +kubebuilder:validation:Enum=Lease;Work;DeploymentAvailability;WorkloadAvailability;CEL;None
	// +kubebuilder:default=WorkloadAvailability
	// +optional
	Prober ProberType `json:"prober,omitempty"`
	// HealthCheckExprs of prober CEL, as Flux's Kustomization has them. Every object
	// that one of them names must be current.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
}

// HealthCheckExpr judges the objects of one kind by what the agent returns about
// them. Expressions read feedback, the values of feedbackRules by name, and
// conditions, those of the manifest in the work by type, each with status, reason
// and message; besides apiVersion, kind and metadata with name and namespace. They
// are evaluated in the order inProgress, failed, current, degraded.
type HealthCheckExpr struct {
	// APIVersion of the objects.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Namespace of the objects; any if absent.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; any if absent.
	// +optional
	Name string `json:"name,omitempty"`
	// InProgress is true while the object must be waited for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	InProgress string `json:"inProgress,omitempty"`
	// Failed is true when the object gave up: the cluster failed, now.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Failed string `json:"failed,omitempty"`
	// Current is true when the object is as it is to be.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Current string `json:"current"`
	// Degraded is true when the object is current and serves less than it is to. It
	// has no part in a rollout; it is the add-on's Degraded condition.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Degraded string `json:"degraded,omitempty"`
}
