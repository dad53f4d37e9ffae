package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// senderTo is a sender to a receiver, with a recorder of the events on the hub.
func senderTo(t *testing.T, address string) (*eventSender, *record.FakeRecorder) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	hub := record.NewFakeRecorder(2 * eventsWaiting)
	s := &eventSender{EventRecorder: hub, broadcaster: record.NewBroadcaster(), scheme: scheme, log: funcr.New(func(string, string) {}, funcr.Options{})}
	if err := s.passOnTo(address); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, hub
}

// aRollout is what events are about.
func aRollout() *v1alpha1.AddOnRollout {
	return &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "hello", UID: "42",
		Annotations: map[string]string{"event.toolkit.fluxcd.io/token": "once", "example.com/other": "kept here"},
	}}
}

// TestEventsReachAReceiver: over HTTP, in the form that Flux's notification-controller takes,
// and on the hub as well.
func TestEventsReachAReceiver(t *testing.T) {
	received := make(chan eventv1.Event, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e eventv1.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s with a body that is no event: %v", r.Method, err)
		}
		received <- e
	}))
	defer receiver.Close()
	s, hub := senderTo(t, receiver.URL)
	s.AnnotatedEventf(aRollout(), map[string]string{"event.toolkit.fluxcd.io/revision": "main@sha1:abc"},
		corev1.EventTypeWarning, "RolloutFailed", "Halted the rollout of %s: %s", "main@sha1:abc", "halted in canary")
	e := <-received
	if e.InvolvedObject.Kind != "AddOnRollout" || e.InvolvedObject.APIVersion != "addonflow.io/v1alpha1" ||
		e.InvolvedObject.Namespace != "fleet" || e.InvolvedObject.Name != "hello" || e.InvolvedObject.UID != "42" {
		t.Errorf("it is about %+v", e.InvolvedObject)
	}
	if e.Severity != "error" || e.Reason != "RolloutFailed" || e.Message != "Halted the rollout of main@sha1:abc: halted in canary" ||
		e.ReportingController != "addonflow" || e.Timestamp.IsZero() {
		t.Errorf("it says %+v", e)
	}
	if len(e.Metadata) != 2 || e.Metadata["event.toolkit.fluxcd.io/revision"] != "main@sha1:abc" || e.Metadata["event.toolkit.fluxcd.io/token"] != "once" {
		t.Errorf("its metadata are %v", e.Metadata)
	}
	if got := <-hub.Events; !strings.HasPrefix(got, "Warning RolloutFailed Halted the rollout of main@sha1:abc: halted in canary") {
		t.Errorf("on the hub it is %q", got)
	}
}

// TestAReceiverThatHangsDelaysNothing: neither a reconcile nor the end of the operator.
func TestAReceiverThatHangsDelaysNothing(t *testing.T) {
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer receiver.Close()
	defer close(release)
	s, hub := senderTo(t, receiver.URL)
	const many = eventsWaiting + 100
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range many {
			s.Event(aRollout(), corev1.EventTypeNormal, "StageStarted", fmt.Sprintf("stage %d", i))
		}
	}()
	select {
	case <-sent:
	case <-time.After(30 * time.Second):
		t.Fatal("a sender waits for its receiver")
	}
	if got := len(hub.Events); got != many {
		t.Errorf("%d of %d events are on the hub", got, many)
	}
}

// TestEventsOfOneReasonStayApart: client-go's usual correlation merges them from the eleventh
// on, and drops them from the 26th on.
func TestEventsOfOneReasonStayApart(t *testing.T) {
	merged := func(options record.CorrelatorOptions) (combined, dropped int) {
		c := record.NewEventCorrelatorWithOptions(options)
		for i := range 60 {
			got, err := c.EventCorrelate(&corev1.Event{
				InvolvedObject: corev1.ObjectReference{Kind: "AddOnRollout", Namespace: "fleet", Name: "hello"},
				Reason:         "StageStarted", Message: fmt.Sprintf("Started stage group-%d of main@sha1:abc", i), Type: corev1.EventTypeNormal,
				FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
			})
			switch {
			case err != nil:
				t.Fatal(err)
			case got.Skip:
				dropped++
			case strings.Contains(got.Event.Message, "combined"):
				combined++
			}
		}
		return combined, dropped
	}
	if combined, dropped := merged(eventCorrelation()); combined+dropped > 0 {
		t.Errorf("%d events merged, %d dropped", combined, dropped)
	}
	if combined, dropped := merged(record.CorrelatorOptions{}); combined == 0 || dropped == 0 {
		t.Errorf("client-go merges %d and drops %d: the options are not needed any more", combined, dropped)
	}
}
