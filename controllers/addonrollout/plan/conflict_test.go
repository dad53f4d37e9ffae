package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
)

// TestTemplatesListedByAnotherWriterAreAConflict: templates that AddonFlow lists itself, in replace
// mode, are no conflict, nor are templates of an add-on that it did not fence off.
func TestTemplatesListedByAnotherWriterAreAConflict(t *testing.T) {
	entry := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:supportedConfigs":{"k:{\"resource\":\"addontemplates\"}":{}}}}`)}
	}
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		change  func(*Observation)
		names   string
	}{
		"Foreign":   {reason: "it is named", entries: []metav1.ManagedFieldsEntry{entry("evil", "")}, names: `"evil"`},
		"NoTrace":   {reason: "a writer that left no trace counts, too", names: `"unknown"`},
		"Status":    {reason: "a writer of the status lists nothing", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, "status"), entry("evil", "")}, names: `"evil"`},
		"Replace":   {reason: "our own value, whichever writer shares it", entries: []metav1.ManagedFieldsEntry{entry("evil", ""), entry(v1alpha1.FieldManager, "")}},
		"Unfenced":  {reason: "it is about to be taken over", change: func(o *Observation) { o.Owner.Annotations = nil }},
		"NotListed": {reason: "nothing is listed", change: func(o *Observation) { o.Owner.Spec.SupportedConfigs = nil }},
		"Leaving":   {reason: "an add-on that is to go gets nothing new", change: func(o *Observation) { o.Rollout.Spec.Removal = &v1alpha1.Removal{} }},
		"Gone":      {reason: "there is none", change: func(o *Observation) { o.Owner = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &Observation{Rollout: &v1alpha1.AddOnRollout{}, Owner: &addonv1alpha1.ClusterManagementAddOn{}}
			o.Rollout.Spec.Target = &v1alpha1.Target{Source: "fleet"}
			o.Owner.Annotations, o.Owner.ManagedFields = map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue}, tc.entries
			o.Owner.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}}}
			if tc.change != nil {
				tc.change(o)
			}
			got := fmt.Sprint(o.fenceDown())
			if (got == "<nil>") != (tc.names == "") || !strings.Contains(got, tc.names) {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

// takenBy is an add-on whose condition Progressing another writer took over.
func takenBy(manager string) *addonv1alpha1.ManagedClusterAddOn {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Progressing\"}":` + fields + `}}}`),
		}
	}
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", ManagedFields: []metav1.ManagedFieldsEntry{
		entry(v1alpha1.FieldManager, `{".":{},"f:type":{}}`), entry(manager, `{"f:reason":{},"f:status":{}}`),
	}}}
}

// TestWriterThatWasFencedOffIsRepaired: fields that were written while the fence was down are repaired
// after the writer stopped. A write after the fence was restored is a conflict.
func TestWriterThatWasFencedOffIsRepaired(t *testing.T) {
	fenced := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fence := map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue, v1alpha1.FencedAtAnnotation: fenced.Format(time.RFC3339)}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		lists       bool
		wrote, now  time.Duration
		conflict    bool
		accepts     time.Duration // after the fence; 0: never
	}{
		"Before":       {reason: "written before the fence was up again", annotations: fence, wrote: -time.Second, now: time.Minute},
		"Late":         {reason: "written from what the writer had read before", annotations: fence, wrote: 5 * time.Second, now: time.Minute},
		"Settling":     {reason: "the writer may not be at rest yet", annotations: fence, wrote: -time.Second, now: 5 * time.Second, conflict: true, accepts: fencedFor},
		"Behind":       {reason: "the writer goes on behind the fence", annotations: fence, wrote: time.Minute, now: time.Hour, conflict: true},
		"NeverDown":    {reason: "the fence was up when it wrote", annotations: map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue}, wrote: -time.Second, now: time.Hour, conflict: true},
		"Down":         {reason: "the fence is still down", annotations: map[string]string{v1alpha1.FencedAtAnnotation: fenced.Format(time.RFC3339)}, wrote: -time.Second, now: time.Hour, conflict: true},
		"ListsTheKind": {reason: "OCM's template manager still runs for it", annotations: fence, lists: true, wrote: -time.Second, now: time.Hour, conflict: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			addOn := takenBy("ocm")
			at := metav1.NewTime(fenced.Add(c.wrote))
			for i := range addOn.ManagedFields {
				addOn.ManagedFields[i].Time = &at
			}
			owner := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Annotations: c.annotations}}
			if c.lists {
				owner.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
					Group: addonv1alpha1.GroupName, Resource: "addontemplates",
				}}}
			}
			ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
			o := &Observation{Rollout: ro, Owner: owner, Look: Look{Wall: fenced.Add(c.now)}, Members: []*Member{{
				Name: "c1", AddOn: addOn, Taken: addonstatus.Takeovers(addOn.ManagedFields),
			}}}
			found := o.writers(nil)
			if errors.Is(found.contested, ErrOwnership) != c.conflict || found.Barred != c.conflict {
				t.Errorf("%s: got %v, want a conflict: %t", c.reason, found.contested, c.conflict)
			}
			if repaired := len(found.Accepted) > 0 && strings.Contains(found.Restored, "c1"); repaired == c.conflict {
				t.Errorf("%s: accepted %v, restored %q", c.reason, found.Accepted, found.Restored)
			}
			if ends := found.AcceptsAt; ends.IsZero() != (c.accepts == 0) || c.accepts != 0 && !ends.Equal(fenced.Add(c.accepts)) {
				t.Errorf("%s: it ends at %s", c.reason, ends)
			}
			if v, _ := verdictOf(cmp.Or(found.contested, ErrOwnership)); c.conflict && (v.Stalled != "") != (c.accepts == 0) {
				t.Errorf("%s: only a writer that still writes is a failure, got %+v", c.reason, v)
			}
		})
	}
}
