package dial

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Policy says which addresses may be dialled. The zero value refuses loopback and link-local
// addresses.
type Policy struct {
	// AllowLoopback permits the loopback and link-local addresses of the operator's machine.
	AllowLoopback bool
}

// ErrLocal is why an address is not dialled. Callers add which flag allows it.
var ErrLocal = errors.New("leads to a loopback or link-local address")

// Dialer returns a dialer that follows the policy.
func (p Policy) Dialer(timeout time.Duration) *net.Dialer {
	d := &net.Dialer{Timeout: timeout}
	if !p.AllowLoopback {
		d.Control = refuseLocal
	}
	return d
}

// refuseLocal sees every address that is dialled, after the name was resolved.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if isLocal(at.Addr()) {
		return ErrLocal
	}
	return nil
}

// isLocal reports whether an address leads to this machine or its link. Unspecified ones lead
// to loopback.
func isLocal(a netip.Addr) bool {
	a = a.Unmap()
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) { // a NAT64 gateway calls what the last 4 bytes say
		last := a.As16()
		a = netip.AddrFrom4([4]byte(last[12:]))
	}
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() || a.IsUnspecified()
}
