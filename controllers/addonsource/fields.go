package addonsource

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// ownFields makes AddonFlow the only manager of the fields that it applies to an object. Otherwise a
// field that a later commit no longer declares would stay: server-side apply keeps a field as long as
// another manager has it, such as kubectl, which applied the object before AddonFlow.
func (p *pass) ownFields(ctx context.Context, c *change) error {
	entries, changed, err := ownedFields(c.live.GetManagedFields(), c.unowned())
	if err != nil {
		return fmt.Errorf("cannot read the field managers of %s: %w", keyOf(c.live), err)
	}
	if !changed {
		return nil
	}
	owned := c.live.DeepCopy()
	owned.SetManagedFields(entries)
	patch := client.MergeFromWithOptions(c.live, client.MergeFromWithOptimisticLock{})
	err = p.writer(keyOf(c.live)).Patch(ctx, owned, patch, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return changedMeanwhile(c)
	case err != nil:
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot own the fields of %s: %w", keyOf(c.live), err))
	}
	c.live = owned
	return nil
}

// ownedFields returns the entries of an object after AddonFlow took fields from other managers, and
// whether that is a change.
//
//   - Of an object without an owner, AddonFlow takes the whole content, that is everything but metadata
//     and status. What the commit does not declare is removed when the commit is applied.
//   - Of an object with an owner, AddonFlow takes the fields that it applied. The fields that other
//     managers added since then stay theirs.
func ownedFields(entries []metav1.ManagedFieldsEntry, unowned bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	own := metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	var kept, foreign []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		switch {
		case entry.Subresource != "":
			kept = append(kept, entry)
		case entry.Manager != v1alpha1.FieldManager:
			foreign = append(foreign, entry)
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			own = entry
		default:
			kept = append(kept, entry)
		}
	}
	if len(foreign) == 0 {
		return entries, false, nil
	}
	// One manager applies in one version of the API; fields of another version have no manager from now on.
	own.APIVersion = cmp.Or(own.APIVersion, foreign[0].APIVersion)

	fields, err := fieldsOf(own)
	if err != nil {
		return nil, false, err
	}
	applied := withParents(fields)
	changed := false
	for _, entry := range foreign {
		theirs, err := fieldsOf(entry)
		if err != nil {
			return nil, false, err
		}
		left := fieldpath.NewSet()
		for path := range theirs.All() {
			switch {
			case entry.APIVersion != own.APIVersion:
			case unowned && isContent(path):
				fields.Insert(path.Copy())
			case !applied.Has(path):
				left.Insert(path.Copy())
			}
		}
		changed = changed || left.Size() < theirs.Size()
		if left.Empty() {
			continue
		}
		if entry.FieldsV1, err = rawFields(left); err != nil {
			return nil, false, err
		}
		kept = append(kept, entry)
	}
	if !fields.Empty() {
		if own.FieldsV1, err = rawFields(fields); err != nil {
			return nil, false, err
		}
		kept = append(kept, own)
	}
	if len(kept) == 0 {
		// The API server reads an empty list as "unchanged", and one empty entry as no managers.
		kept = []metav1.ManagedFieldsEntry{{}}
	}
	return kept, changed, nil
}

// isContent reports whether a commit alone decides about a field.
func isContent(path fieldpath.Path) bool {
	first := path[0].FieldName
	return first != nil && *first != "metadata" && *first != "status"
}

// withParents adds to a set the objects and lists in which its fields are: a manager of "limits" keeps
// an empty "limits" after its last field was removed.
func withParents(fields *fieldpath.Set) *fieldpath.Set {
	all := fieldpath.NewSet()
	for path := range fields.All() {
		for i := range path {
			all.Insert(path[:i+1].Copy())
		}
	}
	return all
}

// fieldsOf returns the fields of an entry.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("cannot read the fields of manager %s: %w", entry.Manager, err)
	}
	return fields, nil
}

// rawFields is the inverse of fieldsOf.
func rawFields(fields *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := fields.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write a set of fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}
