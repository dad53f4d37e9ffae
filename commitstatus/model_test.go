package commitstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/test/forge"
)

// The model: a controller that keeps its ledger as JSON and may lose any write, a
// Deliverer that may die at any moment, a forge that fails in every way it can, and a
// clock. Every random history must keep the promises: the order of statuses and their
// pace at every step, and nothing lost once the forge is healthy again.

const modelKey = "fleet/addons"

// modelForge stores statuses in the order in which they come, and fails as told.
type modelForge struct {
	world *modelWorld
	log   []forge.Entry
	// stores and answers say what happens to a post; reads whether Latest works.
	stores, answers, reads bool
	failure                DeliveryError
}

func (f *modelForge) Post(_ context.Context, s Status) error {
	if err := s.Validate(); err != nil {
		panic(err)
	}
	if f.stores {
		f.log = append(f.log, forge.Entry{
			Sequence: int64(len(f.log) + 1), Time: f.world.now, SHA: s.SHA, Context: s.Context,
			State: string(s.State), Description: s.Description, TargetURL: s.TargetURL,
		})
	}
	if f.answers {
		return nil
	}
	failure := f.failure
	return &failure
}

func (f *modelForge) Latest(_ context.Context, sha, context string) (Status, bool, error) {
	if !f.reads {
		failure := f.failure
		return Status{}, false, &failure
	}
	for _, e := range slices.Backward(f.log) {
		if e.SHA == sha && e.Context == context {
			return Status{SHA: sha, Context: context, State: State(e.State), Description: e.Description}, true, nil
		}
	}
	return Status{}, false, nil
}

// modelWorld is everything that a history changes.
type modelWorld struct {
	now       time.Time
	forge     *modelForge
	stored    []byte
	deliverer *Deliverer
	// holder names the process; claimed is how long another one's claim still holds.
	holder   string
	claimed  time.Duration
	current  string
	texts    int
	deaths   int
	verdicts map[contextKey][]State
}

func newModelWorld() *modelWorld {
	w := &modelWorld{
		now: time.Unix(1_800_000_000, 0), stored: []byte("[]"),
		current: modelSHA(0), verdicts: map[contextKey][]State{},
	}
	w.forge = &modelForge{world: w}
	w.heal()
	w.restart()
	return w
}

// modelSHA returns one of a few commits, so that histories come back to old ones.
func modelSHA(n int) string { return fmt.Sprintf("%040x", n+1) }

func (w *modelWorld) heal() { w.forge.stores, w.forge.answers, w.forge.reads = true, true, true }

// restart forgets everything but what is stored.
func (w *modelWorld) restart() {
	w.deaths++
	w.holder = fmt.Sprintf("process %d", w.deaths)
	w.deliverer = NewDeliverer(DelivererConfig{Clock: func() time.Time { return w.now }, Holder: w.holder})
}

// ledger reads the ledger as a restarted process would.
func (w *modelWorld) ledger() []Report {
	var reports []Report
	if err := json.Unmarshal(w.stored, &reports); err != nil {
		panic(err)
	}
	return reports
}

// reconcile is what a controller does, up to but without its write.
func (w *modelWorld) reconcile(change func([]Report) []Report) (before, after []Report) {
	before = Settle(w.ledger(), w.deliverer.Results(modelKey))
	return before, change(before)
}

// commit writes what reconcile returned, and hands it over.
func (w *modelWorld) commit(before, after []Report) {
	for _, r := range after {
		if r.State.Terminal() && !slices.ContainsFunc(before, func(b Report) bool {
			return b.sameContext(r.SHA, r.Context) && b.Attempt == r.Attempt && b.State.Terminal()
		}) {
			id := contextKey{r.SHA, r.Context}
			w.verdicts[id] = append(w.verdicts[id], r.State)
		}
	}
	after, w.claimed = Claim(Prune(after, w.current), Claimant{Holder: w.holder}, w.now)
	encoded, err := json.Marshal(after)
	if err != nil {
		panic(err)
	}
	w.stored = encoded
	w.deliverer.Enqueue(modelKey, w.forge, after)
}

// pump lets a worker post one report, if it has work.
func (w *modelWorld) pump() bool {
	if len(w.deliverer.ready) == 0 {
		return false
	}
	key, next, _ := w.deliverer.take()
	if next.box == nil {
		return false
	}
	w.deliverer.deliver(context.Background(), next)
	w.deliverer.putBack(key, next.box)
	return true
}

// drain heals the forge and goes on until there is nothing left to say.
func (w *modelWorld) drain(t *rapid.T) {
	w.heal()
	for range 200 {
		before, after := w.reconcile(slices.Clone)
		w.commit(before, after)
		for range 100 {
			if !w.pump() {
				break
			}
		}
		due, wait := Next(Settle(w.ledger(), w.deliverer.Results(modelKey)), w.now)
		if len(due) == 0 && wait == 0 {
			w.commit(w.reconcile(slices.Clone))
			return
		}
		w.now = w.now.Add(max(wait, w.claimed))
	}
	t.Fatalf("not quiet after 200 rounds: %s", w.stored)
}

// keepsPromises checks the forge's log.
func (w *modelWorld) keepsPromises(t *rapid.T) {
	if complaints := forge.Violations(w.forge.log); len(complaints) > 0 {
		t.Fatalf("%q\nledger %s\nlog %+v", complaints, w.stored, w.forge.log)
	}
}

// lostNothing checks, after drain, that the forge heard every verdict that was ever
// written down, in order, and that the ledger knows it.
func (w *modelWorld) lostNothing(t *rapid.T) {
	for id, verdicts := range w.verdicts {
		var heard []State
		for _, e := range w.forge.log {
			if state := State(e.State); e.SHA == id.sha && e.Context == id.context && state.Terminal() {
				heard = append(heard, state)
			}
		}
		// The same verdict twice in a row is one: a commit that comes back after it was
		// forgotten may get the one that it still has.
		if got, want := slices.Compact(heard), slices.Compact(slices.Clone(verdicts)); !slices.Equal(got, want) {
			t.Fatalf("%v: the forge heard %v, want %v\nledger %s\nlog %+v", id, got, want, w.stored, w.forge.log)
		}
	}
	for _, r := range w.ledger() {
		if r.SHA != w.current || r.Undelivered() && r.State.Terminal() {
			t.Fatalf("still in the ledger: %+v", r)
		}
		last, ok, _ := w.forge.Latest(context.Background(), r.SHA, r.Context)
		if !ok || last.State != r.AcceptedState || last.Description != r.AcceptedDescription {
			t.Fatalf("the ledger says %+v, the forge %+v", r, last)
		}
	}
}

// want draws a wish for the current commit.
func (w *modelWorld) want(t *rapid.T) func([]Report) []Report {
	w.texts++
	status := Status{
		SHA:         w.current,
		Context:     rapid.SampledFrom([]string{"addonflow/a", "addonflow/b"}).Draw(t, "context"),
		State:       rapid.SampledFrom([]State{Pending, Pending, Pending, Success, Failure, Error}).Draw(t, "state"),
		Description: rapid.SampledFrom([]string{fmt.Sprintf("text %d", w.texts), "the same"}).Draw(t, "text"),
	}
	progress := rapid.IntRange(0, 100).Draw(t, "progress")
	return func(reports []Report) []Report { return Want(reports, status, progress) }
}

// move draws another current commit.
func (w *modelWorld) move(t *rapid.T) func([]Report) []Report {
	old, next := w.current, modelSHA(rapid.IntRange(0, 2).Draw(t, "commit"))
	w.current = next
	return func(reports []Report) []Report { return Supersede(reports, old, next) }
}

// fail draws what is wrong with the forge.
func (w *modelWorld) fail(t *rapid.T) {
	f := w.forge
	f.answers = false
	f.stores, f.reads = rapid.Bool().Draw(t, "stores"), rapid.Bool().Draw(t, "reads")
	f.failure = DeliveryError{
		Reason:     "out of order",
		Uncertain:  true,
		Everyone:   rapid.Bool().Draw(t, "everyone"),
		RetryAfter: rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Second}).Draw(t, "retry after"),
	}
	if !f.stores && rapid.Bool().Draw(t, "denied") {
		f.failure = DeliveryError{Reason: "denied", Permanent: true, RetryAfter: lookAgain}
	}
}

func TestEveryHistoryKeepsThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newModelWorld()
		t.Repeat(map[string]func(*rapid.T){
			"": w.keepsPromises,
			"want": func(t *rapid.T) {
				w.commit(w.reconcile(w.want(t)))
			},
			"want, write lost": func(t *rapid.T) {
				w.reconcile(w.want(t))
			},
			"next commit": func(t *rapid.T) {
				w.commit(w.reconcile(w.move(t)))
			},
			"reconcile": func(*rapid.T) {
				w.commit(w.reconcile(slices.Clone))
			},
			"post": func(*rapid.T) { w.pump() },
			"post, then die": func(*rapid.T) {
				w.pump()
				w.restart()
			},
			"time passes": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90_000).Draw(t, "ms")) * time.Millisecond)
			},
			"forge fails": w.fail,
			"forge heals": func(*rapid.T) { w.heal() },
		})
		w.drain(t)
		w.keepsPromises(t)
		w.lostNothing(t)
	})
}
