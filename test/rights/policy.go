package rights

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests/admission"
)

// InstallPolicy applies manifests/admission as an admin, and returns when it is in effect: the
// API server enforces a policy a moment after it is stored.
func InstallPolicy(ctx context.Context, admin client.Client) error {
	policy, err := admission.Policy()
	if err != nil {
		return err
	}
	binding, err := admission.Binding()
	if err != nil {
		return err
	}
	for _, o := range []client.Object{policy, binding} {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("cannot create %T %s: %w", o, o.GetName(), err)
		}
	}
	return AwaitPolicy(ctx, admin)
}

// AwaitPolicy returns when the API server enforces the policy of manifests/admission.
func AwaitPolicy(ctx context.Context, admin client.Client) error {
	forged := v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "forged-"},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: "none", Rollout: "none", Stage: "none", Gate: "none", Digest: "v1:sha256:" + strings.Repeat("0", 64),
			Attempt: 1, Decision: v1alpha1.Approve, Approver: "another user",
		},
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, effectiveWithin, true, func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, forged.DeepCopy(), client.DryRunAll)
		switch {
		case apierrors.IsForbidden(err):
			return true, nil
		case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
			return false, nil // the definition was just created
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("manifests/admission does not come into effect: %w", err)
	}
	return nil
}
