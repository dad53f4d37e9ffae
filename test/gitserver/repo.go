package gitserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultBranch is what a new repository's HEAD points at.
const DefaultBranch = "main"

// Words of git's command line.
const (
	quietly   = "--quiet"
	configure = "config"
)

// ErrPath is returned for a file name that is absolute or leaves the clone.
var ErrPath = errors.New("path leaves the repository")

// Permission switches what a repository's server side offers.
type Permission string

const (
	// Deny is git's own default.
	Deny Permission = "false"
	// Allow turns an offer on.
	Allow Permission = "true"
)

// Repo is one bare repository and the clone in which its commits are made.
// Every method that changes something pushes it before returning. Methods may
// be called concurrently.
type Repo struct {
	mu     sync.Mutex
	git    git
	url    string
	bare   string
	clone  string
	branch string
	now    func() time.Time
}

// Create makes an empty repository, served as <URL>/<name>.git. Its HEAD is
// DefaultBranch, which exists from the first commit on. The name may have
// slashes ("org/fleet").
func (s *Server) Create(name string) (*Repo, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("cannot create repository %q: %w", name, ErrPath)
	}
	r := &Repo{
		git:    s.git,
		url:    s.url + "/" + name + ".git",
		bare:   filepath.Join(s.dir, name+".git"),
		clone:  filepath.Join(s.dir, "clones", name),
		branch: DefaultBranch,
		now:    s.opts.Now,
	}
	if r.now == nil {
		r.now = minuteClock()
	}
	for _, args := range [][]string{
		{"init", quietly, "--bare", "--initial-branch=" + DefaultBranch, r.bare},
		{"-C", r.bare, configure, "gc.auto", "0"},
		{"-C", r.bare, configure, "http.receivepack", "false"},
		{"-C", r.bare, configure, "receive.denyDeleteCurrent", "ignore"},
		{"init", quietly, "--initial-branch=" + DefaultBranch, r.clone},
		{"-C", r.clone, configure, "gc.auto", "0"},
		{"-C", r.clone, "remote", "add", "origin", r.bare},
	} {
		if _, err := r.git.run(s.dir, args...); err != nil {
			return nil, fmt.Errorf("cannot create repository %q: %w", name, err)
		}
	}
	return r, nil
}

// minuteClock makes hashes repeatable and, unlike a standing clock, keeps two
// empty commits apart.
func minuteClock() func() time.Time {
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Minute)
		return at
	}
}

// URL is where clients fetch from.
func (r *Repo) URL() string { return r.url }

// Dir is the bare repository.
func (r *Repo) Dir() string { return r.bare }

// Clone is the working clone. A user of the demo may commit and push there.
func (r *Repo) Clone() string { return r.clone }

// Commit writes files (path to content) and commits them on the current
// branch. Without a change the commit is empty. It returns the full hash.
func (r *Repo) Commit(message string, files map[string]string) (string, error) {
	return r.commit(message, func() error {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if err := r.write(path, files[path]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Remove deletes paths (files or directories) and commits.
func (r *Repo) Remove(message string, paths ...string) (string, error) {
	return r.commit(message, func() error {
		_, err := r.run(append([]string{"rm", quietly, "-r", "--"}, paths...)...)
		return err
	})
}

// Symlink commits a symbolic link at path. The target need not exist.
func (r *Repo) Symlink(message, path, target string) (string, error) {
	return r.commit(message, func() error {
		full, err := r.place(path)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, full); err != nil {
			return err
		}
		_, err = r.run("add", "--", path)
		return err
	})
}

// Submodule commits a submodule at path: a .gitmodules entry for url and a
// gitlink to this repository's own head. Nothing is fetched from url.
func (r *Repo) Submodule(message, path, url string) (string, error) {
	return r.commit(message, func() error {
		if _, err := r.place(path); err != nil {
			return err
		}
		head, err := r.run("rev-parse", "HEAD")
		if err != nil {
			return err
		}
		section := "submodule." + path
		for _, args := range [][]string{
			{configure, "--file", ".gitmodules", section + ".path", path},
			{configure, "--file", ".gitmodules", section + ".url", url},
			{"add", "--", ".gitmodules"},
			{"update-index", "--add", "--cacheinfo", "160000," + head + "," + path},
		} {
			if _, err := r.run(args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Revert makes a real `git revert` of sha on the current branch.
func (r *Repo) Revert(sha string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.follow(); err != nil {
		return "", err
	}
	if _, err := r.git.runWith(identity(r.now()), r.clone, "revert", "--no-edit", sha); err != nil {
		_, aborted := r.run("revert", "--abort")
		return "", fmt.Errorf("cannot revert: %w", errors.Join(err, aborted))
	}
	return r.push()
}

// ForcePush moves the current branch to sha, on the server too.
func (r *Repo) ForcePush(sha string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.run("reset", quietly, "--hard", sha); err != nil {
		return fmt.Errorf("cannot move %s: %w", r.branch, err)
	}
	if _, err := r.run("push", quietly, "--force", "origin", r.branch); err != nil {
		return fmt.Errorf("cannot force-push: %w", err)
	}
	return nil
}

// Head returns the hash of the current branch as the server has it.
func (r *Repo) Head() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, err := r.git.run(r.bare, "rev-parse", "--verify", "refs/heads/"+r.branch)
	if err != nil {
		return "", fmt.Errorf("cannot read the head: %w", err)
	}
	return head, nil
}

// AllowSHAInWant lets clients of protocol 0 and 1 fetch reachable commits by
// hash (uploadpack.allowReachableSHA1InWant). Protocol 2 has no such check.
func (r *Repo) AllowSHAInWant(p Permission) error {
	return r.configure("uploadpack.allowReachableSHA1InWant", p)
}

// AllowFilter lets clients ask for partial clones (uploadpack.allowFilter).
func (r *Repo) AllowFilter(p Permission) error {
	return r.configure("uploadpack.allowFilter", p)
}

func (r *Repo) configure(key string, p Permission) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.git.run(r.bare, configure, key, string(p)); err != nil {
		return fmt.Errorf("cannot configure the repository: %w", err)
	}
	return nil
}

// commit stages with the given function, commits and pushes.
func (r *Repo) commit(message string, stage func() error) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.follow(); err != nil {
		return "", err
	}
	if err := stage(); err != nil {
		// Half of the change must not get into the next commit. Before the first commit there
		// is nothing to reset to, and nothing is lost.
		_, _ = r.run("reset", quietly, "--hard")
		return "", fmt.Errorf("cannot commit %q: %w", message, err)
	}
	_, err := r.git.runWith(identity(r.now()), r.clone, "commit", quietly, "--allow-empty", "--cleanup=verbatim", "-m", message)
	if err != nil {
		return "", fmt.Errorf("cannot commit %q: %w", message, err)
	}
	return r.push()
}

// follow pulls what others pushed to the branch meanwhile.
func (r *Repo) follow() error {
	upstream, err := r.git.run(r.bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+r.branch)
	if err != nil || upstream == "" {
		return err
	}
	if head, err := r.run("rev-parse", "HEAD"); err == nil && head == upstream {
		return nil
	}
	if _, err := r.run("pull", quietly, "--ff-only", "origin", r.branch); err != nil {
		return fmt.Errorf("cannot take up what was pushed: %w", err)
	}
	return nil
}

func (r *Repo) push() (string, error) {
	if _, err := r.run("push", quietly, "origin", r.branch); err != nil {
		return "", fmt.Errorf("cannot push: %w", err)
	}
	return r.run("rev-parse", "HEAD")
}

// write stages one file. Only named paths are ever staged, so that other files in a demo's
// clone are not committed.
func (r *Repo) write(path, content string) error {
	full, err := r.place(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		return err
	}
	_, err = r.run("add", "--force", "--", path)
	return err
}

// place returns where a path is in the clone and makes room for it.
func (r *Repo) place(path string) (string, error) {
	if !filepath.IsLocal(path) || strings.Split(filepath.ToSlash(path), "/")[0] == ".git" {
		return "", fmt.Errorf("%q: %w", path, ErrPath)
	}
	full := filepath.Join(r.clone, path)
	return full, os.MkdirAll(filepath.Dir(full), 0o755)
}

func (r *Repo) run(args ...string) (string, error) { return r.git.run(r.clone, args...) }
