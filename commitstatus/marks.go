package commitstatus

import (
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Mark is the state of one context of one commit. See v1alpha1.CommitMark.
type Mark = v1alpha1.CommitMark

// Statement is the status of one context of one commit.
type Statement = v1alpha1.CommitStatement

// Want is the status that one context of a live commit should have. It is derived each time from the present state.
type Want struct {
	SHA, Context string
	State        State
	Description  string
	// Progress in percent; posts about progress are paced by it.
	Progress int
	// Held is why no cluster moves: the condition that a pending outcome waits for, such as an approval, or the
	// failure; "": clusters move. While Held is the same, a pending statement is posted again only for progress, and
	// a failure is not posted again with another text.
	Held string
	// Content names the content of the statement, such as the digest of an add-on. If the same content becomes
	// pending again, its verdict stays posted.
	Content string
	// Older: a newer commit has the same content. The older commit gets no progress, and nothing after its verdict.
	Older bool
}

// statement returns the want in the form of a mark.
func (w Want) statement() Statement {
	return Statement{
		State: string(w.State), Description: Shorten(DescriptionLimit, w.Description),
		Progress: min(max(w.Progress, 0), 100), Content: w.Content, Held: shortDigest(w.Held),
	}
}

// resumedText begins the first pending text after a failure of the same content.
const resumedText = "resumed: "

// Enter enters wants into the marks and returns the new marks; the given marks are unchanged. A second call with the
// same wants changes nothing. "same" means the same content:
//
//	last statement  want              what is owed
//	none            pending, older    nothing: the newest commit shows the begin
//	none            otherwise         the want
//	pending         any               the want; an older commit gets no progress
//	success         pending, same     nothing: a cluster that joins does not change a verdict
//	success         success, same     nothing
//	failure, error  same state, same  nothing, unless the want names another failure
//	failure         pending, same     "resumed: ..."
//	verdict         any, older        nothing
//	verdict         otherwise         the want
func Enter(marks []Mark, wants ...Want) []Mark {
	out := slices.Clone(marks)
	for _, w := range wants {
		i := index(out, w.SHA, w.Context)
		if i < 0 && w.Older && w.State == Pending {
			continue
		}
		if i < 0 {
			out = append(out, Mark{SHA: w.SHA, Context: w.Context})
			i = len(out) - 1
		}
		update(&out[i], w)
	}
	return out
}

func update(m *Mark, w Want) {
	next := w.statement()
	last := Last(*m)
	if last == nil {
		m.Owed = &next
		return
	}
	state, same := State(last.State), last.Content == next.Content
	switch {
	case w.Older && (state.Terminal() || w.State == Pending):
		return
	case same && state == Success && (w.State == Pending || w.State == Success):
		return
	case same && state == w.State && state.Terminal() && (last.Held == next.Held || m.ProgressPosts >= StandstillPostLimit):
		return
	}
	if base := stated(*m); base != nil && State(base.State) == Failure && base.Content == next.Content && w.State == Pending {
		next.Description = Shorten(DescriptionLimit, resumedText+next.Description)
	}
	owe(m, next)
}

// owe makes next the statement that the context should have.
func owe(m *Mark, next Statement) {
	base := stated(*m)
	if base == nil || !sameWords(*base, next) {
		m.Owed = &next
		return
	}
	m.Owed = nil
	if m.Posting == nil {
		m.Accepted = &next
	}
}

// stated returns the statement that the forge shows, or will show next.
func stated(m Mark) *Statement {
	if m.Posting != nil {
		return m.Posting
	}
	return m.Accepted
}

// Last returns the newest statement of a mark, accepted or not; nil: there is none.
func Last(m Mark) *Statement {
	if m.Owed != nil {
		return m.Owed
	}
	return stated(m)
}

// Delivered reports whether the forge shows the newest statement.
func Delivered(m Mark) bool { return m.Posting == nil && m.Owed == nil }

// said returns a statement of a mark; an empty one if there is none.
func said(s *Statement) Statement {
	if s == nil {
		return Statement{}
	}
	return *s
}

func sameWords(a, b Statement) bool {
	return a.State == b.State && a.Description == b.Description
}

// Judged reports whether the newest statement is a verdict.
func Judged(m Mark) bool {
	last := Last(m)
	return last != nil && State(last.State).Terminal()
}

// Succession says which commits are live, and how the other commits ended.
type Succession struct {
	// Live are the commits whose statuses are still derived; Overtake does not change their marks.
	Live []string
	// Contents are the names of the contents of the newest commit. By is the commit that introduced them.
	Contents []string
	By       string
	// Whole is the context of the whole commit.
	Whole string
	// Wants of the newest commit. A commit with equal content gets the same verdicts. A want with a SHA is only for
	// that commit.
	Wants []Want
}

// Overtake returns the marks after some commits are no longer live. A commit with a final status keeps it; if the
// commit is live again, its status is derived again. A commit with the content of the newest commit waits for the
// final status of the newest commit. A commit with other content is superseded. Its contexts that were never posted
// are dropped, except the context of the whole commit.
func Overtake(marks []Mark, s Succession) []Mark {
	out := make([]Mark, 0, len(marks))
	for _, m := range marks {
		live, last := slices.Contains(s.Live, m.SHA), Last(m)
		if shown := stated(m); !live && last != nil && State(last.State) == Pending && shown != nil && State(shown.State).Terminal() {
			m.Owed, last = nil, shown // a final status after a failure that the forge never showed
		}
		switch {
		case live, last == nil:
		case State(last.State).Terminal():
			m = past(m)
		case last.Content != "" && slices.Contains(s.Contents, last.Content):
			s.follow(&m)
		case m.Accepted == nil && m.Posting == nil && m.Context != s.Whole:
			continue
		default:
			owe(&m, Statement{State: string(Error), Description: superseded(s.By), Content: last.Content})
		}
		out = append(out, m)
	}
	return out
}

// past returns the mark of a commit that is not live, whose verdict the forge may not have yet. The mark gets no
// content: if the commit is live again, the clusters may have other content.
func past(m Mark) Mark {
	for _, s := range []**Statement{&m.Accepted, &m.Posting, &m.Owed} {
		if *s != nil {
			said := **s
			said.Content = ""
			*s = &said
		}
	}
	return m
}

// follow gives a commit that is no longer live the verdict of the same context on the newest commit. If the newest
// commit has no such context, it gets the verdict of the whole add-on.
func (s Succession) follow(m *Mark) {
	of := func(name string) int {
		return slices.IndexFunc(s.Wants, func(w Want) bool { return w.Context == name && (w.SHA == "" || w.SHA == m.SHA) })
	}
	i := of(m.Context)
	if i < 0 {
		i = of(s.Whole)
	}
	switch {
	case i >= 0 && s.Wants[i].State.Terminal():
		owe(m, s.Wants[i].statement())
	case m.Posting == nil && m.Accepted != nil && m.Owed != nil && State(m.Accepted.State) == Pending && State(m.Owed.State) == Pending:
		shown := *m.Accepted // only the newest commit shows progress
		shown.Content = m.Owed.Content
		m.Accepted, m.Owed = &shown, nil
	}
}

// End gives an Error to every context of a commit that has no verdict; for sha "", of all commits.
func End(marks []Mark, sha, description string) []Mark {
	out := slices.Clone(marks)
	for i := range out {
		if m := &out[i]; (sha == "" || m.SHA == sha) && !Judged(*m) {
			owe(m, Want{State: Error, Description: description}.statement())
		}
	}
	return out
}

// superseded is the description of a commit that another commit replaced.
func superseded(by string) string { return "superseded by " + by[:min(len(by), shortSHA)] }

// Supersede ends the contexts of one commit because another commit replaced it.
func Supersede(marks []Mark, sha, by string) []Mark { return End(marks, sha, superseded(by)) }

// KeptLimit is how many marks of commits that are not live are kept. Without a limit, a forge that is unreachable for
// weeks would make the status larger than the hub can store.
const KeptLimit = 500

// Prune drops marks of commits that are not live after the forge has their verdict. Of the others, the newest
// KeptLimit stay.
func Prune(marks []Mark, live ...string) []Mark {
	dead := func(m Mark) bool { return !slices.Contains(live, m.SHA) }
	out := slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return dead(m) && Delivered(m) && Judged(m) })
	over := -KeptLimit
	for _, m := range out {
		if dead(m) {
			over++
		}
	}
	return slices.DeleteFunc(out, func(m Mark) bool {
		if over <= 0 || !dead(m) {
			return false
		}
		over--
		return true
	})
}

// Shown reports whether a mark of the commit and context exists.
func Shown(marks []Mark, sha, context string) bool { return index(marks, sha, context) >= 0 }

// Readdress returns the marks for a destination, whose first context is prefix. moved: a mark was for another
// destination. Such a mark counts as not accepted, because the new forge has no status yet. If the contexts have
// other names, the mark is dropped, and the callers derive the current statuses again.
func Readdress(marks []Mark, to, prefix string) (readdressed []Mark, moved bool) {
	readdressed = make([]Mark, 0, len(marks))
	for _, m := range marks {
		if m.To != "" && m.To != to {
			moved = true
			if m.Context != prefix && !strings.HasPrefix(m.Context, prefix+"/") {
				continue
			}
			m = Mark{SHA: m.SHA, Context: m.Context, Owed: Last(m)}
		}
		m.To = to
		readdressed = append(readdressed, m)
	}
	return readdressed, moved
}

// index returns the position of the mark of a context, or -1.
func index(marks []Mark, sha, context string) int {
	return slices.IndexFunc(marks, func(m Mark) bool { return m.SHA == sha && m.Context == context })
}
