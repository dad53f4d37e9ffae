package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// ImageRegistriesAnnotation on a ManagedCluster redirects images.
const ImageRegistriesAnnotation = clusterv1.ClusterImageRegistriesAnnotationKey

// valuesAnnotation on a ManagedClusterAddOn holds values for its package, as JSON.
const valuesAnnotation = "addon.open-cluster-management.io/values"

// Judged is a member compared with the target and the stable revision.
type Judged struct {
	*Member
	// Had is the install placement that selected the cluster when its works were written, if none selects it now;
	// nil: there is none, or it is not known.
	Had *v1alpha1.PlacementReference
	// Hosts: an object of the add-on is, or is to be, on the hosting cluster.
	Hosts bool
	// Refused says why the target cannot be rendered for the member. Drift of its current works
	// is still repaired.
	Refused *Refusal
	// Overruled says why an object of the target is missing although the member runs the target: another add-on
	// deployed the object first, with other content.
	Overruled *Refusal
	// Keeps says why a rollback does not move the cluster; "": it does.
	Keeps string
	// AtTarget, AtStable: the works equal the rendering of the revision for the member.
	AtTarget, AtStable bool
	// Adopted is the renderer of the revision whose objects are already in works that OCM wrote. It is nil if the
	// works have neither the target nor the stable revision.
	Adopted *render.Renderer
}

// Refusal is why the target cannot be rendered for a member.
type Refusal struct {
	Hindrance
	// brief is the part of the message that differs between clusters.
	brief string
	// byCommit: the commit is the cause, see blames.
	byCommit bool
	// Contended: another add-on deploys one of its objects on the cluster.
	Contended bool
}

// judge compares a member with the target and the stable revision.
func (t *turn) judge(m *Member) (Judged, error) {
	j := Judged{Member: m}
	var err error
	if j.Had, err = t.recall(m); err != nil {
		return j, err
	}
	t.recognise(&j)
	m = j.Member
	if m.Hindered == nil {
		j.Refused = t.refuse(&j)
	}
	if j.Refused != nil || m.Hosting.Hosted {
		has, err := t.has(m)
		if err != nil {
			return j, err
		}
		if j.Refused != nil {
			j.Refused.byCommit = t.blames(&j, has)
		}
		j.Hosts = m.Hosting.Hosted && (m.worksAt(t.Rollout.Name) != "" || t.target.hosts(&j) || has.hosts(&j))
	}
	t.contend(&j)
	if m.Hindered == nil && m.Contested == nil && t.blocked(&j) == "" {
		t.compare(&j)
	}
	if m.Hindered == nil && j.Refused == nil && !j.AtTarget {
		j.Keeps = t.keeps(&j)
	}
	return j, nil
}

// RenderInput is the part of the member that a rendering depends on.
func (j *Judged) RenderInput() render.Cluster { return j.renderInput(j.Had) }

func (m *Member) renderInput(had *v1alpha1.PlacementReference) render.Cluster {
	c := render.Cluster{Name: m.Name, Placements: m.SelectedBy, Configs: m.Configs, Hosting: m.Hosting.Name}
	if had != nil {
		c.Placements = []v1alpha1.PlacementReference{*had}
	}
	if m.Cluster != nil {
		c.ImageRegistries = m.Cluster.Annotations[ImageRegistriesAnnotation]
		c.KubeVersion = m.Cluster.Status.Version.Kubernetes
		c.Labels, c.Claims = m.Cluster.Labels, m.Cluster.Status.ClusterClaims
	}
	if m.AddOn != nil {
		c.Values = m.AddOn.Annotations[valuesAnnotation]
	}
	return c
}

// recall finds the install placement that assigned the current configurations of a cluster that no placement selects
// any more; nil: the defaults, or not known. Until the cluster is removed or selected again, it is rendered with that
// placement. Otherwise it would be repaired to the defaults, or count as changed. If the body of its revision is
// missing, its works stay unchanged.
func (t *turn) recall(m *Member) (*v1alpha1.PlacementReference, error) {
	install := t.Rollout.Spec.Install
	if install == nil || len(m.SelectedBy) > 0 || Installation(m.AddOn) != rollout.Ours || m.Health.Digest == "" {
		return nil, nil
	}
	runs, err := t.Renderer(m.Health.Revision)
	if errors.Is(err, ErrRevisionMissing) || err == nil && m.upToDate(runs, nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(install.Placements) {
		if had := &install.Placements[i].PlacementReference; m.upToDate(runs, had) {
			return had, nil
		}
	}
	return nil, nil
}

// has returns the content that the works of a member name, or the stable revision if they name none.
func (t *turn) has(m *Member) (Content, error) {
	switch digest := m.Running(); digest {
	case "", rollout.Mixed, rollout.Foreign, t.stable.digest:
		return t.stable, nil
	default:
		return t.Revisions.content(digest)
	}
}

// refuse says why the target cannot be rendered for a member; nil: it can.
func (t *turn) refuse(j *Judged) *Refusal {
	err := t.target.refuses(j)
	if err == nil {
		return nil
	}
	refused := &Refusal{Hindrance: Hindrance{Message: err.Error()}, brief: err.Error()}
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		refused.brief = invalid.Brief()
	}
	return refused
}

// blames reports whether the commit is the cause that the target cannot be rendered for a member. It is if the
// present content of the member can be rendered, or if no cluster had content before the target. A cluster that
// failed for this cause before other clusters succeeded stays failed.
func (t *turn) blames(j *Judged, has Content) bool {
	r, recorded := t.records[j.Name]
	switch {
	case recorded && r.State == rollout.NotWritten && r.Revision == t.Target.Digest:
		return true
	case has.digest == "":
		return !t.preceded
	default:
		return has.Renderer != nil && has.digest != t.target.digest && has.refuses(j) == nil
	}
}

// refuses is why the content cannot be rendered for a member; nil: it can be, or its body is not known.
func (c Content) refuses(j *Judged) error {
	if c.Renderer == nil {
		return nil
	}
	return c.Renderer.Refuses(j.RenderInput())
}

// hosts reports whether the revision renders an object for the member's hosting cluster. The annotation alone does
// not make a member depend on that cluster, because every add-on of a cluster may have got it from its
// ManagedCluster. If the annotation is empty, the member's own name takes its place, because the revision hosts the
// same objects on any cluster.
func (c Content) hosts(j *Judged) bool {
	if c.Renderer == nil {
		return false
	}
	in := j.RenderInput()
	in.Hosting = cmp.Or(in.Hosting, j.Name)
	hosts, err := c.Renderer.Hosts(in)
	return err == nil && hosts
}

// HostingProblem says why nothing can be written to the hosting cluster; "": writes are possible, or there is nothing
// to write.
func (j *Judged) HostingProblem() string {
	if !j.Hosts {
		return ""
	}
	return j.Hosting.Problem()
}

// contend looks for objects of the target that another add-on of AddonFlow deploys to the same cluster with other
// content. Within one commit, such a conflict is refused before anything is written. Between two sources, or if a
// commit renames an add-on, it is visible only on the hub. Works that AddonFlow did not write are left out, because
// during a take-over both have the objects for a moment.
//
// An object belongs to the add-on whose work had it first. That add-on continues, and the rollout of the other one is
// woken to report the conflict. A cluster of the other add-on does not get the target; if it runs the target already,
// the target is overruled there.
func (t *turn) contend(j *Judged) {
	others := t.Others[j.Name]
	if t.target.Renderer == nil || j.Hindered != nil || j.Refused != nil || j.Departs() || len(others) == 0 {
		return
	}
	digest, err := t.target.Renderer.Digest(j.RenderInput())
	if err != nil {
		return // refuse has judged it
	}
	fingerprint := contentionFingerprint(digest, j.Works, others)
	if t.Memory.apart[j.Name] == fingerprint {
		t.forNext.apart[j.Name] = fingerprint
		return
	}
	rendered, err := t.target.Renderer.Render(j.RenderInput())
	if err != nil {
		return // as above
	}
	found := false
	for _, w := range others {
		c, contends := rendered.Contends(w, j.Works)
		switch {
		case !contends:
			continue
		case c.Yields:
			namespace, _, _ := strings.Cut(w.Annotations[v1alpha1.SourceAnnotation], "/")
			t.yielding[types.NamespacedName{Namespace: namespace, Name: w.Labels[addonv1alpha1.AddonLabelKey]}] = true
		case j.Refused != nil || j.Overruled != nil: // the first conflict is named
		case len(j.Works) > 0 && j.Health.Digest == rendered.Digest:
			j.Overruled = contention(c, w)
		default:
			j.Refused = contention(c, w)
		}
		found = true
	}
	if !found {
		t.forNext.apart[j.Name] = fingerprint
	}
}

// contentionFingerprint changes with everything that contend reads. The resource version of a work stands for its
// content.
func contentionFingerprint(digest string, own, others []*workv1.ManifestWork) Fingerprint {
	parts := append(make([]string, 0, 1+len(own)+2*len(others)), digest)
	for _, w := range own {
		parts = append(parts, string(w.UID))
	}
	for _, w := range others {
		parts = append(parts, string(w.UID), w.ResourceVersion)
	}
	return fingerprintOf(parts)
}

// contention is why a member must not have an object that a work of another add-on has.
func contention(c render.Contention, w *workv1.ManifestWork) *Refusal {
	why := fmt.Sprintf("%s: %s is deployed by add-on %s of source %s", v1alpha1.ObjectConflictReason, c.Object,
		w.Labels[addonv1alpha1.AddonLabelKey], w.Annotations[v1alpha1.SourceAnnotation])
	hint := "leave it out or rename it"
	if !c.Alone {
		hint = "leave it out, rename it, or declare it as that add-on does"
	}
	return &Refusal{
		Hindrance: Hindrance{Retry: true, Message: why + " (ManifestWork " + w.Name + ", which had it first); " + hint + ", or remove that add-on from the cluster"},
		brief:     why, byCommit: true, Contended: true,
	}
}

// blocked says why nothing can be written to the member after its admission; "": writes are possible.
func (t *turn) blocked(j *Judged) string {
	if j.Refused != nil && j.Refused.Contended {
		return j.Refused.brief
	}
	return j.HostingProblem()
}

// refused says why the target cannot be rendered for a member if the commit is the cause: the target needs a value
// that the cluster does not have. This is a failure of the commit. It counts against the budget when the cluster is
// admitted.
func (j *Judged) refused() string {
	if j.Refused != nil && j.Refused.byCommit && !j.Refused.Contended {
		return j.Refused.brief
	}
	return ""
}

// compare sets whether the member's works equal the rendering of the target and of the stable revision.
func (t *turn) compare(j *Judged) {
	switch j.Running() {
	case rollout.Mixed:
	case rollout.Foreign:
		target, stable := t.takenOver(j, t.target), t.takenOver(j, t.stable)
		j.AtTarget, j.AtStable = target && (j.Serves || t.target.digest == t.stable.digest), stable
		switch {
		case target:
			j.Adopted = t.target.Renderer
		case stable:
			j.Adopted = t.stable.Renderer
		}
	default:
		j.AtTarget = t.target.upToDate(j) && t.intact(j, t.target)
		if j.AtStable = j.AtTarget; t.stable.digest != t.target.digest { // with one revision, one comparison is enough
			j.AtStable = t.stable.upToDate(j) && t.intact(j, t.stable)
		}
	}
}

// recognise corrects the observation of a member if another client changed the marks of its works. Such works name
// the target although the member has no record of it, and they have the content of the stable revision or of the
// member's record. Then the member runs that content, and the mark is repaired without an admission.
func (t *turn) recognise(j *Judged) {
	if j.Running() != t.Target.Digest || t.recorded(j, t.Target.Digest) || t.target.upToDate(j) && marked(j) {
		return
	}
	held := t.held(j)
	if held.Renderer == nil {
		return
	}
	if digest, err := held.Renderer.Digest(j.RenderInput()); err == nil {
		m := *j.Member
		m.Health.Revision, m.Health.Digest = held.digest, digest
		j.Member = &m
	}
}

// recorded reports whether the record of a member is of a revision.
func (t *turn) recorded(j *Judged, digest string) bool {
	r, recorded := t.records[j.Name]
	return recorded && r.Revision == digest
}

// marked reports whether the objects of each work of a member have the digest, too. Then the digest in the annotation
// of the work is trusted.
func marked(j *Judged) bool {
	return !slices.ContainsFunc(j.Works, func(w *workv1.ManifestWork) bool { return !render.Marked(w) })
}

// held is the content of the stable revision or of the member's record, if the works have that content without naming
// it; otherwise the zero Content. Works that name the target and have its content are trusted: for content without
// workloads, two revisions can have the same works.
func (t *turn) held(j *Judged) Content {
	contents := []Content{t.stable}
	if r, recorded := t.records[j.Name]; recorded && r.Revision != t.stable.digest {
		contents = append(contents, t.Revisions[r.Revision])
	}
	for _, c := range contents {
		if c.Renderer == nil || c.digest == t.Target.Digest {
			continue
		}
		if marked(j) && c.upToDate(j) || !marked(j) && t.holds(j, c) {
			if j.names(t.Target.Digest) && t.holds(j, t.target) {
				return Content{}
			}
			return c
		}
	}
	return Content{}
}

// holds reports whether a member's works have the manifests and options of the content, whatever their annotations say.
func (t *turn) holds(j *Judged, c Content) bool {
	if c.Renderer == nil || j.AddOn == nil || j.awaits() != "" {
		return false
	}
	desired, gone, err := t.rendered(j, c, c.digest)
	return err == nil && len(gone) == 0 && !slices.ContainsFunc(desired, func(w *workv1.ManifestWork) bool {
		return !render.SameSpec(w, j.Work(w.Namespace, w.Name))
	})
}

// rendered are the works of the content for a member with a ManagedClusterAddOn, named after a revision. It also
// returns the present works that are to be removed.
func (t *turn) rendered(j *Judged, c Content, revision string) (desired, gone []*workv1.ManifestWork, err error) {
	r, err := c.Renderer.Render(j.RenderInput())
	if err != nil {
		return nil, nil, err
	}
	owner := render.Owner{Name: j.AddOn.Name, Namespace: j.AddOn.Namespace, UID: j.AddOn.UID, Source: t.SourceName(), Revision: revision}
	return r.Works(owner, j.Works)
}

// mixed is the content of a member whose works name different revisions, or none. Usually it is Mixed. If one of the
// works names the target and the member has a record of the target, it is the target, because the works are being
// written. Without that record it is the target only if the works do not have the content of the stable revision or
// of another record: works with such content only lost their marks. If the status was lost, the member runs that
// content.
func (t *turn) mixed(j *Judged) string {
	names, lost := j.names(t.Target.Digest), t.Rollout.Status.Target == nil
	switch {
	case !names && !lost:
		return rollout.Mixed
	case names && t.recorded(j, t.Target.Digest):
		return t.Target.Digest
	}
	switch held := t.held(j); {
	case held.Renderer != nil && lost:
		return held.digest
	case held.Renderer == nil && names:
		return t.Target.Digest
	}
	return rollout.Mixed
}

// upToDate reports whether a member's works equal the rendering of the content. Without a body it compares the
// revision that the works name.
func (c Content) upToDate(j *Judged) bool {
	if c.digest != "" && c.Renderer == nil {
		return j.Health.Revision == c.digest
	}
	return c.Renderer != nil && j.upToDate(c.Renderer, j.Had)
}

// upToDate reports whether a member's works equal the rendering of the revision. Equal digests mean equal objects,
// whichever revision the works name.
func (m *Member) upToDate(r *render.Renderer, had *v1alpha1.PlacementReference) bool {
	if len(m.Works) == 0 || m.Health.Digest == "" {
		return false
	}
	digest, err := r.Digest(m.renderInput(had))
	return err == nil && digest == m.Health.Digest
}

// intact reports whether works that name the content have it. Another client can change a work and leave its marks;
// feedback about such a work proves nothing. A Done cluster has its proof, and its work is repaired without an
// admission. The result true is stored while the specs of the works stay the same.
func (t *turn) intact(j *Judged, c Content) bool {
	r, recorded := t.records[j.Name]
	if c.Renderer == nil || j.AddOn == nil || !recorded || r.State == rollout.Done {
		return true
	}
	specs := []string{j.Health.Digest, string(j.AddOn.UID)}
	for _, w := range j.Works {
		specs = append(specs, string(w.UID), strconv.FormatInt(w.Generation, 10))
	}
	fingerprint := fingerprintOf(specs)
	if t.Memory.intact[j.Name] != fingerprint {
		desired, _, err := t.rendered(j, c, j.Health.Revision)
		if err != nil {
			return false
		}
		for _, w := range desired {
			if render.Compare(w, j.Work(w.Namespace, w.Name)) == render.Different {
				return false
			}
		}
	}
	t.forNext.intact[j.Name] = fingerprint
	return true
}

// takenOver reports whether works that OCM wrote have the objects that the revision renders for the member. Then no
// work is written. The result true is stored while the works stay the same.
func (t *turn) takenOver(j *Judged, c Content) bool {
	if c.Renderer == nil || j.AddOn == nil || j.awaits() != "" {
		return false
	}
	rendered, err := c.Renderer.Render(j.RenderInput())
	if err != nil {
		return false
	}
	versions := []string{rendered.Digest, string(j.AddOn.UID)}
	for _, w := range j.Works {
		versions = append(versions, w.Name, w.ResourceVersion)
	}
	fingerprint := fingerprintOf(versions)
	if t.Memory.alike[j.Name] != fingerprint {
		owner := render.Owner{Name: j.AddOn.Name, Namespace: j.AddOn.Namespace, UID: j.AddOn.UID}
		desired, gone, err := rendered.Works(owner, j.Works)
		if err != nil || len(gone) > 0 {
			return false
		}
		for _, w := range desired {
			if render.Compare(w, j.Work(w.Namespace, w.Name)) != render.MarksMissing {
				return false
			}
		}
	}
	t.forNext.alike[j.Name] = fingerprint
	return true
}

// Work returns the member's work of that namespace and name, or nil.
func (m *Member) Work(namespace, name string) *workv1.ManifestWork {
	for _, w := range m.Works {
		if w.Namespace == namespace && w.Name == name {
			return w
		}
	}
	return nil
}

// awaits says which work of the member must be deleted before the new work can be written.
func (m *Member) awaits() string {
	for _, w := range m.Works {
		if w.DeletionTimestamp != nil {
			return "ManifestWork " + w.Namespace + "/" + w.Name + ", which is being deleted, is not gone yet"
		}
	}
	return ""
}

// startsAnew reports whether a member without works waits to be admitted to the target, because it cannot join at the
// stable revision. Either it ran with other configurations, or the stable revision cannot be rendered for it. While a
// lost status is rebuilt, the second case does not count, because the turn would take the cluster for one in flight.
func (t *turn) startsAnew(j *Judged) bool {
	lost := t.Rollout.Status.Target == nil
	return j.Running() == "" && j.Hindered == nil && (j.ranOtherwise() || !lost && t.stable.refuses(j) != nil)
}

// ranOtherwise reports whether a member without works ran content before with other configurations, according to the
// status of its ManagedClusterAddOn. Then any revision is new content for it. Other causes of a different rendering,
// such as a label, cannot be detected.
func (m *Member) ranOtherwise() bool {
	if m.AddOn == nil || addonstatus.NeverApplied(m.AddOn.Status.ConfigReferences) {
		return false
	}
	for i := range m.Configs {
		c := &m.Configs[i]
		applied := slices.ContainsFunc(m.AddOn.Status.ConfigReferences, func(ref addonv1alpha1.ConfigReference) bool {
			last := ref.LastAppliedConfig
			return ref.Group == c.Group && ref.Resource == c.Resource && last != nil && last.Namespace == c.Namespace && last.Name == c.Name &&
				(last.SpecHash == c.SpecHash || last.SpecHash == "")
		})
		if !applied && !addonstatus.IsTemplate(c.Group, c.Resource) {
			return true
		}
	}
	return false
}
