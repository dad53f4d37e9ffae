package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/trace/recording"
)

// statuses are all versions of a rollout's status, because a limit must not be broken even for
// a moment.
func statuses(addOn string) []v1alpha1.AddOnRolloutStatus {
	var all []v1alpha1.AddOnRolloutStatus
	for _, version := range seen.Versions(addOn) {
		all = append(all, version.Status)
	}
	return all
}

// said are all messages of a rollout and of its conditions so far, including those that were
// only shown for a moment.
func said(addOn string) []string {
	var all []string
	for _, s := range statuses(addOn) {
		all = append(all, s.Message)
		for _, c := range s.Conditions {
			all = append(all, c.Message)
		}
	}
	return all
}

// mostInFlight is the highest number of clusters that ever held a slot at once.
func mostInFlight(addOn string) int32 {
	most := int32(0)
	for _, s := range statuses(addOn) {
		most = max(most, s.Counts.InFlight)
	}
	return most
}

// expectAllowed fails unless the second planner allows every stored ledger.
func expectAllowed(ctx context.Context, seen *recording.Recording, c client.Client, plans string) {
	GinkgoHelper()
	report, err := seen.Judge(ctx, c, plans)
	GinkgoWriter.Printf("traces: %+v\n", report)
	if err != nil {
		Fail(err.Error()) // Gomega would print every error of a join three times
	}
	Expect(report.Planned > 0 || report.Rollouts == 0).To(BeTrue(), "the operator wrote no plans to %s", plans)
}
