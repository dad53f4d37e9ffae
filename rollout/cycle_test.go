package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/rollout"
)

// Every add-on of a cycle names it from itself; an add-on that only depends on one is in none.
func TestCycle(t *testing.T) {
	needs := map[string][]string{
		"agent": {"mesh", "base"}, "base": {"log"}, "log": {"agent"}, "mesh": {"none"},
		"outside": {"agent"}, "own": {"own"},
	}
	for addOn, want := range map[string]string{
		"agent": "agent base log agent", "base": "base log agent base", "log": "log agent base log",
		"own": "own own", "mesh": "", "outside": "", "none": "",
	} {
		if got := rollout.Cycle(addOn, needs); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %v, want %s", addOn, got, want)
		}
	}
}

// An add-on is removed after those that depend on it, unless they wait for each other.
func TestDependents(t *testing.T) {
	needs := map[string][]string{
		"agent": {"mesh", "base"}, "base": {"log"}, "log": {"base"}, "shop": {"mesh", "log"}, "own": {"own"},
	}
	for addOn, want := range map[string]string{"mesh": "agent shop", "base": "agent", "log": "shop", "agent": "", "own": "", "none": ""} {
		if got := rollout.Dependents(addOn, needs); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %v, want %s", addOn, got, want)
		}
	}
}
