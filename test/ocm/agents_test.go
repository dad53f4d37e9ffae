package ocm

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/sample"
)

// departing is the add-on of the corpus that is deleted before the worlds are compared.
const departing = "departing"

// registering are the add-ons whose agents ask for certificates.
func registering() []string {
	return []string{"kube-client", "kube-client-bare", "single-namespace", "custom-signer", "both-registrations"}
}

// askForCertificates makes the klusterlet of the first cluster request what the status of its
// add-ons lists, and waits until everything was approved and signed.
func askForCertificates(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	cluster := memberNames()[0]
	config, _, err := w.Hub.User("system:open-cluster-management:"+cluster+":agent",
		"system:open-cluster-management:"+cluster, "system:open-cluster-management:managed-clusters", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	klusterlet, err := demo.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	for _, addOn := range registering() {
		var live addonv1alpha1.ManagedClusterAddOn
		Expect(w.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addOn}, &live)).To(Succeed())
		Expect(live.Status.Registrations).NotTo(BeEmpty(), addOn)
		for i, asked := range live.Status.Registrations {
			csr, err := sample.Request(addOn, cluster, asked)
			Expect(err).NotTo(HaveOccurred())
			csr.Name, csr.GenerateName = fmt.Sprintf("addon-%s-%s-%d", cluster, addOn, i), ""
			Expect(klusterlet.Create(ctx, csr)).To(Succeed())
		}
	}
	Eventually(func(g Gomega) {
		var list certificatesv1.CertificateSigningRequestList
		g.Expect(w.Client.List(ctx, &list, client.HasLabels{addOnNameLabel})).To(Succeed())
		for i := range list.Items {
			r := &list.Items[i]
			g.Expect(r.Status.Conditions).To(ContainElement(HaveField("Type", certificatesv1.CertificateApproved)), r.Name)
			if !strings.HasPrefix(r.Spec.SignerName, "kubernetes.io/") {
				g.Expect(r.Status.Certificate).NotTo(BeEmpty(), r.Name)
			}
		}
	}).Should(Succeed())
}

// flattenRequest lists the result of a request: the approver and the content.
func flattenRequest(out flat, r *certificatesv1.CertificateSigningRequest) {
	path := join("request", r.Name)
	for _, c := range r.Status.Conditions {
		flatten(out, path+".conditions["+string(c.Type)+"]", strings.Join([]string{string(c.Status), c.Reason, c.Message}, " "))
	}
	block, _ := pem.Decode(r.Status.Certificate)
	if block == nil {
		return
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	flatten(out, path+".certificate.commonName", certificate.Subject.CommonName)
	for _, name := range certificate.Subject.Organization {
		flatten(out, path+".certificate.organization["+name+"]", true)
	}
	flatten(out, path+".certificate.organizationalUnit", generic(certificate.Subject.OrganizationalUnit))
	flatten(out, path+".certificate.isCA", certificate.IsCA)
	for _, usage := range certificate.ExtKeyUsage {
		flatten(out, fmt.Sprintf("%s.certificate.extKeyUsage[%d]", path, usage), true)
	}
	days := certificate.NotAfter.Sub(certificate.NotBefore).Round(time.Hour)
	flatten(out, path+".certificate.lifetime", days.String())
}

// startDeparture deletes the add-on departing, whose hooks are held, and waits until they
// run and its status says so.
func startDeparture(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	cluster := memberNames()[0]
	w.Fleet.Hold(cluster)
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: departing}}
	Expect(w.Client.Delete(ctx, addOn)).To(Succeed())
	Eventually(func(g Gomega) {
		var hooks workv1.ManifestWork
		g.Expect(w.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "addon-" + departing + "-pre-delete"}, &hooks)).To(Succeed())
		g.Expect(w.Client.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
		g.Expect(addOn.Status.Conditions).To(ContainElement(And(
			HaveField("Type", addonv1alpha1.ManagedClusterAddOnHookManifestCompleted), HaveField("Status", metav1.ConditionFalse))))
	}).Should(Succeed())
}

// endDeparture lets the hooks complete, and waits until nothing of the add-on is left.
func endDeparture(ctx context.Context, w *demo.World) {
	GinkgoHelper()
	cluster := memberNames()[0]
	w.Fleet.Release(cluster)
	Eventually(func(g Gomega) {
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: departing}, &addonv1alpha1.ManagedClusterAddOn{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the ManagedClusterAddOn is still there")
		g.Expect(worksOf(ctx, w.Client, departing)).To(BeEmpty())
		g.Expect(w.Fleet.Objects(cluster)).NotTo(ContainElement(HavePrefix("Deployment/" + agentNamespace + "/" + departing)))
	}).Should(Succeed())
}
