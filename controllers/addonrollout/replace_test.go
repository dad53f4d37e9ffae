package addonrollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// replaces gives the operator the flag --addon-manager=replace.
func (s *scene) replaces() { s.reconciler.HidesTemplateHash = false }

// says is status, reason and message of a condition; "" where it is not there.
func says(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// published is the status of the ClusterManagementAddOn.
func (s *scene) published() addonv1alpha1.ClusterManagementAddOnStatus {
	s.t.Helper()
	var cma addonv1alpha1.ClusterManagementAddOn
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: "hello"}, &cma); err != nil {
		s.t.Fatal(err)
	}
	return cma.Status
}

// TestInstallProgressions follows the published status through a first install
// and an upgrade, one cluster at a time.
func TestInstallProgressions(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.replaces()
	s.oneByOne()
	s.target("v1")
	s.turns(2)
	want := "True Progressing: selected clusters 3. configured addons 1/3 progressing..., 0 failed 0 timeout."
	if got := says(s.published().InstallProgressions[0].Conditions, "Progressing"); got != want {
		t.Errorf("in the middle of the install: %q, want %q", got, want)
	}
	if r := s.published().InstallProgressions[0].ConfigReferences[0]; r.LastAppliedConfig != nil || r.LastKnownGoodConfig != nil {
		t.Errorf("nothing was applied yet, got %+v", r)
	}
	s.settle()
	hash := func(tag string) *addonv1alpha1.ConfigSpecHash {
		return &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}, SpecHash: "hash-" + tag}
	}
	templates := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}
	done := s.published()
	done.InstallProgressions[0].Conditions[0].LastTransitionTime = metav1.Time{}
	if diff := cmp.Diff(addonv1alpha1.ClusterManagementAddOnStatus{
		DefaultConfigReferences: []addonv1alpha1.DefaultConfigReference{{ConfigGroupResource: templates, DesiredConfig: hash("v1")}},
		InstallProgressions: []addonv1alpha1.InstallProgression{{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: "team", Name: "all"},
			ConfigReferences: []addonv1alpha1.InstallConfigReference{{
				ConfigGroupResource: templates, DesiredConfig: hash("v1"), LastAppliedConfig: hash("v1"), LastKnownGoodConfig: hash("v1"),
			}},
			Conditions: []metav1.Condition{{
				Type: "Progressing", Status: metav1.ConditionFalse, Reason: "Completed",
				Message: "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.",
			}},
		}},
	}, done); diff != "" {
		t.Errorf("when it is done (-want +published):\n%s", diff)
	}

	s.target("v2")
	s.turns(2)
	reference := s.published().InstallProgressions[0].ConfigReferences[0]
	if diff := cmp.Diff(addonv1alpha1.InstallConfigReference{
		ConfigGroupResource: templates, DesiredConfig: hash("v2"), LastAppliedConfig: hash("v1"), LastKnownGoodConfig: hash("v1"),
	}, reference); diff != "" {
		t.Errorf("in the middle of the upgrade (-want +published):\n%s", diff)
	}
	if got := s.published().DefaultConfigReferences[0].DesiredConfig.SpecHash; got != "hash-v2" {
		t.Errorf("the default is desired in what it was committed as, got %s", got)
	}
}

// TestTimedOutIsCounted: failed clusters are counted separately, and the condition stays Progressing,
// as in OCM.
func TestTimedOutIsCounted(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.replaces()
	s.oneByOne()
	ro := s.rollout()
	ro.Spec.Stages[0].ProgressDeadline = "1s"
	s.update(ro)
	s.target("v1")
	s.turns(5)
	want := "True Progressing: selected clusters 2. configured addons 0/2 progressing..., 0 failed 1 timeout."
	if got := says(s.published().InstallProgressions[0].Conditions, "Progressing"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPublishedStatus_IsWrittenSoonIfTheWatchWasBehind: the write is refused, and the next turn makes it.
func TestPublishedStatus_IsWrittenSoonIfTheWatchWasBehind(t *testing.T) {
	refused := 0
	s := newScene(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if _, ok := o.(*addonv1alpha1.ClusterManagementAddOn); ok && refused == 0 {
			refused++
			return apierrors.NewConflict(schema.GroupResource{Resource: "clustermanagementaddons"}, o.GetName(), nil)
		}
		return c.SubResource(sub).Patch(ctx, o, patch, opts...)
	}}, "c1")
	s.replaces()
	s.target("v1")
	if again := s.turn().RequeueAfter; refused != 1 || again <= 0 || again > time.Second {
		t.Errorf("%d writes were refused, and the next turn is after %s, want one second", refused, again)
	}
	s.turn()
	if got := len(s.published().InstallProgressions); got != 1 {
		t.Errorf("%d placements are published, want 1", got)
	}
}

// TestCoexistPublishesNothing: OCM's addon-manager erases installProgressions of an add-on that it
// does not run, so that both would write for ever.
func TestCoexistPublishesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	if diff := cmp.Diff(addonv1alpha1.ClusterManagementAddOnStatus{}, s.published()); diff != "" {
		t.Errorf("published:\n%s", diff)
	}
}

// TestWaitingClusterIsNotConfigured: a cluster that waits is Configured=False, with or without works,
// and True after its turn. If OCM's addon-manager runs, no waiting cluster is written.
func TestWaitingClusterIsNotConfigured(t *testing.T) {
	const (
		waits = "False ConfigurationsNotConfigured: Configurations updated and not configured yet"
		has   = "True ConfigurationsConfigured: Configurations configured"
	)
	configured := func(s *scene) []string {
		var out []string
		for _, c := range []string{"c1", "c2"} {
			out = append(out, says(s.addOn(c).Status.Conditions, "Configured"))
		}
		return out
	}
	for name, tc := range map[string]struct {
		prepare                 func(*scene)
		first, settled, upgrade []string
	}{
		"replace": {(*scene).replaces, []string{has, waits}, []string{has, has}, []string{has, waits}},
		"coexist": {func(*scene) {}, []string{has, ""}, []string{has, has}, []string{has, has}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			tc.prepare(s)
			s.oneByOne()
			s.target("v1")
			s.turns(3)
			if got := configured(s); !slices.Equal(got, tc.first) {
				t.Errorf("while c2 waits for its first works: %q, want %q", got, tc.first)
			}
			s.settle()
			if got := configured(s); !slices.Equal(got, tc.settled) {
				t.Errorf("at the end: %q, want %q", got, tc.settled)
			}
			s.target("v2")
			s.turns(3)
			if got := configured(s); !slices.Equal(got, tc.upgrade) {
				t.Errorf("while c2 waits for its upgrade: %q, want %q", got, tc.upgrade)
			}
		})
	}
}

// TestManifestApplied: the condition about works that could not be written, and about works that the
// agent could not apply.
func TestManifestApplied(t *testing.T) {
	full := errors.New("quota exceeded")
	blocked := true
	calls := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, is := o.(*workv1.ManifestWork); is && blocked {
			return full
		}
		return c.Create(ctx, o, opts...)
	}}
	s := newScene(t, calls, "c1")
	s.target("v1")
	s.turns(3)
	applied := func() string {
		return says(s.addOn("c1").Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
	}
	want := "False ManifestWorkApplyFailed: failed to apply manifestWork: cannot create work addon-hello-deploy-0: quota exceeded"
	if got := applied(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	version := s.addOn("c1").ResourceVersion
	s.turns(3)
	if got := s.addOn("c1").ResourceVersion; got != version {
		t.Errorf("the same failure was written again: %s", applied())
	}
	blocked = false
	s.settle()
	if got := applied(); got != "True AddonManifestApplied: manifests of addon are applied successfully" {
		t.Errorf("once they could be written: %q", got)
	}

	w := s.works()["c1"]
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, Reason: "x", ObservedGeneration: w.Generation})
	if err := s.hub.Status().Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	s.turns(2)
	if got := applied(); got != "False AddonManifestAppliedFailed: failed to apply the manifests of addon" {
		t.Errorf("when the agent refuses them: %q", got)
	}
}

// TestReplaceWritesNothingAtRest: at rest the ClusterManagementAddOn is neither read nor written. A
// new operator reads it once.
func TestReplaceWritesNothingAtRest(t *testing.T) {
	var writes []string
	note := func(what string, o client.Object) { writes = append(writes, what+" "+o.GetNamespace()+"/"+o.GetName()) }
	calls := interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			note("patch "+sub, o)
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			note("update "+sub, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}
	s := newScene(t, calls, "c1", "c2")
	s.replaces()
	s.target("v1")
	s.settle()
	writes = nil
	s.turns(3)
	s.restart()
	s.replaces()
	s.turns(3)
	if len(writes) > 0 {
		t.Errorf("at rest: %v", writes)
	}
}
