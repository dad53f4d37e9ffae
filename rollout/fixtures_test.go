package rollout_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// ref names a placement of these tests; all live in one namespace.
func ref(name string) v1alpha1.PlacementReference {
	return v1alpha1.PlacementReference{Namespace: "default", Name: name}
}

// placement is a settled placement with one decision group.
func placement(name string, clusters ...string) rollout.Placement {
	return grouped(name, rollout.Group{Clusters: clusters})
}

// grouped is a settled placement with the decision groups.
func grouped(name string, groups ...rollout.Group) rollout.Placement {
	return rollout.Placement{
		Namespace: "default", Name: name, Settlement: rollout.Settled, Groups: groups,
	}
}

func group(index int, name string, clusters ...string) rollout.Group {
	return rollout.Group{Index: index, Name: name, Clusters: clusters}
}

// number and percent are values of OCM's fields, which are no pointers.
func number(n int) intstr.IntOrString     { return intstr.FromInt(n) }
func percent(p string) intstr.IntOrString { return intstr.FromString(p) }

// installedBy installs the add-on by placements, at OCM's default pace.
func installedBy(names ...string) *v1alpha1.Install {
	in := &v1alpha1.Install{Type: "Placements"}
	for _, name := range names {
		in.Placements = append(in.Placements, v1alpha1.InstallPlacement{PlacementReference: ref(name)})
	}
	return in
}

// canaryFirst is two stages: a canary of two, soaking ten minutes, then the rest.
func canaryFirst() []v1alpha1.Stage {
	return []v1alpha1.Stage{
		{
			Name: "canary", Placement: ref("canary"), MaxConcurrency: new(number(1)),
			MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}, ProgressDeadline: "30m",
		},
		{Name: "everyone", Placement: ref("all"), MaxConcurrency: new(percent("25%"))},
	}
}

// approvalGate, openWindow and measuredGate are gates of a name.
func approvalGate(name string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: name, Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{}}
}

func openWindow(name string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: name, Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{
		TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Hours: "09:00-17:00"}},
	}}
}

func measuredGate(name string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: name, Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{URL: "https://gate.example.com"}}
}

// staged is a fleet of n clusters at a revision, with the stages of canaryFirst.
func staged(running string, n int) *rollouttest.Fleet {
	names := rollouttest.Names(n)
	f := rollouttest.NewFleet(running, names...)
	f.Policy.Spec.Install = installedBy("all")
	f.Policy.Spec.Stages = canaryFirst()
	f.Policy.Placements = []rollout.Placement{placement("canary", names[:2]...), placement("all", names...)}
	return f
}

// paced is a fleet of n clusters at v1 whose install placement has the pace.
func paced(n int, pace clusterv1alpha1.RolloutStrategy, groups ...rollout.Group) *rollouttest.Fleet {
	names := rollouttest.Names(n)
	f := rollouttest.NewFleet("v1", names...)
	f.Policy.Spec.Install = installedBy("all")
	f.Policy.Spec.Install.Placements[0].RolloutStrategy = pace
	if len(groups) == 0 {
		groups = []rollout.Group{group(0, "", names...)}
	}
	f.Policy.Placements = []rollout.Placement{grouped("all", groups...)}
	return f
}

func progressive(p clusterv1alpha1.RolloutProgressive) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &p}
}

func perGroup(p clusterv1alpha1.RolloutProgressivePerGroup) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &p}
}

func mandatory(groups ...clusterv1alpha1.MandatoryDecisionGroup) clusterv1alpha1.MandatoryDecisionGroups {
	return clusterv1alpha1.MandatoryDecisionGroups{MandatoryDecisionGroups: groups}
}

func commit(digest string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) { f.SetTarget(digest) }
}

func take(b rollouttest.Behaviour, revision string, names ...string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) {
		for _, name := range names {
			f.Clusters[name].Takes[revision] = b
		}
	}
}

func lose(names ...string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) { f.Lose(names...) }
}

func restore(names ...string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) { f.Return(names...) }
}

// both does one thing and then the other.
func both(first, second func(*rollouttest.Fleet)) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) { first(f); second(f) }
}
