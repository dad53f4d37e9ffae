package registration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
)

var signingTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// caOf issues a self-signed CA for a key, valid for a while around signingTime.
func caOf(t *testing.T, key crypto.Signer, change func(*x509.Certificate)) []byte {
	t.Helper()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: signingTime.Add(-time.Hour), NotAfter: signingTime.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	change(ca)
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func unchanged(*x509.Certificate) {}

func keyPEM(t *testing.T, kind string, key crypto.Signer, encode func() ([]byte, error)) []byte {
	t.Helper()
	der, err := encode()
	if err != nil {
		t.Fatalf("%T: %v", key, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkcs8(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	return keyPEM(t, "PRIVATE KEY", key, func() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(key) })
}

// TestKeysOfASigningCA: every common form of a CA's key can sign, and its signatures verify.
func TestKeysOfASigningCA(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1 := keyPEM(t, "EC PRIVATE KEY", ecKey, func() ([]byte, error) { return x509.MarshalECPrivateKey(ecKey) })
	pkcs1 := keyPEM(t, "RSA PRIVATE KEY", rsaKey, func() ([]byte, error) { return x509.MarshalPKCS1PrivateKey(rsaKey), nil })
	cases := map[string]struct {
		reason  string
		key     crypto.Signer
		encoded []byte
	}{
		"RSAPKCS1":       {"all that OCM takes", rsaKey, pkcs1},
		"RSAPKCS8":       {"what cert-manager and openssl 3 write", rsaKey, pkcs8(t, rsaKey)},
		"ECDSASEC1":      {"openssl's older form", ecKey, sec1},
		"ECDSAPKCS8":     {"the newer one", ecKey, pkcs8(t, ecKey)},
		"ECDSAParameter": {"openssl ecparam writes the curve in front", ecKey, slices.Concat([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), sec1)},
		"Ed25519":        {"also a signer", keys()["ed25519"], pkcs8(t, keys()["ed25519"])},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ca := caOf(t, tc.key, unchanged)
			for _, entries := range []map[string][]byte{{"tls.crt": ca, "tls.key": tc.encoded}, {"ca.crt": ca, "ca.key": tc.encoded}} {
				authority, err := NewAuthority(entries)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				certificate := signed(t, authority, goodAsk().custom().seal(t))
				if err := certificate.CheckSignatureFrom(authority.certificate); err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
			}
		})
	}
}

// signed signs and reads the certificate.
func signed(t *testing.T, authority *Authority, csr *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	t.Helper()
	text, err := authority.Sign(csr, signingTime, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one block: %q", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func authorityUntil(t *testing.T, until time.Time) *Authority {
	t.Helper()
	key := keys()["p256"]
	authority, err := NewAuthority(map[string][]byte{
		"tls.crt": caOf(t, key, func(c *x509.Certificate) { c.NotAfter = until }), "tls.key": pkcs8(t, key),
	})
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func TestCertificateIsForTheClientOnly(t *testing.T) {
	c := signed(t, authorityUntil(t, signingTime.AddDate(1, 0, 0)), goodAsk().custom().seal(t))
	if c.Subject.CommonName != "user-test" || !cmp.Equal(c.Subject.Organization, []string{"group-test"}) || !cmp.Equal(c.Subject.OrganizationalUnit, []string{"organization-test"}) {
		t.Errorf("subject %v", c.Subject)
	}
	if !cmp.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(c.UnknownExtKeyUsage) > 0 {
		t.Errorf("is for more than clients: %v", c.ExtKeyUsage)
	}
	if c.IsCA || c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment {
		t.Errorf("key usage %v, authority %v", c.KeyUsage, c.IsCA)
	}
	if c.SerialNumber.Sign() <= 0 || c.SerialNumber.BitLen() < 64 {
		t.Errorf("serial number %v", c.SerialNumber)
	}
}

func TestCertificateExpiry(t *testing.T) {
	seconds := func(n int32) *int32 { return &n }
	cases := map[string]struct {
		reason string
		asked  *int32
		until  time.Time
		want   time.Time
	}{
		"Default":  {"as long as OCM signs for", nil, signingTime.AddDate(1, 0, 0), signingTime.Add(signedFor)},
		"Shorter":  {"what is asked", seconds(3600), signingTime.AddDate(1, 0, 0), signingTime.Add(time.Hour)},
		"Longer":   {"is not given", seconds(30 * 24 * 3600), signingTime.AddDate(1, 0, 0), signingTime.Add(signedFor)},
		"CAsEnd":   {"nothing outlives its CA", nil, signingTime.Add(2 * time.Hour), signingTime.Add(2 * time.Hour)},
		"CAAsLong": {"to the second", seconds(7200), signingTime.Add(2 * time.Hour), signingTime.Add(2 * time.Hour)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := goodAsk().custom()
			a.csr.Spec.ExpirationSeconds = tc.asked
			got := signed(t, authorityUntil(t, tc.until), a.seal(t))
			if !got.NotAfter.Equal(tc.want) || got.NotBefore.After(signingTime) {
				t.Errorf("%s: from %v until %v, want %v", tc.reason, got.NotBefore, got.NotAfter, tc.want)
			}
		})
	}
	ended := authorityUntil(t, signingTime.Add(-time.Second))
	if _, err := ended.Sign(goodAsk().custom().seal(t), signingTime, rand.Reader); !errors.Is(err, errAuthorityEnded) {
		t.Errorf("signed with a CA that ended: %v", err)
	}
}

// TestNewAuthorityRefuses: each error names the entry, and shows no content.
func TestNewAuthorityRefuses(t *testing.T) {
	key, other := keys()["p256"], keys()["rsa2048"]
	good, goodKey := caOf(t, key, unchanged), pkcs8(t, key)
	leaf := caOf(t, key, func(c *x509.Certificate) { c.IsCA = false })
	noSign := caOf(t, key, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign })
	block := func(kind string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("hunter2-hunter2")})
	}
	cases := map[string]struct {
		entries map[string][]byte
		want    string
	}{
		"Empty":       {nil, "tls.crt"},
		"NoKey":       {map[string][]byte{"tls.crt": good}, "tls.key: tls: failed to find any PEM data"},
		"NotPEM":      {map[string][]byte{"tls.crt": good, "tls.key": []byte("hunter2-hunter2")}, "tls.key: tls: failed to find any PEM data"},
		"Garbage":     {map[string][]byte{"tls.crt": good, "tls.key": block("PRIVATE KEY")}, "tls.key: tls: failed to parse private key"},
		"Encrypted":   {map[string][]byte{"tls.crt": good, "tls.key": block("ENCRYPTED PRIVATE KEY")}, "in PEM, not encrypted"},
		"GarbageCert": {map[string][]byte{"tls.crt": block("CERTIFICATE"), "tls.key": goodKey}, "tls.crt: holds a certificate that cannot be read"},
		"KeyAsCert":   {map[string][]byte{"tls.crt": goodKey, "tls.key": goodKey}, "tls.crt: holds no PEM block"},
		"Leaf":        {map[string][]byte{"tls.crt": leaf, "tls.key": goodKey}, "not of an authority"},
		"MayNotSign":  {map[string][]byte{"tls.crt": noSign, "tls.key": goodKey}, "may not sign"},
		"OtherKey":    {map[string][]byte{"tls.crt": good, "tls.key": pkcs8(t, other)}, "does not match public key"},
		"SeedForm":    {map[string][]byte{"ca.crt": good}, "ca.key: tls: failed to find any PEM data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewAuthority(tc.entries)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzNewAuthority: a signing CA is read with its certificate and its key, or refused.
func FuzzNewAuthority(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		a, err := NewAuthority(map[string][]byte{seedCertificateKey: certificate, seedPrivateKeyKey: key})
		if err == nil && (a.certificate == nil || a.key == nil) || err != nil && a != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
