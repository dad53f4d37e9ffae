package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeepStartsAServerThatEndedByItself: a kube-apiserver that starts while etcd is slow gives up. Only a kill ends it.
func TestKeepStartsAServerThatEndedByItself(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	server := filepath.Join(t.TempDir(), "server")
	script := "#!/bin/sh\necho started >>" + quote(starts) + "\n[ $(wc -l <" + quote(starts) + ") = 2 ] && kill -9 $$\nexit 1\n"
	if err := os.WriteFile(server, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	h := &Hub{scripts: t.TempDir()}
	if err := h.keep(t.Context(), []string{server}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "started"); n != 2 {
		t.Errorf("started %d times", n)
	}
}
