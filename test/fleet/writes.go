package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

func workResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Resource: "manifestworks"}
}

// writeStatus patches the whole status in one request. The UID keeps the patch off a work that
// was deleted and created again. It requests only metadata as the answer, because a thousand
// agents would spend most of their time on decoding the rest.
func (f *Fleet) writeStatus(ctx context.Context, work *workv1.ManifestWork, status *workv1.ManifestWorkStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": work.UID},
		"status":   status,
	})
	if err != nil {
		return err
	}
	return f.patch(ctx, work, types.MergePatchType, patch, "status")
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// addFinalizer is the agent's first write to a work. A JSON patch leaves other finalizers
// alone, however old the agent's view is.
func (f *Fleet) addFinalizer(ctx context.Context, work *workv1.ManifestWork) error {
	add := operation{Op: "add", Path: "/metadata/finalizers/-", Value: workv1.ManifestWorkFinalizer}
	if len(work.Finalizers) == 0 {
		add = operation{Op: "add", Path: "/metadata/finalizers", Value: []string{workv1.ManifestWorkFinalizer}}
	}
	return f.patchOperations(ctx, work, add)
}

// removeFinalizer tests first, because indexes shift. A failed test is retried after the next
// event.
func (f *Fleet) removeFinalizer(ctx context.Context, work *workv1.ManifestWork) error {
	index := slices.Index(work.Finalizers, workv1.ManifestWorkFinalizer)
	if index < 0 {
		return nil
	}
	path := "/metadata/finalizers/" + strconv.Itoa(index)
	return f.patchOperations(ctx, work,
		operation{Op: "test", Path: path, Value: workv1.ManifestWorkFinalizer},
		operation{Op: "remove", Path: path},
	)
}

func (f *Fleet) patchOperations(ctx context.Context, work *workv1.ManifestWork, operations ...operation) error {
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	return f.patch(ctx, work, types.JSONPatchType, patch)
}

func (f *Fleet) patch(ctx context.Context, work *workv1.ManifestWork, kind types.PatchType, patch []byte, subresource ...string) error {
	_, err := f.metadata.Resource(workResource()).Namespace(work.Namespace).
		Patch(ctx, work.Name, kind, patch, metav1.PatchOptions{FieldManager: "work-agent"}, subresource...)
	return err
}
