package forge

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
)

// Webhook is where the forge sends events of a repository, and the secret that it signs them with.
type Webhook struct{ URL, Secret string }

// Delivery is one event on its way. It can be sent again.
type Delivery struct {
	URL    string
	Header http.Header
	Body   []byte
}

// Push is what Gitea sends when a branch has got a commit.
func (w Webhook) Push(repository, branch, sha string) (Delivery, error) {
	body, err := json.Marshal(map[string]any{
		"ref": "refs/heads/" + branch, "after": sha, "repository": map[string]string{"full_name": repository},
		"commits": []map[string]string{{"id": sha}}, "pusher": map[string]string{"login": "author"},
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("cannot write the event: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(w.Secret))
	mac.Write(body)
	return Delivery{URL: w.URL, Body: body, Header: http.Header{
		"Content-Type": {"application/json"}, "X-Gitea-Event": {"push"}, "X-Gitea-Delivery": {sha[:8]},
		"X-Gitea-Signature": {hex.EncodeToString(mac.Sum(nil))},
	}}, nil
}

// Send sends the event and returns the code of the answer.
func (d Delivery) Send(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, fmt.Errorf("cannot send the event: %w", err)
	}
	request.Header, request.Close = d.Header.Clone(), true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("cannot send the event: %w", err)
	}
	return response.StatusCode, response.Body.Close()
}
