package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestCommandName(t *testing.T) {
	for arg0, want := range map[string]string{
		"/usr/local/bin/addonflow":         "addonflow",
		"/usr/local/bin/kubectl-addonflow": "kubectl addonflow",
		"":                                 "addonflow",
	} {
		if got := commandName(arg0); got != want {
			t.Errorf("%q: got %q, want %q", arg0, got, want)
		}
	}
}

// As a plugin, help says what to type after kubectl.
func TestPluginHelp(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"/usr/local/bin/kubectl-addonflow"}
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"tree", "--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "kubectl addonflow tree ROLLOUT"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is missing in:\n%s", want, out.String())
	}
}
