package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// PartsAnnotation on a work is the number of works that the add-on has on the cluster, so that
// a missing part is noticed.
const PartsAnnotation = "addonflow.io/parts"

// MarksAnnotation on a work identifies the version of AddonFlow's marks and feedback rules, so
// that an upgrade of the operator does not count as drift (see Compare).
const MarksAnnotation = "addonflow.io/marks"

// DisregardAnnotation on a work names the failures that its Deployments reported before the work got its current
// content, as namespace/name=time of the condition. If a Deployment returns to an earlier ReplicaSet, it keeps its
// old condition for a while, under its new generation. Such a failure is not a failure of the new content.
const DisregardAnnotation = "addonflow.io/disregard"

// Owner is the ManagedClusterAddOn that owns works, and the source of their content.
type Owner struct {
	// Name, Namespace and UID of the ManagedClusterAddOn.
	Name, Namespace string
	UID             types.UID
	// Source is the AddOnSource, as namespace/name.
	Source string
	// Revision is the digest of the AddOnRevision.
	Revision string
}

// workPart is one existing or desired work.
type workPart struct {
	side     side
	index    int
	existing *workv1.ManifestWork
	objects  []int
	gains    bool
}

// Works returns the works that make the cluster run the rendering, in the order to write them: a work that receives
// objects is before the work that loses them. It also returns the works to delete after that. existing are the works
// in the namespaces of the cluster and of its hosting cluster; Works ignores those that are not deploy works of this
// add-on on this cluster. If a desired work has the name of a work that is being deleted, create it after the
// deletion. An existing work keeps its metadata and the order of its objects; Compare says whether it must be
// written.
//
// Works on a hosting cluster have no owner, because an owner must be in the same namespace. Works of an add-on with
// pre-delete hooks have none either, because a foreground deletion would delete them before the hooks run. The caller
// that removes the add-on deletes them (see HookWorks).
//
// The error is an *InvalidError if an object exceeds the hub's limit, or if no object is left to deploy in hosted
// mode. Then nothing must be written.
func (r Rendered) Works(owner Owner, existing []*workv1.ManifestWork) (desired, remove []*workv1.ManifestWork, err error) {
	if r.rendering == nil {
		return nil, nil, ErrNoClusterName
	}
	raw := r.deliver()
	objects := make([]sized, len(raw))
	var found findings
	for i := range raw {
		objects[i] = sized{
			id:   r.rendering.objects[i].id,
			size: (&runtime.RawExtension{Raw: raw[i]}).Size(), // measured as the hub does
		}
		if objects[i].size > WorkLimit {
			found.add(tooLarge(r.rendering.template, objects[i]))
		}
	}
	sides := r.sides(owner)
	if r.Hosting != "" && len(r.bins().managed)+len(r.bins().hosting) == 0 {
		found.add(nothingHosted(r.rendering.template))
	}
	if err := found.err(r.rendering.addOn); err != nil {
		return nil, nil, err
	}
	var parts []workPart
	for _, s := range sides {
		parts = append(parts, s.partition(owner, objects, existing)...)
	}
	count := 0
	for _, part := range parts {
		if len(part.objects) > 0 {
			count++
		}
	}
	failures := reportedFailures(parts)
	for _, part := range parts {
		if len(part.objects) == 0 {
			remove = append(remove, part.existing)
			continue
		}
		work := r.work(owner, part, raw)
		work.Annotations[PartsAnnotation] = strconv.Itoa(count)
		if failures != "" && (part.existing == nil || part.existing.Annotations[v1alpha1.DigestAnnotation] != r.Digest) {
			work.Annotations[DisregardAnnotation] = failures
		}
		desired = append(desired, work)
	}
	return desired, append(remove, stray(owner, sides, existing)...), nil
}

func nothingHosted(template string) Finding {
	return Finding{
		Template: template, Field: manifestsField, Reason: flaw.ReasonInvalidManifest,
		Message: "no manifest is deployed in hosted mode",
		Hint:    "give one the location managed or hosting",
	}
}

func tooLarge(template string, o sized) Finding {
	return Finding{
		Template: template, Field: manifestsField, Reason: flaw.ReasonManifestTooLarge,
		Message: fmt.Sprintf("%s has %d bytes, the hub accepts %d", o.id, o.size, WorkLimit),
		Hint:    "split it, or drop descriptions",
	}
}

// deliver returns the objects as works hold them.
func (r Rendered) deliver() [][]byte {
	out := make([][]byte, len(r.rendering.objects))
	for i := range r.rendering.objects {
		out[i] = r.rendering.objects[i].delivered(r.Digest)
	}
	return out
}

// partition distributes the side's objects over works; all are the objects of both sides.
func (s side) partition(owner Owner, all []sized, existing []*workv1.ManifestWork) []workPart {
	parts, taken := s.deployWorks(owner, existing)
	present := make([][]Identity, len(parts))
	for i := range parts {
		present[i] = identitiesOf(parts[i].existing)
	}
	objects := make([]sized, len(s.objects))
	for i, o := range s.objects {
		objects[i] = all[o]
	}
	for i, placed := range split(objects, present) {
		if i >= len(parts) {
			parts = append(parts, workPart{side: s, index: freeIndex(taken)})
		}
		parts[i].gains = i >= len(present) || slices.ContainsFunc(placed, func(o int) bool {
			return !slices.Contains(present[i], objects[o].id)
		})
		for _, o := range placed {
			parts[i].objects = append(parts[i].objects, s.objects[o])
		}
	}
	rank := func(p workPart) int {
		switch {
		case p.existing == nil:
			return 0
		case p.gains:
			return 1
		}
		return 2
	}
	slices.SortFunc(parts, func(a, b workPart) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.index, b.index))
	})
	return parts
}

// deployWorks returns the side's works among existing, by index, and the indexes in use. The index of a work that is
// being deleted is not in use: its name is used again, and the writer waits until the work is deleted.
func (s side) deployWorks(owner Owner, existing []*workv1.ManifestWork) (parts []workPart, taken map[int]bool) {
	taken = map[int]bool{}
	for _, work := range existing {
		index, ok := s.index(work, owner)
		if !ok || !work.DeletionTimestamp.IsZero() {
			continue
		}
		taken[index] = true
		parts = append(parts, workPart{side: s, index: index, existing: work})
	}
	slices.SortFunc(parts, func(a, b workPart) int { return cmp.Compare(a.index, b.index) })
	return parts, taken
}

// workName returns the name of the add-on's deploy work of an index.
func workName(addOn string, index int) string {
	return fmt.Sprintf("addon-%s-deploy-%d", addOn, index)
}

// deployIndex returns the index of a deploy work of the add-on. The label distinguishes add-ons with similar names;
// without the label, the owner does.
func deployIndex(work *workv1.ManifestWork, addOn string) (int, bool) {
	suffix, ok := strings.CutPrefix(work.Name, "addon-"+addOn+"-deploy-")
	if !ok || work.Labels[addonv1alpha1.AddonLabelKey] != addOn && !ownedBy(work, addOn) {
		return 0, false
	}
	index, err := strconv.Atoi(suffix)
	return index, err == nil && index >= 0 && workName(addOn, index) == work.Name
}

// ownedBy reports whether the ManagedClusterAddOn of the add-on owns a work.
func ownedBy(work *workv1.ManifestWork, addOn string) bool {
	return slices.ContainsFunc(work.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == "ManagedClusterAddOn" && r.Name == addOn && strings.HasPrefix(r.APIVersion, addonv1alpha1.GroupName+"/")
	})
}

func freeIndex(taken map[int]bool) int {
	index := 0
	for taken[index] {
		index++
	}
	taken[index] = true
	return index
}

func (r Rendered) work(owner Owner, part workPart, raw [][]byte) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
	}
	if part.existing != nil {
		work.ObjectMeta = *part.existing.ObjectMeta.DeepCopy()
		work.ManagedFields = nil
	} else {
		work.Name, work.Namespace = part.side.workName(owner, part.index), part.side.namespace
	}
	work.Labels = merged(work.Labels, map[string]string{
		addonv1alpha1.AddonLabelKey: owner.Name,
		v1alpha1.ManagedByLabel:     v1alpha1.ManagedByValue,
	})
	if work.Annotations[v1alpha1.DigestAnnotation] != r.Digest {
		delete(work.Annotations, DisregardAnnotation)
	}
	work.Annotations = merged(work.Annotations, map[string]string{
		v1alpha1.SourceAnnotation:                  owner.Source,
		v1alpha1.RevisionAnnotation:                owner.Revision,
		v1alpha1.DigestAnnotation:                  r.Digest,
		MarksAnnotation:                            r.rendering.marks,
		workv1.ManifestConfigSpecHashAnnotationKey: r.rendering.specHashes,
	})
	switch {
	case part.side.namespace != owner.Namespace:
		work.Labels[addonv1alpha1.AddonNamespaceLabelKey] = owner.Namespace
	case r.Hooks().Any():
		work.OwnerReferences = disowned(work.OwnerReferences, owner)
	default:
		work.OwnerReferences = owned(work.OwnerReferences, owner)
	}

	work.Spec.Workload.Manifests = make([]workv1.Manifest, 0, len(part.objects))
	for _, i := range part.objects {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw[i]}})
		if w := r.rendering.objects[i].workload; w != nil {
			work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, w.ask)
		}
	}
	work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, r.rendering.options...)
	work.Spec.DeleteOption = r.rendering.deleteOption
	work.Spec.Executor = r.rendering.executor
	return work
}

// merged returns a copy of existing with the entries of ours. An empty value in ours removes the key.
func merged(existing, ours map[string]string) map[string]string {
	out := make(map[string]string, len(existing)+len(ours)+1)
	maps.Copy(out, existing)
	for key, value := range ours {
		out[key] = value
		if value == "" {
			delete(out, key)
		}
	}
	return out
}

// owned returns the references with a reference to the ManagedClusterAddOn. An existing reference to it stays
// unchanged, with any API version. A reference to an earlier ManagedClusterAddOn of the same name is removed.
func owned(references []metav1.OwnerReference, owner Owner) []metav1.OwnerReference {
	if slices.ContainsFunc(references, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		return references
	}
	yes := true
	return append(disowned(references, owner), metav1.OwnerReference{
		APIVersion: addonv1alpha1.GroupVersion.String(), Kind: installationKind, Name: owner.Name, UID: owner.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	})
}

// disowned returns references without those to the ManagedClusterAddOn.
func disowned(references []metav1.OwnerReference, owner Owner) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(references), func(o metav1.OwnerReference) bool {
		return o.Kind == installationKind && o.Name == owner.Name
	})
}

// installationKind is the kind of the owner of works.
const installationKind = "ManagedClusterAddOn"
