package gitsource

import (
	"strings"
	"testing"
)

// TestTreeFromFiles_IsBuiltAsACommit: the same objects and the same refusals, at the same
// positions.
func TestTreeFromFiles_IsBuiltAsACommit(t *testing.T) {
	file := func(name, text string) File {
		return File{Path: name, Size: int64(len(text)), Content: []byte(text)}
	}
	closed := 0
	revision := Revision{Ref: "latest", Commit: strings.Repeat("ab", 32), Digest: strings.Repeat("ab", 32)}
	tree := TreeFromFiles(revision, []File{
		file("b/kustomization.yaml", "resources: [../a/cm.yaml]\nnamePrefix: my-\n"), file("a/cm.yaml", configMap("cm", "one")), file("a/.hidden.yaml", "x: ["),
	}, func() { closed++ })
	objects, problems := tree.Build(t.Context(), BuildOptions{Path: "b"})
	if len(problems) > 0 || len(objects) != 1 || objects[0].GetName() != "my-cm" {
		t.Errorf("got %v, %v", objects, problems)
	}
	if tree.Close(); closed != 1 || tree.Revision() != revision || revision.String() != "latest@sha256:"+revision.Commit {
		t.Errorf("closed %d times; %s", closed, tree.Revision())
	}

	tree = TreeFromFiles(revision, []File{
		{Path: "link.yaml", Link: true}, {Path: "pipe.yaml", Special: true}, {Path: "large.yaml", Size: 1<<20 + 1}, file("bad.yaml", "x: ["),
	}, nil)
	objects, problems = tree.Build(t.Context(), BuildOptions{})
	tree.Close()
	for _, want := range []string{
		"link.yaml: is a symbolic link; only regular files are read", "pipe.yaml: is not a regular file; only regular files are read",
		"large.yaml: the file has 1048577 bytes, at most 1048576 are read", "bad.yaml:1: ",
	} {
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("got %v, want %s", problems, want)
		}
	}
	if _, problems := tree.Build(t.Context(), BuildOptions{Path: "none"}); len(problems) != 1 || problems[0].Reason != PathNotFound || len(objects) > 0 {
		t.Errorf("got %v, %d objects", problems, len(objects))
	}
}
