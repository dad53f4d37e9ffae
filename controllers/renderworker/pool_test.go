package renderworker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/addonflow/addonflow/render/chart"
)

// TestMain makes the test binary a child if it has the same argument as the operator's.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// tightLimits end a rendering sooner than those of the operator.
func tightLimits() Limits {
	return Limits{Memory: DefaultLimits().Memory, CPU: time.Second, Deadline: 5 * time.Minute}
}

func newPool(tb testing.TB, o Options) *Pool {
	tb.Helper()
	p := NewPool(o)
	tb.Cleanup(func() {
		closed := make(chan struct{})
		go func() { p.Close(); close(closed) }()
		received(tb, closed)
	})
	return p
}

// received is the next value from a channel, or the zero value once it is closed. A test that would wait for ever fails
// here, and names its line.
func received[T any](tb testing.TB, from <-chan T) T {
	tb.Helper()
	var value T
	select {
	case value = <-from:
	case <-time.After(5 * time.Minute):
		tb.Fatal("nothing after five minutes")
	}
	return value
}

// await looks until a condition holds. A test that would wait for ever fails here.
func await(tb testing.TB, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			tb.Fatal("it does not hold after five minutes")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // another process, or a queue, cannot be awaited
	}
}

// chartOf is a chart with one template, and more files by path and content.
func chartOf(template string, more ...string) *chart.Source {
	files := []chart.File{
		{Path: "Chart.yaml", Content: []byte("apiVersion: v2\nname: hello\nversion: 1.0.0\n")},
		{Path: "templates/it.yaml", Content: []byte(template)},
	}
	for pair := range slices.Chunk(more, 2) {
		files = append(files, chart.File{Path: pair[0], Content: []byte(pair[1])})
	}
	return chart.NewSource(chart.HelmChart, files)
}

// settings is a ConfigMap with one entry.
func settings(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata:\n  it: " + value + "\n"
}

func inputFor(cluster string) chart.Input {
	return chart.Input{
		Release: "hello", Namespace: "agents", KubeVersion: "v1.33.2",
		Values:   map[string]any{"replicas": int64(3)},
		BuiltIns: map[string]any{"clusterName": cluster},
	}
}

// entryOf renders a chart of one ConfigMap and returns its entry.
func entryOf(tb testing.TB, e chart.Engine, s *chart.Source, cluster string) any {
	tb.Helper()
	out, err := e.Render(s, inputFor(cluster))
	if err != nil {
		tb.Fatal(err)
	}
	data, _ := out[0].Fields["data"].(map[string]any)
	return data["it"]
}

func (p *Pool) pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return nil
	}
	return []int{p.child.cmd.Process.Pid}
}

// TestChild_RendersWhatTheEngineRenders compares the child's result with rendering in process.
func TestChild_RendersWhatTheEngineRenders(t *testing.T) {
	e := newPool(t, Options{}).For("a")
	s := chartOf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\nspec: {replicas: {{ .Values.replicas }}, ratio: 1.5, big: 9007199254740993, huge: 1e30}\n")
	want, err := chart.InProcess{}.Render(s, inputFor("c1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Render(s, inputFor("c1"))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
	if err := e.Verify(s, inputFor("c1")); err != nil {
		t.Error(err)
	}
	if v, err := e.Admits(s, []string{"v1.33.0"}); v != "v1.33.0" || err != nil {
		t.Error(v, err)
	}
	wrong := chartOf(settings(`{{ required "set a" .Values.a }}`))
	_, err = e.Render(wrong, inputFor("c1"))
	if failed, ok := errors.AsType[*chart.Error](err); !ok || failed.File != "templates/it.yaml" || failed.Line != 5 || failed.Message != "set a" {
		t.Errorf("got %v", err)
	}
}

// TestChild_ServesOneChartOfOneOwner: a child serves several clusters of one chart.
func TestChild_ServesOneChartOfOneOwner(t *testing.T) {
	p := newPool(t, Options{})
	s := chartOf(settings("{{ .Values.clusterName }}"))
	pid := 0
	for i := range 5 {
		name := fmt.Sprintf("c%d", i)
		if got := entryOf(t, p.For("a"), s, name); got != name {
			t.Errorf("got %v, want %s", got, name)
		}
		pids := p.pids()
		if len(pids) != 1 || pid != 0 && pid != pids[0] {
			t.Fatalf("children %v, want the one that is there: %d", pids, pid)
		}
		pid = pids[0]
	}
	entryOf(t, p.For("b"), s, "c1")
	if pids := p.pids(); len(pids) != 1 || pids[0] == pid {
		t.Errorf("another owner is served by child %v, and the first one by %d", pids, pid)
	}
	pid = p.pids()[0]
	entryOf(t, p.For("b"), chartOf(settings("other")), "c1")
	if pids := p.pids(); len(pids) != 1 || pids[0] == pid {
		t.Errorf("another chart is served by child %v, and the first one by %d", pids, pid)
	}
}

// TestPool_ServesConcurrentRequests: one child serves all of them.
func TestPool_ServesConcurrentRequests(t *testing.T) {
	p := newPool(t, Options{})
	var all sync.WaitGroup
	for owner := range 3 {
		s := chartOf(settings(fmt.Sprintf("o%d-{{ .Values.clusterName }}", owner)))
		for range 2 {
			all.Go(func() {
				for i := range 20 {
					out, err := p.For(fmt.Sprint(owner)).Render(s, inputFor(fmt.Sprintf("c%d", i)))
					if err != nil {
						t.Error(err)
						return
					}
					data, _ := out[0].Fields["data"].(map[string]any)
					if want := fmt.Sprintf("o%d-c%d", owner, i); data["it"] != want {
						t.Errorf("got %v, want %s", data["it"], want)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestInterrupted_IsNotAnErrorOfTheContent covers each way in which a rendering ends from
// outside.
func TestInterrupted_IsNotAnErrorOfTheContent(t *testing.T) {
	long := chartOf(settings(`{{ range until 2000000000 }}{{ end }}x`))
	endless := Limits{Memory: 1 << 30, CPU: 10 * time.Minute, Deadline: 5 * time.Minute}
	interrupted := func(t *testing.T, err error) {
		t.Helper()
		if _, blamed := errors.AsType[*chart.Error](err); blamed || !errors.Is(err, chart.ErrInterrupted) {
			t.Errorf("got %v, want an interruption", err)
		}
	}
	t.Run("no start", func(t *testing.T) {
		_, err := newPool(t, Options{Command: []string{"/does/not/exist"}}).For("a").Render(long, inputFor("c1"))
		interrupted(t, err)
	})
	t.Run("no child", func(t *testing.T) {
		_, err := newPool(t, Options{Command: []string{os.Args[0], "-test.run=^$"}}).For("a").Render(long, inputFor("c1"))
		interrupted(t, err)
	})
	t.Run("deadline", func(t *testing.T) {
		limits := endless
		limits.Deadline = time.Second
		_, err := newPool(t, Options{Limits: limits}).For("a").Render(forever(), inputFor("c1"))
		interrupted(t, err)
	})
	t.Run("closed", func(t *testing.T) {
		p := newPool(t, Options{Limits: endless})
		done := make(chan error)
		go func() {
			_, err := p.For("a").Render(forever(), inputFor("c1"))
			done <- err
		}()
		awaitBusy(t, p)
		p.Close()
		interrupted(t, received(t, done))
	})
	t.Run("no turn", func(t *testing.T) {
		p := newPool(t, Options{Limits: endless})
		free := turnOf(t, p, "a")
		p.options.Deadline = 200 * time.Millisecond
		_, err := p.For("b").Render(long, inputFor("c1"))
		interrupted(t, err)
		if n := len(p.waiting); n > 0 {
			t.Errorf("%d still wait", n)
		}
		free()
	})
	t.Run("closed before its turn", func(t *testing.T) {
		p := newPool(t, Options{Limits: endless})
		free := turnOf(t, p, "a")
		done := make(chan error)
		go func() {
			_, err := p.For("b").Render(long, inputFor("c1"))
			done <- err
		}()
		awaitWaiting(t, p, 1)
		closed := make(chan struct{})
		go func() { p.Close(); close(closed) }()
		interrupted(t, received(t, done))
		free()
		received(t, closed)
	})
	t.Run("killed twice", func(t *testing.T) {
		p := newPool(t, Options{Limits: endless})
		done := make(chan error)
		go func() {
			_, err := p.For("a").Render(forever(), inputFor("c1"))
			done <- err
		}()
		for range attempts {
			kill(awaitBusy(t, p))
		}
		interrupted(t, received(t, done))
	})
	t.Run("killed while it waits", func(t *testing.T) {
		p := newPool(t, Options{})
		s := chartOf(settings("x"))
		entryOf(t, p.For("a"), s, "c1")
		kill(p.child)
		if got := entryOf(t, p.For("a"), s, "c1"); got != "x" {
			t.Errorf("got %v", got)
		}
	})
}

// forever is a chart whose rendering never ends.
func forever() *chart.Source {
	return chartOf(settings(`{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`))
}

// awaitBusy waits until a child works.
func awaitBusy(t *testing.T, p *Pool) *child {
	t.Helper()
	var worker *child
	await(t, func() bool {
		p.mu.Lock()
		c, busy := p.child, p.busy
		p.mu.Unlock()
		if c == nil || !busy {
			return false
		}
		select {
		case <-c.gone:
			return false
		default:
			worker = c
			return true
		}
	})
	return worker
}

// awaitWaiting waits until n renderings wait for their turn.
func awaitWaiting(t *testing.T, p *Pool, n int) {
	t.Helper()
	await(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiting) == n
	})
}

// turnOf keeps the child for an owner until free is called.
func turnOf(t *testing.T, p *Pool, owner string) (free func()) {
	t.Helper()
	s := chartOf(settings("x"))
	c, err := p.acquire(key{owner, s.Sum}, s)
	if err != nil {
		t.Fatal(err)
	}
	return func() { p.release(c) }
}

// TestPool_AChartKeepsItsTurn: renderings within the turn of a chart come first. A chart with
// requests without a pause does not delay others further.
func TestPool_AChartKeepsItsTurn(t *testing.T) {
	for name, c := range map[string]struct {
		had   time.Duration
		first string
	}{
		"turn over":   {turnFor, "b"},
		"within turn": {0, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				p := newPool(t, Options{})
				free := turnOf(t, p, "a")
				served := make(chan string)
				for i, owner := range []string{"b", "a"} {
					go func() {
						end := turnOf(t, p, owner)
						served <- owner
						end()
					}()
					awaitWaiting(t, p, i+1)
				}
				p.child.since = time.Now().Add(-c.had)
				free()
				if first := received(t, served); first != c.first {
					t.Errorf("%s is served first, want %s", first, c.first)
				}
				received(t, served)
			}
		})
	}
}

// TestPool_ServesWhoUsedItLeast: renderings that wait already delay none of a namespace, or of an owner in the same
// namespace, that has used the child less.
func TestPool_ServesWhoUsedItLeast(t *testing.T) {
	p := newPool(t, Options{})
	free := turnOf(t, p, "greedy/a")
	served := make(chan string)
	for i, owner := range []string{"greedy/a", "greedy/a", "greedy/b", "modest/a"} {
		go func() {
			end := turnOf(t, p, owner)
			served <- owner
			end()
		}()
		awaitWaiting(t, p, i+1)
	}
	p.child.since = time.Now().Add(-turnFor)
	free()
	for _, want := range []string{"modest/a", "greedy/b", "greedy/a", "greedy/a"} {
		if next := received(t, served); next != want {
			t.Errorf("%s is served, want %s", next, want)
		}
	}
}

// TestPool_ForgetsUse: what an owner used long ago does not count.
func TestPool_ForgetsUse(t *testing.T) {
	p := newPool(t, Options{})
	turnOf(t, p, "fleet/a")()
	p.halved = time.Now().Add(-100 * halfLife)
	turnOf(t, p, "fleet/b")()
	if used, known := p.owners["fleet/a"]; known || p.namespaces["fleet"] != p.owners["fleet/b"] {
		t.Errorf("%s, of the namespace %s, want only %s", used, p.namespaces["fleet"], p.owners["fleet/b"])
	}
}

// kill kills a child from outside.
func kill(c *child) {
	c.kill()
	<-c.gone
}

// TestPool_EndsIdleChildren: another child is started for the next request.
func TestPool_EndsIdleChildren(t *testing.T) {
	p := newPool(t, Options{})
	s := chartOf(settings("x"))
	entryOf(t, p.For("a"), s, "c1")
	p.endIdle()
	if pids := p.pids(); len(pids) != 0 {
		t.Errorf("children %v are left", pids)
	}
	entryOf(t, p.For("a"), s, "c1")
}

// helmCreate is what `helm create hello` writes.
func helmCreate(tb testing.TB) *chart.Source {
	tb.Helper()
	return chart.NewSource(chart.HelmChart, created(tb))
}

func BenchmarkRender(b *testing.B) {
	e, s := newPool(b, Options{}).For("a"), helmCreate(b)
	for b.Loop() {
		if _, err := e.Render(s, inputFor("cluster-"+strings.Repeat("1", 5))); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzFrame: what a child writes is read up to the first error. A frame that is read is written as it was.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("a\x00\x00\x00\x02{}"))
	f.Add([]byte("x\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for rest := bytes.NewReader(text); ; {
			at := len(text) - rest.Len()
			k, payload, err := readFrame(rest)
			if err != nil {
				return
			}
			var written bytes.Buffer
			if err := writeFrame(&written, k, payload); err != nil || !bytes.HasPrefix(text[at:], written.Bytes()) {
				t.Fatalf("%q is written as %q, %v", text[at:], written.Bytes(), err)
			}
		}
	})
}

// FuzzAnswer: an answer of a child has every object with its file, or an error that names the file. What a child writes is
// read as it was; a number without a fraction is a whole one.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"used":7,"manifests":[{"file":"templates/a.yaml","fields":{"n":9007199254740993,"m":1.5,"s":"\u2028","l":[null,true,{}]}}]}`))
	f.Add([]byte(`{"error":{"File":"values.yaml","Line":3,"Message":"is wrong","Hint":"correct it"}}`))
	f.Add([]byte(`{"manifests":[{"file":"a","fields":[1]},{"file":"b","fields":null},{"file":"c"}]}`))
	f.Add([]byte(`{"manifests":[{"file":"a","fields":{"n":1e400}}]}`))
	f.Add([]byte(`{"manifests":[{"file":"a","fields":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a answer
		if json.Unmarshal(text, &a) != nil {
			return
		}
		manifests, err := decoded(a.Manifests)
		if err != nil {
			if !slices.ContainsFunc(a.Manifests, func(m manifest) bool {
				return strings.HasPrefix(err.Error(), "cannot decode an object of "+m.File+": ")
			}) {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		for i, m := range manifests {
			if m.File != a.Manifests[i].File || m.Fields == nil {
				t.Errorf("object %d of %q is %+v", i, a.Manifests[i].File, m)
			}
		}
		sent := func(manifests []chart.Manifest) []chart.Manifest {
			written, err := encoded(manifests)
			if err != nil {
				t.Fatal(err)
			}
			read, err := decoded(written)
			if err != nil {
				t.Fatal(err)
			}
			return read
		}
		once := sent(manifests)
		if diff := cmp.Diff(once, sent(once)); diff != "" {
			t.Errorf("read again:\n%s", diff)
		}
	})
}
