package chromium

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program is the name of the browser in Debian.
const program = "chromium"

// Browser is a running Chromium.
type Browser struct {
	tb   testing.TB
	send io.Writer

	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	loaded  map[string]chan struct{} // by session: its page is complete
	ended   error
}

// answer is a message of the browser: to a call, or an event, which has no ID.
type answer struct {
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Session string          `json:"sessionId"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start runs Chromium until the test ends. The test fails if it is not installed.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		tb.Fatal("chromium is not installed; on Debian: apt-get install chromium")
	}
	toBrowser, send, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	receive, fromBrowser, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	home := tb.TempDir()
	cmd := exec.Command(path, "--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", //nolint:noctx // it ends with the test
		"--disable-background-networking", "--disable-component-update", "--no-first-run", "--hide-scrollbars",
		"--force-device-scale-factor=1", "--lang=en-US", "--user-data-dir="+filepath.Join(home, "profile"))
	if os.Geteuid() == 0 {
		cmd.Args = append(cmd.Args, "--no-sandbox") // Chromium refuses to start as root otherwise
	}
	cmd.Env = append(os.Environ(), "HOME="+home, "TZ=UTC")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // descriptors 3 and 4, as the protocol wants
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_, _ = toBrowser.Close(), fromBrowser.Close() // the browser has them
	b := &Browser{tb: tb, send: send, waiting: map[int]chan answer{}, loaded: map[string]chan struct{}{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(receive)
	}()
	tb.Cleanup(func() {
		_ = b.call(context.WithoutCancel(tb.Context()), "", "Browser.close", nil, nil) // it may be gone
		_ = cmd.Wait()
		<-read
		_, _ = send.Close(), receive.Close()
	})
	return b
}

// read delivers answers until the browser ends.
func (b *Browser) read(from io.Reader) {
	messages := bufio.NewReader(from)
	for {
		text, err := messages.ReadBytes(0)
		if err != nil {
			b.end(fmt.Errorf("chromium ended: %w", err))
			return
		}
		var a answer
		if err := json.Unmarshal(text[:len(text)-1], &a); err != nil {
			b.end(fmt.Errorf("chromium sent no JSON: %w", err))
			return
		}
		b.deliver(a)
	}
}

func (b *Browser) deliver(a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Method == "Page.loadEventFired" {
		select {
		case b.loaded[a.Session] <- struct{}{}:
		default: // nothing waits for it
		}
		return
	}
	if waits := b.waiting[a.ID]; waits != nil {
		delete(b.waiting, a.ID)
		waits <- a
	}
}

// end fails every call that waits, and those to come.
func (b *Browser) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for id, waits := range b.waiting {
		delete(b.waiting, id)
		close(waits)
	}
}

// call sends a command and decodes its result into out, unless out is nil.
func (b *Browser) call(ctx context.Context, session, method string, params, out any) error {
	waits := make(chan answer, 1)
	b.mu.Lock()
	if b.ended != nil {
		defer b.mu.Unlock()
		return b.ended
	}
	b.next++
	b.waiting[b.next] = waits
	message := map[string]any{"id": b.next, "method": method}
	if session != "" {
		message["sessionId"] = session
	}
	if params != nil {
		message["params"] = params
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.send.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("cannot send %s to chromium: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case a, open := <-waits:
		switch {
		case !open:
			return errors.New(method + ": chromium ended")
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case out == nil:
			return nil
		}
		return json.Unmarshal(a.Result, out)
	}
}
