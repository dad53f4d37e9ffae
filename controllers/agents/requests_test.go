package agents_test

import (
	"context"
	"crypto/x509"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	hubSigner = certificatesv1.KubeAPIServerClientSignerName
	ocmReason = "AutoApprovedByHubCSRApprovingController"
)

// The API server authenticates the requester: every request here is made with a client
// certificate of its user. kube-controller-manager, which signs for the hub's own signer, does
// not run here, so the specs look at the approval.
var _ = Describe("Requests", func() {
	It("approves what the klusterlet of the cluster asks for, also a second time", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		klusterlet := w.klusterlet(w.cluster("a"))
		for range 2 {
			Eventually(w.approval(w.ask(klusterlet, "a", hubSigner)), patience).Should(Equal(ocmReason))
		}
	})

	It("leaves requests of another cluster's agent pending, with one event", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		name := w.ask(w.klusterlet(w.cluster("b")), "a", hubSigner)
		count := said("was asked by the agent of \"" + w.cluster("b"))
		Eventually(count, patience).Should(Equal(1))
		// Later reconciles must not repeat the event.
		csr := &certificatesv1.CertificateSigningRequest{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, csr)).To(Succeed())
		csr.Annotations = map[string]string{"touched": "yes"}
		Expect(admin.Update(ctx, csr)).To(Succeed())
		other := w.ask(w.klusterlet(w.cluster("a")), "a", hubSigner)
		Eventually(w.approval(other), patience).Should(Equal(ocmReason))
		Expect(count()).To(Equal(1))
		Expect(w.approval(name)()).To(BeEmpty())
	})

	It("approves after the cluster is accepted, and after the applied template asks for it", func(ctx context.Context) {
		w := newWorld(ctx)
		cluster := &clusterv1.ManagedCluster{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.cluster("a")}, cluster)).To(Succeed())
		cluster.Spec.HubAcceptsClient = false
		Expect(admin.Update(ctx, cluster)).To(Succeed())
		name := w.ask(w.klusterlet(w.cluster("a")), "a", hubSigner)
		Eventually(said("which is unaccepted"), patience).Should(Equal(1))
		w.declare("a", kubeClient())
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.cluster("a")}, cluster)).To(Succeed())
		cluster.Spec.HubAcceptsClient = true
		Expect(admin.Update(ctx, cluster)).To(Succeed())
		Eventually(w.approval(name), patience).Should(Equal(ocmReason))

		waiting := w.ask(w.klusterlet(w.cluster("b")), "b", hubSigner)
		w.declare("b", kubeClient())
		Eventually(w.approval(waiting), patience).Should(Equal(ocmReason))
	})

	It("leaves the agents of OCM's own add-ons to OCM", func(ctx context.Context) {
		w := newWorld(ctx)
		ours := w.addOn
		w.addOn += "-of-ocm"
		w.declare("a", kubeClient())
		foreign := w.ask(w.klusterlet(w.cluster("a")), "a", hubSigner)
		w.addOn = ours
		w.declare("a", kubeClient())
		Eventually(w.approval(w.ask(w.klusterlet(w.cluster("a")), "a", hubSigner)), patience).Should(Equal(ocmReason))
		Expect(w.approval(foreign)()).To(BeEmpty())
	})

	It("leaves requests through OCM's gRPC server to an admin", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		name := w.ask(w.user("system:serviceaccount:open-cluster-management-hub:grpc-server-sa"), "a", hubSigner)
		csr := &certificatesv1.CertificateSigningRequest{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, csr)).To(Succeed())
		csr.Annotations = map[string]string{"open-cluster-management.io/csr-user": "system:open-cluster-management:" + w.cluster("a") + ":9bkfw"}
		Expect(admin.Update(ctx, csr)).To(Succeed())
		Eventually(said("gRPC server"), patience).Should(Equal(1))
		Expect(w.approval(name)()).To(BeEmpty())
	})

	It("signs for a custom signer once an admin lets it, with the CA as it is now", func(ctx context.Context) {
		w := newWorld(ctx)
		signer := "example.com/" + w.addOn
		first := w.newCA(caNamespace, w.addOn)
		w.declare("a", customSigner(signer, caNamespace, w.addOn))
		klusterlet := w.klusterlet(w.cluster("a"))
		refused := w.ask(klusterlet, "a", signer)
		Eventually(said("may not approve for signer "+signer), patience).Should(Equal(1))
		Expect(w.approval(refused)()).To(BeEmpty())

		grant("signs-"+w.addOn, rbacv1.PolicyRule{
			APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{signer}, Verbs: []string{"approve", "sign"},
		})
		issuedBy := func(ca *x509.Certificate) {
			GinkgoHelper()
			name := w.ask(klusterlet, "a", signer)
			Eventually(w.certificate(name), patience).ShouldNot(BeNil())
			certificate, err := w.certificate(name)()
			Expect(err).NotTo(HaveOccurred())
			Expect(certificate.CheckSignatureFrom(ca)).To(Succeed())
			Expect(certificate.NotAfter).NotTo(BeTemporally(">", ca.NotAfter))
			Expect(certificate.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))
		}
		issuedBy(first)
		issuedBy(w.newCA(caNamespace, w.addOn))
	})

	It("signs an approved request when the CA exists", func(ctx context.Context) {
		w := newWorld(ctx)
		signer := "example.com/" + w.addOn
		grant("signs-"+w.addOn, rbacv1.PolicyRule{
			APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{signer}, Verbs: []string{"approve", "sign"},
		})
		w.declare("a", customSigner(signer, caNamespace, w.addOn))
		name := w.ask(w.klusterlet(w.cluster("a")), "a", signer)
		Eventually(said("cannot read signing CA "+caNamespace+"/"+w.addOn), patience).Should(Equal(1))
		w.newCA(caNamespace, w.addOn)
		Eventually(w.certificate(name), patience).ShouldNot(BeNil())
	})

	It("uses no signing CA from another namespace", func(ctx context.Context) {
		w := newWorld(ctx)
		signer := "example.com/" + w.addOn
		w.newCA("default", w.addOn)
		grant("signs-"+w.addOn, rbacv1.PolicyRule{
			APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"}, ResourceNames: []string{signer}, Verbs: []string{"approve", "sign"},
		})
		w.declare("a", customSigner(signer, "default", w.addOn))
		name := w.ask(w.klusterlet(w.cluster("a")), "a", signer)
		Eventually(said("signing CA default/"+w.addOn), patience).Should(Equal(1))
		Expect(w.certificate(name)()).To(BeNil())
	})

	It("ignores the status", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.cluster("a"), Name: w.addOn}, addOn)).To(Succeed())
		signer := "example.com/forged"
		addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: signer, Subject: addonv1alpha1.Subject{User: "x", Groups: []string{"system:authenticated"}}}}
		Expect(admin.Status().Update(ctx, addOn)).To(Succeed())
		name := w.ask(w.klusterlet(w.cluster("a")), "a", signer)
		Eventually(said("does not register with signer "+signer), patience).Should(Equal(1))
		Expect(w.approval(name)()).To(BeEmpty())
	})
})
