package renderworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/addonflow/addonflow/render/chart"
)

// Limits bound one child.
type Limits struct {
	// Memory of the child, in bytes.
	Memory int64
	// CPU time of one rendering. Linux counts whole seconds.
	CPU time.Duration
	// Deadline of one rendering. It includes waiting for a processor and is much longer.
	Deadline time.Duration
}

// DefaultLimits are those of the operator and the command line.
func DefaultLimits() Limits {
	return Limits{Memory: 256 << 20, CPU: 10 * time.Second, Deadline: 2 * time.Minute}
}

// Options of a Pool.
type Options struct {
	Limits
	// Command starts a child; nil: this binary with the argument Command.
	Command []string
}

const (
	// idleAfter is how long a child without requests lives.
	idleAfter = 30 * time.Second
	// linger is how long a child that has just answered stays reserved for its own chart while
	// another one waits, because the next cluster usually follows at once.
	linger = 20 * time.Millisecond
	// turnFor is how long a chart may keep the child while another one waits.
	turnFor = 2 * time.Second
	// halfLife is how long half of the time counts for which an owner had the child.
	halfLife = time.Minute
)

// Pool renders charts in a child process, one at a time. It is safe for concurrent use. Close
// ends it.
//
// A chart may keep the child for turnFor at most, for its other clusters. Then the next rendering
// is of the namespace that used the child for the shortest time in the last minutes, and in it of the owner that did. So a
// chart that is slow on every cluster delays no other by more than one rendering.
type Pool struct {
	options Options
	// ctx ends the waits and the child.
	ctx   context.Context //nolint:containedctx // the life of the pool, not of a request
	close context.CancelCauseFunc

	mu sync.Mutex
	// busy: one rendering has its turn and uses the child.
	busy bool
	// turn is the owner and chart of the rendering, and began the time at which it began.
	turn  key
	began time.Time
	// namespaces and owners are how long each of them used the child in the last minutes: the times are
	// halved every halfLife. halved is when they were halved last.
	namespaces, owners map[string]time.Duration
	halved             time.Time
	// child is the last one that was started; nil if it has ended.
	child   *child
	waiting []*waiter
	idle    *time.Timer
}

// waiter is a rendering in the queue. turn is closed when its turn begins.
type waiter struct {
	key  key
	turn chan struct{}
}

// NewPool returns a Pool without a child.
func NewPool(o Options) *Pool {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	p := &Pool{options: o, namespaces: map[string]time.Duration{}, owners: map[string]time.Duration{}, halved: time.Now()}
	p.ctx, p.close = context.WithCancelCause(context.Background())
	return p
}

// For returns the engine for the charts of one owner, such as a source: namespace/name, or a name
// of no namespace. Owners share no child.
func (p *Pool) For(owner string) chart.Engine { return engine{pool: p, owner: owner} }

// Start closes the pool when the context ends. With it the pool is a Runnable of a controller
// manager.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close() //nolint:contextcheck // ctx has ended, but Close waits for the child
	return nil
}

// NeedLeaderElection is part of controller-runtime's LeaderElectionRunnable.
func (*Pool) NeedLeaderElection() bool { return false }

// Close ends the child and interrupts all renderings.
func (p *Pool) Close() {
	p.close(errClosed)
	_ = p.await(context.Background(), key{}) // waits for the end of the current rendering
	p.endChild()
}

var (
	errClosed = errors.New("the operator is stopping")
	// errQueue: a rendering got no turn before its deadline.
	errQueue = errors.New("too many other charts are being rendered")
)

// acquire waits for its turn, and returns a child for a chart. release or lost ends the turn.
func (p *Pool) acquire(k key, s *chart.Source) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.options.Deadline, errQueue)
	defer cancel()
	if err := p.await(ctx, k); err != nil {
		return nil, err
	}
	c := p.child
	if c != nil && c.key == k {
		return c, nil
	}
	if c != nil {
		c.end()
	}
	c, err := p.start(k, s)
	if err != nil {
		p.leave(nil)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child = c
	return c, nil
}

// await waits in the queue for the turn of a rendering.
func (p *Pool) await(ctx context.Context, k key) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := &waiter{key: k, turn: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.next()
	p.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return nil // its turn began meanwhile
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	return context.Cause(ctx)
}

// next begins the turn of a rendering of the namespace that used the child for the shortest time in
// the last minutes, and in it of the owner that did. While the child is reserved for its chart,
// only a rendering of that chart is next. The lock is held.
func (p *Pool) next() {
	if p.busy || len(p.waiting) == 0 {
		return
	}
	i := slices.Index(p.waiting, slices.MinFunc(p.waiting, p.byUse))
	if kept := p.child.kept(time.Now()); kept > 0 {
		i = slices.IndexFunc(p.waiting, func(w *waiter) bool { return w.key == p.child.key })
		if i < 0 {
			time.AfterFunc(kept, p.look)
			return
		}
	}
	p.begin(p.waiting[i].key)
	close(p.waiting[i].turn)
	p.waiting = slices.Delete(p.waiting, i, i+1)
}

// byUse compares how long the owners of two renderings had the child lately.
func (p *Pool) byUse(a, b *waiter) int {
	return cmp.Or(
		cmp.Compare(p.namespaces[a.key.namespace()], p.namespaces[b.key.namespace()]),
		cmp.Compare(p.owners[a.key.owner], p.owners[b.key.owner]),
	)
}

// begin begins a turn. The lock is held.
func (p *Pool) begin(k key) { p.busy, p.turn, p.began = true, k, time.Now() }

// charge counts the time of a turn that ends. The lock is held.
func (p *Pool) charge() {
	now := time.Now()
	if lives := now.Sub(p.halved) / halfLife; lives > 0 {
		p.halved = now
		for _, used := range []map[string]time.Duration{p.namespaces, p.owners} {
			maps.DeleteFunc(used, func(name string, _ time.Duration) bool {
				used[name] >>= lives
				return used[name] == 0
			})
		}
	}
	p.namespaces[p.turn.namespace()] += now.Sub(p.began)
	p.owners[p.turn.owner] += now.Sub(p.began)
}

// look calls next.
func (p *Pool) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next()
}

// kept is how long the child is still reserved for its own chart.
func (c *child) kept(now time.Time) time.Duration {
	if c == nil {
		return 0
	}
	return min(c.idle.Add(linger).Sub(now), c.since.Add(turnFor).Sub(now))
}

func (p *Pool) start(k key, s *chart.Source) (*child, error) {
	command := p.options.Command
	if command == nil {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cannot find this binary: %w", err)
		}
		command = []string{path, Command}
	}
	return start(p.ctx, command, p.options.Limits, k, s)
}

// leave ends a turn, and leaves a child for the next one, nil if it ended.
func (p *Pool) leave(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charge()
	p.busy, p.child = false, c
	p.next()
}

// release ends a turn. The child can be used again.
func (p *Pool) release(c *child) {
	c.idle = time.Now()
	p.leave(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = time.AfterFunc(idleAfter, p.endIdle)
		return
	}
	p.idle.Reset(idleAfter)
}

// lost ends a turn whose child ended.
func (p *Pool) lost(c *child) {
	c.end()
	p.leave(nil)
}

// endIdle ends a child without recent requests.
func (p *Pool) endIdle() {
	p.mu.Lock()
	if p.busy || len(p.waiting) > 0 {
		p.mu.Unlock()
		return
	}
	p.begin(key{})
	p.mu.Unlock()
	p.endChild()
}

// endChild ends the child and the turn.
func (p *Pool) endChild() {
	if p.child != nil {
		p.child.end()
	}
	p.leave(nil)
}

// attempts is how often a rendering is tried if its child does not start, or is killed.
const attempts = 2

// ask makes a child carry out a request.
func (p *Pool) ask(owner string, s *chart.Source, r request) (answer, error) {
	var interrupted error
	for range attempts {
		a, err := p.askOnce(key{owner, s.Sum}, s, r)
		if err == nil {
			if a.Error != nil {
				return a, a.Error
			}
			return a, nil
		}
		if b, ok := errors.AsType[*broken](err); ok && b.wrong != nil {
			return answer{}, b.wrong
		}
		interrupted = err
		if errors.Is(err, errClosed) || errors.Is(err, errDeadline) || errors.Is(err, errQueue) {
			break
		}
	}
	return answer{}, fmt.Errorf("%w: %w", chart.ErrInterrupted, interrupted)
}

func (p *Pool) askOnce(k key, s *chart.Source, r request) (answer, error) {
	c, err := p.acquire(k, s)
	if err != nil {
		return answer{}, err
	}
	a, err := c.ask(r)
	if err != nil {
		p.lost(c)
		return answer{}, err
	}
	p.release(c)
	return a, nil
}

// engine is a Pool for one owner.
type engine struct {
	pool  *Pool
	owner string
}

func (e engine) Admits(s *chart.Source, versions []string) (string, error) {
	a, err := e.pool.ask(e.owner, s, request{Operation: admits, Versions: versions})
	return a.Version, err
}

func (e engine) Verify(s *chart.Source, in chart.Input) error {
	_, err := e.pool.ask(e.owner, s, request{Operation: verify, Input: &in})
	return err
}

func (e engine) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	a, err := e.pool.ask(e.owner, s, request{Operation: render, Input: &in})
	if err != nil {
		return nil, err
	}
	manifests, err := decoded(a.Manifests)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chart.ErrInterrupted, err)
	}
	return manifests, nil
}
