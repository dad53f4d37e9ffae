package agents_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/registration"
)

// mayMint lets the operator grant the right to tokens of an add-on's accounts, as an admin
// would.
func mayMint(addOn string) {
	GinkgoHelper()
	grant("mints-"+addOn, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		ResourceNames: []string{registration.ServiceAccountName(addOn)}, Verbs: []string{"create"},
	})
}

// chooses makes the klusterlet of a cluster report how the add-on's agent authenticates.
func (w *world) chooses(letter, driver string) {
	GinkgoHelper()
	Eventually(func() error {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		if err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.cluster(letter), Name: w.addOn}, addOn); err != nil {
			return err
		}
		addOn.Status.KubeClientDriver = driver
		return admin.Status().Update(w.ctx, addOn)
	}, patience).Should(Succeed())
}

// token returns the condition about the objects behind a token: status and message.
func (w *world) token(letter string) func() (string, error) {
	return func() (string, error) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		if err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.cluster(letter), Name: w.addOn}, addOn); err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, registration.InfrastructureReady)
		if c == nil {
			return "", nil
		}
		return string(c.Status) + " " + c.Message, nil
	}
}

// account is the account of a cluster's agent.
func (w *world) account(letter string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster(letter), Name: w.addOn + "-agent"}}
}

// ready is the condition's text once an agent's account exists.
func (w *world) ready(letter string) string {
	GinkgoHelper()
	account := w.account(letter)
	Eventually(func() error { return admin.Get(w.ctx, client.ObjectKeyFromObject(account), account) }, patience).Should(Succeed())
	return "True ServiceAccount " + account.Namespace + "/" + account.Name + " (UID: " + string(account.UID) + ") is ready"
}

var _ = Describe("Tokens", func() {
	It("gives the klusterlet of a cluster, and no other, tokens of its agent's account", func(ctx context.Context) {
		w := newWorld(ctx)
		mayMint(w.addOn)
		for _, letter := range []string{"a", "b"} {
			w.declare(letter, kubeClient())
			w.chooses(letter, registration.DriverToken)
			Eventually(w.token(letter), patience).Should(Equal(w.ready(letter)))
		}
		klusterlet := w.klusterlet(w.cluster("a"))
		mint := func(letter string) error {
			return klusterlet.SubResource("token").Create(ctx, w.account(letter), &authenticationv1.TokenRequest{})
		}
		Eventually(func() error { return mint("a") }, patience).Should(Succeed())
		Expect(apierrors.IsForbidden(mint("b"))).To(BeTrue())
	})

	It("repairs what was changed by hand, and reports a new account to the klusterlet", func(ctx context.Context) {
		w := newWorld(ctx)
		mayMint(w.addOn)
		w.declare("a", kubeClient())
		w.chooses("a", registration.DriverToken)
		before := w.ready("a")
		Eventually(w.token("a"), patience).Should(Equal(before))
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster("a"), Name: w.addOn + "-token-role"}}
		Expect(admin.Delete(ctx, role)).To(Succeed())
		Expect(admin.Delete(ctx, w.account("a"))).To(Succeed())
		Eventually(w.token("a"), patience).ShouldNot(Equal(before))
		Eventually(w.token("a"), patience).Should(Equal(w.ready("a")))
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(role), role) }, patience).Should(Succeed())
		Expect(role.Rules).To(HaveLen(2))
		Expect(role.OwnerReferences).To(HaveLen(1))
	})

	It("creates nothing for an agent with a certificate, and removes the objects of an agent that had a token", func(ctx context.Context) {
		w := newWorld(ctx)
		mayMint(w.addOn)
		w.declare("a", kubeClient())
		w.declare("b", kubeClient())
		w.chooses("a", registration.DriverToken)
		w.chooses("b", "csr")
		Eventually(w.token("a"), patience).Should(Equal(w.ready("a")))
		w.chooses("a", "csr")
		Eventually(w.token("a"), patience).Should(BeEmpty())
		for _, letter := range []string{"a", "b"} {
			Eventually(func() bool {
				return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(w.account(letter)), w.account(letter)))
			}, patience).Should(BeTrue())
		}
	})

	It("names the missing grant, and gives no token until then", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		w.chooses("a", registration.DriverToken)
		Eventually(w.token("a"), patience).Should(And(
			HavePrefix("False Failed to apply token infrastructure: "),
			ContainSubstring("grant it verb create on serviceaccounts/token, with resourceNames ["+w.addOn+"-agent]"),
		))
		mayMint(w.addOn)
		w.chooses("a", "csr") // an admin's grant is noticed in minutes, or with the next change
		Eventually(w.token("a"), patience).Should(BeEmpty())
		w.chooses("a", registration.DriverToken)
		Eventually(w.token("a"), patience).Should(Equal(w.ready("a")))
	})
})
