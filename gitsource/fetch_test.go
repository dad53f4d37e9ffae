package gitsource_test

import (
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/test/gitserver"
)

func TestSmoke(t *testing.T) {
	server, err := gitserver.Start(gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	repo, err := server.Create("addons")
	if err != nil {
		t.Fatal(err)
	}
	sha, err := repo.Commit("Add hello", map[string]string{
		"addons/hello/kustomization.yaml": "resources: [cm.yaml, ../base]\nnamePrefix: x-\n",
		"addons/hello/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\ndata:\n  k: v\n",
		"addons/base/kustomization.yaml":  "resources: [cm.yaml]\n",
		"addons/base/cm.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  k: 1.10\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := gitsource.Open(gitsource.Options{URL: repo.URL(), Reference: v1alpha1.GitReference{Branch: "main"}})
	if err != nil {
		t.Fatal(err)
	}
	rev, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rev.Commit != sha {
		t.Fatal(rev, sha)
	}
	tree, err := r.Fetch(t.Context(), rev)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(tree.Revision(), tree.Subject(), tree.Author())
	objects, problems := tree.Build(t.Context(), gitsource.BuildOptions{Path: "addons/hello"})
	t.Log(problems)
	for _, o := range objects {
		p, l := o.Position("data.k")
		t.Log(o.Object, p, l)
	}
	objects, problems = tree.Build(t.Context(), gitsource.BuildOptions{Path: "./addons"})
	t.Log(problems)
	t.Log(len(objects))
}
