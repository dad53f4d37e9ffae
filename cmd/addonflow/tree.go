package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// redrawEvery is the shortest time between two pictures. agesEvery is the time after which a picture is drawn again
// although only the ages in it have changed.
const (
	redrawEvery = 200 * time.Millisecond
	agesEvery   = time.Second
)

type treeOptions struct {
	*cli
	watch bool
}

func newTreeCommand(c *cli) *cobra.Command {
	o := &treeOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "tree ROLLOUT",
		Short: "Draw a rollout: its commit, its stages with progress, and which clusters fail and why",
		Long: `Draw a rollout: its commit, its stages with progress, and which clusters fail and why.

With --watch the tree is redrawn in place at every change, at most five times a
second. If the output is not a terminal, every change is one line.`,
		Example: `  # The state of the rollout now
  addonflow tree hello
  # Watch it
  addonflow tree hello -n fleet-system -w`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnRolloutList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print every change until interrupted.")
	return c.command(cmd)
}

func (o *treeOptions) run(ctx context.Context, name string) error {
	hub, key, err := o.open(name)
	if err != nil {
		return err
	}
	t := o.terminal()
	switch {
	case !o.watch:
		r, err := shown(ctx, hub, key)
		if err != nil {
			return err
		}
		style := t.style
		style.Height = 0 // the text may scroll
		_, err = io.WriteString(o.Out, style.Tree(r, o.now()))
		return err
	case t.interactive:
		return hubError("watch "+rolloutKey(key), o.redraw(ctx, hub, key))
	}
	lines := lineWriter{out: o.Out, style: t.style}
	return hubError("watch "+rolloutKey(key), followRollout(ctx, hub, key, func(r *v1alpha1.AddOnRollout) error {
		if r == nil {
			_, _ = fmt.Fprintf(o.Out, "%s is gone\n", key.Name)
			return errSeenEnough
		}
		return lines.write(r)
	}))
}

// redraw draws the newest state in place until the follower ends.
func (o *treeOptions) redraw(ctx context.Context, hub client.WithWatch, key types.NamespacedName) error {
	newest := make(chan *v1alpha1.AddOnRollout, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- followRollout(ctx, hub, key, func(r *v1alpha1.AddOnRollout) error {
			if r == nil {
				return errSeenEnough
			}
			select {
			case <-newest: // it was not drawn, and this one is newer
			default:
			}
			newest <- r
			return nil
		})
	}()
	canvas := screen{out: o.Out}
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	var shown *v1alpha1.AddOnRollout
	var drawnAt time.Time
	for {
		select {
		case err := <-ended:
			return err
		case now := <-tick.C:
			fresh := latest(newest, shown)
			if fresh == nil || fresh == shown && now.Sub(drawnAt) < agesEvery {
				continue
			}
			// The size is read each time, because a window can be resized.
			if err := canvas.draw(o.terminal().style.Tree(fresh, o.now())); err != nil {
				return err
			}
			shown, drawnAt = fresh, now
		}
	}
}

// latest returns the newest rollout that waits to be drawn; if there is none, the one that is shown.
func latest(newest <-chan *v1alpha1.AddOnRollout, shown *v1alpha1.AddOnRollout) *v1alpha1.AddOnRollout {
	select {
	case r := <-newest:
		return r
	default:
		return shown
	}
}
