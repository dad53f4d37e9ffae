package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Observation is the state of one cluster according to its works.
type Observation struct {
	// Revision and Digest are the values of the annotations of the works; "": there is no work, or the works have
	// different values, because a cluster between two contents runs neither.
	Revision, Digest string
	// Applied: every part exists and the agent applied its current version.
	Applied bool
	// Current: the agent's report is about the current works, and every workload with the digest has echoed it.
	Current bool
	// Verified: all of the content runs, and no pod of other content is left.
	Verified bool
	// Failed: a workload reports a failure of this content. A work that cannot be applied has not failed: the agent
	// keeps trying, and a missing namespace, CRD or permission may be created. If that lasts for 10 minutes, package
	// rollout fails the cluster.
	Failed bool
	// NotApplied is the agent's reason why it could not apply the current works, from the first such work; "": it
	// could, or has not reported. It is limited like Reason.
	NotApplied string
	// Reason says what is missing, or why the content failed; "": verified. The managed cluster wrote parts of it;
	// they are cut to a limit, without control characters.
	Reason string
}

// Observe reads the health of an add-on on one cluster. It skips works of other add-ons, hooks, and works that are
// being deleted.
//
// Available alone only says that objects exist. Verified requires all parts of one digest, with Applied and Available
// true for the current version of each part. It also requires that every workload echoes the digest. If the prober
// checks the workload, the controller of the workload must have observed its current version, and no pod of older
// content may be left. Observe does not wait for values without a feedback rule, such as an update that OnDelete
// prevents. If a work does not update a workload, only the health of the workload counts.
func (p Prober) Observe(r Report) Observation {
	parts := deployParts(r.Works, r.AddOn)
	if len(parts) == 0 {
		return Observation{Reason: "no work yet"}
	}
	o := Observation{
		Revision: agreed(parts, v1alpha1.RevisionAnnotation),
		Digest:   agreed(parts, v1alpha1.DigestAnnotation),
		Applied:  true, Current: true, Verified: true,
	}
	if o.Digest == "" {
		return Observation{Revision: o.Revision, Reason: "works carry no or different content"}
	}
	if wanted := agreed(parts, PartsAnnotation); wanted != strconv.Itoa(len(parts)) {
		o.Applied, o.Current, o.Verified = false, false, false
		o.Reason = fmt.Sprintf("%d of %s works written", len(parts), cmp.Or(wanted, "?"))
	}
	for _, work := range parts {
		o.add(p.workHealth(work))
	}
	o.add(p.unmatched(parts))
	o.add(p.lease(r.Available))
	return o
}

// add joins the health of one part. The reason of a failure takes precedence.
func (o *Observation) add(h health) {
	o.Applied = o.Applied && h.applied
	o.Current = o.Current && h.current
	o.Verified = o.Verified && h.verified
	if h.failed && !o.Failed {
		o.Failed, o.Reason = true, h.reason
	}
	o.NotApplied = cmp.Or(o.NotApplied, h.notApplied)
	o.Reason = cmp.Or(o.Reason, h.reason)
}

// deployParts are the add-on's deploy works, by index, those of the hosting cluster last.
func deployParts(works []*workv1.ManifestWork, addOn string) []*workv1.ManifestWork {
	index := map[*workv1.ManifestWork]int{}
	var parts, hosting []*workv1.ManifestWork
	for _, work := range works {
		if !work.DeletionTimestamp.IsZero() {
			continue
		}
		if i, ok := deployIndex(work, addOn); ok {
			index[work], parts = i, append(parts, work)
		} else if i, ok := hostingIndex(work, addOn); ok {
			index[work], hosting = i, append(hosting, work)
		}
	}
	byIndex := func(a, b *workv1.ManifestWork) int { return cmp.Compare(index[a], index[b]) }
	slices.SortFunc(parts, byIndex)
	slices.SortFunc(hosting, byIndex)
	return append(parts, hosting...)
}

// agreed returns the value of an annotation if all works have the same; otherwise "".
func agreed(works []*workv1.ManifestWork, key string) string {
	value := works[0].Annotations[key]
	for _, work := range works[1:] {
		if work.Annotations[key] != value {
			return ""
		}
	}
	return value
}

// health is the health of one work, or of one workload in it.
type health struct {
	applied, current, verified, failed bool
	reason, notApplied                 string
}

func (p Prober) workHealth(work *workv1.ManifestWork) health {
	applied := currentCondition(work, workv1.WorkApplied)
	switch {
	case applied == nil:
		return health{reason: "waiting for the agent to apply"}
	case applied.Status != metav1.ConditionTrue:
		why := notApplied(work, applied)
		return health{reason: "not applied: " + why, notApplied: why}
	}
	h := health{applied: true, current: true, verified: true}
	available := currentCondition(work, workv1.WorkAvailable)
	switch {
	case available == nil:
		h.current, h.verified, h.reason = false, false, "waiting for the agent to report"
	case available.Status != metav1.ConditionTrue:
		h.verified, h.reason = false, "not available: "+words(available.Message)
	}
	echoes := 0
	for i := range work.Spec.ManifestConfigs {
		if ask, ok := askedOf(&work.Spec.ManifestConfigs[i]); ok {
			if ask.asks(valueDigest) {
				echoes++
			}
			h.add(p.askHealth(ask, work))
		}
	}
	if echoes < markedIn(work) {
		h.add(health{reason: "a feedback rule for the digest of a workload is missing"})
	}
	h.add(p.checkHealth(work))
	return h
}

func (h *health) add(w health) {
	h.current = h.current && w.current
	h.verified = h.verified && w.verified
	if w.failed && !h.failed {
		h.failed, h.reason = true, w.reason
	}
	h.reason = cmp.Or(h.reason, w.reason)
}

// currentCondition returns a condition of the work if it is about its current spec.
func currentCondition(work *workv1.ManifestWork, name string) *metav1.Condition {
	c := meta.FindStatusCondition(work.Status.Conditions, name)
	if c == nil || c.ObservedGeneration != work.Generation {
		return nil
	}
	return c
}

// notApplied returns the message of the first manifest that could not be applied.
func notApplied(work *workv1.ManifestWork, whole *metav1.Condition) string {
	for i := range work.Status.ResourceStatus.Manifests {
		m := &work.Status.ResourceStatus.Manifests[i]
		c := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
		if c != nil && c.Status != metav1.ConditionTrue && c.ObservedGeneration == work.Generation {
			return words(m.ResourceMeta.Kind + " " + m.ResourceMeta.Name + ": " + c.Message)
		}
	}
	return words(whole.Message)
}
