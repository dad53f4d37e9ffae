package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/render"
)

// rights are what a rollout may do under the policy of tenants. The zero value permits everything.
type rights struct {
	// bounds on managed clusters; nil: none.
	bounds *render.Bounds
	// denied is why the rollout may write to no cluster; nil: it may write.
	denied error
}

// rightsOf judges a rollout by the present policy, because a user may have written the rollout, and the policy may
// have changed. While the rollout is denied, its clusters keep their content. A tenant that lost an add-on may still
// remove or release it, if it is the owner.
func (r *Reconciler) rightsOf(ctx context.Context, ro *v1alpha1.AddOnRollout) (rights, error) {
	if r.Tenants == nil {
		return rights{}, nil
	}
	policy, err := r.Tenants(ctx)
	if errors.Is(err, tenancy.ErrInvalid) {
		return rights{denied: fmt.Errorf("%w: %w; an admin must correct it, and until then no cluster is written", plan.ErrInvalidTenants, err)}, nil
	}
	if err != nil {
		return rights{}, err
	}
	tenant, listed := policy[ro.Namespace]
	s := rights{bounds: tenant.Bounds(), denied: tenant.CheckRollout(ro)}
	if !listed {
		s = rights{bounds: &render.Bounds{}, denied: fmt.Errorf("namespace %s is not a tenant: an admin must list it in the ConfigMap of --tenants", ro.Namespace)}
	}
	if ro.Spec.Removal != nil {
		owner, err := readOwner(ctx, r.Live, ro.Name)
		if err != nil {
			return rights{}, err
		}
		switch {
		case owner == nil:
		case strings.HasPrefix(owner.Annotations[v1alpha1.SourceAnnotation], ro.Namespace+"/"):
			s.denied = nil
		case s.denied == nil:
			s.denied = fmt.Errorf("add-on %s does not belong to a source of namespace %s", ro.Name, ro.Namespace)
		}
	}
	if s.denied != nil {
		s.denied = fmt.Errorf("%w: %w", plan.ErrTenantDenied, s.denied)
	}
	return s, nil
}
