package gitsource

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// exchange has the state of one session's exchanges with the server, for every transport: the limits of answers, why
// the session ended an exchange, and how the last answer ended.
type exchange struct {
	packBytes int64
	// large is the claim to a place for a large answer.
	large *Claim

	mu    sync.Mutex
	cause error // why this session ended an exchange
	end   error // why the connection of an SSH server ended
	// answer is the body that was read last.
	answer *bounded
}

// answer names a kind of answer of the server, for texts.
type answer string

const (
	listAnswer answer = "list of references"
	packAnswer answer = "pack"
)

// bound limits an answer and stores it as the last one.
func (e *exchange) bound(start io.Reader, end io.Closer, what answer) *bounded {
	limit := int64(advertisedBytes)
	if what == packAnswer {
		limit = e.packBytes + packOverhead
	}
	body := &bounded{Reader: start, Closer: end, remaining: limit, claim: e.large, exceeded: func() error {
		return e.stop(fmt.Errorf("%w: the server's %s is larger than %d bytes", ErrLimitExceeded, what, limit))
	}}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = body
	return body
}

// sha256Length is how many bytes of a list of references are checked before it is read.
const sha256Length = 103

// sha256Line is the first reference of a repository whose hashes have 64 digits.
var sha256Line = regexp.MustCompile(`^(?:001e# service=git-upload-pack\n0000)?[0-9a-f]{4}[0-9a-f]{64} `)

// checkFormat refuses a list of references that go-git would report as damaged.
func (e *exchange) checkFormat(line []byte) error {
	if sha256Line.Match(line) {
		return e.stop(fmt.Errorf("%w: the repository uses SHA-256, only SHA-1 is read", ErrObjectFormat))
	}
	return nil
}

// errorPacket begins, after its length, an answer that is an error message.
const errorPacket = "ERR "

// answered returns how many bytes of the last answer were read, and how it ended.
func (e *exchange) answered() (read int64, ended ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch a := e.answer; {
	case a == nil:
		return 0, whole
	case strings.HasSuffix(string(a.head), errorPacket):
		return a.read, refusal
	case a.broken || a.read > 0 && string(a.tail) != "0000":
		return a.read, early
	case a.read == 0:
		return 0, refusal
	default:
		return a.read, whole
	}
}

// ending is how an answer ended.
type ending int

const (
	// whole: an answer with a pack ends in a flush.
	whole ending = iota
	// refusal: an error message, or an empty answer.
	refusal
	// early: any other end.
	early
)

// stop stores why an exchange ended, because go-git keeps only the text of some errors.
func (e *exchange) stop(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cause = err
	return err
}

func (e *exchange) stopped() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// lose stores how the connection ended.
func (e *exchange) lose(end error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end = end
}

// lost returns how the connection ended; nil: it is open.
func (e *exchange) lost() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.end
}

type truncated struct {
	io.Reader
	io.Closer
}

// bounded fails with exceeded after more than remaining bytes were read.
type bounded struct {
	io.Reader
	io.Closer
	remaining, read int64
	claim           *Claim
	exceeded        func() error
	// head is the first packet's length and four bytes of it; tail is the last four bytes. broken: an error ended the
	// answer.
	head, tail []byte
	broken     bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.remaining < 0 {
		return 0, b.exceeded()
	}
	n, err := b.claim.Read(b.read, func() (int, error) { return b.Reader.Read(p[:min(int64(len(p)), b.remaining+1)]) })
	b.remaining -= int64(n)
	b.read += int64(n)
	b.head = append(b.head, p[:min(n, 2*flushLength-len(b.head))]...)
	b.tail = append(b.tail, p[max(0, n-flushLength):n]...)
	b.tail = b.tail[max(0, len(b.tail)-flushLength):]
	b.broken = b.broken || err != nil && !errors.Is(err, io.EOF)
	if b.remaining < 0 {
		return n, b.exceeded()
	}
	return n, err
}

// flushLength is the length of the packet that ends a list in Git's protocol.
const flushLength = 4
