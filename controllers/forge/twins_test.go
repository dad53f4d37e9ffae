package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	testforge "github.com/addonflow/addonflow/test/forge"
)

// byHand is the text of statuses that another client writes.
const byHand = "by hand"

// twins are two operators without leader election, the object on the API server whose status they write in turn, and a
// forge whose requests take time. The time is that of a bubble.
type twins struct {
	t      *testing.T
	random *rand.Rand
	forge  *testforge.Forge
	hub    client.Client
	source *v1alpha1.AddOnSource
	// versions are all statuses that the API server stored.
	versions []*v1alpha1.AddOnSourceStatus
	// wanted is what commits should say, at each of its changes.
	wanted    [][]commitstatus.Want
	operators []*operator
	// restored: the status came from a backup. handmade are the contexts in which another client wrote.
	restored bool
	handmade map[[2]string]bool
}

// operator is one process with its caches.
type operator struct {
	*twins
	desk  *Desk
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	stop  func()
	// seen and changes are how many versions and changes its caches have. frozen caches get no new ones.
	seen, changes int
	frozen        bool
	// next is when time makes something due.
	next time.Time
	// slow is how long its posts may take until they reach the forge, delay how long they take at least; refuse makes its
	// requests fail.
	slow   time.Duration
	delay  time.Duration
	refuse bool
	// unsure is until when it may not have noticed that a post of its own was late. If it ended before, no process would.
	unsure time.Time
	// gone is closed when the process ends.
	gone chan struct{}
}

func newTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	w := &twins{t: t, random: rand.New(rand.NewPCG(seed, 3)), handmade: map[[2]string]bool{}}
	w.forge = testforge.New("team/fleet")
	w.forge.SetClock(time.Now)
	w.source = &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "team", Generation: 1}}
	w.source.Spec.Interval = metav1.Duration{Duration: time.Minute}
	w.source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{
		Provider: "gitea", Address: "http://forge.example/team/fleet", SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"},
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(tokenSecret(goodWord)).Build()
	w.versions = []*v1alpha1.AddOnSourceStatus{{}}
	w.commit()
	for range 2 {
		o := &operator{twins: w}
		w.operators = append(w.operators, o)
		o.start()
	}
	t.Cleanup(func() {
		for _, o := range w.operators {
			o.stop()
		}
	})
	return w
}

// RoundTrip takes a request to the forge. A slow one arrives although its client has given up meanwhile, as long as its
// process lives.
func (o *operator) RoundTrip(r *http.Request) (*http.Response, error) {
	refused := o.refuse
	wait := time.Duration(0)
	if r.Method == http.MethodPost {
		wait = o.delay
	}
	if o.slow > 0 && r.Method == http.MethodPost {
		wait += time.Duration(o.random.Int64N(int64(o.slow)))
		o.unsure = time.Now().Add(wait + time.Minute)
	}
	gone, answer := o.gone, make(chan *http.Response, 1)
	body := ""
	if r.Body != nil {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(sent)
	}
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(strings.NewReader(body))
	go func() {
		select {
		case <-gone:
			return
		case <-time.After(wait):
		}
		if refused {
			answer <- nil
			return
		}
		recorder := httptest.NewRecorder()
		o.forge.ServeHTTP(recorder, again)
		answer <- recorder.Result()
	}()
	select {
	case response := <-answer:
		if response == nil {
			return nil, errors.New("connection refused")
		}
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// start begins a process without memory.
func (o *operator) start() {
	if o.stop != nil {
		o.stop()
	}
	o.desk = NewDesk(Options{Secrets: o.hub, Sources: o.hub, HTTP: &http.Client{Transport: o}, Now: time.Now})
	o.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	if err := o.desk.Outcomes(v1alpha1.AddOnSourceKind).Start(o.t.Context(), o.queue); err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.t.Context())
	stopped, gone, queue := make(chan struct{}), make(chan struct{}), o.queue
	desk := o.desk
	go func() { defer close(stopped); _ = desk.Start(ctx) }()
	o.gone = gone
	o.stop = func() { cancel(); close(gone); queue.ShutDown(); <-stopped }
	o.seen, o.next, o.frozen, o.changes = 0, time.Time{}, false, 0
}

// look fills the caches.
func (o *operator) look() {
	if !o.frozen {
		o.seen, o.changes = len(o.versions), len(o.wanted)
	}
}

// reconcile is one reconcile; dies ends the process between the status write and the posts.
func (o *operator) reconcile(dies bool) {
	o.look()
	if (o.frozen || o.refuse) && time.Now().Before(o.unsure) {
		o.unsure = time.Now().Add(time.Minute)
	}
	for o.queue.Len() > 0 {
		request, _ := o.queue.Get()
		o.queue.Done(request)
	}
	o.next = time.Time{}
	if o.seen == 0 || o.changes == 0 {
		return
	}
	source := o.source.DeepCopy()
	o.versions[o.seen-1].DeepCopyInto(&source.Status)
	wants := o.wanted[o.changes-1]
	head := wants[0]
	book := o.desk.Open(Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: client.ObjectKeyFromObject(source)}, source, source.Status.CommitStatuses)
	book.Enter(wants...)
	book.Overtake(commitstatus.Succession{Live: []string{head.SHA}, Contents: []string{head.Content}, By: head.SHA, Whole: head.Context, Wants: wants})
	book.Address(o.t.Context(), source)
	source.Status.CommitStatuses = book.Stored()
	book.SetConditions(source)
	if !equality.Semantic.DeepEqual(o.versions[o.seen-1], &source.Status) {
		if o.seen != len(o.versions) { // the API server refuses the write
			o.next = time.Now().Add(time.Second)
			return
		}
		o.versions = append(o.versions, source.Status.DeepCopy())
		o.seen = len(o.versions)
	}
	if dies {
		return
	}
	if after := book.Deliver(); after > 0 {
		o.next = time.Now().Add(after)
	}
}

// due reports whether an event or time requests a reconcile.
func (o *operator) due() bool {
	return o.queue.Len() > 0 || o.seen != len(o.versions) || o.changes != len(o.wanted) || !o.next.IsZero() && !o.next.After(time.Now())
}

// contexts of every commit; the first is the whole.
func contexts() []string {
	return []string{"addonflow/team", "addonflow/team/hello", "addonflow/team/hello/canary"}
}

// say makes the newest commit say something.
func (w *twins) say(want commitstatus.Want) {
	var wants []commitstatus.Want
	for _, name := range contexts() {
		want.Context = name
		wants = append(wants, want)
	}
	w.wanted = append(w.wanted, wants)
}

func (w *twins) head() commitstatus.Want { return w.wanted[len(w.wanted)-1][0] }

// commit pushes a commit with content of its own.
func (w *twins) commit() {
	sha := fmt.Sprintf("%010d%030d", len(w.wanted), 0)
	w.say(commitstatus.Want{SHA: sha, State: commitstatus.Pending, Description: "0/100", Content: sha})
}

// move goes on with the newest commit.
func (w *twins) move() { w.say(testforge.Next(w.head(), w.random)) }

// happen is one random event. Kinds are what else than slow, refused and lost posts, late caches and restarts may happen.
func (w *twins) happen(kinds string) {
	o := w.operators[w.random.IntN(2)]
	switch w.random.IntN(20) {
	case 0, 1:
		w.commit()
	case 2, 3, 4, 5, 6:
		w.move()
	case 7, 8:
		o.frozen = !o.frozen
	case 9, 10, 11:
		o.slow = time.Duration(w.random.IntN(28)) * time.Second
	case 12:
		o.refuse = !o.refuse
	case 13:
		if time.Now().Before(o.unsure) {
			break
		}
		if w.random.IntN(2) == 0 {
			o.reconcile(true)
		}
		o.start()
	case 14:
		switch {
		case kinds == "restored":
			w.versions = append(w.versions, w.versions[w.random.IntN(len(w.versions))].DeepCopy())
			w.restored = true
		case kinds == "foreign" && !time.Now().Before(o.unsure):
			recent := w.wanted[max(0, len(w.wanted)-4):]
			w.postByHand(recent[w.random.IntN(len(recent))][0].SHA, contexts()[w.random.IntN(3)])
			o.start() // it reads what the forge shows
		}
	default:
		<-time.After(time.Duration(w.random.IntN(20)) * time.Second)
	}
}

// postByHand writes a status as another client does.
func (w *twins) postByHand(sha, name string) {
	w.handmade[[2]string{sha, name}] = true
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/api/v1/repos/team/fleet/statuses/"+sha, strings.NewReader(fmt.Sprintf(`{"state":"success","context":%q,"description":%q}`, name, byHand)))
	w.forge.ServeHTTP(httptest.NewRecorder(), r)
}

// rest runs what events and time request until nothing does, and reports whether it came to that.
func (w *twins) rest() bool {
	for _, o := range w.operators {
		o.slow, o.refuse, o.frozen = 0, false, false
		o.look()
		o.reconcile(false)
		synctest.Wait()
	}
	idle := 0
	for range 1500 {
		worked := false
		for _, o := range w.operators {
			if o.due() {
				o.reconcile(false)
				synctest.Wait()
				worked = true
			}
		}
		if worked {
			idle = 0
			<-time.After(100 * time.Millisecond)
			continue
		}
		if idle++; idle > 60 {
			return true
		}
		<-time.After(10 * time.Second)
	}
	return false
}

// shown is what the forge shows.
func (w *twins) shown(sha, name string) string {
	e, ok := w.forge.Latest(sha, name)
	if !ok {
		return ""
	}
	return e.State + ": " + e.Description
}

// judge compares the forge with the API server and with what the commits should say.
func (w *twins) judge() {
	t := w.t
	t.Helper()
	status := w.versions[len(w.versions)-1]
	reported := &v1alpha1.AddOnSource{Status: *status}
	condition := conditions.Get(reported, v1alpha1.CommitStatusReportedCondition)
	conflict := condition != nil && condition.Reason == v1alpha1.OwnershipConflictReason
	if conflict && !w.restored && len(w.handmade) == 0 {
		t.Errorf("the operators' own statuses are called foreign: %s", condition.Message)
	}
	wrong := 0
	for _, want := range w.wanted[len(w.wanted)-1] {
		if got := w.shown(want.SHA, want.Context); got != string(want.State)+": "+want.Description {
			wrong++
			if !conflict {
				t.Errorf("the newest commit shows %q in %s, want %s: %s; condition %+v", got, want.Context, want.State, want.Description, condition)
			}
		}
	}
	if wrong == 0 && !conflict && (condition == nil || condition.Status != metav1.ConditionTrue) {
		t.Errorf("everything is delivered, condition %+v", condition)
	}
	if w.restored || conflict {
		return // the marks of a commit that was overtaken may be lost
	}
	judged := map[string]bool{}
	for _, want := range slices.Concat(w.wanted...) {
		if got := w.shown(want.SHA, want.Context); strings.HasPrefix(got, "pending: ") && !judged[want.SHA+want.Context] {
			t.Errorf("commit %.10s shows %q in %s", want.SHA, got, want.Context)
		}
		judged[want.SHA+want.Context] = true
	}
}

// TestForeignStatusIsReportedByBothOperators: only the operator that was restarted has read it. It stays, the condition
// has its text, and the other operator does not take the condition back.
func TestForeignStatusIsReportedByBothOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newTwins(t, 0)
		want := w.head()
		want.State, want.Description = commitstatus.Failure, "halted"
		w.say(want)
		if !w.rest() {
			t.Fatal("the operators do not rest")
		}
		w.postByHand(want.SHA, contexts()[1])
		w.operators[0].start()
		for range 2 {
			if !w.rest() {
				t.Fatal("the operators do not rest")
			}
			condition := conditions.Get(&v1alpha1.AddOnSource{Status: *w.versions[len(w.versions)-1]}, v1alpha1.CommitStatusReportedCondition)
			if condition.Reason != v1alpha1.OwnershipConflictReason || !strings.Contains(condition.Message, byHand) || w.shown(want.SHA, contexts()[1]) != "success: "+byHand {
				t.Errorf("the forge shows %q, condition %+v", w.shown(want.SHA, contexts()[1]), condition)
			}
			w.operators[1].start() // a restart forgets nothing
		}
	})
}

// TestLatePostOfAnotherOperatorIsReplaced: the first operator gave its post up, and sees old caches. The second one posts
// the verdict, and then the first post arrives.
func TestLatePostOfAnotherOperatorIsReplaced(t *testing.T) {
	for name, next := range map[string]bool{"OfTheNewestCommit": false, "OfACommitThatWasReplaced": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Helper()
				w := newTwins(t, 0)
				late, other := w.operators[0], w.operators[1]
				late.delay = 19 * time.Second
				late.reconcile(false)
				other.reconcile(false)
				late.frozen = true
				if next {
					w.commit()
				}
				want := w.head()
				want.State, want.Description = commitstatus.Success, "100/100"
				w.say(want)
				for range 8 {
					<-time.After(3 * time.Second)
					for _, o := range []*operator{late, other} {
						o.reconcile(false)
						synctest.Wait()
					}
				}
				if e := w.forge.Statuses(w.wanted[0][0].SHA); e[len(e)-1].State != "pending" {
					t.Fatalf("the late post came before %+v", e)
				}
				late.delay = 0
				if !w.rest() {
					t.Fatal("the operators do not rest")
				}
				w.judge()
			})
		})
	}
}

// TestEveryHistoryOfTwoOperatorsEndsInAQuietState: late posts, old caches, lost answers, restarts, restored marks and
// statuses of other clients. At the end the forge shows what the newest commit should say, or the condition says why not,
// and no operator writes or asks anything more.
func TestEveryHistoryOfTwoOperatorsEndsInAQuietState(t *testing.T) {
	const histories = 100
	for _, kinds := range []string{"", "restored", "foreign"} {
		for seed := range uint64(histories) {
			t.Run(kinds+"/"+fmt.Sprint(seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					t.Helper()
					w := newTwins(t, seed)
					for range 60 {
						w.happen(kinds)
						for _, i := range w.random.Perm(2) {
							w.operators[i].reconcile(false)
							if w.random.IntN(3) > 0 {
								synctest.Wait()
							}
						}
					}
					for !w.head().State.Terminal() {
						w.move()
					}
					if !w.rest() {
						for _, v := range w.versions[len(w.versions)-2:] {
							t.Logf("%+v", v.Conditions)
						}
						t.Fatalf("after %d writes and %d requests, the operators do not rest", len(w.versions), w.forge.Requests())
					}
					writes, requests := len(w.versions), w.forge.Requests()
					for range 3 {
						<-time.After(time.Minute)
						for _, o := range w.operators {
							o.reconcile(false)
							synctest.Wait()
						}
					}
					if len(w.versions) != writes || w.forge.Requests() != requests {
						t.Errorf("at rest: %d writes, %d requests", len(w.versions)-writes, w.forge.Requests()-requests)
					}
					w.judge()
				})
			})
		}
	}
}
