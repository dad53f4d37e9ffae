package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// removeAll deletes every AddOnSource, and returns when the operator has removed every add-on. If there is no source,
// it needs no operator: an interrupted uninstallation may already have ended the operator.
func (o *uninstallOptions) removeAll(ctx context.Context, hub client.Client) error {
	var sources v1alpha1.AddOnSourceList
	if err := hub.List(ctx, &sources); err != nil && !unserved(err) {
		return hubError("list AddOnSources", err)
	}
	if len(sources.Items) == 0 {
		return nothingLeft(ctx, hub)
	}
	if err := o.led(ctx, hub); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot remove add-ons: %w", err)}
	}
	var rollouts v1alpha1.AddOnRolloutList
	if err := hub.List(ctx, &rollouts); err != nil {
		return hubError("list AddOnRollouts", err)
	}
	if err := o.confirmed(rollouts.Items); err != nil {
		return err
	}
	for i := range sources.Items {
		s := &sources.Items[i]
		if !s.DeletionTimestamp.IsZero() {
			continue
		}
		if err := hub.Delete(ctx, s, client.Preconditions{UID: &s.UID}); client.IgnoreNotFound(err) != nil {
			return hubError("delete AddOnSource "+client.ObjectKeyFromObject(s).String(), err)
		}
	}
	if err := o.awaitEmpty(ctx, hub); err != nil {
		return err
	}
	return nothingLeft(ctx, hub)
}

// confirmed shows the add-ons to be removed, and asks the user for the address of the hub.
func (o *uninstallOptions) confirmed(rollouts []v1alpha1.AddOnRollout) error {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot load a kubeconfig: %w", err)}
	}
	o.hint("To be removed from the hub %s:", config.Host)
	for i := range rollouts {
		r := &rollouts[i]
		said := "from " + brief.Count(int(r.Status.Counts.Total+r.Status.Counts.Removing), "cluster")
		if r.ReleaseRequested() {
			said = "stays on its clusters: its release was requested"
		}
		o.hint("  %s: %s", client.ObjectKeyFromObject(r), said)
	}
	given := o.confirm
	if given == "" {
		if !o.asks() {
			return &exitError{code: exitUsage, err: fmt.Errorf("cannot ask for confirmation: standard input is not a terminal; use --confirm %s", config.Host)}
		}
		_, _ = fmt.Fprint(o.ErrOut, "Removal begins at once, on all clusters. Type the address of the hub to remove them: ")
		if given, err = bufio.NewReader(o.In).ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
			return &exitError{code: exitFailed, err: fmt.Errorf("cannot read the answer: %w", err)}
		}
	}
	if strings.TrimRight(strings.TrimSpace(given), "/") != strings.TrimRight(config.Host, "/") {
		return &exitError{code: exitFailed, err: fmt.Errorf("nothing was removed: %q is not the address of this hub, %s", strings.TrimSpace(given), config.Host)}
	}
	return nil
}

// awaitEmpty approves every removal that the sources request, prints what each removal waits for, and returns when no
// source is left. A source is deleted after its rollouts, and a rollout after its last ManagedClusterAddOn.
func (o *uninstallOptions) awaitEmpty(ctx context.Context, hub client.Client) error {
	said := map[string]string{}
	step := func(ctx context.Context) (bool, error) {
		var sources v1alpha1.AddOnSourceList
		if err := hub.List(ctx, &sources); err != nil {
			return false, hubError("list AddOnSources", err)
		}
		var rollouts v1alpha1.AddOnRolloutList
		if err := hub.List(ctx, &rollouts); err != nil {
			return false, hubError("list AddOnRollouts", err)
		}
		for i := range sources.Items {
			s := &sources.Items[i]
			if s.DeletionTimestamp.IsZero() {
				return false, &exitError{code: exitFailed, err: fmt.Errorf(
					"AddOnSource %s was created meanwhile; delete it or run this again", client.ObjectKeyFromObject(s))}
			}
			if err := o.say(said, "AddOnSource", s, readyMessage(s.Status.Conditions)); err != nil {
				return false, err
			}
		}
		for i := range rollouts.Items {
			r := &rollouts.Items[i]
			if err := approveRemoval(ctx, hub, r); err != nil {
				return false, err
			}
			if err := o.say(said, v1alpha1.AddOnRolloutKind, r, show.Lines(r.Status.Message)); err != nil {
				return false, err
			}
		}
		return len(sources.Items) == 0, nil
	}
	limited, cancel := context.WithCancel(ctx)
	if o.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()
	err := wait.PollUntilContextCancel(limited, 500*time.Millisecond, true, step)
	if limited.Err() != nil && ctx.Err() == nil {
		return &exitError{code: exitTimeout, err: fmt.Errorf("add-ons are left after %s; the operator stays and continues; run this again to wait", o.timeout)}
	}
	if wait.Interrupted(err) {
		return hubError("wait for the add-ons to leave", ctx.Err())
	}
	return err
}

// say prints the message of an object, if it is new.
func (o *uninstallOptions) say(said map[string]string, kind string, object client.Object, message string) error {
	name := kind + " " + client.ObjectKeyFromObject(object).String()
	if message == "" || said[name] == message {
		return nil
	}
	said[name] = message
	_, err := fmt.Fprintf(o.Out, "%s: %s\n", name, message)
	return err
}

// approveRemoval approves the removal that a deleted source requests. If the rollout changes meanwhile, it is
// approved the next time.
func approveRemoval(ctx context.Context, hub client.Client, r *v1alpha1.AddOnRollout) error {
	removal := r.Spec.Removal
	if removal == nil || removal.Deleting == "" || r.ReleaseRequested() || !r.DeletionTimestamp.IsZero() || r.Annotations[v1alpha1.ApproveRemovalAnnotation] == removal.Commit {
		return nil
	}
	if removal.Uninstalls() {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot remove add-ons: %s is being deleted, and without it no add-on can be removed", removal.Deleting)}
	}
	base := r.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.ApproveRemovalAnnotation, removal.Commit)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := hub.Patch(ctx, r, patch, client.FieldOwner("kubectl-addonflow")); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return hubError("approve the removal of "+client.ObjectKeyFromObject(r).String(), err)
	}
	return nil
}

// nothingLeft returns an error while a ManagedClusterAddOn of AddonFlow is left. Only the operator
// can remove it with its hooks.
func nothingLeft(ctx context.Context, hub client.Client) error {
	remaining := &metav1.PartialObjectMetadataList{}
	remaining.SetGroupVersionKind(schema.GroupVersion(addonv1alpha1.GroupVersion).WithKind("ManagedClusterAddOnList"))
	if err := hub.List(ctx, remaining, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}); err != nil {
		return hubError("list ManagedClusterAddOns", err)
	}
	if len(remaining.Items) == 0 {
		return nil
	}
	slices.SortFunc(remaining.Items, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(nameOf(&a), nameOf(&b)) })
	return &exitError{code: exitFailed, err: fmt.Errorf("%s of AddonFlow without an AddOnSource left, such as %s; delete them while the operator runs, then run this again",
		brief.Count(len(remaining.Items), "ManagedClusterAddOn"), nameOf(&remaining.Items[0]))}
}
