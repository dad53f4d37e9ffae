package dial_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/addonflow/addonflow/dial"
)

// TestDialer_RefusesThisMachine, and the metadata services of clouds: also if only another form of the address
// leads there.
func TestDialer_RefusesThisMachine(t *testing.T) {
	dialer := dial.Policy{}.Dialer(time.Second)
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1.2.3", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254",
		"fe80::1%lo", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1",
		"fd00:ec2::254", "fd00:ec2::23", "fd00:42::42", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "64:ff9b::6464:64c8",
	} {
		if _, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(host, "9")); !errors.Is(err, dial.ErrLocal) {
			t.Errorf("%s: got %v, want %v", host, err, dial.ErrLocal)
		}
	}
}

// TestCheckHost_KnowsWhatIsNeverDialled, before any name is looked up.
func TestCheckHost_KnowsWhatIsNeverDialled(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost", "LocalHost.", "x.localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "169.254.169.254", "fe80::1%lo", "64:ff9b::a9fe:a9fe", "2130706433", "127.1", "0x7f.0.0.1", "0177.0.0.1."} {
		if err := (dial.Policy{}).CheckHost(host); !errors.Is(err, dial.ErrLocal) {
			t.Errorf("%s: got %v", host, err)
		}
		if err := (dial.Policy{AllowLoopback: true}).CheckHost(host); err != nil {
			t.Errorf("%s is refused although a flag allows it: %v", host, err)
		}
	}
	for _, host := range []string{"10.255.255.1", "fd00::1", "prometheus.monitoring.svc", "localhost.example.com", "1.example.com", "git1"} {
		if err := (dial.Policy{}).CheckHost(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestDialer_AllowsPrivateAddresses: forges live there. Nothing answers at these addresses.
func TestDialer_AllowsPrivateAddresses(t *testing.T) {
	dialer := dial.Policy{}.Dialer(50 * time.Millisecond)
	for _, host := range []string{"10.255.255.1", "172.31.255.1", "192.168.255.1", "fd00::1", "100.64.0.1"} {
		if _, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(host, "9")); errors.Is(err, dial.ErrLocal) {
			t.Errorf("%s is refused", host)
		}
	}
}

func TestDialer_ReachesThisMachineIfAFlagAllowsIt(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := dial.Policy{AllowLoopback: true}.Dialer(time.Minute).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestDialer_RefusesANameThatIsRebound: the name server answers with a public address first and
// with loopback from then on. What is dialled counts, not an earlier answer.
func TestDialer_RefusesANameThatIsRebound(t *testing.T) {
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	var answers atomic.Int32
	go answerNames(server, func() net.IP {
		if answers.Add(1) == 1 {
			return net.IPv4(192, 0, 2, 1)
		}
		return net.IPv4(127, 0, 0, 1)
	})
	dialer := dial.Policy{}.Dialer(100 * time.Millisecond)
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	if _, err := dialer.DialContext(t.Context(), "tcp4", "git.example.com:9"); err == nil || errors.Is(err, dial.ErrLocal) {
		t.Fatalf("got %v, want that the public address was dialled", err)
	}
	dialer.Timeout = time.Minute
	if _, err := dialer.DialContext(t.Context(), "tcp4", "git.example.com:9"); !errors.Is(err, dial.ErrLocal) {
		t.Errorf("got %v, want %v", err, dial.ErrLocal)
	}
}

// answerNames answers every question with one address.
func answerNames(server net.PacketConn, address func() net.IP) {
	buffer := make([]byte, 512)
	for {
		n, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		question := buffer[12:n]
		end := strings.IndexByte(string(question), 0) + 5
		answer := append([]byte{buffer[0], buffer[1], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, question[:end]...)
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1)
		answer = binary.BigEndian.AppendUint32(answer, 0)
		answer = append(append(answer, 0, 4), address().To4()...)
		_, _ = server.WriteTo(answer, from)
	}
}
