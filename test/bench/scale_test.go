package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// fleets have costs that grow with the number of clusters to the power of e.
func fleets(e float64) []figures {
	var all []figures
	for _, n := range []int{1000, 2000, 5000} {
		cost := math.Pow(float64(n), e)
		all = append(all, figures{
			Clusters: n, Heartbeat: time.Minute, Cores: 2, Memory: 16 << 30, Page: 300 * time.Millisecond, PageSize: 40 << 10, Live: int64(cost * 8000), Peak: 100<<20 + int64(n)*10_000,
			Steps: []stepFigures{{Name: profiled, Requests: 3 * cost, Operator: time.Duration(cost * 5e6), Server: time.Duration(cost * 40e6), Etcd: time.Duration(cost * 3e6)}},
		})
	}
	return all
}

func TestScale_RefusesSteepGrowth(t *testing.T) {
	for _, tc := range []struct {
		exponent float64
		refused  bool
	}{{1, false}, {1.04, false}, {1.06, true}, {2, true}} {
		all := fleets(tc.exponent)
		if got := exponent(all, costs()[0].of); math.Abs(got-tc.exponent) > 0.005 {
			t.Errorf("exponent %v is fitted as %v", tc.exponent, got)
		}
		if err := steep(all); (err != nil) != tc.refused {
			t.Errorf("exponent %v: %v", tc.exponent, err)
		}
	}
}

func TestScale_WritesWhatWasMeasured(t *testing.T) {
	text, err := scaleText(fleets(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2000 | upgrade | 5.0 | 40.0 | 3.0 | 3.00 | 0 |",
		"| CPU time of the operator | 1.00 | ✔ |",
		"The peak is about 100 MiB and 10.0 KB for each cluster.",
		"| 1000 | 7.6 MiB | 109 MiB | 0 MiB | 71 MiB | ✗ |",
		"| 2000 | 300ms | ✔ | 40 KiB | ✔ |",
		"| CPU time of API server and etcd for one upgrade | 4300 s; 1.2 cores if it is to take an hour |",
		"| heartbeats | 1667 writes a second |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if _, err := scaleText(fleets(1)[:1]); err == nil {
		t.Error("one size shows growth")
	}
}

func TestScale_ReplacesOnlyTheFigures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scale.md")
	if err := os.WriteFile(file, []byte("before\n"+figuresBegin+"\n\n"+figuresEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, figures := range []string{"old\n", "new\n"} {
		if err := replaceFigures(file, figures); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if want := "before\n" + figuresBegin + "\n\nnew\n\n" + figuresEnd + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestScale_ContinuesAfterAnInterruption: only the same operator with the same heartbeat counts as measured.
func TestScale_ContinuesAfterAnInterruption(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "1000.json")
	if _, ok, err := stored(file); ok || err != nil {
		t.Fatalf("nothing is stored: %v, %v", ok, err)
	}
	want := fleets(1)[0]
	want.Operator = "sum"
	if err := want.store(file); err != nil {
		t.Fatal(err)
	}
	got, err := measured(t.Context(), settings{heartbeat: time.Minute, operator: "absent"}, 1000, "sum", file)
	if err != nil || got.Steps[0] != want.Steps[0] {
		t.Errorf("measured again: %v, %v", got, err)
	}
}

// TestHeapOfIsThatOfTheRuntime: what is kept at rest is the runtime's own figure.
func TestHeapOfIsThatOfTheRuntime(t *testing.T) {
	var text bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := heapOf(text.String()); err != nil || n < 1<<16 || n > 1<<30 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := heapOf("heap profile: 1: 2 [3: 4] @ heap/1048576\n"); err == nil {
		t.Error("a profile without the size of the heap was read")
	}
}
