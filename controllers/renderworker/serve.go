package renderworker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"github.com/addonflow/addonflow/render/chart"
)

// Command is the argument that makes the binary a child, which calls Serve.
const Command = "render-worker"

// memoryVariable is the environment variable with the child's limit in bytes.
const memoryVariable = "ADDONFLOW_RENDER_MEMORY"

const (
	// watchEvery is how often the child checks its memory.
	watchEvery = 10 * time.Millisecond
	// exitLimit is the exit code of a child that reached a limit and reported it.
	exitLimit = 3
)

// limit is the limit that a child reached.
type limit string

const (
	limitMemory limit = "memory"
	limitCPU    limit = "cpu"
)

// worker is the child.
type worker struct {
	mu    sync.Mutex // of out
	out   io.Writer
	chart *chart.Chart
	wrong *chart.Error // why chart could not be loaded
}

// Serve answers the requests of a Pool until in ends. It ends the process when a limit is
// reached, so it needs a process of its own.
func Serve(in io.Reader, out io.Writer) error {
	w := &worker{out: out}
	memory, err := strconv.ParseInt(os.Getenv(memoryVariable), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is started by addonflow itself", Command)
	}
	debug.SetMaxStack(int(memory / 4))
	debug.SetMemoryLimit(memory / 4 * 3)
	go w.watchMemory(uint64(memory) / 16 * 15) //nolint:gosec // positive
	watchCPU(func() { w.reached(limitCPU) })
	if err := w.answer(answer{}); err != nil {
		return err
	}
	frames := make(chan frame)
	go func() {
		defer close(frames)
		for {
			k, payload, err := readFrame(in)
			if err != nil {
				os.Exit(0) // the parent is gone, so the current rendering is not needed
			}
			frames <- frame{k, payload}
		}
	}()
	for f := range frames {
		if err := w.take(f); err != nil {
			return err
		}
	}
	return nil
}

type frame struct {
	kind    kind
	payload []byte
}

func (w *worker) take(f frame) error {
	switch f.kind {
	case kindLoad:
		var s chart.Source
		if err := json.Unmarshal(f.payload, &s); err != nil {
			return err
		}
		c, err := s.Load()
		if err != nil {
			w.wrong = inContent(err)
			return w.answer(answer{Error: w.wrong})
		}
		w.chart = c.Watched(func(file string) {
			_ = w.write(kindFile, []byte(file)) // if the parent is gone, the next read fails
		})
		return w.answer(answer{})
	case kindRequest:
		var r request
		if err := json.Unmarshal(f.payload, &r); err != nil {
			return err
		}
		return w.answer(w.carryOut(r))
	default:
		return fmt.Errorf("unknown frame %q", f.kind)
	}
}

func (w *worker) carryOut(r request) answer {
	if w.chart == nil {
		return answer{Error: w.wrong}
	}
	switch r.Operation {
	case admits:
		return answer{Version: w.chart.Admits(r.Versions)}
	case verify:
		return answer{Error: inContent(w.chart.Verify(*r.Input))}
	default:
		rendered, err := w.chart.Render(*r.Input)
		if err != nil {
			return answer{Error: inContent(err)}
		}
		manifests, err := encoded(rendered)
		return answer{Error: inContent(err), Manifests: manifests}
	}
}

// inContent returns what is wrong with the chart; nil for nil.
func inContent(err error) *chart.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*chart.Error](err); ok {
		return e
	}
	return &chart.Error{Message: err.Error()}
}

// answer sends the result and the CPU time used.
func (w *worker) answer(a answer) error {
	a.Used = int64(usedCPU())
	payload, err := json.Marshal(a)
	if err == nil && len(payload) > maxFrame {
		payload, err = json.Marshal(answer{Used: a.Used, Error: &chart.Error{Message: fmt.Sprintf("renders more than %d MiB", maxFrame>>20)}})
	}
	if err != nil {
		return err
	}
	return w.write(kindAnswer, payload)
}

func (w *worker) write(k kind, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return writeFrame(w.out, k, payload)
}

// reached reports which limit the child reached, and ends it.
func (w *worker) reached(l limit) {
	_ = w.write(kindLimit, []byte(l)) // if the parent is gone, the write may fail
	os.Exit(exitLimit)
}

// watchMemory ends the process when it uses more than most bytes.
func (w *worker) watchMemory(most uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(samples)
		if total, released := samples[0].Value.Uint64(), samples[1].Value.Uint64(); total-min(released, total) > most {
			w.reached(limitMemory)
		}
	}
}

// seconds rounds up.
func seconds(d time.Duration) uint64 { return uint64(math.Ceil(d.Seconds())) }
