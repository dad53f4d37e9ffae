package forge

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// caKey is the key of a private certificate authority in the Secret of spec.commitStatus.secretRef. It is that of Git's
// Secrets, because a forge has one certificate for both.
const caKey = "ca.crt"

// trusting returns a client that trusts the Secret's certificate authority besides the system's, and else does what the
// given one does. Without an authority it is the given one.
func trusting(to *http.Client, secret *corev1.Secret) (*http.Client, error) {
	authority := secret.Data[caKey]
	if len(authority) == 0 {
		return to, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("cannot report commit statuses: key %q of secret %q holds no PEM certificate", caKey, secret.Name)
	}
	client := http.Client{}
	if to != nil {
		client = *to
	}
	client.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
	}
	return &client, nil
}
