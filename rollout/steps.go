package rollout

import "time"

// track is a sequence of steps; a step starts when the one before it is complete.
// Tracks of one plan run in parallel.
type track struct {
	steps []*step
	// shared: the failure budget of the steps that are not mandatory is one over the
	// whole track, and every failure of the track counts against it (Progressive).
	shared bool
}

// step is a set of clusters and the pace at which they are moved.
type step struct {
	name    string
	members []*unit
	// vanished were admitted to the target here, and left before they were done.
	vanished []*unit
	// parted are those whom nothing selects any more, and who were verified and soaked with
	// this plan: no later one knows of them.
	parted []string

	// limit is how many members may be in flight; 0 holds everybody.
	limit int
	// soak starts when a cluster is verified; deadline when it is admitted, 0: none.
	soak, deadline time.Duration
	// maxFailures is how many members may fail; of a mandatory group none.
	maxFailures int
	mandatory   bool
	// all reserves the whole step at once, and no failure stops it.
	all bool
	// dropped: it would be all, had the target not failed at a pace that was dropped since.
	dropped bool
	// proven: the target needs no proof here, so that nobody who is not available is waited for.
	proven bool
	// needless: nobody need prove the target any more; who leaves takes no proof away.
	needless bool

	// hold says why nobody is moved to the target, however many slots are free;
	// joiners may still be installed at the stable revision.
	hold string
	// byStrategy: hold is the strategy's own doing, and an end the user asked for.
	byStrategy bool
	// unknown: who the members are cannot be told now, so the step is never complete.
	unknown bool

	// wave is the reservation of the whole step, where there is one.
	wave *allWave
	// Tallied after the entries were settled, and again after admission.
	tally tally
}

// tally counts the members of a step by what they mean for it.
type tally struct {
	total   int32 // members but those that are leaving
	updated int32 // at the target, or nothing to change
	changed int32 // of those, the ones that run the target's own revision
	flying  int32 // hold a slot
	soaking int32 // of those, the ones whose soak is running
	failed  int32 // failed or timed out at the target's content
	parked  int32 // not available: parked, or not admitted for that
	waiting int32 // to be admitted yet
	leaving int32
	// vanished had not failed, and proved nothing.
	vanished int32

	until    time.Time // when the last soak of those running ends
	failures []*unit   // the first few failed
	away     []*unit   // of those parked, the ones held back by something of their own
	lost     int32
	refused  int32 // of those flying, the ones whose agent could not apply the works
	refuses  *unit // the first of them by name
}

// shownFailures is how many failing clusters are named.
const shownFailures = 10

// count tallies the members by the states they are in now.
func (s *step) count() {
	t := tally{}
	for _, u := range s.members {
		u.addTo(&t)
	}
	for _, u := range s.vanished {
		if u.state == Failed {
			u.addFailed(&t)
		} else {
			t.vanished++
		}
	}
	s.tally = t
}

func (u *unit) addTo(t *tally) {
	if u.leaving {
		t.leaving++
		if u.entry == nil {
			return
		}
	} else {
		t.total++
	}
	switch u.state {
	case Succeeded:
		t.updated++
		t.changed++
	case Unchanged:
		t.updated++
	case Admitted, Progressing, Soaking, Lost:
		u.addFlying(t)
	case Failed, TimedOut:
		u.addFailed(t)
	case Parked, Unreachable:
		t.parked++
		if u.c.Away != "" {
			t.away = append(t.away, u)
		}
	case Waiting:
		t.waiting++
	case Unstaged, Removing, Ignored, Gone, HeldBack:
		// Never the state of a member of a step.
	}
}

func (u *unit) addFlying(t *tally) {
	t.flying++
	if u.state == Lost {
		t.lost++
	}
	// Of one that is not written yet, or not available, it is about other content, or old.
	if u.c.Health.NotApplied != "" && (u.state == Progressing || u.state == Soaking) {
		t.refused++
		if t.refuses == nil || u.c.Name < t.refuses.c.Name {
			t.refuses = u
		}
	}
	if u.state == Soaking {
		t.soaking++
		if u.until.After(t.until) {
			t.until = u.until
		}
	}
}

func (u *unit) addFailed(t *tally) {
	switch {
	case u.forTarget:
		t.failed++
		if len(t.failures) < shownFailures {
			t.failures = append(t.failures, u)
		}
	case u.c.Reachable:
		t.waiting++ // failed at what came before; the target is its next chance
	default:
		t.parked++
	}
}

// failures of the target's content that count against the budget of step i.
func (t *track) failures(i int) int {
	if !t.shared || t.steps[i].mandatory {
		return int(t.steps[i].tally.failed)
	}
	n := 0
	for _, s := range t.steps {
		n += int(s.tally.failed)
	}
	return n
}

// breached tells whether step i may admit nobody further for its failures. A step
// in which everybody failed is at an end too, whatever its budget: nobody verified
// the content; and so is one that everybody left before anybody did.
func (t *track) breached(i int) bool {
	s := t.steps[i]
	n, c := t.failures(i), s.tally
	if s.all {
		return n > 0 && c.flying == 0 && c.waiting == 0
	}
	return n > s.maxFailures || c.failed > 0 && c.updated+c.flying+c.waiting == 0 || s.abandoned()
}

// complete tells whether the step after step i may start: every member is verified
// and soaked, failed within the budget, or parked, and at least one is verified. A
// step without members, or with nothing to change, is complete, unless it had members
// that left before they proved anything. Content that is proven waits for nobody who is
// not available: a revert takes it back also from behind a canary that it took offline.
func (t *track) complete(i int) bool {
	s := t.steps[i]
	c := s.tally
	flying := c.flying
	if s.proven {
		flying -= c.lost
	}
	if s.unknown || flying > 0 || c.waiting > 0 || t.breached(i) {
		return false
	}
	return s.proven || c.updated > 0 || c.total == 0 && !s.abandoned()
}
