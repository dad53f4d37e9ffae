//go:build ignore

// Command record makes the files of this directory: what an operator of commit 9bf8c7c
// leaves on a hub of 6 clusters when it ends in the middle of a canary. It runs that
// commit's operator, hub and simulated clusters, in a checkout of it:
//
//	git worktree add /tmp/before 9bf8c7c
//	mkdir /tmp/before/test/record
//	cp record.go /tmp/before/test/record/main.go && sed -i 1d /tmp/before/test/record/main.go
//	cd /tmp/before && go build -o bin/addonflow ./cmd/addonflow && go run ./test/record DIR
//
// DIR gets hub.yaml (every object of the add-on as the API server returned it, without its
// resourceVersion), crds.yaml (AddonFlow's CRDs of that commit) and fleet.bundle (the
// repository).
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/sample"
)

const policy = `  stages:
  - name: canary
    placement: {namespace: default, name: canary}
    maxConcurrency: 1
    minSuccessTime: 3s
    progressDeadline: 30m
  - name: everyone
    placement: {namespace: default, name: all}
    maxConcurrency: 2
    progressDeadline: 30m
`

func main() {
	if err := record(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func record(ctx context.Context, into string) (err error) {
	names := []string{"c1", "c2", "c3", "c4", "c5", "c6"}
	options := demo.WorldOptions{
		Binary: "bin/addonflow", Clusters: names, Canaries: names[:3], Output: os.Stderr,
		Fleet: fleet.Options{Latency: 50 * time.Millisecond},
	}
	w, err := demo.StartWorld(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	if err := w.Client.Create(ctx, w.ForgeSecret()); err != nil {
		return err
	}
	source, err := w.Source()
	if err != nil {
		return err
	}
	source.Spec.Path, source.Spec.Prune = "addons", false
	v1, err := commit(w, "v1")
	if err != nil {
		return err
	}
	if err := w.Client.Create(ctx, source); err != nil {
		return err
	}
	if err := w.StartOperator(options); err != nil {
		return err
	}
	if err := until("v1 succeeded", func() bool { return succeeded(ctx, w, v1) }); err != nil {
		return err
	}

	// v2: the first canary is verified and soaked, the second is written and not verified.
	w.Fleet.Hold("c2")
	if _, err := commit(w, "v2"); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339))
	if err := w.Client.Patch(ctx, source, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return err
	}
	if err := until("c2 is in flight", func() bool { return image(ctx, w, "c1", "v2") && image(ctx, w, "c2", "v2") }); err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // the agent's report, and what the operator makes of it
	w.Operator.Kill()
	return dump(ctx, w, into)
}

func commit(w *demo.World, tag string) (string, error) {
	return w.Repo.Commit(tag, map[string]string{
		"addons/template.yaml": sample.Template("hello", tag),
		"addons/addon.yaml":    sample.AddOn("hello", "all"),
		"addons/rollout.yaml":  sample.Rollout("hello", policy),
	})
}

func until(what string, done func() bool) error {
	for range 600 {
		if done() {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("waited in vain until %s", what)
}

func succeeded(ctx context.Context, w *demo.World, sha string) bool {
	var ro v1alpha1.AddOnRollout
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: "hello"}, &ro)
	return err == nil && ro.Status.Phase == v1alpha1.PhaseSucceeded && strings.HasSuffix(ro.Status.Target.Commit, sha)
}

func image(ctx context.Context, w *demo.World, cluster, tag string) bool {
	var works workv1.ManifestWorkList
	if err := w.Client.List(ctx, &works, client.InNamespace(cluster)); err != nil || len(works.Items) == 0 {
		return false
	}
	return bytes.Contains(works.Items[0].Spec.Workload.Manifests[0].Raw, []byte("example.com/hello:"+tag))
}

func dump(ctx context.Context, w *demo.World, into string) error {
	var objects []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "ClusterManagementAddOn"},
		{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "AddOnTemplate"},
		{Group: "addonflow.io", Version: "v1alpha1", Kind: "AddOnSource"},
		{Group: "addonflow.io", Version: "v1alpha1", Kind: "AddOnRevision"},
		{Group: "addonflow.io", Version: "v1alpha1", Kind: "AddOnRollout"},
		{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedClusterAddOn"},
		{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.Client.List(ctx, list); err != nil {
			return err
		}
		for _, o := range list.Items {
			o.SetResourceVersion("")
			unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return err
			}
			objects = append(objects, string(text))
		}
	}
	// The addresses of this machine's servers.
	text := strings.Join(objects, "---\n")
	text = strings.ReplaceAll(text, w.Git.URL(), "http://git.example.com")
	text = strings.ReplaceAll(text, strings.TrimSuffix(w.Forge.Address(demo.ForgeRepository), demo.ForgeRepository), "http://forge.example.com/")
	if err := os.WriteFile(filepath.Join(into, "hub.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	crds, err := manifests.CRDFiles()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(into, "crds.yaml"), bytes.Join(crds, []byte("\n---\n")), 0o644); err != nil {
		return err
	}
	into, err = filepath.Abs(into)
	if err != nil {
		return err
	}
	return exec.Command("git", "-C", w.Repo.Dir(), "bundle", "create", filepath.Join(into, "fleet.bundle"), "main").Run()
}
