package render

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Prober decides the health of an add-on from its works. The zero Prober is
// WorkloadAvailability. It is safe for concurrent use.
//
// With every prober, a cluster is verified only if every part is applied and available in its
// current version and every object that carries the digest echoed it. In addition the probers
// require:
//
//	WorkloadAvailability    of every workload: no old pod is left and all run
//	DeploymentAvailability  the same, but only of Deployments
//	Lease                   the same as WorkloadAvailability, and the agent's lease
//	CEL                     the expressions
//	Work, None              nothing
type Prober struct {
	kind   v1alpha1.ProberType
	checks []check
}

// Report is the state of an add-on on one cluster.
type Report struct {
	// AddOn is its name.
	AddOn string
	// Works of the cluster's namespace; those of other add-ons are ignored.
	Works []*workv1.ManifestWork
	// Available is that condition of the ManagedClusterAddOn; nil: there is none. Only the prober Lease reads it,
	// because the klusterlet then writes it.
	Available *metav1.Condition
}

// Type returns the prober's type.
func (p Prober) Type() v1alpha1.ProberType {
	if p.kind == "" {
		return v1alpha1.ProberWorkloadAvailability
	}
	return p.kind
}

// Mode returns the value of MCA.status.healthCheck.mode: with Lease the klusterlet writes
// Available, with Customized it does not.
func (p Prober) Mode() addonv1alpha1.HealthCheckMode {
	if p.Type() == v1alpha1.ProberLease {
		return addonv1alpha1.HealthCheckModeLease
	}
	return addonv1alpha1.HealthCheckModeCustomized
}

// probes reports whether the prober checks the pods of a workload.
func (p Prober) probes(a ask) bool {
	switch p.Type() {
	case v1alpha1.ProberWorkloadAvailability, v1alpha1.ProberLease:
		return true
	case v1alpha1.ProberDeploymentAvailability:
		return a.id.Group == appsGroup && a.id.Resource == deploymentsResource
	default:
		return false
	}
}

// hears reports whether a workload's own report of a failure counts. With CEL, the expressions decide whether the
// add-on is healthy, but a failure that a workload reports still counts.
func (p Prober) hears(a ask) bool {
	return p.probes(a) || p.Type() == v1alpha1.ProberCEL
}

// lease is the health from the agent's lease. The lease does not say which content renews it,
// so it is required in addition to the workloads.
func (p Prober) lease(c *metav1.Condition) health {
	h := health{applied: true, current: true, verified: true}
	switch {
	case p.Type() != v1alpha1.ProberLease:
		return h
	case c == nil || ownAvailable(c.Reason):
		h.verified, h.reason = false, "the klusterlet has not reported the agent's lease"
	case c.Status != metav1.ConditionTrue:
		h.verified, h.reason = false, "lease: "+words(c.Message)
	}
	return h
}

// ownAvailable reports whether a reason of Available is one that AddonFlow writes. Such a reason is of an earlier
// prober, not a lease.
func ownAvailable(reason string) bool {
	return slices.Contains([]string{
		addonv1alpha1.AddonAvailableReasonWorkNotFound, addonv1alpha1.AddonAvailableReasonWorkNotApply,
		addonv1alpha1.AddonAvailableReasonWorkApply, addonv1alpha1.AddonAvailableReasonNoProbeResult,
		addonv1alpha1.AddonAvailableReasonProbeUnavailable, addonv1alpha1.AddonAvailableReasonProbeAvailable,
	}, reason)
}
