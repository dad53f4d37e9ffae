package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/gitserver"
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
	cmd, out := calledBy(t, "/usr/local/bin/kubectl-addonflow")
	cmd.SetArgs([]string{"tree", "--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kubectl addonflow tree ROLLOUT", "  kubectl addonflow tree hello\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// calledBy is the command tree of a program with a name, and where it prints.
func calledBy(t *testing.T, arg0 string) (*cobra.Command, *bytes.Buffer) {
	t.Helper()
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{arg0}
	cmd, out := newRootCommand(), &bytes.Buffer{}
	cmd.SetOut(out)
	return cmd, out
}

// TestHelpNamesTheProgramAsItWasCalled: commands in the plugin's help begin with kubectl, and commands
// in the program's own help do not need kubectl.
func TestHelpNamesTheProgramAsItWasCalled(t *testing.T) {
	for arg0, wrong := range map[string]string{"kubectl-addonflow": "(^|[^l]) addonflow [a-z]", "addonflow": "kubectl addonflow"} {
		root, _ := calledBy(t, "/usr/local/bin/"+arg0)
		unwanted := regexp.MustCompile(wrong)
		var look func(*cobra.Command)
		look = func(cmd *cobra.Command) {
			for line := range strings.SplitSeq(cmd.Example, "\n") {
				if unwanted.MatchString(line) {
					t.Errorf("%s: %s: %q", arg0, cmd.CommandPath(), line)
				}
			}
			for _, sub := range cmd.Commands() {
				look(sub)
			}
		}
		look(root)
	}
}

// TestPluginCompletion: kubectl completes a plugin through a program of its own.
func TestPluginCompletion(t *testing.T) {
	cmd, out := calledBy(t, "kubectl-addonflow")
	cmd.SetArgs([]string{"completion"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "#!/bin/sh\nexec kubectl addonflow __complete \"$@\"\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	cmd, out = calledBy(t, "addonflow")
	cmd.SetArgs([]string{"completion", "bash"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "complete -o default -F __start_addonflow addonflow") {
		t.Errorf("the program itself is completed by its shell: %v", err)
	}
}

// TestKindComesFirst: a command without a kind lists the kinds.
func TestKindComesFirst(t *testing.T) {
	for args, want := range map[string]string{
		"suspend fleet":    `cannot run "addonflow suspend" with "fleet": it takes a kind first, one of rollout, source; see addonflow suspend --help`,
		"reconcile sourc":  `it takes a kind first, one of rollout, source; did you mean source?`,
		"resume hello now": `cannot run "addonflow resume" with "hello"`,
		"get addons":       `cannot run "addonflow get" with "addons": it takes a kind first, one of clusters, revisions, rollouts, sources; see addonflow get --help`,
		"get rollot":       `did you mean rollouts?`,
	} {
		s := newStage(t)
		if code := s.run(t.Context(), strings.Fields(args)...); code != exitUsage || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, s.err.String(), want)
		}
	}
}

// TestNoKubeconfig: without a kubeconfig, a command ends in an error and does not try a server on this machine.
func TestNoKubeconfig(t *testing.T) {
	nowhere := t.TempDir()
	empty := filepath.Join(nowhere, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ kubeconfig, args, want string }{
		"None":   {filepath.Join(nowhere, "none"), "get sources", "cannot find a hub: no cluster in " + nowhere + "/none; use --kubeconfig or $KUBECONFIG\n"},
		"Empty":  {empty, "tree hello", "cannot find a hub: no cluster in " + empty + "; use --kubeconfig"},
		"Server": {empty, "get sources --server http://localhost:1", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cli.connect = s.cli.dial
			t.Setenv("KUBECONFIG", c.kubeconfig)
			if code := s.run(t.Context(), strings.Fields(c.args)...); code != exitUnreachable || !strings.Contains(s.err.String(), c.want) {
				t.Errorf("exit code %d, %q, want %q", code, s.err.String(), c.want)
			}
		})
	}
}

// TestFormatsAreCompleted: the shell offers what -o takes.
func TestFormatsAreCompleted(t *testing.T) {
	s := newStage(t)
	if code := s.run(t.Context(), "__complete", "get", "rollouts", "-o", ""); code != 0 || !strings.HasPrefix(s.out.String(), "wide\ncustom-columns\ncustom-columns-file\njson\nyaml\n") {
		t.Errorf("exit code %d, %q", code, s.out.String())
	}
}

// TestNamesOfTheHubAreCompleted: the shell offers all namespaces, and the rollouts of the chosen one.
func TestNamesOfTheHubAreCompleted(t *testing.T) {
	elsewhere := hello("")
	elsewhere.Namespace, elsewhere.Name = "team", "greeter"
	for words, want := range map[string]string{
		"tree hello -n":  "team\n:",
		"tree":           "hello\n:",
		"tree -n team":   "greeter\n:",
		"get rollouts":   "hello\n:",
		"get sources":    ":",
		"history -n all": ":",
	} {
		s := newStage(t, hello(""), elsewhere, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		args := append([]string{"__complete"}, append(strings.Fields(words), "")...)
		if code := s.run(t.Context(), args...); code != 0 || !strings.HasPrefix(s.out.String(), want) {
			t.Errorf("%s: exit code %d, %q, want %q", words, code, s.out.String(), want)
		}
	}
}

// TestDemo_PrintsCommandsThatRun: in a shell with the printed environment, each printed command names a program that is
// there, and words that this program knows.
func TestDemo_PrintsCommandsThatRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a directory")
	binary := filepath.Join(dir, programName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	commands := demo.Commands(&demo.World{Repo: &gitserver.Repo{}}, binary)
	for _, command := range commands[1:] {
		words := strings.Fields(command)
		if words[0] == "git" {
			continue
		}
		found, err := exec.CommandContext(t.Context(), "sh", "-c", commands[0]+"\ncommand -v "+words[0]).Output()
		if err != nil || strings.TrimSpace(string(found)) != binary {
			t.Errorf("%s: the shell finds %q: %v", command, found, err)
		}
		cmd, args, err := newRootCommand().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
