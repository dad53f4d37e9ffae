package agents_test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
)

// mayBind lets the operator grant roles, as an admin would.
func mayBind(roles ...string) {
	GinkgoHelper()
	grant("binds-"+roles[0], rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, ResourceNames: roles, Verbs: []string{"bind"},
	})
}

var allowed = map[string]string{registration.AllowLabel: "true"}

var _ = Describe("Bindings", func() {
	It("gives an agent an allowed role in its cluster's namespace, and there only", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		mayBind(w.addOn)
		w.declare("a", kubeClient(current(w.addOn)))
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		Eventually(func() registration.Outcome { return book.Outcome(w.key("a")) }, patience).Should(Equal(registration.Outcome{State: registration.Applied}))

		subject := registration.DefaultSubject(w.addOn, w.cluster("a"))
		agent := w.user(subject.User, subject.Groups...)
		var list corev1.ConfigMapList
		Expect(agent.List(ctx, &list, client.InNamespace(w.cluster("a")))).To(Succeed())
		Expect(apierrors.IsForbidden(agent.List(ctx, &list, client.InNamespace(w.cluster("b"))))).To(BeTrue())
	})

	It("has the clusters of all agents, and is deleted with the last", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.addOn}})
		w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.addOn, Name: w.addOn, Labels: allowed}, Rules: readsConfigMaps()})
		mayBind(w.addOn)
		for _, letter := range []string{"a", "b"} {
			w.declare(letter, kubeClient(single(w.addOn, w.addOn)))
		}
		Eventually(w.subjects(w.addOn, w.addOn), patience).Should(Equal(w.group("a") + w.group("b")))
		Expect(admin.Delete(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster("a"), Name: w.addOn}})).To(Succeed())
		Eventually(w.subjects(w.addOn, w.addOn), patience).Should(Equal(w.group("b")))
		w.declare("b", kubeClient())
		Eventually(w.subjects(w.addOn, w.addOn), patience).Should(BeEmpty())
	})

	It("repairs bindings changed by hand, and ignores the status", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		mayBind(w.addOn)
		w.declare("a", kubeClient(current(w.addOn)))
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))

		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.cluster("a"), Name: w.addOn}, addOn)).To(Succeed())
		addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
			SignerName: hubSigner, Subject: addonv1alpha1.Subject{User: "kubernetes-admin", Groups: []string{"system:authenticated"}},
		}}
		Expect(admin.Status().Update(ctx, addOn)).To(Succeed())
		binding := &rbacv1.RoleBinding{}
		at := client.ObjectKey{Namespace: w.cluster("a"), Name: registration.BindingName(w.addOn, registration.Role{Kind: "ClusterRole", Name: w.addOn})}
		Expect(admin.Get(ctx, at, binding)).To(Succeed())
		Expect(binding.OwnerReferences).To(HaveLen(1))
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"})
		Expect(admin.Update(ctx, binding)).To(Succeed())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))

		other := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
		}
		Eventually(func() error {
			return errors.Join(client.IgnoreNotFound(admin.Delete(ctx, binding.DeepCopy())), admin.Create(ctx, other.DeepCopy()))
		}, patience).Should(Succeed(), "faster than the operator for once")
		Eventually(func() rbacv1.RoleRef {
			_ = admin.Get(ctx, at, binding)
			return binding.RoleRef
		}, patience).Should(HaveField("Name", w.addOn), "its name is the operator's")
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
	})

	It("gives only roles that an admin allowed, and never a forbidden one", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, nil)
		mayBind(w.addOn)
		failed := func(letter, why string) {
			GinkgoHelper()
			Eventually(func() registration.Outcome { return book.Outcome(w.key(letter)) }, patience).Should(Equal(registration.Outcome{State: registration.Failed, Message: why}))
		}
		w.declare("a", kubeClient(current(w.addOn)))
		failed("a", "ClusterRole/"+w.addOn+" is not allowed for agents")
		w.declare("a", kubeClient(current("cluster-admin")))
		failed("a", "ClusterRole/cluster-admin is never given to an agent")
		w.declare("b", kubeClient(single(w.cluster("a"), "x")))
		failed("b", w.cluster("a")+" is the namespace of a managed cluster")
		Expect(w.subjects(w.cluster("a"), w.addOn)()).To(BeEmpty())
	})

	It("gives a role when an admin labels it, and takes it away with the label", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, nil)
		mayBind(w.addOn)
		w.declare("a", kubeClient(current(w.addOn)))
		Eventually(func() registration.OutcomeState { return book.Outcome(w.key("a")).State }, patience).Should(Equal(registration.Failed))
		label := func(value string) {
			GinkgoHelper()
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.addOn}}
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, registration.AllowLabel, value)
			Expect(admin.Patch(ctx, role, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		// Without the watch it would take five minutes: longer than patience.
		label(`"true"`)
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		label("null")
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(BeEmpty())
	})

	It("gives no role if the API server refuses the binding", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		w.declare("a", kubeClient(current(w.addOn)))
		Eventually(func() string { return book.Outcome(w.key("a")).Message }, patience).Should(ContainSubstring("the operator may not bind ClusterRole " + w.addOn))
		Expect(w.subjects(w.cluster("a"), w.addOn)()).To(BeEmpty())
	})

	It("binds the account of a token-based agent, as computed", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		mayBind(w.addOn)
		w.declare("a", kubeClient(current(w.addOn)))
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.cluster("a"), Name: w.addOn}, addOn)).To(Succeed())
		addOn.Status.KubeClientDriver = registration.DriverToken
		addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: hubSigner, Subject: addonv1alpha1.Subject{User: "system:serviceaccount:default:other"}}}
		Expect(admin.Status().Update(ctx, addOn)).To(Succeed())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a") + "ServiceAccount " + w.addOn + "-agent\n"))
	})

	It("leaves bindings to the next manager when the add-on is released", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		mayBind(w.addOn)
		w.declare("a", kubeClient(current(w.addOn)))
		w.declare("b", kubeClient())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		rollout := &v1alpha1.AddOnRollout{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: w.addOn}, rollout)).To(Succeed())
		rollout.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
		rollout.Spec.Removal = &v1alpha1.Removal{Commit: "ccc", Approved: true}
		Expect(admin.Update(ctx, rollout)).To(Succeed())

		By("asking for a role in vain")
		w.declare("b", kubeClient(current(w.addOn)))
		Consistently(w.subjects(w.cluster("b"), w.addOn), "3s").Should(BeEmpty())

		By("taking our label off, and the rollout away, as a release does")
		var list rbacv1.RoleBindingList
		Expect(admin.List(ctx, &list, client.InNamespace(w.cluster("a")), client.MatchingLabels{addonv1alpha1.AddonLabelKey: w.addOn})).To(Succeed())
		for i := range list.Items {
			delete(list.Items[i].Labels, v1alpha1.ManagedByLabel)
			Expect(admin.Update(ctx, &list.Items[i])).To(Succeed())
		}
		Expect(admin.Delete(ctx, rollout)).To(Succeed())
		Consistently(w.subjects(w.cluster("a"), w.addOn), "3s").Should(Equal(w.group("a")))
	})

	It("removes its bindings with the rollout, and OCM's after its own exist", func(ctx context.Context) {
		w := newWorld(ctx)
		w.clusterRole(w.addOn, allowed)
		mayBind(w.addOn)
		leftover := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.cluster("a"), Name: "open-cluster-management:" + w.addOn + ":clusterrole:agent",
				Labels: map[string]string{addonv1alpha1.AddonLabelKey: w.addOn, "open-cluster-management.io/addon-template-name": ""},
			},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.addOn},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:open-cluster-management:addon:" + w.addOn}},
		}
		w.create(leftover)
		w.declare("a", kubeClient(current(w.addOn)))
		w.declare("b", kubeClient())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(Equal(w.group("a")))
		Expect(admin.Delete(ctx, &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.addOn}})).To(Succeed())
		Eventually(w.subjects(w.cluster("a"), w.addOn), patience).Should(BeEmpty())
	})
})
