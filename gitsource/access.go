package gitsource

import (
	"context"
	"fmt"
	"net"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/dial"
)

// Access has the permissions that the operator's flags give to all repositories. The zero value gives none.
type Access struct {
	// AllowLoopback permits loopback and link-local addresses, and the metadata services of clouds.
	AllowLoopback bool
	// AllowHTTPCredentials permits credentials to be sent over http, in plain text.
	AllowHTTPCredentials bool
}

func (a Access) policy() dial.Policy { return dial.Policy{AllowLoopback: a.AllowLoopback} }

// dial opens a connection, through the proxy if there is one.
func (a Access) dial(ctx context.Context, proxy *Proxy, address string) (net.Conn, error) {
	if proxy != nil {
		return a.policy().Tunnel(ctx, connectTimeout, proxy.URL(), address)
	}
	return a.policy().Dialer(connectTimeout).DialContext(ctx, "tcp", address)
}

// unauthorized says that the proxy refuses the credentials of its Secret.
func unauthorized(proxy *Proxy) error {
	return fmt.Errorf("%w: the proxy %s answered 407; check the Secret of spec.proxySecretRef", ErrAuthentication, brief.Printable(proxy.address.Host))
}

// denied says that the operator does not dial a host, or the proxy before it, and which flag allows it.
func denied(host string, proxy *Proxy) string {
	if proxy != nil {
		host = "the proxy " + proxy.address.Host
	}
	return brief.Printable(host) + " " + dial.ErrLocal.Error() + "; the operator's flag --git-allow-loopback allows it"
}
