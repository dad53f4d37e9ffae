package addonrollout

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestWriterThatWasFencedOffIsRepaired: what was written while the fence was down is repaired
// by itself once the writer rests; what is written behind the fence is a conflict.
func TestWriterThatWasFencedOffIsRepaired(t *testing.T) {
	theirs := metav1.Condition{Status: metav1.ConditionTrue, Reason: addonv1alpha1.ProgressingReasonProgressing}
	fenced := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fence := map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue, v1alpha1.FencedAtAnnotation: fenced.Format(time.RFC3339)}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		lists       bool
		wrote, now  time.Duration
		conflict    bool
	}{
		"Before":       {reason: "written before the fence was up again", annotations: fence, wrote: -time.Second, now: time.Minute},
		"Late":         {reason: "written from what the writer had read before", annotations: fence, wrote: 5 * time.Second, now: time.Minute},
		"Settling":     {reason: "the writer may not be at rest yet", annotations: fence, wrote: -time.Second, now: 5 * time.Second, conflict: true},
		"Behind":       {reason: "the writer goes on behind the fence", annotations: fence, wrote: time.Minute, now: time.Hour, conflict: true},
		"NeverDown":    {reason: "the fence was up when it wrote", annotations: map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue}, wrote: -time.Second, now: time.Hour, conflict: true},
		"Down":         {reason: "the fence is still down", annotations: map[string]string{v1alpha1.FencedAtAnnotation: fenced.Format(time.RFC3339)}, wrote: -time.Second, now: time.Hour, conflict: true},
		"ListsTheKind": {reason: "OCM's template manager still runs for it", annotations: fence, lists: true, wrote: -time.Second, now: time.Hour, conflict: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{})
			addOn := addOnWith("1", "ocm", theirs)
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
			o := &observation{rollout: s.rollout(), owner: owner, members: []*member{{name: "c1", addOn: addOn}}}
			err := s.reconciler.contested(o, nil, fenced.Add(c.now))
			if errors.Is(err, errOwnership) != c.conflict {
				t.Errorf("%s: got %v, want a conflict: %t", c.reason, err, c.conflict)
			}
			told := slices.ContainsFunc(s.announced(), func(e string) bool {
				return strings.Contains(e, v1alpha1.FenceRestoredReason) && strings.Contains(e, "c1")
			})
			if told == c.conflict {
				t.Errorf("%s: event %t", c.reason, told)
			}
			if again := s.reconciler.contested(o, nil, fenced.Add(c.now)); !c.conflict && (again != nil || len(s.announced()) > 0) {
				t.Errorf("%s: repaired more than once", c.reason)
			}
		})
	}
}
