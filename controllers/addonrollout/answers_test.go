package addonrollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// A client decodes the hub's answer into the object that it sent. Objects that are equal on every
// cluster share memory: an admission webhook that changes the first work must not change the works
// of other clusters.
func TestAdmissionWebhookOnOneWorkChangesNoOtherWork(t *testing.T) {
	s := newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		work, ok := obj.(*workv1.ManifestWork)
		if !ok {
			return c.Create(ctx, obj, opts...)
		}
		stored := work.DeepCopy()
		if err := c.Create(ctx, stored, opts...); err != nil {
			return err
		}
		answer, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		return json.Unmarshal(bytes.ReplaceAll(answer, []byte("declared"), []byte("admitted")), work)
	}}, "c1", "c2", "c3")
	content := contentAt("v1")
	path := []string{"agentSpec", "workload", "manifests"}
	manifests, _, err := unstructured.NestedSlice(content.Templates[0].Spec, path...)
	if err != nil {
		t.Fatal(err)
	}
	manifests = append(manifests, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello", "namespace": "agents"},
		"data": map[string]any{"text": "declared"},
	})
	if err := unstructured.SetNestedSlice(content.Templates[0].Spec, manifests, path...); err != nil {
		t.Fatal(err)
	}
	s.reconciler.Workers = 1
	s.targetOf(content, "v1")
	s.turns(3)
	works := s.works()
	if len(works) != 3 {
		t.Fatalf("%d works, want 3", len(works))
	}
	for cluster, work := range works {
		if raw := string(work.Spec.Workload.Manifests[1].Raw); !strings.Contains(raw, "declared") {
			t.Errorf("%s was given what the hub answered about another cluster: %s", cluster, raw)
		}
	}
}

// A cluster whose namespace does not exist, such as a cluster with a dot in its name, is reported
// and retried after a pause, not once a second. The other clusters continue.
func TestClusterWithoutNamespaceIsTriedAgainInAWhile(t *testing.T) {
	s := newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if _, ok := obj.(*addonv1alpha1.ManagedClusterAddOn); ok && obj.GetNamespace() == "c.1" {
			return apierrors.NewNotFound(corev1.Resource("namespaces"), obj.GetNamespace())
		}
		return c.Create(ctx, obj, opts...)
	}}, "c.1", "c2")
	s.target("v1")
	ro := s.rollout()
	ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	s.update(ro)
	for range 6 {
		s.settleOnce()
	}
	if after := s.turn().RequeueAfter; after != retryAfter {
		t.Errorf("it is looked at again after %s, want %s", after, retryAfter)
	}
	if got := s.troubled(); !strings.Contains(got, "c.1: cannot install: ") {
		t.Errorf("it is said what is missing: %q", got)
	}
	if got := s.rollout().Status.LastHandledReconcileAt; got != "now" {
		t.Errorf("the request is done: %q", got)
	}
	if s.works()["c2"] == nil {
		t.Error("the other cluster has nothing")
	}
}

// TestFailedStatusWriteIsRetriedAfterAPause: if the failure cannot be written to the add-on's
// status either, the cluster is not retried every second.
func TestFailedStatusWriteIsRetriedAfterAPause(t *testing.T) {
	started := false
	s := newScene(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*workv1.ManifestWork); ok {
				started = true
				return errors.New("quota exceeded")
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if started {
				return errors.New("as the test asks")
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}, "c1")
	s.target("v1")
	s.turns(2)
	if got := s.turn().RequeueAfter; got != retryAfter {
		t.Errorf("tried again after %s", got)
	}
	if got := s.troubled(); !strings.Contains(got, "quota exceeded") {
		t.Errorf("the rollout says why: %q", got)
	}
}

// The watch does not show a work that lost OCM's label. If the owner is missing as well, the work
// cannot be assigned to the add-on: this is reported and retried after a pause. After the label is
// restored, the rollout continues.
func TestWorkWithoutLabelAndOwnerIsReported(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	work := s.works()["c1"]
	delete(work.Labels, addOnNameLabel)
	work.OwnerReferences = nil
	s.update(work)
	s.turns(3)
	if after := s.turn().RequeueAfter; after < retryAfter {
		t.Errorf("it is looked at again after %s, want %s", after, retryAfter)
	}
	if got := s.troubled(); !strings.Contains(got, "c1: cannot create work addon-hello-deploy-0: ") || !strings.Contains(got, addOnNameLabel) {
		t.Errorf("it is said what is wrong: %q", got)
	}
	work = s.works()["c1"]
	work.Labels[addOnNameLabel] = "hello"
	s.update(work)
	s.settle()
	if got := s.troubled(); got != "" {
		t.Errorf("all is well again, not %q", got)
	}
}

// If the rollout cannot be planned, an empty status stays empty: it gets no history of rollouts
// that never began, and is not written at each look.
func TestNothingPlannedWritesNoHistory(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	cma := &addonv1alpha1.ClusterManagementAddOn{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "hello"}, cma); err != nil {
		t.Fatal(err)
	}
	cma.Annotations = map[string]string{v1alpha1.SourceAnnotation: "other/source"}
	s.update(cma)
	s.target("v1")
	s.turns(2)
	before := s.rollout()
	if after := s.turn().RequeueAfter; after != ownerAgain {
		t.Errorf("whose the add-on is, is looked at again after %s, want %s", after, ownerAgain)
	}
	s.turns(2)
	if got := s.rollout(); got.ResourceVersion != before.ResourceVersion || len(got.Status.History) > 0 {
		t.Errorf("nothing changed, and it was written: %+v", got.Status.History)
	}
	cma.Annotations = nil
	s.update(cma)
	s.settle()
}

// Events are sent after the status is written. A failure after that write loses no event.
func TestEventsOutliveAConflict(t *testing.T) {
	writes := 0
	s := newScene(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, kind string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, ok := obj.(*v1alpha1.AddOnRollout); ok {
			if writes++; writes == 2 {
				return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("addonrollouts").GroupResource(), obj.GetName(), nil)
			}
		}
		return c.SubResource(kind).Update(ctx, obj, opts...)
	}}, "c1")
	s.target("v1")
	ro := s.rollout()
	ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"} // its end is the second write
	s.update(ro)
	s.settle()
	close(s.events.Events)
	var said []string
	for event := range s.events.Events {
		said = append(said, event)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "Started the rollout of") {
		t.Errorf("no event says that it began:\n%s", text)
	}
}
