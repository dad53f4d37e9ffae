package hubclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// lineBuffer is how much of a watch is read at once.
const lineBuffer = 32 << 10

// begin is how the API server begins an event. It writes each on a line of its own:
// compact JSON has no line break in it, and what a JSON string says has it escaped.
const begin = `{"type":"`

// framer cuts a watch into events, where client-go's reads every byte to find the
// brace that ends one. Writing it leaves to client-go.
type framer struct{ runtime.Framer }

// newFramer returns a framer that falls back to client-go's own.
func newFramer() framer { return framer{json.Framer} }

// NewFrameReader returns a reader of one event per frame, which may take several reads:
// io.ErrShortBuffer says that the frame goes on. A stream that ends within an event is
// io.ErrUnexpectedEOF.
func (f framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &lines{Closer: r, in: bufio.NewReaderSize(r, lineBuffer), fallback: f.Framer}
}

// lines reads a line per frame, for as long as each begins as an event does. From the
// first that does not, whatever it is, the stream is cut the way client-go cuts it.
type lines struct {
	io.Closer
	in       *bufio.Reader
	fallback runtime.Framer
	other    io.Reader
	// within says that a frame was begun and not ended; rest is what was read of it and
	// not handed out, valid until the next read.
	within bool
	ended  bool
	rest   []byte
}

// Read hands out the next bytes of the frame.
func (l *lines) Read(out []byte) (int, error) {
	if l.other == nil && !l.within {
		if err := l.enter(); err != nil {
			return 0, err
		}
	}
	if l.other != nil {
		return l.other.Read(out)
	}
	n := 0
	for {
		taken := copy(out[n:], l.rest)
		n, l.rest = n+taken, l.rest[taken:]
		switch {
		case len(l.rest) > 0:
			return n, io.ErrShortBuffer
		case l.ended:
			l.within = false
			return n, nil
		}
		if err := l.more(); err != nil {
			return 0, err
		}
	}
}

// enter begins a frame, or finds that this is no stream of lines.
func (l *lines) enter() error {
	head, err := l.in.Peek(len(begin))
	if len(head) == 0 {
		return err
	}
	if !bytes.Equal(head, []byte(begin)) {
		l.other = l.fallback.NewFrameReader(struct {
			io.Reader
			io.Closer
		}{l.in, l.Closer})
		return nil
	}
	l.within, l.ended = true, false
	return nil
}

// more reads more of the frame.
func (l *lines) more() error {
	line, err := l.in.ReadSlice('\n')
	switch {
	case err == nil:
		l.ended = true
	case errors.Is(err, bufio.ErrBufferFull):
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	default:
		return err
	}
	l.rest = line
	return nil
}
