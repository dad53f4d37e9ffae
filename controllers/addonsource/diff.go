package addonsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// settled reports whether an object is as the hub had it when desired was last applied or
// compared by this process: then applying desired changes nothing, and no request is needed
// to know it.
func settled(live, desired *unstructured.Unstructured, last written) bool {
	return live != nil && last.desired != "" && last.desired == digestOf(desired) && last.stored == storedDigest(live)
}

// digestOf identifies what is applied.
func digestOf(u *unstructured.Unstructured) string {
	sum := sha256.New()
	if json.NewEncoder(sum).Encode(u.Object) != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// storedDigest identifies what the hub stores of an object, as far as a commit can declare
// it: everything but metadata and status, and which fields, those of metadata included, the
// API server records as applied by AddonFlow. Another writer that changes or removes such a
// field takes it out of that record.
func storedDigest(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	content := maps.Clone(live.Object)
	delete(content, "metadata")
	delete(content, "status")
	sum := sha256.New()
	if json.NewEncoder(sum).Encode(content) != nil {
		return ""
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			sum.Write(entry.FieldsV1.GetRawBytes())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// diff leaves in the plan only the changes that would change something. The API server says
// so: it runs each apply dry, and what it would store is compared with what it stores. So
// declared fields and whole atomic lists are compared, after defaults and webhooks, and what
// other writers added elsewhere is not. What the API server refuses stays in the plan, for
// admit to judge.
func (p *pass) diff(ctx context.Context, todo *plan) error {
	for _, list := range []*[]change{&todo.namespaces, &todo.objects, &todo.addOnObjects, &todo.rollouts} {
		var differing []change
		for _, c := range *list {
			differs, err := p.differs(ctx, &c)
			if err != nil {
				return err
			}
			if differs {
				differing = append(differing, c)
			}
		}
		*list = differing
	}
	return todo.namePolicy(p.head.String())
}

// differs runs one apply dry. It notes in the change why the API server refuses it.
func (p *pass) differs(ctx context.Context, c *change) (bool, error) {
	if c.live == nil {
		return true, nil // tryCreate judges it
	}
	entry, _, _, err := p.resources(p.Client).Diff(ctx, c.applied(), ssa.DefaultDiffOptions())
	switch {
	case err == nil && entry.Action != ssa.UnchangedAction:
		return true, nil
	case err == nil:
		p.writes.compared(keyOf(c.desired), c.desired, c.live)
		return !guarded(c.live), nil
	case apierrors.IsConflict(err): // ownership is forced, so that it is about the object
		return false, goneMeanwhile(c)
	case transient(err):
		return false, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot compare %s: %w", keyOf(c.desired), err))
	}
	c.refused = refusals(err, c.desired, c.desired.GetName())
	return true, nil
}

// applied is what is sent: desired, bound to the object that was read. One that was read is
// not made anew: an AddOnRollout that was released meanwhile would come back without the
// release, as a removal that never ends.
func (c *change) applied() *unstructured.Unstructured {
	u := c.desired.DeepCopy()
	if c.live != nil {
		u.SetUID(c.live.GetUID())
	}
	return u
}

// goneMeanwhile halts the pass: the object is not the one that was read.
func goneMeanwhile(c *change) error {
	return wait(fluxmeta.ProgressingReason, firstWait, "%s was deleted meanwhile", keyOf(c.desired))
}

// resources compares and applies objects as Flux does. Inventory, pruning and waiting are
// AddonFlow's own.
func (p *pass) resources(c client.Client) *ssa.ResourceManager {
	return ssa.NewResourceManager(c, nil, ssa.Owner{Field: v1alpha1.FieldManager, Group: v1alpha1.GroupVersion.Group})
}

// answering keeps the API server's answer to the patch that was not a dry run, which the
// resource manager drops: its version tells the event of our own write from others.
type answering struct {
	client.Client
	answer *unstructured.Unstructured
}

// Patch patches an object.
func (a *answering) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := a.Client.Patch(ctx, object, patch, opts...); err != nil {
		return err
	}
	options := &client.PatchOptions{}
	options.ApplyOptions(opts)
	if u, ok := object.(*unstructured.Unstructured); ok && !slices.Contains(options.DryRun, metav1.DryRunAll) {
		a.answer = u
	}
	return nil
}
