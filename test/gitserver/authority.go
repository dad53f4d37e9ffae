package gitserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is long, so that no certificate expires during a debugging session.
const validity = 10 * 365 * 24 * time.Hour

// authority is a CA of two certificates: the server's and a client's, which it signed.
type authority struct {
	pem    []byte
	server tls.Certificate
	client keyPair
}

// keyPair is a certificate and its key, both in PEM.
type keyPair struct{ certificate, key []byte }

func newAuthority() (authority, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("cannot create a CA: %w", err)
	}
	ca := template(1, "gitserver CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return authority{}, fmt.Errorf("cannot create a CA: %w", err)
	}
	a := authority{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})}
	sign := func(leaf *x509.Certificate, usage x509.ExtKeyUsage) (keyPair, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return keyPair{}, err
		}
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{usage}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
		if err != nil {
			return keyPair{}, err
		}
		encoded, err := x509.MarshalPKCS8PrivateKey(key)
		return keyPair{
			certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		}, err
	}
	leaf := template(2, "gitserver")
	leaf.IPAddresses, leaf.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	server, err := sign(leaf, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return authority{}, fmt.Errorf("cannot create a server certificate: %w", err)
	}
	if a.server, err = tls.X509KeyPair(server.certificate, server.key); err != nil {
		return authority{}, fmt.Errorf("cannot create a server certificate: %w", err)
	}
	if a.client, err = sign(template(3, "client"), x509.ExtKeyUsageClientAuth); err != nil {
		return authority{}, fmt.Errorf("cannot create a client certificate: %w", err)
	}
	return a, nil
}

// pool has the CA alone.
func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.pem)
	return pool
}

func template(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (a authority) serverConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.server}, MinVersion: tls.VersionTLS12}
}
