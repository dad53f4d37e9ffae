package addonsource

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// takeOverStep is the next step of the take-over of an add-on that OCM's addon-manager runs.
type takeOverStep int

const (
	// takenOver: no step is left.
	takenOver takeOverStep = iota
	// fenceOff: the lifecycle annotation keeps OCM's install and configuration controllers away. It is the first
	// step, because without it they would undo each of the later steps.
	fenceOff
	// stripTemplates: all entries for addontemplates, placements and fields of other managers are removed.
	// Server-side apply cannot remove a list entry that another manager owns, so this step writes whole lists,
	// preconditioned on the version that was read.
	stripTemplates
	// clearHashes: the template hashes of ManagedClusterAddOns are emptied. OCM's template manager, once started,
	// acts on the ManagedClusterAddOns of the add-on with the hash of a template, as long as one exists.
	clearHashes
)

// takeOverWords describes each step, for the condition.
var takeOverWords = map[takeOverStep]string{
	fenceOff:       "fencing its ClusterManagementAddOn off",
	stripTemplates: "removing addontemplates and placements from its ClusterManagementAddOn",
	clearHashes:    "clearing the template hash of its ManagedClusterAddOns",
}

// takeOver is one step for one add-on.
type takeOver struct {
	addOn string
	step  takeOverStep
	live  *unstructured.Unstructured
	// hashed are the ManagedClusterAddOns to clear.
	hashed []addonv1alpha1.ManagedClusterAddOn
}

// takeOverOf returns the next step for an add-on; false: the add-on may be applied. It decides by stored objects, so
// a take-over continues where the last pass ended.
func takeOverOf(addOn string, in planInput) (takeOver, bool) {
	live, installed := in.seen.live[addOnKey(addOn)], in.seen.installed[addOn]
	t := takeOver{addOn: addOn, step: nextTakeOver(live, in, installed), live: live, hashed: installed.hashed}
	return t, t.step != takenOver
}

// nextTakeOver reads the state from top to bottom:
//
//	replace mode, or claimed by this source            takenOver
//	no lifecycle annotation of AddonFlow               fenceOff
//	lists addontemplates, or installs by placements    stripTemplates
//	a ManagedClusterAddOn has the hash of a template   clearHashes
//	otherwise                                          takenOver
func nextTakeOver(live *unstructured.Unstructured, in planInput, installed installation) takeOverStep {
	again := in.forced && live != nil && listsTemplates(live)
	switch {
	case in.mode == Replace, claimed(live, in.source) && !again:
		return takenOver
	case live != nil && live.GetAnnotations()[v1alpha1.LifecycleAnnotation] != v1alpha1.LifecycleValue:
		return fenceOff
	case live != nil && (listsTemplates(live) || installsByPlacements(live)):
		return stripTemplates
	case len(installed.hashed) > 0:
		return clearHashes
	default:
		return takenOver
	}
}

// installsByPlacements reports whether OCM's install controller has placements to act on.
func installsByPlacements(u *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "installStrategy", "type")
	_, placements, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "installStrategy", "placements")
	return placements || strategy != "" && strategy != addonv1alpha1.AddonInstallStrategyManual
}

// takeOver takes one step for each add-on that needs one, and halts. The next pass reads the result. Templates,
// configurations and targets are applied only after the last step.
func (p *pass) takeOver(ctx context.Context, todo plan) error {
	if len(todo.takeOvers) == 0 {
		return nil
	}
	for _, t := range todo.takeOvers {
		// The next pass reads the changes that other writers made meanwhile.
		err := p.takeStep(ctx, t)
		if err != nil && !apierrors.IsConflict(err) {
			return retry(v1alpha1.TakingOverReason, fmt.Errorf("cannot take over %s: %w", t.addOn, err))
		}
		if i := slices.IndexFunc(todo.addOnObjects, func(c change) bool { return c.desired.GetName() == t.addOn }); i >= 0 && err == nil && t.step == fenceOff {
			p.writes.fenced(todo.addOnObjects[i].desired, t.live, p.now)
		}
	}
	first := todo.takeOvers[0]
	return wait(v1alpha1.TakingOverReason, firstWait, "taking over %s: %s", first.addOn, takeOverWords[first.step])
}

func (p *pass) takeStep(ctx context.Context, t takeOver) error {
	switch t.step {
	case fenceOff:
		return p.fenceOff(ctx, t.live)
	case stripTemplates:
		u, err := stripped(t.live)
		if err != nil {
			return err
		}
		return patchExactly(ctx, p.writer(keyOf(t.live)), t.live, u)
	case clearHashes:
		return p.clearHashes(ctx, t.hashed)
	case takenOver:
	}
	return nil
}

// fenceOff sets the lifecycle annotation on the object that was read. It also removes the source's claim, which can
// be left from replace mode, because the claim says that a take-over is complete.
func (p *pass) fenceOff(ctx context.Context, live *unstructured.Unstructured) error {
	fenced := live.DeepCopy()
	fenced.SetAnnotations(unclaimed(with(live.GetAnnotations(), v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue)))
	if err := patchExactly(ctx, p.writer(keyOf(live)), live, fenced); err != nil {
		return err
	}
	live.Object = fenced.Object
	return nil
}

// patchExactly writes after, bound to the version that was read.
func patchExactly(ctx context.Context, hub client.Writer, live, after *unstructured.Unstructured) error {
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return hub.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager))
}

// unclaimed returns annotations without the claim of a source.
func unclaimed(annotations map[string]string) map[string]string {
	delete(annotations, v1alpha1.SourceAnnotation)
	return annotations
}

// stripped returns a ClusterManagementAddOn without the fields that cause actions of OCM's addon-manager, and without
// the claim of a source. The rest of its spec stays until the commit is applied, as fields of AddonFlow.
func stripped(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	entries, _, err := ownedFields(live.GetManagedFields(), true)
	if err != nil {
		return nil, err
	}
	u := live.DeepCopy()
	fence(u)
	u.SetAnnotations(unclaimed(u.GetAnnotations()))
	u.SetManagedFields(entries)
	return u, nil
}

// parallelWrites bounds concurrent writes to objects of many clusters.
const parallelWrites = 8

// clearHashes writes the status of each ManagedClusterAddOn that was read.
func (p *pass) clearHashes(ctx context.Context, hashed []addonv1alpha1.ManagedClusterAddOn) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for i := range hashed {
		group.Go(func() error {
			before := &hashed[i]
			after, _ := withoutTemplateHash(before)
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			err := p.Client.Status().Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot clear the template hash of ManagedClusterAddOn %s/%s: %w", before.Namespace, before.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// withoutTemplateHash returns the object with template references that OCM's template manager ignores, and whether it
// changed. The names in the references stay; the desired and the last applied hash are empty. If spec.configs names a
// template, the reference is omitted, because OCM's configuration controller would write the hash again, and no
// annotation stops it there.
func withoutTemplateHash(mca *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, bool) {
	out := mca.DeepCopy()
	out.Status.ConfigReferences = nil
	changed := false
	for _, reference := range mca.DeepCopy().Status.ConfigReferences {
		if !isTemplateReference(reference.ConfigGroupResource) || !hasHash(reference) {
			out.Status.ConfigReferences = append(out.Status.ConfigReferences, reference)
			continue
		}
		changed = true
		if namesTemplate(mca.Spec.Configs) {
			continue
		}
		clearHash(reference.DesiredConfig)
		clearHash(reference.LastAppliedConfig)
		out.Status.ConfigReferences = append(out.Status.ConfigReferences, reference)
	}
	return out, changed
}

func isTemplateReference(r addonv1alpha1.ConfigGroupResource) bool {
	return r.Group == addonv1alpha1.GroupName && r.Resource == templatesResource
}

func hasHash(r addonv1alpha1.ConfigReference) bool {
	return r.DesiredConfig != nil && r.DesiredConfig.SpecHash != "" ||
		r.LastAppliedConfig != nil && r.LastAppliedConfig.SpecHash != ""
}

func clearHash(config *addonv1alpha1.ConfigSpecHash) {
	if config != nil {
		config.SpecHash = ""
	}
}

// namesTemplate reports whether the configurations of a ManagedClusterAddOn name a template.
func namesTemplate(configs []addonv1alpha1.AddOnConfig) bool {
	return slices.ContainsFunc(configs, func(c addonv1alpha1.AddOnConfig) bool { return isTemplateReference(c.ConfigGroupResource) })
}
