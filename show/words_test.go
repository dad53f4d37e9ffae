package show

import (
	"os"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestGuideHasEveryPhase: every word that a rollout is shown with is in the guide's row of
// phases.
func TestGuideHasEveryPhase(t *testing.T) {
	guide, err := os.ReadFile("../docs/user-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(guide), "\n| `phase`, `message` |")
	row, _, _ = strings.Cut(row, "\n")
	for _, word := range []string{
		pending, stalled, string(v1alpha1.PhaseProgressing), string(v1alpha1.PhaseSucceeded), string(v1alpha1.PhaseFailed),
		string(v1alpha1.PhaseHeld), string(v1alpha1.PhaseSuspended), string(v1alpha1.PhaseRemoving), string(v1alpha1.PhaseRemoved),
	} {
		if !strings.Contains(row, "`"+word+"`") {
			t.Errorf("the guide does not say what %s means", word)
		}
	}
}

// TestShare_SaysNoMoreOfARemovalThanTheCount: the clusters of a removal are counted while it is
// held as well as while it runs.
func TestShare_SaysNoMoreOfARemovalThanTheCount(t *testing.T) {
	if got := share(v1alpha1.Counts{Removing: 3}); got != "0/0  3 to remove" {
		t.Errorf("got %q", got)
	}
}
