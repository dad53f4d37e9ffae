package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
)

type uninstallOptions struct {
	*cli
	removeAddOns bool
	confirm      string
	timeout      time.Duration
}

func newUninstallCommand(c *cli) *cobra.Command {
	o := &uninstallOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall the operator and keep the add-ons running, or remove them first",
		Long: `Uninstall the operator and keep the add-ons running, or remove them first.

Deletes the operator's Deployment and waits until its Lease is free. Then removes the finalizer
` + v1alpha1.Finalizer + ` from AddOnSources, AddOnRollouts and ClusterManagementAddOns, so
that they and the CRDs can be deleted, and deletes what manifests/install applied besides:
Services, rights, policies. The CRDs, the Namespace, sources and rollouts stay: an operator that
is installed again continues. No add-on is removed from a cluster. To hand add-ons over while the
operator runs, use release. An installation by Helm is deleted with helm uninstall first.

With --remove-add-ons, the add-ons are removed first. The command names them and asks for the
address of the hub, or takes it from --confirm. It then deletes every AddOnSource and approves the
removals that follow, without grace period and budget; pre-delete hooks run. The operator is deleted
only when no cluster has an add-on of AddonFlow. If the command is interrupted, or a cluster cannot
be reached, the operator stays and continues; run the command again to wait for it.

An operator without leader election has no Lease and adds the finalizers again: the command
checks this after five seconds, and fails if a finalizer is back.`,
		Example: `  # The add-ons keep running
  addonflow uninstall
  # Nothing of the add-ons is left, then nothing of the operator
  addonflow uninstall --remove-add-ons
  kubectl delete -k manifests/prerequisites`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.uninstall(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.removeAddOns, "remove-add-ons", false, "First remove every add-on of every AddOnSource from its clusters.")
	cmd.Flags().StringVar(&o.confirm, "confirm", "", "Address of the hub whose add-ons are removed, instead of a question.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "How long to wait for the add-ons to leave; 0: until they have left.")
	return c.command(cmd)
}

// uninstall removes, in this order: the add-ons if requested, the operator, its finalizers, and the rest of its
// installation.
func (o *uninstallOptions) uninstall(ctx context.Context) error {
	hub, err := o.connect()
	if err != nil {
		return err
	}
	installed, err := installation(ctx, hub)
	if err != nil {
		return err
	}
	if o.removeAddOns { // the operator removes them, and must run
		if err := o.removeAll(ctx, hub); err != nil {
			return err
		}
	}
	if err := notOfHelm(installed); err != nil {
		return err
	}
	if err := o.endOperator(ctx, hub, installed); err != nil {
		return err
	}
	if err := o.free(ctx, hub); err != nil {
		return err
	}
	for i := range installed {
		if err := o.deleted(ctx, hub, &installed[i]); err != nil {
			return err
		}
	}
	return nil
}

// installation lists the objects of manifests/install, Deployments first. CRDs and Namespaces are not included.
func installation(ctx context.Context, hub client.Client) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := hub.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/name": programName, "app.kubernetes.io/part-of": programName})
		if err != nil && !unserved(err) {
			return nil, hubError("list "+kind.Kind+"s", err)
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			found = append(found, object)
		}
	}
	return found, nil
}

// notOfHelm returns an error if Helm applied a part of the installation, because its release would stay.
func notOfHelm(installed []metav1.PartialObjectMetadata) error {
	for i := range installed {
		if name := installed[i].Annotations["meta.helm.sh/release-name"]; name != "" {
			return &exitError{code: exitFailed, err: fmt.Errorf("cannot uninstall: Helm installed the operator; run helm uninstall %s -n %s, then addonflow uninstall "+
				"without --remove-add-ons; with it, the add-ons are removed before", name, installed[i].Annotations["meta.helm.sh/release-namespace"])}
		}
	}
	return nil
}

// endsWithin is how long the pods of a deleted Deployment may take to release their Lease. After a pod died without
// releasing it, the Lease is held for 35 more seconds.
const endsWithin = 2 * time.Minute

// endOperator deletes the Deployments, and waits until no operator holds a Lease.
func (o *uninstallOptions) endOperator(ctx context.Context, hub client.Client, installed []metav1.PartialObjectMetadata) error {
	within := time.Duration(0) // an operator without a Deployment does not end by itself
	for i := range installed {
		if installed[i].Kind != "Deployment" {
			continue
		}
		within = endsWithin
		if err := o.deleted(ctx, hub, &installed[i]); err != nil {
			return err
		}
	}
	held := o.noOperator(ctx, hub)
	if held == nil || within == 0 {
		return held
	}
	o.hint("waiting for the operator to end")
	err := wait.PollUntilContextTimeout(ctx, time.Second, within, true, func(ctx context.Context) (bool, error) {
		held = o.noOperator(ctx, hub)
		return held == nil, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return held
	}
	return hubError("wait for the operator to end", err)
}

// deleted deletes an object as it was read. If it is already deleted, this is not an error.
func (o *uninstallOptions) deleted(ctx context.Context, hub client.Client, object *metav1.PartialObjectMetadata) error {
	err := hub.Delete(ctx, object, client.Preconditions{UID: &object.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return hubError("delete "+object.Kind+" "+nameOf(object), err)
	}
	_, err = fmt.Fprintf(o.Out, "%s %s: deleted\n", object.Kind, nameOf(object))
	return err
}

// free removes the finalizers, and checks whether an operator adds them again.
func (o *uninstallOptions) free(ctx context.Context, hub client.Client) error {
	held, absent, err := heldBy(ctx, hub)
	if err != nil {
		return err
	}
	for _, kind := range absent {
		if _, err := fmt.Fprintf(o.Out, "%ss: the hub does not serve this kind, no finalizers to remove\n", kind); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return nil
	}
	for i := range held {
		if err := o.freed(ctx, hub, &held[i]); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return hubError("uninstall", ctx.Err())
	case <-time.After(o.putBack):
	}
	again, _, err := heldBy(ctx, hub)
	if err != nil || len(again) == 0 {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf(
		"cannot uninstall: an operator that holds no Lease is running: it put the finalizer back on %s %s; end the operator, then run this again",
		again[0].Kind, nameOf(&again[0]))}
}

// heldBy lists the objects with AddonFlow's finalizer, ClusterManagementAddOns first, and the kinds that the hub does
// not serve.
func heldBy(ctx context.Context, hub client.Client) (held []metav1.PartialObjectMetadata, absent []string, err error) {
	cmas := schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: addonv1alpha1.GroupVersion.Version, Kind: "ClusterManagementAddOn"}
	for _, kind := range []schema.GroupVersionKind{
		cmas, v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind), v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnSourceKind),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := hub.List(ctx, list); unserved(err) {
			absent = append(absent, kind.Kind)
			continue
		} else if err != nil {
			return nil, nil, hubError("list "+kind.Kind+"s", err)
		}
		for _, object := range list.Items {
			if controllerutil.ContainsFinalizer(&object, v1alpha1.Finalizer) {
				object.SetGroupVersionKind(kind)
				held = append(held, object)
			}
		}
	}
	return held, absent, nil
}

// nameOf is namespace/name, or the name of an object without a namespace.
func nameOf(object *metav1.PartialObjectMetadata) string {
	return strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
}

// freed removes the finalizer from one object. If a ClusterManagementAddOn is being deleted, this ends its deletion,
// and the garbage collector would delete every ManagedClusterAddOn that it owns. So its owner references are removed
// first.
func (c *cli) freed(ctx context.Context, hub client.Client, object *metav1.PartialObjectMetadata) error {
	after := object.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	name := nameOf(object)
	if object.Kind == "ClusterManagementAddOn" && object.DeletionTimestamp != nil {
		if _, err := addonsource.Disown(ctx, hub, hub, object); err != nil && !unserved(err) {
			return hubError("free "+object.Kind+" "+name, err)
		}
	}
	said := "finalizer removed"
	err := hub.Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		said, err = "is gone already", nil
	}
	if err != nil {
		return hubError("remove the finalizer from "+object.Kind+" "+name, err)
	}
	_, err = fmt.Fprintf(c.Out, "%s %s: %s\n", object.Kind, name, said)
	return err
}

// unserved reports whether the hub does not serve a kind, because there is no CRD for it.
func unserved(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// noOperator returns an error while an operator holds its Lease.
func (c *cli) noOperator(ctx context.Context, hub client.Client) error {
	var leases coordinationv1.LeaseList
	if err := hub.List(ctx, &leases); err != nil {
		return hubError("list Leases", err)
	}
	for i := range leases.Items {
		if l := &leases.Items[i]; c.holds(l) {
			return &exitError{code: exitFailed, err: fmt.Errorf(
				"cannot uninstall: operator %s holds Lease %s/%s, and no Deployment of manifests/install is left to delete; end that operator first",
				*l.Spec.HolderIdentity, l.Namespace, l.Name)}
		}
	}
	return nil
}

// holds reports whether an operator holds a Lease now.
func (c *cli) holds(l *coordinationv1.Lease) bool {
	if !strings.HasPrefix(l.Name, leaseName("")) || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return false
	}
	held := l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	return held && c.now().Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second))
}
