package addonsource

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
	"github.com/addonflow/addonflow/test/registry"
)

// TestRegistriesFetch_IsBoundedPerCommit: as what a commit itself holds is.
func TestRegistriesFetch_IsBoundedPerCommit(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	var files []gitsource.File
	for i := range 5 {
		chart := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: large-%d\nversion: 1.0.0\n", i)}
		for part := range 7 {
			chart[fmt.Sprintf("files/%d.bin", part)] = strings.Repeat("x", 1<<20)
		}
		text := fmt.Sprintf("apiVersion: addonflow.io/v1alpha1\nkind: AddOnPackage\nmetadata: {name: large-%d}\nspec:\n  addOn: large\n  helm: {oci: '%s/charts/large-%[1]d@%[3]s'}\n",
			i, server.Host, server.PushChart(t, "charts", chart))
		files = append(files, gitsource.File{Path: fmt.Sprintf("%d.yaml", i), Size: int64(len(text)), Content: []byte(text)})
	}
	tree := gitsource.TreeFromFiles(gitsource.Revision{}, files, nil)
	objects, unread := tree.Build(t.Context(), gitsource.BuildOptions{})
	tree.Close()
	opened, err := oci.Open(oci.Options{Host: server.Host, Insecure: true, Access: oci.Access{AllowLoopback: true, AllowHTTP: true}, Room: sharedRoom{gitsource.NewRoom()}})
	if err != nil || len(unread) > 0 {
		t.Fatal(err, unread)
	}
	defer opened.Close()
	problems, err := registries{server.Host: opened}.fetch(t.Context(), objects, charts{})
	const want = "4.yaml:6: AddOnPackage/large-4: spec.helm.oci: the charts of the commit have more than 33554432 bytes; split the tree into several AddOnSources"
	if err != nil || len(problems) != 1 || problems[0].String() != want || problems[0].Reason != gitsource.LimitExceeded {
		t.Errorf("got %v, %v; want %s", problems, err, want)
	}
}

// TestRegistriesFetch_GivesKnownChartsAfterAnAbsentOne, and asks the registry for no other.
func TestRegistriesFetch_GivesKnownChartsAfterAnAbsentOne(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	digests := []string{"sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64), server.PushChart(t, "charts", map[string]string{"Chart.yaml": "apiVersion: v2\nname: hello\nversion: 1.0.0\n"})}
	var files []gitsource.File
	for i, digest := range digests {
		text := fmt.Sprintf("apiVersion: addonflow.io/v1alpha1\nkind: AddOnPackage\nmetadata: {name: hello-%d}\nspec:\n  addOn: hello\n  helm: {oci: '%s/charts/hello@%s'}\n", i, server.Host, digest)
		files = append(files, gitsource.File{Path: fmt.Sprintf("%d.yaml", i), Size: int64(len(text)), Content: []byte(text)})
	}
	tree := gitsource.TreeFromFiles(gitsource.Revision{}, files, nil)
	objects, unread := tree.Build(t.Context(), gitsource.BuildOptions{})
	tree.Close()
	opened, err := oci.Open(oci.Options{Host: server.Host, Insecure: true, Access: oci.Access{AllowLoopback: true, AllowHTTP: true}, Room: sharedRoom{gitsource.NewRoom()}, Timeout: time.Minute})
	if err != nil || len(unread) > 0 {
		t.Fatal(err, unread)
	}
	defer opened.Close()
	problems, err := registries{server.Host: opened}.fetch(t.Context(), objects, charts{server.Host + "/charts/hello@" + digests[1]: {"Chart.yaml": nil}})
	if !errors.Is(err, oci.ErrNotFound) || len(problems) > 0 {
		t.Errorf("got %v, %v", problems, err)
	}
	for i, o := range objects {
		if _, given := o.Folder(gitsource.OCIField); (given != nil) != (i == 1) {
			t.Errorf("chart %d: %v", i, given)
		}
	}
}
