package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/addonflow/addonflow/test/hub"
)

// Object is a stored version of an object.
type Object struct {
	Revision int64
	// Content is the object, or nil if its kind is not stored as JSON.
	Content map[string]any
}

// History is everything that a hub stored so far.
type History struct {
	cancel  context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	changes []hub.Change
	objects map[string]Object
	until   int64
	changed chan struct{} // closed, and replaced, at every change
	failure error
}

// Follow reads a hub's history from its first revision on, until Stop.
func Follow(h *hub.Hub) *History {
	ctx, cancel := context.WithCancel(context.Background())
	all := &History{cancel: cancel, stopped: make(chan struct{}), objects: map[string]Object{}, changed: make(chan struct{})}
	go func() {
		defer close(all.stopped)
		err := h.History(ctx, 1, all.note)
		all.mu.Lock()
		defer all.mu.Unlock()
		all.failure = err
		all.wake()
	}()
	return all
}

// Stop ends the reading.
func (h *History) Stop() {
	h.cancel()
	<-h.stopped
}

func (h *History) note(c hub.Change) error {
	content, err := decode(c.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
	h.until = c.Revision
	if c.Value == nil {
		delete(h.objects, c.Key)
	} else {
		h.objects[c.Key] = Object{c.Revision, content}
	}
	h.wake()
	return nil
}

// wake notifies all waiting calls. The lock is held.
func (h *History) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// decode returns nil for what is not JSON.
func decode(value []byte) (map[string]any, error) {
	if !bytes.HasPrefix(value, []byte("{")) {
		return nil, nil
	}
	var content map[string]any
	if err := json.Unmarshal(value, &content); err != nil {
		return nil, err
	}
	return content, nil
}

// Await returns when the objects satisfy the condition.
func (h *History) Await(ctx context.Context, satisfied func(map[string]Object) bool) error {
	return h.await(ctx, func() bool { return satisfied(h.objects) })
}

// CatchUp waits until everything up to a revision was read.
func (h *History) CatchUp(ctx context.Context, revision int64) error {
	return h.await(ctx, func() bool { return h.until >= revision })
}

func (h *History) await(ctx context.Context, satisfied func() bool) error {
	for {
		h.mu.Lock()
		done, failure, changed := satisfied(), h.failure, h.changed
		h.mu.Unlock()
		if done || failure != nil {
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Objects is what the hub has now.
func (h *History) Objects() map[string]Object {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.objects)
}

// Changes are all writes so far, oldest first.
func (h *History) Changes() ([]hub.Change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.changes), h.failure
}

// Stored counts the writes that etcd stored, by object: resource, namespace and name. An apply that changes nothing is
// none.
func (h *History) Stored() map[[3]string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	stored := map[[3]string]int{}
	for _, c := range h.changes {
		resource, rest, _ := strings.Cut(strings.TrimPrefix(c.Key, registry), "/")
		if strings.Contains(resource, ".") { // the group of a custom resource
			resource, rest, _ = strings.Cut(rest, "/")
		}
		namespace, name, namespaced := strings.Cut(rest, "/")
		if !namespaced {
			namespace, name = "", namespace
		}
		stored[[3]string{resource, namespace, name}]++
	}
	return stored
}

// Save writes the history to a file: one write a line, with what is not JSON omitted.
func (h *History) Save(name string) error {
	changes, _ := h.Changes() // what there is
	var all bytes.Buffer
	for _, c := range changes {
		line := map[string]any{"revision": c.Revision, "key": c.Key}
		if content, err := decode(c.Value); err == nil {
			line["value"] = content
		}
		written, err := json.Marshal(line)
		if err != nil {
			return err
		}
		all.Write(append(written, '\n'))
	}
	return os.WriteFile(name, all.Bytes(), 0o600)
}

// get follows a path into decoded JSON; nil if there is nothing.
func get(value any, path ...string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func text(value any, path ...string) string {
	found, _ := get(value, path...).(string)
	return found
}

func list(value any, path ...string) []any {
	found, _ := get(value, path...).([]any)
	return found
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}
