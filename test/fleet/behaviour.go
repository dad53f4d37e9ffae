package fleet

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	workv1 "open-cluster-management.io/api/work/v1"
)

// SetLatency changes the time before each report. Reports already due keep their time.
func (f *Fleet) SetLatency(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency = d
}

// Silence stops an agent: it applies and reports nothing. Its cluster stays
// available.
func (f *Fleet) Silence(cluster string) { f.change(cluster, func(m *mood) { m.silent = true }) }

// Speak ends Silence; the agent catches up.
func (f *Fleet) Speak(cluster string) { f.change(cluster, func(m *mood) { m.silent = false }) }

// Fail makes the cluster refuse every manifest from now on, with a message: Applied=False. What
// runs there keeps running.
func (f *Fleet) Fail(cluster, message string) {
	f.change(cluster, func(m *mood) { m.failing, m.refusal = true, message })
}

// Recover ends Fail: the agent applies the works that it could not apply.
func (f *Fleet) Recover(cluster string) { f.change(cluster, func(m *mood) { m.failing = false }) }

// Flap makes Available alternate from report to report, every Options.FlapEvery, starting with
// False.
func (f *Fleet) Flap(cluster string) { f.change(cluster, func(m *mood) { m.flapping = true }) }

// Steady ends Flap.
func (f *Fleet) Steady(cluster string) { f.change(cluster, func(m *mood) { m.flapping = false }) }

// Lie makes the agent report content as applied and available that it never applied: healthy
// counts at once, with the digest and generation of what ran before.
func (f *Fleet) Lie(cluster string) { f.change(cluster, func(m *mood) { m.lying = true }) }

// Honest ends Lie: the agent applies the works that it had only reported as applied.
func (f *Fleet) Honest(cluster string) { f.change(cluster, func(m *mood) { m.lying = false }) }

// Outdate makes the agent answer for the generation before the newest one that it answered for, although it has
// answered for the newer one, as an agent does whose status is written late or restored.
func (f *Fleet) Outdate(cluster string) { f.change(cluster, func(m *mood) { m.outdated = true }) }

// Update ends Outdate: the agent answers for the newest generation.
func (f *Fleet) Update(cluster string) { f.change(cluster, func(m *mood) { m.outdated = false }) }

// Skew sets the cluster's clock off by a duration: its reports have other times.
func (f *Fleet) Skew(cluster string, by time.Duration) {
	f.change(cluster, func(m *mood) { m.skew = by })
}

// Hold stops rollouts where they are: no pod comes or goes. Content is still
// applied and reported.
func (f *Fleet) Hold(cluster string) { f.change(cluster, func(m *mood) { m.held = true }) }

// Release ends Hold.
func (f *Fleet) Release(cluster string) { f.change(cluster, func(m *mood) { m.held = false }) }

func (f *Fleet) change(cluster string, change func(*mood)) {
	for _, m := range f.named(cluster) {
		m.mu.Lock()
		change(&m.mood)
		m.mu.Unlock()
		f.wake(m)
	}
}

// named returns the record of one cluster or, for AllClusters, the records of all clusters that have joined so far.
func (f *Fleet) named(cluster string) []*member {
	if cluster != AllClusters {
		return []*member{f.member(cluster)}
	}
	var members []*member
	for _, name := range f.joined() {
		members = append(members, f.member(name))
	}
	return members
}

// joined lists the clusters with a ManagedCluster, sorted.
func (f *Fleet) joined() []string {
	f.mu.Lock()
	members := maps.Clone(f.members)
	f.mu.Unlock()
	maps.DeleteFunc(members, func(_ string, m *member) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.joined
	})
	return slices.Sorted(maps.Keys(members))
}

// wake makes the agent look at all its works again, from the start and at once.
func (f *Fleet) wake(m *member) {
	works, err := f.works.GetIndexer().ByIndex(cache.NamespaceIndex, m.name)
	if err != nil {
		return
	}
	m.mu.Lock()
	for _, d := range m.duties {
		d.begin(d.generation, time.Now())
	}
	m.mu.Unlock()
	for _, work := range works {
		if _, ok := work.(*workv1.ManifestWork); ok {
			f.enqueue(work)
		}
	}
}
