package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// notifier posts events of rollouts as CloudEvents 1.0, in structured mode.
type notifier struct {
	url string
	// keyFile has the key of the signatures. It is read for each event, so that a new key takes effect at once.
	keyFile string
	http    *http.Client
	log     logr.Logger
	now     func() time.Time
	// waits are the pauses between tries.
	waits   []time.Duration
	waiting chan cloudEvent
}

// cloudEvent is an event in CloudEvents' JSON format.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Data            notice `json:"data"`
}

type notice struct {
	Namespace string `json:"namespace"`
	Rollout   string `json:"rollout"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Revision  string `json:"revision,omitempty"`
	Stage     string `json:"stage,omitempty"`
}

// signatureHeader has the HMAC-SHA256 of the body in hex, after sha256=.
const signatureHeader = "X-Signature"

// notifiedTypes are the types of CloudEvents, by the reason of an event of an AddOnRollout. Other events are not sent.
func notifiedTypes() map[string]string {
	return map[string]string{
		v1alpha1.RolloutProgressingReason: "io.addonflow.rollout.started",
		v1alpha1.StageStartedReason:       "io.addonflow.rollout.stage.started",
		v1alpha1.GateWaitingReason:        "io.addonflow.rollout.gate.waiting",
		v1alpha1.GatePassedReason:         "io.addonflow.rollout.gate.passed",
		v1alpha1.GateFailedReason:         "io.addonflow.rollout.gate.failed",
		v1alpha1.GateErrorReason:          "io.addonflow.rollout.gate.error",
		v1alpha1.RolloutHeldReason:        "io.addonflow.rollout.held",
		v1alpha1.RolloutFailedReason:      "io.addonflow.rollout.halted",
		v1alpha1.RolloutRevertedReason:    "io.addonflow.rollout.reverted",
		v1alpha1.RollingBackReason:        "io.addonflow.rollout.rollback.started",
		v1alpha1.RolledBackReason:         "io.addonflow.rollout.rollback.ended",
		v1alpha1.RolloutSucceededReason:   "io.addonflow.rollout.succeeded",
	}
}

// newNotifier returns the notifier of an address; without an address, nil.
func newNotifier(address, keyFile string, log logr.Logger) (*notifier, error) {
	if address == "" && keyFile == "" {
		return nil, nil
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" || parsed.User != nil:
		return nil, errors.New("cannot use --notify-url: it must be an http or https URL without user information")
	case keyFile == "":
		return nil, errors.New("cannot use --notify-url without --notify-key-file: events are signed")
	}
	n := &notifier{
		url: address, keyFile: keyFile, log: log, now: time.Now, waits: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second},
		waiting: make(chan cloudEvent, eventsWaiting),
		http: &http.Client{Timeout: 15 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect could point to any server
		}},
	}
	if _, err := n.key(); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *notifier) key() ([]byte, error) {
	key, err := os.ReadFile(n.keyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot sign events: %w", err)
	}
	if key = bytes.TrimSpace(key); len(key) == 0 {
		return nil, fmt.Errorf("cannot sign events: %s is empty", n.keyFile)
	}
	return key, nil
}

// notify queues an event if its kind is sent. It never waits.
func (n *notifier) notify(e eventToSend) {
	kind, sent := notifiedTypes()[e.reason]
	if !sent || e.object.Kind != v1alpha1.AddOnRolloutKind {
		return
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	event := cloudEvent{
		SpecVersion: "1.0", ID: hex.EncodeToString(id), Type: kind, Time: n.now().UTC().Format(time.RFC3339Nano), DataContentType: "application/json",
		Source:  "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + e.object.Namespace + "/addonrollouts/" + e.object.Name,
		Subject: e.object.Namespace + "/" + e.object.Name,
		Data: notice{
			Namespace: e.object.Namespace, Rollout: e.object.Name, Reason: e.reason, Message: e.message,
			Revision: e.metadata["event.toolkit.fluxcd.io/revision"], Stage: e.metadata["addonflow.io/stage"],
		},
	}
	select {
	case n.waiting <- event:
	default:
		n.log.Info("Dropped a notification: its receiver is down or too slow", "type", kind, "rollout", event.Subject)
	}
}

// Start posts events, in their order, until the context ends.
func (n *notifier) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-n.waiting:
			if err := n.deliver(ctx, e); err != nil && ctx.Err() == nil {
				n.log.Error(err, "Dropped a notification", "type", e.Type, "rollout", e.Subject)
			}
		}
	}
}

// NeedLeaderElection is false, as for the sender of events: a follower has no events.
func (n *notifier) NeedLeaderElection() bool { return false }

// errRefused is an answer that another try would not change.
var errRefused = errors.New("refused")

// deliver posts an event until it is accepted or refused, or the tries are used up. All tries have one id.
func (n *notifier) deliver(ctx context.Context, e cloudEvent) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for _, wait := range append(n.waits, 0) {
		if err = n.post(ctx, body); err == nil || errors.Is(err, errRefused) || wait == 0 {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	return err
}

// post posts a body once, with its signature.
func (n *notifier) post(ctx context.Context, body []byte) error {
	key, err := n.key()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	request.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	request.Header.Set("User-Agent", controllerName)
	request.Header.Set(signatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := n.http.Do(request)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // the URL may contain a secret in its query
	}
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return fmt.Errorf("the receiver answered %d", code)
	default:
		return fmt.Errorf("%w: the receiver answered %d", errRefused, code)
	}
}
