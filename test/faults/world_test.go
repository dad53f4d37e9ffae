package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/demo"
)

// TestAnOperatorThatEndsAtItsStartEndsTheRun: the run does not wait for its steps to time out, and it says why.
func TestAnOperatorThatEndsAtItsStartEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		leaders bool
		prints  string
		ends    bool
	}{
		"port in use":          {prints: "cannot listen: address already in use", ends: true},
		"port in use, leaders": {leaders: true, prints: "cannot listen: address already in use", ends: true},
		"lost lease, leaders":  {leaders: true, prints: leadershipLost},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			binary := filepath.Join(dir, "operator")
			script := "#!/bin/sh\necho started >> " + dir + "/starts\n[ $(wc -l < " + dir + "/starts) -lt 3 ] || exec sleep 60\necho '" + c.prints + "'\nexit 1\n"
			if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, crashed := context.WithCancelCause(t.Context())
			w := &world{
				World: &demo.World{Dir: dir}, crashed: crashed, leaders: c.leaders, programs: []string{binary},
				options: demo.OperatorOptions{Binary: binary, LogFile: filepath.Join(dir, "log")},
			}
			if err := w.startOperators(1); err != nil {
				t.Fatal(err)
			}
			defer w.end()
			if !c.ends {
				for !strings.Contains(read(t, filepath.Join(dir, "starts")), "started\nstarted\nstarted\n") {
					if err := pause(ctx, 10*time.Millisecond); err != nil {
						t.Fatal(err)
					}
				}
				return
			}
			<-ctx.Done()
			if err := context.Cause(ctx); !strings.Contains(err.Error(), c.prints) {
				t.Errorf("the run ends with %q, want what the operator printed", err)
			}
			if starts := read(t, filepath.Join(dir, "starts")); starts != "started\n" {
				t.Errorf("it was started again: %q", starts)
			}
		})
	}
}

// TestAnOperatorThatEndsWhileItIsStoppedFailsNoDisturbance: whether it may end is judged elsewhere.
func TestAnOperatorThatEndsWhileItIsStoppedFailsNoDisturbance(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "operator")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := &world{World: &demo.World{Dir: dir}, programs: []string{binary}, options: demo.OperatorOptions{Binary: binary, LogFile: filepath.Join(dir, "log")}}
	if err := w.startOperators(1); err != nil {
		t.Fatal(err)
	}
	defer w.end()
	time.AfterFunc(100*time.Millisecond, w.end)
	if err := w.freezeOperator(t.Context(), 0, time.Second); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
