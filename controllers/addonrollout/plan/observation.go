package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Observation has everything that one turn read, and the choice that follows from it. Choose, Confirm and New do not
// change it.
type Observation struct {
	// Look is when the turn began.
	Look Look
	Settings
	// Rollout as stored. It was read uncached, because slots are reserved in its ledger.
	Rollout *v1alpha1.AddOnRollout
	// Uninstalling is the cause that deletes all rollouts; "": none.
	Uninstalling string
	// Source that declares the add-on; nil after it was deleted.
	Source *v1alpha1.AddOnSource
	// Owner is the add-on's ClusterManagementAddOn; nil while it does not exist.
	Owner *addonv1alpha1.ClusterManagementAddOn
	StoredRevisions
	Choice
	// Orders about the rollout, the oldest first. Unproven says, by the name of an order without an answer, why its
	// author is not known.
	Orders   []v1alpha1.AddOnOrder
	Unproven map[string]string
	// Prober judges health; Policy is the text from which it was made. InvalidHealth says why the declared policy is
	// invalid.
	Prober        render.Prober
	Policy        string
	InvalidHealth error
	// Denied says why the policy of tenants forbids every write of the rollout (ErrTenantDenied); nil: it does not.
	Denied     error
	Placements []rollout.Placement
	// Members are the clusters that have the add-on or are selected, sorted by name.
	Members []*Member
	// Revisions has every revision that the rollout, its ledger or a work names.
	Revisions Revisions
	// Refusals says why the hub refused the last write of the works of a cluster, by cluster.
	Refusals map[string]string
	// Unremoved says why the hub refused the last deletion of the ManagedClusterAddOn of a cluster, by
	// cluster.
	Unremoved map[string]string
	// RefusedWrites lists the refused writes that are not the status, with the reason: the mark of a success, a
	// change of quarantine, or the answer of an order.
	RefusedWrites []string
	// Others are the works that AddonFlow wrote for other add-ons, by their namespace.
	Others map[string][]*workv1.ManifestWork
	// Approvals of the gates of the stages, and the newest results of their measurements.
	Approvals Approvals
	Measured  []gates.Measured
	// Dependencies are the add-ons that this one depends on, in declared order. Cycle is the cycle of dependencies
	// through this add-on, which is its first and last element; nil: none.
	Dependencies []Dependency
	Cycle        []string
	// NeededBy are, by cluster, the add-ons that depend on this one and are still on the cluster.
	NeededBy map[string][]string
	// Unseen: the watch does not show a created object yet.
	Unseen bool
	Memory Memory
}

// StoredRevisions are the AddOnRevisions of an add-on on the hub.
type StoredRevisions struct {
	// MarkedSucceeded and MarkedQuarantined are the successes and the quarantines that the revisions have as
	// annotations, the quarantines by the name of the revision.
	MarkedSucceeded   Succeeded
	MarkedQuarantined map[string]v1alpha1.RememberedQuarantine
	// Stored are all revisions, each once for every commit that introduced it, the newest commit first.
	Stored []v1alpha1.Target
	// StoredAs are the uids of the revisions, by name.
	StoredAs map[string]types.UID
}

// Choice is the content that the fleet is to run, and the facts about revisions from which that follows.
type Choice struct {
	// Target is the content that the fleet is to run. Override says why it is not the content of Git; nil: it is.
	Target   v1alpha1.Target
	Override *v1alpha1.Override
	// Barrier says why the clusters cannot leave quarantined or blocked content; "": they can.
	Barrier string
	// everSucceeded are all revisions that succeeded here, with the successes that only the status has. Succeeded are
	// those of them that are neither quarantined nor blocked.
	everSucceeded, Succeeded Succeeded
	// Quarantined are the quarantines by the name of the revision, with those that only the status has.
	Quarantined map[string]v1alpha1.RememberedQuarantine
}

// Settings are the flags of the operator and the bounds of the tenant, as far as a plan depends on them.
type Settings struct {
	// ParkAfter and RemovalGrace have the meaning they have in rollout.Input.
	ParkAfter, RemovalGrace time.Duration
	// HookTimeout is how long pre-delete hooks may take before they are reported.
	HookTimeout time.Duration
	// Bounds of the tenant on managed clusters; nil: none.
	Bounds *render.Bounds
	// HidesTemplateHash: OCM's addon-manager may run on the same hub.
	HidesTemplateHash bool
}

// Member is one cluster with the objects of the add-on, as they were read.
type Member struct {
	Name string
	// Cluster is nil when no ManagedCluster of that name exists.
	Cluster *clusterv1.ManagedCluster
	// AddOn is nil when the add-on is not installed.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Taken are the fields of the add-on's status that another writer took from AddonFlow.
	Taken []addonstatus.Takeover
	// Works deploy the add-on. They are in the namespaces of the cluster and of its hosting
	// cluster, sorted by name. Works that are being deleted are included, because their names
	// are still in use.
	Works []*workv1.ManifestWork
	// Hooks are the works that run its pre-delete hooks.
	Hooks []*workv1.ManifestWork
	// Hosting is the hosted mode of the add-on. HostedAt is set while the ManagedClusterAddOn is being deleted. It is
	// the cluster with the hosting works, which may differ from the one in the annotation.
	Hosting  addonstatus.Hosting
	HostedAt *clusterv1.ManagedCluster
	// SelectedBy are the install placements that select the cluster, in declared order.
	SelectedBy []v1alpha1.PlacementReference
	// Configs are the configurations that its ManagedClusterAddOn names, as they are now.
	Configs []render.Config
	// Hindered is why nothing can be written to the cluster now; nil: writes are possible.
	Hindered *Hindrance
	// Contested is the ErrContested about one of the member's works, whose content is then not known; nil: there is
	// none.
	Contested error
	// Health is the state of the current content of the works. Serves: see Serving.
	Health render.Observation
	Serves bool
	// Decoded is the renderer of the revision that its works name. It is read only to check
	// Taken; nil: not known.
	Decoded *render.Renderer
}

// Hindrance is why nothing can be written to a cluster although it exists: its ManagedClusterAddOn names an object
// that cannot be used. No other cluster is affected.
type Hindrance struct {
	// Unsupported: the ManagedClusterAddOn names a kind that the add-on does not list.
	Unsupported bool
	Message     string
	// Retry: the cause may end without a change on the hub.
	Retry bool
}

// Conditions report the hindrance on the ManagedClusterAddOn.
func (h Hindrance) Conditions() []metav1.Condition {
	if h.Unsupported {
		return addonstatus.Unsupported(h.Message)
	}
	return addonstatus.Hindered(h.Message)
}

// SourceName is the namespace/name of the source, as in the annotation of works.
func (o *Observation) SourceName() string {
	return o.Rollout.Namespace + "/" + o.Rollout.Spec.Target.Source
}

// HostingName reads the annotation of the ManagedClusterAddOn. While the ManagedClusterAddOn does not exist, it reads
// the annotation of the ManagedCluster, which is copied on installation.
func (m *Member) HostingName() (name string, hosted bool) {
	switch {
	case m.AddOn != nil:
		name, hosted = m.AddOn.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	case m.Cluster != nil:
		name, hosted = m.Cluster.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	}
	return name, hosted
}

// worksAt is the hosting cluster whose namespace has deploy works of the member; "": none. Works that are being
// deleted do not count. It is where the add-on is really hosted: the annotation may be wrong or may have changed.
func (m *Member) worksAt(addOn string) string {
	for _, w := range m.Works {
		if w.DeletionTimestamp == nil && render.IsHostingWork(w, addOn) {
			return w.Namespace
		}
	}
	return ""
}

// HostedBy is the cluster on which the add-on's hosting hooks run: the cluster with its hosting works; without such
// works, the cluster in the annotation.
func (m *Member) HostedBy(addOn string) string {
	if at := m.worksAt(addOn); at != "" {
		return at
	}
	for _, w := range m.Hooks {
		if w.Name != render.PreDeleteWorkName(addOn) {
			return w.Namespace
		}
	}
	return m.Hosting.Name
}

// Departs reports whether the ManagedClusterAddOn is being deleted and AddonFlow's finalizers
// hold it.
func (m *Member) Departs() bool {
	return m.AddOn != nil && m.AddOn.DeletionTimestamp != nil && slices.ContainsFunc(m.AddOn.Finalizers, render.HoldsAddOn)
}

// Report is the input of a prober about a member.
func (m *Member) Report(addOn string) render.Report {
	r := render.Report{AddOn: addOn, Works: m.Works}
	if m.AddOn != nil {
		r.Available = apimeta.FindStatusCondition(m.AddOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
	}
	return r
}

// Serving reports whether an add-on whose works OCM wrote, without a digest, runs. If it does not run, equal content
// does not verify the cluster, which is then admitted and judged like any other.
func (m *Member) Serving(said render.Availability) bool {
	return available(m.Cluster) && (said.Status == "" || said.Status == metav1.ConditionTrue && said.Degraded == "")
}

// Running is the digest of the revision on a member's works. If the works lost the annotation of the revision or of
// the content, it is Mixed: their content is not known, and a repair would be a move without an admission.
func (m *Member) Running() string {
	if m.Health.Revision != "" && m.Health.Digest != "" {
		return m.Health.Revision
	}
	found := ""
	for _, w := range m.Works {
		switch {
		case w.DeletionTimestamp != nil:
		case w.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue:
			return rollout.Mixed
		default:
			found = rollout.Foreign
		}
	}
	return found
}

// names reports whether a work of AddonFlow on the member names the revision.
func (m *Member) names(digest string) bool {
	return slices.ContainsFunc(m.Works, func(w *workv1.ManifestWork) bool {
		return w.DeletionTimestamp == nil && w.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue && w.Annotations[v1alpha1.RevisionAnnotation] == digest
	})
}

// Installation says whether a ManagedClusterAddOn exists, and whether AddonFlow created it.
func Installation(addOn *addonv1alpha1.ManagedClusterAddOn) rollout.Installation {
	switch {
	case addOn == nil:
		return rollout.NotInstalled
	case addOn.DeletionTimestamp != nil:
		return rollout.Deleting
	case v1alpha1.Installed(addOn):
		return rollout.Ours
	}
	return rollout.HandMade
}

// Reachable reports whether a cluster is available, and when that last changed. The time is of
// the managed cluster's clock.
func Reachable(c *clusterv1.ManagedCluster) (is bool, changed time.Time) {
	if c == nil {
		return false, time.Time{}
	}
	cond := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if cond == nil {
		return false, time.Time{}
	}
	return cond.Status == metav1.ConditionTrue && c.Spec.HubAcceptsClient, cond.LastTransitionTime.Time
}

func available(c *clusterv1.ManagedCluster) bool {
	is, _ := Reachable(c)
	return is
}

// InstallDisabled reports whether OCM's annotation on a ManagedCluster disables the automatic
// installation of add-ons.
func InstallDisabled(c *clusterv1.ManagedCluster) bool {
	return strings.EqualFold(c.Annotations[addonv1alpha1.DisableAddonAutomaticInstallationAnnotationKey], "true")
}

// Named are the digests of the revisions that the rollout, its ledger or a work names.
func (o *Observation) Named() []string {
	names := map[string]bool{o.Rollout.Spec.Target.Digest: true, o.Target.Digest: true}
	if s := o.Rollout.Status.Stable; s != nil {
		names[s.Digest] = true
	}
	if s := o.Rollout.Status.Target; s != nil {
		names[s.Digest] = true
	}
	if o.Rollout.Status.Target == nil || o.Rollout.Spec.OnFailure == v1alpha1.OnFailureRollback {
		names[o.refuge(o.Target)] = true
	}
	for i := range o.Orders {
		s, open := &o.Orders[i].Spec, o.Orders[i].Status.State == ""
		switch {
		case !open:
		case s.Verb == v1alpha1.OrderRollback:
			names[o.refuge(o.Target)] = true
			names[o.digestOf(s.Arguments)] = true
		case s.Verb == v1alpha1.OrderUnblock:
			names[o.known(s.Digest).Digest] = true // a later order to roll back may return to it
		}
	}
	for _, g := range o.Rollout.Status.Ledger.Records {
		names[g.Revision] = true
	}
	for _, m := range o.Members {
		names[m.Health.Revision] = true
		for _, w := range m.Hooks {
			names[w.Annotations[v1alpha1.RevisionAnnotation]] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Revisions are the bodies of revisions, by digest.
type Revisions map[string]Content

// Content is the body of a revision. The zero value stands for no revision.
type Content struct {
	digest string
	// Renderer is nil while the revision has no body, or its body could not be read.
	Renderer *render.Renderer
	err      error
	// interruptions is the renderer's count at the start of the turn.
	interruptions int
}

// Add enters a revision with its renderer, or with the error of reading it. The error is a *MissingRevision if the
// revision has no body.
func (r Revisions) Add(digest string, renderer *render.Renderer, err error) {
	c := Content{digest: digest, Renderer: renderer, err: err}
	if renderer != nil {
		c.interruptions, _ = renderer.Interruptions()
	}
	r[digest] = c
}

// Interrupted returns the error if a package could not be rendered after the revisions were read. The comparisons of
// this turn are then wrong, and callers must not plan with them.
func (r Revisions) Interrupted() error {
	for _, c := range r {
		if c.Renderer == nil {
			continue
		}
		if n, err := c.Renderer.Interruptions(); n > c.interruptions {
			return fmt.Errorf("cannot render the package now: %w", err)
		}
	}
	return nil
}

// Renderer returns the renderer of a digest, or the error of reading it. The error is a
// *MissingRevision if the AddOnRevision does not exist or its content does not match its name.
func (o *Observation) Renderer(digest string) (*render.Renderer, error) {
	c, ok := o.Revisions[digest]
	if !ok {
		return nil, &MissingRevision{Name: render.RevisionName(o.Rollout.Name, digest)}
	}
	return c.Renderer, c.err
}

// content returns the body of the revision of a digest. A missing body is not an error.
func (r Revisions) content(digest string) (Content, error) {
	c := r[digest]
	if errors.Is(c.err, ErrRevisionMissing) {
		return c, nil
	}
	return c, c.err
}

// missing is the message that the revision has no body; "": it has one.
func (c Content) missing() string {
	if m, ok := errors.AsType[*MissingRevision](c.err); ok {
		return m.words()
	}
	return ""
}

// ErrRevisionMissing means that a cluster needs an AddOnRevision that has no body. Clusters that need it are held. The revision
// is never rebuilt from live objects.
var ErrRevisionMissing = errors.New("revision is missing")

// MissingRevision is ErrRevisionMissing of one AddOnRevision.
type MissingRevision struct {
	Name string
	// Why an existing revision cannot be used; "": it does not exist.
	Why string
}

// Error names the revision.
func (e *MissingRevision) Error() string {
	if e.Why == "" {
		return ErrRevisionMissing.Error() + ": " + e.Name
	}
	return ErrRevisionMissing.Error() + ": " + e.Name + " " + e.Why
}

// Is reports whether target is ErrRevisionMissing.
func (e *MissingRevision) Is(target error) bool { return target == ErrRevisionMissing }

// words is the text of the error for a user. The user must delete a revision that cannot be used, so that the
// operator can create it again.
func (e *MissingRevision) words() string {
	if e.Why == "" {
		return "revision " + e.Name + " is missing"
	}
	return "revision " + e.Name + " " + e.Why + " (delete it)"
}

// Success is one revision and when a rollout of it last ended Succeeded.
type Success struct{ Name, Digest, At string }

// Succeeded are the revisions of an add-on that succeeded here, the newest first.
type Succeeded []Success

// Has reports whether a rollout of the revision of that name ended Succeeded here.
func (s Succeeded) Has(revision string) bool {
	return slices.ContainsFunc(s, func(x Success) bool { return x.Name == revision })
}

// since reports whether a rollout of the revision ended Succeeded after the time.
func (s Succeeded) since(revision string, t *metav1.Time) bool {
	return t != nil && slices.ContainsFunc(s, func(x Success) bool {
		at, err := time.Parse(time.RFC3339, x.At)
		return err == nil && x.Name == revision && at.After(t.Time)
	})
}

// before returns the digest of the revision that succeeded last, apart from the given one; "": none.
func (s Succeeded) before(digest string) string {
	for _, x := range s {
		if x.Digest != digest {
			return x.Digest
		}
	}
	return ""
}

// at is when the revision of a digest last succeeded; "": never.
func (s Succeeded) at(digest string) string {
	for _, x := range s {
		if x.Digest == digest {
			return x.At
		}
	}
	return ""
}

// newest returns the revision that succeeded last; zero: none.
func (s Succeeded) newest() Success {
	if len(s) == 0 {
		return Success{}
	}
	return s[0]
}
