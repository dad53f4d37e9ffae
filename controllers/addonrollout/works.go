package addonrollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createWork creates a work and remembers it. What is sent is a copy: the answer is
// decoded into it, and what was rendered shares its bytes with the works of other clusters.
func (d *round) createWork(ctx context.Context, rendered *workv1.ManifestWork) error {
	work := rendered.DeepCopy()
	err := d.Client.Create(ctx, work)
	if apierrors.IsAlreadyExists(err) {
		return d.alreadyThere(ctx, rendered, err)
	}
	if err != nil {
		return fmt.Errorf("cannot create work %s: %w", work.Name, err)
	}
	d.works.create(work)
	d.madeNew()
	return nil
}

// updateWork updates a work and remembers it; see createWork.
func (d *round) updateWork(ctx context.Context, rendered *workv1.ManifestWork) error {
	work := rendered.DeepCopy()
	if err := d.Client.Update(ctx, work); err != nil {
		return fmt.Errorf("cannot update work %s: %w", work.Name, err)
	}
	d.works.put(work)
	return nil
}

// errHidden says that a work stands where no watch of works of add-ons shows it.
var errHidden = errors.New("one of that name is there which the label " + addOnNameLabel + " does not give to the add-on; delete it, or give it the label back")

// alreadyThere says why a work could not be created: cause while the watch has yet to show
// the one that is there, errHidden where it never will.
func (d *round) alreadyThere(ctx context.Context, rendered *workv1.ManifestWork, cause error) error {
	found, err := d.liveWork(ctx, client.ObjectKeyFromObject(rendered))
	if err == nil && found != nil && addOnOfWork(found) != d.o.rollout.Name {
		return fmt.Errorf("cannot create work %s: %w", rendered.Name, errHidden)
	}
	return fmt.Errorf("cannot create work %s: %w", rendered.Name, errors.Join(cause, err))
}

// fleeting reports whether a write failed for what the next look shows. A namespace that
// does not exist may never come: the name of a cluster need not be one of a namespace.
func fleeting(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		details := status.Status().Details
		return details == nil || details.Kind != "namespaces"
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
