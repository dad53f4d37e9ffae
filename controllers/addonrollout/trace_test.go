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
	t     *testing.T
	lines bytes.Buffer
	// due is the last plan if it is not stored yet, stored the ledger that the trace has last.
	due    *Planning
	stored v1alpha1.Ledger
}

func newTrace(t *testing.T) *trace {
	t.Helper()
	tr := &trace{t: t}
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
		case !ok || equality.Semantic.DeepEqual(ro.Status.Ledger, tr.stored):
			return nil
		case tr.due == nil || !equality.Semantic.DeepEqual(ro.Status.Ledger, tr.due.Ledger): // the test stored it
			tr.stored = ro.Status.Ledger
			return json.NewEncoder(&tr.lines).Encode(rollouttest.Step{Ledger: tr.stored, Foreign: true})
		}
		stored := *tr.due
		tr.due = nil
		return tr.write(stored)
	}
	return calls
}

func (tr *trace) write(p Planning) error {
	tr.stored = p.Ledger
	return json.NewEncoder(&tr.lines).Encode(p)
}

// judge fails the test for each step that is not allowed, and leaves the trace to
// go run ./test/trace FILE.
func (tr *trace) judge() {
	file := ""
	_, err := rollouttest.CheckTrace(bytes.NewReader(tr.lines.Bytes()), func(line int, _ rollouttest.Step, verdict error) {
		if verdict == nil {
			return
		}
		if file == "" {
			file = tr.keep()
		}
		tr.t.Errorf("%s:%d: not allowed: %v", file, line, verdict)
	})
	if err != nil {
		tr.t.Error(err)
	}
}

// keep writes the trace to a file that is kept after the test.
func (tr *trace) keep() string {
	file, err := os.CreateTemp("", "addonflow-trace-*.jsonl")
	if err != nil {
		tr.t.Error(err)
		return "trace"
	}
	if _, err := file.Write(tr.lines.Bytes()); err != nil {
		tr.t.Error(err)
	}
	if err := file.Close(); err != nil {
		tr.t.Error(err)
	}
	return file.Name()
}
