package gitserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandTimeout bounds one local git command, so that a hanging command does not hang a test
// run.
const commandTimeout = 2 * time.Minute

// git runs the git command away from the machine's and the user's
// configuration.
type git struct{ home string }

// isolation is the environment of every git process. Other Git variables of the caller's
// environment, such as GIT_DIR inside a hook, are dropped.
func (g git) isolation() []string {
	return []string{
		"HOME=" + g.home,
		"XDG_CONFIG_HOME=" + filepath.Join(g.home, ".config"),
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
	}
}

func identity(at time.Time) []string {
	date := at.UTC().Format(time.RFC3339)
	return []string{
		"GIT_AUTHOR_NAME=Ana Example", "GIT_AUTHOR_EMAIL=ana@example.com", "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=Ana Example", "GIT_COMMITTER_EMAIL=ana@example.com", "GIT_COMMITTER_DATE=" + date,
	}
}

func (g git) run(dir string, args ...string) (string, error) {
	return g.runWith(nil, dir, args...)
}

// runWith returns standard output without its last newline. The error carries
// what git said.
func (g git) runWith(env []string, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH")}, g.isolation()...), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}
