package addonrollout

import (
	"maps"
	"strings"
	"sync"
	"time"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	agents "github.com/addonflow/addonflow/controllers/registration"
	"github.com/addonflow/addonflow/rollout"
)

// synced remembers which clusters of a rollout were found to need no write, so that a
// fleet at rest costs no rendering. Losing it costs one comparison per cluster. The same
// memory serves for works of OCM's that were found to hold what is to run, and for those of
// other add-ons that were found to have no object in common.
type synced struct {
	mu   sync.Mutex
	seen map[client.ObjectKey]map[string]string
}

// newSynced returns an empty memory.
func newSynced() *synced { return &synced{seen: map[client.ObjectKey]map[string]string{}} }

// is reports whether the cluster needed no write when it looked like this.
func (s *synced) is(rollout client.ObjectKey, cluster, mark string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[rollout][cluster] == mark
}

// set remembers that the cluster needs no write while it looks like this.
func (s *synced) set(rollout client.ObjectKey, cluster, mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[rollout] == nil {
		s.seen[rollout] = map[string]string{}
	}
	s.seen[rollout][cluster] = mark
}

// keep drops the clusters that are no members any more.
func (s *synced) keep(rollout client.ObjectKey, members []*member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen[rollout]) == 0 {
		return
	}
	there := make(map[string]bool, len(members))
	for _, m := range members {
		there[m.name] = true
	}
	maps.DeleteFunc(s.seen[rollout], func(name, _ string) bool { return !there[name] })
}

// forget drops a rollout that is gone.
func (s *synced) forget(rollout client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, rollout)
}

// versions remembers the version of each rollout as this process wrote its status last. Without
// it every write of a status would cost one more look.
type versions struct {
	mu   sync.Mutex
	last map[client.ObjectKey]string
}

// newVersions returns an empty memory.
func newVersions() *versions { return &versions{last: map[client.ObjectKey]string{}} }

// is tells whether a rollout is as this process wrote it last.
func (v *versions) is(ro *v1alpha1.AddOnRollout) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[client.ObjectKeyFromObject(ro)] == ro.ResourceVersion
}

// wrote remembers a rollout as the API server answered a write.
func (v *versions) wrote(ro *v1alpha1.AddOnRollout) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last[client.ObjectKeyFromObject(ro)] = ro.ResourceVersion
}

// forget drops a rollout that is gone.
func (v *versions) forget(key client.ObjectKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.last, key)
}

// markOf names everything the writes of one cluster depend on: an object's version
// stands for its content.
func markOf(o *observation, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn, permissions agents.Outcome) string {
	parts := make([]string, 0, 11+len(m.works)+2*len(m.selectedBy))
	parts = append(parts, o.rollout.Spec.Target.Digest, p.Revision, string(p.State), p.Reason, o.policy, string(addOn.UID), addOn.ResourceVersion, string(permissions.State), permissions.Message)
	for _, w := range m.works {
		parts = append(parts, w.ResourceVersion)
	}
	for _, s := range m.selectedBy {
		parts = append(parts, s.Namespace, s.Name)
	}
	for i := range m.configs {
		parts = append(parts, m.configs[i].String(), m.configs[i].SpecHash)
	}
	if m.cluster != nil {
		parts = append(parts, m.cluster.ResourceVersion)
	}
	if m.hosting.Hosted {
		parts = append(parts, m.hosting.Mark())
	}
	return strings.Join(parts, "\x00")
}

// pace keeps the reconciles of one rollout apart, so that a fleet that reports all
// at once causes one ledger write a second, not one per report.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	last map[client.ObjectKey]time.Time
}

// newPace returns a pace of one reconcile per every.
func newPace(every time.Duration) *pace {
	return &pace{every: every, last: map[client.ObjectKey]time.Time{}}
}

// wait returns how long the rollout still has to wait; 0 takes the turn.
func (p *pace) wait(key client.ObjectKey, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.every - now.Sub(p.last[key]); left > 0 && left <= p.every {
		return left
	}
	p.last[key] = now
	return 0
}

// forget drops a rollout that is gone.
func (p *pace) forget(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
