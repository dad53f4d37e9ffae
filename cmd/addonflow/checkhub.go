package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests/admission"
)

// hubCheck is one requirement of a hub. missing returns the problem; nil: the hub meets it.
type hubCheck struct {
	what    string
	missing func(context.Context, client.Client) error
}

func (c *cli) checkHub(ctx context.Context, pre bool) error {
	hub, err := c.connect()
	if err != nil {
		return err
	}
	failed := 0
	for _, check := range c.hubChecks(pre) {
		err := check.missing(ctx, hub)
		if errors.Is(err, context.Canceled) || silent(err) {
			return hubError("check the hub", err)
		}
		line := "✔ " + check.what
		if err != nil {
			failed++
			line = fmt.Sprintf("✗ %s: %v", check.what, err)
		}
		if _, err := fmt.Fprintln(c.Out, line); err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return &exitError{code: exitFailed, err: fmt.Errorf("%s failed", brief.Count(failed, "check"))}
	case pre:
		c.hint("Next: kubectl apply -k manifests/prerequisites, then kubectl apply -k manifests/install")
	}
	return nil
}

// hubChecks are the checks before an installation, or after it.
func (c *cli) hubChecks(pre bool) []hubCheck {
	addon := schema.GroupVersion(addonv1alpha1.GroupVersion)
	checks := []hubCheck{
		{"Kubernetes 1.30 or newer", served("the operator needs this kind", admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))},
		{"OCM's cluster manager", served("install OCM 1.2 or newer: clusteradm init --wait",
			schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"), schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("PlacementDecision"),
			schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWork"))},
		{"OCM's add-on kinds", served("upgrade OCM to 1.2 or newer",
			addon.WithKind("ClusterManagementAddOn"), addon.WithKind("ManagedClusterAddOn"), addon.WithKind("AddOnTemplate"), addon.WithKind("AddOnDeploymentConfig"))},
		{"clusters that have joined", joined},
	}
	if pre {
		return append(checks, hubCheck{"your rights to install", mayInstall})
	}
	ours := v1alpha1.GroupVersion
	return append(checks,
		hubCheck{"AddonFlow's kinds", served("kubectl apply -k manifests/prerequisites",
			ours.WithKind(v1alpha1.AddOnSourceKind), ours.WithKind(v1alpha1.AddOnRolloutKind), ours.WithKind(v1alpha1.AddOnRevisionKind),
			ours.WithKind("AddOnApproval"), ours.WithKind("AddOnOrder"))},
		hubCheck{"the policy that proves the authors of approvals", policed},
		hubCheck{"a leading operator", c.led},
	)
}

// served returns an error if the hub does not serve the kinds.
func served(fix string, kinds ...schema.GroupVersionKind) func(context.Context, client.Client) error {
	return func(_ context.Context, hub client.Client) error {
		var missing []string
		for _, kind := range kinds {
			_, err := hub.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
			switch {
			case apimeta.IsNoMatchError(err):
				missing = append(missing, kind.Kind+" "+kind.GroupVersion().String())
			case err != nil:
				return err
			}
		}
		if len(missing) == 0 {
			return nil
		}
		return fmt.Errorf("the hub does not serve %s; %s", strings.Join(missing, ", "), fix)
	}
}

// joined returns an error if no cluster is available.
func joined(ctx context.Context, hub client.Client) error {
	var clusters clusterv1.ManagedClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return err
	}
	for i := range clusters.Items {
		if apimeta.IsStatusConditionTrue(clusters.Items[i].Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return nil
		}
	}
	if len(clusters.Items) == 0 {
		return errors.New("the hub has no ManagedCluster; run clusteradm join, then clusteradm accept")
	}
	return fmt.Errorf("none of %s is available; check that the klusterlets run and reach the hub, and that each cluster is accepted", brief.Count(len(clusters.Items), "ManagedCluster"))
}

// mayInstall returns an error if the user may not create the objects of the installation. It does not check that the
// user has the rights that the roles grant: Kubernetes checks that when the roles are created.
func mayInstall(ctx context.Context, hub client.Client) error {
	var missing []string
	for _, r := range []authorizationv1.ResourceAttributes{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Resource: "namespaces"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Group: "apps", Resource: "deployments", Namespace: "addonflow-system"},
	} {
		r.Verb = "create"
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r}}
		if err := hub.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			missing = append(missing, r.Resource)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("you may not create %s; an admin of the hub can", strings.Join(missing, ", "))
}

// policed compares the admission policy and its binding on the hub with those of this version.
func policed(ctx context.Context, hub client.Client) error {
	policy, binding, err := admission.Read(ctx, hub)
	if err != nil {
		return err
	}
	_, err = admission.Since(policy, binding)
	return err
}

// led returns an error if no operator holds its Lease.
func (c *cli) led(ctx context.Context, hub client.Client) error {
	var leases coordinationv1.LeaseList
	if err := hub.List(ctx, &leases); err != nil {
		return err
	}
	for i := range leases.Items {
		if c.holds(&leases.Items[i]) {
			return nil
		}
	}
	return errors.New("no operator holds a Lease; see kubectl get pods -n addonflow-system, and the operator's log")
}
