package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
)

// newUninstallCommand is `uninstall`.
func newUninstallCommand(c *cli) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "uninstall",
		Short: "Remove AddonFlow's finalizers after the operator was uninstalled",
		Long: `Remove AddonFlow's finalizers after the operator was uninstalled.

The finalizer ` + v1alpha1.Finalizer + ` holds AddOnSources, AddOnRollouts and
ClusterManagementAddOns until an operator has finished their deletion. After the operator
was deleted, this command removes the finalizer from all of them, so that they and the CRDs
can be deleted. No add-on is removed from a cluster: add-ons keep running, and are no
longer rolled out. To hand add-ons over while the operator runs, use release.

While an operator holds its Lease, the command changes nothing. An operator without leader
election has no Lease and adds the finalizers again: the command checks this after five
seconds, and fails if a finalizer is back.`,
		Example: `  kubectl delete -k manifests/install
  addonflow uninstall`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.uninstall(cmd.Context()) },
	})
}

// uninstall removes the finalizers, and checks whether an operator adds them again.
func (c *cli) uninstall(ctx context.Context) error {
	hub, err := c.connect()
	if err != nil {
		return err
	}
	if err := c.noOperator(ctx, hub); err != nil {
		return err
	}
	held, absent, err := heldBy(ctx, hub)
	if err != nil {
		return err
	}
	for _, kind := range absent {
		if _, err := fmt.Fprintf(c.Out, "%ss: the hub does not serve this kind, nothing to free\n", kind); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return nil
	}
	for i := range held {
		if err := c.freed(ctx, hub, &held[i]); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return hubError("uninstall", ctx.Err())
	case <-time.After(c.putBack):
	}
	again, _, err := heldBy(ctx, hub)
	if err != nil || len(again) == 0 {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf(
		"cannot uninstall: an operator that holds no Lease is running: it put the finalizer back on %s %s; end the operator, then run this again",
		again[0].Kind, nameOf(&again[0]))}
}

// heldBy lists the objects with AddonFlow's finalizer, ClusterManagementAddOns first, and the
// kinds that the hub does not serve.
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
			return nil, nil, fmt.Errorf("cannot list %ss: %w", kind.Kind, err)
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

// freed removes the finalizer from one object. A ClusterManagementAddOn that is being deleted is
// deleted then, and the garbage collector would delete every ManagedClusterAddOn that it owns.
// Therefore it is disowned first.
func (c *cli) freed(ctx context.Context, hub client.Client, object *metav1.PartialObjectMetadata) error {
	after := object.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	name := nameOf(object)
	if object.Kind == "ClusterManagementAddOn" && object.DeletionTimestamp != nil {
		if _, err := addonsource.Disown(ctx, hub, hub, object); err != nil && !unserved(err) {
			return fmt.Errorf("cannot free %s %s: %w", object.Kind, name, err)
		}
	}
	said := "finalizer removed"
	err := hub.Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		said, err = "is gone already", nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the finalizer from %s %s: %w", object.Kind, name, err)
	}
	_, err = fmt.Fprintf(c.Out, "%s %s: %s\n", object.Kind, name, said)
	return err
}

// unserved reports whether the hub does not serve a kind: it has no CRD of it, or none any more.
func unserved(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// noOperator returns an error while an operator holds its Lease.
func (c *cli) noOperator(ctx context.Context, hub client.Client) error {
	var leases coordinationv1.LeaseList
	if err := hub.List(ctx, &leases); err != nil {
		return fmt.Errorf("cannot list Leases: %w", err)
	}
	for i := range leases.Items {
		if l := &leases.Items[i]; c.holds(l) {
			return &exitError{code: exitFailed, err: fmt.Errorf(
				"cannot uninstall: operator %s holds Lease %s/%s; delete its Deployment first, for example with kubectl delete -k manifests/install",
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
