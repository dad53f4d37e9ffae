package gitsource

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// FuzzFormat: a list of references is refused if the first hash is of SHA-256, and never if go-git can read the list.
func FuzzFormat(f *testing.F) {
	for _, hash := range [][]byte{make([]byte, 20), []byte(strings.Repeat("\xab", 32)), []byte(strings.Repeat("x", 33)), nil} {
		f.Add(true, hash, "HEAD\x00multi_ack object-format=sha256\n")
		f.Add(false, hash, "capabilities^{}\x00 ofs-delta\n0000")
	}
	f.Fuzz(func(t *testing.T, service bool, hash []byte, rest string) {
		line := hex.EncodeToString(hash) + " " + rest
		list := fmt.Sprintf("%04x%s0000", len(line)+flushLength, line)
		if len(line)+flushLength > 0xffff {
			t.Skip()
		}
		if service {
			list = "001e# service=git-upload-pack\n0000" + list
		}
		err := (&exchange{}).checkFormat([]byte(list[:min(len(list), sha256Length)]))
		if got, want := errors.Is(err, ErrObjectFormat), len(hash) == 32; got != want {
			t.Errorf("%q: refused %t, want %t", list, got, want)
		}
		if err != nil && packp.NewAdvRefs().Decode(strings.NewReader(list)) == nil {
			t.Errorf("go-git reads %q, and it is refused: %v", list, err)
		}
	})
}

// FuzzFirstLine: the start of a list is within its first packet, is read without a byte after it, and stays in the list.
func FuzzFirstLine(f *testing.F) {
	for _, list := range []string{"", "00", "0000", "0001", "zzzz", "0006a\n0000", "FFFF" + strings.Repeat("0", 200), "006f" + strings.Repeat("a", 64) + " HEAD\x00x\n", "001e# service=git-upload-pack\n0000"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		server := strings.NewReader(list)
		out := bufio.NewReader(iotest.OneByteReader(server))
		line := string(firstLine(out))
		packet, _ := strconv.ParseUint(list[:min(len(list), flushLength)], 16, 16) // 0: no packet begins
		if read := len(list) - server.Len(); read > max(flushLength, min(int(packet), sha256Length)) {
			t.Errorf("%q: %d bytes are read of a packet of %d", list, read, packet)
		}
		if rest, err := io.ReadAll(out); err != nil || string(rest) != list || !strings.HasPrefix(list, line) {
			t.Errorf("%q: %q is left after %q, %v", list, rest, line, err)
		}
	})
}
