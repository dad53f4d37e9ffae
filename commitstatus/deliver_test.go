package commitstatus_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/addonflow/addonflow/commitstatus"
	testforge "github.com/addonflow/addonflow/test/forge"
)

// memoryForge is a forge in memory whose answers a test decides.
type memoryForge struct {
	mu    sync.Mutex
	log   []testforge.Entry
	clock func() time.Time
	// answer decides the result of a post: whether it is stored, and the returned error.
	answer func() (stored bool, err error)
	// reads counts Latest, unread is the error it returns.
	reads  int
	unread error
}

func (f *memoryForge) Post(_ context.Context, s commitstatus.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, err := true, error(nil)
	if f.answer != nil {
		stored, err = f.answer()
	}
	if stored {
		f.log = append(f.log, testforge.Entry{
			Sequence: int64(len(f.log) + 1), Time: f.clock(), SHA: s.SHA, Context: s.Context, State: string(s.State), Description: s.Description,
		})
	}
	return err
}

func (f *memoryForge) Shown(_ context.Context, sha string, contexts []string) (map[string]*commitstatus.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.unread != nil {
		return nil, f.unread
	}
	shown := map[string]*commitstatus.Status{}
	for _, name := range contexts {
		shown[name] = nil
	}
	for _, e := range f.log {
		if e.SHA == sha && slices.Contains(contexts, e.Context) {
			shown[e.Context] = &commitstatus.Status{SHA: sha, Context: e.Context, State: commitstatus.State(e.State), Description: e.Description}
		}
	}
	return shown, nil
}

// latest is what the forge shows.
func (f *memoryForge) latest(sha string) string {
	s, ok, _ := commitstatus.Latest(context.Background(), f, sha, "c")
	if !ok {
		return ""
	}
	return string(s.State) + ": " + s.Description
}

// keeper is an object that keeps marks, and the operator that reconciles it.
type keeper struct {
	t         *testing.T
	now       time.Time
	forge     *memoryForge
	stored    []commitstatus.Mark
	deliverer *commitstatus.Deliverer
	stop      context.CancelFunc
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, now: noon}
	k.forge = &memoryForge{clock: func() time.Time { return k.now }}
	k.start()
	return k
}

// start begins a process without memory.
func (k *keeper) start() {
	if k.stop != nil {
		k.stop()
	}
	k.deliverer = commitstatus.NewDeliverer(commitstatus.DelivererConfig{
		Clock: func() time.Time { return k.now },
	})
	k.deliverer.Connect("line", commitstatus.Connection{Provider: "gitea", Forge: k.forge})
	ctx, stop := context.WithCancel(k.t.Context())
	ended := make(chan struct{})
	go func(d *commitstatus.Deliverer) { defer close(ended); d.Run(ctx) }(k.deliverer)
	k.stop = func() { stop(); <-ended }
	k.t.Cleanup(k.stop)
}

// plan settles, records wants and begins posts, as a reconcile does before its status write.
func (k *keeper) plan(live []string, wants ...commitstatus.Want) (marks, began []commitstatus.Mark) {
	marks = commitstatus.Enter(commitstatus.WithResults(k.stored, k.deliverer.Results("key")), wants...)
	s := commitstatus.Succession{Live: live, Whole: "c", Wants: slices.Clone(wants)}
	for i := range s.Wants {
		s.Wants[i].SHA = "" // for every commit with the content
	}
	if len(live) > 0 {
		s.By = live[0]
	}
	if len(wants) > 0 {
		s.Contents = []string{wants[0].Content}
	}
	before := commitstatus.Prune(commitstatus.Overtake(marks, s), live...)
	if _, held := k.deliverer.Troubles("key"); held {
		return before, nil
	}
	return commitstatus.Begin("gitea", before, k.now)
}

// reconcile is a whole reconcile, including the wait for its deliveries.
func (k *keeper) reconcile(live []string, wants ...commitstatus.Want) time.Duration {
	marks, began := k.plan(live, wants...)
	k.stored = marks
	after := k.deliverer.Enqueue("line", "key", marks, began)
	k.settle()
	return after
}

// conflict is the foreign status of a commit; "": there is none.
func (k *keeper) conflict(sha string) string {
	for _, m := range k.stored {
		if m.SHA == sha && m.Foreign != nil {
			return m.Foreign.State + ": " + m.Foreign.Description
		}
	}
	return ""
}

// settle waits until the workers have nothing to do.
func (k *keeper) settle() { synctest.Wait() }

// keeping runs a test with a keeper, in a bubble that notices idle workers at once.
func keeping(t *testing.T, test func(*testing.T, *keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, newKeeper(t))
	})
}

func lost() (bool, error) {
	return true, &commitstatus.DeliveryError{Reason: "cut off", Uncertain: true}
}

func refused() (bool, error) { return false, &commitstatus.DeliveryError{Reason: "no", Everyone: true} }

// TestKilledBetweenPostAndMark: the next process waits one request time, reads the forge, and
// posts nothing again.
func TestKilledBetweenPostAndMark(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		marks, began := k.plan([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.stored = marks
		k.deliverer.Enqueue("line", "key", marks, began)
		k.settle() // accepted, but not recorded
		reads := k.forge.reads
		k.start()
		if after := k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2")); after != 15*time.Second || k.forge.reads != reads {
			t.Errorf("looked after %s, %d reads: what is on its way is waited for", after, k.forge.reads)
		}
		k.now = k.now.Add(15 * time.Second)
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		if len(k.forge.log) != 1 || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("posted %d times, mark %+v", len(k.forge.log), k.stored[0])
		}
	})
}

// TestNothingIsPostedTwiceAfterTheMarksWereLost: an object whose status was emptied posts nothing twice.
func TestNothingIsPostedTwiceAfterTheMarksWereLost(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		for range 2 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
			k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
			k.stored = nil
			k.deliverer.Forget("key")
		}
		if len(k.forge.log) != 1 {
			t.Errorf("posted %d times", len(k.forge.log))
		}
	})
}

// TestProgressIsPacedAfterTheMarksWereLost: after an object's status was emptied, a status found at
// the forge counts as posted just now.
func TestProgressIsPacedAfterTheMarksWereLost(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.stored = nil
		k.deliverer.Forget("key")
		half := say(commitstatus.Pending, "1/2", func(w *commitstatus.Want) { w.Progress = 50 })
		for range 30 {
			k.reconcile([]string{oldSHA}, half)
			k.now = k.now.Add(2 * time.Second)
		}
		if len(k.forge.log) != 2 || k.forge.latest(oldSHA) != "pending: 1/2" {
			t.Errorf("log %v", k.forge.log)
		}
		if bad := testforge.Violations(k.forge.log); len(bad) > 0 {
			t.Error(bad)
		}
	})
}

// TestVerdictIsPostedAfterTheMarksWereLost: an object whose status was emptied when its rollout ended finds what
// the forge shows, which is out of date, and posts the verdict at once.
func TestVerdictIsPostedAfterTheMarksWereLost(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "1/2"))
		k.stored = nil
		k.deliverer.Forget("key")
		for range 3 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		}
		if len(k.forge.log) != 2 || k.forge.latest(oldSHA) != "success: 2/2" || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("log %v, mark %+v", k.forge.log, k.stored[0])
		}
	})
}

// TestSecondOperatorDoesNotRepeatAPostUnderWay: if two operators run during a change of leadership, the
// second does not repeat a post that the first has begun, and reads the forge after one request
// time.
func TestSecondOperatorDoesNotRepeatAPostUnderWay(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		released := make(chan struct{})
		k.forge.answer = func() (bool, error) { <-released; return true, nil }
		want := say(commitstatus.Success, "2/2")
		k.reconcile([]string{oldSHA}, want) // the post hangs
		first := k.stop
		k.stop = nil
		k.start()
		if after := k.reconcile([]string{oldSHA}, want); after != 15*time.Second {
			t.Errorf("the second one looks after %s", after)
		}
		close(released)
		synctest.Wait()
		first()
		k.forge.answer = nil
		k.now = k.now.Add(15 * time.Second)
		k.reconcile([]string{oldSHA}, want)
		k.reconcile([]string{oldSHA}, want)
		if len(k.forge.log) != 1 || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("posted %d times, mark %+v", len(k.forge.log), k.stored[0])
		}
	})
}

// TestHealthyRunReadsOnce: the forge is read before the first post about an object, which may
// have lost its marks, and for marks that may be out of date.
func TestHealthyRunReadsOnce(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		if k.forge.reads != 1 || len(k.forge.log) != 2 || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("%d reads, %d posts", k.forge.reads, len(k.forge.log))
		}
	})
}

// TestForeignStatusIsNotOverwritten: a newer status of another client that a started operator reads is a
// conflict, until the user requests another look.
func TestForeignStatusIsNotOverwritten(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.forge.log = append(k.forge.log, testforge.Entry{SHA: oldSHA, Context: "c", State: "success", Description: "by hand"})
		k.start()
		for range 3 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Failure, "halted"))
		}
		if got := k.conflict(oldSHA); got != "success: by hand" || k.forge.latest(oldSHA) != got {
			t.Errorf("conflict %q, the forge shows %q", got, k.forge.latest(oldSHA))
		}
		k.forge.log = k.forge.log[:1]
		k.deliverer.Retry("line")
		k.settle()
		for range 3 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Failure, "halted"))
		}
		if got := k.forge.latest(oldSHA); got != "failure: halted" {
			t.Errorf("once the other status is gone: %q", got)
		}
	})
}

// TestRunningOperatorReplacesAForeignStatus: an operator that knows what it posted last does not read the forge before
// its next verdict, so it replaces a status that another client has written since.
func TestRunningOperatorReplacesAForeignStatus(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.forge.log = append(k.forge.log, testforge.Entry{SHA: oldSHA, Context: "c", State: "success", Description: "by hand"})
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		if got := k.forge.latest(oldSHA); got != "success: by hand" {
			t.Errorf("without news the forge shows %q", got)
		}
		k.reconcile([]string{oldSHA}, say(commitstatus.Failure, "halted"))
		if got := k.forge.latest(oldSHA); got != "failure: halted" {
			t.Errorf("after the verdict the forge shows %q", got)
		}
	})
}

// TestAStartedOperatorReadsEachCommitOnce: what 100 objects with four contexts each have as accepted is believed only once
// the forge was read. A forge that lists the contexts of a commit answers one request for all of them.
func TestAStartedOperatorReadsEachCommitOnce(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		stored := map[string][]commitstatus.Mark{}
		for i := range 100 {
			for j := range 4 {
				name := fmt.Sprint(i, "/", j)
				w := commitstatus.Want{SHA: oldSHA, Context: name, State: commitstatus.Success, Description: "2/2"}
				stored[fmt.Sprint(i)] = accept(commitstatus.Enter(stored[fmt.Sprint(i)], w), noon)
				description := w.Description
				if name == "99/3" {
					description = "0/2"
				}
				k.forge.log = append(k.forge.log, testforge.Entry{SHA: oldSHA, Context: name, State: "success", Description: description})
			}
		}
		for range 3 {
			for key, marks := range stored {
				stored[key] = commitstatus.WithResults(marks, k.deliverer.Results(key))
				k.deliverer.Enqueue("line", key, stored[key], nil)
			}
			k.settle()
			k.now = k.now.Add(15 * time.Second)
		}
		k.stored = slices.Concat(slices.Collect(maps.Values(stored))...)
		foreign := slices.DeleteFunc(k.stored, func(m commitstatus.Mark) bool { return m.Foreign == nil })
		if k.forge.reads != 1 || len(foreign) != 1 || foreign[0].Context != "99/3" {
			t.Errorf("%d reads, foreign %+v", k.forge.reads, foreign)
		}
	})
}

// TestACommitThatTheForgeDoesNotKnowIsReadOnceAStart: such a commit has nothing to post, so that no later answer is
// needed.
func TestACommitThatTheForgeDoesNotKnowIsReadOnceAStart(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		var marks []commitstatus.Mark
		for _, name := range []string{"c", "c/canary"} {
			w := commitstatus.Want{SHA: oldSHA, Context: name, State: commitstatus.Success, Description: "2/2"}
			marks = accept(commitstatus.Enter(marks, w), noon)
		}
		k.forge.unread = &commitstatus.DeliveryError{Reason: "does not know the commit (404)", Permanent: true, RetryAfter: time.Minute}
		for range 200 {
			k.deliverer.Enqueue("line", "key", marks, nil)
			k.settle()
			k.now = k.now.Add(15 * time.Second)
		}
		if troubles, _ := k.deliverer.Troubles("key"); k.forge.reads != 1 || k.deliverer.Refused("line") || len(troubles) > 0 {
			t.Errorf("%d reads, troubles %+v", k.forge.reads, troubles)
		}
	})
}

// TestRestoredMarksLoseNoStatus: marks from a backup are older than the statuses at the forge.
// An operator that was not restarted remembers its posts. After a restart it does not, so a
// status other than the one it would post is reported as a conflict.
func TestRestoredMarksLoseNoStatus(t *testing.T) {
	for name, restart := range map[string]bool{"RunningOperator": false, "RestartedOperator": true} {
		for _, want := range []commitstatus.Want{
			say(commitstatus.Success, "2/2"),
			say(commitstatus.Failure, "halted"),
			say(commitstatus.Pending, "1/2", func(w *commitstatus.Want) { w.Progress = 50 }),
		} {
			t.Run(name+"/"+string(want.State), func(t *testing.T) {
				keeping(t, func(t *testing.T, k *keeper) {
					t.Helper()
					k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
					k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
					backup := slices.Clone(k.stored)
					k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
					k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
					k.now = k.now.Add(time.Hour)
					k.stored = backup
					if restart {
						k.start()
					}
					for range 4 {
						k.reconcile([]string{oldSHA}, want)
						k.now = k.now.Add(15 * time.Second)
					}
					shown, conflict := string(want.State)+": "+want.Description, restart && want.State != commitstatus.Success
					if conflict {
						shown = "success: 2/2"
					}
					if got := k.forge.latest(oldSHA); got != shown {
						t.Errorf("the forge shows %q, want %q", got, shown)
					}
					if reported := k.conflict(oldSHA) == shown; reported != conflict {
						t.Errorf("mark %+v", k.stored[0])
					}
					next := commitstatus.Want{SHA: newSHA, Context: "c", State: commitstatus.Success, Description: "2/2", Content: "next"}
					k.reconcile([]string{newSHA}, next)
					k.reconcile([]string{newSHA}, next)
					if got := k.forge.latest(newSHA); got != "success: 2/2" {
						t.Errorf("the next commit shows %q", got)
					}
					if bad := testforge.Violations(k.forge.log); len(bad) > 0 {
						t.Error(bad)
					}
				})
			})
		}
	}
}

// TestMarksRestoredInTheMiddleOfAPostLoseNoStatus: a backup made during a post names a statement that the forge has
// replaced since. An operator that kept running knows the newer status as its own, and posts the last verdict.
func TestMarksRestoredInTheMiddleOfAPostLoseNoStatus(t *testing.T) {
	halted := say(commitstatus.Failure, "halted")
	for name, want := range map[string]commitstatus.Want{
		"TheVerdictOfTheBackupAgain": halted,
		"AnotherVerdict":             say(commitstatus.Success, "2/2"),
		"WhatTheForgeShows":          say(commitstatus.Pending, "1/2"),
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				live := []string{oldSHA}
				k.reconcile(live, say(commitstatus.Pending, "0/2"))
				k.reconcile(live, halted)
				backup := slices.Clone(k.stored)
				k.now = k.now.Add(time.Hour)
				k.reconcile(live, say(commitstatus.Pending, "1/2"))
				k.reconcile(live, say(commitstatus.Pending, "1/2"))
				k.stored = backup
				for range 5 {
					k.reconcile(live, want)
					k.now = k.now.Add(20 * time.Second)
				}
				shown := string(want.State) + ": " + want.Description
				if want.State == commitstatus.Pending {
					shown = "pending: resumed: 1/2"
				}
				if troubles, _ := k.deliverer.Troubles("key"); len(troubles) > 0 {
					t.Errorf("troubles %+v", troubles)
				}
				if got := k.forge.latest(oldSHA); got != shown {
					t.Errorf("the forge shows %q, want %q; mark %+v", got, shown, k.stored[0])
				}
			})
		})
	}
}

// TestVerdictOfAReplacedCommitStaysAfterARestoreAndARestart: the backup is older than the first status of the commit. The
// forge shows its verdict, which "superseded" does not replace.
func TestVerdictOfAReplacedCommitStaysAfterARestoreAndARestart(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		backup := slices.Clone(k.stored)
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		next := commitstatus.Want{SHA: newSHA, Context: "c", State: commitstatus.Success, Description: "2/2", Content: "next"}
		k.reconcile([]string{newSHA}, next)
		k.stored = backup
		k.start()
		for range 3 {
			k.reconcile([]string{newSHA}, next)
			k.now = k.now.Add(20 * time.Second)
		}
		if got := k.forge.latest(oldSHA); got != "success: 2/2" {
			t.Errorf("the forge shows %q", got)
		}
		if troubles, _ := k.deliverer.Troubles("key"); len(troubles) > 0 || len(k.stored) != 1 {
			t.Errorf("troubles %+v, marks %+v", troubles, k.stored)
		}
	})
}

// TestCommitWhoseMarkWasLostGetsTheVerdictOfItsContent: the marks were lost with their status while the commit was pending.
// Then a newer commit replaced it, with the content that the commit had last or with other content.
func TestCommitWhoseMarkWasLostGetsTheVerdictOfItsContent(t *testing.T) {
	superseded := "error: superseded by " + newSHA[:10]
	for name, c := range map[string]struct {
		contents []string
		want     string
	}{
		"Equal": {[]string{"a"}, "success: 2/2"}, "Other": {[]string{"b"}, superseded},
		"EqualToTheLast": {[]string{"b", "a"}, "success: 2/2"}, "EqualToTheFirst": {[]string{"a", "b"}, superseded},
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				for _, content := range c.contents {
					for range 2 {
						k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2", func(w *commitstatus.Want) { w.Content = content }))
					}
				}
				k.stored = nil
				for range 6 {
					k.reconcile([]string{newSHA}, commitstatus.Want{SHA: newSHA, Context: "c", State: commitstatus.Success, Description: "2/2", Content: "a"})
					k.now = k.now.Add(10 * time.Second)
				}
				if got := k.forge.latest(oldSHA); got != c.want {
					t.Errorf("the forge shows %q, want %q", got, c.want)
				}
				if bad := testforge.Violations(k.forge.log); len(bad) > 0 || len(k.stored) != 1 {
					t.Errorf("%v, marks %+v", bad, k.stored)
				}
			})
		})
	}
}

// TestReadOfACommitWhoseMarkWasLostWaitsAfterAFailure: each failed read causes a reconcile, which causes no read at once. A
// commit that the forge refuses, because it has it no more, is not read again.
func TestReadOfACommitWhoseMarkWasLostWaitsAfterAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		unread commitstatus.DeliveryError
		wait   time.Duration
		reads  int
	}{
		"NotAnswered": {commitstatus.DeliveryError{Reason: "no answer"}, 5 * time.Second, 2},
		"Refused":     {commitstatus.DeliveryError{Reason: "does not know the commit (404)", Permanent: true, RetryAfter: time.Minute}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				for range 2 {
					k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
				}
				k.stored = nil
				next := commitstatus.Want{SHA: newSHA, Context: "c", State: commitstatus.Success, Description: "2/2", Content: "next"}
				for range 3 {
					k.reconcile([]string{newSHA}, next)
				}
				k.forge.unread = &c.unread
				before := k.forge.reads
				k.now = k.now.Add(20 * time.Second)
				var after time.Duration
				for range 30 {
					after = k.reconcile([]string{newSHA}, next)
				}
				if reads := k.forge.reads - before; reads != 1 || after != c.wait {
					t.Errorf("at once: %d reads, the next after %s, want 1 and %s", reads, after, c.wait)
				}
				k.now = k.now.Add(5 * time.Second)
				for range 30 {
					k.reconcile([]string{newSHA}, next)
				}
				if reads := k.forge.reads - before; reads != c.reads {
					t.Errorf("after 5 s: %d reads, want %d", reads, c.reads)
				}
			})
		})
	}
}

// TestFirstPassWithoutMarksPostsNothingTwice: the status was lost and the operator restarted. In its first pass it knows no
// commit yet, and it reads the forge before it posts.
func TestFirstPassWithoutMarksPostsNothingTwice(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		for range 2 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		}
		k.stored = nil
		k.start()
		before := k.forge.reads
		k.reconcile(nil)
		for range 3 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
			k.now = k.now.Add(20 * time.Second)
		}
		if reads := k.forge.reads - before; len(k.forge.log) != 1 || reads != 1 || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("%d posts, %d reads, mark %+v", len(k.forge.log), reads, k.stored[0])
		}
	})
}

// TestEveryLateResultIsKeptUntilItIsInAMark: the forge shows 150 contexts without a mark as pending, and a reconcile that
// began before the read ends after it.
func TestEveryLateResultIsKeptUntilItIsInAMark(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		var wants []commitstatus.Want
		for i := range 150 {
			wants = append(wants, say(commitstatus.Pending, "0/2", func(w *commitstatus.Want) { w.Context = fmt.Sprint("c/", i) }))
		}
		for range 2 {
			k.reconcile([]string{oldSHA}, wants...)
		}
		k.stored = nil
		k.reconcile([]string{newSHA})
		k.now = k.now.Add(20 * time.Second)
		before := k.forge.reads
		for range 2 { // the second does not know yet what the first has read
			k.deliverer.Enqueue("line", "key", nil, nil)
			k.settle()
		}
		if got := len(k.deliverer.Results("key")); got != 150 || k.forge.reads != before+1 {
			t.Errorf("%d results, %d reads", got, k.forge.reads-before)
		}
	})
}

// restored is a random history of one operator whose marks are put back to earlier ones.
type restored struct {
	*keeper
	random *rand.Rand
	shas   []string
	wanted map[string]commitstatus.Want
	// backups are all earlier marks, and none as in an empty status.
	backups [][]commitstatus.Mark
	// shown are the ends of commits that the forge has shown: they must stay.
	shown map[string]string
}

func (r *restored) commit() {
	sha := fmt.Sprintf("%010d%030d", len(r.shas), 0)
	r.shas = append(r.shas, sha)
	r.wanted[sha] = commitstatus.Want{SHA: sha, Context: "c", State: commitstatus.Pending, Description: "0/100", Content: sha}
}

func (r *restored) head() commitstatus.Want { return r.wanted[r.shas[len(r.shas)-1]] }

// move goes on with the newest commit.
func (r *restored) move() {
	w := testforge.Next(r.head(), r.random)
	r.wanted[w.SHA] = w
}

// end is what a commit says in the end; "" if that is not final.
func (r *restored) end(i int) string {
	w := r.wanted[r.shas[i]]
	switch {
	case w.State.Terminal():
		return string(w.State) + ": " + w.Description
	case i+1 < len(r.shas):
		return "error: superseded by " + r.shas[i+1][:10]
	default:
		return ""
	}
}

// turn reconciles and notes what is stored and shown.
func (r *restored) turn() {
	r.reconcile(r.shas[len(r.shas)-1:], r.head())
	r.backups = append(r.backups, slices.Clone(r.stored))
	for i, sha := range r.shas[:len(r.shas)-1] {
		open := slices.ContainsFunc(r.stored, func(m commitstatus.Mark) bool { return m.SHA == sha && !commitstatus.Delivered(m) })
		if !open && r.forge.latest(sha) == r.end(i) {
			r.shown[sha] = r.end(i)
		}
	}
}

// play runs a random history of commits, changed verdicts, lost answers, outages and marks put back to earlier ones, until
// the newest commit has its verdict and there was time to show it. after is called when marks were put back.
func (r *restored) play(after func()) {
	r.backups = [][]commitstatus.Mark{nil}
	r.commit()
	r.turn()
	for range 40 {
		switch r.random.IntN(8) {
		case 0:
			r.commit()
		case 1, 2, 3:
			r.move()
		case 4:
			r.forge.mu.Lock()
			r.forge.answer = []func() (bool, error){nil, lost, refused}[r.random.IntN(3)]
			r.forge.mu.Unlock()
		case 5:
			r.stored = slices.Clone(r.backups[r.random.IntN(len(r.backups))])
			after()
		default:
			r.now = r.now.Add(time.Duration(r.random.IntN(60)) * time.Second)
		}
		r.turn()
	}
	r.forge.mu.Lock()
	r.forge.answer = nil
	r.forge.mu.Unlock()
	for r.end(len(r.shas)-1) == "" {
		r.move()
	}
	for range 60 {
		r.turn()
		r.now = r.now.Add(16 * time.Second)
	}
}

// restoring runs random histories with restored marks.
func restoring(t *testing.T, histories uint64, test func(*testing.T, *restored)) {
	t.Helper()
	for seed := range histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				test(t, &restored{keeper: k, random: rand.New(rand.NewPCG(seed, 2)), wanted: map[string]commitstatus.Want{}, shown: map[string]string{}})
			})
		})
	}
}

// TestEveryHistoryWithRestoredMarksEndsRight: under a running operator, at the end the newest commit shows its newest
// verdict. Any other commit that has shown its end keeps it; one whose end was lost with the marks shows some end, and none
// is pending.
func TestEveryHistoryWithRestoredMarksEndsRight(t *testing.T) {
	restoring(t, 1000, func(t *testing.T, r *restored) {
		t.Helper()
		r.play(func() {})
		r.shown[r.head().SHA] = r.end(len(r.shas) - 1)
		for _, sha := range r.shas {
			if got := r.forge.latest(sha); strings.HasPrefix(got, "pending: ") {
				t.Errorf("%s of %d: the forge shows %q", sha[:10], len(r.shas), got)
			}
		}
		for sha, want := range r.shown {
			if got := r.forge.latest(sha); got != want {
				t.Errorf("%s of %d: the forge shows %q, want %q", sha[:10], len(r.shas), got, want)
			}
		}
		if troubles, _ := r.deliverer.Troubles("key"); len(troubles) > 0 || !commitstatus.Delivered(r.stored[0]) {
			t.Errorf("troubles %+v, mark %+v", troubles, r.stored[0])
		}
	})
}

// TestEveryHistoryWithRestoredMarksAndRestartsEndsOrSaysWhy: an operator that starts from restored marks knows no newer
// status as its own. At the end the newest commit shows its newest verdict, and any other commit that has shown its end
// shows a verdict, if only the one that the restored marks were about. What does not is reported as a conflict. Once the
// user has the conflicts replaced, the newest commit shows its newest verdict.
func TestEveryHistoryWithRestoredMarksAndRestartsEndsOrSaysWhy(t *testing.T) {
	restoring(t, 500, func(t *testing.T, r *restored) {
		t.Helper()
		r.play(r.start)
		troubles, _ := r.deliverer.Troubles("key")
		head := r.head()
		conflict := func(sha string) bool { return r.conflict(sha) != "" }
		for _, m := range r.stored {
			if !commitstatus.Delivered(m) && !conflict(m.SHA) {
				t.Errorf("troubles %+v, mark %+v", troubles, m)
			}
		}
		if got, want := r.forge.latest(head.SHA), r.end(len(r.shas)-1); got != want && !conflict(head.SHA) {
			t.Errorf("the newest of %d: the forge shows %q, want %q", len(r.shas), got, want)
		}
		for sha := range r.shown {
			if got := r.forge.latest(sha); strings.HasPrefix(got, "pending: ") && !conflict(sha) {
				t.Errorf("%s of %d: the forge shows %q", sha[:10], len(r.shas), got)
			}
		}
		r.deliverer.Replace("line")
		for range 4 {
			r.turn()
			r.now = r.now.Add(16 * time.Second)
		}
		if troubles, _ := r.deliverer.Troubles("key"); len(troubles) > 0 || r.forge.latest(head.SHA) != r.end(len(r.shas)-1) {
			t.Errorf("after the conflicts were replaced, the newest shows %q, troubles %+v", r.forge.latest(head.SHA), troubles)
		}
	})
}

// TestLostAnswerIsReadAgain: a lost answer does not count as a failure of the post.
func TestLostAnswerIsReadAgain(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.forge.answer = lost
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.forge.answer = nil
		k.now = k.now.Add(time.Minute)
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		if len(k.forge.log) != 1 || k.forge.reads != 2 || !commitstatus.Delivered(k.stored[0]) {
			t.Errorf("%d posts, %d reads, %+v", len(k.forge.log), k.forge.reads, k.stored)
		}
	})
}

// TestFinalStatusesArePostedAfterAnOutage: after an outage of the forge the newest status of each
// commit is posted, and no outdated one.
func TestFinalStatusesArePostedAfterAnOutage(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.forge.answer = refused
		var shas []string
		for i := range 20 {
			sha := fmt.Sprintf("%040d", i)
			shas = append(shas, sha)
			w := commitstatus.Want{SHA: sha, Context: "c", State: commitstatus.Pending, Content: sha}
			k.reconcile([]string{sha}, w)
			if i%3 == 0 {
				w.State, w.Description = commitstatus.Failure, "halted"
				k.reconcile([]string{sha}, w)
			}
			k.now = k.now.Add(time.Minute)
		}
		k.forge.answer = nil
		last := commitstatus.Want{SHA: shas[19], Context: "c", State: commitstatus.Success, Description: "2/2", Content: shas[19]}
		for range 60 {
			k.reconcile(shas[19:], last)
			k.now = k.now.Add(10 * time.Second)
		}
		for i, sha := range shas {
			want := "error: superseded by " + shas[min(i+1, 19)][:10]
			switch {
			case i%3 == 0:
				want = "failure: halted"
			case i == 19:
				want = "success: 2/2"
			}
			if got := k.forge.latest(sha); got != want {
				t.Errorf("%d: the forge shows %q, want %q", i, got, want)
			}
		}
		if bad := testforge.Violations(k.forge.log); len(bad) > 0 {
			t.Error(bad)
		}
	})
}

// TestEveryHistoryKeepsThePromises runs random histories of commits, progress, verdicts,
// failures of the forge and kills between any two steps. At the end the forge shows the right
// status of every commit; no two neighbours are equal, except where a process was killed
// between post and mark; progress is paced.
func TestEveryHistoryKeepsThePromises(t *testing.T) {
	const histories = 1000
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				random := rand.New(rand.NewPCG(seed, 1))
				var shas []string
				wanted := map[string]commitstatus.Want{}
				commit := func() {
					sha := fmt.Sprintf("%040d", len(shas))
					shas = append(shas, sha)
					wanted[sha] = commitstatus.Want{SHA: sha, Context: "c", State: commitstatus.Pending, Description: "0/10", Content: sha}
				}
				commit()
				head := func() commitstatus.Want { return wanted[shas[len(shas)-1]] }
				k.reconcile(shas, head())
				for range 40 {
					switch random.IntN(8) {
					case 0:
						commit()
					case 1, 2:
						w := head()
						if w.State == commitstatus.Pending {
							w.Progress = min(w.Progress+10, 100)
							w.Description = fmt.Sprintf("%d/100", w.Progress)
							wanted[w.SHA] = w
						}
					case 3:
						w := head()
						w.State, w.Description = commitstatus.Failure, fmt.Sprintf("halted at %d", w.Progress)
						if random.IntN(2) == 0 {
							w.State = commitstatus.Success
						}
						if wanted[w.SHA].State == commitstatus.Pending {
							wanted[w.SHA] = w
						}
					case 4:
						k.forge.mu.Lock()
						k.forge.answer = []func() (bool, error){nil, lost, refused}[random.IntN(3)]
						k.forge.mu.Unlock()
					case 5:
						k.start()
					case 6: // killed between its status write and its post, or between post and mark
						marks, began := k.plan(shas[len(shas)-1:], head())
						k.stored = marks
						if random.IntN(2) == 0 {
							k.deliverer.Enqueue("line", "key", marks, began)
							k.settle()
						}
						k.start()
					case 7:
						k.now = k.now.Add(time.Duration(random.IntN(60)) * time.Second)
					}
					k.reconcile(shas[len(shas)-1:], head())
				}
				k.forge.mu.Lock()
				k.forge.answer = nil
				k.forge.mu.Unlock()
				w := head()
				w.State, w.Description = commitstatus.Success, "100/100"
				if head().State == commitstatus.Pending {
					wanted[w.SHA] = w
				}
				for range 60 {
					k.reconcile(shas[len(shas)-1:], head())
					k.now = k.now.Add(16 * time.Second)
				}
				for i, sha := range shas {
					got := k.forge.latest(sha)
					want := string(wanted[sha].State) + ": " + wanted[sha].Description
					if wanted[sha].State == commitstatus.Pending {
						want = "error: superseded by " + shas[i+1][:10]
					}
					if got != want {
						t.Errorf("%d of %d: the forge shows %q, want %q", i, len(shas), got, want)
					}
				}
				if bad := testforge.Violations(k.forge.log); len(bad) > 0 {
					t.Error(bad)
				}
			})
		})
	}
}

// TestCommitThatIsTheHeadAgainDoesNotKeepItsOldVerdict: a branch or tag goes back to a commit that was green, and the commit
// cannot be applied now. The operator was restarted, or its marks were lost.
func TestCommitThatIsTheHeadAgainDoesNotKeepItsOldVerdict(t *testing.T) {
	for name, c := range map[string]struct{ restart, lost bool }{
		"Running": {false, false}, "Restarted": {true, false}, "RestartedWithoutMarks": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(t *testing.T, k *keeper) {
				t.Helper()
				for _, want := range []commitstatus.Want{say(commitstatus.Pending, "0/2"), say(commitstatus.Success, "2/2"), say(commitstatus.Success, "2/2")} {
					k.reconcile([]string{oldSHA}, want)
				}
				for range 3 {
					k.reconcile([]string{newSHA}, commitstatus.Want{SHA: newSHA, Context: "c", State: commitstatus.Success, Description: "2/2", Content: "next"})
					k.now = k.now.Add(time.Hour)
				}
				if c.lost {
					k.stored = nil
				}
				if c.restart {
					k.start()
				}
				for range 12 {
					k.reconcile([]string{oldSHA}, commitstatus.Want{SHA: oldSHA, Context: "c", State: commitstatus.Pending, Description: "waits for Placement x"})
					k.now = k.now.Add(5 * time.Second)
				}
				if got := k.forge.latest(oldSHA); got != "pending: waits for Placement x" {
					t.Errorf("after a minute: %s", got)
				}
			})
		})
	}
}

// TestStatusesThatTheForgeLostArePostedAgainForOneRead: the forge and the marks both come from a backup.
func TestStatusesThatTheForgeLostArePostedAgainForOneRead(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		t.Helper()
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
		backup := k.stored
		k.now = k.now.Add(time.Minute)
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.reconcile([]string{oldSHA}, say(commitstatus.Success, "2/2"))
		k.forge.log, k.stored = nil, backup
		before := k.forge.reads
		for range 20 {
			k.reconcile([]string{oldSHA}, say(commitstatus.Pending, "0/2"))
			k.now = k.now.Add(5 * time.Second)
		}
		if reads := k.forge.reads - before; reads > 2 {
			t.Errorf("%d reads", reads)
		}
		if got := k.forge.latest(oldSHA); got != "pending: 0/2" {
			t.Errorf("the forge shows %q", got)
		}
	})
}
