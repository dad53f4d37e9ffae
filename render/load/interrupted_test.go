package load

import (
	"errors"
	"fmt"
	"testing"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// killed is an engine whose child process is always killed from outside.
type killed struct{}

var errKilled = fmt.Errorf("%w: killed", chart.ErrInterrupted)

func (killed) Admits(*chart.Source, []string) (string, error) { return "", errKilled }

func (killed) Verify(*chart.Source, chart.Input) error { return errKilled }

func (killed) Render(*chart.Source, chart.Input) ([]chart.Manifest, error) {
	return nil, errKilled
}

// TestInterruptedPackageIsNoProblem: an interruption is not a problem of the commit, which is
// loaded again.
func TestInterruptedPackageIsNoProblem(t *testing.T) {
	commit, problems := Load(packagedHello().packageObjects(t), nil, Options{Charts: killed{}})
	if len(problems) > 0 || !errors.Is(commit.Interrupted, render.ErrInterrupted) {
		t.Errorf("got %v and problems %v, want an interruption", commit.Interrupted, problems)
	}
	commit, problems = Load(packagedHello().packageObjects(t), nil, Options{Charts: chart.InProcess{}})
	if len(problems) > 0 || commit.Interrupted != nil {
		t.Errorf("got %v and problems %v", commit.Interrupted, problems)
	}
}
