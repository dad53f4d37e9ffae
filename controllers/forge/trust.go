package forge

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/addonflow/addonflow/dial"
)

// caKey is the key of the certificate authorities in the Secret of spec.commitStatus.secretRef.
const caKey = "ca.crt"

// trusting is a client that also trusts the authority of the login. It connects to the same addresses, with the same
// proxies and time limits as the given client; nil stands for the default client.
func (l login) trusting(to *http.Client) (*http.Client, error) {
	pool, err := dial.Authorities(l.authority)
	if err != nil {
		return nil, fmt.Errorf("cannot report commit statuses: %s: key %q %w", l.secret, caKey, err)
	}
	if pool == nil {
		return to, nil
	}
	client := http.Client{}
	if to != nil {
		client = *to
	}
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		transport, _ = http.DefaultTransport.(*http.Transport)
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	client.Transport = transport
	return &client, nil
}
