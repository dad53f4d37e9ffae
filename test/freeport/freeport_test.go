package freeport_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/test/freeport"
)

func TestAddress_IsFreeAndNeverTheSourceOfAConnection(t *testing.T) {
	address, err := freeport.Address(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip("only Linux says which ports outgoing connections have")
	}
	lowest, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(port); err != nil || n >= lowest {
		t.Errorf("port %s (%v), outgoing connections have %d and above", port, err, lowest)
	}
}
