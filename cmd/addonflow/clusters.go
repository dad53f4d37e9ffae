package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// newGetClustersCommand is `get clusters`: the operator's own plan, cluster by cluster.
func newGetClustersCommand(c *cli) *cobra.Command {
	o := &getOptions{cli: c}
	cmd := &cobra.Command{
		Use:     "clusters [ROLLOUT...]",
		Aliases: []string{"cluster"},
		Short:   "List the clusters of rollouts: stage, state, revision and what each waits for",
		Long: `List the clusters of rollouts: stage, state, revision and what each waits for.

Observes and plans as the operator does, with your own credentials and without
writing anything. With -o the clusters are a List; a RolloutCluster in it is not an
object of the API: metadata has the rollout's namespace and the cluster's name.`,
		Example: `  # Every cluster of one rollout
  addonflow get clusters hello
  # The clusters of every rollout on the hub that failed, also if they timed out or left after it
  addonflow get clusters -A --no-headers -o custom-columns=STATE:.state,CLUSTER:.metadata.name,ROLLOUT:.rollout,REASON:.reason |
    grep -E '^(Failed|TimedOut|NotWritten|LeftFailed) '`,
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := o.listing(names)
			if err != nil {
				return err
			}
			w := clusterWriter{listing: l}
			return w.run(cmd.Context())
		},
	}
	o.bind(cmd)
	cmd.ValidArgsFunction = c.completeNames(&v1alpha1.AddOnRolloutList{})
	return c.command(cmd)
}

// clusterWriter prints clusters; with --watch, only changed ones after the first time.
type clusterWriter struct {
	*listing
	printed map[string]show.Cluster
}

// run plans every requested rollout; with --watch, again at each of its changes.
func (w *clusterWriter) run(ctx context.Context) error {
	if !w.watch {
		return w.once(ctx)
	}
	return w.follow(ctx, "clusters", &v1alpha1.AddOnRolloutList{}, func(changes []change) error { return w.changed(ctx, changes) })
}

func (w *clusterWriter) once(ctx context.Context) error {
	var list v1alpha1.AddOnRolloutList
	if err := w.hub.List(ctx, &list, w.options...); err != nil {
		return hubError("list rollouts", err)
	}
	clusters := []show.Cluster{}
	var objects []client.Object
	var unplanned error
	for i := range list.Items {
		r := &list.Items[i]
		if !w.wanted(r) {
			continue
		}
		objects = append(objects, r)
		planned, err := w.clusters(ctx, r)
		if unplanned, err = w.goOn(unplanned, err); err != nil {
			return err
		}
		clusters = append(clusters, planned...)
	}
	if missing := w.absent(objects); len(missing) > 0 {
		return &exitError{code: exitNotFound, err: fmt.Errorf("cannot find clusters of rollouts %s%s", strings.Join(missing, ", "), w.elsewhere())}
	}
	if len(clusters) == 0 && unplanned == nil {
		w.hint("No clusters found.")
	}
	if err := w.writeClusters(clusters); err != nil {
		return err
	}
	return unplanned
}

// goOn sorts the error of one rollout. An error about the rollout alone is returned as unplanned, so that the others are
// still shown; every other error is fatal. A rollout that was deleted meanwhile is no error. The last unplanned error
// ends the command; an earlier one (before) is printed at once.
func (w *clusterWriter) goOn(before, err error) (unplanned, fatal error) {
	exit, ok := errors.AsType[*exitError](err)
	switch {
	case err == nil, ok && exit.code == exitNotFound: // it was deleted after it was listed
		return before, nil
	case !ok || exit.code != exitFailed:
		return before, err
	}
	if before != nil {
		w.hint("✗ %s", before)
	}
	return err, nil
}

// changed prints the clusters of the changed rollouts whose lines changed.
func (w *clusterWriter) changed(ctx context.Context, changes []change) error {
	if w.printed == nil {
		w.printed = map[string]show.Cluster{}
	}
	var fresh []show.Cluster
	for _, ch := range changes {
		r, ok := ch.object.(*v1alpha1.AddOnRollout)
		if !ok || !w.wanted(r) || r.DeletionTimestamp != nil || ch.kind == watch.Deleted {
			continue
		}
		clusters, err := w.clusters(ctx, r)
		unplanned, err := w.goOn(nil, err)
		if err != nil {
			return err
		}
		if unplanned != nil {
			w.hint("✗ %s", unplanned) // a plan may be possible after the next change
			continue
		}
		for _, c := range clusters {
			key := c.Namespace + "/" + c.Rollout + "/" + c.Cluster
			if before, ok := w.printed[key]; !ok || before.State != c.State || before.Revision != c.Revision || before.Reason != c.Reason {
				fresh = append(fresh, c)
			}
			w.printed[key] = c
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return w.writeClusters(fresh)
}

// clusters returns the clusters of one rollout. A rollout without a target has none.
func (w *clusterWriter) clusters(ctx context.Context, r *v1alpha1.AddOnRollout) ([]show.Cluster, error) {
	if r.Spec.Target == nil {
		return nil, nil
	}
	plan, err := w.planned(ctx, w.hub, r)
	return show.Clusters(r, plan), err
}

func (w *clusterWriter) writeClusters(clusters []show.Cluster) error {
	switch {
	case *w.print.OutputFormat == "name":
		for _, c := range clusters {
			if _, err := fmt.Fprintln(w.Out, "managedcluster.cluster.open-cluster-management.io/"+c.Cluster); err != nil {
				return err
			}
		}
		return nil
	case !w.table():
		return w.printer.PrintObj(show.ClusterList(clusters), w.Out)
	case len(clusters) == 0:
		return nil
	default:
		return w.writeTable(show.ClustersTable(clusters...))
	}
}
