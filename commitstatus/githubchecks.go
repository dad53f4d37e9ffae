package commitstatus

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// githubChecks uses GitHub's check runs, which only a GitHub App may write. They take the place of commit statuses:
// where a name is required and has both, GitHub requires both.
type githubChecks struct {
	*restClient
	// app is the number of the App. Other Apps may have runs of the same name, which the operator ignores.
	app string
}

// githubChecksProvider is the row of GitHub's check runs. Each post reads before it writes.
func githubChecksProvider() provider {
	return provider{
		open:      func(config Config, c *restClient) Forge { return &githubChecks{c, config.App.Credentials.AppID()} },
		address:   addressing{commits: "commit", locate: ownerAndName(githubAPI)},
		authorize: bearer, apps: true, needsApp: true,
		permission: "Checks: write",
		pace:       rate.Every(time.Second), burst: 20,
		foldsCase: true,
		requests:  githubRequests,
		comments:  githubComments,
		proposals: func(c *restClient) Proposals { return &githubProposals{c} },
	}
}

// checkRun is a run as GitHub takes and returns it.
type checkRun struct {
	ID         int64       `json:"id,omitempty"`
	Name       string      `json:"name"`
	HeadSHA    string      `json:"head_sha,omitempty"`
	Status     string      `json:"status"`
	Conclusion string      `json:"conclusion,omitempty"`
	DetailsURL string      `json:"details_url,omitempty"`
	Output     checkOutput `json:"output"`
}

// checkOutput is the content of the page of a run. The summary is Markdown, so that no text of a commit belongs there.
type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

const (
	checkInProgress = "in_progress"
	checkCompleted  = "completed"
	checkSummary    = "AddonFlow reports a rollout here: the title is its state. `kubectl addonflow tree` shows its clusters."
)

// conclusions are GitHub's names of the states that are final. Neutral and skipped would satisfy a required check, as
// success does. A run that is pending for more than 14 days becomes stale.
func conclusions() map[State]string {
	return map[State]string{Success: "success", Failure: "failure", Error: "cancelled", Pending: "stale"}
}

// state returns what a run says.
func (r checkRun) state() State {
	if r.Status != checkCompleted {
		return Pending
	}
	return stateNamed(conclusions(), r.Conclusion)
}

// Post implements Forge. There is one run for a context, which is updated in place, so that the suite of the commit has
// no older verdict in it. Only a run that is completed cannot become pending again: a new one takes its place.
func (g *githubChecks) Post(ctx context.Context, status Status) error {
	if status.Description == "" {
		return invalid(errors.New("a check run needs a text"))
	}
	run, found, err := g.newest(ctx, status.SHA, status.Context)
	if err != nil {
		return err
	}
	next := checkRun{
		Name: status.Context, Status: checkInProgress, DetailsURL: status.TargetURL,
		Output: checkOutput{Title: status.Description, Summary: checkSummary},
	}
	if status.State.Terminal() {
		next.Status, next.Conclusion = checkCompleted, conclusions()[status.State]
	}
	request := call{method: http.MethodPatch, url: g.endpoint("check-runs", strconv.FormatInt(run.ID, 10)), expect: []int{http.StatusOK}}
	if !found || run.Status == checkCompleted && next.Status != checkCompleted {
		next.HeadSHA = status.SHA
		request = call{method: http.MethodPost, url: g.endpoint("check-runs"), expect: []int{http.StatusCreated}}
	}
	request.body = next
	var stored checkRun
	if err := g.send(ctx, request, &stored); err != nil {
		return err
	}
	if stored.Name != status.Context || stored.state() != status.State {
		return unconfirmed()
	}
	return nil
}

// Shown implements Forge.
func (g *githubChecks) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	run, found, err := g.newest(ctx, sha, contexts[0])
	if err != nil {
		return nil, err
	}
	if !found {
		return map[string]*Status{contexts[0]: nil}, nil
	}
	return map[string]*Status{contexts[0]: g.found(Status{
		SHA: sha, Context: contexts[0], State: run.state(), Description: run.Output.Title, TargetURL: run.DetailsURL,
	})}, nil
}

// githubPage is how many check runs are requested at once, GitHub's maximum. githubPages bounds the search.
const (
	githubPage  = 100
	githubPages = 10
)

// newest returns the newest run of the App with a name. GitHub's filter for the latest goes by the time of completion,
// which a pending run has not.
func (g *githubChecks) newest(ctx context.Context, sha, name string) (newest checkRun, found bool, err error) {
	for page := 1; page <= githubPages; page++ {
		query := url.Values{
			"check_name": {name}, "app_id": {g.app}, "filter": {"all"}, perPage: {strconv.Itoa(githubPage)}, "page": {strconv.Itoa(page)},
		}
		var answer struct {
			Runs []checkRun `json:"check_runs"`
		}
		request := call{method: http.MethodGet, url: g.endpoint("commits", sha, "check-runs") + "?" + query.Encode(), expect: []int{http.StatusOK}}
		if err := g.send(ctx, request, &answer); err != nil {
			return checkRun{}, false, err
		}
		for _, run := range answer.Runs {
			if run.Name == name && run.ID > newest.ID {
				newest = run
			}
		}
		if len(answer.Runs) < githubPage {
			break
		}
	}
	return newest, newest.ID > 0, nil
}
