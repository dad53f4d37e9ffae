package gitsource

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseURL(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"https":       {"https://git.example/team/addons.git", ""},
		"http":        {"http://git.example:3000/addons", ""},
		"IPv6":        {"https://[::1]:3000/addons.git", ""},
		"upper case":  {"HTTPS://git.example/addons.git", ""},
		"file":        {"file:///etc", `scheme "file" is not supported; use https, http or ssh`},
		"ext":         {"ext::sh -c whoami", "only printable ASCII is allowed"},
		"path":        {"/srv/addons.git", "want https://host/path"},
		"empty":       {"", "want https://host/path"},
		"userinfo":    {"https://ana:" + canary + "@git.example/addons.git", "https://git.example/addons.git has credentials in it; put them in a Secret"},
		"token":       {"https://" + canary + "@git.example/addons.git", "https://git.example/addons.git has credentials in it"},
		"query":       {"https://git.example/addons.git?token=" + canary, "https://git.example/addons.git has a query or fragment"},
		"fragment":    {"https://git.example/addons.git#main", "https://git.example/addons.git has a query or fragment"},
		"option":      {"https://-oProxyCommand=sh/addons.git", "has no usable host"},
		"a zone":      {"http://[fe80::1%25lo]:17001/a", "has an address with a zone; use a host name"},
		"short IPv6":  {"git@[fe80::1%lo]:a/b.git", "want https://host/path, ssh://user@host/path or user@host:path"},
		"no host":     {"https:///addons.git", "has no usable host"},
		"no path":     {"https://git.example/", "names a host but no repository"},
		"dots":        {"https://git.example/a/../b", "has .. in its path"},
		"newline":     {"https://git.example/a\nHost: x", "only printable ASCII is allowed, found another character at position 22"},
		"NUL":         {"https://git.example/a\x00", "only printable ASCII is allowed"},
		"IDN":         {"https://gít.example/addons.git", "write an international host name in its xn-- form"},
		"bad port":    {"https://git.example:port/" + canary, "cannot be parsed"},
		"bad escape":  {"https://ana:" + canary + "@git.example/%zz", "cannot be parsed"},
		"too long":    {"https://git.example/" + strings.Repeat("a", maxURLLength), "longer than 2048 characters"},
		"leading gap": {" https://git.example/a", "only printable ASCII is allowed, found another character at position 1"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, err := parseURL(c.in)
			if c.want == "" {
				if err != nil || endpoint.Password != "" || endpoint.User != "" {
					t.Errorf("got %v and %v", endpoint, err)
				}
				return
			}
			if !errors.Is(err, ErrInvalidURL) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an invalid URL with %q", err, c.want)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://git.example/a.git":               "https://git.example/a.git",
		"https://u:p@git.example/a.git?t=1#f":     "https://git.example/a.git",
		"https://u:p/q@git.example/a.git":         "https://[redacted]/git.example/a.git",
		"git@git.example:a.git":                   "git.example:a.git",
		"github.com/org/repo?ref=main":            "github.com/org/repo",
		"https://git.example/a\r\nHost: evil\x1b": "https://git.example/a??Host: evil?",
		"": "",
	} {
		if got := redactURL(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

const (
	someCommit = "0123456789abcdef0123456789abcdef01234567"
	someDigest = someCommit + "0123456789abcdef01234567"
)

func TestParseRevision(t *testing.T) {
	for in, want := range map[string]Revision{
		"main@sha1:" + someCommit:                            {Ref: "main", Commit: someCommit},
		"refs/pull/1/head@sha1:" + someCommit:                {Ref: "refs/pull/1/head", Commit: someCommit},
		"a@b@sha1:" + someCommit:                             {Ref: "a@b", Commit: someCommit},
		"sha1:" + someCommit:                                 {Commit: someCommit},
		"1.2.0@sha256:" + someDigest:                         {Ref: "1.2.0", Commit: someDigest, Digest: someDigest},
		"1.2.0@sha256:" + someDigest + "+sha1:" + someCommit: {Ref: "1.2.0", Commit: someCommit, Digest: someDigest},
		"sha256:" + someDigest + "+sha1:" + someCommit:       {Commit: someCommit, Digest: someDigest},
	} {
		got, err := ParseRevision(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", in, diff)
		}
		if got.String() != in {
			t.Errorf("%s comes back as %s", in, got)
		}
	}
	for _, in := range []string{
		"", "main", "main@" + someCommit, "@sha1:" + someCommit, "main@sha1:" + someCommit[:39],
		"main@sha1:" + strings.ToUpper(someCommit), "main@sha256:" + someCommit, "main@sha1:" + someCommit + "0", "sha1:",
		"main@sha1:" + someCommit + "+sha1:" + someCommit, "1.2.0@sha256:" + someDigest + "+sha1:" + someCommit[:39], "1.2.0@sha256:" + someDigest + "+sha256:" + someDigest,
	} {
		if got, err := ParseRevision(in); !errors.Is(err, ErrInvalidRevision) {
			t.Errorf("%q: got %v and %v, want an invalid revision", in, got, err)
		}
	}
}

func FuzzParseRevision(f *testing.F) {
	for _, s := range []string{"main@sha1:" + someCommit, "sha1:" + someCommit, "v1@sha256:" + someDigest + "+sha1:" + someCommit, "a@sha1:b@sha1:" + someCommit, "@", "", "sha256:" + someDigest} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRevision(s)
		if err != nil {
			if r != (Revision{}) {
				t.Errorf("an error and a revision: %v", r)
			}
			return
		}
		if r.String() != s {
			t.Errorf("%q comes back as %q", s, r)
		}
		if !commitPattern.MatchString(r.Commit) && r.Commit != r.Digest {
			t.Errorf("%q gives the commit %q", s, r.Commit)
		}
	})
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"https://git.example/a", "ssh://x/y@z", "git@host:path", "a?b#c", "://@/@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		// Credentials in their usual place never show, whatever follows them.
		if got := redactURL("https://ana:" + canary + "@" + rest); strings.Contains(got, canary) && !strings.Contains(rest, canary) {
			t.Errorf("%q shows a secret: %q", rest, got)
		}
		if got := redactURL(rest); strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("%q is more than a line of text", got)
		}
	})
}

func TestSubject(t *testing.T) {
	for in, want := range map[string]string{
		"one\n\nbody":            "one",
		"\n  padded \r\nmore":    "padded",
		"bell\x07":               "bell?",
		strings.Repeat("é", 150): strings.Repeat("é", 100),
		"":                       "",
	} {
		if got := headline(in); got != want {
			t.Errorf("headline(%q) = %q, want %q", in, got, want)
		}
	}
}
