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

// metadataOnly makes the API server answer with an object's metadata.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// NewClient is client.New, except for updates of ManifestWorks: it requests and takes over only
// the metadata of the answer. The object must carry the version it was planned from. Then its
// spec is what the hub has, up to defaults, and the caller fills in the status that it read.
// Use it as ctrl.Options.NewClient.
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

// writer updates works without the rest of the answer.
type writer struct {
	client.Client
	works rest.Interface
}

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
