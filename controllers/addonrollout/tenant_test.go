package addonrollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/tenancy"
)

// tenants makes the namespace of the scene a tenant with an entry; "" takes it off the list.
func (s *scene) tenants(entry string) {
	s.t.Helper()
	stored := &corev1.ConfigMap{Data: map[string]string{}}
	if entry != "" {
		stored.Data["team"] = entry
	}
	s.reconciler.Tenants = func(context.Context) (tenancy.Policy, error) {
		policy, err := tenancy.Parse(stored)
		if err != nil {
			err = errors.Join(tenancy.ErrInvalid, err)
		}
		return policy, err
	}
}

// ownedBy makes the add-on that of a source.
func (s *scene) ownedBy(source string) {
	s.t.Helper()
	cma := &addonv1alpha1.ClusterManagementAddOn{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: "hello"}, cma); err != nil {
		s.t.Fatal(err)
	}
	cma.Annotations = map[string]string{v1alpha1.SourceAnnotation: source}
	s.update(cma)
}

// TestRolloutThatItsTenantMayNotHaveIsStalled: a rollout that a user wrote drives no add-on and no
// clusters that the policy does not give to its namespace. It says why, once, and goes on when the
// policy allows it.
func TestRolloutThatItsTenantMayNotHaveIsStalled(t *testing.T) {
	for name, c := range map[string]struct {
		entry  string
		change func(*v1alpha1.AddOnRollout)
		want   string
	}{
		"another add-on": {"addOns: [other]", nil, "TenantDenied: denied to the tenant: the tenant has no add-on hello; allowed: [other]"},
		"no tenant":      {"", nil, "TenantDenied: denied to the tenant: namespace team is not a tenant"},
		"a wrong policy": {"addons: [hello]", nil, "InvalidTenants: denied to the tenant: the policy of tenants is invalid"},
		"all clusters": {"addOns: [hello]", func(ro *v1alpha1.AddOnRollout) {
			ro.Spec.ClusterLabelSelector = &metav1.LabelSelector{}
		}, "TenantDenied: denied to the tenant: spec.clusterLabelSelector selects among all clusters"},
		"clusters of another": {"addOns: [hello]", func(ro *v1alpha1.AddOnRollout) {
			ro.Spec.Install.Placements[0].Namespace = "victim"
		}, `TenantDenied: denied to the tenant: placement victim/all: the tenant may not use namespace "victim"`},
		"stages of another": {"addOns: [hello]", func(ro *v1alpha1.AddOnRollout) {
			ro.Spec.Stages = []v1alpha1.Stage{{Name: "a", Placement: v1alpha1.PlacementReference{Namespace: "victim", Name: "all"}}}
		}, `TenantDenied: denied to the tenant: placement victim/all: the tenant may not use namespace "victim"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			s.tenants(c.entry)
			s.target("v1")
			before := s.rollout().Spec
			if c.change != nil {
				ro := s.rollout()
				c.change(ro)
				s.update(ro)
			}
			s.turns(3)
			ro := s.rollout()
			if got := conditions.GetReason(ro, "Stalled") + ": " + conditions.GetMessage(ro, "Stalled"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if n := len(s.works()) + len(s.installed()) + len(ro.Finalizers); n > 0 {
				t.Errorf("%d writes of works, add-ons and finalizers", n)
			}
			reason, _, _ := strings.Cut(c.want, ":")
			if events := s.announced(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+reason+" denied") {
				t.Errorf("got events %q", events)
			}
			if after := s.turn().RequeueAfter; after == 0 || after > ownerAgain {
				t.Errorf("it is looked at again after %s: no watch shows that the policy changed", after)
			}
			ro.Spec.Install, ro.Spec.Stages, ro.Spec.ClusterLabelSelector = before.Install, nil, nil
			s.update(ro)
			s.tenants("addOns: [hello]")
			s.settle()
		})
	}
}

// TestWhatATenantRunsGoesOnRunningWhenThePolicyNarrows: nothing is written and nothing removed, and the
// rollout goes on when the policy is as before.
func TestWhatATenantRunsGoesOnRunningWhenThePolicyNarrows(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.tenants("addOns: [hello]")
	s.target("v1")
	s.settle()
	for entry, want := range map[string]string{
		"addOns: [other]": "the tenant has no add-on hello", "": "namespace team is not a tenant", "addons: [x]": "the policy of tenants is invalid",
		"addOns: [hello]\ntargetNamespaces: [team-a]": `the tenant may not use namespace "agents" of managed clusters`,
	} {
		before := s.versions()
		s.tenants(entry)
		s.turns(3)
		s.target("v2")
		s.turns(3)
		if !maps.Equal(before, s.versions()) {
			t.Errorf("a work was written under %q", entry)
		}
		if ro := s.rollout(); !strings.Contains(conditions.GetMessage(ro, "Ready"), want) {
			t.Errorf("under %q: %s: %v", entry, ro.Status.Phase, ro.Status.Conditions)
		}
		s.tenants("addOns: [hello]")
		s.target("v1")
		s.settle()
	}
}

// TestRevisionOutOfBoundsIsWrittenNowhere: a revision that a user wrote, and one whose objects a
// cluster's own configuration moves, are bounded like a commit.
func TestRevisionOutOfBoundsIsWrittenNowhere(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.tenants("addOns: [hello]\ntargetNamespaces: [agents, agents-*]")
	s.target("v1")
	s.settle()
	before := s.versions()
	foreign := contentAt("v2")
	spec, _ := foreign.Templates[0].Spec["agentSpec"].(map[string]any)
	manifests, _ := spec["workload"].(map[string]any)["manifests"].([]any)
	manifest, _ := manifests[0].(map[string]any)
	manifest["metadata"] = map[string]any{"name": "hello", "namespace": "kube-system"}
	s.targetOf(foreign, "v2")
	s.turns(5)
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, `the tenant may not use namespace "kube-system" of managed clusters`) {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if !maps.Equal(before, s.versions()) {
		t.Error("a work was written")
	}
	s.tenants("addOns: [hello]") // the same process has rendered it within bounds
	for range 10 {
		s.settleOnce()
	}
	if maps.Equal(before, s.versions()) {
		t.Error("without bounds it is rolled out")
	}
}

// TestExplainKnowsTheBoundsOfTheTenant: a tool that cannot read the policy of tenants plans as the operator does.
func TestExplainKnowsTheBoundsOfTheTenant(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.tenants("addOns: [hello]\ntargetNamespaces: [elsewhere]")
	s.target("v1")
	s.turns(5)
	plan, err := s.explained()
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := plan.Why("c1"); !strings.Contains(p.Reason, `the tenant may not use namespace "agents" of managed clusters`) {
		t.Errorf("c1 is said to be %s: %q", p.State, p.Reason)
	}
	s.tenants("addOns: [hello]")
	s.turns(5)
	if s.rollout().Status.TargetBounds != nil {
		t.Error("the status still has bounds")
	}
}

// TestRevisionOfAnotherAddOnIsNotUsed: under the name of a revision of this one.
func TestRevisionOfAnotherAddOnIsNotUsed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	content := contentAt("v1")
	content.AddOn = "victim"
	s.targetOf(content, "v1")
	s.turns(3)
	if n := len(s.works()); n > 0 {
		t.Errorf("%d works", n)
	}
	if got := s.rollout().Status.Message + conditions.GetMessage(s.rollout(), "Reconciling"); !strings.Contains(got, `it is of add-on "victim"`) {
		t.Errorf("got %s", got)
	}
}

// TestOnlyTheOwnerEndsAnAddOn: a tenant that lost an add-on may still remove it. A removal or release
// that a user wrote ends no add-on of another namespace, even if the policy gives it to both.
func TestOnlyTheOwnerEndsAnAddOn(t *testing.T) {
	for name, c := range map[string]struct {
		owner, entry string
		released     bool
		ends         bool
	}{
		"lost it":                    {"team/fleet", "addOns: [other]", false, true},
		"no tenant any more":         {"team/fleet", "", false, true},
		"releases what it lost":      {"team/fleet", "addOns: [other]", true, true},
		"of another":                 {"victim/fleet", "addOns: ['*']", false, false},
		"releases that of another":   {"victim/fleet", "addOns: ['*']", true, false},
		"a namespace that begins so": {"team-b/fleet", "addOns: ['*']", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			s.target("v1")
			s.settle()
			s.ownedBy(c.owner)
			ro := s.rollout()
			ro.Spec.Removal, ro.Spec.Install = &v1alpha1.Removal{Commit: commitNamed("v9"), Approved: true}, nil
			if c.released {
				ro.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
			}
			s.update(ro)
			s.tenants(c.entry)
			before := slices.Sorted(maps.Keys(s.versions()))
			for range 8 {
				s.advance(s.reconciler.RemovalGrace)
				s.turn()
			}
			ro = s.rollout()
			ended := len(s.installed()) == 0
			if c.released {
				ended = s.addOn("c1").Labels[v1alpha1.ManagedByLabel] == ""
			}
			if ended != c.ends {
				t.Errorf("ended %t, want %t; works %v before; %s: %s", ended, c.ends, before, ro.Status.Phase, conditions.GetMessage(ro, "Ready"))
			}
			if !c.ends && conditions.GetReason(ro, "Stalled") != v1alpha1.TenantDeniedReason {
				t.Errorf("got %v", ro.Status.Conditions)
			}
		})
	}
}
