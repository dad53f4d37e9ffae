package addonsource

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// own takes the content of the claimed objects from other managers. After that, an apply also removes the fields that
// the commit does not declare, so the API server tries the applies in this step. A refusal is a problem of the
// commit. The content of the objects is not changed here, so OCM still runs an add-on that is to be taken over.
func (p *pass) own(ctx context.Context, a *attempt, todo plan) error {
	var problems problem.List
	for _, c := range todo.changes() {
		if c.live == nil || !p.isClaim(c) {
			continue
		}
		var found problem.List
		err := p.takeFields(ctx, &c)
		if err == nil {
			found, err = p.tryApply(ctx, &c)
		} else {
			found, err = objections(err, &c)
		}
		if err != nil {
			return err
		}
		problems = append(problems, asWritten(a.objects, keyOf(c.desired), found)...)
	}
	if len(problems) > 0 {
		a.refusedByHub = true
		return refuse(v1alpha1.ValidationFailedReason, problems.Sorted())
	}
	return nil
}

// takeFields makes AddonFlow the only manager of the fields that it applies to an object. Otherwise a field that a
// later commit no longer declares would stay, because server-side apply keeps a field as long as another manager has
// it. Such a manager is kubectl, if it applied the object before AddonFlow.
func (p *pass) takeFields(ctx context.Context, c *change) error {
	entries, taken, err := ownedFields(c.live.GetManagedFields(), p.isClaim(*c))
	if err != nil {
		return fmt.Errorf("cannot read the field managers of %s: %w", keyOf(c.live), err)
	}
	if !taken {
		return nil
	}
	owned := c.live.DeepCopy()
	owned.SetManagedFields(entries)
	if err := patchExactly(ctx, p.writer(keyOf(c.live)), c.live, owned); err != nil {
		return err
	}
	c.live.Object = owned.Object // a take-over is bound to this version, too
	return nil
}

// ownedFields returns the entries of an object after AddonFlow took fields from other managers, and whether they
// changed.
//
// - If a source claims the object, AddonFlow takes the whole content: all fields except metadata
// and status. The next apply removes the fields that the commit does not declare.
// - Otherwise AddonFlow takes the fields that it applied. Fields that other managers added later
// stay theirs.
func ownedFields(entries []metav1.ManagedFieldsEntry, claimed bool) ([]metav1.ManagedFieldsEntry, bool, error) {
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
			case claimed && isContent(path):
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
		// The API server reads an empty list as "unchanged", and one empty entry as "no managers".
		kept = []metav1.ManagedFieldsEntry{{}}
	}
	return kept, changed, nil
}

// isContent reports whether only a commit decides about a field.
func isContent(path fieldpath.Path) bool {
	first := path[0].FieldName
	return first != nil && *first != "metadata" && *first != "status"
}

// withParents adds the objects and lists that contain the fields of a set: a manager of "limits" keeps an empty
// "limits" after its last field was removed.
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
