package addonrollout

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// trace has every plan of a scene that took effect: it left the ledger as it was, or the
// status with its ledger was stored. When the test ends, rollouttest.History judges it.
type trace struct {
	t *testing.T
	// lines are those of each rollout, and stored the ledger that its trace has last.
	lines  map[string]*bytes.Buffer
	stored map[string]v1alpha1.Ledger
	// due is the last plan if it is not stored yet.
	due *Planning
}

func newTrace(t *testing.T) *trace {
	t.Helper()
	tr := &trace{t: t, lines: map[string]*bytes.Buffer{}, stored: map[string]v1alpha1.Ledger{}}
	t.Cleanup(tr.judge)
	return tr
}

// planned is Options.Trace.
func (tr *trace) planned(p Planning) error {
	if equality.Semantic.DeepEqual(p.Ledger, p.Input.Ledger) {
		tr.due = nil
		return tr.write(p)
	}
	tr.due = &p
	return nil
}

// storing adds a call that notes which plans are stored.
func (tr *trace) storing(calls interceptor.Funcs) interceptor.Funcs {
	update := calls.SubResourceUpdate
	calls.SubResourceUpdate = func(ctx context.Context, c client.Client, kind string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		write := func() error { return c.SubResource(kind).Update(ctx, o, opts...) }
		if update != nil {
			write = func() error { return update(ctx, c, kind, o, opts...) }
		}
		if err := write(); err != nil {
			return err
		}
		ro, ok := o.(*v1alpha1.AddOnRollout)
		switch {
		case !ok || equality.Semantic.DeepEqual(ro.Status.Ledger, tr.stored[ro.Name]):
			return nil
		case tr.due == nil || tr.due.Name != ro.Name || !equality.Semantic.DeepEqual(ro.Status.Ledger, tr.due.Ledger):
			if ctx.Value(byOperator{}) != nil {
				tr.t.Errorf("the operator stored a ledger of %s that it did not plan", ro.Name)
			}
			return tr.append(ro.Name, ro.Status.Ledger, rollouttest.Step{Ledger: ro.Status.Ledger, Foreign: true})
		}
		stored := *tr.due
		tr.due = nil
		return tr.write(stored)
	}
	return calls
}

func (tr *trace) write(p Planning) error { return tr.append(p.Name, p.Ledger, p) }

// append adds a step to the trace of a rollout.
func (tr *trace) append(name string, stored v1alpha1.Ledger, step any) error {
	if tr.lines[name] == nil {
		tr.lines[name] = &bytes.Buffer{}
	}
	tr.stored[name] = stored
	return json.NewEncoder(tr.lines[name]).Encode(step)
}

// judge fails the test for each step that is not allowed, and leaves the trace to
// go run ./test/trace FILE.
func (tr *trace) judge() {
	for _, lines := range tr.lines {
		file := ""
		_, err := rollouttest.CheckTrace(bytes.NewReader(lines.Bytes()), func(line int, _ rollouttest.Step, verdict error) {
			if verdict == nil {
				return
			}
			if file == "" {
				file = tr.keep(lines.Bytes())
			}
			tr.t.Errorf("%s:%d: not allowed: %v", file, line, verdict)
		})
		if err != nil {
			tr.t.Error(err)
		}
	}
}

// keep writes a trace to a file that is kept after the test.
func (tr *trace) keep(lines []byte) string {
	file, err := os.CreateTemp("", "addonflow-trace-*.jsonl")
	if err != nil {
		tr.t.Error(err)
		return "trace"
	}
	if _, err := file.Write(lines); err != nil {
		tr.t.Error(err)
	}
	if err := file.Close(); err != nil {
		tr.t.Error(err)
	}
	return file.Name()
}
