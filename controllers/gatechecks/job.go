package gatechecks

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
)

const (
	// atOnce is how many measurements run at the same time, and atHost how many of them at one host. When a namespace
	// begins one more, its running measurements count twice, so that no namespace takes all places.
	atOnce = 32
	atHost = 4
	// defaultInterval is used for a gate without an interval, shortestInterval for a gate with a shorter one.
	defaultInterval  = time.Minute
	shortestInterval = time.Second
	// firstBackoff is the wait after an Error. The wait doubles with each further Error in a row, up to the interval.
	firstBackoff = time.Second
	// secretWithin bounds reading a Secret.
	secretWithin = 10 * time.Second
)

// identity distinguishes the asks of a rollout. A result belongs to one identity.
type identity struct {
	stage, gate string
	when        v1alpha1.GateMoment
	digest      string
	attempt     int32
}

func identityOf(a gates.Measure) identity {
	return identity{a.Question.Stage, a.Gate.Name, a.When, a.Question.Digest, a.Question.Attempt}
}

// job is an ask with its measurements, one after the other.
//
//	asked --due--> running --> result --seen, asked again--> asked
type job struct {
	rollout types.NamespacedName
	host    string
	ask     gates.Measure
	// asked: the rollout asks for a measurement. It begins when it is due.
	asked bool
	due   time.Time
	// running cancels the measurement; nil if there is none.
	running context.CancelFunc
	// result is the newest one.
	result *gates.Measured
	// moved: the last measurement began after the first clusters moved.
	moved bool
	// errors counts the Errors in a row.
	errors int
}

// sameGate reports whether results of the job are results of the ask.
func (j *job) sameGate(ask gates.Measure) bool { return reflect.DeepEqual(j.ask.Gate, ask.Gate) }

// drop ends a job that the rollout no longer asks for.
func (j *job) drop() {
	if j.running != nil {
		j.running()
	}
}

// when returns the time of the next measurement. If the last measurement had no clusters and the first clusters moved
// since, the next one does not wait for the interval. Two measurements never begin in the same second: the status has
// their times in seconds and could not tell them apart.
func (j *job) when() time.Time {
	if j.result == nil {
		return j.due
	}
	next, soonest := j.due, j.result.Began.Add(shortestInterval)
	switch after := j.ask.After; {
	case !j.moved && len(j.ask.Question.Moved) > 0:
		return soonest
	case j.result.Began.Before(after) && after.Before(next):
		next = after
	}
	if next.Before(soonest) {
		return soonest
	}
	return next
}

// schedule wakes the scheduler.
func (d *Desk) schedule() {
	select {
	case d.changed <- struct{}{}:
	default: // it is awake
	}
}

// begin begins the measurements that are due, the longest due first, while there are places.
// It returns when the next one is due; zero: never.
func (d *Desk) begin(ctx context.Context, measuring *sync.WaitGroup) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, next := d.options.Clock.Now(), time.Time{}
	var due []*job
	for _, jobs := range d.rollouts {
		for _, j := range jobs {
			switch {
			case !j.asked || j.running != nil:
			case !j.when().After(now):
				due = append(due, j)
			case next.IsZero() || j.when().Before(next):
				next = j.when()
			}
		}
	}
	slices.SortFunc(due, func(a, b *job) int { return a.when().Compare(b.when()) })
	for _, j := range due {
		if d.running+d.of[j.rollout.Namespace] >= atOnce || d.at[j.host] == atHost {
			continue // the end of a measurement makes room
		}
		d.running++
		d.of[j.rollout.Namespace]++
		d.at[j.host]++
		within, cancel := context.WithCancel(ctx)
		ask := j.ask
		j.running, j.moved = cancel, len(ask.Question.Moved) > 0
		measuring.Go(func() {
			defer cancel()
			verdict := d.measure(within, j.rollout, ask)
			d.end(j, ask, now, verdict, within.Err())
		})
	}
	return next
}

// end records the result of a measurement, unless it was cancelled.
func (d *Desk) end(j *job, ask gates.Measure, began time.Time, verdict gates.Verdict, cancelled error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	if d.of[j.rollout.Namespace]--; d.of[j.rollout.Namespace] == 0 {
		delete(d.of, j.rollout.Namespace)
	}
	if d.at[j.host]--; d.at[j.host] == 0 {
		delete(d.at, j.host)
	}
	d.schedule()
	if cancelled != nil {
		return // nothing asks for it any more, or the process ends
	}
	id := identityOf(ask)
	j.asked, j.running = false, nil // also if it was asked again meanwhile: the rollout sees this result first
	j.result = &gates.Measured{
		Stage: id.stage, Gate: id.gate, When: id.when, Digest: id.digest, Attempt: id.attempt, Verdict: verdict, Began: began,
	}
	interval := intervalOf(ask.Gate)
	if j.due = began.Add(interval); verdict.State != v1alpha1.GateError {
		j.errors = 0
	} else {
		j.errors++
		j.due = d.options.Clock.Now().Add(backoff(j.errors, interval))
	}
	if d.queue != nil {
		d.queue.Add(reconcile.Request{NamespacedName: j.rollout})
	}
}

// intervalOf returns the time between two measurements of a gate.
func intervalOf(gate v1alpha1.Gate) time.Duration {
	if gate.Interval == nil {
		return defaultInterval
	}
	return max(gate.Interval.Duration, shortestInterval)
}

// backoff returns the wait after a number of Errors in a row.
func backoff(errors int, interval time.Duration) time.Duration {
	wait := firstBackoff
	for ; errors > 1 && wait < interval; errors-- {
		wait *= 2
	}
	return min(wait, interval)
}

// measure measures a gate once, with the Secret that it names.
func (d *Desk) measure(ctx context.Context, rollout types.NamespacedName, ask gates.Measure) gates.Verdict {
	var credentials *measure.Secret
	if _, name := measure.Address(ask.Gate); name != "" {
		ref := secret.Reference{
			Field:          fmt.Sprintf("gates.%s[%s].%s.secretRef", strings.ToLower(string(ask.When)), ask.Gate.Name, ask.Gate.Type),
			NamespacedName: types.NamespacedName{Namespace: rollout.Namespace, Name: name},
		}
		var err error
		if credentials, err = d.secret(ctx, ref); err != nil {
			return gates.Verdict{State: v1alpha1.GateError, Reason: err.Error()}
		}
	}
	return measure.Measure(ctx, ask.Gate, credentials, ask.Question, d.options.Measure)
}

// secret reads the Secret of a gate, which is in the rollout's namespace.
func (d *Desk) secret(ctx context.Context, ref secret.Reference) (*measure.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, secretWithin)
	defer cancel()
	stored := &corev1.Secret{}
	if err := d.options.Secrets.Get(ctx, ref.NamespacedName, stored); err != nil {
		return nil, ref.Unread(err)
	}
	return &measure.Secret{Reference: ref, Host: stored.Annotations[v1alpha1.GateHostAnnotation], Keys: stored.Data}, nil
}
