package commitstatus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
)

// The exchanges of this file were written by hand from GitHub's documentation of check runs. No real server took part.

const (
	checksAPI     = "/api/v3/repos/fleet/addons"
	checksList    = "GET " + checksAPI + "/commits/" + testSHA + "/check-runs?app_id=12&check_name=addonflow%2Fhello&filter=all&page=1&per_page=100"
	appsHeader    = "Bearer ghs_canary1"
	checksSummary = `"AddonFlow reports a rollout here: the title is its state. ` + "`kubectl addonflow tree`" + ` shows its clusters."`
)

// run is a check run in GitHub's answers. The conclusion is null while the run is not completed.
func run(id int, status, conclusion, title string) string {
	if conclusion != "null" {
		conclusion = `"` + conclusion + `"`
	}
	return fmt.Sprintf(`{"id":%d,"head_sha":"%s","node_id":"MDg6Q2hlY2tSdW40","external_id":"","url":"https://git.example.com/api/v3/repos/fleet/addons/check-runs/%d",
		"html_url":"https://git.example.com/fleet/addons/runs/%d","details_url":"https://ci.example/1","status":"%s","conclusion":%s,
		"started_at":"2026-03-01T12:00:00Z","completed_at":null,"output":{"title":%q,"summary":"%s","text":null,"annotations_count":0,"annotations_url":""},
		"name":"addonflow/hello","check_suite":{"id":5},"app":{"id":12,"slug":"addonflow"},"pull_requests":[]}`, id, testSHA, id, id, status, conclusion, title, "AddonFlow")
}

// runs is a page of check runs.
func runs(of ...string) string {
	return fmt.Sprintf(`{"total_count":%d,"check_runs":[%s]}`, len(of), strings.Join(of, ","))
}

// checks returns the client for scripted exchanges.
func checks(t *testing.T, exchanges ...exchange) commitstatus.Forge {
	t.Helper()
	_, keys := newAppForge(t)
	client, err := as(t, keys, "githubchecks", scripted(t, exchanges...)+"/fleet/addons")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestCheckRuns_OneForAContextAsDocumented: a run is created, updated while it is pending, and completed. After a
// verdict, a pending status creates a new run, because GitHub does not reopen a completed one. Another verdict updates
// the completed run.
func TestCheckRuns_OneForAContextAsDocumented(t *testing.T) {
	sent := func(rest string) string {
		return `{"name":"addonflow/hello","details_url":"https://ci.example/1",` + rest + `,"output":{"title":"canary 1/2, soaking until 14:32 UTC","summary":` + checksSummary + `}}`
	}
	list := func(of ...string) exchange {
		return exchange{checksList, appsHeader, "", http.StatusOK, nil, runs(of...)}
	}
	create := func(body, answer string) exchange {
		return exchange{"POST " + checksAPI + "/check-runs", appsHeader, sent(`"head_sha":"` + testSHA + `",` + body), http.StatusCreated, nil, answer}
	}
	update := func(id int, body, answer string) exchange {
		return exchange{fmt.Sprintf("PATCH %s/check-runs/%d", checksAPI, id), appsHeader, sent(body), http.StatusOK, nil, answer}
	}
	const pending, success, cancelled = `"status":"in_progress"`, `"status":"completed","conclusion":"success"`, `"status":"completed","conclusion":"cancelled"`
	for name, c := range map[string]struct {
		state     commitstatus.State
		exchanges []exchange
	}{
		"First":               {commitstatus.Pending, []exchange{list(), create(pending, run(4, "in_progress", "null", "x"))}},
		"Progress":            {commitstatus.Pending, []exchange{list(run(4, "in_progress", "null", "canary 0/2")), update(4, pending, run(4, "in_progress", "null", "x"))}},
		"Success":             {commitstatus.Success, []exchange{list(run(4, "in_progress", "null", "x")), update(4, success, run(4, "completed", "success", "x"))}},
		"Superseded":          {commitstatus.Error, []exchange{list(run(4, "in_progress", "null", "x")), update(4, cancelled, run(4, "completed", "cancelled", "x"))}},
		"AnotherVerdict":      {commitstatus.Success, []exchange{list(run(4, "completed", "failure", "x")), update(4, success, run(4, "completed", "success", "x"))}},
		"PendingAfterVerdict": {commitstatus.Pending, []exchange{list(run(4, "completed", "failure", "x")), create(pending, run(5, "in_progress", "null", "x"))}},
		"AfterTheNewest":      {commitstatus.Success, []exchange{list(run(4, "completed", "failure", "x"), run(5, "in_progress", "null", "x")), update(5, success, run(5, "completed", "success", "x"))}},
		"AfterFourteenDays":   {commitstatus.Pending, []exchange{list(run(4, "completed", "stale", "x")), create(pending, run(5, "in_progress", "null", "x"))}},
	} {
		t.Run(name, func(t *testing.T) {
			status := testStatus()
			status.State = c.state
			if err := checks(t, c.exchanges...).Post(t.Context(), status); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCheckRuns_AreReadAsStatuses: what GitHub made stale is still what was posted, and no other conclusion is a success.
func TestCheckRuns_AreReadAsStatuses(t *testing.T) {
	for conclusion, want := range map[string]commitstatus.State{
		"null": commitstatus.Pending, "stale": commitstatus.Pending, "success": commitstatus.Success, "failure": commitstatus.Failure,
		"cancelled": commitstatus.Error, "neutral": commitstatus.Error, "skipped": commitstatus.Error, "timed_out": commitstatus.Error, "action_required": commitstatus.Error,
	} {
		status := "completed"
		if conclusion == "null" {
			status = "queued"
		}
		client := checks(t, exchange{checksList, appsHeader, "", http.StatusOK, nil, runs(run(4, status, conclusion, "canary 1/2, soaking until 14:32 UTC"))})
		got, found, err := commitstatus.Latest(t.Context(), client, testSHA, "addonflow/hello")
		expected := testStatus()
		expected.State = want
		if diff := cmp.Diff(expected, got); diff != "" || !found || err != nil {
			t.Errorf("%s: %v, %v\n-want +got:\n%s", conclusion, found, err, diff)
		}
	}
}

func TestCheckRuns_RefuseAsDocumented(t *testing.T) {
	for name, c := range map[string]struct {
		code      int
		header    map[string]string
		answer    string
		want      string
		denied    commitstatus.Denial
		permanent bool
		after     time.Duration
	}{
		"RefusedToken":         {401, nil, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}`, "does not accept the token (401): Bad credentials", commitstatus.TokenRefused, true, time.Minute},
		"WithoutThePermission": {403, nil, `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest/checks/runs#create-a-check-run"}`, "does not let the token write statuses (403): Resource not accessible by integration", commitstatus.PermissionMissing, true, time.Minute},
		"UnknownCommit":        {422, nil, `{"message":"No commit found for SHA: ` + testSHA + `","documentation_url":"https://docs.github.com/rest/checks/runs#create-a-check-run"}`, "refuses the status (422): No commit found for SHA", "", true, 0},
		"SecondaryLimit":       {403, map[string]string{"Retry-After": "60"}, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, "limits the rate of requests", "", false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			refused := exchange{
				"POST " + checksAPI + "/check-runs", appsHeader,
				`{"name":"addonflow/hello","head_sha":"` + testSHA + `","status":"in_progress","details_url":"https://ci.example/1","output":{"title":"canary 1/2, soaking until 14:32 UTC","summary":` + checksSummary + `}}`,
				c.code, c.header, c.answer,
			}
			exchanges := []exchange{{checksList, appsHeader, "", http.StatusOK, nil, runs()}, refused}
			if c.code == http.StatusUnauthorized { // once more with a new token
				refused.authorization = "Bearer ghs_canary2"
				exchanges = append(exchanges, refused)
			}
			err := checks(t, exchanges...).Post(t.Context(), testStatus())
			got, ok := errors.AsType[*commitstatus.DeliveryError](err)
			if !ok || !strings.Contains(got.Reason, c.want) || got.Denied != c.denied || got.Permanent != c.permanent || got.RetryAfter != c.after {
				t.Errorf("got %+v", got)
			}
		})
	}
	status := testStatus()
	status.Description = ""
	if err := checks(t).Post(t.Context(), status); err == nil || !strings.Contains(err.Error(), "a check run needs a text") {
		t.Errorf("without a text: %v", err)
	}
}

// TestCheckRuns_PassTheCheckOfAForge: that of `addonflow check forge`, at a GitHub that reopens no completed run and
// lists the newest run last.
func TestCheckRuns_PassTheCheckOfAForge(t *testing.T) {
	var stored []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent map[string]any
		_ = json.NewDecoder(r.Body).Decode(&sent)
		switch r.Method {
		case http.MethodGet:
			found := []map[string]any{}
			for _, s := range stored {
				if s["name"] == r.URL.Query().Get("check_name") {
					found = append(found, s)
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"check_runs": found})
		case http.MethodPost:
			sent["id"] = len(stored) + 1
			stored = append(stored, sent)
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(sent)
		default:
			var id int
			_, _ = fmt.Sscanf(r.URL.Path, checksAPI+"/check-runs/%d", &id)
			if id == 0 || stored[id-1]["status"] == "completed" && sent["status"] != "completed" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			sent["id"] = id
			stored[id-1] = sent
			_ = json.NewEncoder(w).Encode(sent)
		}
	}))
	t.Cleanup(server.Close)
	_, keys := newAppForge(t)
	client, err := as(t, keys, "githubchecks", server.URL+"/fleet/addons")
	if err != nil {
		t.Fatal(err)
	}
	for finding := range commitstatus.Check(t.Context(), "githubchecks", client, testSHA) {
		if finding.Err != nil {
			t.Errorf("%s: %v", finding.Step, finding.Err)
		}
	}
	if len(stored) != 4 {
		t.Errorf("%d runs, want two of each context: one ends with the verdict, before one is pending again", len(stored))
	}
}
