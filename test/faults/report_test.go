package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestReliabilityPageIsWrittenFromItsResults: the page has the form that make faults gives it now.
func TestReliabilityPageIsWrittenFromItsResults(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, results, found := strings.Cut(string(page), resultsLine)
	if !found {
		t.Fatal("the page has no results")
	}
	var s summary
	if err := json.Unmarshal([]byte(strings.TrimSuffix(results, " -->\n")), &s); err != nil {
		t.Fatal(err)
	}
	if document(s) != string(page) {
		t.Error("the page differs from what its results say: run make faults, or write the page from its last line")
	}
}
