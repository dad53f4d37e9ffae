package commitstatus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/test/forge"
)

// controller keeps ledgers as a reconciler does, one reconcile at a time.
type controller struct {
	t         *testing.T
	clock     *clocktesting.FakeClock
	deliverer *commitstatus.Deliverer
	client    commitstatus.Forge
	ledgers   map[string][]commitstatus.Report
	events    chan string
	stop      func()
}

// newController returns a controller whose Deliverer posts to f.
func newController(t *testing.T, f *forge.Forge, config commitstatus.DelivererConfig) *controller {
	t.Helper()
	if f.URL() == "" {
		if _, err := f.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
	}
	c := &controller{
		t: t, clock: clocktesting.NewFakeClock(now), client: dial(t, commitstatus.ProviderGitea, f.Address("fleet/addons")),
		ledgers: map[string][]commitstatus.Report{}, events: make(chan string, 10_000),
	}
	f.SetClock(c.clock.Now)
	config.Clock, config.Notify = c.clock.Now, func(key string) { c.events <- key }
	c.deliverer = commitstatus.NewDeliverer(config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.deliverer.Run(ctx)
	}()
	c.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(c.stop)
	return c
}

// want reconciles a key with a wish.
func (c *controller) want(key string, status commitstatus.Status, percent int) {
	c.reconcile(key, func(reports []commitstatus.Report) []commitstatus.Report {
		return commitstatus.Want(reports, status, percent)
	})
}

// reconcile settles, changes and hands the ledger of a key over.
func (c *controller) reconcile(key string, change func([]commitstatus.Report) []commitstatus.Report) {
	c.ledgers[key] = change(commitstatus.Settle(c.ledgers[key], c.deliverer.Results(key)))
	c.deliverer.Enqueue(key, c.client, c.ledgers[key])
}

// until reconciles every key that the Deliverer notifies of, until the condition holds.
func (c *controller) until(what string, holds func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		select {
		case key := <-c.events:
			c.reconcile(key, slices.Clone)
		case <-ctx.Done():
			c.t.Fatalf("never came: %s; ledgers %+v", what, c.ledgers)
		}
	}
}

// told tells whether the ledger of a key has nothing undelivered.
func (c *controller) told(key string) func() bool {
	return func() bool {
		return !slices.ContainsFunc(c.ledgers[key], commitstatus.Report.Undelivered)
	}
}

// keepsPromises fails if the forge's log breaks the rules.
func keepsPromises(t *testing.T, f *forge.Forge) {
	t.Helper()
	if complaints := forge.Violations(f.Log()); len(complaints) > 0 {
		t.Errorf("%s", strings.Join(complaints, "\n"))
	}
}

// states returns what the forge was told about a context, in order.
func states(f *forge.Forge, context string) []string {
	var out []string
	for _, e := range f.Log() {
		if e.Context == context {
			out = append(out, e.State+" "+e.Description)
		}
	}
	return out
}

// same fails unless the forge was told exactly this about hello.
func same(t *testing.T, f *forge.Forge, want ...string) {
	t.Helper()
	if got := states(f, hello); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	keepsPromises(t, f)
}

// say returns a status of hello.
func say(state commitstatus.State, text string) commitstatus.Status {
	return commitstatus.Status{SHA: testSHA, Context: hello, State: state, Description: text}
}

func TestDeliverAStory(t *testing.T) {
	f := forge.New("fleet/addons")
	f.RequireToken(testToken)
	c := newController(t, f, commitstatus.DelivererConfig{})
	c.want("k", say(commitstatus.Pending, "canary 0/2"), 0)
	c.until("first pending", c.told("k"))
	c.want("k", say(commitstatus.Pending, "canary 1/2"), 50)
	c.clock.Step(30 * time.Second)
	c.reconcile("k", slices.Clone)
	c.until("progress", c.told("k"))
	c.want("k", say(commitstatus.Failure, "canary failed: eu-1"), 50)
	c.until("verdict", c.told("k"))
	c.want("k", say(commitstatus.Success, "2 of 2"), 100)
	c.until("second verdict", c.told("k"))
	same(t, f, "pending canary 0/2", "pending canary 1/2", "failure canary failed: eu-1", "success 2 of 2 (attempt 2)")
}

func TestOutageLosesNothing(t *testing.T) {
	f := forge.New()
	c := newController(t, f, commitstatus.DelivererConfig{})
	if err := f.Down(); err != nil {
		t.Fatal(err)
	}
	c.want("k", say(commitstatus.Failure, "canary failed: eu-1"), 0)
	c.want("k", say(commitstatus.Success, "2 of 2"), 100)
	c.until("a failed try", func() bool { return c.ledgers["k"][0].FailedTries > 0 })
	if got := c.ledgers["k"][0].LastError; !strings.HasPrefix(got, "cannot reach 127.0.0.1:") {
		t.Errorf("got %q", got)
	}
	if err := f.Up(); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(10 * time.Second)
	c.reconcile("k", slices.Clone)
	c.until("both verdicts", c.told("k"))
	same(t, f, "failure canary failed: eu-1", "success 2 of 2 (attempt 2)")
}

func TestLostAnswersAreNotRepeated(t *testing.T) {
	for _, kind := range []forge.FaultKind{forge.AcceptedThenError, forge.AcceptedThenCut} {
		t.Run(string(kind), func(t *testing.T) {
			f := forge.New()
			c := newController(t, f, commitstatus.DelivererConfig{})
			f.Set(forge.Fault{Kind: kind, Times: 1, PostsOnly: true})
			c.want("k", say(commitstatus.Success, "2 of 2"), 100)
			c.until("a failed try", func() bool { return c.ledgers["k"][0].FailedTries > 0 })
			c.clock.Step(10 * time.Second)
			c.reconcile("k", slices.Clone)
			c.until("the verdict", c.told("k"))
			same(t, f, "success 2 of 2")
		})
	}
}

func TestRestartReadsBeforeItPosts(t *testing.T) {
	f := forge.New()
	before := newController(t, f, commitstatus.DelivererConfig{})
	before.want("k", say(commitstatus.Success, "2 of 2"), 100)
	if err := f.WaitFor(t.Context(), func(log []forge.Entry) bool { return len(log) == 1 }); err != nil {
		t.Fatal(err)
	}
	before.stop()
	// The ledger was written before the post, and never learned of it.
	after := newController(t, f, commitstatus.DelivererConfig{})
	after.ledgers["k"] = []commitstatus.Report{report(commitstatus.Success, "2 of 2")}
	after.reconcile("k", slices.Clone)
	after.until("the ledger knows", after.told("k"))
	after.clock.Step(commitstatus.ProgressInterval)
	after.want("k", say(commitstatus.Pending, "again"), 0)
	after.until("the next attempt", after.told("k"))
	same(t, f, "success 2 of 2", "pending again (attempt 2)")
}

func TestRateLimitIsForEveryone(t *testing.T) {
	f := forge.New()
	c := newController(t, f, commitstatus.DelivererConfig{})
	f.Set(forge.Fault{Kind: forge.TooManyRequests, RetryAfter: time.Minute})
	c.reconcile("k", func([]commitstatus.Report) []commitstatus.Report {
		var reports []commitstatus.Report
		for i := range 20 {
			s := say(commitstatus.Success, "2 of 2")
			s.Context = fmt.Sprintf("addonflow/%d", i)
			reports = commitstatus.Want(reports, s, 100)
		}
		return reports
	})
	c.until("all wait", func() bool {
		return !slices.ContainsFunc(c.ledgers["k"], func(r commitstatus.Report) bool { return r.NextTry != now.Unix()+60 })
	})
	if got := f.Requests(); got != 1 {
		t.Errorf("%d requests against a limit", got)
	}
	f.Set(forge.Fault{})
	c.clock.Step(time.Minute)
	c.reconcile("k", slices.Clone)
	c.until("all told", c.told("k"))
	keepsPromises(t, f)
}

func TestPermanentRefusalStops(t *testing.T) {
	f := forge.New("fleet/addons")
	f.RequireToken("another")
	c := newController(t, f, commitstatus.DelivererConfig{})
	c.want("k", say(commitstatus.Success, "2 of 2"), 100)
	c.until("refused", func() bool { return c.ledgers["k"][0].FailedTries == 1 })
	if r := c.ledgers["k"][0]; r.NextTry != now.Add(time.Hour).Unix() || !strings.Contains(r.LastError, "(401)") {
		t.Errorf("got %+v", r)
	}
	f.RequireToken(testToken)
	c.deliverer.Forget("k")
	c.reconcile("k", commitstatus.Retry)
	c.until("told", c.told("k"))
	same(t, f, "success 2 of 2")
}

func TestHangingForgeHoldsNobodyBack(t *testing.T) {
	hanging, healthy := forge.New(), forge.New()
	c := newController(t, healthy, commitstatus.DelivererConfig{Workers: 2})
	if _, err := hanging.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	hanging.Set(forge.Fault{Kind: forge.Hang})
	c.deliverer.Enqueue("hanging", dial(t, commitstatus.ProviderGitea, hanging.Address("fleet/addons")),
		[]commitstatus.Report{report(commitstatus.Success, "2 of 2")})
	for i := range 50 {
		c.want(fmt.Sprint("k", i), commitstatus.Status{SHA: testSHA, Context: fmt.Sprint("c", i), State: commitstatus.Success}, 0)
	}
	c.until("all healthy keys", func() bool {
		return len(healthy.Log()) == 50 && c.told("k49")()
	})
	keepsPromises(t, healthy)
	// Ending does not wait for the forge that hangs.
	c.stop()
	if got := c.deliverer.Results("hanging"); len(got) > 0 {
		t.Errorf("the end of the process was taken for the forge's fault: %+v", got)
	}
}

func TestManyKeysAtOnce(t *testing.T) {
	f := forge.New()
	c := newController(t, f, commitstatus.DelivererConfig{Workers: 8})
	f.Set(forge.Fault{Kind: forge.AcceptedThenError, Times: 15, PostsOnly: true})
	const keys = 40
	for i := range keys {
		key := fmt.Sprint("k", i)
		for _, status := range []commitstatus.Status{say(commitstatus.Pending, "0/2"), say(commitstatus.Failure, "eu-1"), say(commitstatus.Success, "2/2")} {
			status.Context = key
			c.want(key, status, 0)
		}
	}
	c.until("all told", func() bool {
		for i := range keys {
			key := fmt.Sprint("k", i)
			if c.told(key)() {
				continue
			}
			// Time passes only where nothing but time is waited for.
			if due, wait := commitstatus.Next(c.ledgers[key], c.clock.Now()); len(due) == 0 {
				c.clock.Step(wait)
			}
			c.reconcile(key, slices.Clone)
			return false
		}
		return true
	})
	for i := range keys {
		got := states(f, fmt.Sprint("k", i))
		if n := len(got); n < 2 || got[n-1] != "success 2/2 (attempt 2)" || got[n-2] != "failure eu-1" {
			t.Errorf("k%d: %q", i, got)
		}
	}
	keepsPromises(t, f)
}

func TestForgottenKeysLeaveNothing(t *testing.T) {
	f := forge.New()
	c := newController(t, f, commitstatus.DelivererConfig{})
	c.want("k", say(commitstatus.Success, "2 of 2"), 100)
	c.until("told", c.told("k"))
	if got := c.deliverer.Results("k"); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	c.deliverer.Enqueue("k", nil, c.ledgers["k"])
	if got := c.deliverer.Results("k"); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	c.deliverer.Forget("unknown")
}
