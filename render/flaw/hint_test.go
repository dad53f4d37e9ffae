package flaw

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	known := []string{"customizedVariables", "nodePlacement", "proxyConfig", "registries", "name"}
	cases := map[string]string{
		"customisedVariables": "customizedVariables",
		"CustomizedVariables": "customizedVariables",
		"nodePlacment":        "nodePlacement",
		"NAME":                "name",
		"nam":                 "name",
		"tolerations":         "",
		"x":                   "",
		"":                    "",
	}
	for word, want := range cases {
		if got := Closest(word, known); got != want {
			t.Errorf("closest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	if got := Shown(strings.Repeat("é", 30)); got != strings.Repeat("é", 20)+"..." {
		t.Errorf("shown cuts to %q", got)
	}
}
