package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func newReleaseCommand(c *cli) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "release ROLLOUT",
		Short: "Release an add-on: stop managing it, and keep it on its clusters",
		Long: `Release an add-on: stop managing it, and keep it on its clusters.

The annotation ` + v1alpha1.ReleaseAnnotation + ` suspends the rollout. Once the add-on has left
Git, or its source is deleted, the operator releases it instead of removing it: it
writes no work and deletes nothing on a cluster, removes its labels and finalizers from the
objects it applied, and deletes the AddOnRollout. Until then "resume" cancels the release.`,
		Example: `  # Before you remove the add-on from Git
  addonflow release hello
  # The same with kubectl
  kubectl annotate addonrollout hello ` + v1alpha1.ReleaseAnnotation + `=true`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnRolloutList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.release(cmd.Context(), args[0]) },
	})
}

// release sets the annotation, and says what the release waits for.
func (c *cli) release(ctx context.Context, name string) error {
	hub, key, err := c.open(name)
	if err != nil {
		return err
	}
	object, err := annotate(ctx, hub, rolloutTarget(), key, map[string]string{v1alpha1.ReleaseAnnotation: "true"})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.Out, "rollout %s: release requested\n", key); err != nil {
		return err
	}
	if r, ok := object.(*v1alpha1.AddOnRollout); ok {
		c.hintRelease(key, r)
	}
	return nil
}

func (c *cli) hintRelease(key types.NamespacedName, r *v1alpha1.AddOnRollout) {
	if n := r.Status.Counts; n.Updated < n.Total {
		c.hint("warning: %d of %d clusters run the newest content; the next manager of the add-on decides when the others follow", n.Updated, n.Total)
	}
	switch {
	case r.Releasing():
		c.hint("Next: nothing; the add-on has left Git and is being released")
	case r.Spec.Target == nil:
		c.hint("Next: %s resume rollout %s -n %s; no source has declared this add-on yet", c.name, key.Name, key.Namespace)
	default:
		c.hint("Next: remove the add-on from Git, or delete source %s if it is the last one. To cancel until then: %s resume rollout %s -n %s",
			r.Spec.Target.Source, c.name, key.Name, key.Namespace)
	}
}
