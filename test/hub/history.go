package hub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Change is one write that etcd stored.
type Change struct {
	// Revision counts the writes of the hub; an object that was stored with it has it as its
	// resourceVersion.
	Revision int64
	// Key of the object, such as /registry/addonflow.io/addonrollouts/default/hello.
	Key string
	// Value is what was stored: JSON for custom resources, protobuf for others. Nil: the
	// object was deleted, and Before is its last value.
	Value, Before []byte
}

// History reads everything that etcd stored, from the given revision on, in its order, and
// follows it until ctx ends. The first revision is 1. A server that ends meanwhile is asked again
// for what came next. The error is that of visit, or of a history that is no longer complete.
func (h *Hub) History(ctx context.Context, from int64, visit func(Change) error) error {
	for {
		next, err := h.follow(ctx, from, visit)
		from = next
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot read the history from revision %d: %w", from, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

// Revision is the newest revision of the hub.
func (h *Hub) Revision(ctx context.Context) (int64, error) {
	var answer struct{ Header etcdHeader }
	body, err := h.askEtcd(ctx, "v3/kv/range", map[string]any{"key": []byte("/"), "count_only": true})
	if err != nil {
		return 0, fmt.Errorf("cannot read the revision: %w", err)
	}
	defer func() { _ = body.Close() }() // it was only read
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("cannot read the revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// etcdHeader is part of every answer.
type etcdHeader struct {
	Revision int64 `json:",string"`
}

// watchAnswer is one message of etcd's watch, as its JSON gateway writes it.
type watchAnswer struct {
	Result struct {
		Header          etcdHeader
		CompactRevision int64 `json:"compact_revision,string"`
		Canceled        bool
		Reason          string `json:"cancel_reason"`
		Events          []struct {
			Type         string
			KV           keyValue `json:"kv"`
			PreviousPair keyValue `json:"prev_kv"`
		}
	}
	Error *struct{ Message string }
}

type keyValue struct {
	Key         []byte
	Value       []byte
	ModRevision int64 `json:"mod_revision,string"`
}

// follow reads until the server ends the watch, and returns the first revision that was not
// read. Its error is one that asking again does not cure.
func (h *Hub) follow(ctx context.Context, from int64, visit func(Change) error) (int64, error) {
	body, err := h.askEtcd(ctx, "v3/watch", map[string]any{"create_request": map[string]any{
		"key": []byte("/registry/"), "range_end": []byte("/registry0"), "start_revision": from, "prev_kv": true,
	}})
	if err != nil {
		return from, nil // etcd is down, which is one of the things that happen to a hub
	}
	defer func() { _ = body.Close() }() // it was only read
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return from, nil // the same
		}
		var answer watchAnswer
		if err := json.Unmarshal(line, &answer); err != nil {
			return from, err
		}
		switch r := answer.Result; {
		case answer.Error != nil:
			return from, nil // etcd is ending
		case r.CompactRevision > 0:
			return from, fmt.Errorf("compacted up to %d", r.CompactRevision)
		case r.Canceled:
			return from, errors.New(r.Reason)
		}
		for _, e := range answer.Result.Events {
			c := Change{Revision: e.KV.ModRevision, Key: string(e.KV.Key), Value: e.KV.Value}
			if e.Type == "DELETE" {
				c.Value, c.Before = nil, e.PreviousPair.Value
			}
			if err := visit(c); err != nil {
				return from, err
			}
			from = c.Revision + 1
		}
	}
}

// askEtcd asks etcd through its JSON gateway.
func (h *Hub) askEtcd(ctx context.Context, path string, question any) (io.ReadCloser, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.plane.Etcd.URL.JoinPath(path).String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("etcd answers %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}
