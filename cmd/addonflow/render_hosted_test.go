package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRenderForAHostingCluster: which work goes where, hooks included.
func TestRenderForAHostingCluster(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/hello")); err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(dir, "addontemplate.yaml")
	text, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	const list = "      manifests:\n"
	hook := list + `      - apiVersion: v1
        kind: Pod
        metadata:
          name: bye
          namespace: default
          annotations:
            addon.open-cluster-management.io/addon-pre-delete: ""
            addon.open-cluster-management.io/hosted-manifest-location: hosting
        spec: {restartPolicy: Never, containers: [{name: c, image: example.com/bye:v1}]}
`
	if err := os.WriteFile(template, []byte(strings.Replace(string(text), list, hook, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{
		"":       {"name: addon-hello-deploy-0\n  namespace: eu-01", "name: addon-hello-pre-delete\n  namespace: eu-01"},
		"host-1": {"name: addon-hello-deploy-0\n  namespace: eu-01", "name: addon-hello-pre-delete-hosting-eu-01\n  namespace: host-1"},
	} {
		s := newStage(t)
		if code := s.run(t.Context(), "render", dir, "--cluster", "eu-01", "--hosting-cluster", host, "-o", "works"); code != 0 {
			t.Fatal(s.err.String())
		}
		for _, w := range want {
			if !strings.Contains(s.out.String(), w) {
				t.Errorf("hosted on %q: %q is missing in:\n%s", host, w, s.out.String())
			}
		}
	}
}
