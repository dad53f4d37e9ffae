package addonrollout

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
)

// errOwnership says that two owners claim one add-on; AddonFlow never fights.
var errOwnership = errors.New("ownership conflict")

// conflict returns an error when another source owns the add-on.
func (o *observation) conflict() error {
	if o.owner == nil {
		return nil
	}
	mine := o.rollout.Namespace + "/" + o.rollout.Spec.Target.Source
	if owner := o.owner.Annotations[v1alpha1.SourceAnnotation]; owner != "" && owner != mine {
		return fmt.Errorf("%w: add-on %s belongs to source %s; remove it from one of the two", errOwnership, o.rollout.Name, owner)
	}
	return nil
}

// fenceDown returns an error when somebody lists addontemplates on the ClusterManagementAddOn
// that we fenced off: OCM's template manager starts for that, and may take any cluster that
// is moved. What we list ourselves, in replace mode, is no conflict, and
// an add-on that is to go gets nothing new.
func (o *observation) fenceDown() error {
	if o.owner == nil || o.rollout.Spec.Removal != nil || !listsTemplates(o.owner) ||
		o.owner.Annotations[v1alpha1.LifecycleAnnotation] != v1alpha1.LifecycleValue {
		return nil
	}
	writer := templateWriter(o.owner)
	if writer == v1alpha1.FieldManager {
		return nil
	}
	return fmt.Errorf("%w: %q lists addontemplates on ClusterManagementAddOn %s, which starts OCM's template manager; "+
		"stop that writer and annotate source %s with %s", errOwnership, writer, o.owner.Name, o.rollout.Spec.Target.Source, meta.ForceRequestAnnotation)
}

// listsTemplates reports whether a ClusterManagementAddOn lists AddOnTemplates.
func listsTemplates(owner *addonv1alpha1.ClusterManagementAddOn) bool {
	for _, c := range owner.Spec.SupportedConfigs {
		if addonstatus.IsTemplate(c.Group, c.Resource) {
			return true
		}
	}
	return false
}

// templateWriter is the field manager that lists addontemplates: ours where it is among them.
func templateWriter(owner *addonv1alpha1.ClusterManagementAddOn) string {
	writer := "unknown"
	for _, e := range owner.ManagedFields {
		if e.Subresource != "" || e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte("addontemplates")) {
			continue
		}
		if writer = e.Manager; writer == v1alpha1.FieldManager {
			break
		}
	}
	return writer
}

// said is what a plan is told of a conflict; nil is none.
func said(conflict error) string {
	if conflict == nil {
		return ""
	}
	return conflict.Error()
}

// told is the conflict that the operator's status tells of; nil: none. Who took a field of
// ours only the operator remembers, so that this is for explaining and decides nothing.
func told(ro *v1alpha1.AddOnRollout) error {
	c := conditions.Get(ro, meta.StalledCondition)
	if c == nil || c.Reason != v1alpha1.OwnershipConflictReason {
		return nil
	}
	return errors.New(c.Message)
}
