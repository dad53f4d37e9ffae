package forge

import (
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// load returns the ledger that a status stores. The API types repeat the fields of
// commitstatus, because api must not import it.
func load(stored []v1alpha1.CommitReport) []commitstatus.Report {
	out := make([]commitstatus.Report, 0, len(stored))
	for _, r := range stored {
		out = append(out, commitstatus.Report{
			SHA:                 r.SHA,
			Context:             r.Context,
			Attempt:             r.Attempt,
			State:               commitstatus.State(r.State),
			Description:         r.Description,
			TargetURL:           r.TargetURL,
			Progress:            r.Progress,
			AcceptedState:       commitstatus.State(r.AcceptedState),
			AcceptedDescription: r.AcceptedDescription,
			AcceptedProgress:    r.AcceptedProgress,
			PostedAt:            r.PostedAt,
			ProgressPosts:       r.ProgressPosts,
			FailedTries:         r.FailedTries,
			NextTry:             r.NextTry,
			LastError:           r.LastError,
			Stopped:             r.Stopped,
			ClaimedBy:           r.ClaimedBy,
			ClaimedAt:           r.ClaimedAt,
		})
	}
	return out
}

// store is the inverse of load; an empty ledger is nil, as a status without the
// field decodes.
func store(reports []commitstatus.Report) []v1alpha1.CommitReport {
	if len(reports) == 0 {
		return nil
	}
	out := make([]v1alpha1.CommitReport, 0, len(reports))
	for _, r := range reports {
		out = append(out, v1alpha1.CommitReport{
			SHA:                 r.SHA,
			Context:             r.Context,
			Attempt:             r.Attempt,
			State:               string(r.State),
			Description:         r.Description,
			TargetURL:           r.TargetURL,
			Progress:            r.Progress,
			AcceptedState:       string(r.AcceptedState),
			AcceptedDescription: r.AcceptedDescription,
			AcceptedProgress:    r.AcceptedProgress,
			PostedAt:            r.PostedAt,
			ProgressPosts:       r.ProgressPosts,
			FailedTries:         r.FailedTries,
			NextTry:             r.NextTry,
			LastError:           r.LastError,
			Stopped:             r.Stopped,
			ClaimedBy:           r.ClaimedBy,
			ClaimedAt:           r.ClaimedAt,
		})
	}
	return out
}
