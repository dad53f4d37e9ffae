package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	runtimemetrics "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

const (
	testToken = "correct-horse-battery-staple"
	testPath  = "/hook/0123456789abcdef0123456789abcdef"
	testBody  = `{"ref":"refs/heads/main","after":"1111111111111111111111111111111111111111"}`
)

// world is a receiver with a hub that counts.
type world struct {
	t                        *testing.T
	receiver                 *Receiver
	hub                      client.Client
	patches, reads, failures atomic.Int32
	latency                  time.Duration // of a patch
	broken                   atomic.Bool   // patches fail
	fail                     func(context.Context) error
	logged                   *logs
}

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", UID: "one"}}
	source.Spec.Webhook = &v1alpha1.WebhookSpec{Type: kind, SecretRef: fluxmeta.LocalObjectReference{Name: "hook"}}
	source.Status.WebhookPath = testPath
	other := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "without"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook"}, Data: map[string][]byte{"token": []byte(testToken + "\n")}}
	w := &world{t: t, logged: &logs{}}
	w.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(source, other, secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, hub client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if w.broken.Load() {
				w.failures.Add(1)
				return w.fail(ctx)
			}
			if w.latency > 0 {
				select {
				case <-time.After(w.latency):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			err := hub.Patch(ctx, o, p, opts...)
			if err == nil {
				w.patches.Add(1)
			}
			return err
		},
		Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Secret); ok {
				w.reads.Add(1)
			}
			return hub.Get(ctx, key, o, opts...)
		},
	}).Build()
	var err error
	w.receiver, err = New(Options{
		Sources: w.hub, Live: w.hub, Client: w.hub,
		Log: funcr.New(w.logged.add, funcr.Options{}),
	}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.receiver.asker.stop)
	return w
}

// logs is what was logged, by requests that run at once.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// send sends a webhook and returns the code and body of the answer.
func (w *world) send(method, path, body string, header map[string]string) (int, string) {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	for key, value := range header {
		request.Header.Set(key, value)
	}
	answer := httptest.NewRecorder()
	w.receiver.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

// signed is the HMAC of a body.
func signed(token, body string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// proofs are headers as each forge documents them, for a token and a body. Gitea's are held to a real server by
// test/gitea.
func proofs(token, body string) map[string]map[string]string {
	basic := &http.Request{Header: http.Header{}}
	basic.SetBasicAuth("azure", token)
	return map[string]map[string]string{
		"github":          {"X-Hub-Signature-256": "sha256=" + signed(token, body)},
		"gitea":           {"X-Gitea-Signature": signed(token, body)},
		"forgejo":         {"X-Forgejo-Signature": signed(token, body)},
		"gitlab":          {"X-Gitlab-Token": token},
		"bitbucket":       {"X-Hub-Signature": "sha256=" + signed(token, body)},
		"bitbucketserver": {"X-Hub-Signature": "sha256=" + signed(token, body)},
		"azuredevops":     {"Authorization": basic.Header.Get("Authorization")},
		"generic-hmac":    {"X-Signature": "sha256=" + signed(token, body)},
	}
}

func (w *world) requestedAt() string {
	w.t.Helper()
	var source v1alpha1.AddOnSource
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, &source); err != nil {
		w.t.Fatal(err)
	}
	return source.Annotations[fluxmeta.ReconcileRequestAnnotation]
}

// TestWebhookOfEveryForgeMakesTheOperatorLook: with its own proof. With that of another body or token, without one, and
// with that of other forges it is refused, and nothing is written.
func TestWebhookOfEveryForgeMakesTheOperatorLook(t *testing.T) {
	for kind := range commitstatus.Webhooks() {
		proof := proofs(testToken, testBody)[kind]
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if proof == nil {
					t.Fatalf("proofs has no row of %s", kind)
				}
				w := newWorld(t, kind)
				refused := []map[string]string{{}, proofs("other-token", testBody)[kind]}
				if len(commitstatus.Webhooks()[kind].Signed) > 0 {
					refused = append(refused, proofs(testToken, testBody+" ")[kind])
				}
				for other, foreign := range proofs(testToken, testBody) {
					if !cmp.Equal(foreign, proof) && (kind != "forgejo" || other != "gitea") {
						refused = append(refused, foreign)
					}
				}
				for _, header := range refused {
					if code, _ := w.send(http.MethodPost, testPath, testBody, header); code != http.StatusUnauthorized {
						t.Errorf("%v: answered %d", header, code)
					}
				}
				<-time.After(2 * pause)
				if w.patches.Load() > 0 {
					t.Errorf("%d patches for refused webhooks", w.patches.Load())
				}
				if code, _ := w.send(http.MethodPost, testPath, testBody, proof); code != http.StatusAccepted {
					t.Fatalf("answered %d", code)
				}
				synctest.Wait()
				if got := w.requestedAt(); w.patches.Load() != 1 || got != time.Now().UTC().Format(time.RFC3339Nano) {
					t.Errorf("%d patches, requested at %q", w.patches.Load(), got)
				}
				if strings.Contains(w.logged.String(), testToken) || strings.Contains(w.logged.String(), testPath) {
					t.Errorf("the log has the token or the path: %s", w.logged)
				}
			})
		})
	}
}

// TestFloodOfWebhooksIsOneLookASecond: a replay is accepted, and is part of the next look.
func TestFloodOfWebhooksIsOneLookASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "github")
		proof := proofs(testToken, testBody)["github"]
		for range 1000 {
			if code, _ := w.send(http.MethodPost, testPath, testBody, proof); code != http.StatusAccepted {
				t.Fatalf("answered %d", code)
			}
			<-time.After(5 * time.Millisecond) // five seconds in all
		}
		<-time.After(2 * pause)
		if n := w.patches.Load(); n < 5 || n > 6 {
			t.Errorf("%d looks in five seconds", n)
		}
		if n := w.reads.Load(); n > 2 {
			t.Errorf("the Secret was read %d times", n)
		}
	})
}

// TestSecretThatCannotBeReadIsReadNoMoreOften: the webhooks of a source whose Secret is missing cause no flood of requests
// to the hub, for which the webhooks of other sources would wait.
func TestSecretThatCannotBeReadIsReadNoMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook"}}
		if err := w.hub.Delete(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		proof := proofs(testToken, testBody)["gitlab"]
		for range 1000 {
			if code, _ := w.send(http.MethodPost, testPath, testBody, proof); code != http.StatusInternalServerError {
				t.Fatalf("answered %d", code)
			}
			<-time.After(5 * time.Millisecond) // five seconds in all
		}
		if n := w.reads.Load(); n > 2 {
			t.Errorf("the Secret was read %d times", n)
		}
		if want := "spec.webhook.secretRef: Secret team/hook does not exist"; !strings.Contains(w.logged.String(), want) {
			t.Errorf("the log does not have %q: %.300s", want, w.logged.String())
		}
		stored = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook"}, Data: map[string][]byte{"token": []byte(testToken)}}
		if err := w.hub.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		<-time.After(secretFor)
		if code, _ := w.send(http.MethodPost, testPath, testBody, proof); code != http.StatusAccepted {
			t.Errorf("answered %d when the Secret is there", code)
		}
	})
}

// TestFloodOfWrongSignaturesFillsNoLog: a stranger who knows the path causes one read of the Secret and one line of the log
// per five seconds. The next line counts the webhooks without a line.
func TestFloodOfWrongSignaturesFillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "github")
		wrong := proofs("another-token", testBody)["github"]
		for range 1000 {
			if code, _ := w.send(http.MethodPost, testPath, testBody, wrong); code != http.StatusUnauthorized {
				t.Fatalf("answered %d", code)
			}
			<-time.After(11 * time.Millisecond) // eleven seconds in all
		}
		if n := w.reads.Load(); n > 3 {
			t.Errorf("the Secret was read %d times", n)
		}
		if n := strings.Count(w.logged.String(), "A webhook is refused"); n != 3 {
			t.Errorf("%d lines, want one per %s: %.300s", n, secretFor, w.logged.String())
		}
		if n := strings.Count(w.logged.String(), `"leftOut"=454`); n != 2 {
			t.Errorf("%d lines count the 454 webhooks without a line: %.600s", n, w.logged.String())
		}
		stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook"}}
		if err := w.hub.Delete(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		<-time.After(secretFor)
		for range 1000 {
			w.send(http.MethodPost, testPath, testBody, wrong)
		}
		if n := strings.Count(w.logged.String(), "cannot check a webhook"); n != 1 {
			t.Errorf("%d lines about a Secret that is missing: %.300s", n, w.logged.String())
		}
		<-time.After(2 * time.Hour)
		w.send(http.MethodPost, testPath, testBody, wrong)
		if n := len(w.receiver.logged); n != 1 {
			t.Errorf("%d lines are remembered after two hours, want that of now", n)
		}
	})
}

// TestLastWebhookOfAFloodIsNotLost: a push during the pause is looked at after it.
func TestLastWebhookOfAFloodIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		proof := proofs(testToken, testBody)["gitlab"]
		w.send(http.MethodPost, testPath, testBody, proof)
		synctest.Wait()
		first := w.requestedAt()
		<-time.After(pause / 10)
		w.send(http.MethodPost, testPath, testBody, proof)
		synctest.Wait()
		if w.requestedAt() != first {
			t.Error("looked twice within the pause")
		}
		<-time.After(pause)
		synctest.Wait()
		if w.patches.Load() != 2 || w.requestedAt() == first {
			t.Errorf("%d looks, the last at %s", w.patches.Load(), w.requestedAt())
		}
	})
}

// replica is another operator of the same hub.
func (w *world) replica(t *testing.T) *Receiver {
	t.Helper()
	second, err := New(w.receiver.Options, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return second
}

// TestWebhooks_OfTwoReplicasShareThePauseOfTheSource: the pause is that of the source, not of the process.
func TestWebhooks_OfTwoReplicasShareThePauseOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		second := w.replica(t)
		defer second.asker.stop()
		proof := proofs(testToken, testBody)["gitlab"]
		w.send(http.MethodPost, testPath, testBody, proof)
		synctest.Wait()
		w.receiver = second
		w.send(http.MethodPost, testPath, testBody, proof)
		synctest.Wait()
		if w.patches.Load() != 1 {
			t.Error("both replicas asked at once")
		}
		<-time.After(pause)
		synctest.Wait()
		if w.patches.Load() != 2 {
			t.Errorf("%d looks", w.patches.Load())
		}
	})
}

// TestWebhooks_OfTwoReplicasAtOnceShareThePauseOfTheSource: both have read that no look is requested. The event of the
// second replica is part of the next look, because the first look may have come before its push.
func TestWebhooks_OfTwoReplicasAtOnceShareThePauseOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		second := w.replica(t)
		defer second.asker.stop()
		w.latency = pause / 10
		proof := proofs(testToken, testBody)["gitlab"]
		w.send(http.MethodPost, testPath, testBody, proof)
		w.receiver = second
		w.send(http.MethodPost, testPath, testBody, proof)
		<-time.After(pause / 2)
		first := w.requestedAt()
		if w.patches.Load() != 1 {
			t.Errorf("%d looks at once", w.patches.Load())
		}
		<-time.After(pause)
		if w.patches.Load() != 2 || w.requestedAt() == first {
			t.Errorf("%d looks, the last at %s", w.patches.Load(), w.requestedAt())
		}
	})
}

// TestWebhook_AnotherWriteOfTheSourceDelaysNoLook: the status of the source is written while the look is requested.
func TestWebhook_AnotherWriteOfTheSourceDelaysNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		w.latency = pause / 10
		w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["gitlab"])
		synctest.Wait()
		var source v1alpha1.AddOnSource
		if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, &source); err != nil {
			t.Fatal(err)
		}
		source.Labels = map[string]string{"team": "a"}
		if err := w.hub.Update(t.Context(), &source); err != nil {
			t.Fatal(err)
		}
		<-time.After(pause / 2)
		if w.patches.Load() != 1 || w.requestedAt() == "" || w.logged.String() != "" {
			t.Errorf("%d looks, log %q", w.patches.Load(), w.logged)
		}
	})
}

// TestWebhook_IsNotLostWhileTheHubIsBroken: the forge got its answer, and does not send the webhook again. After a minute
// without an answer of the hub, the source is read at its interval.
func TestWebhook_IsNotLostWhileTheHubIsBroken(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"500":       func(context.Context) error { return apierrors.NewInternalError(errors.New("etcd has no leader")) },
		"no answer": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for _, recovers := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, recovers: %v", name, recovers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "gitlab")
					w.fail = fail
					w.broken.Store(true)
					if code, _ := w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["gitlab"]); code != http.StatusAccepted {
						t.Fatalf("answered %d", code)
					}
					<-time.After(askFor / 2)
					if w.logged.String() != "" {
						t.Errorf("lost after half of the time: %s", w.logged)
					}
					w.broken.Store(!recovers)
					<-time.After(2 * askFor)
					if looked, lost := w.patches.Load() == 1, strings.Contains(w.logged.String(), "cannot request a reconcile"); looked != recovers || lost == recovers {
						t.Errorf("%d looks, log %q", w.patches.Load(), w.logged)
					}
					if n := w.failures.Load(); n > int32(askFor/pause)+1 {
						t.Errorf("%d writes failed", n)
					}
				})
			})
		}
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	w := newWorld(t, "github")
	proof := proofs(testToken, testBody)["github"]
	for name, c := range map[string]struct {
		method, path, body string
		header             map[string]string
		want               int
	}{
		"UnknownPath": {http.MethodPost, "/hook/" + strings.Repeat("0", 32), testBody, proof, http.StatusNotFound},
		"EmptyPath":   {http.MethodPost, "/hook/", testBody, proof, http.StatusNotFound},
		"OtherPath":   {http.MethodPost, "/metrics", testBody, proof, http.StatusNotFound},
		"Get":         {http.MethodGet, testPath, "", proof, http.StatusMethodNotAllowed},
		"NoHex":       {http.MethodPost, testPath, testBody, map[string]string{"X-Hub-Signature-256": "sha256=zz"}, http.StatusUnauthorized},
		"SHA1":        {http.MethodPost, testPath, testBody, map[string]string{"X-Hub-Signature": "sha1=" + signed(testToken, testBody)}, http.StatusUnauthorized},
		"NoPrefix":    {http.MethodPost, testPath, testBody, map[string]string{"X-Hub-Signature-256": signed(testToken, testBody)}, http.StatusUnauthorized},
	} {
		code, body := w.send(c.method, c.path, c.body, c.header)
		if code != c.want || body != http.StatusText(c.want)+"\n" {
			t.Errorf("%s: answered %d %q", name, code, body)
		}
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestLargestPushThatAForgeSendsIsAccepted: GitHub sends up to 25 MB. The body is hashed as it arrives; no part is kept.
func TestLargestPushThatAForgeSendsIsAccepted(t *testing.T) {
	w := newWorld(t, "github")
	for size, want := range map[int64]int{25 << 20: http.StatusAccepted, 25<<20 + 1: http.StatusRequestEntityTooLarge, 1 << 40: http.StatusRequestEntityTooLarge} {
		mac := hmac.New(sha256.New, []byte(testToken))
		_, _ = io.CopyN(mac, zeros{}, min(size, bodyLimit))
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, testPath, io.LimitReader(zeros{}, size))
		request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		answer := httptest.NewRecorder()
		var before, after runtimemetrics.MemStats
		runtimemetrics.ReadMemStats(&before)
		w.receiver.ServeHTTP(answer, request)
		runtimemetrics.ReadMemStats(&after)
		if kept := after.TotalAlloc - before.TotalAlloc; answer.Code != want || kept > 1<<20 {
			t.Errorf("a body of %d bytes: answered %d, allocated %d bytes", size, answer.Code, kept)
		}
	}
}

// TestNewTokenIsUsedWithinSeconds: a Secret that has changed, and one without a token, which accepts nothing.
func TestNewTokenIsUsedWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		send := func(token string) int {
			code, _ := w.send(http.MethodPost, testPath, testBody, map[string]string{"X-Gitlab-Token": token})
			return code
		}
		if code := send(testToken); code != http.StatusAccepted {
			t.Fatalf("answered %d", code)
		}
		for _, token := range []string{"another", ""} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook"}, Data: map[string][]byte{"token": []byte(token)}}
			if err := w.hub.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			<-time.After(secretFor)
			want := http.StatusAccepted
			if token == "" {
				want = http.StatusInternalServerError
			}
			if code := send(token); code != want {
				t.Errorf("token %q: answered %d", token, code)
			}
			if code := send(testToken); code == http.StatusAccepted {
				t.Error("the token of before is still accepted")
			}
		}
	})
}

// TestRequestsThatWaitHoldNoOthers: past the limit a request is answered at once. Most forges do not send it again.
func TestRequestsThatWaitHoldNoOthers(t *testing.T) {
	w := newWorld(t, "github")
	for range requestsAtOnce {
		w.receiver.places <- struct{}{}
	}
	if code, _ := w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["github"]); code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", code)
	}
}

// one is a listener with one connection.
type one chan net.Conn

func (o one) Accept() (net.Conn, error) {
	if c, open := <-o; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (o one) Close() error   { return nil }
func (o one) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowRequestsEnd: a sender that trickles holds its place for seconds only.
func TestSlowRequestsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		sent   string
		within time.Duration
	}{
		"Headers": {"POST " + testPath + " HTTP/1.1\r\nHost: hooks\r\nX-Slow: ", headerTimeout},
		"Body":    {"POST " + testPath + " HTTP/1.1\r\nHost: hooks\r\nContent-Length: 1000\r\n\r\n{", readTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newWorld(t, "github").receiver.server(t.Context())
				client, accepted := net.Pipe()
				listener := make(one, 1)
				listener <- accepted
				var serving sync.WaitGroup
				serving.Go(func() { _ = server.Serve(listener) })
				serving.Go(func() {
					_, _ = io.WriteString(client, c.sent)
					for { // a byte a second, for as long as it is taken
						<-time.After(time.Second)
						if _, err := client.Write([]byte("x")); err != nil {
							return
						}
					}
				})
				begun := time.Now()
				_, _ = io.Copy(io.Discard, client)
				if took := time.Since(begun); took > c.within+time.Second {
					t.Errorf("ended after %s", took)
				}
				_ = client.Close()
				close(listener)
				_ = server.Close()
				serving.Wait()
			})
		})
	}
}

// TestServesUntilTheContextEnds: on a port of its own.
func TestServesUntilTheContextEnds(t *testing.T) {
	w := newWorld(t, "gitlab")
	w.receiver.Address, w.receiver.Log = "127.0.0.1:0", logr.Discard()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.receiver.Start(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWebhookThatWaitsWhenTheOperatorEndsIsNotLost: the forge got its answer, and does not send it again.
func TestWebhookThatWaitsWhenTheOperatorEndsIsNotLost(t *testing.T) {
	w := newWorld(t, "gitlab")
	w.receiver.Address, w.receiver.Log = "127.0.0.1:0", logr.Discard()
	before := &v1alpha1.AddOnSource{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, before); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&before.ObjectMeta, fluxmeta.ReconcileRequestAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	if err := w.hub.Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.receiver.Start(ctx) }()
	if code, _ := w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["gitlab"]); code != http.StatusAccepted {
		t.Fatalf("answered %d", code)
	}
	cancel()
	if err := <-ended; err != nil || w.patches.Load() != 1 {
		t.Errorf("%v, and %d looks", err, w.patches.Load())
	}
}

// TestHubThatDoesNotAnswerDelaysTheEndForSeconds: the end of the operator waits for writes, and has a limit.
func TestHubThatDoesNotAnswerDelaysTheEndForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "gitlab")
		w.latency = time.Hour
		w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["gitlab"])
		synctest.Wait()
		begun := time.Now()
		w.receiver.asker.finish()
		if took := time.Since(begun); took != stopWithin {
			t.Errorf("took %s", took)
		}
	})
}

// TestTypes_AreThoseOfTheAPI: a type without a row would accept nothing, and one without its name in the enum could not
// be used.
func TestTypes_AreThoseOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("../../manifests/crds/addonflow.io_addonsources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	webhook := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["webhook"]
	names := []string{}
	for _, name := range webhook.Properties["type"].Enum {
		names = append(names, strings.Trim(string(name.Raw), `"`))
	}
	slices.Sort(names)
	want := []string{}
	for name := range commitstatus.Webhooks() {
		want = append(want, name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-hook +CRD)\n%s", diff)
	}
}

// FuzzWebhook: no request but the right one is accepted, and none ends the process.
func FuzzWebhook(f *testing.F) {
	f.Add("github", "X-Hub-Signature-256", "sha256=00", []byte(testBody))
	f.Add("gitlab", "X-Gitlab-Token", "x", []byte{})
	f.Add("azuredevops", "Authorization", "Basic OjpA", []byte("{"))
	f.Fuzz(func(t *testing.T, kind, name, value string, body []byte) {
		webhook, known := commitstatus.Webhooks()[kind]
		if !known {
			return
		}
		r := &http.Request{Header: http.Header{name: {value}}, Body: io.NopCloser(bytes.NewReader(body))}
		if verify(webhook, r, "a-token-that-no-input-has") == nil {
			t.Errorf("accepted %s: %q", name, value)
		}
	})
}

// TestSlowBodiesOfOneSourceStopNoOther: the bodies for another source do not end, and their sender knows no token.
func TestSlowBodiesOfOneSourceStopNoOther(t *testing.T) {
	w := newWorld(t, "github")
	slow := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "slow", UID: "two"}}
	slow.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: fluxmeta.LocalObjectReference{Name: "hook"}}
	slow.Status.WebhookPath = "/hook/ffffffffffffffffffffffffffffffff"
	if err := w.hub.Create(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	body, end := io.Pipe()
	codes := make(chan int)
	const sent = requestsAtOnce + 1
	for range sent {
		go func() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, slow.Status.WebhookPath, io.NopCloser(body))
			request.Header.Set("X-Hub-Signature-256", "sha256="+signed(testToken, "x"))
			answer := httptest.NewRecorder()
			w.receiver.ServeHTTP(answer, request)
			codes <- answer.Code
		}()
	}
	for range sent - bodiesAtOnce {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("the source whose bodies do not end got %d", code)
		}
	}
	if code, _ := w.send(http.MethodPost, testPath, testBody, proofs(testToken, testBody)["github"]); code != http.StatusAccepted {
		t.Errorf("the other source got %d", code)
	}
	_ = end.Close()
	for range bodiesAtOnce {
		<-codes
	}
}
