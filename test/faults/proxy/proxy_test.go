package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestKubernetesClassifiesWrites(t *testing.T) {
	for _, c := range []struct{ method, path, contentType, body, want string }{
		{http.MethodPost, "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks", "", `{"metadata":{"name":"a"}}`, "create manifestworks"},
		{http.MethodPut, "/apis/addonflow.io/v1alpha1/namespaces/default/addonrollouts/a/status", "", `{"status":{"phase":"Failed"}}`, "update addonrollouts/status Failed"},
		{http.MethodPatch, "/apis/addonflow.io/v1alpha1/namespaces/default/addonsources/a/status", "", `{"status":{"conditions":[{"type":"Ready","reason":"Progressing"}]}}`, "patch addonsources/status Progressing"},
		{http.MethodPatch, "/apis/addonflow.io/v1alpha1/namespaces/default/addonrevisions/a", "", `{"metadata":{"annotations":{"addonflow.io/quarantined":"{}"}}}`, "patch addonrevisions quarantined"},
		{http.MethodPatch, "/apis/a/v1/addons/a", "", `{"metadata":{"finalizers":null},"spec":{}}`, "patch addons finalizers,spec"},
		{http.MethodPatch, "/apis/a/v1/addons/a", "", `{"metadata":{"finalizers":[]}}`, "patch addons finalizers"},
		{http.MethodPatch, "/apis/a/v1/addons/a", "application/apply-patch+yaml", "", "apply addons"},
		{http.MethodDelete, "/api/v1/namespaces/default/secrets/a", "", "", "delete secrets"},
		{http.MethodPost, "/api/v1/namespaces", "", "", "create namespaces"},
		{http.MethodPost, "/apis/a/v1/addons?dryRun=All", "", "", ""},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", ""},
		{http.MethodGet, "/api/v1/namespaces", "", "", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		r.Header.Set("Content-Type", c.contentType)
		w, ok := Kubernetes(r, []byte(c.body))
		if ok != (c.want != "") || ok && w.Class() != c.want {
			t.Errorf("%s %s is %q, want %q", c.method, c.path, w.Class(), c.want)
		}
	}
}

// start starts a server that counts what reaches it, behind a proxy with a fault at the second
// write.
func start(t *testing.T, action Action, kill func()) (*Proxy, *atomic.Int32) {
	t.Helper()
	var reached atomic.Int32
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWatch(r) {
			reached.Add(1)
			return
		}
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%d}\n", i)
			_ = http.NewResponseController(w).Flush() // the proxy may be gone
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(upstream.Close)
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(Options{Upstream: to, Classify: Kubernetes, Kill: kill, Faults: []Fault{{Class: "create secrets", At: 2, Times: 1, Action: action}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, &reached
}

func TestFaultHitsTheWriteAtItsPosition(t *testing.T) {
	for _, c := range []struct {
		action  Action
		code    int // 0: no answer
		reached int32
	}{
		{KillBefore, 0, 2},
		{KillAfter, 0, 3},
		{Conflict, 409, 2},
		{Throttled, 429, 2},
		{Broken, 500, 2},
		{AppliedBroken, 500, 3},
		{Timeout, 504, 2},
		{AppliedTimeout, 504, 3},
		{Cut, 0, 2},
		{AppliedCut, 0, 3},
	} {
		t.Run(string(c.action), func(t *testing.T) {
			t.Parallel()
			killed := false
			p, reached := start(t, c.action, func() { killed = true })
			var codes []int
			for range 3 {
				answer, err := http.Post(p.URL()+"/api/v1/namespaces/default/secrets", "application/json", strings.NewReader("{}")) //nolint:noctx // this machine
				if err != nil {
					codes = append(codes, 0)
					continue
				}
				_ = answer.Body.Close() // it is empty
				codes = append(codes, answer.StatusCode)
			}
			if codes[0] != 200 || codes[1] != c.code || codes[2] != 200 {
				t.Errorf("the answers are %v, want 200, %d, 200", codes, c.code)
			}
			if reached.Load() != c.reached || killed != c.action.Kills() || len(p.Hits()) != 1 {
				t.Errorf("%d writes reached the server, want %d; killed %t, hits %v", reached.Load(), c.reached, killed, p.Hits())
			}
		})
	}
}

// A write that never reached the server is written again by the next process: it keeps its position.
func TestFaultsHitEachPositionOnce(t *testing.T) {
	p := &Proxy{seen: map[string]int{}, struck: make([]int, 4), options: Options{Faults: []Fault{
		{Class: "create secrets", At: 1, Times: 1, Action: KillBefore},
		{Class: "create secrets", At: 1, Times: 1, Action: KillAfter},
		{At: 3, Times: 1, Action: Conflict},
		{Class: "create secrets", At: 5, Times: 1, Action: KillBefore},
	}}}
	var got []Action
	for range 5 {
		got = append(got, p.strike(Write{Verb: "create", Resource: "secrets"}))
	}
	if want := []Action{KillBefore, KillAfter, "", Conflict, ""}; !slices.Equal(got, want) {
		t.Errorf("the writes meet %q, want %q", got, want)
	}
	if struck := p.Struck(); !slices.Equal(struck, []int{1, 1, 1, 0}) {
		t.Errorf("the faults struck %v times", struck)
	}
}

func TestRequestsAreLate(t *testing.T) {
	p, _ := start(t, Conflict, nil)
	for _, late := range []time.Duration{200 * time.Millisecond, 0} {
		p.Late(late)
		begun := time.Now()
		answer, err := http.Get(p.URL() + "/api/v1/secrets") //nolint:noctx // this machine
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // it is empty
		if took := time.Since(begun); took < late || late == 0 && took > 200*time.Millisecond {
			t.Errorf("the answer takes %s, want %s", took, late)
		}
	}
}

func TestWatchIsHeldBackAndEndsWith410(t *testing.T) {
	p, _ := start(t, Conflict, nil)
	answer, err := http.Get(p.URL() + "/api/v1/secrets?watch=true") //nolint:noctx // this machine
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	events := bufio.NewScanner(answer.Body)
	if !events.Scan() || !strings.Contains(events.Text(), "ADDED") {
		t.Fatalf("the first event is %q", events.Text())
	}
	p.Freeze("secrets")
	time.AfterFunc(100*time.Millisecond, func() { p.Gone("secrets") })
	last := ""
	begun := time.Now()
	for events.Scan() {
		last = events.Text()
	}
	if !strings.Contains(last, `"code":410`) {
		t.Errorf("the last event is %q, want 410", last)
	}
	if time.Since(begun) > 5*time.Second {
		t.Error("the watch does not end")
	}
}
