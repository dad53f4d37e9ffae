package forge

import (
	"net/http"
	"slices"
	"time"
)

// giteaDialect answers as Gitea 1.2x and Forgejo do. Their database takes texts of any
// length and any context; what they refuse is the commit.
type giteaDialect struct{}

// giteaUser is the user that posted.
type giteaUser struct {
	ID       int64  `json:"id"`
	Login    string `json:"login"`
	FullName string `json:"full_name"`
}

// giteaStatus is a status in Gitea's answers: the state is called status.
type giteaStatus struct {
	ID          int64     `json:"id"`
	State       string    `json:"status"`
	TargetURL   string    `json:"target_url"`
	Description string    `json:"description"`
	URL         string    `json:"url"`
	Context     string    `json:"context"`
	Creator     giteaUser `json:"creator"`
	CreatedAt   string    `json:"created_at"`
	UpdatedAt   string    `json:"updated_at"`
}

func (giteaDialect) name() API { return Gitea }

func (giteaDialect) pageSize(r *http.Request) int { return size(r, "limit", 30, 50) }

func (giteaDialect) unauthorised(w http.ResponseWriter) {
	reply(w, http.StatusUnauthorized, problem{Message: "user does not exist [uid: 0, name: ]", URL: "/api/swagger"})
}

// unknownCommit answers 500: Gitea does not distinguish a missing commit from an internal
// error.
func (giteaDialect) unknownCommit(w http.ResponseWriter, _ string) {
	reply(w, http.StatusInternalServerError, problem{Message: "", URL: "/api/swagger"})
}

func (giteaDialect) check(p post, _ int) *refusal {
	switch {
	case !slices.Contains(append(states(), "warning"), p.State):
		return &refusal{http.StatusUnprocessableEntity, problem{Message: "[]: unknown state", URL: "/api/swagger"}}
	case p.Context == "":
		// Stricter than Gitea, which would store a status without a context.
		return &refusal{http.StatusUnprocessableEntity, problem{Message: "[Context]: Required", URL: "/api/swagger"}}
	}
	return nil
}

func (giteaDialect) created(w http.ResponseWriter, base string, e Entry) {
	reply(w, http.StatusCreated, giteaAnswer(base, e))
}

func (giteaDialect) list(w http.ResponseWriter, base string, entries []Entry) {
	out := make([]giteaStatus, 0, len(entries))
	for _, e := range entries {
		out = append(out, giteaAnswer(base, e))
	}
	reply(w, http.StatusOK, out)
}

// combined answers without a body where there is nothing, as Gitea before 1.23 does.
func (giteaDialect) combined(w http.ResponseWriter, base, sha string, entries []Entry) {
	if len(entries) == 0 {
		w.WriteHeader(http.StatusOK)
		return
	}
	out := make([]giteaStatus, 0, len(entries))
	// Gitea reads the page by id, so the order is not that of time.
	for _, e := range slices.Backward(entries) {
		out = append(out, giteaAnswer(base, e))
	}
	reply(w, http.StatusOK, map[string]any{
		"state": out[0].State, "sha": sha, "total_count": len(out), "statuses": out,
		"commit_url": base + "/commits/" + sha, "url": base + "/commits/" + sha + "/status",
	})
}

// giteaAnswer returns the entry as Gitea shows it.
func giteaAnswer(base string, e Entry) giteaStatus {
	at := e.Time.UTC().Format(time.RFC3339)
	return giteaStatus{
		ID: e.Sequence, State: e.State, TargetURL: e.TargetURL, Description: e.Description,
		URL: base + "/statuses/" + e.SHA, Context: e.Context,
		Creator: giteaUser{ID: 1, Login: "addonflow"}, CreatedAt: at, UpdatedAt: at,
	}
}
