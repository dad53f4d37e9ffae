package renderworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/addonflow/addonflow/render/chart"
)

// child is a process that serves one chart of one owner. One goroutine at a time uses it.
type child struct {
	key    key
	limits Limits
	cmd    *exec.Cmd
	in     *os.File // what it reads
	out    *os.File // what it writes
	stderr *tail
	gone   chan struct{} // closed when it ended and was waited for
	used   time.Duration // CPU time, as of its last answer
	file   string        // the file that it renders, as it last reported
	since  time.Time
	// idle is when it last answered.
	idle time.Time
	// late: it was killed at its deadline.
	late atomic.Bool
}

type key struct{ owner, sum string }

// namespace of the owner; an owner without one is alone in its own.
func (k key) namespace() string {
	namespace, _, _ := strings.Cut(k.owner, "/")
	return namespace
}

// broken says why a child ended or cannot be used. wrong is the error of the chart; nil: the chart
// is not the cause.
type broken struct {
	wrong *chart.Error
	err   error
}

// errDeadline: a rendering did not end before its deadline.
var errDeadline = errors.New("it took too long; the machine may be busy")

func (b *broken) Unwrap() error { return b.err }

func (b *broken) Error() string {
	if b.wrong != nil {
		return b.wrong.Error()
	}
	return b.err.Error()
}

// start starts a child, limits it and loads the chart. The child lives as long as the context.
func start(ctx context.Context, command []string, limits Limits, k key, s *chart.Source) (*child, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	c := &child{key: k, limits: limits, in: in, out: out, stderr: &tail{}, gone: make(chan struct{}), since: time.Now()}
	c.cmd = exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the operator's own binary, or one that a test names
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirIn, theirOut, c.stderr
	c.cmd.Env = []string{
		fmt.Sprintf("%s=%d", memoryVariable, limits.Memory), fmt.Sprintf("GOMEMLIMIT=%d", limits.Memory/4*3),
		"GOTRACEBACK=none", "TZ=UTC",
	}
	if runtime.GOOS == "windows" {
		c.cmd.Env = append(c.cmd.Env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"))
	}
	prepare(c.cmd)
	err = c.cmd.Start()
	if closed := errors.Join(theirIn.Close(), theirOut.Close()); err != nil || closed != nil {
		return nil, errors.Join(err, closed, in.Close(), out.Close())
	}
	go func() {
		defer close(c.gone)
		_ = c.cmd.Wait() // ProcessState says how it ended
	}()
	if err := c.begin(s); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// begin limits a child that was started, and makes it read the chart.
func (c *child) begin(s *chart.Source) error {
	if err := confine(c.cmd.Process.Pid, uint64(c.limits.Memory)); err != nil { //nolint:gosec // positive
		return &broken{err: err}
	}
	stop := c.deadline()
	defer stop()
	if _, err := c.read(); err != nil { // it reports that it is ready
		return err
	}
	if err := confineSpace(c.cmd.Process.Pid, uint64(c.limits.Memory)); err != nil { //nolint:gosec // positive
		return &broken{err: err}
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return &broken{err: err}
	}
	_, err = c.exchange(kindLoad, payload)
	return err
}

// ask makes the child carry out a request. After a broken error the child cannot be used any
// more.
func (c *child) ask(r request) (answer, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return answer{Error: &chart.Error{Message: "values: " + err.Error()}}, nil
	}
	stop := c.deadline()
	defer stop()
	return c.exchange(kindRequest, payload)
}

// exchange sends a frame and waits for the answer.
func (c *child) exchange(k kind, payload []byte) (answer, error) {
	c.file = ""
	if err := allowCPU(c.cmd.Process.Pid, seconds(c.used+c.limits.CPU)); err != nil {
		return answer{}, &broken{err: err}
	}
	if err := writeFrame(c.in, k, payload); err != nil {
		if errors.Is(err, errFrameTooLong) {
			return answer{}, &broken{wrong: &chart.Error{Message: fmt.Sprintf("takes more than %d MiB", maxFrame>>20)}}
		}
		return answer{}, c.ended("")
	}
	return c.read()
}

func (c *child) read() (answer, error) {
	for {
		k, payload, err := readFrame(c.out)
		switch {
		case err != nil:
			return answer{}, c.ended("")
		case k == kindFile:
			c.file = string(payload)
		case k == kindLimit:
			return answer{}, c.ended(limit(payload))
		case k == kindAnswer:
			var a answer
			if err := json.Unmarshal(payload, &a); err != nil {
				return answer{}, &broken{err: err}
			}
			c.used = time.Duration(a.Used)
			return a, nil
		}
	}
}

// deadline kills the child unless stop is called in time.
func (c *child) deadline() (stop func()) {
	timer := time.AfterFunc(c.limits.Deadline, func() {
		c.late.Store(true)
		c.kill()
	})
	return func() { timer.Stop() }
}

func (c *child) kill() { _ = c.cmd.Process.Kill() } // it may have ended

// end kills the child and waits for it. It may be called again.
func (c *child) end() {
	c.kill()
	<-c.gone
	_, _ = c.in.Close(), c.out.Close() // the other ends are closed
}

// ended returns why the child ended. said is the limit that it reported itself.
func (c *child) ended(said limit) error {
	c.end()
	if said == "" {
		said = c.stderr.limit()
	}
	switch state := c.cmd.ProcessState; {
	case said == limitMemory:
		return &broken{wrong: &chart.Error{
			File: c.file, Message: fmt.Sprintf("takes more than %d MiB of memory to render", c.limits.Memory>>20),
			Hint: "look for text that is repeated, for long lists, and for a template that includes itself",
		}}
	case said == limitCPU && state.UserTime()+state.SystemTime()-c.used >= c.limits.CPU/2:
		// Another process can send SIGXCPU, too. The bound is half of the limit, because the kernel compares the limit
		// with ticks, which are less exact than these times.
		return &broken{wrong: &chart.Error{
			File: c.file, Message: fmt.Sprintf("takes more than %s of CPU time to render", c.limits.CPU),
			Hint: "look for nested loops",
		}}
	}
	if c.late.Load() {
		return &broken{err: errDeadline}
	}
	return &broken{err: fmt.Errorf("the process that renders charts ended: %s", c.cmd.ProcessState)}
}

// tailSize bounds how much of a child's standard error is kept.
const tailSize = 8 << 10

// tail keeps the beginning of a child's standard error: the Go runtime first prints what is
// wrong.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), tailSize-len(t.text))]...)
	return len(p), nil
}

var _ io.Writer = (*tail)(nil)

// limit is the limit that the Go runtime ran into; it cannot recover from either.
func (t *tail) limit() limit {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.text)
	for _, words := range []string{"out of memory", "cannot allocate memory", "goroutine stack exceeds"} {
		if strings.Contains(text, words) {
			return limitMemory
		}
	}
	return ""
}
