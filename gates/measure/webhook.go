package measure

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

// signatureHeader has "sha256=" and the HMAC-SHA256 of the body in hexadecimal digits, as
// GitHub's X-Hub-Signature-256.
const signatureHeader = "X-Signature-256"

// webhookRequest is the body that a web service gets.
type webhookRequest struct {
	Rollout   string          `json:"rollout"`
	Namespace string          `json:"namespace"`
	Stage     string          `json:"stage"`
	Gate      string          `json:"gate"`
	Digest    string          `json:"digest"`
	Commit    string          `json:"commit"`
	Attempt   int32           `json:"attempt"`
	Counts    v1alpha1.Counts `json:"counts"`
}

// webhook evaluates a gate of type webhook.
func (s *server) webhook(ctx context.Context, q gates.Question) (gates.Verdict, error) {
	body, err := json.Marshal(webhookRequest{
		Rollout: q.Rollout.Name, Namespace: q.Rollout.Namespace, Stage: q.Stage, Gate: q.Gate,
		Digest: q.Digest, Commit: q.Commit, Attempt: q.Attempt, Counts: q.Counts,
	})
	if err != nil {
		return gates.Verdict{}, fmt.Errorf("cannot write the request: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if key := s.credentials.signing; key != "" {
		header.Set(signatureHeader, sign(body, string(key)))
	}
	status, answer, err := s.post(ctx, s.address, body, header)
	if err != nil {
		return gates.Verdict{}, err
	}
	v, err := readVerdict(status, answer)
	if err != nil {
		return gates.Verdict{}, fmt.Errorf("%s %w", s.address.Host, err)
	}
	return v, nil
}

// sign returns the value of the signature header.
func sign(body []byte, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// readVerdict returns the verdict of a web service.
func readVerdict(status int, body []byte) (gates.Verdict, error) {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return gates.Verdict{}, fmt.Errorf("does not accept the signature (%d)", status)
	}
	if status != http.StatusOK {
		return gates.Verdict{}, fmt.Errorf("answers %d instead of 200", status)
	}
	answer := struct {
		State   v1alpha1.GateState `json:"state"`
		Message string             `json:"message"`
	}{}
	if err := json.Unmarshal(body, &answer); err != nil {
		return gates.Verdict{}, errors.New(`does not answer {"state": ..., "message": ...}`)
	}
	switch answer.State {
	case v1alpha1.GatePassed, v1alpha1.GateFailed, v1alpha1.GateWaiting:
		return gates.Verdict{State: answer.State, Reason: answer.Message}, nil
	default:
		return gates.Verdict{}, fmt.Errorf("answers state %q instead of Passed, Failed or Waiting", answer.State)
	}
}
