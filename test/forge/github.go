package forge

import (
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	// githubStatusLimit is how many statuses GitHub stores per commit and context.
	githubStatusLimit = 1000
	// githubDescriptionLimit is in characters.
	githubDescriptionLimit = 140

	githubDocs = "https://docs.github.com/rest/commits/statuses#create-a-commit-status"
)

// githubDialect answers as GitHub's REST API does.
type githubDialect struct{}

// githubUser is the user that posted.
type githubUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// githubStatus is a status in GitHub's answers; texts that were not sent are null.
type githubStatus struct {
	URL         string     `json:"url"`
	ID          int64      `json:"id"`
	NodeID      string     `json:"node_id"`
	State       string     `json:"state"`
	Description *string    `json:"description"`
	TargetURL   *string    `json:"target_url"`
	Context     string     `json:"context"`
	CreatedAt   string     `json:"created_at"`
	UpdatedAt   string     `json:"updated_at"`
	Creator     githubUser `json:"creator"`
}

func (githubDialect) name() API { return GitHub }

func (githubDialect) pageSize(r *http.Request) int { return size(r, "per_page", 30, 100) }

func (githubDialect) unauthorised(w http.ResponseWriter) {
	reply(w, http.StatusUnauthorized, problem{Message: "Bad credentials", DocURL: "https://docs.github.com/rest", Status: "401"})
}

func (githubDialect) unknownCommit(w http.ResponseWriter, sha string) {
	reply(w, http.StatusUnprocessableEntity, problem{Message: "No commit found for SHA: " + sha, DocURL: githubDocs, Status: "422"})
}

func (githubDialect) check(p post, earlier int) *refusal {
	var complaint string
	switch {
	case !slices.Contains(states(), p.State):
		complaint = "State is not included in the list"
	case p.Context == "":
		complaint = "Context can't be blank"
	case utf8.RuneCountInString(p.Description) > githubDescriptionLimit:
		complaint = fmt.Sprintf("Description is too long (maximum is %d characters)", githubDescriptionLimit)
	case earlier >= githubStatusLimit:
		complaint = "This SHA and context has reached the maximum number of statuses."
	default:
		return nil
	}
	return &refusal{http.StatusUnprocessableEntity, problem{
		Message: "Validation Failed", Errors: "Validation failed: " + complaint, DocURL: githubDocs, Status: "422",
	}}
}

func (githubDialect) created(w http.ResponseWriter, base string, e Entry) {
	reply(w, http.StatusCreated, githubAnswer(base, e))
}

func (githubDialect) list(w http.ResponseWriter, base string, entries []Entry) {
	reply(w, http.StatusOK, githubAnswers(base, entries))
}

func (githubDialect) combined(w http.ResponseWriter, base, sha string, entries []Entry) {
	reply(w, http.StatusOK, map[string]any{
		"state": pending, "sha": sha, "total_count": len(entries), "statuses": githubAnswers(base, entries),
		"commit_url": base + "/commits/" + sha, "url": base + "/commits/" + sha + "/status",
	})
}

// githubAnswers returns the entries as GitHub shows them.
func githubAnswers(base string, entries []Entry) []githubStatus {
	out := make([]githubStatus, 0, len(entries))
	for _, e := range entries {
		out = append(out, githubAnswer(base, e))
	}
	return out
}

// githubAnswer returns the entry as GitHub shows it.
func githubAnswer(base string, e Entry) githubStatus {
	at := e.Time.UTC().Format(time.RFC3339)
	return githubStatus{
		URL: base + "/statuses/" + e.SHA, ID: e.Sequence, NodeID: fmt.Sprintf("SC_%d", e.Sequence),
		State: e.State, Description: orNull(e.Description), TargetURL: orNull(e.TargetURL), Context: e.Context,
		CreatedAt: at, UpdatedAt: at, Creator: githubUser{ID: 1, Login: "addonflow[bot]", Type: "Bot"},
	}
}

// orNull returns nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
