package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
)

// ErrOwnership means that two owners claim one add-on. AddonFlow stops writing.
var ErrOwnership = errors.New("ownership conflict")

// errFenced is the ErrOwnership of a writer that is fenced off but may not have stopped yet. It ends by itself.
var errFenced = fmt.Errorf("%w", ErrOwnership)

// ErrContested means that another client undoes each write of a work. It is an ErrOwnership. Only the next writes
// show whether the client has stopped, so the rollout is planned even if its status was lost.
var ErrContested = fmt.Errorf("%w", ErrOwnership)

// ErrTenantDenied means that the policy of tenants does not let a rollout write to clusters.
var ErrTenantDenied = errors.New("denied to the tenant")

// ErrInvalidTenants is the ErrTenantDenied of every tenant while the policy is invalid.
var ErrInvalidTenants = fmt.Errorf("%w", ErrTenantDenied)

// fencedFor is how long a writer that was fenced off may still act on old reads.
const fencedFor = 30 * time.Second

// Accepted is a field of an add-on's status that another writer wrote and that AddonFlow treats as its own. AddonFlow
// writes the field again if it differs from the plan.
type Accepted struct {
	AddOn *addonv1alpha1.ManagedClusterAddOn
	Kind  string
}

// Claims are the other owners and writers of the add-on that were found.
type Claims struct {
	// Barred: nothing is written to clusters, because another owner writes there, because the policy of
	// tenants denies it, or because their health cannot be judged.
	Barred bool
	// Accepted are the fields of other writers that AddonFlow treats as its own.
	Accepted []Accepted
	// AcceptsAt is when the fields of a fenced-off writer are accepted; zero: there are no such fields.
	AcceptsAt time.Time
	// Restored is a text about the accepted fields that another writer wrote while the
	// ClusterManagementAddOn was not fenced off; "": there are none.
	Restored string

	// contested is why the rollout admits no cluster; nil: no owner or writer contests it.
	contested error
}

// claims looks for another owner or writer. A reconcile request of the user means that the user has stopped the other
// writer.
func (o *Observation) claims() (Claims, error) {
	c := Claims{contested: cmp.Or(o.Denied, o.conflict(), o.InvalidHealth)}
	if c.Barred = c.contested != nil; c.Barred {
		return c, nil
	}
	if RequestedAt(o.Rollout) != "" {
		c.contested = o.fenceDown()
		for _, m := range o.Members {
			for _, t := range m.Taken {
				c.Accepted = append(c.Accepted, Accepted{m.AddOn, t.Kind()})
			}
		}
		return c, nil
	}
	target, err := o.Revisions.content(o.Target.Digest)
	if err != nil {
		return Claims{}, err
	}
	c = o.writers(target.Renderer)
	c.contested = cmp.Or(c.contested, o.fenceDown(), o.contested())
	return c, nil
}

// contested is the conflict about a work of the first cluster with such a conflict; nil: there is none.
func (o *Observation) contested() error {
	for _, m := range o.Members {
		if m.Contested != nil {
			return m.Contested
		}
	}
	return nil
}

// RequestedAt returns the request of the user that was not carried out yet; "": there is none.
func RequestedAt(ro *v1alpha1.AddOnRollout) string {
	if at := ro.Annotations[meta.ReconcileRequestAnnotation]; at != ro.Status.LastHandledReconcileAt {
		return at
	}
	return ""
}

// conflict returns an error when another source owns the add-on.
func (o *Observation) conflict() error {
	if o.Owner == nil {
		return nil
	}
	if owner := o.Owner.Annotations[v1alpha1.SourceAnnotation]; owner != "" && owner != o.SourceName() {
		return fmt.Errorf("%w: add-on %s belongs to source %s; remove it from one of the two", ErrOwnership, o.Rollout.Name, owner)
	}
	return nil
}

// fenceDown returns an error if another writer lists addontemplates on the ClusterManagementAddOn that AddonFlow
// fenced off. OCM's template manager starts because of the list, and may take over any cluster that is moved.
// Templates that AddonFlow lists itself, in replace mode, are no conflict. An add-on that is being removed is not
// checked, because it gets no new content.
func (o *Observation) fenceDown() error {
	if o.Owner == nil || o.Rollout.Spec.Removal != nil || !listsTemplates(o.Owner) ||
		o.Owner.Annotations[v1alpha1.LifecycleAnnotation] != v1alpha1.LifecycleValue {
		return nil
	}
	writer := v1alpha1.TemplateWriter(o.Owner)
	if writer == v1alpha1.FieldManager {
		return nil
	}
	return fmt.Errorf("%w: %q lists addontemplates of add-on %s: stop that writer; addonflow reconcile source %s -n %s --force",
		ErrOwnership, writer, o.Owner.Name, o.Rollout.Spec.Target.Source, o.Rollout.Namespace)
}

func listsTemplates(owner *addonv1alpha1.ClusterManagementAddOn) bool {
	return slices.ContainsFunc(owner.Spec.SupportedConfigs, func(c addonv1alpha1.ConfigMeta) bool { return addonstatus.IsTemplate(c.Group, c.Resource) })
}

// writers looks for fields of AddonFlow that another writer writes. It stops at the first cluster with a conflict
// that does not end by itself. target is nil while its body is missing. OCM's configuration controller always updates
// lastObservedGeneration; a change of that field alone is accepted. Fields that a writer wrote before it was fenced
// off are accepted, too, and repaired.
func (o *Observation) writers(target *render.Renderer) Claims {
	var c Claims
	var repaired []string
	writer := ""
	for _, m := range o.Members {
		if m.AddOn == nil || m.AddOn.DeletionTimestamp != nil {
			continue
		}
		for _, t := range m.Taken {
			until := o.acceptsAt(t)
			switch {
			case t.Field == addonstatus.References && m.Hindered != nil: // the correct references are not known
			case t.Field == addonstatus.References && o.expectsReferences(m, target):
				c.Accepted = append(c.Accepted, Accepted{m.AddOn, t.Kind()})
			case o.Look.Wall.Before(until):
				c.Barred, c.AcceptsAt = true, until
				c.contested = fmt.Errorf("%w: settling until %s: %q wrote %s of ManagedClusterAddOn %s/%s while ClusterManagementAddOn %s was not fenced off",
					errFenced, until.UTC().Format(time.TimeOnly+" MST"), t.Manager, t.Field, m.Name, m.AddOn.Name, o.Rollout.Name)
			case !until.IsZero():
				c.Accepted = append(c.Accepted, Accepted{m.AddOn, t.Kind()})
				repaired, writer = append(repaired, m.Name), t.Manager
			default:
				c.Barred, c.AcceptsAt = true, time.Time{}
				c.contested = fmt.Errorf("%w: %q wrote %s of ManagedClusterAddOn %s/%s: stop that writer; addonflow reconcile rollout %s -n %s",
					ErrOwnership, t.Manager, t.Field, m.Name, m.AddOn.Name, m.AddOn.Name, o.Rollout.Namespace)
				return c
			}
		}
	}
	if repaired = slices.Compact(repaired); len(repaired) > 0 && !c.Barred {
		c.Restored = fmt.Sprintf("%q wrote to the add-on of %s while ClusterManagementAddOn %s was not fenced off; it is fenced off again, and what it wrote is repaired",
			writer, brief.Names(repaired), o.Rollout.Name)
	}
	return c
}

// acceptsAt is when a takeover is accepted, because it counts as ended: its writer wrote before the
// ClusterManagementAddOn was fenced off again, and has not written since. If the writer continues, acceptsAt is zero:
// the writer is in conflict with AddonFlow.
func (o *Observation) acceptsAt(t addonstatus.Takeover) time.Time {
	if o.Owner == nil || o.Owner.Annotations[v1alpha1.LifecycleAnnotation] != v1alpha1.LifecycleValue || listsTemplates(o.Owner) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, o.Owner.Annotations[v1alpha1.FencedAtAnnotation])
	if until := at.Add(fencedFor); err == nil && !t.At.IsZero() && t.At.Before(until) {
		return until
	}
	return time.Time{}
}

// expectsReferences reports whether the add-on has the references of the current or the next content of the cluster,
// apart from lastObservedGeneration.
func (o *Observation) expectsReferences(m *Member, target *render.Renderer) bool {
	for _, renderer := range []*render.Renderer{target, m.Decoded} {
		if renderer == nil {
			continue
		}
		rendered, err := renderer.Render(m.renderInput(nil))
		if err == nil && o.moveTo(m.AddOn, rendered).Desires(m.AddOn.Status.ConfigReferences) {
			return true
		}
	}
	return false
}
