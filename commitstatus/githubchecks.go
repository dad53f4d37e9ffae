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

// githubChecks uses GitHub's check runs, which only a GitHub App may write, instead of commit statuses. If a commit
// has a check run and a commit status of one required name, GitHub requires both.
type githubChecks struct {
	*restClient
	// app is the number of the App. The operator ignores runs of other Apps with the same name.
	app string
}

// githubChecksProvider is the row of GitHub's check runs. Each post is a read and a write.
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

// checkRun is a run in GitHub's requests and answers.
type checkRun struct {
	ID         int64       `json:"id,omitempty"`
	Name       string      `json:"name"`
	HeadSHA    string      `json:"head_sha,omitempty"`
	Status     string      `json:"status"`
	Conclusion string      `json:"conclusion,omitempty"`
	DetailsURL string      `json:"details_url,omitempty"`
	Output     checkOutput `json:"output"`
}

// checkOutput is the content of the page of a run. The summary is Markdown, so it must not contain a text from a
// commit.
type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

const (
	checkInProgress = "in_progress"
	checkCompleted  = "completed"
	checkSummary    = "AddonFlow reports a rollout here: the title is its state. `kubectl addonflow tree` shows its clusters."
)

// conclusions are GitHub's names of the final states. Neutral and skipped would satisfy a required check like
// success. After 14 days, a pending run becomes stale.
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

// Post implements Forge. Each context has one run, which is updated in place, so that the suite of the commit has no
// older verdict. A completed run cannot become pending again: a new run replaces it.
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

// newest returns the newest run of the App with a name. GitHub's filter for the latest run uses the time of
// completion, which a pending run does not have.
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
