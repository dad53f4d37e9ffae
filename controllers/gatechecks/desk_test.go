package gatechecks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rollouts of the tests.
var (
	hello = types.NamespacedName{Namespace: "fleet", Name: "hello"}
	other = types.NamespacedName{Namespace: "fleet", Name: "other"}
)

// bench is a desk that runs.
type bench struct {
	*Desk
	t     *testing.T
	clock *clocktesting.FakeClock
	// seen are the results that the last turn of a rollout read.
	seen  map[types.NamespacedName][]gates.Measured
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newBench(t *testing.T, secrets ...client.Object) *bench {
	t.Helper()
	b := &bench{t: t, seen: map[types.NamespacedName][]gates.Measured{}, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC))}
	b.Desk = NewDesk(Options{
		Secrets: fake.NewClientBuilder().WithObjects(secrets...).Build(),
		Measure: measure.Options{AllowHTTP: true, AllowLoopback: true}, Clock: b.clock,
	})
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	if err := b.Outcomes().Start(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.queue.ShutDown()
	})
	return b
}

// Results are what a turn of the rollout reads, Ask is the end of that turn.
func (b *bench) Results(key types.NamespacedName) []gates.Measured {
	b.seen[key] = b.Desk.Results(key)
	return b.seen[key]
}

func (b *bench) Ask(key types.NamespacedName, asks []gates.Measure) {
	b.Desk.Ask(key, asks, b.seen[key])
}

// service answers measurements, and counts them.
type service struct {
	address string
	asked   atomic.Int32
	// answer returns the state of an answer; by default Passed.
	answer atomic.Pointer[string]
}

func newService(t *testing.T, answer func(*http.Request)) *service {
	t.Helper()
	s := &service{}
	s.say("Passed")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := s.asked.Add(1)
		answer(r)
		_, _ = fmt.Fprintf(w, `{"state":%q,"message":"%d"}`, *s.answer.Load(), n)
	}))
	t.Cleanup(server.Close)
	s.address = server.URL
	return s
}

func (s *service) say(state string) { s.answer.Store(&state) }

// atOnceAnswered is an answer without delay, hanging one that never comes.
func atOnceAnswered(*http.Request) {}
func hanging(r *http.Request)      { <-r.Context().Done() }

// ask is about a web service, every ten seconds.
func (s *service) ask(name string, change ...func(*gates.Measure)) gates.Measure {
	a := gates.Measure{
		When: v1alpha1.GateDuring,
		Gate: v1alpha1.Gate{
			Name: name, Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{URL: s.address},
			Interval: &metav1.Duration{Duration: 10 * time.Second},
		},
		Question: gates.Question{Stage: "canary", Gate: name, Digest: "sha256:1", Attempt: 1, Moved: []string{"c1"}},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// result waits until a rollout is requested, and returns its only result as "State: reason at
// second".
func (b *bench) result(key types.NamespacedName) string {
	b.t.Helper()
	for {
		request, stopped := b.await()
		if stopped {
			b.t.Fatalf("no result for %s", key)
		}
		if request.NamespacedName == key {
			break
		}
	}
	results := b.Results(key)
	if len(results) != 1 {
		b.t.Fatalf("got %d results", len(results))
	}
	r := results[0]
	return fmt.Sprintf("%s: %s at %02d:%02d", r.Verdict.State, r.Verdict.Reason, r.Began.Minute(), r.Began.Second())
}

// await returns the next request.
func (b *bench) await() (reconcile.Request, bool) {
	b.t.Helper()
	timer := time.AfterFunc(20*time.Second, b.queue.ShutDown)
	defer timer.Stop()
	request, stopped := b.queue.Get()
	b.queue.Done(request)
	return request, stopped
}

// expect compares the next result of a rollout.
func (b *bench) expect(key types.NamespacedName, want string) {
	b.t.Helper()
	if got := b.result(key); got != want {
		b.t.Fatalf("got %s, want %s", got, want)
	}
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.clock.Step(d)
	b.schedule() // it may have read the clock before the step, and set its timer after it
}

// idle fails if anything is measured within a moment.
func (b *bench) idle() {
	b.t.Helper()
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // there is no event for what does not happen
	if n := b.queue.Len(); n > 0 {
		b.t.Fatalf("%d results more", n)
	}
}

func TestDesk_MeasuresEveryInterval(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	asks := []gates.Measure{s.ask("smoke")}
	b.Ask(hello, asks)
	b.expect(hello, "Passed: 1 at 00:00")
	b.Ask(hello, asks)
	b.idle()
	b.pass(9 * time.Second)
	b.idle()
	b.pass(time.Second)
	b.expect(hello, "Passed: 2 at 00:10")
	s.say("Failed")
	b.Ask(hello, asks)
	b.pass(10 * time.Second)
	b.expect(hello, "Failed: 3 at 00:20")
}

// TestDesk_LosesNoResult: how many evaluations failed in a row is counted by the rollout, which
// may be slower than an interval.
func TestDesk_LosesNoResult(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	asks := []gates.Measure{s.ask("smoke")}
	b.Ask(hello, asks)
	b.await()
	b.Ask(hello, asks) // of a turn that began before the result
	b.pass(time.Hour)
	b.idle()
	if got := b.Results(hello)[0].Verdict.Reason; got != "1" {
		t.Errorf("result %s is the first that the rollout sees", got)
	}
	b.idle()
	b.Ask(hello, asks)
	b.expect(hello, "Passed: 2 at 00:00")
}

// TestDesk_AskingDuringAMeasurementLosesNoResult: that turn of the rollout cannot have its result.
func TestDesk_AskingDuringAMeasurementLosesNoResult(t *testing.T) {
	begun, answered := make(chan struct{}), make(chan struct{})
	b, s := newBench(t), newService(t, func(*http.Request) {
		select {
		case begun <- struct{}{}:
			<-answered
		case <-answered:
		}
	})
	asks := []gates.Measure{s.ask("smoke")}
	b.Ask(hello, asks)
	<-begun
	b.Ask(hello, asks)
	close(answered)
	b.await()
	b.pass(time.Hour)
	b.idle()
	if got := b.Results(hello)[0].Verdict.Reason; got != "1" {
		t.Errorf("result %s is the first that the rollout sees", got)
	}
}

// TestDesk_AReaderBesideTheRolloutLosesNoResult: the turn of a dependent add-on reads the results
// while a turn of the rollout that read none is about to end.
func TestDesk_AReaderBesideTheRolloutLosesNoResult(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	asks := []gates.Measure{s.ask("smoke")}
	s.say("Failed")
	b.Ask(hello, asks)
	b.await()
	if got := len(b.Desk.Results(hello)); got != 1 {
		t.Fatalf("the dependent reads %d results", got)
	}
	b.Ask(hello, asks)
	s.say("Passed")
	b.pass(time.Hour)
	b.idle()
	if got := b.Results(hello)[0].Verdict; got.State != v1alpha1.GateFailed {
		t.Errorf("the first result that the rollout sees is %s: %s", got.State, got.Reason)
	}
}

func TestDesk_BacksOffAfterAnError(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	s.say("nonsense")
	asks := []gates.Measure{s.ask("smoke")}
	for i, wait := range []time.Duration{0, 1, 2, 4, 8, 10, 10} {
		b.Ask(hello, asks)
		if wait > 0 {
			b.pass(wait*time.Second - time.Millisecond)
			b.idle()
			b.pass(time.Millisecond)
		}
		b.await()
		if began := b.Results(hello)[0].Began; !began.Equal(b.clock.Now()) {
			t.Fatalf("error %d began at %s, want %s", i+1, began, b.clock.Now())
		}
	}
	s.say("Passed")
	b.Ask(hello, asks)
	b.pass(10 * time.Second)
	b.expect(hello, "Passed: 8 at 00:45")
	s.say("nonsense")
	b.Ask(hello, asks)
	b.pass(10 * time.Second)
	b.await()
	b.Results(hello)
	b.Ask(hello, asks)
	b.pass(time.Second)
	if b.await(); !b.Results(hello)[0].Began.Equal(b.clock.Now()) {
		t.Error("the backoff did not start anew")
	}
}

func TestDesk_OneThatHangsDelaysNoOther(t *testing.T) {
	b, hangs, s := newBench(t), newService(t, hanging), newService(t, atOnceAnswered)
	var asks []gates.Measure
	for i := range 3 * atOnce {
		asks = append(asks, hangs.ask("gate-"+strconv.Itoa(i)))
	}
	b.Ask(hello, asks)
	for hangs.asked.Load() < atHost {
		time.Sleep(time.Millisecond) //nolint:forbidigo // until its share of the measurements hangs
	}
	b.Ask(other, []gates.Measure{s.ask("smoke")})
	b.expect(other, "Passed: 1 at 00:00")
	if n := hangs.asked.Load(); n != atHost {
		t.Errorf("%d measurements at one host", n)
	}
	// What nothing asks for any more makes room, before its time is up.
	b.Forget(hello)
	b.Ask(hello, []gates.Measure{hangs.ask("gate-x")})
	for deadline := time.Now().Add(5 * time.Second); hangs.asked.Load() == atHost; {
		if time.Now().After(deadline) {
			t.Fatal("a measurement of a rollout that is gone goes on")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // until it is measured
	}
	b.idle() // nor has it a result
}

// TestDesk_ManyThatHangDelayNoOtherNamespace: as many servers hang as there are measurements at once.
func TestDesk_ManyThatHangDelayNoOtherNamespace(t *testing.T) {
	b, s, hung := newBench(t), newService(t, atOnceAnswered), atomic.Int32{}
	var asks []gates.Measure
	for range atOnce {
		hangs := newService(t, func(r *http.Request) {
			hung.Add(1)
			hanging(r)
		})
		asks = append(asks, hangs.ask(hangs.address))
	}
	hostile := types.NamespacedName{Namespace: "hostile", Name: "hello"}
	b.Ask(hostile, asks)
	for hung.Load() < atOnce/2 {
		time.Sleep(time.Millisecond) //nolint:forbidigo // until its share of the measurements hangs
	}
	b.Ask(other, []gates.Measure{s.ask("smoke")})
	b.expect(other, "Passed: 1 at 00:00")
	if n := len(b.Results(hostile)); n > 0 {
		t.Errorf("%d measurements that hang ended before", n)
	}
}

func TestDesk_DropsResultsOfWhatIsNotAsked(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	for name, change := range map[string]func(*gates.Measure){
		"Content": func(a *gates.Measure) { a.Question.Digest = "sha256:2" },
		"Attempt": func(a *gates.Measure) { a.Question.Attempt = 2 },
		"Stage":   func(a *gates.Measure) { a.Question.Stage = "fleet" },
		"Moment":  func(a *gates.Measure) { a.When = v1alpha1.GateBefore },
		"Gate":    func(a *gates.Measure) { a.Gate.Webhook.URL += "/other" },
	} {
		t.Run(name, func(t *testing.T) {
			b.Ask(hello, []gates.Measure{s.ask("smoke")})
			b.result(hello)
			changed := s.ask("smoke", change)
			b.Ask(hello, []gates.Measure{changed})
			b.result(hello) // at once
			r := b.Results(hello)[0]
			if r.Digest != changed.Question.Digest || r.Attempt != changed.Question.Attempt || r.Stage != changed.Question.Stage || r.When != changed.When {
				t.Errorf("got %+v", r)
			}
			b.Forget(hello)
			if got := b.Results(hello); got != nil {
				t.Errorf("got %v of a rollout that is gone", got)
			}
		})
	}
}

func TestDesk_AsksAgainWhenTheFirstClusterMoved(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	b.Ask(hello, []gates.Measure{s.ask("smoke", func(a *gates.Measure) { a.Question.Moved = nil })})
	b.expect(hello, "Passed: 1 at 00:00")
	asks := []gates.Measure{s.ask("smoke")}
	b.Ask(hello, asks)
	b.idle() // the status would take a second result of a second for the first one
	b.pass(time.Second)
	b.expect(hello, "Passed: 2 at 00:01")
	b.Ask(hello, asks)
	b.idle()
}

// TestDesk_MeasuresAtTheEndOfTheLastSoak: a stage that only waits for this measurement would else wait
// for the rest of an interval.
func TestDesk_MeasuresAtTheEndOfTheLastSoak(t *testing.T) {
	b, s := newBench(t), newService(t, atOnceAnswered)
	b.Ask(hello, []gates.Measure{s.ask("smoke")})
	b.expect(hello, "Passed: 1 at 00:00")
	soaked := []gates.Measure{s.ask("smoke", func(a *gates.Measure) { a.After = b.clock.Now().Add(4 * time.Second) })}
	b.Ask(hello, soaked)
	b.idle()
	b.pass(4 * time.Second)
	b.expect(hello, "Passed: 2 at 00:04")
	b.Ask(hello, soaked)
	b.pass(9 * time.Second)
	b.idle()
	b.pass(time.Second)
	b.expect(hello, "Passed: 3 at 00:14")
}

func TestDesk_Secrets(t *testing.T) {
	s := newService(t, atOnceAnswered)
	to, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name, namespace, host string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{v1alpha1.GateHostAnnotation: host}},
			Data:       map[string][]byte{"key": []byte("s3cret")},
		}
	}
	b := newBench(t, secret("mine", "fleet", to.Host), secret("elsewhere", "fleet", "example.com"), secret("theirs", "other", to.Host))
	for name, want := range map[string]string{
		"mine":      "Passed: 1 at 00:00",
		"elsewhere": fmt.Sprintf("Error: gates.during[smoke].webhook.secretRef: Secret fleet/elsewhere is not for %s: it must have the annotation addonflow.io/gate-host: %[1]s at 00:00", to.Host),
		"theirs":    "Error: gates.during[smoke].webhook.secretRef: Secret fleet/theirs does not exist at 00:00",
	} {
		b.Ask(hello, []gates.Measure{s.ask("smoke", func(a *gates.Measure) {
			a.Gate.Webhook.SecretRef = &meta.LocalObjectReference{Name: name}
		})})
		b.expect(hello, want)
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
