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
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Observation is everything that one turn read. Nothing in it is changed after that.
type Observation struct {
	// Look is when the turn began.
	Look Look
	Settings
	// Rollout as stored. It was read uncached: budget is spent on the ledger in it.
	Rollout *v1alpha1.AddOnRollout
	// Uninstalling is what deletes the rollout together with all others; "": nothing does.
	Uninstalling string
	// Source that declares the add-on; nil when it is gone.
	Source *v1alpha1.AddOnSource
	// Owner is the add-on's ClusterManagementAddOn; nil while it does not exist.
	Owner *addonv1alpha1.ClusterManagementAddOn
	// Succeeded are the revisions that succeeded here and may be rolled out. Quarantined are those
	// that may not, by digest.
	Succeeded   Succeeded
	Quarantined map[string]v1alpha1.Quarantine
	// Orders about the rollout, the oldest first. Unproven says why the author of an order without
	// an answer is not known, by the name of the order.
	Orders   []v1alpha1.AddOnOrder
	Unproven map[string]string
	// Target is the content that the fleet is to run; Override says why it is not what Git
	// declares, nil if it is. Choose sets both.
	Target   v1alpha1.Target
	Override *v1alpha1.Override
	// Prober judges health; Policy is the text it was made from. InvalidHealth says why the
	// declared one could not be made.
	Prober        render.Prober
	Policy        string
	InvalidHealth error
	Placements    []rollout.Placement
	// Members are every cluster that has the add-on or is selected, by name.
	Members []*Member
	// Revisions has every revision that the rollout, its ledger or a work names.
	Revisions Revisions
	// Unwritten says why the last attempt to write the works of a cluster failed, by cluster.
	Unwritten map[string]string
	// Others are the works that AddonFlow wrote for other add-ons, by their namespace.
	Others map[string][]*workv1.ManifestWork
	// Approvals of the gates of the stages, and the newest results of their measurements.
	Approvals Approvals
	Measured  []Measured
	// Unseen: the watch has not shown yet everything that was created.
	Unseen bool
	Memory Memory
}

// Settings are the flags of the operator that a plan depends on.
type Settings struct {
	// ParkAfter and RemovalGrace are those of rollout.Input.
	ParkAfter, RemovalGrace time.Duration
	// HookTimeout is how long pre-delete hooks may take before they are reported.
	HookTimeout time.Duration
	// HidesTemplateHash: OCM's addon-manager may be running beside this operator.
	HidesTemplateHash bool
}

// Member is one cluster as it was read, as far as the add-on is concerned.
type Member struct {
	Name string
	// Cluster is nil when no ManagedCluster of that name exists.
	Cluster *clusterv1.ManagedCluster
	// AddOn is nil when the add-on is not installed.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Taken are the fields of its status that another writer took from AddonFlow.
	Taken []addonstatus.Takeover
	// Works that deploy the add-on, in the cluster's namespace and in that of its hosting
	// cluster, sorted by name; also those being deleted, whose names are not free yet.
	Works []*workv1.ManifestWork
	// Hooks are the works that run its pre-delete hooks.
	Hooks []*workv1.ManifestWork
	// Hosting says where it runs in hosted mode. HostedAt, of a member that departs, is the
	// cluster its hosting works are on, which may not be the one that is named.
	Hosting  addonstatus.Hosting
	HostedAt *clusterv1.ManagedCluster
	// SelectedBy are the install placements that select the cluster, in declared order.
	SelectedBy []v1alpha1.PlacementReference
	// Configs are those its ManagedClusterAddOn names, as the hub has them now.
	Configs []render.Config
	// Hindered is why nothing can be written to it now; nil if nothing is in the way.
	Hindered *Hindrance
	// Health is what the works say about what they ask for now. Serves: all of its pods are
	// ready, as far as OCM asked its agent.
	Health render.Observation
	Serves bool
	// Decoded is the renderer of what its works name, of whichever namespace, where Taken
	// asks for it; nil: not known.
	Decoded *render.Renderer
}

// Hindrance is why nothing can be written to a cluster now, though it is there: something
// that its own ManagedClusterAddOn names on the hub. It concerns that cluster alone.
type Hindrance struct {
	// Unsupported: it names a kind that the add-on does not list.
	Unsupported bool
	Message     string
	// Retry: it may pass without any change on the hub.
	Retry bool
}

// Conditions say so on the ManagedClusterAddOn.
func (h Hindrance) Conditions() []metav1.Condition {
	if h.Unsupported {
		return addonstatus.Unsupported(h.Message)
	}
	return addonstatus.Hindered(h.Message)
}

// SourceName is the namespace/name of the source, as works carry it.
func (o *Observation) SourceName() string {
	return o.Rollout.Namespace + "/" + o.Rollout.Spec.Target.Source
}

// HostingName reads the annotation of the ManagedClusterAddOn, and before there is one that of
// the ManagedCluster, which will be copied to it.
func (m *Member) HostingName() (name string, hosted bool) {
	switch {
	case m.AddOn != nil:
		name, hosted = m.AddOn.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	case m.Cluster != nil:
		name, hosted = m.Cluster.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	}
	return name, hosted
}

// worksAt is the hosting cluster whose namespace has deploy works of the member that are not
// being deleted, "" for none. It is where the add-on really is hosted, which an annotation
// that was just changed, or mistyped, does not say.
func (m *Member) worksAt(addOn string) string {
	for _, w := range m.Works {
		if w.DeletionTimestamp == nil && render.IsHostingWork(w, addOn) {
			return w.Namespace
		}
	}
	return ""
}

// HostedBy is the cluster that the add-on's hosting hooks run on: where its hosting works
// are, and without any where the annotation says.
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

// Report is what a prober reads about a member.
func (m *Member) Report(addOn string) render.Report {
	r := render.Report{AddOn: addOn, Works: m.Works}
	if m.AddOn != nil {
		r.Available = apimeta.FindStatusCondition(m.AddOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
	}
	return r
}

// Serving reports whether the works that OCM wrote, which carry no digest, say that the add-on
// runs. Content that does not run proves nothing by being equal: its clusters are admitted,
// and judged, like any others.
func (m *Member) Serving(said render.Availability) bool {
	return available(m.Cluster) && (said.Status == "" || said.Status == metav1.ConditionTrue && said.Degraded == "")
}

// Running is the digest of the revision on a member's works. Works that have lost either
// mark, the revision's or the content's, are Mixed: what they hold is not known, and
// repairing them would be a move without an admission.
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

// Installation says whose a ManagedClusterAddOn is.
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

// Reachable reads whether the hub has a cluster as available, and when that last changed by
// the clock of the managed cluster.
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

// available reports whether the hub hears from a cluster.
func available(c *clusterv1.ManagedCluster) bool {
	is, _ := Reachable(c)
	return is
}

// InstallDisabled reports whether a ManagedCluster asks that no add-on is installed by itself.
func InstallDisabled(c *clusterv1.ManagedCluster) bool {
	return strings.EqualFold(c.Annotations[addonv1alpha1.DisableAddonAutomaticInstallationAnnotationKey], "true")
}

// Named are the digests of the revisions that the rollout, its ledger or a work names.
func (o *Observation) Named() []string {
	names := map[string]bool{o.Rollout.Spec.Target.Digest: true, o.Target.Digest: true}
	if s := o.Rollout.Status.Stable; s != nil {
		names[s.Digest] = true
	}
	if o.Rollout.Status.Target == nil || o.Rollout.Spec.OnFailure == v1alpha1.OnFailureRollback {
		names[o.Succeeded.before(o.Target.Digest)] = true
	}
	for i := range o.Orders {
		if s := &o.Orders[i].Spec; s.Verb == v1alpha1.OrderRollback && o.Orders[i].Status.State == "" {
			names[o.Succeeded.before(o.Target.Digest)] = true
			names[o.digestOf(s.Arguments)] = true
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

// Content is what a revision holds. The zero value is no revision.
type Content struct {
	digest string
	// Renderer is nil while the revision has no body, or its body could not be read.
	Renderer *render.Renderer
	err      error
	// interruptions that the renderer had before the turn.
	interruptions int
}

// Add enters a revision: its renderer, or why there is none. The error is a *MissingRevision
// or one of reading.
func (r Revisions) Add(digest string, renderer *render.Renderer, err error) {
	c := Content{digest: digest, Renderer: renderer, err: err}
	if renderer != nil {
		c.interruptions, _ = renderer.Interruptions()
	}
	r[digest] = c
}

// Interrupted returns why a package could not be rendered since the revisions were read. What
// was compared is then not true of any cluster, and must not be planned with.
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

// Renderer returns the renderer of a digest. The error is a *MissingRevision if its
// AddOnRevision is gone or is not what its name says, else that of reading.
func (r Revisions) Renderer(digest string) (*render.Renderer, error) {
	c, ok := r[digest]
	if !ok {
		return nil, &MissingRevision{Name: digest}
	}
	return c.Renderer, c.err
}

// content returns what the revision of a digest holds; a body that is missing is no error.
func (r Revisions) content(digest string) (Content, error) {
	c := r[digest]
	if errors.Is(c.err, ErrRevisionMissing) {
		return c, nil
	}
	return c, c.err
}

// missing says in words that the revision has no body; "" if it has one.
func (c Content) missing() string {
	if m, ok := errors.AsType[*MissingRevision](c.err); ok {
		return m.words()
	}
	return ""
}

// ErrRevisionMissing says that an AddOnRevision that a cluster needs has no body. The clusters
// that need it are held; it is never rendered again from live objects.
var ErrRevisionMissing = errors.New("revision is missing")

// MissingRevision is ErrRevisionMissing of one AddOnRevision.
type MissingRevision struct {
	Name string
	// Why it is as good as missing although it is there; "" if it is not there.
	Why string
}

// Error names the revision.
func (e *MissingRevision) Error() string {
	if e.Why == "" {
		return ErrRevisionMissing.Error() + ": " + e.Name
	}
	return ErrRevisionMissing.Error() + ": " + e.Name + " " + e.Why
}

// Is tells that it is ErrRevisionMissing.
func (e *MissingRevision) Is(target error) bool { return target == ErrRevisionMissing }

// words say it to a user: one that is in the way has to go before it can come back.
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

// before returns the digest of the revision that succeeded last and is not the given one; "": none.
func (s Succeeded) before(digest string) string {
	for _, x := range s {
		if x.Digest != digest {
			return x.Digest
		}
	}
	return ""
}

// newest returns the revision that succeeded last; zero when none did.
func (s Succeeded) newest() Success {
	if len(s) == 0 {
		return Success{}
	}
	return s[0]
}
