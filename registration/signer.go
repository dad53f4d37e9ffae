package registration

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// signedFor is the lifetime of a certificate of a custom signer, as in OCM, unless its request
// asks for less or its authority ends before.
const signedFor = 24 * time.Hour

// backdated is how far in the past a certificate's validity begins, for clocks that are behind.
const backdated = 5 * time.Minute

// Keys of a signing CA's Secret in OCM's templates proposal. OCM itself uses those of type
// kubernetes.io/tls, which are tried first.
const (
	seedCertificateKey = "ca.crt"
	seedPrivateKeyKey  = "ca.key"
)

// Authority is a CA that signs for a custom signer.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// NewAuthority reads a signing CA from the entries of its Secret: tls.crt and tls.key, or
// ca.crt and ca.key. The key is RSA, ECDSA or Ed25519, in PKCS#8, PKCS#1 or SEC 1. Errors name
// the entry and never show its content.
func NewAuthority(entries map[string][]byte) (*Authority, error) {
	certificateKey, privateKeyKey := corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	if len(entries[certificateKey]) == 0 && len(entries[seedCertificateKey]) > 0 {
		certificateKey, privateKeyKey = seedCertificateKey, seedPrivateKeyKey
	}
	certificate, err := readCertificate(entries[certificateKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certificateKey, err)
	}
	pair, err := tls.X509KeyPair(entries[certificateKey], entries[privateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want the private key of %s in PEM, not encrypted", privateKeyKey, err, certificateKey)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: is a key that cannot sign", privateKeyKey)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// readCertificate reads the first certificate, which is the CA itself.
func readCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("holds no PEM block CERTIFICATE")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return nil, errors.New("holds a certificate that cannot be read")
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return nil, errors.New("holds a certificate that is not of an authority")
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("holds an authority that may not sign certificates")
	}
	return certificate, nil
}

// errAuthorityEnded: no certificate of an authority would be valid.
var errAuthorityEnded = errors.New("the signing CA is not valid now")

// Sign issues the certificate of a request that passed CheckContent, as PEM. It is for clients
// only, whatever the request says, and contains only names that were checked. It ends after
// signedFor, at the requested time, or with its authority, whichever comes first. Sign itself
// refuses names of Kubernetes as well.
func (a *Authority) Sign(csr *certificatesv1.CertificateSigningRequest, now time.Time, random io.Reader) ([]byte, error) {
	addOn, cluster := AddOnOf(csr)
	request, r := parse(csr.Spec.Request)
	if r != nil {
		return nil, r
	}
	if r := checkReserved(request, addOn, cluster); r != nil {
		return nil, r
	}
	from, until := a.validity(csr.Spec.ExpirationSeconds, now)
	if !until.After(now) || from.After(now) {
		return nil, errAuthorityEnded
	}
	serial, err := serialNumber(random)
	if err != nil {
		return nil, fmt.Errorf("cannot choose a serial number: %w", err)
	}
	certificate := &x509.Certificate{
		SerialNumber: serial,
		Subject: pkix.Name{
			CommonName:         request.Subject.CommonName,
			Organization:       request.Subject.Organization,
			OrganizationalUnit: request.Subject.OrganizationalUnit,
		},
		DNSNames:              request.DNSNames,
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              keyUsage(csr.Spec.Usages),
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(random, certificate, a.certificate, request.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func (a *Authority) validity(seconds *int32, now time.Time) (from, until time.Time) {
	lifetime := signedFor
	if seconds != nil {
		lifetime = min(lifetime, time.Duration(*seconds)*time.Second)
	}
	from, until = now.Add(-backdated), now.Add(lifetime)
	if a.certificate.NotBefore.After(from) {
		from = a.certificate.NotBefore
	}
	if a.certificate.NotAfter.Before(until) {
		until = a.certificate.NotAfter
	}
	return from, until
}

// keyUsage converts the usages of a request; it drops those that are not for a client.
func keyUsage(usages []certificatesv1.KeyUsage) x509.KeyUsage {
	var out x509.KeyUsage
	if slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		out |= x509.KeyUsageDigitalSignature
	}
	if slices.Contains(usages, certificatesv1.UsageKeyEncipherment) {
		out |= x509.KeyUsageKeyEncipherment
	}
	return out
}

// serialBytes keeps the number below the 20 bytes that RFC 5280 allows.
const serialBytes = 16

func serialNumber(random io.Reader) (*big.Int, error) {
	number := make([]byte, serialBytes)
	if _, err := io.ReadFull(random, number); err != nil {
		return nil, err
	}
	return new(big.Int).SetBytes(number), nil
}

// SigningCA returns the namespace and name of the Secret that the block of a signer names; the
// namespace is OCM's if the block names none.
func SigningCA(facts Facts, signer string) (namespace, name string, ok bool) {
	for _, spec := range facts.Asked {
		if spec.CustomSigner != nil && spec.CustomSigner.SignerName == signer {
			return SigningNamespace(spec.CustomSigner.SigningCA.Namespace), spec.CustomSigner.SigningCA.Name, true
		}
	}
	return "", "", false
}

// DefaultSigningNamespace is the namespace of a signing CA if the registration block names none. It
// is the only namespace that is allowed by default.
const DefaultSigningNamespace = "open-cluster-management-hub"

// SigningNamespace returns the namespace of a block, or the default.
func SigningNamespace(declared string) string {
	if declared == "" {
		return DefaultSigningNamespace
	}
	return declared
}
