package addonsource

import (
	"fmt"
	"slices"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
)

// unchangedText is what a commit is told that brought nothing to roll out.
const unchangedText = "no add-on content changed"

// tell writes into the ledger what the head commit is to be told by its source: one
// context for the source itself, and one for each add-on whose content the commit did
// not bring. What the commit brought is reported by its rollout. A verdict stands: a
// commit that was judged is not pending again because drift could not be repaired.
func (p *pass) tell(ledger *forge.Ledger, h *halt) {
	if p.requested {
		ledger.Retry()
	}
	if p.source.Spec.CommitStatus == nil || p.head.Commit == "" {
		return
	}
	judged := p.before.Status.LastAttemptedRevision == p.head.String()
	switch {
	case p.untouched:
	case h == nil:
		p.tellApplied(ledger)
		p.tellOvertaken(ledger)
	case h.kind == refused:
		if judged && p.before.Status.LastAttemptedSpec != refusedUnder(p.spec) {
			// A verdict and its words stand; this one is on another source.
			p.want(ledger, commitstatus.Pending, "judged again, the source was changed")
		}
		p.want(ledger, commitstatus.Failure, refusalText(h))
	case judged:
	case h.kind == stalled:
		p.want(ledger, commitstatus.Error, describe(h.reason+": "+h.text))
	default:
		p.want(ledger, commitstatus.Pending, p.pendingText(h))
	}
	ledger.Supersede(p.head.Commit)
	ledger.Prune(p.head.Commit)
}

// told tells whether the head was told anything, wherever commits are told: it was not
// under another context, nor while the context was another source's.
func (p *pass) told() bool {
	return p.source.Spec.CommitStatus == nil || slices.ContainsFunc(p.source.Status.CommitReports, func(r v1alpha1.CommitReport) bool {
		return r.SHA == p.head.Commit && r.Context == forge.ContextName(p.source)
	})
}

// want says something about the head in the source's own context, or an add-on's.
func (p *pass) want(ledger *forge.Ledger, state commitstatus.State, text string, addOn ...string) {
	ledger.Want(commitstatus.Status{
		SHA:         p.head.Commit,
		Context:     forge.ContextName(p.source, addOn...),
		State:       state,
		Description: text,
		TargetURL:   forge.TargetURL(p.source),
	}, 0)
}

// tellApplied says that the head is on the hub.
func (p *pass) tellApplied(ledger *forge.Ledger) {
	var brought []string
	for _, addOn := range p.source.Status.AddOns {
		if sameCommit(addOn.Commit, p.head) {
			brought = append(brought, addOn.Name)
			continue
		}
		p.want(ledger, commitstatus.Success, unchangedText, addOn.Name)
	}
	text := unchangedText
	switch {
	case len(brought) > 0:
		text = describe("applied; rolling out " + brief.Names(brought))
	case len(p.leftNow) > 0:
		slices.Sort(p.leftNow)
		text = describe("applied; no longer declares " + brief.Names(p.leftNow))
	}
	p.want(ledger, commitstatus.Success, text)
}

// sameCommit tells whether a revision, <ref>@sha1:<commit>, is of the commit of another one,
// whatever reference led to either.
func sameCommit(revision string, head gitsource.Revision) bool {
	parsed, err := gitsource.ParseRevision(revision)
	return err == nil && parsed.Commit == head.Commit
}

// pendingText says what the head waits for. It names no attempt and no time, so that
// it is posted once.
func (p *pass) pendingText(h *halt) string {
	switch h.reason {
	case v1alpha1.ReferenceNotFoundReason, v1alpha1.TakingOverReason:
		return describe(h.text)
	case v1alpha1.FetchFailedReason, v1alpha1.InvalidCredentialsReason, v1alpha1.LimitExceededReason, v1alpha1.RefNotFoundReason:
		return "cannot be fetched yet"
	default:
		return "fetched " + shortRevision(p.head.Ref, p.head.Commit) + ", applying"
	}
}

// shortRevision returns main@abc1234.
func shortRevision(ref, commit string) string {
	short := commit[:min(len(commit), 7)]
	if ref == "" {
		return short
	}
	return ref + "@" + short
}

// refusalText returns the first problem, and how many more there are.
func refusalText(h *halt) string {
	more := ""
	if n := len(h.problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	first := h.told
	if first == "" {
		first = h.text
	}
	return commitstatus.Describe(commitstatus.DescriptionLimit-len(more), commitstatus.Text{Head: first}) + more
}

// describe fits a text into a description.
func describe(text string) string {
	return commitstatus.Describe(commitstatus.DescriptionLimit, commitstatus.Text{Head: text})
}
