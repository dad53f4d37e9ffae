package registration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

const (
	kubeSigner   = certificatesv1.KubeAPIServerClientSignerName
	customSigner = "example.com/signer"
)

// keys are created once, because RSA keys take long.
var keys = sync.OnceValue(func() map[string]crypto.Signer {
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p224, err2 := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	rsa2048, err3 := rsa.GenerateKey(rand.Reader, 2048)
	rsa1024, err5 := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // the weak key that must be refused
	_, ed, err4 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil {
		return nil
	}
	return map[string]crypto.Signer{"p256": p256, "p224": p224, "rsa2048": rsa2048, "rsa1024": rsa1024, "ed25519": ed}
})

// ask is a request before it is encoded: the valid one of the klusterlet of c1 for hello,
// unless a test changes it.
type ask struct {
	csr     certificatesv1.CertificateSigningRequest
	request x509.CertificateRequest
	key     string
	facts   Facts
	// text replaces the encoded request.
	text func(good []byte) []byte
}

// goodAsk is what OCM's klusterlet sends.
func goodAsk() *ask {
	subject := DefaultSubject("hello", "c1")
	return &ask{
		csr: certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "addon-c1-hello-x7k2p", Labels: map[string]string{
				"open-cluster-management.io/addon-name": "hello", "open-cluster-management.io/cluster-name": "c1",
			}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: kubeSigner,
				Username:   "system:open-cluster-management:c1:9bkfw",
				Groups:     []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters", "system:authenticated"},
				Usages:     []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
			},
		},
		request: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: subject.User, Organization: subject.Groups},
			DNSNames: []string{"hello.addon.open-cluster-management.io"},
		},
		key: "p256",
		facts: Facts{Cluster: Present, AddOn: Present, Asked: []addonv1alpha1.RegistrationSpec{
			{Type: addonv1alpha1.RegistrationTypeKubeClient},
			{Type: addonv1alpha1.RegistrationTypeCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
				SignerName: customSigner,
				Subject:    &addonv1alpha1.Subject{User: "user-test", Groups: []string{"group-test"}, OrganizationUnits: []string{"organization-test"}},
				SigningCA:  addonv1alpha1.SigningCARef{Namespace: "ca", Name: "ca-secret"},
			}},
		}},
	}
}

// custom turns a request into the one for the custom signer.
func (a *ask) custom() *ask {
	a.csr.Spec.SignerName = customSigner
	a.request.Subject = pkix.Name{CommonName: "user-test", Organization: []string{"group-test"}, OrganizationalUnit: []string{"organization-test"}}
	return a
}

// seal encodes and signs the request.
func (a *ask) seal(tb testing.TB) *certificatesv1.CertificateSigningRequest {
	tb.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.request, keys()[a.key])
	if err != nil {
		tb.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if a.text != nil {
		text = a.text(text)
	}
	csr := a.csr.DeepCopy()
	csr.Spec.Request = text
	return csr
}

// groups replaces the organizations asked for.
func (a *ask) groups(names ...string) { a.request.Subject.Organization = slices.Clone(names) }
