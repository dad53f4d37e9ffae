package addonsource

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

func TestNextStep(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     facts
		want   step
	}{
		"First":          {"nothing was attempted yet", facts{head: "b", spec: "1"}, advance},
		"NewCommit":      {"the head moved", facts{head: "b", spec: "1", attempted: "a", attemptedSpec: "1", compiled: true}, advance},
		"NewSpec":        {"another path may build to something else", facts{head: "a", spec: "2", attempted: "a", attemptedSpec: "1"}, advance},
		"Applied":        {"drift is looked for", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: "1", compiled: true}, verify},
		"Restarted":      {"a restart is no reason to fetch", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: "1"}, inspect},
		"Refused":        {"a broken commit is not read again", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: refusedUnder("1"), explained: true}, keep},
		"RefusedCompile": {"nor compiled again", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: refusedUnder("1"), explained: true, compiled: true}, keep},
		"WordsLost":      {"but its verdict must be readable", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: refusedUnder("1")}, advance},
		"RefusedOther":   {"refused under another spec is not judged", facts{head: "a", spec: "2", attempted: "a", attemptedSpec: refusedUnder("1"), explained: true}, advance},
		"Asked":          {"a user asked", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: "1", compiled: true, asked: true}, advance},
		"Dependent":      {"the cause of the refusal may have been fixed on the hub", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: refusedUnder("1"), explained: true, dependent: true}, advance},
		"AskedRefused":   {"a user asked about a refused one", facts{head: "a", spec: "1", attempted: "a", attemptedSpec: refusedUnder("1"), explained: true, asked: true}, advance},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nextStep(c.in); got != c.want {
				t.Errorf("%s: got step %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	var keys map[string][]byte
	of := func(spec v1alpha1.AddOnSourceSpec, mode Mode) string {
		t.Helper()
		f, err := fingerprint(spec, Config{AddonManager: mode}, nil, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := v1alpha1.AddOnSourceSpec{URL: "https://git.example/fleet", Path: "addons"}
	same := base
	same.CommitStatus = &v1alpha1.CommitStatusSpec{Provider: "gitea"}
	same.Suspend = true
	if of(base, Coexist) != of(same, Coexist) {
		t.Error("commit statuses and suspension decide nothing about content")
	}
	ignore := "docs/"
	for name, other := range map[string]v1alpha1.AddOnSourceSpec{
		"URL":    {URL: "https://git.example/other", Path: "addons"},
		"Path":   {URL: base.URL, Path: "other"},
		"Ref":    {URL: base.URL, Path: base.Path, Reference: &v1alpha1.GitReference{Tag: "v1"}},
		"Ignore": {URL: base.URL, Path: base.Path, Ignore: &ignore},
		"AddOns": {URL: base.URL, Path: base.Path, AddOns: []string{"hello"}},
		"Prune":  {URL: base.URL, Path: base.Path, Prune: true},
		"Verify": {URL: base.URL, Path: base.Path, Verify: &v1alpha1.VerifySpec{Mode: v1alpha1.VerifyHEAD}},
		"Force":  {URL: base.URL, Path: base.Path, AllowForcePush: true},
	} {
		if of(base, Coexist) == of(other, Coexist) {
			t.Errorf("%s decides what is applied and is not in the fingerprint", name)
		}
	}
	if canary, err := fingerprint(base, Config{AddonManager: Coexist, DefaultCanary: true}, nil, nil, nil); err != nil || canary == of(base, Coexist) {
		t.Errorf("the default canary decides what the rollouts say: %v", err)
	}
	without := of(base, Coexist)
	if without != "792f0b83355e22e2" {
		t.Errorf("got %s: an upgrade of the operator would apply every commit again", without)
	}
	keys = map[string][]byte{"ana.asc": []byte("key")}
	if of(base, Coexist) == without {
		t.Error("a key that is added or revoked decides what is applied and is not in the fingerprint")
	}
	keys = nil
	if of(base, Coexist) == of(base, Replace) {
		t.Error("the mode decides the live form and is not in the fingerprint")
	}
}

func TestParseMode_RefusesAnUnknownMode(t *testing.T) {
	for _, s := range []string{"coexist", "replace"} {
		if m, err := ParseMode(s); err != nil || string(m) != s {
			t.Errorf("ParseMode(%q) = %q, %v", s, m, err)
		}
	}
	if _, err := ParseMode("beside"); err == nil {
		t.Error("ParseMode accepted an unknown mode")
	}
}

func TestRefusalText(t *testing.T) {
	long := problem.Problem{Path: "addons/hello/addontemplate.yaml", Line: 12, Message: strings.Repeat("wrong ", 60)}
	text := refusalText(refuse(v1alpha1.ValidationFailedReason, problem.List{long, {Path: "b.yaml", Message: "x"}, {Path: "c.yaml", Message: "y"}}))
	if !strings.HasPrefix(text, "wrong ") || !strings.HasSuffix(text, " (and 2 more) at addons/hello/addontemplate.yaml:12") {
		t.Errorf("got %q, want file, line and how many more", text)
	}
	if n := utf8.RuneCountInString(text); n > commitstatus.DescriptionLimit {
		t.Errorf("%d characters, more than a forge takes", n)
	}
}

// FuzzShortened: no event exceeds the limit of any API, and its text is valid UTF-8.
func FuzzShortened(f *testing.F) {
	f.Add("short")
	f.Add(strings.Repeat("one line\n", 200))
	f.Add(strings.Repeat("ä", 900))
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		got := shortened(s)
		if len(got) > eventLimit+len("\n...") || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
		}
		if len(s) <= eventLimit && got != s {
			t.Errorf("a short text was changed")
		}
	})
}

// TestMovedByAnApproval: when the removal of an add-on that left Git is approved on the
// rollout, the source's report follows; other annotations do not matter.
func TestMovedByAnApproval(t *testing.T) {
	before := &v1alpha1.AddOnRollout{}
	for key, want := range map[string]bool{v1alpha1.ApproveRemovalAnnotation: true, "example.com/note": false} {
		after := before.DeepCopy()
		after.Annotations = map[string]string{key: "x"}
		if moved(before, after) != want {
			t.Errorf("%s: %t", key, !want)
		}
	}
}
