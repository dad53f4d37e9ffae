package gitsource

import (
	"net"

	"github.com/addonflow/addonflow/dial"
)

// Access is what the operator's flags permit to all repositories. The zero value is the strict
// one.
type Access struct {
	// AllowLoopback permits the loopback and link-local addresses of the operator's machine.
	AllowLoopback bool
}

// dialer opens the connections of every transport.
func (a Access) dialer() *net.Dialer {
	return dial.Policy{AllowLoopback: a.AllowLoopback}.Dialer(connectTimeout)
}

// denied says that a host is not dialled, and which flag allows it.
func denied(host string) string {
	return printable(host) + " " + dial.ErrLocal.Error() + "; the operator's flag --git-allow-loopback allows it"
}
