package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
	"github.com/addonflow/addonflow/test/hubbin"
)

const (
	patience = hubtest.Patience
	// oneRequest is how long one request waits for a server that starts.
	oneRequest = 5 * time.Second
)

// TestHub uses one hub for all checks, because a control plane takes seconds to start.
func TestHub(t *testing.T) {
	h := hubtest.Start(t, hub.Options{
		Namespaces: []string{"fleet-system"},
		CRDYAML:    [][]byte{[]byte(extraCRD)},
		Output:     os.Stderr,
	})
	c, err := client.New(h.Config(), client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("Serves", func(t *testing.T) { serves(t, h) })
	t.Run("Kubeconfig", func(t *testing.T) { kubeconfig(t, h) })
	t.Run("Users", func(t *testing.T) { users(t, h) })
	t.Run("Collects", func(t *testing.T) { collects(t, c) })
	t.Run("CollectsForeground", func(t *testing.T) { collectsForeground(t, c) })
	t.Run("FinishesNamespaces", func(t *testing.T) { finishesNamespaces(t, c) })
	t.Run("HistoryIsCompleteAcrossCrashes", func(t *testing.T) { historyAcrossCrashes(t, h, c) })
}

// historyAcrossCrashes runs last: it kills both servers.
func historyAcrossCrashes(t *testing.T, h *hub.Hub, c client.Client) {
	t.Helper()
	const key = "/registry/cluster.open-cluster-management.io/managedclusters/crash"
	var seen []string
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	read := make(chan error, 1)
	go func() {
		revision := int64(0)
		read <- h.History(ctx, 1, func(change hub.Change) error {
			if change.Revision < revision {
				return fmt.Errorf("revision %d comes after %d", change.Revision, revision)
			}
			revision = change.Revision
			if change.Key == key {
				seen = append(seen, map[bool]string{true: "deleted", false: "stored"}[change.Value == nil])
			}
			if len(seen) == 4 {
				cancel()
			}
			return nil
		})
	}()
	for _, server := range []hub.Server{hub.APIServer, hub.Etcd} {
		if err := h.Crash(ctx, server, 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for _, write := range []func(context.Context, client.Object) error{
			func(ctx context.Context, o client.Object) error { return c.Create(ctx, o) },
			func(ctx context.Context, o client.Object) error { return c.Delete(ctx, o) },
		} {
			o := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "crash"}}
			var last error
			err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
				ctx, cancel := context.WithTimeout(ctx, oneRequest)
				defer cancel()
				last = write(ctx, o)
				return last == nil || apierrors.IsAlreadyExists(last) || apierrors.IsNotFound(last), nil
			})
			if err != nil {
				t.Fatalf("%s does not answer again: %v: %v", server, err, last)
			}
		}
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != "stored deleted stored deleted" {
		t.Errorf("the history has %q", got)
	}
}

const extraCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, listKind: NoteList, plural: notes, singular: note}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
`

func serves(t *testing.T, h *hub.Hub) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := d.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.36.") {
		t.Errorf("the server says it is %s", version.GitVersion)
	}
	for gv, want := range map[string][]string{
		"addon.open-cluster-management.io/v1alpha1":  {"clustermanagementaddons", "managedclusteraddons", "addontemplates", "addondeploymentconfigs"},
		"cluster.open-cluster-management.io/v1":      {"managedclusters"},
		"cluster.open-cluster-management.io/v1beta1": {"placements", "placementdecisions"},
		"cluster.open-cluster-management.io/v1beta2": {"managedclustersetbindings"},
		"work.open-cluster-management.io/v1":         {"manifestworks"},
		"example.com/v1":                             {"notes"},
	} {
		list, err := d.ServerResourcesForGroupVersion(gv)
		if err != nil {
			t.Errorf("%s: %v", gv, err)
			continue
		}
		for _, name := range want {
			if !servesResource(list, name) {
				t.Errorf("%s does not serve %s", gv, name)
			}
		}
	}
}

func servesResource(list *metav1.APIResourceList, name string) bool {
	for _, r := range list.APIResources {
		if r.Name == name {
			return true
		}
	}
	return false
}

func kubeconfig(t *testing.T, h *hub.Hub) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "below", "kubeconfig")
	if err := h.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "fleet-system"}, &corev1.Namespace{}); err != nil {
		t.Errorf("a child process could not read the namespace it was given: %v", err)
	}
}

func users(t *testing.T, h *hub.Hub) {
	t.Helper()
	cfg, _, err := h.User("nobody-in-particular")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &workv1.ManifestWorkList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without bindings may list works: %v", err)
	}
}

// collects checks garbage collection for the two kinds of owner that OCM uses: a cluster-scoped
// owner of a namespaced object, and an owner in the same namespace as the object.
func collects(t *testing.T, c client.Client) {
	t.Helper()
	ctx := t.Context()
	namespace := newNamespace(t, c, "collects")
	cma := newAddOn("collects")
	create(t, c, cma)
	mca := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "collects", Namespace: namespace}}
	mca.OwnerReferences = []metav1.OwnerReference{ownedBy(cma, addonv1alpha1.GroupVersion.String(), "ClusterManagementAddOn")}
	create(t, c, mca)
	work := newWork("collects", namespace)
	work.OwnerReferences = []metav1.OwnerReference{ownedBy(mca, addonv1alpha1.GroupVersion.String(), "ManagedClusterAddOn")}
	create(t, c, work)
	stranger := newWork("stranger", namespace)
	create(t, c, stranger)
	second := newWork("second-owner", namespace)
	second.OwnerReferences = []metav1.OwnerReference{
		work.OwnerReferences[0], ownedBy(stranger, workv1.GroupVersion.String(), "ManifestWork"),
	}
	create(t, c, second)

	if err := c.Delete(ctx, cma); err != nil {
		t.Fatal(err)
	}
	waitGone(t, c, mca)
	waitGone(t, c, work)
	for _, kept := range []client.Object{stranger, second} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
			t.Errorf("%s has an owner left or never had one: %v", kept.GetName(), err)
		}
	}

	create(t, c, newAddOn("collects")) // the same name, another object
	orphan := newWork("orphan", namespace)
	orphan.OwnerReferences = []metav1.OwnerReference{ownedBy(cma, addonv1alpha1.GroupVersion.String(), "ClusterManagementAddOn")}
	create(t, c, orphan)
	waitGone(t, c, orphan)
}

func collectsForeground(t *testing.T, c client.Client) {
	t.Helper()
	namespace := newNamespace(t, c, "foreground")
	owner := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "foreground"}}
	create(t, c, owner)
	work := newWork("foreground", namespace)
	work.OwnerReferences = []metav1.OwnerReference{ownedBy(owner, clusterv1.GroupVersion.String(), "ManagedCluster")}
	create(t, c, work)
	if err := c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	waitGone(t, c, owner)
	waitGone(t, c, work)
}

func finishesNamespaces(t *testing.T, c client.Client) {
	t.Helper()
	name := newNamespace(t, c, "finished")
	create(t, c, newWork("left", name))
	create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "left", Namespace: name}})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	waitGone(t, c, namespace)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "left"}, &workv1.ManifestWork{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace went and its work stayed: %v", err)
	}
}

func newNamespace(t *testing.T, c client.Client, name string) string {
	t.Helper()
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

func newAddOn(name string) *addonv1alpha1.ClusterManagementAddOn {
	addOn := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	addOn.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	return addOn
}

func newWork(name, namespace string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
}

func ownedBy(owner client.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func waitGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Fatalf("%T %s is still there: %v", object, object.GetName(), err)
	}
}

// TestCRDsAreTheModules compares the embedded copies with the module's files,
// so that a new version of the module cannot leave an old hub behind.
func TestCRDsAreTheModules(t *testing.T) {
	root, err := hubbin.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api")
	cmd.Dir = root
	module, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot locate the API module: %v", err)
	}
	for _, release := range []struct {
		copies string
		count  int
		from   []string
	}{
		{"crds", 9, []string{"addon/v1alpha1", "cluster/v1", "cluster/v1beta1", "cluster/v1beta2", "work/v1"}},
		{"crds/v1beta1", 3, []string{"addon/v1beta1"}},
	} {
		copies, err := filepath.Glob(filepath.Join(root, "test", "hub", release.copies, "*.crd.yaml"))
		if err != nil || len(copies) != release.count {
			t.Fatalf("%d copies in %s, want %d: %v", len(copies), release.copies, release.count, err)
		}
		for _, path := range copies {
			if err := sameAsUpstream(path, strings.TrimSpace(string(module)), release.from); err != nil {
				t.Error(err)
			}
		}
	}
}

// sameAsUpstream looks in the directories of the module that a hub's CRDs are from.
func sameAsUpstream(path, module string, from []string) error {
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, dir := range from {
		want, err := os.ReadFile(filepath.Join(module, dir, filepath.Base(path)))
		if err != nil {
			continue
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s differs from the module's; copy it again", filepath.Base(path))
		}
		return nil
	}
	return fmt.Errorf("%s is no longer in the module", filepath.Base(path))
}
