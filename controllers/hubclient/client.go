package hubclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// metadataOnly asks the API server to answer with an object's metadata.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// NewClient is client.New, but for updates of ManifestWorks: of the answer only the
// metadata is asked for and taken over. What is sent must carry the version it was planned
// from; then its spec is what the hub has, up to defaults, and its status is the caller's
// to fill in from what it read. It is what ctrl.Options.NewClient asks for.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	whole, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork"}
	works, err := apiutil.RESTClientForGVK(kind, false, false, config, serializer.NewCodecFactory(whole.Scheme()), options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("cannot write works: %w", err)
	}
	return &writer{Client: whole, works: works}, nil
}

// writer updates works by itself.
type writer struct {
	client.Client
	works rest.Interface
}

// Update updates an object.
func (w *writer) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	work, ok := obj.(*workv1.ManifestWork)
	if !ok {
		return w.Client.Update(ctx, obj, opts...)
	}
	options := &client.UpdateOptions{}
	options.ApplyOptions(opts)
	var answer metav1.PartialObjectMetadata
	err := w.works.Put().Namespace(work.Namespace).Resource("manifestworks").Name(work.Name).
		SetHeader("Accept", metadataOnly).
		VersionedParams(options.AsUpdateOptions(), metav1.ParameterCodec).
		Body(work).Do(ctx).Into(&answer)
	if err == nil {
		work.ObjectMeta = answer.ObjectMeta
	}
	return err
}
