package commitstatus

import (
	"net/url"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		kind   string
		want   string
		err    string
	}{
		"GiteaWeb":        {"The page of the repository.", "https://gitea.example/fleet/addons", "gitea", "https://gitea.example/api/v1/repos/fleet/addons", ""},
		"GiteaClone":      {"The clone address.", "https://gitea.example/fleet/addons.git", "gitea", "https://gitea.example/api/v1/repos/fleet/addons", ""},
		"GiteaSubpath":    {"A Gitea below a path.", "https://example.com/git/fleet/addons/", "gitea", "https://example.com/git/api/v1/repos/fleet/addons", ""},
		"GiteaAPI":        {"The API's own address.", "https://gitea.example/api/v1/repos/fleet/addons", "gitea", "https://gitea.example/api/v1/repos/fleet/addons", ""},
		"GiteaPort":       {"A local forge.", "http://127.0.0.1:3000/fleet/addons", "gitea", "http://127.0.0.1:3000/api/v1/repos/fleet/addons", ""},
		"IPv6":            {"An IPv6 address.", "http://[::1]:3000/fleet/addons", "gitea", "http://[::1]:3000/api/v1/repos/fleet/addons", ""},
		"GitHub":          {"github.com has its API elsewhere.", "https://GitHub.com/fleet/addons", "github", "https://api.github.com/repos/fleet/addons", ""},
		"GitHubAPI":       {"The API's own address.", "https://api.github.com/repos/fleet/addons", "github", "https://api.github.com/repos/fleet/addons", ""},
		"GitHubPlain":     {"github.com never gets the token in the clear.", "http://github.com/fleet/addons", "github", "https://api.github.com/repos/fleet/addons", ""},
		"Enterprise":      {"Enterprise Server.", "https://ghe.example/fleet/addons", "github", "https://ghe.example/api/v3/repos/fleet/addons", ""},
		"EnterpriseAPI":   {"Its API's own address.", "https://ghe.example/api/v3/repos/fleet/addons", "github", "https://ghe.example/api/v3/repos/fleet/addons", ""},
		"LookalikeHost":   {"Another host is another host.", "https://github.com.evil.example/fleet/addons", "github", "https://github.com.evil.example/api/v3/repos/fleet/addons", ""},
		"UserInfo":        {"Credentials are refused, and not repeated.", "https://me:hunter2@gitea.example/fleet/addons", "gitea", "", "cannot use the address: it contains user information; the token belongs into the Secret"},
		"UserInfoBroken":  {"Nor when the URL cannot be parsed.", "https://me:hunter2@gitea.example:x/fleet/addons", "gitea", "", "cannot use the address: it is not a URL"},
		"SSH":             {"Statuses go over http.", "ssh://git@gitea.example/fleet/addons", "gitea", "", "cannot use the address: it is neither https nor http"},
		"SCP":             {"scp-like addresses are no URLs.", "git@gitea.example:fleet/addons", "gitea", "", "cannot use the address: it is not a URL"},
		"NoScheme":        {"A scheme is needed.", "gitea.example/fleet/addons", "gitea", "", "cannot use the address: it is neither https nor http"},
		"NoHost":          {"A host is needed.", "https:///fleet/addons", "gitea", "", "cannot use the address: it names no host"},
		"NoRepository":    {"Owner and repository are needed.", "https://gitea.example/fleet", "gitea", "", "cannot use the address: it names no owner and repository"},
		"OnlyGit":         {"A suffix is not a name.", "https://gitea.example/fleet/.git", "gitea", "", "cannot use the address: it names no repository"},
		"Query":           {"No query.", "https://gitea.example/fleet/addons?token=hunter2", "gitea", "", "cannot use the address: it has a query or a fragment"},
		"EmptyQuery":      {"Not even an empty one.", "https://gitea.example/fleet/addons?", "gitea", "", "cannot use the address: it has a query or a fragment"},
		"Fragment":        {"No fragment.", "https://gitea.example/fleet/addons#x", "gitea", "", "cannot use the address: it has a query or a fragment"},
		"Escaped":         {"No escapes: two readers could read them differently.", "https://gitea.example/fleet%2Fx/addons", "gitea", "", "cannot use the address: its path is escaped"},
		"DotDot":          {"No steps up.", "https://gitea.example/a/../addons", "gitea", "", "cannot use the address: its path must be made of letters, digits, '.', '_' and '-' and end in owner and repository"},
		"DoubleSlash":     {"No empty segments.", "https://gitea.example/fleet//addons", "gitea", "", "cannot use the address: its path must be made of letters, digits, '.', '_' and '-' and end in owner and repository"},
		"PortTooHigh":     {"A port that exists.", "https://gitea.example:70000/fleet/addons", "gitea", "", "cannot use the address: its port is out of range"},
		"EmptyPort":       {"A port, if there is a colon.", "https://gitea.example:/fleet/addons", "gitea", "", "cannot use the address: its port is empty"},
		"BadHost":         {"A host that exists.", "https://gitea;example/fleet/addons", "gitea", "", "cannot use the address: it names no host"},
		"EnterpriseCloud": {"Data residency has its API on a host of its own.", "https://acme.ghe.com/fleet/addons", "github", "https://api.acme.ghe.com/repos/fleet/addons", ""},
		"GitLab":          {"The project.", "https://gitlab.example/fleet/addons", "gitlab", "https://gitlab.example/api/v4/projects/fleet%2Faddons", ""},
		"GitLabSubgroup":  {"A project in a subgroup.", "https://gitlab.example/a/b/c.git", "gitlab", "https://gitlab.example/api/v4/projects/a%2Fb%2Fc", ""},
		"GitLabBelow":     {"A GitLab below a path.", "https://example.com/git/api/v4/projects/a/b", "gitlab", "https://example.com/git/api/v4/projects/a%2Fb", ""},
		"GitLabGroup":     {"A group is not a project.", "https://gitlab.example/fleet", "gitlab", "", "cannot use the address: it names no group and project"},
		"Bitbucket":       {"The page.", "http://bitbucket.org/team/fleet", "bitbucket", "https://api.bitbucket.org/2.0/repositories/team/fleet", ""},
		"BitbucketAPI":    {"The API's own address.", "https://api.bitbucket.org/2.0/repositories/team/fleet", "bitbucket", "https://api.bitbucket.org/2.0/repositories/team/fleet", ""},
		"BitbucketDeep":   {"More than a repository.", "https://bitbucket.org/team/fleet/src", "bitbucket", "", "cannot use the address: it names no owner and repository"},
		"ServerPage":      {"A page below the repository.", "https://bb.example/projects/OPS/repos/fleet/browse", "bitbucketserver", "https://bb.example/rest/api/latest/projects/OPS/repos/fleet", ""},
		"ServerBelow":     {"A Bitbucket below a path.", "https://example.com/bb/users/jane/repos/fleet", "bitbucketserver", "https://example.com/bb/rest/api/latest/projects/~jane/repos/fleet", ""},
		"ServerAPI":       {"The API's own address.", "https://example.com/bb/rest/api/1.0/projects/OPS/repos/fleet", "bitbucketserver", "https://example.com/bb/rest/api/latest/projects/OPS/repos/fleet", ""},
		"ServerOther":     {"Not a repository.", "https://bb.example/OPS/fleet", "bitbucketserver", "", "cannot use the address: its path does not end in projects/KEY/repos/NAME or scm/KEY/NAME"},
		"Azure":           {"Services.", "https://dev.azure.com/org/proj/_git/fleet", "azuredevops", "https://dev.azure.com/org/proj/_apis/git/repositories/fleet", ""},
		"AzureOld":        {"The older host.", "https://org.visualstudio.com/DefaultCollection/proj/_git/fleet", "azuredevops", "https://dev.azure.com/org/proj/_apis/git/repositories/fleet", ""},
		"AzureShort":      {"The project's own repository.", "https://dev.azure.com/org/_git/fleet", "azuredevops", "https://dev.azure.com/org/fleet/_apis/git/repositories/fleet", ""},
		"AzureOther":      {"Not a repository.", "https://dev.azure.com/org/proj", "azuredevops", "", "cannot use the address: its path does not end in PROJECT/_git/REPOSITORY"},
		"Empty":           {"Nothing is not an address.", "", "gitea", "", "cannot use the address: it is neither https nor http"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			repo, err := parseAddress(c.in, providers()[c.kind].address)
			if err != nil {
				if err.Error() != c.err {
					t.Errorf("%s\ngot error %q, want %q", c.reason, err, c.err)
				}
				return
			}
			if got := repo.endpoint(); got != c.want || c.err != "" {
				t.Errorf("%s\ngot %q, want %q, error %q", c.reason, got, c.want, c.err)
			}
		})
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{
		"https://gitea.example/fleet/addons", "http://127.0.0.1:3000/a/b.git", "https://api.github.com/repos/a/b",
		"https://me:hunter2@x/a/b", "https://x/a/%2e%2e/b", "https://x/../a/b", "HTTPS://X/A/B", "http://[::1%25eth0]:80/a/b",
		"http://x/a/.git.git",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, name := range []string{"gitea", "github"} {
			repo, err := parseAddress(raw, providers()[name].address)
			if err != nil {
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: the error repeats the address: %v", name, err)
				}
				continue
			}
			in, errIn := url.Parse(raw)
			out, errOut := url.Parse(repo.endpoint("statuses", strings.Repeat("a", 40)))
			if errIn != nil || errOut != nil {
				t.Fatalf("%s: %q became %q: %v, %v", name, raw, repo.endpoint(), errIn, errOut)
			}
			if !sameForge(in, out) || out.User != nil || out.RawQuery != "" || out.Fragment != "" || strings.Contains(out.Path, "..") && !strings.Contains(raw, "..") {
				t.Errorf("%s: %q became %q", name, raw, out)
			}
			if again, err := parseAddress(repo.endpoint(), providers()[name].address); err != nil || again.endpoint() != repo.endpoint() {
				t.Errorf("%s: %q parsed twice: %+v, then %+v, %v", name, raw, repo, again, err)
			}
		}
	})
}

// sameForge reports whether both are on the same host and scheme; github.com's API has a host
// of its own.
func sameForge(in, out *url.URL) bool {
	host := strings.ToLower(in.Host)
	if out.Host == "api.github.com" {
		return host == "github.com" || host == "www.github.com" || host == "api.github.com"
	}
	return host == out.Host && in.Scheme == out.Scheme
}

// TestRepositoryHasOneName: every form of a repository's address gives the same name.
func TestRepositoryHasOneName(t *testing.T) {
	cases := map[string]struct{ one, other, want string }{
		"DotGit":     {"https://gitea.example.com/team/fleet", "https://gitea.example.com/team/fleet.git", "gitea.example.com/team/fleet"},
		"Slash":      {"https://gitea.example.com/team/fleet/", "https://gitea.example.com/team/fleet.git/", "gitea.example.com/team/fleet"},
		"Case":       {"https://Gitea.Example.com/Team/fleet", "https://gitea.example.com/team/Fleet", "gitea.example.com/team/fleet"},
		"API":        {"https://gitea.example.com/api/v1/repos/team/fleet", "https://gitea.example.com/team/fleet", "gitea.example.com/team/fleet"},
		"Port":       {"https://gitea.example.com:443/team/fleet", "http://gitea.example.com:80/team/fleet", "gitea.example.com/team/fleet"},
		"RootedHost": {"https://gitea.example.com./team/fleet", "https://gitea.example.com/team/fleet", "gitea.example.com/team/fleet"},
		"GitHub":     {"https://www.github.com/team/fleet", "https://api.github.com/repos/team/fleet", "github.com/team/fleet"},
		"Below":      {"https://example.com/git/team/fleet", "https://example.com/git/api/v1/repos/team/fleet", "example.com/git/team/fleet"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, address := range []string{c.one, c.other} {
				if got, err := Repository("gitea", address); err != nil || got != c.want {
					t.Errorf("%s is %q, %v; want %q", address, got, err, c.want)
				}
			}
		})
	}
	for provider, forms := range map[string][]string{
		"gitlab":          {"https://gitlab.example/Team/infra/fleet", "https://gitlab.example/api/v4/projects/team/infra/fleet"},
		"bitbucket":       {"https://bitbucket.org/team/fleet.git", "https://api.bitbucket.org/2.0/repositories/team/fleet"},
		"bitbucketserver": {"https://bb.example/scm/ops/fleet.git", "https://bb.example/projects/OPS/repos/fleet/browse"},
		"azuredevops":     {"https://dev.azure.com/org/proj/_git/fleet", "https://org.visualstudio.com/proj/_git/fleet"},
	} {
		one, errOne := Repository(provider, forms[0])
		other, errOther := Repository(provider, forms[1])
		if one == "" || one != other || errOne != nil || errOther != nil {
			t.Errorf("%s: %q, %v and %q, %v", provider, one, errOne, other, errOther)
		}
	}
	for _, one := range []string{"https://gitea.example.com:3000/team/fleet", "https://gitea.example.com/git/team/fleet", "https://gitea.example.com/team/fleet2"} {
		if got, err := Repository("gitea", one); err != nil || got == "gitea.example.com/team/fleet" {
			t.Errorf("%s is another repository, got %q, %v", one, got, err)
		}
	}
	if _, err := Repository("gitea", "https://user:word@gitea.example.com/team/fleet"); err == nil || strings.Contains(err.Error(), "word") {
		t.Errorf("a refused address names no repository, and is not repeated: %v", err)
	}
}

// TestCommitPage_OfEveryForge: each row says where its forge shows a commit, whichever form of the address is given.
func TestCommitPage_OfEveryForge(t *testing.T) {
	const sha = "1111111111111111111111111111111111111111"
	pages := map[string]struct{ address, want string }{
		"azuredevops":     {"https://org.visualstudio.com/proj/_git/fleet", "https://dev.azure.com/org/proj/_git/fleet/commit/"},
		"bitbucket":       {"https://api.bitbucket.org/2.0/repositories/team/fleet", "https://bitbucket.org/team/fleet/commits/"},
		"bitbucketserver": {"https://bb.example/scm/ops/fleet.git", "https://bb.example/projects/ops/repos/fleet/commits/"},
		"forgejo":         {"https://forgejo.example/team/fleet.git", "https://forgejo.example/team/fleet/commit/"},
		"gitea":           {"https://example.com/git/api/v1/repos/team/fleet", "https://example.com/git/team/fleet/commit/"},
		"github":          {"https://api.github.com/repos/team/fleet", "https://github.com/team/fleet/commit/"},
		"githubchecks":    {"https://github.example/api/v3/repos/team/fleet", "https://github.example/team/fleet/commit/"},
		"gitlab":          {"https://example.com/below/api/v4/projects/group/fleet", "https://example.com/below/group/fleet/-/commit/"},
	}
	for name := range providers() {
		if pages[name].address == "" {
			t.Errorf("%s has no row in this table", name)
			continue
		}
		if got, err := CommitPage(name, pages[name].address, sha); err != nil || got != pages[name].want+sha {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if got, err := CommitPage("gitea", "javascript://gitea.example/team/fleet", sha); err == nil {
		t.Errorf("got %q", got)
	}
}
