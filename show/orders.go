package show

import (
	"slices"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// WithOrders returns the rollout with all orders without an answer, not only those in its status: an operator that
// does not run writes no status. The result is for display only.
func WithOrders(r *v1alpha1.AddOnRollout, orders []v1alpha1.AddOnOrder) *v1alpha1.AddOnRollout {
	given := slices.Clone(r.Status.CarriedOut)
	for i := range orders {
		o := &orders[i]
		known := func(g v1alpha1.GivenOrder) bool { return g.Name == o.Name }
		if o.Status.State == "" && o.Namespace == r.Namespace && o.Spec.RolloutUID == r.UID && !slices.ContainsFunc(given, known) {
			given = append(given, v1alpha1.GivenOrder{Name: o.Name, Author: o.Spec.Author, Reason: o.Spec.Reason, Message: string(o.Spec.Verb)})
		}
	}
	shown := *r
	shown.Status.CarriedOut = given
	return &shown
}

// unanswered names the first order that waits for an answer; "": none. The message of an order is its verb, or what
// the operator did.
func unanswered(orders []v1alpha1.GivenOrder) string {
	if len(orders) == 0 {
		return ""
	}
	o := orders[0]
	text := "waits for the operator to answer the order of " + FirstLine(o.Author)
	if o.Message != "" {
		text += ": " + FirstLine(o.Message)
	}
	if o.Reason != "" {
		text += " (" + FirstLine(o.Reason) + ")"
	}
	if more := len(orders) - 1; more > 0 {
		text += "; " + brief.Count(more, "order") + " more"
	}
	return text
}
