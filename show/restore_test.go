package show

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// TestTheCommandThatRestoresGit_RemovesAddedFilesAndKeepsThePolicy: the bad commit changes a file, deletes one and adds
// one, and a later commit changes the policy. After the command, the directory of the add-on has the content of the good
// commit and the newest policy, and other directories are as they were.
func TestTheCommandThatRestoresGit_RemovesAddedFilesAndKeepsThePolicy(t *testing.T) {
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	repo, err := server.Create("fleet")
	if err != nil {
		t.Fatal(err)
	}
	commit := func(sha string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return sha
	}
	good := commit(repo.Commit("v1", map[string]string{"hello/a.yaml": "v1", "hello/b.yaml": "v1", "hello/policy/addonrollout.yaml": "onFailure: Pause", "other/a.yaml": "v1"}))
	commit(repo.Remove("v2", "hello/b.yaml"))
	bad := commit(repo.Commit("v2", map[string]string{"hello/a.yaml": "v2", "hello/manifests/extra.yaml": "bad", "other/a.yaml": "v2"}))
	blocked := commit(repo.Commit("block v2", map[string]string{"hello/policy/addonrollout.yaml": "blocked", "hello/addonrollout.yaml": "gates"}))

	r := failed()
	r.Status.Stable = &v1alpha1.Target{Commit: "main@sha1:" + good}
	restore := strings.ReplaceAll(Next("addonflow", r)[0].Command, "PATH", "hello")
	const as = "git -c user.name=ana -c user.email=ana@example.com commit -qm restored"
	run := func(line string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-ec", line)
		c.Dir = repo.Clone()
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	run(restore + " && " + as)
	if left := run("git status --porcelain; git diff --name-status " + good + " HEAD -- hello ':!*addonrollout.*'; git diff --name-status " + bad + " HEAD -- other; git diff --name-status " + blocked + " HEAD -- '*addonrollout.yaml'"); left != "" {
		t.Errorf("after %s:\n%s", restore, left)
	}
}
