package addonrollout

import (
	"encoding/json"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// probers keeps the compiled health policy of each rollout.
type probers struct {
	mu   sync.Mutex
	kept map[client.ObjectKey]keptProber
}

// keptProber is a prober, or why there is none, and what it was compiled from.
type keptProber struct {
	policy string
	prober render.Prober
	err    error
}

// newProbers returns an empty memory.
func newProbers() *probers { return &probers{kept: map[client.ObjectKey]keptProber{}} }

// of returns the prober of a rollout and a text that changes with its policy. A
// policy that cannot be used, such as one edited on the hub, is an error that wraps
// render.ErrInvalidHealth; the prober then is the default one, to report by.
func (p *probers) of(ro *v1alpha1.AddOnRollout) (render.Prober, string, error) {
	if ro.Spec.Health == nil {
		return render.Prober{}, "", nil
	}
	text, err := json.Marshal(ro.Spec.Health)
	if err != nil {
		return render.Prober{}, "", fmt.Errorf("cannot read the health policy: %w", err)
	}
	key, policy := client.ObjectKeyFromObject(ro), string(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, ok := p.kept[key]
	if !ok || kept.policy != policy {
		kept = keptProber{policy: policy}
		kept.prober, kept.err = render.NewProber(ro.Spec.Health)
		p.kept[key] = kept
	}
	return kept.prober, kept.policy, kept.err
}

// forget drops a rollout that is gone.
func (p *probers) forget(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, key)
}
