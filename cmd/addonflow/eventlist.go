package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

func newEventsCommand(c *cli) *cobra.Command {
	o := &getOptions{cli: c}
	kind := listed{
		name: "events", kind: "Event", group: corev1.SchemeGroupVersion, list: &corev1.EventList{}, expires: true,
		table: func(now time.Time, objects []client.Object) *metav1.Table {
			return show.EventsTable(now, typed[corev1.Event](objects)...)
		},
	}
	cmd := &cobra.Command{
		Use:   "events [NAME...]",
		Short: "List the events of sources and rollouts, oldest first",
		Long: `List the events of sources and rollouts, oldest first.

Names are those of sources and rollouts; without one, the events of all are listed. A hub
keeps events for an hour, unless it is set up otherwise; history has the decisions of the
last rollouts.`,
		Example: `  # What happened to a rollout, and what happens next
  addonflow events hello -w
  # Everything on the hub
  addonflow events -A`,
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := o.listing(nil)
			if err != nil {
				return err
			}
			l.only = func(object client.Object) bool {
				e, ok := object.(*corev1.Event)
				return ok && strings.HasPrefix(e.InvolvedObject.APIVersion, v1alpha1.GroupVersion.Group+"/") &&
					(len(names) == 0 || slices.Contains(names, e.InvolvedObject.Name))
			}
			return l.run(cmd.Context(), kind)
		},
	}
	o.bind(cmd)
	cmd.ValidArgsFunction = c.completeNames(&v1alpha1.AddOnRolloutList{})
	return c.command(cmd)
}
