package agents_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/registration"
)

// request is a request before it is encoded: the klusterlet's valid one, unless a spec changes
// it.
type request struct {
	csr  certificatesv1.CertificateSigningRequest
	x509 x509.CertificateRequest
	key  crypto.Signer
	// text replaces the encoded request.
	text func(good []byte) []byte
}

// hostile is a request for more than the agent may have, with the text of its event.
type hostile struct {
	change func(*request)
	says   string
}

// makes creates a request of the first cluster's agent with the client c, and returns it.
func (w *world) makes(c client.Client, change func(*request)) (*certificatesv1.CertificateSigningRequest, error) {
	GinkgoHelper()
	cluster := w.cluster("a")
	subject := registration.DefaultSubject(w.addOn, cluster)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	r := &request{
		csr: certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "addon-" + cluster + "-",
				Labels:       map[string]string{addonv1alpha1.AddonLabelKey: w.addOn, clusterv1.ClusterNameLabelKey: cluster},
			},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: hubSigner,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		},
		x509: x509.CertificateRequest{Subject: pkix.Name{CommonName: subject.User, Organization: slices.Clone(subject.Groups)}},
		key:  key,
	}
	change(r)
	der, err := x509.CreateCertificateRequest(rand.Reader, &r.x509, r.key)
	Expect(err).NotTo(HaveOccurred())
	r.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if r.text != nil {
		r.csr.Spec.Request = r.text(r.csr.Spec.Request)
	}
	return &r.csr, c.Create(w.ctx, &r.csr)
}

// reachesUs are hostile requests that the API server accepts.
func (w *world) reachesUs() []hostile {
	usages := func(of ...certificatesv1.KeyUsage) func(*request) {
		return func(r *request) { r.csr.Spec.Usages = of }
	}
	signer := func(name string) func(*request) { return func(r *request) { r.csr.Spec.SignerName = name } }
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // the weak key that must be refused
	Expect(err).NotTo(HaveOccurred())
	return []hostile{
		{signer("example.com/of-others"), "does not register with signer example.com/of-others"},
		{func(r *request) {
			signer(certificatesv1.KubeletServingSignerName)(r)
			usages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)(r)
		}, "does not register with signer kubernetes.io/kubelet-serving"},
		{func(r *request) { r.x509.Subject.Organization = append(r.x509.Subject.Organization, "system:nodes") }, `"system:nodes"`},
		{func(r *request) { r.x509.Subject.Organization = r.x509.Subject.Organization[:1] }, "has organizations"},
		{func(r *request) { r.x509.Subject.CommonName = "system:admin" }, `has common name ["system:admin"]`},
		{func(r *request) { r.x509.Subject.CommonName += "\x00" }, `agent\x00"]`},
		{func(r *request) { r.x509.Subject.OrganizationalUnit = []string{"admins"} }, `has organizational units ["admins"]`},
		{usages(certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth), `asks for usage "server auth"`},
		{usages(certificatesv1.UsageDigitalSignature), `does not ask for usage "client auth"`},
		{func(r *request) { r.csr.Spec.ExpirationSeconds = new(int32(10 * registration.MaxLifetime)) }, "at most 31536000 are given"},
		{func(r *request) { r.x509.DNSNames = []string{"kubernetes.default.svc"} }, `asks for DNS names ["kubernetes.default.svc"]`},
		{func(r *request) { r.x509.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, "that are no DNS name"},
		{func(r *request) { r.x509.URIs = []*url.URL{{Scheme: "spiffe", Host: "hub"}} }, "that are no DNS name"},
		{func(r *request) {
			r.x509.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}, "asks for extension 2.5.29.19"},
		{func(r *request) { r.key = weak }, "has an RSA key of 1024 bits"},
		{func(r *request) { r.text = func(good []byte) []byte { return slices.Concat(good, good) } }, "is not one PEM block"},
		{func(r *request) { r.text = func(good []byte) []byte { return append(good, "and more"...) } }, "is not one PEM block"},
		{func(r *request) { r.csr.Labels[clusterv1.ClusterNameLabelKey] = w.cluster("b") }, "is labelled with cluster"},
		{func(r *request) { r.csr.Labels[clusterv1.ClusterNameLabelKey] = "none" }, `is labelled with cluster "none"`},
	}
}

// otherOrder lists the groups in reverse order, each in an element of its own.
func otherOrder(r *request) {
	for _, group := range slices.Backward(r.x509.Subject.Organization) {
		r.x509.Subject.ExtraNames = append(r.x509.Subject.ExtraNames, pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: group,
		})
	}
	r.x509.Subject.Organization = nil
}

var _ = Describe("Hostile requests", func() {
	It("stay pending on a hub, each with one event that says why", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		klusterlet := w.klusterlet(w.cluster("a"))
		var pending []string
		left := func(c client.Client, h hostile) {
			GinkgoHelper()
			csr, err := w.makes(c, h.change)
			Expect(err).NotTo(HaveOccurred(), h.says)
			Eventually(said(h.says), patience).Should(Equal(1), h.says)
			pending = append(pending, csr.Name)
		}
		for _, h := range w.reachesUs() {
			left(klusterlet, h)
		}
		agent, group := "system:open-cluster-management:"+w.cluster("a"), "system:open-cluster-management:"+w.cluster("a")
		unchanged := func(*request) {}
		left(w.user(agent+":9bkfw"), hostile{unchanged, "without the group of its cluster"})
		left(w.user(agent+"0:9bkfw", group), hostile{unchanged, "was asked by the agent of \"" + w.cluster("a") + "0\""})
		left(w.user("system:serviceaccount:"+w.cluster("a")+":klusterlet", group), hostile{unchanged, "is not the agent of a managed cluster"})
		left(w.user(registration.DefaultSubject(w.addOn, w.cluster("a")).User, group), hostile{unchanged, "is not the agent of a managed cluster"})

		// Later reconciles must not repeat the event.
		again := said("Left pending")
		for _, name := range pending {
			csr := &certificatesv1.CertificateSigningRequest{}
			Expect(admin.Get(ctx, client.ObjectKey{Name: name}, csr)).To(Succeed())
			csr.Annotations = map[string]string{"touched": "yes"}
			Expect(admin.Update(ctx, csr)).To(Succeed())
		}
		good, err := w.makes(klusterlet, otherOrder)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.approval(good.Name), patience).Should(Equal(ocmReason), "groups are a set")
		Expect(again()).To(BeZero())
		for _, name := range pending {
			Expect(w.approval(name)()).To(BeEmpty(), name)
		}
	})

	It("that are malformed, or for the hub's own admins, are refused by the API server", func(ctx context.Context) {
		w := newWorld(ctx)
		w.declare("a", kubeClient())
		klusterlet := w.klusterlet(w.cluster("a"))
		for says, change := range map[string]func(*request){
			"spec.request": func(r *request) { r.text = func([]byte) []byte { return []byte("garbage") } },
			"CERTIFICATE REQUEST": func(r *request) {
				r.text = func(good []byte) []byte {
					block, _ := pem.Decode(good)
					return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})
				}
			},
			"system:masters": func(r *request) { r.x509.Subject.Organization = []string{"system:masters"} },
		} {
			_, err := w.makes(klusterlet, change)
			Expect(err).To(MatchError(ContainSubstring(says)))
		}
	})

	It("stay denied if an admin denied them", func(ctx context.Context) {
		w := newWorld(ctx)
		klusterlet := w.klusterlet(w.cluster("a"))
		csr, err := w.makes(klusterlet, func(*request) {})
		Expect(err).NotTo(HaveOccurred())
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "ByHand",
		}}
		Expect(admin.SubResource("approval").Update(ctx, csr)).To(Succeed())
		w.declare("a", kubeClient())
		Eventually(w.approval(w.ask(klusterlet, "a", hubSigner)), patience).Should(Equal(ocmReason))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(csr), csr)).To(Succeed())
		Expect(csr.Status.Conditions).To(ConsistOf(HaveField("Type", certificatesv1.CertificateDenied)))
	})

	It("are approved after a conflict without a change of the request", func(ctx context.Context) {
		w := newWorld(ctx)
		conflicts := 1
		csr, look, _ := w.intercepted(func(approve func() error, csr client.Object) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), csr.GetName(), errors.New("another writer was first"))
			}
			return approve()
		})
		Expect(look(ctx).RequeueAfter).To(BeNumerically(">", 0), "no event follows")
		look(ctx)
		Expect(w.approval(csr.Name)()).NotTo(BeEmpty())
	})

	It("are judged again if they change before the approval", func(ctx context.Context) {
		w := newWorld(ctx)
		// The label changes after the request was judged, and before the approval.
		csr, look, said := w.intercepted(func(approve func() error, csr client.Object) error {
			live := &certificatesv1.CertificateSigningRequest{}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(csr), live)).To(Succeed())
			live.Labels[clusterv1.ClusterNameLabelKey] = w.cluster("b")
			Expect(admin.Update(ctx, live)).To(Succeed())
			return approve()
		})
		look(ctx)
		look(ctx)
		Expect(w.approval(csr.Name)()).To(BeEmpty())
		Expect(said.Events).To(Receive(ContainSubstring("is labelled with cluster")))
		Expect(said.Events).To(BeEmpty())
	})
})

// intercepted makes a good request of cluster a. It returns the request, a look of an operator of its own, whose
// approvals pass through approval, and the events of that operator.
func (w *world) intercepted(approval func(approve func() error, csr client.Object) error) (*certificatesv1.CertificateSigningRequest, func(context.Context) ctrl.Result, *record.FakeRecorder) {
	GinkgoHelper()
	book, said := agents.NewBook(), record.NewFakeRecorder(10)
	book.Declare(w.key("a"), []addonv1alpha1.RegistrationSpec{kubeClient()})
	csr, err := w.makes(w.klusterlet(w.cluster("a")), func(*request) {})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, csr)).To(Succeed()) })
	watching, err := client.NewWithWatch(theHub.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	hub := interceptor.NewClient(watching, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, options ...client.SubResourceUpdateOption) error {
			return approval(func() error { return c.SubResource(sub).Update(ctx, obj, options...) }, obj)
		},
	})
	requests := agents.NewRequests(agents.Options{Client: hub, Live: admin, Recorder: said, Book: book, Clock: clock.RealClock{}, Random: rand.Reader})
	return csr, func(ctx context.Context) ctrl.Result {
		GinkgoHelper()
		result, err := requests.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)})
		Expect(err).NotTo(HaveOccurred())
		return result
	}, said
}
