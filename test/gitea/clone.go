package gitea

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Clone is a user's clone of a repository.
type Clone struct {
	dir string
	env []string
	// sign are git's flags for commits that are signed.
	sign []string
}

// NewClone begins a clone that pushes to a repository over HTTPS, as a user with a password or a
// token.
func (s *Server) NewClone(ctx context.Context, dir, repository, user, secret string) (*Clone, error) {
	address := fmt.Sprintf("https://%s:%s@%s:%d/%s.git", user, secret, Host, s.web, repository)
	return newClone(ctx, dir, address, "GIT_SSL_CAINFO="+s.path("cert.pem"))
}

// NewSSHClone begins a clone that pushes to a repository over SSH, with OpenSSH and a private key.
func (s *Server) NewSSHClone(ctx context.Context, dir, repository, key string) (*Clone, error) {
	line, err := s.KnownHosts()
	if err != nil {
		return nil, err
	}
	known := s.path("known_hosts")
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		return nil, err
	}
	return newClone(ctx, dir, s.SSHURL(repository),
		"GIT_SSH_COMMAND=ssh -F none -i "+key+" -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile="+known)
}

func newClone(ctx context.Context, dir, address string, env ...string) (*Clone, error) {
	c := &Clone{dir: dir, env: append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ana Example", "GIT_AUTHOR_EMAIL=ana@example.com",
		"GIT_COMMITTER_NAME=Ana Example", "GIT_COMMITTER_EMAIL=ana@example.com",
	}, env...)}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := c.Git(ctx, "init", "--quiet", "--initial-branch=main"); err != nil {
		return nil, err
	}
	_, err := c.Git(ctx, "remote", "add", "origin", address)
	return c, err
}

// SignWith signs the commits that follow with an SSH key; "": they are not signed.
func (c *Clone) SignWith(key string) {
	c.sign = nil
	if key != "" {
		c.sign = []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "-c", "commit.gpgsign=true"}
	}
}

// Commit commits files (path to content; "": removed) without pushing, and returns the commit.
func (c *Clone) Commit(ctx context.Context, message string, files map[string]string) (string, error) {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		full := filepath.Join(c.dir, path)
		if files[path] == "" {
			if err := os.Remove(full); err != nil {
				return "", err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(full, []byte(files[path]), 0o644); err != nil {
			return "", err
		}
	}
	if _, err := c.Git(ctx, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := c.Git(ctx, slices.Concat(c.sign, []string{"commit", "--quiet", "--allow-empty", "-m", message})...); err != nil {
		return "", err
	}
	return c.Git(ctx, "rev-parse", "HEAD")
}

// Git runs a git command in the clone, and returns what it prints. The error has the output of git, including the
// messages of Gitea.
func (c *Clone) Git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Env = c.dir, c.env
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
