package forge

import (
	"context"
	"fmt"
	"slices"
)

// Log returns every stored status, oldest first.
func (f *Forge) Log() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.entries)
}

// Statuses returns the stored statuses of a commit, oldest first.
func (f *Forge) Statuses(sha string) []Entry {
	return slices.DeleteFunc(f.Log(), func(e Entry) bool { return e.SHA != sha })
}

// Latest returns the newest status of a context, and false if there is none.
func (f *Forge) Latest(sha, context string) (Entry, bool) {
	for _, e := range slices.Backward(f.Log()) {
		if e.SHA == sha && e.Context == context {
			return e, true
		}
	}
	return Entry{}, false
}

// Requests returns how many API requests came in, refused ones included.
func (f *Forge) Requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// WaitFor returns when the log satisfies the condition, looking again after every
// stored status. The error is the context's, with the last entry for the reader.
func (f *Forge) WaitFor(ctx context.Context, satisfied func(log []Entry) bool) error {
	for {
		f.mu.Lock()
		entries, changed := slices.Clone(f.entries), f.changed
		f.mu.Unlock()
		if satisfied(entries) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cannot see the expected statuses among %d: %w; the last: %s", len(entries), ctx.Err(), last(entries))
		}
	}
}

// last describes the newest entry.
func last(entries []Entry) string {
	if len(entries) == 0 {
		return "none"
	}
	e := entries[len(entries)-1]
	return fmt.Sprintf("%.10s %s %s %q", e.SHA, e.Context, e.State, e.Description)
}

// store appends a status and wakes waiting calls. The lock is held.
func (f *Forge) store(e Entry) Entry {
	e.Sequence, e.Time = int64(len(f.entries)+1), f.clock()
	f.entries = append(f.entries, e)
	close(f.changed)
	f.changed = make(chan struct{})
	return e
}

// newest returns the statuses of a commit, newest first. The lock is held.
func (f *Forge) newest(repository, sha string) []Entry {
	var out []Entry
	for _, e := range slices.Backward(f.entries) {
		if e.Repository == repository && e.SHA == sha {
			out = append(out, e)
		}
	}
	return out
}
