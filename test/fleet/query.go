package fleet

import "github.com/addonflow/addonflow/test/fleet/spoke"

// Workload is what runs of one Deployment, DaemonSet, StatefulSet, Job or Pod.
type Workload = spoke.Workload

// Running returns what really runs on a cluster, by "Kind/namespace/name", whatever was
// reported. It is a copy.
func (f *Fleet) Running(cluster string) map[string]Workload {
	m := f.member(cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoke.Running()
}

// Objects returns every object a work brought to a cluster, as
// "Kind/namespace/name" or "Kind/name", sorted.
func (f *Fleet) Objects(cluster string) []string {
	m := f.member(cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoke.Objects()
}

// StatusWrites returns how many status writes a cluster's agent made, or those
// of all for AllClusters. Finalizers are not among them.
func (f *Fleet) StatusWrites(cluster string) int {
	total := 0
	for _, m := range f.everNamed(cluster) {
		m.mu.Lock()
		total += m.writes
		m.mu.Unlock()
	}
	return total
}

// everNamed is named, including clusters that have left.
func (f *Fleet) everNamed(cluster string) []*member {
	if cluster != AllClusters {
		return []*member{f.member(cluster)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var members []*member
	for _, m := range f.members {
		members = append(members, m)
	}
	return members
}
