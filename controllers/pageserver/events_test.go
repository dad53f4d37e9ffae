package pageserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// pipes is a listener in memory, whose connections are in the bubble of a test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// TestEvents_GoOnAfterATimeWithoutNews: with HTTP/2, a deadline that passes ends a stream although nothing is being written.
func TestEvents_GoOnAfterATimeWithoutNews(t *testing.T) {
	certificate := issue(t, t.TempDir(), "server").pair
	for protocol, version2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello"}}
				w, listener, ended := withoutHub(t, ro), pipes(make(chan net.Conn)), make(chan error)
				ctx, cancel := context.WithCancel(t.Context())
				secure := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
				go func() { ended <- Serve(ctx, secure, w.pages(w.hub, rights{rolloutsResource})) }()
				transport := &http.Transport{DialContext: listener.dial, ForceAttemptHTTP2: version2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/events/rollouts/team/hello", http.NoBody)
				w.must(err)
				answer, err := transport.RoundTrip(r)
				w.must(err)
				if answer.Proto != protocol {
					t.Errorf("answered with %s", answer.Proto)
				}
				lines := bufio.NewScanner(answer.Body)
				next := func() string {
					for lines.Scan() {
						if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
							return text
						}
					}
					t.Errorf("the events ended: %v", lines.Err())
					return ""
				}
				before := next()
				time.AfterFunc(time.Minute, func() {
					w.must(w.hub.Get(ctx, client.ObjectKeyFromObject(ro), ro))
					ro.Annotations = map[string]string{"a": "b"}
					w.must(w.hub.Update(ctx, ro))
				})
				if next() == before {
					t.Error("the same version after a change")
				}
				_ = answer.Body.Close()
				synctest.Wait()
				transport.CloseIdleConnections()
				cancel()
				w.must(<-ended)
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble: every connection has ended
			})
		})
	}
}

// byName is a door for everybody, by the name in a header.
type byName struct{ rights }

func (d byName) Enter(r *http.Request) (*Viewer, error) {
	viewer, err := d.rights.Enter(r)
	viewer.Name = r.Header.Get("Viewer")
	return viewer, err
}

// TestEvents_OfOneViewerLeavePlacesToOthers: a browser whose stream is refused does not try again.
func TestEvents_OfOneViewerLeavePlacesToOthers(t *testing.T) {
	w := withoutHub(t, &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello"}})
	server := httptest.NewServer(w.pages(w.hub, byName{rights{rolloutsResource}}))
	t.Cleanup(server.Close)
	open := func(viewer string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events/rollouts/team/hello", http.NoBody)
		w.must(err)
		r.Header.Set("Viewer", viewer)
		answer, err := server.Client().Do(r)
		w.must(err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.StatusCode
	}
	for open("mallory") == http.StatusOK {
	}
	if code := open("jane"); code != http.StatusOK {
		t.Errorf("another viewer: %d", code)
	}
}

// TestPages_OfOneViewerLeaveTheProcessorToOthers: every page costs the operator time.
func TestPages_OfOneViewerLeaveTheProcessorToOthers(t *testing.T) {
	now := time.Unix(1000, 0)
	pages, err := New(Options{Hub: withoutHub(t).hub, Door: byName{rights{rolloutsResource}}, Base: "/"})
	if err != nil {
		t.Fatal(err)
	}
	pages.asked.now = func() time.Time { return now }
	look := func(viewer string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Viewer", viewer)
		w := httptest.NewRecorder()
		pages.Handler().ServeHTTP(w, r)
		return w.Code
	}
	for range pagesAtOnce {
		if code := look("mallory"); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	if code := look("mallory"); code != http.StatusTooManyRequests {
		t.Errorf("one page more: %d", code)
	}
	if code := look("jane"); code != http.StatusOK {
		t.Errorf("another viewer: %d", code)
	}
	now = now.Add(time.Second / pagesPerSecond)
	if code := look("mallory"); code != http.StatusOK {
		t.Errorf("later: %d", code)
	}
}
