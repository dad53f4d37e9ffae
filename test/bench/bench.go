package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

const (
	// The floors a result is compared with.
	floorOfInstall = "install"
	floorOfUpgrade = "upgrade"
	// profiled is the step of which a profile can be stored.
	profiled = "upgrade"
	// allAtOnce moves every cluster at once.
	allAtOnce = "  strategy:\n    type: All"
)

// step is one content that the fleet moves to, with the pace of its rollout.
type step struct{ name, floor, tag, pace string }

// allSteps are the measured steps, in order.
func allSteps() []step {
	return []step{
		{"install", floorOfInstall, "v1", allAtOnce},
		{profiled, floorOfUpgrade, "v2", allAtOnce},
		{"revert", floorOfUpgrade, "v1", allAtOnce},
		{"upgrade, Progressive 25%", floorOfUpgrade, "v3", "  strategy:\n    type: Progressive\n    progressive:\n      maxConcurrency: 25%"},
	}
}

// bench is one run.
type bench struct {
	steps []step
	world *demo.World
	names []string
	addOn *watcher
	// operator is the name that the kernel has for the operator's program.
	operator string
	// captured are the objects AddonFlow left behind; the floor writes their bytes.
	captured []pair

	// hookAddress is where the operator receives webhooks, and pushed what they took.
	hookAddress string
	pushed      []time.Duration
	// pagesAddress is where the operator serves its pages, and page what the page of the rollout took.
	pagesAddress string
	page         pageLoad
	// pushes: they are measured.
	pushes bool
	// start starts the operator again.
	start func() error
	// restart is how long a new process takes to its first work, and what it takes in memory.
	restart restarted
	beats   *heartbeats
	// staged are the times of upgrades stage by stage.
	staged []time.Duration

	results []result
	rest    result
	// live is what the operator keeps on its heap at rest, in bytes.
	live     int64
	profiler *profiler
	// profile is the file for the profile of the upgrade, heap that for what the operator keeps at
	// rest; "" for none.
	profile, heap string
	floors        map[string]time.Duration
}

// result is one measurement of AddonFlow.
type result struct {
	name  string
	floor string // which floor it is compared with
	// moves are how many add-ons on how many clusters it moved, if that is not one on each.
	moves int
	// took is from the request to look at Git to the last add-on done.
	took     time.Duration
	requests counts
	cpu      cpuTimes
	memory   memory
	profiles profiles
	// planner is the planner's share of one core until the rollout said that it succeeded; 0 without a profile.
	planner float64
}

// newBench declares the add-on in Git and applies its source, with no operator yet.
func newBench(ctx context.Context, w *demo.World, names []string) (*bench, error) {
	source, err := w.Source()
	if err != nil {
		return nil, err
	}
	// Reconciles happen only on request.
	source.Spec.Interval = metav1.Duration{Duration: time.Hour}
	if err := declareHook(ctx, w.Client, source); err != nil {
		return nil, err
	}
	for _, obj := range []client.Object{w.ForgeSecret(), source} {
		if err := w.Client.Create(ctx, obj); err != nil {
			return nil, err
		}
	}
	watcher, err := watchAddOns(ctx, w.Hub.Config(), w.Client)
	if err != nil {
		return nil, err
	}
	return &bench{world: w, names: names, addOn: watcher, floors: map[string]time.Duration{}}, nil
}

// measureAll is what the operator is measured doing, in one go.
func (b *bench) measureAll(ctx context.Context) error {
	if err := b.idle(ctx); err != nil {
		return err
	}
	for _, step := range b.steps {
		r, err := b.measure(ctx, step.tag, step.pace)
		if err == nil && step.name == profiled && b.profile != "" {
			err = r.profiles.store(b.profile)
		}
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", step.name, err)
		}
		r.name, r.floor = step.name, step.floor
		b.results = append(b.results, r)
		fmt.Printf("  ✔ %-34s %4.1fs\n", step.name, r.took.Seconds())
	}
	if b.pushes {
		if err := b.fromPush(ctx); err != nil {
			return err
		}
	}
	var err error
	if b.rest, err = b.atRest(ctx, 20*time.Second); err != nil {
		return err
	}
	if err := b.kept(ctx); err != nil {
		return err
	}
	if err := b.views(ctx); err != nil {
		return fmt.Errorf("cannot measure the page of the rollout: %w", err)
	}
	if err := b.again(ctx); err != nil {
		return fmt.Errorf("cannot measure a restart: %w", err)
	}
	b.captured, err = capture(ctx, b.world.Client)
	return err
}

// idle waits until the operator has looked at the empty repository, so that its
// start is not part of any measurement.
func (b *bench) idle(ctx context.Context) error {
	if _, err := b.world.Repo.Commit("begin", map[string]string{"addons/README.md": "empty"}); err != nil {
		return err
	}
	_, err := b.reconcile(ctx)
	return err
}

// measure commits a content of hello and waits until its rollout has ended.
func (b *bench) measure(ctx context.Context, tag, pace string) (result, error) {
	tree, err := treeOf([]string{demo.AddOn}, tag, pace)
	if err != nil {
		return result{}, err
	}
	return b.rollOut(ctx, tag, tree, demo.AddOn)
}

// rollOut commits files and waits until the rollouts of the add-ons have ended on every cluster.
func (b *bench) rollOut(ctx context.Context, message string, tree map[string]string, addOns ...string) (result, error) {
	// Conditions have times in seconds: the next move must end in a later second.
	if err := pause(ctx, 1100*time.Millisecond); err != nil {
		return result{}, err
	}
	before, err := b.snapshot(ctx)
	if err != nil {
		return result{}, err
	}
	if _, err := b.world.Repo.Commit(message, tree); err != nil {
		return result{}, err
	}
	b.addOn.expect(b.names, addOns)
	stop := func() (profiles, error) { return nil, nil }
	if b.profile != "" { // the operator encodes its profiles, which takes some MiB of its memory
		stop = b.profiler.start(ctx)
	}
	begun, err := b.request(ctx)
	if err != nil {
		return result{}, err
	}
	done, err := b.addOn.wait(ctx)
	if err != nil {
		return result{}, err
	}
	if err := b.concluded(ctx, addOns...); err != nil {
		return result{}, err
	}
	concluded := time.Now()
	r, err := b.since(ctx, before)
	if err != nil {
		return result{}, err
	}
	r.took = done.Sub(begun)
	if r.profiles, err = stop(); err != nil {
		return result{}, err
	}
	if len(r.profiles) > 0 {
		r.planner = r.profiles.plannerCores(concluded)
	}
	return r, nil
}

// request sets the annotation that requests a reconcile, right after the push.
func (b *bench) request(ctx context.Context) (time.Time, error) {
	now := time.Now()
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.SourceName}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, now.Format(time.RFC3339Nano))
	return now, b.world.Client.Patch(ctx, source, client.RawPatch("application/merge-patch+json", patch))
}

// reconcile requests a reconcile and waits for its end.
func (b *bench) reconcile(ctx context.Context) (time.Time, error) {
	at, err := b.request(ctx)
	if err != nil {
		return at, err
	}
	return at, poll(ctx, func() (bool, error) {
		var s v1alpha1.AddOnSource
		err := b.world.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.SourceName}, &s)
		return s.Status.LastHandledReconcileAt == at.Format(time.RFC3339Nano), err
	})
}

// concluded waits until the rollouts of the add-ons as a whole have ended, and the forge has accepted their
// statuses.
func (b *bench) concluded(ctx context.Context, addOns ...string) error {
	for _, name := range addOns {
		err := poll(ctx, func() (bool, error) {
			var r v1alpha1.AddOnRollout
			if err := b.world.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: name}, &r); err != nil {
				return false, err
			}
			for _, mark := range r.Status.CommitStatuses {
				if mark.Accepted == nil || mark.Posting != nil || mark.Owed != nil {
					return false, nil
				}
			}
			return r.Status.Phase == v1alpha1.PhaseSucceeded && r.Spec.Target.Digest == r.Status.Target.Digest, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kept measures what the operator keeps at rest, and stores its profile if a file is named.
func (b *bench) kept(ctx context.Context) (err error) {
	if b.live, err = b.profiler.live(ctx); err != nil || b.heap == "" {
		return err
	}
	p, err := b.profiler.heap(ctx)
	if err != nil {
		return err
	}
	return profiles{p}.store(b.heap)
}

// atRest counts what nothing to do costs.
func (b *bench) atRest(ctx context.Context, d time.Duration) (result, error) {
	// What was learnt last is still being written.
	if err := pause(ctx, 3*time.Second); err != nil {
		return result{}, err
	}
	before, err := b.snapshot(ctx)
	if err != nil {
		return result{}, err
	}
	if err := pause(ctx, d); err != nil {
		return result{}, err
	}
	r, err := b.since(ctx, before)
	r.name, r.took = "at rest", d
	return r, err
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// poll checks four times a second; its requests are the bench's own, and not counted.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// config is the bench's own, without a limit.
func (b *bench) config() *rest.Config { return b.world.Hub.Config() }
