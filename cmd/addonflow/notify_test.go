package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// happened is an event of a rollout.
func happened(kind, reason string) eventToSend {
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello"}}
	about.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return eventToSend{
		object: about, reason: reason, message: "Halted the rollout of main@sha1:222: 1 failed",
		metadata: map[string]string{"event.toolkit.fluxcd.io/revision": "main@sha1:222", "addonflow.io/stage": "canary"},
	}
}

// TestNotificationsAreSignedCloudEvents: in order, each until it is accepted, with the key that the file has then.
func TestNotificationsAreSignedCloudEvents(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type post struct{ signature, contentType, body string }
	posts := make(chan post, 10)
	codes := make(chan int, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- post{r.Header.Get("X-Signature"), r.Header.Get("Content-Type"), string(body)}
		w.WriteHeader(<-codes)
	}))
	t.Cleanup(server.Close)
	n, err := newNotifier(server.URL, keyFile, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	n.waits, n.now = []time.Duration{time.Millisecond}, func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = n.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	expect := func(key, kind string) string {
		t.Helper()
		got := <-posts
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(got.body))
		if got.signature != "sha256="+hex.EncodeToString(mac.Sum(nil)) || got.contentType != "application/cloudevents+json; charset=utf-8" {
			t.Errorf("headers %+v", got)
		}
		var event cloudEvent
		if err := json.Unmarshal([]byte(got.body), &event); err != nil {
			t.Fatal(err)
		}
		want := cloudEvent{
			SpecVersion: "1.0", ID: event.ID, Type: kind, Source: "/apis/addonflow.io/v1alpha1/namespaces/team/addonrollouts/hello",
			Subject: "team/hello", Time: "2026-03-01T12:00:00Z", DataContentType: "application/json",
			Data: notice{Namespace: "team", Rollout: "hello", Reason: event.Data.Reason, Message: "Halted the rollout of main@sha1:222: 1 failed", Revision: "main@sha1:222", Stage: "canary"},
		}
		if diff := cmp.Diff(want, event); diff != "" || len(event.ID) != 32 {
			t.Errorf("id %q (-want +got):\n%s", event.ID, diff)
		}
		return event.ID
	}
	n.notify(happened(v1alpha1.AddOnRolloutKind, v1alpha1.RolloutFailedReason))
	n.notify(happened(v1alpha1.AddOnSourceKind, v1alpha1.RolloutFailedReason)) // of another kind
	n.notify(happened(v1alpha1.AddOnRolloutKind, v1alpha1.ClockSteppedReason)) // not of the list
	n.notify(happened(v1alpha1.AddOnRolloutKind, v1alpha1.RolledBackReason))
	n.notify(happened(v1alpha1.AddOnRolloutKind, v1alpha1.RolloutSucceededReason))
	first := expect("first", "io.addonflow.rollout.halted")
	if err := os.WriteFile(keyFile, []byte("second"), 0o600); err != nil { // before the answer
		t.Fatal(err)
	}
	codes <- http.StatusServiceUnavailable
	if again := expect("second", "io.addonflow.rollout.halted"); again != first {
		t.Errorf("the second try has id %s, the first %s", again, first)
	}
	codes <- http.StatusBadRequest // refused: not tried again
	expect("second", "io.addonflow.rollout.rollback.ended")
	codes <- http.StatusOK
	expect("second", "io.addonflow.rollout.succeeded")
	codes <- http.StatusOK
	for reason, kind := range map[string]string{
		v1alpha1.RolloutProgressingReason: "started", v1alpha1.GateWaitingReason: "gate.waiting", v1alpha1.GatePassedReason: "gate.passed",
		v1alpha1.GateFailedReason: "gate.failed", v1alpha1.RollingBackReason: "rollback.started",
	} {
		n.notify(happened(v1alpha1.AddOnRolloutKind, reason))
		expect("second", "io.addonflow.rollout."+kind)
		codes <- http.StatusOK
	}
}

func TestNotifierRefusesWhatItCannotUse(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ address, keyFile, want string }{
		"NoKey":    {"https://hooks.example.com", "", "events are signed"},
		"EmptyKey": {"https://hooks.example.com", empty, "is empty"},
		"NoFile":   {"https://hooks.example.com", empty + "x", "cannot sign events"},
		"NoURL":    {"", empty, "--notify-url"},
		"UserInfo": {"https://me:hunter2@hooks.example.com", empty, "without user information"},
		"Scheme":   {"file:///etc/passwd", empty, "http or https"},
	} {
		if _, err := newNotifier(c.address, c.keyFile, logr.Discard()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := newNotifier("", "", logr.Discard()); n != nil || err != nil {
		t.Errorf("without flags: %v, %v", n, err)
	}
}
