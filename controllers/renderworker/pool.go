package renderworker

import (
	"context"
	"errors"
	"fmt"
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
	// Deadline of one rendering. It covers waiting for a processor and is far longer.
	Deadline time.Duration
}

// DefaultLimits are those of the operator and the command line.
func DefaultLimits() Limits {
	return Limits{Memory: 256 << 20, CPU: 10 * time.Second, Deadline: 2 * time.Minute}
}

// Options of a Pool.
type Options struct {
	Limits
	// Children is how many there are at most; 0 means one.
	Children int
	// Command starts a child; nil: this binary with the argument Command.
	Command []string
}

const (
	// idleAfter is how long a child waits for more of its chart.
	idleAfter = 30 * time.Second
	// linger is how long a child that has just answered is kept for its own chart when
	// another one waits: the next cluster follows at once.
	linger = 20 * time.Millisecond
	// turnFor is how long a chart may keep a child when another one waits.
	turnFor = 2 * time.Second
	// lookEvery is how often a chart that waits looks for a child.
	lookEvery = 5 * time.Millisecond
)

// Pool renders charts in child processes. It is safe for concurrent use. Close ends it.
type Pool struct {
	options Options

	mu     sync.Mutex
	closed bool
	// free are children that wait for work; busy counts the others.
	free  []*child
	all   map[*child]bool
	busy  int
	sweep *time.Timer
}

// NewPool returns a Pool without children.
func NewPool(o Options) *Pool {
	o.Children = max(o.Children, 1)
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	return &Pool{options: o, all: map[*child]bool{}}
}

// For returns the engine for the charts of one owner, such as a source. Owners share no
// child.
func (p *Pool) For(owner string) chart.Engine { return engine{pool: p, owner: owner} }

// Start closes the pool when the context ends. It makes of the pool a Runnable of a
// controller manager.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close()
	return nil
}

// NeedLeaderElection is part of controller-runtime's LeaderElectionRunnable.
func (*Pool) NeedLeaderElection() bool { return false }

// Close ends all children. What is being rendered is interrupted.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	var children []*child
	for c := range p.all {
		children = append(children, c)
		c.kill()
	}
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, c := range free {
		p.discard(c)
	}
	for _, c := range children {
		<-c.gone
	}
}

// errClosed says that the pool was closed.
var errClosed = errors.New("the operator is stopping")

// acquire returns a child for a chart. It waits until there may be one more.
func (p *Pool) acquire(k key, s *chart.Source) (*child, error) {
	for {
		c, discarded, mayStart, err := p.next(k)
		if discarded != nil {
			p.discard(discarded)
		}
		if c != nil || err != nil {
			return c, err
		}
		if mayStart {
			return p.started(k, s)
		}
		time.Sleep(lookEvery) //nolint:forbidigo // another chart has the child; waiting has no event to wait for
	}
}

// next returns a free child of the chart; or whether the caller may start one, which it
// then counts as busy, and a child to discard for that.
func (p *Pool) next(k key) (c, discarded *child, mayStart bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, false, errClosed
	}
	if i := slices.IndexFunc(p.free, func(c *child) bool { return c.key == k }); i >= 0 {
		c = p.free[i]
		p.free = slices.Delete(p.free, i, i+1)
		p.busy++
		return c, nil, false, nil
	}
	if p.busy+len(p.free) < p.options.Children {
		p.busy++
		return nil, nil, true, nil
	}
	now := time.Now()
	i := slices.IndexFunc(p.free, func(c *child) bool { return now.Sub(c.idle) > linger || now.Sub(c.since) > turnFor })
	if i < 0 {
		return nil, nil, false, nil
	}
	discarded = p.free[i]
	p.free = slices.Delete(p.free, i, i+1)
	p.busy++
	return nil, discarded, true, nil
}

// started starts a child, which the caller counts as busy.
func (p *Pool) started(k key, s *chart.Source) (*child, error) {
	c, err := p.startOne(k, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.busy--
		return nil, err
	}
	c.since = time.Now()
	p.all[c] = true
	if p.closed {
		c.kill()
	}
	return c, nil
}

func (p *Pool) startOne(k key, s *chart.Source) (*child, error) {
	command := p.options.Command
	if command == nil {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cannot find this binary: %w", err)
		}
		command = []string{path, Command}
	}
	return start(command, p.options.Limits, k, s)
}

// release takes a child back that can be used again.
func (p *Pool) release(c *child) {
	p.mu.Lock()
	p.busy--
	if p.closed {
		p.mu.Unlock()
		p.discard(c)
		return
	}
	defer p.mu.Unlock()
	c.idle = time.Now()
	p.free = append(p.free, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleAfter, p.endIdle)
		return
	}
	p.sweep.Reset(idleAfter)
}

// lost forgets a child that was busy and ended.
func (p *Pool) lost(c *child) {
	p.mu.Lock()
	p.busy--
	p.mu.Unlock()
	p.discard(c)
}

// endIdle ends the children that nothing was asked of for a while.
func (p *Pool) endIdle() {
	p.mu.Lock()
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, c := range free {
		p.discard(c)
	}
}

// discard ends a child that is neither free nor busy.
func (p *Pool) discard(c *child) {
	c.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
}

// attempts is how often a rendering is tried whose child does not start, or is killed.
const attempts = 2

// ask has a child carry out a request.
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
		if errors.Is(err, errClosed) || errors.Is(err, errDeadline) {
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

// Admits is part of chart.Engine.
func (e engine) Admits(s *chart.Source, versions []string) (string, error) {
	a, err := e.pool.ask(e.owner, s, request{Operation: admits, Versions: versions})
	return a.Version, err
}

// Verify is part of chart.Engine.
func (e engine) Verify(s *chart.Source, in chart.Input) error {
	_, err := e.pool.ask(e.owner, s, request{Operation: verify, Input: &in})
	return err
}

// Render is part of chart.Engine.
func (e engine) Render(s *chart.Source, in chart.Input) (chart.Output, error) {
	a, err := e.pool.ask(e.owner, s, request{Operation: render, Input: &in})
	if err != nil {
		return chart.Output{}, err
	}
	manifests, err := decoded(a.Manifests)
	if err != nil {
		return chart.Output{}, fmt.Errorf("%w: %w", chart.ErrInterrupted, err)
	}
	return chart.Output{Manifests: manifests}, nil
}
