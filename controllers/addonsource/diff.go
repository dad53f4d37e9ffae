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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// unchanged reports whether an object is unchanged on the hub since this process applied or compared desired. Then an
// apply of desired would change nothing, and no request is needed.
func unchanged(live, desired *unstructured.Unstructured, last written) bool {
	return live != nil && last.desired != "" && last.desired == digestOf(desired) && last.stored == storedDigest(live)
}

// digestOf identifies the applied content of an object, without the time of a fence, which changes each time that
// another client removes the fence.
func digestOf(u *unstructured.Unstructured) string {
	if annotations := u.GetAnnotations(); annotations[v1alpha1.FencedAtAnnotation] != "" {
		delete(annotations, v1alpha1.FencedAtAnnotation)
		u = u.DeepCopy()
		u.SetAnnotations(annotations)
	}
	sum := sha256.New()
	if json.NewEncoder(sum).Encode(u.Object) != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// storedDigest identifies the stored form of an object, as far as a commit can declare it: all fields except metadata
// and status, and the fields, also of metadata, that the API server records as applied by AddonFlow. If another
// writer changes or removes a field, the API server removes it from that record.
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
	sum.Write([]byte(appliedFields(live)))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// appliedFields returns the fields that the API server records as applied by AddonFlow.
func appliedFields(u *unstructured.Unstructured) string {
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			return string(entry.FieldsV1.GetRawBytes())
		}
	}
	return ""
}

// diff returns the plan with only those changes that would change an object. The API server decides: diff runs each apply
// dry, and compares the result with the stored object. So declared fields and whole atomic lists are compared, after
// defaults and webhooks, but fields that other writers added are not. Changes that the API server refuses stay in the
// plan; dryRun judges them.
func (p *pass) diff(ctx context.Context, todo plan) (plan, error) {
	for _, list := range []*[]change{&todo.namespaces, &todo.objects, &todo.addOnObjects, &todo.rollouts} {
		var differing []change
		for _, c := range *list {
			differs, err := p.differs(ctx, &c)
			if err != nil {
				return plan{}, err
			}
			if differs {
				differing = append(differing, c)
			}
		}
		*list = differing
	}
	if p.restoring() {
		return todo, nil
	}
	return todo, todo.namePolicy(p.head.String())
}

// differs runs one apply dry. If the API server refuses it, the change keeps the reason.
func (p *pass) differs(ctx context.Context, c *change) (bool, error) {
	if c.live == nil {
		return true, nil // tryCreate judges it
	}
	if p.isClaim(*c) {
		return true, nil // own judges it
	}
	if err := p.takeFields(ctx, c); err != nil {
		c.refused, err = objections(err, c)
		return true, err
	}
	hub := &answering{Client: p.writer(keyOf(c.desired))}
	entry, _, _, err := p.resources(hub).Diff(ctx, c.applied(), ssa.DefaultDiffOptions())
	switch {
	case err != nil:
		c.refused, err = objections(err, c)
		return true, err
	case entry.Action != ssa.UnchangedAction || appliedFields(hub.tried) != appliedFields(c.live):
		c.sameValues = entry.Action == ssa.UnchangedAction
		c.sameSpec = equality.Semantic.DeepEqual(hub.tried.Object["spec"], c.live.Object["spec"])
		return true, nil
	}
	p.writes.compared(keyOf(c.desired), c.desired, c.live)
	return !guarded(c.live), nil
}

// tryApply returns the API server's objections to the apply of one object.
func (p *pass) tryApply(ctx context.Context, c *change) (problem.List, error) {
	if err := c.force(ctx, client.NewDryRunClient(p.writer(keyOf(c.desired)))); err != nil {
		return objections(err, c)
	}
	return nil, nil
}

// force applies a change even if only the managers of its fields differ.
func (c *change) force(ctx context.Context, hub client.Writer) error {
	return hub.Patch(ctx, c.applied(), client.Apply, client.ForceOwnership, client.FieldOwner(v1alpha1.FieldManager)) //nolint:staticcheck // as package ssa
}

// objections are the problems of a commit that follow from the API server's answer about one of its objects.
func objections(err error, c *change) (problem.List, error) {
	switch {
	case apierrors.IsConflict(err), c.live != nil && apierrors.IsNotFound(err): // ownership is forced, so a conflict is about the object's version
		return nil, changedMeanwhile(c)
	case transient(err):
		return nil, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("the dry run of %s failed: %w", keyOf(c.desired), err))
	}
	return refusals(err, c.desired, c.desired.GetName()), nil
}

// applied returns the object to send: desired, bound to the object that was read. If an object was read, it is never
// created again. Otherwise an AddOnRollout that was released meanwhile would be created again without the release, as
// a removal that never ends.
func (c *change) applied() *unstructured.Unstructured {
	u := c.desired.DeepCopy()
	if c.live != nil {
		u.SetUID(c.live.GetUID())
	}
	return u
}

// changedMeanwhile ends the pass, because the object was changed, deleted or replaced after it was read.
func changedMeanwhile(c *change) error {
	return wait(fluxmeta.ProgressingReason, firstWait, "%s was changed or deleted meanwhile", keyOf(c.desired))
}

// resources compares and applies objects as Flux does. AddonFlow itself does inventory, pruning and waiting.
func (p *pass) resources(c client.Client) *ssa.ResourceManager {
	return ssa.NewResourceManager(c, nil, ssa.Owner{Field: v1alpha1.FieldManager, Group: v1alpha1.GroupVersion.Group})
}

// answering keeps the API server's answers, which the resource manager drops. The version in the answer to a patch
// that is not a dry run identifies events of AddonFlow's own writes.
type answering struct {
	client.Client
	tried, answer *unstructured.Unstructured
}

// Patch patches an object.
func (a *answering) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := a.Client.Patch(ctx, object, patch, opts...); err != nil {
		return err
	}
	options := &client.PatchOptions{}
	options.ApplyOptions(opts)
	u, ok := object.(*unstructured.Unstructured)
	switch {
	case !ok:
	case slices.Contains(options.DryRun, metav1.DryRunAll):
		a.tried = u
	default:
		a.answer = u
	}
	return nil
}
