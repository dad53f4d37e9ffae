package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// guardScript starts a server and, beside it, a reader that ends the server when the process
// that started it is gone. Test runs get killed (by a timeout or a canceled CI job), and each
// would otherwise leave 300 MB of servers behind. The reader waits on a named pipe that this
// process holds open: the kernel closes it however the process ends. There are two
// alternatives, which do not work: a parent-death signal follows threads, which Go programs may
// lose, and a process id can outlive its process as a zombie.
//
// envtest also runs a server with --help, to learn its flags.
const guardScript = `#!/bin/sh
[ "$1" = --help ] && exec %[1]s "$@"
exec 3<%[2]s
( read -r _ <&3 || kill $$ ) </dev/null >/dev/null 2>&1 &
exec %[1]s "$@" 3<&-
`

// guard keeps one server from outliving this process.
type guard struct {
	// path is the script to start instead of the server.
	path string
	pipe *os.File
}

func newGuard(dir, binary string) (*guard, error) {
	g := &guard{path: filepath.Join(dir, filepath.Base(binary))}
	fifo := g.path + ".fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return nil, fmt.Errorf("cannot guard %s: %w", binary, err)
	}
	script := fmt.Appendf(nil, guardScript, quote(binary), quote(fifo))
	if err := os.WriteFile(g.path, script, 0o700); err != nil {
		return nil, fmt.Errorf("cannot guard %s: %w", binary, err)
	}
	// Both ways, because opening a pipe for writing alone waits for a reader.
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot guard %s: %w", binary, err)
	}
	g.pipe = pipe
	return g, nil
}

// dismiss ends the guard after the server was stopped, with a line. If the pipe ended without a
// line, the guard would kill the process that has the server's id by then.
func (g *guard) dismiss() error {
	_, err := g.pipe.WriteString("dismissed\n")
	return errors.Join(err, g.pipe.Close())
}

// quote quotes a path for a POSIX shell.
func quote(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
