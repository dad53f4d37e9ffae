package dial

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Policy says which addresses may be dialled. The zero value refuses loopback and link-local
// addresses, and the metadata services of clouds, most of which are link-local.
type Policy struct {
	// AllowLoopback permits all of these addresses.
	AllowLoopback bool
}

// ErrLocal is the reason why an address is not dialled. Callers add which flag allows it.
var ErrLocal = errors.New("leads to a loopback or link-local address, or to a metadata service of a cloud")

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

// CheckHost returns ErrLocal for the host of a URL if the policy refuses it without a name lookup: a loopback or
// link-local address, a metadata service, or localhost. An IPv4 address in another form, such as 2130706433 or 127.1, is refused: some resolvers and
// proxies understand it.
func (p Policy) CheckHost(host string) error {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	at, err := netip.ParseAddr(name)
	_, noNumber := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 0, 64)
	local := err == nil && isLocal(at) || err != nil && noNumber == nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
	if local && !p.AllowLoopback {
		return ErrLocal
	}
	return nil
}

// isLocal reports whether an address is loopback, link-local, or a metadata service of a cloud.
// Unspecified addresses lead to loopback.
func isLocal(a netip.Addr) bool {
	a = a.Unmap()
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) { // a NAT64 gateway calls what the last 4 bytes say
		last := a.As16()
		a = netip.AddrFrom4([4]byte(last[12:]))
	}
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() || a.IsUnspecified() || isMetadata(a)
}

// isMetadata reports whether an address belongs to a metadata service that is not link-local. The service at
// 169.254.169.254, which most clouds have, is link-local.
func isMetadata(a netip.Addr) bool {
	switch a.WithZone("").String() {
	case "fd00:ec2::254", // AWS
		"fd00:ec2::23",    // AWS, credentials of pods
		"fd00:42::42",     // Scaleway
		"fd20:ce::254",    // Google Cloud
		"100.100.100.200", // Alibaba Cloud
		"168.63.129.16":   // Azure
		return true
	}
	return false
}
