package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/addonflow/addonflow/test/leaks"
)

// Shown lists the places where a value of one of the hub's Secrets can be read, or a word that begins with planted: in
// objects of the hub, the logs of the operators, what they sent to the forge, and texts, which are by place. See
// leaks.Hub.Shown.
func (w *World) Shown(ctx context.Context, planted string, texts map[string][]byte) ([]string, error) {
	places := map[string][]byte{}
	maps.Copy(places, texts)
	logs, err := filepath.Glob(filepath.Join(w.Dir, "*.log"))
	if err == nil && len(logs) == 0 {
		err = fmt.Errorf("no operator left a log in %s", w.Dir)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range logs {
		if places[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	if places["the forge"], err = json.Marshal(w.Forge.Log()); err != nil {
		return nil, fmt.Errorf("cannot print the forge's log: %w", err)
	}
	hub, err := leaks.Read(ctx, w.Hub.Config(), w.Client)
	if err != nil {
		return nil, err
	}
	return hub.Shown(places, planted)
}
