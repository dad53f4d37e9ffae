package show

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

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

// TestNoTextOfAUserReachesTheTerminalAsItIs: a file in Git gives the reason of a block, and a user that of an order.
func TestNoTextOfAUserReachesTheTerminalAsItIs(t *testing.T) {
	const hostile = "leaks \x1b[2J\r\u202ememory\a"
	r := failed()
	r.Status.Message, r.Status.Failing[0].Reason, r.Status.Conditions = hostile, hostile, nil
	r.Status.Stages[0].Message, r.Status.Stages[1].Message = hostile, hostile
	cluster := ClustersTable(Cluster{Cluster: "eu-01", Reason: hostile})
	for name, text := range map[string]string{
		"line": Style{}.Line(r), "tree": Style{}.Tree(r, at()), "table": fmt.Sprint(cluster.Rows[0].Cells...), "lines": Lines("a.yaml:1: wrong\n" + hostile),
	} {
		if !strings.Contains(text, "memory") || strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }) {
			t.Errorf("%s: %q", name, text)
		}
	}
}
