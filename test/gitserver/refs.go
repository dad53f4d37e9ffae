package gitserver

import "fmt"

// Branch switches to a branch, made at the current head if there is none of
// that name. Later commits go there.
func (r *Repo) Branch(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	args := []string{"checkout", quietly, name}
	if _, err := r.run("rev-parse", "--verify", quietly, "refs/heads/"+name); err != nil {
		args = []string{"checkout", quietly, "-b", name}
	}
	if _, err := r.run(args...); err != nil {
		return fmt.Errorf("cannot switch to branch %q: %w", name, err)
	}
	r.branch = name
	// Before the first commit there is nothing to push yet.
	if _, err := r.run("rev-parse", "--verify", quietly, "HEAD"); err != nil {
		return nil
	}
	if _, err := r.run("push", quietly, "origin", name); err != nil {
		return fmt.Errorf("cannot push branch %q: %w", name, err)
	}
	return nil
}

// DeleteBranch removes a branch from the server. The clone keeps its own.
func (r *Repo) DeleteBranch(name string) error { return r.delete("refs/heads/" + name) }

// Tag sets a lightweight tag at the current head, moving it if it exists.
func (r *Repo) Tag(name string) error {
	return r.tag(name, "tag", "--force", name)
}

// AnnotatedTag sets an annotated tag at the current head, replacing one.
func (r *Repo) AnnotatedTag(name, message string) error {
	return r.tag(name, "tag", "--force", "--annotate", "--message", message, name)
}

// DeleteTag removes a tag from the server.
func (r *Repo) DeleteTag(name string) error { return r.delete("refs/tags/" + name) }

func (r *Repo) tag(name string, args ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.git.runWith(identity(r.now()), r.clone, args...); err != nil {
		return fmt.Errorf("cannot tag %q: %w", name, err)
	}
	if _, err := r.run("push", quietly, "--force", "origin", "refs/tags/"+name); err != nil {
		return fmt.Errorf("cannot push tag %q: %w", name, err)
	}
	return nil
}

func (r *Repo) delete(ref string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.run("push", quietly, "origin", "--delete", ref); err != nil {
		return fmt.Errorf("cannot delete %s: %w", ref, err)
	}
	return nil
}

// SetRef makes a reference of the server, such as refs/pull/1/head, lead to a commit that the server has.
func (r *Repo) SetRef(name, sha string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.git.run(r.bare, "update-ref", name, sha); err != nil {
		return fmt.Errorf("cannot set %s: %w", name, err)
	}
	return nil
}
