package dial

import (
	"crypto/x509"
	"errors"
)

// errNoCertificate is why an authority of a tenant is refused. Callers add which key it is in.
var errNoCertificate = errors.New("holds no PEM certificate")

// Authorities returns the system's pool with the certificates added. If there are none, it returns nil, which stands
// for the system's pool.
func Authorities(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errNoCertificate
	}
	return pool, nil
}
