package commitstatus_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/addonflow/addonflow/commitstatus"
)

func TestShortenIsOneVisibleLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int
		in     string
		want   string
	}{
		"Head":    {"A statement stands alone.", 140, "canary 1/2, soaking until 14:32 UTC", "canary 1/2, soaking until 14:32 UTC"},
		"Nothing": {"Nothing to say is nothing.", 140, "", ""},
		"Control": {"One line, nothing that hides or reorders text.", 140, " a\x00\r\n\tb\u202ec\u200b \x1b[31mred", "a b c [31mred"},
		"BadUTF8": {"What is not text becomes a mark.", 140, "a\xff\xfeb", "a\ufffdb"},
		"Runes":   {"Characters are counted and never cut.", 4, "äöüßäöü", "äöü…"},
		"Twice":   {"What was cut before has one ellipsis.", 8, "abcde… and 3 more", "abcde…"},
		"NoLimit": {"There is no room.", 0, "a", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := commitstatus.Shorten(c.limit, c.in); got != c.want {
				t.Errorf("%s\ngot  %q\nwant %q", c.reason, got, c.want)
			}
		})
	}
}

func TestContextName(t *testing.T) {
	long := strings.Repeat("x", 120)
	cases := map[string]struct {
		reason string
		parts  []string
		want   string
	}{
		"Parts":     {"Parts are joined.", []string{"addonflow", "hello", "canary"}, "addonflow/hello/canary"},
		"Empty":     {"Empty parts are left out.", []string{"", "addonflow", " ", "/hello/"}, "addonflow/hello"},
		"Invisible": {"Spaces and controls become dashes.", []string{"my team\n1"}, "my-team-1"},
		"Nothing":   {"Nothing is nothing, and refused by Validate.", nil, ""},
		"Long":      {"A long one is cut, with a digest of the whole.", []string{"a", long}, "a/" + strings.Repeat("x", 87) + "-3e7f9b4db4"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := commitstatus.ContextName(c.parts...)
			if name == "Long" {
				// The digest itself does not matter, only its place and length.
				if utf8.RuneCountInString(got) != commitstatus.ContextLimit || got[:89] != c.want[:89] || got[89] != '-' {
					t.Errorf("%s\ngot %q", c.reason, got)
				}
				return
			}
			if got != c.want {
				t.Errorf("%s\ngot %q, want %q", c.reason, got, c.want)
			}
		})
	}
	if commitstatus.ContextName(long+"a") == commitstatus.ContextName(long+"b") {
		t.Error("two long names became one")
	}
}

// printable fails unless s is one line of visible text of at most limit characters.
func printable(t *testing.T, s string, limit int) {
	t.Helper()
	switch {
	case !utf8.ValidString(s):
		t.Errorf("%q is cut within a character", s)
	case utf8.RuneCountInString(s) > max(limit, 0):
		t.Errorf("%q is longer than %d", s, limit)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		t.Errorf("%q has invisible characters", s)
	case s != strings.TrimSpace(s):
		t.Errorf("%q has spaces at its ends", s)
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("canary failed: eu-1 (Deployment not available)", 140)
	f.Add("\x00\xff\u202e", 3)
	f.Add("a (attempt 9) (attempt 3)", 140)
	f.Add("fleet 0/4 (addonflow approve hello fleet), 1 failed (c1: no)", 60)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit %= 300
		got := commitstatus.Shorten(limit, text)
		printable(t, got, limit)
		if again := commitstatus.Shorten(limit, got); again != got {
			t.Errorf("shortened twice: %q, then %q", got, again)
		}
	})
}

func FuzzContextName(f *testing.F) {
	f.Add("addonflow", "hello")
	f.Add("a/b", "\x7f c")
	f.Add(strings.Repeat("ä", 200), "/")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := commitstatus.ContextName(a, b)
		printable(t, got, commitstatus.ContextLimit)
		if again := commitstatus.ContextName(got); again != got {
			t.Errorf("named twice: %q, then %q", got, again)
		}
	})
}

func FuzzStatusIsPostable(f *testing.F) {
	f.Add("addonflow/hello", "canary 1/2")
	f.Add("a b", "x (y (z)) w")
	f.Add("\u0085", strings.Repeat("ä", 150))
	f.Add("long", "halted: 1 failed (eu: no value ("+strings.Repeat("a.b", 60)+")), 2 in flight")
	f.Fuzz(func(t *testing.T, context, description string) {
		context = commitstatus.ContextName(context)
		if context == "" {
			return
		}
		marks := commitstatus.Enter(nil, commitstatus.Want{
			SHA: strings.Repeat("a", 40), Context: context, State: commitstatus.Pending, Description: description,
		})
		status := commitstatus.Status{
			SHA: marks[0].SHA, Context: marks[0].Context, State: commitstatus.State(marks[0].Owed.State), Description: marks[0].Owed.Description,
		}
		if err := status.Validate(); err != nil {
			t.Errorf("%+v: %v", status, err)
		}
	})
}

// TestShortenKeepsProblemAndCounts: a path is cut in its middle before anything else is.
func TestShortenKeepsProblemAndCounts(t *testing.T) {
	const path = "Deployment/hello:spec.agentSpec.workload.manifests[0].spec.template.spec.containers[0].args[0]"
	for name, c := range map[string]struct{ text, want string }{
		"Short":  {"canary 1/2", "canary 1/2"},
		"Path":   {"halted in canary: 1 failed (eu-01: no value for CLUSTER_LABEL_zone (" + path + ")), 1 in flight, 10 untouched", "1 in flight, 10 untouched"},
		"Second": {"halted in canary: 1 failed (eu-01: " + strings.Repeat("word ", 40) + "refused), 1 in flight; rolling back to 1111111111, 1 not moved (eu-02)", "; rolling back to 1111111111, 1 not moved (eu-02)"},
		"Reason": {"halted in canary: 1 failed (eu-01: " + strings.Repeat("word ", 40) + "refused), 1 in flight, 10 untouched", "), 1 in flight, 10 untouched"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commitstatus.Shorten(commitstatus.DescriptionLimit, c.text)
			if !strings.HasSuffix(got, c.want) || utf8.RuneCountInString(got) > commitstatus.DescriptionLimit {
				t.Errorf("got %q", got)
			}
			if name == "Path" && !strings.Contains(got, "no value for CLUSTER_LABEL_zone") {
				t.Errorf("the problem is cut before the path: %q", got)
			}
		})
	}
}

// TestShortenKeepsTheCommand: however long the text is, the command that it names stays whole, and so does
// the beginning, which says what the state is.
func TestShortenKeepsTheCommand(t *testing.T) {
	for name, c := range map[string]struct{ begin, fill, end, command string }{
		"LastClause":    {"fleet 2/10, another client writes the works of ", "eu-west-1-production-0421 and ", "; addonflow reconcile rollout hello", "; addonflow reconcile rollout hello"},
		"ClauseBetween": {"fleet 2/10, 1 in flight, waits for approval qa (addonflow approve hello fleet), ", "1 not admitted yet ", "(c1: waits for add-on base)", " (addonflow approve hello fleet)"},
		"Parentheses":   {"rolled back to 1111111111 from 2222222222 (git restore -SWs 1111111111 PATH ':!*addonrollout.*'): halted in canary: ", "some failed ", "(c1: timed out), 3 untouched", " (git restore -SWs 1111111111 PATH ':!*addonrollout.*'): halted in canary"},
		"FirstCluster":  {"rolled back to 1111111111 from 2222222222 (git restore -SWs 1111111111 PATH ':!*addonrollout.*'): halted in canary: 1 failed (c1: past its progress deadline), 6 untouched", "", "", " (git restore -SWs 1111111111 PATH ':!*addonrollout.*'): halted in canary: 1 failed (c1"},
		"PullRequest":   {"rolled back to 1111111111 from 2222222222 (pull request 12 makes Git agree): halted in canary: ", "some failed ", "(c1: timed out), 3 untouched", " (pull request 12 makes Git agree): halted in canary"},
		"AfterNames":    {"rolled back to 1111111111 from 2222222222, 3 held by annotation (", "eu-west-1-production-0421, ", "c3) (git restore -SWs 1111111111 PATH ':!*addonrollout.*'): halted", " (git restore -SWs 1111111111 PATH ':!*addonrollout.*')"},
	} {
		for n := range 12 {
			text := c.begin + strings.Repeat(c.fill, n) + c.end
			got := commitstatus.Shorten(commitstatus.DescriptionLimit, text)
			if !strings.Contains(got, c.command) || !strings.HasPrefix(got, text[:40]) || utf8.RuneCountInString(got) > commitstatus.DescriptionLimit {
				t.Errorf("%s, %d characters: got %q", name, utf8.RuneCountInString(text), got)
			}
		}
	}
}

// TestRefusalSaysTheProblemFirst: with little room, the problem, the count, file and line stay
// whole.
func TestRefusalSaysTheProblemFirst(t *testing.T) {
	r := commitstatus.Refusal{
		Problem: "no value for VERSION", Hint: "declare it in an AddOnDeploymentConfig", More: 2, Place: "addons/hello/addontemplate.yaml:42",
		Object: "AddOnTemplate/hello: spec.agentSpec.workload.manifests[0].spec.template.spec.containers[0].args[0]",
	}
	got := r.Text(commitstatus.DescriptionLimit)
	if !strings.HasPrefix(got, "no value for VERSION (and 2 more) at addons/hello/addontemplate.yaml:42: AddOnTemplate/hello") ||
		!strings.HasSuffix(got, ".args[0]") || utf8.RuneCountInString(got) > commitstatus.DescriptionLimit {
		t.Errorf("got %q", got)
	}
	r = commitstatus.Refusal{Problem: strings.Repeat("word ", 60), More: 2, Place: "addons/a.yaml:1", Object: "Kind/name"}
	if got := r.Text(commitstatus.DescriptionLimit); !strings.HasSuffix(got, " (and 2 more) at addons/a.yaml:1") {
		t.Errorf("got %q", got)
	}
}
