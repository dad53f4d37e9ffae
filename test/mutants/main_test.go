package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMutantsApply: every mutant replaces a text that its file contains once. make mutants
// checks whether the tests kill it.
func TestMutantsApply(t *testing.T) {
	mutants, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 30 {
		t.Errorf("%d mutants", len(mutants))
	}
	seen := map[string]bool{}
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(text), m.old); n != 1 || m.old == m.new || seen[m.name] || m.why == "" {
			t.Errorf("%s: %s has its text %d times", m.name, m.file, n)
		}
		seen[m.name] = true
	}
}
