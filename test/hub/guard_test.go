package hub

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// startGuarded runs a script under a guard. The script reports when it is up and then sleeps. It holds
// the returned pipe open, so that the pipe ends with the script.
func startGuarded(t *testing.T) (*guard, *exec.Cmd, io.Reader) {
	t.Helper()
	server := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(server, []byte("#!/bin/sh\necho up\nexec sleep 3600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(t.TempDir(), server)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), g.path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	return g, cmd, out
}

// TestGuardEndsTheServer closes the pipe without a line, as when the process is killed.
func TestGuardEndsTheServer(t *testing.T) {
	g, server, out := startGuarded(t)
	if err := g.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil {
		t.Error("the server ended by itself")
	}
}

func TestDismissedGuardKeepsTheServerRunning(t *testing.T) {
	g, server, out := startGuarded(t)
	if err := g.dismiss(); err != nil {
		t.Fatal(err)
	}
	// The guard sends a termination signal; the next line is the only kill.
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the server ended with %v", err)
	}
}
