package spoke

import (
	"slices"
	"strings"
)

// Step lets the controllers of a work's objects act once each and reports whether anything
// changed.
func (c *Cluster) Step(work string) bool {
	changed := false
	for _, o := range c.owned(work) {
		changed = o.workload.step() || changed
	}
	return changed
}

// Stuck reports whether a workload of the work neither moves nor is complete. It is meaningful
// after Step returned false.
func (c *Cluster) Stuck(work string) bool {
	return slices.ContainsFunc(c.owned(work), func(o *object) bool { return !o.workload.complete() })
}

// GiveUp lets the progress deadline pass for every workload of the work that
// is not complete.
func (c *Cluster) GiveUp(work string) {
	for _, o := range c.owned(work) {
		if !o.workload.complete() {
			o.workload.giveUp()
		}
	}
}

// DropUnready deletes every pod that is not ready, in the whole cluster.
func (c *Cluster) DropUnready() {
	for _, o := range c.objects {
		if o.workload != nil {
			o.workload.dropUnready()
		}
	}
}

// owned are the objects of a work on which a controller acts.
func (c *Cluster) owned(work string) []*object {
	var found []*object
	for _, o := range c.objects {
		if _, applied := o.works[work]; applied && o.workload != nil {
			found = append(found, o)
		}
	}
	return found
}

// Running returns what really runs, by "Kind/namespace/name", whatever the agent reports.
func (c *Cluster) Running() map[string]Workload {
	running := map[string]Workload{}
	for _, o := range c.objects {
		if o.workload == nil {
			continue
		}
		w := o.workload.summary()
		w.Digest = o.live.GetAnnotations()[DigestAnnotation]
		w.Generation = o.generation
		slices.Sort(w.ReadyImages)
		w.ReadyImages = slices.Compact(w.ReadyImages)
		running[o.name()] = w
	}
	return running
}

// Objects returns every live object as "Kind/namespace/name" (or "Kind/name"),
// sorted.
func (c *Cluster) Objects() []string {
	var names []string
	for _, o := range c.objects {
		names = append(names, o.name())
	}
	slices.Sort(names)
	return names
}

func (o *object) name() string {
	parts := []string{o.live.GetKind(), o.live.GetNamespace(), o.live.GetName()}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}
