package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// password is every user's.
const password = "correct-horse-battery"

// API is one user of Gitea's API.
type API struct {
	server *Server
	// User is the user's name.
	User          string
	authorization func(*http.Request)
}

// RefusedError is an answer that is not a success.
type RefusedError struct {
	// Code is the HTTP status code, and Message what Gitea says.
	Code    int
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("Gitea answers %d: %s", e.Code, e.Message) }

// CreateUser creates a user, and returns it with a password that may do everything.
func (s *Server) CreateUser(ctx context.Context, name string, flags ...string) (*API, error) {
	err := s.run(ctx, slices.Concat([]string{
		"admin", "user", "create", "--username", name, "--password", password, "--email", name + "@example.com", "--must-change-password=false",
	}, flags)...)
	if err != nil {
		return nil, err
	}
	return s.As(name, func(r *http.Request) { r.SetBasicAuth(name, password) }), nil
}

// As returns a user of the API with any authorization.
func (s *Server) As(name string, authorization func(*http.Request)) *API {
	return &API{server: s, User: name, authorization: authorization}
}

// Token creates an access token of the user with scopes, as its settings page does.
func (a *API) Token(ctx context.Context, name string, scopes ...string) (string, error) {
	var created struct {
		Value string `json:"sha1"`
	}
	err := a.Do(ctx, http.MethodPost, "users/"+a.User+"/tokens", map[string]any{"name": name, "scopes": scopes}, &created)
	return created.Value, err
}

// RevokeToken deletes an access token of the user.
func (a *API) RevokeToken(ctx context.Context, name string) error {
	return a.Do(ctx, http.MethodDelete, "users/"+a.User+"/tokens/"+url.PathEscape(name), nil, nil)
}

// Status is a commit status as the API shows it.
type Status struct {
	ID          int64  `json:"id"`
	State       string `json:"status"`
	Description string `json:"description"`
	Context     string `json:"context"`
	TargetURL   string `json:"target_url"`
	Creator     struct {
		Login string `json:"login"`
	} `json:"creator"`
}

// String is state and text.
func (s Status) String() string { return s.State + ": " + s.Description }

// Statuses returns every status of a commit, oldest first.
func (a *API) Statuses(ctx context.Context, repository, sha string) ([]Status, error) {
	var all []Status
	for page := 1; ; page++ {
		var some []Status
		path := fmt.Sprintf("repos/%s/commits/%s/statuses?sort=oldest&limit=50&page=%d", repository, sha, page)
		if err := a.Do(ctx, http.MethodGet, path, nil, &some); err != nil {
			return nil, err
		}
		if len(some) == 0 {
			slices.SortFunc(all, func(x, y Status) int { return int(x.ID - y.ID) }) // the API sorts by seconds
			return all, nil
		}
		all = append(all, some...)
	}
}

// Combined is the state of a commit as Gitea shows it beside the commit.
func (a *API) Combined(ctx context.Context, repository, sha string) (string, error) {
	var combined struct {
		State string `json:"state"`
	}
	err := a.Do(ctx, http.MethodGet, "repos/"+repository+"/commits/"+sha+"/status", nil, &combined)
	return combined.State, err
}

// OpenPull opens a pull request between two branches, and returns its number.
func (a *API) OpenPull(ctx context.Context, repository, title, head, base string) (int, error) {
	var created struct {
		Number int `json:"number"`
	}
	err := a.Do(ctx, http.MethodPost, "repos/"+repository+"/pulls", map[string]any{"title": title, "head": head, "base": base}, &created)
	return created.Number, err
}

// Merge merges a pull request in one of Gitea's ways, if its head is still the given commit.
func (a *API) Merge(ctx context.Context, repository string, number int, way, head string) error {
	return a.Do(ctx, http.MethodPost, fmt.Sprintf("repos/%s/pulls/%d/merge", repository, number),
		map[string]any{"Do": way, "head_commit_id": head}, nil)
}

// Head is the commit of a branch.
func (a *API) Head(ctx context.Context, repository, branch string) (string, error) {
	var found struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	err := a.Do(ctx, http.MethodGet, "repos/"+repository+"/branches/"+branch, nil, &found)
	return found.Commit.ID, err
}

// Do calls the API, with the path below /api/v1. A body and an answer are JSON; nil: none.
func (a *API) Do(ctx context.Context, method, path string, body, out any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.server.URL()+"/api/v1/"+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	a.authorization(request)
	response, err := a.server.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		var said struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(answer, &said) != nil {
			said.Message = string(answer)
		}
		return fmt.Errorf("%s %s: %w", method, path, &RefusedError{Code: response.StatusCode, Message: strings.TrimSpace(said.Message)})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, errors.Join(err, errors.New(string(answer))))
	}
	return nil
}
