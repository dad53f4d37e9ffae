package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
)

// replacing reports whether the hub runs no OCM addon-manager, so that what it would
// say to OCM's tools is said here.
func (r *Reconciler) replacing() bool { return !r.HidesTemplateHash }

// publish writes the status of the ClusterManagementAddOn for OCM's tools where there is a
// plan, in replace mode only: OCM's addon-manager would wipe it. The object is read live only
// when the status to write or the version that was seen is another than the last time.
func (r *Reconciler) publish(ctx context.Context, o *observation, t turn, now time.Time) error {
	if !r.replacing() || o.owner == nil || o.rollout.Spec.Removal != nil {
		return nil
	}
	want, err := r.wantedStatus(ctx, o, t)
	if err != nil {
		if errors.Is(err, errRevisionMissing) {
			return nil // what was published stays, until the body is back
		}
		return err
	}
	key := client.ObjectKeyFromObject(o.rollout)
	if r.published.is(key, o.owner.ResourceVersion, want) {
		return nil
	}
	var live addonv1alpha1.ClusterManagementAddOn
	if err := r.Live.Get(ctx, client.ObjectKey{Name: o.rollout.Name}, &live); err != nil {
		return client.IgnoreNotFound(err)
	}
	next := live.DeepCopy()
	next.Status = addonstatus.Timed(want, live.Status, metav1.NewTime(now))
	if !equality.Semantic.DeepEqual(live.Status, next.Status) {
		patch := client.MergeFromWithOptions(&live, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Status().Patch(ctx, next, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot publish the status of ClusterManagementAddOn %s: %w", next.Name, err)
		}
	}
	r.published.set(key, publication{seen: o.owner.ResourceVersion, stored: next.ResourceVersion, status: want})
	return nil
}

// wantedStatus is the status that the turn's plan comes to.
func (r *Reconciler) wantedStatus(ctx context.Context, o *observation, t turn) (addonv1alpha1.ClusterManagementAddOnStatus, error) {
	var none addonv1alpha1.ClusterManagementAddOnStatus
	target, err := o.revisions.get(ctx, o.rollout.Spec.Target.Digest)
	if err != nil {
		return none, err
	}
	var stable *render.Renderer
	if s := t.next.Stable; s != nil {
		stable, err = o.revisions.get(ctx, s.Digest)
		if err != nil && !errors.Is(err, errRevisionMissing) {
			return none, err
		}
	}
	return addonstatus.Published(t.plan.Progressions, target, stable), nil
}

// publication is a status that was written, and when: seen is the version that the
// watch had shown by then, stored the one that the write made.
type publication struct {
	seen, stored string
	status       addonv1alpha1.ClusterManagementAddOnStatus
}

// publications remember what was published last of each rollout. Losing it costs one
// read per rollout.
type publications struct {
	mu   sync.Mutex
	last map[client.ObjectKey]publication
}

// newPublications returns an empty memory.
func newPublications() *publications { return &publications{last: map[client.ObjectKey]publication{}} }

// is reports whether the status was published and nobody has written the object since.
func (p *publications) is(key client.ObjectKey, version string, want addonv1alpha1.ClusterManagementAddOnStatus) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	return ok && (version == last.seen || version == last.stored) && equality.Semantic.DeepEqual(last.status, want)
}

// set remembers a publication.
func (p *publications) set(key client.ObjectKey, what publication) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = what
}

// forget drops a rollout that is gone.
func (p *publications) forget(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
