package hubclient

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewCache is cache.New with the watches of ManifestWorks and ManagedClusterAddOns decoded
// here. It is what ctrl.Options.NewCache asks for; opts come complete from there, with
// Scheme and HTTPClient.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	newInformer := opts.NewInformer
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}
	ours := map[reflect.Type]*watches{}
	for _, k := range kinds() {
		w, err := newWatches(config, opts, k)
		if err != nil {
			return nil, err
		}
		ours[reflect.TypeOf(k.object)] = w
	}
	opts.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if w := ours[reflect.TypeOf(object)]; w != nil {
			lw = w.over(lw)
		}
		return newInformer(lw, object, resync, indexers)
	}
	return cache.New(config, opts)
}

// watches opens watches of one kind, with the selection that the cache has for it.
type watches struct {
	client   rest.Interface
	resource string
	selector labels.Selector
	codec    runtime.ParameterCodec
}

// newWatches returns the watches of a kind; nil where the cache is to hold a part of its
// objects that is chosen by more than a label of theirs, which is then left to it.
func newWatches(config *rest.Config, opts cache.Options, k kind) (*watches, error) {
	var selection cache.ByObject
	for object, by := range opts.ByObject {
		if reflect.TypeOf(object) == reflect.TypeOf(k.object) {
			selection = by
		}
	}
	if selection.Field != nil || len(selection.Namespaces) > 0 ||
		opts.DefaultLabelSelector != nil || opts.DefaultFieldSelector != nil || len(opts.DefaultNamespaces) > 0 {
		return nil, nil //nolint:nilnil // nothing is watched here then
	}
	version := k.GroupVersion()
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = "/apis", &version
	own.NegotiatedSerializer = newSerializers(opts.Scheme, k)
	c, err := rest.RESTClientForConfigAndClient(own, opts.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", k.resource, err)
	}
	return &watches{client: c, resource: k.resource, selector: selection.Label, codec: runtime.NewParameterCodec(opts.Scheme)}, nil
}

// over returns lw with its watches opened here. Lists stay as they are.
func (w *watches) over(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc:  toolscache.ToListerWithContext(lw).ListWithContext,
		WatchFuncWithContext: w.open,
	}
}

// open opens one watch. Options come from the informer's reflector: where to begin, whether
// what there is comes first, and for how long.
func (w *watches) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	if w.selector != nil {
		options.LabelSelector = w.selector.String()
	}
	return w.client.Get().Resource(w.resource).VersionedParams(&options, w.codec).Watch(ctx)
}
