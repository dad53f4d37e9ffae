package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// removes is the refusal of an order about an add-on that is being removed.
const removes = "the add-on is being removed"

// Answer is the result of an order in this turn.
type Answer struct {
	Order   *v1alpha1.AddOnOrder
	State   v1alpha1.OrderState
	Message string
}

// QuarantineChange is a change of the quarantine of a revision.
type QuarantineChange struct {
	Revision string
	// Order that requests the change; "": none.
	Order string
	// Quarantine to write; nil: the quarantine ends.
	Quarantine *v1alpha1.Quarantine
}

// open returns all orders without an answer, the oldest first, and those among them that have not taken effect
// (fresh). The status lists the orders that have taken effect until their answers are stored.
func (o *Observation) open() (all, fresh []*v1alpha1.AddOnOrder) {
	for i := range o.Orders {
		order := &o.Orders[i]
		if order.Spec.RolloutUID != o.Rollout.UID || order.Status.State != "" {
			continue
		}
		all = append(all, order)
		if _, done := o.carriedOut(order); !done {
			fresh = append(fresh, order)
		}
	}
	return all, fresh
}

// carriedOut is the entry of an order in the status.
func (o *Observation) carriedOut(order *v1alpha1.AddOnOrder) (v1alpha1.GivenOrder, bool) {
	given := o.Rollout.Status.CarriedOut
	i := slices.IndexFunc(given, func(g v1alpha1.GivenOrder) bool { return g.Name == order.Name })
	if i < 0 {
		return v1alpha1.GivenOrder{}, false
	}
	return given[i], true
}

// given has the results of the orders: their answers, and the decisions that follow from them.
type given struct {
	answers []Answer
	steps   []journal.Decision
}

// ordered is the status after the orders about the attempt, and the orders for the planner. promotes are the orders
// that end soaks; their results follow from the plan.
type ordered struct {
	status   v1alpha1.AddOnRolloutStatus
	orders   []rollout.Order
	promotes []*v1alpha1.AddOnOrder
	given    given
	// content are the judgements of the new orders about content, by name.
	content map[string]judgement
}

// judgement is the effect of an order, or why it is refused.
type judgement struct{ done, refused string }

// applyOrders judges the new orders, the oldest first, and answers those about the attempt: retry and abort. If a
// retry in the same turn begins another attempt, the orders about the previous attempt are still carried out. After a
// rollback in the same turn they are refused, because no attempt runs.
func (o *Observation) applyOrders(next v1alpha1.AddOnRolloutStatus) ordered {
	all, fresh := o.open()
	h := ordered{status: next, content: o.judgeContent(all, next)}
	replaced := ""
	h.status.CarriedOut = nil
	for _, order := range all {
		if done, known := o.carriedOut(order); known {
			h.status.CarriedOut = append(h.status.CarriedOut, done)
			h.given.answers = append(h.given.answers, Answer{order, v1alpha1.OrderCarriedOut, done.Message})
		}
	}
	if h.status.Aborted == nil {
		h.status.Aborted = o.lastAbort(h.status.Attempt)
	}
	for i := range o.Orders {
		if order := &o.Orders[i]; order.Spec.RolloutUID != o.Rollout.UID && order.Status.State == "" {
			h.given.answers = append(h.given.answers, Answer{order, v1alpha1.OrderRefused, "the order is about an AddOnRollout of that name that does not exist any more"})
		}
	}
	for _, order := range fresh {
		s := order.Spec
		if judged, content := h.content[order.Name]; content {
			if judged.refused == "" && s.Verb == v1alpha1.OrderRollback {
				replaced = "order " + order.Name + ", given before it, rolls the content back"
			}
			continue
		}
		attempt := next
		if s.Verb == v1alpha1.OrderRetry {
			attempt = h.status // two retries count as one
		}
		asked := rollout.Order{Verb: s.Verb}
		if s.Arguments != nil {
			asked.Stage, asked.Clusters = s.Arguments.Stage, s.Arguments.Clusters
		}
		done, refused := "", cmp.Or(o.Unproven[order.Name], o.outdated(order, attempt), replaced)
		if refused == "" && s.Verb == v1alpha1.OrderPromote {
			h.orders, h.promotes = append(h.orders, asked), append(h.promotes, order)
			continue
		}
		if refused == "" {
			done, refused = o.answer(asked, &h.status)
		}
		if refused != "" {
			h.given.answers = append(h.given.answers, Answer{order, v1alpha1.OrderRefused, refused})
			continue
		}
		if s.Verb == v1alpha1.OrderAbort {
			h.status.Aborted = &v1alpha1.GivenOrder{Name: order.Name, Author: s.Author, Reason: s.Reason}
		} else {
			h.orders = append(h.orders, asked)
		}
		h.given.follow(order, &h.status, done)
	}
	return h
}

// promote answers the orders that end soaks; it is called after the plan.
func (h ordered) promote(target string, d Decided) ordered {
	for _, order := range h.promotes {
		stage := ""
		if order.Spec.Arguments != nil {
			stage = order.Spec.Arguments.Stage
		}
		soaking := affects(rollout.Order{Verb: v1alpha1.OrderPromote, Stage: stage}, h.status.Ledger, target)
		refused := ""
		var stages []string
		for _, st := range d.Planned.Stages {
			stages = append(stages, st.Name)
		}
		switch ended := d.Planned.Promoted[stage]; {
		case d.Refused != nil:
			refused = "nothing can be planned: " + d.Refused.Error()
		case ended > 0:
			h.given.follow(order, &h.status, "ended the soak of "+brief.Count(ended, "cluster"))
			continue
		case len(soaking) > 0:
			refused = "no cluster that soaks in stage " + stage + " is verified now"
		case !slices.Contains(stages, stage):
			refused = "there is no stage " + stage + "; stages are " + strings.Join(stages, ", ")
		default:
			refused = "no cluster is soaking in stage " + stage
		}
		h.given.answers = append(h.given.answers, Answer{order, v1alpha1.OrderRefused, refused})
	}
	return h
}

// refused drops the answers of applyOrders, because the planner refused the policy or the ledger.
// before is the status without the orders.
func (h ordered) refused(o *Observation, before v1alpha1.AddOnRolloutStatus, why error) ordered {
	undone := ordered{status: before, promotes: h.promotes, content: h.content, given: given{answers: slices.Clone(h.given.answers)}}
	for i := range undone.given.answers {
		a := &undone.given.answers[i]
		if _, done := o.carriedOut(a.Order); !done && a.State == v1alpha1.OrderCarriedOut {
			a.State, a.Message = v1alpha1.OrderRefused, "nothing can be planned: "+why.Error()
		}
	}
	return undone
}

// follow notes that an order takes effect with the status.
func (g *given) follow(order *v1alpha1.AddOnOrder, next *v1alpha1.AddOnRolloutStatus, message string) {
	s := order.Spec
	next.CarriedOut = append(next.CarriedOut, v1alpha1.GivenOrder{Name: order.Name, Author: s.Author, Reason: s.Reason, Message: message})
	g.answers = append(g.answers, Answer{order, v1alpha1.OrderCarriedOut, message})
	reason := string(s.Verb) + " by " + s.Author
	if s.Reason != "" {
		reason += ": " + s.Reason
	}
	g.steps = append(g.steps, journal.Decision{Kind: journal.Ordered, Reason: brief.Line(reason+"; "+message, 512)})
}

// outdated returns the message of an order that is about other content or another attempt; otherwise "".
func (o *Observation) outdated(order *v1alpha1.AddOnOrder, next v1alpha1.AddOnRolloutStatus) string {
	if order.Spec.Digest == o.Target.Digest && order.Spec.Attempt == next.Attempt {
		return ""
	}
	return fmt.Sprintf("the order is about attempt %d of %s; the rollout is at attempt %d of %s; if the order still applies, give it again",
		order.Spec.Attempt, titleOf(o.known(order.Spec.Digest)), next.Attempt, titleOf(o.known(o.Target.Digest)))
}

// answer returns the effect of an order about the attempt, or why it is refused.
func (o *Observation) answer(order rollout.Order, next *v1alpha1.AddOnRolloutStatus) (done, refused string) {
	affected := affects(order, next.Ledger, o.Target.Digest)
	switch order.Verb {
	case v1alpha1.OrderAbort:
		switch {
		case o.Rollout.Spec.Removal != nil: // even while the removal is held
			return "", removes
		case slices.Contains(endedPhases(), next.Phase):
			return "", "the rollout is " + string(next.Phase)
		}
		return "ended the rollout", ""
	default:
		var not []string
		for _, name := range order.Clusters {
			if !slices.Contains(affected, name) {
				not = append(not, name)
			}
		}
		if len(not) > 0 {
			return "", "only clusters that failed with this content can be tried again; these did not: " + brief.Names(not)
		}
		if len(affected) == 0 && next.Aborted == nil && next.Phase != v1alpha1.PhaseFailed {
			if o.Override.Returns() && o.Override.Kind == v1alpha1.OverrideBlocked {
				return "", blockedText
			}
			if o.Override.Returns() {
				return "", "the clusters were rolled back from the content; unblock ends its quarantine, and rolls it out again"
			}
			return "", "the rollout did not fail"
		}
		next.Attempt = max(next.Attempt+1, nextAttempt(next.History, o)) // a decision may already name the next one
		next.Aborted, next.Phase = nil, v1alpha1.PhaseProgressing        // the retry is newer than the abort
		next.Stages = unjudged(next.Stages)
		return fmt.Sprintf("attempt %d; %s again", next.Attempt, brief.Count(len(affected), "cluster")) + o.stayed(), ""
	}
}

// affects are the clusters whose records an order changes.
func affects(order rollout.Order, ledger v1alpha1.Ledger, target string) []string {
	records, err := rollout.Records(ledger)
	if err != nil {
		return nil // the planner refuses the ledger
	}
	var names []string
	for _, r := range records {
		if order.Affects(r, target) {
			names = append(names, r.Cluster)
		}
	}
	return names
}

// lastAbort returns the abort of this target and attempt, if an older status was restored that does not have it; nil:
// there is none. If the status was lost, the attempt is unknown. Then lastAbort returns the last abort of the target,
// unless the content succeeded later.
func (o *Observation) lastAbort(attempt int32) *v1alpha1.GivenOrder {
	var last *v1alpha1.GivenOrder
	for i := range o.Orders {
		s, answer := &o.Orders[i].Spec, &o.Orders[i].Status
		if answer.State != v1alpha1.OrderCarriedOut || s.RolloutUID != o.Rollout.UID || s.Digest != o.Target.Digest {
			continue
		}
		switch s.Verb {
		case v1alpha1.OrderAbort:
			if o.Rollout.Status.Target != nil && s.Attempt != attempt || o.Succeeded.since(o.Target.Revision, answer.AnsweredAt) {
				continue
			}
			last = &v1alpha1.GivenOrder{Name: o.Orders[i].Name, Author: s.Author, Reason: s.Reason}
		case v1alpha1.OrderRetry:
			last = nil
		case v1alpha1.OrderPromote, v1alpha1.OrderRollback, v1alpha1.OrderUnblock:
		}
	}
	return last
}

// aborted says which user ended the rollout, and why; "": no user did.
func aborted(s v1alpha1.AddOnRolloutStatus) string {
	if s.Aborted == nil {
		return ""
	}
	text := "aborted by " + s.Aborted.Author
	if s.Aborted.Reason != "" {
		text += ": " + s.Aborted.Reason
	}
	return brief.Line(text, 200)
}

// judgeContent judges the new orders about content, by name: rollback and unblock. Each order is judged as if the
// orders before it had been carried out. If several orders are about one content, the newest decides.
func (o *Observation) judgeContent(all []*v1alpha1.AddOnOrder, next v1alpha1.AddOnRolloutStatus) map[string]judgement {
	judged, newest := map[string]judgement{}, map[string]string{} // newest has the order that decides, by digest
	before := o
	for _, order := range all {
		if !aboutContent(order) {
			continue
		}
		after, j := before.with(o.quarantineChange(order)), judgement{}
		if _, known := o.carriedOut(order); !known {
			by := before
			if order.Spec.Verb == v1alpha1.OrderRollback {
				by = after // the newer rollback replaces the older one
			}
			j.done, j.refused = by.answerContentOrder(order, next)
			judged[order.Name] = j
		}
		if j.refused == "" {
			before, newest[order.Spec.Digest] = after, order.Name
		}
		if o.confirms(order) {
			from := o.known(o.Override.Leaves().Digest)
			q, _ := o.quarantine(from.Digest)
			before, newest[from.Digest] = before.with(QuarantineChange{Revision: from.Revision, Quarantine: &q.Quarantine}), order.Name
		}
	}
	for _, order := range all {
		j, fresh := judged[order.Name]
		if by := newest[order.Spec.Digest]; fresh && j.refused == "" && by != order.Name {
			judged[order.Name] = judgement{refused: "order " + by + ", given after it, decides"}
		}
	}
	return judged
}

// confirms reports whether an order confirms that the clusters moved back from quarantined content: a rollback of
// that content, or of the content to which they moved back. An unblock that was given earlier does not count, even if
// the rollback is refused.
func (o *Observation) confirms(order *v1alpha1.AddOnOrder) bool {
	if order.Spec.Verb != v1alpha1.OrderRollback || !o.Override.Returns() || o.Unproven[order.Name] != "" {
		return false
	}
	from := o.Override.Leaves().Digest
	_, quarantined := o.quarantine(from)
	return quarantined && (order.Spec.Digest == from || order.Spec.Digest == o.Target.Digest)
}

// with is the observation after the quarantine of a revision changed.
func (o *Observation) with(w QuarantineChange) *Observation {
	after := *o
	after.Quarantined = maps.Clone(o.Quarantined)
	if w.Quarantine == nil {
		delete(after.Quarantined, w.Revision)
	} else {
		after.Quarantined[w.Revision] = v1alpha1.RememberedQuarantine{Quarantine: *w.Quarantine, RevisionUID: o.StoredAs[w.Revision]}
	}
	after.permit()
	return &after
}

// answerContentOrders answers the orders about content. A change of a quarantine is written until the revision has
// it. While the hub refuses to store the answer, the change is not written again, because a turn that writes a
// quarantine moves no cluster.
func (o *Observation) answerContentOrders(next v1alpha1.AddOnRolloutStatus, h ordered) (v1alpha1.AddOnRolloutStatus, given, []QuarantineChange) {
	var changes []QuarantineChange
	all, _ := o.open()
	g := h.given
	for _, order := range all {
		if !aboutContent(order) {
			continue
		}
		judged, fresh := h.content[order.Name]
		if judged.refused != "" {
			g.answers = append(g.answers, Answer{order, v1alpha1.OrderRefused, judged.refused})
			continue
		}
		if fresh {
			g.follow(order, &next, judged.done)
		}
		w := o.quarantineChange(order)
		if w.Quarantine == nil {
			next.History = forgotten(next.History, order.Spec.Digest)
		}
		changes = slices.DeleteFunc(changes, func(earlier QuarantineChange) bool { return earlier.Revision == w.Revision })
		if fresh || !o.tookEffect(order, w) {
			changes = append(changes, w)
		}
	}
	return next, g, changes
}

// aboutContent reports whether an order changes a quarantine.
func aboutContent(order *v1alpha1.AddOnOrder) bool {
	return order.Spec.Verb == v1alpha1.OrderRollback || order.Spec.Verb == v1alpha1.OrderUnblock
}

// quarantineChange is the change that an order about content asks for.
func (o *Observation) quarantineChange(order *v1alpha1.AddOnOrder) QuarantineChange {
	s := order.Spec
	w := QuarantineChange{Revision: o.known(s.Digest).Revision, Order: order.Name}
	if s.Verb == v1alpha1.OrderRollback {
		w.Quarantine = &v1alpha1.Quarantine{
			Time: o.InOrder(o.Look.Wall), Reason: s.Reason, Order: order.Name, Author: s.Author,
			To: o.digestOf(s.Arguments), WithCRDs: s.Arguments != nil && s.Arguments.WithCRDs,
		}
	}
	return w
}

// tookEffect reports whether the revision already has the quarantine that a rollback begins, or lacks the quarantine
// that an unblock ends. A quarantine that began after the unblock does not count.
func (o *Observation) tookEffect(order *v1alpha1.AddOnOrder, w QuarantineChange) bool {
	q, quarantined := o.Quarantined[w.Revision]
	if w.Quarantine != nil {
		return quarantined && q.Order == order.Name
	}
	return !quarantined || q.Time.After(order.CreationTimestamp.Time)
}

// forgotten is the history without the quarantine of a digest.
func forgotten(history []v1alpha1.HistoryEntry, digest string) []v1alpha1.HistoryEntry {
	history = slices.Clone(history)
	for i := range history {
		if history[i].Target.Digest == digest {
			history[i].Quarantine = nil
		}
	}
	return history
}

// digestOf is the digest of the content to which a rollback is to return; "": the order names no content, or content
// that the rollout does not know.
func (o *Observation) digestOf(a *v1alpha1.OrderArguments) string {
	if a == nil || a.To == "" {
		return ""
	}
	if strings.HasPrefix(a.To, "v") {
		return a.To
	}
	if named := o.named(a.To); len(named) == 1 {
		return named[0]
	}
	return ""
}

// named are the digests of the contents whose commit or digest begins with the hexadecimal digits. If one commit
// introduced several contents, because a configuration on the hub changed, the commit stands for the newest of
// them.
func (o *Observation) named(digits string) []string {
	var found, commits []string
	for _, t := range o.targets() {
		commit, hexadecimal := v1alpha1.CommitOf(t.Commit), t.Digest[strings.LastIndex(t.Digest, ":")+1:]
		byCommit := strings.HasPrefix(commit, digits) && !slices.Contains(commits, commit)
		if byCommit || strings.HasPrefix(hexadecimal, digits) {
			found, commits = append(found, t.Digest), append(commits, commit)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// blockedText is the refusal of an order about content that spec.blocked names.
const blockedText = "spec.blocked names it: remove the entry in Git"

// answerContentOrder returns the effect of an order about content, or why it is refused.
func (o *Observation) answerContentOrder(order *v1alpha1.AddOnOrder, next v1alpha1.AddOnRolloutStatus) (done, refused string) {
	s := order.Spec
	if why := o.Unproven[order.Name]; why != "" {
		return "", why
	}
	if s.Verb == v1alpha1.OrderUnblock {
		override, barred := o.barredBy(o.known(s.Digest))
		switch {
		case barred && override.Kind == v1alpha1.OverrideBlocked:
			return "", blockedText
		case barred && o.blocks(o.known(s.Digest)) != nil:
			return "ended the quarantine of " + s.Digest + "; spec.blocked still names it: remove the entry in Git", ""
		case barred:
			return s.Digest + " may be rolled out again" + o.stayed(), ""
		}
		return "", s.Digest + " is not quarantined"
	}
	if o.Rollout.Spec.Removal != nil {
		return "", removes
	}
	if s.Digest != o.Target.Digest { // in any attempt
		return "", o.outdated(order, next)
	}
	named := o.digestOf(s.Arguments)
	if o.Override.Returns() && o.Override.Leaves().Digest != s.Digest && (s.Arguments == nil || s.Arguments.To == "" || named == s.Digest) {
		return "", fmt.Sprintf("the clusters were already rolled back from %[2]s to %[1]s; to leave %[1]s as well, name the destination with --to COMMIT",
			titleOf(o.known(s.Digest)), titleOf(o.Override.Leaves()))
	}
	to, withCRDs := o.refuge(o.known(s.Digest)), o.policyChangesDefinitions()
	if s.Arguments != nil {
		withCRDs = withCRDs || s.Arguments.WithCRDs
		if s.Arguments.To != "" {
			if meant := o.named(s.Arguments.To); len(meant) > 1 {
				return "", s.Arguments.To + " may mean " + strings.Join(meant, " and ")
			}
			if named == s.Digest {
				return "", titleOf(o.known(named)) + " is the content to roll back; name other content with --to"
			}
			if to = named; !slices.ContainsFunc(o.Succeeded, func(x Success) bool { return x.Digest == to }) {
				return "", s.Arguments.To + " did not succeed here, is quarantined or blocked, or is not stored any more"
			}
		}
	}
	if to == "" || to == s.Digest {
		return "", "no other revision succeeded here"
	}
	if why := o.preventing(s.Digest, to, withCRDs); why != "" {
		return "", why
	}
	return "quarantined " + s.Digest + "; back to " + titleOf(o.known(to)) + o.stayed(), ""
}

// stayed is the end of the answer of an order that moves clusters while a suspend holds them.
func (o *Observation) stayed() string {
	if !Suspended(o.Rollout) && !o.Rollout.Spec.Suspend {
		return ""
	}
	return "; the rollout is suspended, and no cluster moves until it is resumed"
}
