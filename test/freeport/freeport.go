package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// first and count are the ports that are tried: below those from which Linux (32768) and macOS
	// (49152) choose one for an outgoing connection. Such a connection would take the port between
	// its choice here and the program's start, or while a program is started again.
	first, count = 20000, 12000
	// tries bounds the search.
	tries = 100
)

// Address returns 127.0.0.1 with a port that nothing listens on. The caller must let the program
// listen soon: two callers may choose the same port.
func Address(ctx context.Context) (string, error) {
	var last error
	for range tries {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(count))
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			last = err
			continue
		}
		return address, listener.Close()
	}
	return "", errors.Join(errors.New("cannot find a free port"), last)
}
