package e2e

import (
	"cmp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

// rollout reads the rollout; empty while it does not exist.
func (s *scene) rollout() *v1alpha1.AddOnRollout {
	var ro v1alpha1.AddOnRollout
	_ = world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, &ro) // absent: empty
	return &ro
}

// awaitPhase waits until the rollout of a commit is in a phase.
func (s *scene) awaitPhase(sha string, phase v1alpha1.Phase) *v1alpha1.AddOnRollout {
	GinkgoHelper()
	var ro *v1alpha1.AddOnRollout
	Eventually(func(g Gomega) {
		ro = s.rollout()
		g.Expect(ro.Status.Target).NotTo(BeNil())
		g.Expect(ro.Status.Target.Commit).To(HaveSuffix(sha), ro.Status.Message)
		g.Expect(ro.Status.Phase).To(Equal(phase), ro.Status.Message)
	}).Should(Succeed())
	return ro
}

// running are the images whose pods are ready, by cluster.
func (s *scene) running(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		w := world.Fleet.Running(n)["Deployment/"+agentNamespace+"/"+s.addOn]
		out[n] = strings.TrimPrefix(strings.Join(w.ReadyImages, ","), "example.com/"+s.addOn+":")
	}
	return out
}

// allAt is what running returns when every cluster runs a tag.
func allAt(tag string, names ...string) types.GomegaMatcher {
	want := map[string]string{}
	for _, n := range names {
		want[n] = tag
	}
	return Equal(want)
}

// generations of the add-on's works, by cluster.
func (s *scene) generations() map[string]int64 {
	GinkgoHelper()
	var works workv1.ManifestWorkList
	Expect(world.Client.List(s.ctx, &works, client.MatchingLabels{"open-cluster-management.io/addon-name": s.addOn})).To(Succeed())
	out := map[string]int64{}
	for i := range works.Items {
		out[works.Items[i].Namespace] = works.Items[i].Generation
	}
	return out
}

// moved are the clusters whose works changed between two looks, sorted.
func moved(before, after map[string]int64) []string {
	var out []string
	for name, g := range after {
		if before[name] != g {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// installed are the clusters that have the add-on, sorted.
func (s *scene) installed() []string {
	GinkgoHelper()
	var list addonv1alpha1.ManagedClusterAddOnList
	Expect(world.Client.List(s.ctx, &list, client.MatchingFields{"metadata.name": s.addOn})).To(Succeed())
	var out []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, list.Items[i].Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// statusOf is what the forge shows for a commit: state and text of the add-on's context.
func (s *scene) statusOf(sha string, parts ...string) string {
	latest, ok := world.Forge.Latest(sha, s.context(parts...))
	if !ok {
		return ""
	}
	return latest.State + ": " + latest.Description
}

// statusesOf is every status posted in that context, oldest first.
func (s *scene) statusesOf(sha string, parts ...string) []string {
	var all []string
	for _, e := range world.Forge.Statuses(sha) {
		if e.Context == s.context(parts...) {
			all = append(all, e.State+": "+e.Description)
		}
	}
	return all
}

// context of the add-on, or of a part of it, at the forge.
func (s *scene) context(parts ...string) string {
	return strings.Join(append([]string{"addonflow", cmp.Or(s.sharing, s.addOn), s.addOn}, parts...), "/")
}

// addOnOf reads the add-on of one cluster.
func (s *scene) addOnOf(cluster string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: cluster, Name: s.addOn}, addOn)).To(Succeed())
	return addOn
}

// sourceStatusOf is what the forge shows for a commit in the source's own context.
func (s *scene) sourceStatusOf(sha string) string {
	latest, _ := world.Forge.Latest(sha, "addonflow/"+s.addOn)
	return latest.State + ": " + latest.Description
}

// gone checks that a cluster has neither the add-on nor a work of it, and runs nothing.
func (s *scene) gone(cluster string) func(Gomega) {
	return func(g Gomega) {
		err := world.Client.Get(s.ctx, client.ObjectKey{Namespace: cluster, Name: s.addOn}, &addonv1alpha1.ManagedClusterAddOn{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the ManagedClusterAddOn is still there")
		g.Expect(s.works(cluster)).To(BeEmpty())
		g.Expect(world.Fleet.Objects(cluster)).NotTo(ContainElement(ContainSubstring("/" + s.addOn)))
	}
}

// works are the names of the add-on's works in a namespace.
func (s *scene) works(namespace string) []string {
	GinkgoHelper()
	var list workv1.ManifestWorkList
	Expect(world.Client.List(s.ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{"open-cluster-management.io/addon-name": s.addOn})).To(Succeed())
	out := []string{}
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// addOnCondition is a condition of a cluster's add-on as "Status Reason: message".
func (s *scene) addOnCondition(cluster, name string) string {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	_ = world.Client.Get(s.ctx, client.ObjectKey{Namespace: cluster, Name: s.addOn}, addOn) // absent: empty
	return conditionOf(addOn.Status.Conditions, name)
}

// conditionOf is a condition as "Status Reason: message"; "" where there is none.
func conditionOf(conditions []metav1.Condition, name string) string {
	c := apimeta.FindStatusCondition(conditions, name)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// condition is a condition of the rollout as "Status Reason: message".
func (s *scene) condition(kind string) string {
	return conditionOf(s.rollout().Status.Conditions, kind)
}

// wroteOnce expects one write per work since before, on every cluster.
func (s *scene) wroteOnce(before map[string]int64) {
	GinkgoHelper()
	for name, generation := range s.generations() {
		Expect(generation).To(Equal(before[name]+1), "written once on "+name)
	}
}

// events are the messages of one reason in a namespace: about the rollout in its own,
// about the ManagedClusterAddOn in a cluster's.
func (s *scene) events(namespace, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(world.Client.List(s.ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var messages []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Name == s.addOn {
			messages = append(messages, e.Message)
		}
	}
	return messages
}
