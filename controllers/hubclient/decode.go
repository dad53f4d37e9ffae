package hubclient

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// events decodes what is around an object: {"type":"...","object":{...}}. The object is
// not copied: it is valid until the next event is read.
type events struct{ runtime.Serializer }

// Decode reads a *metav1.WatchEvent. Whatever does not look as the API server writes it is
// left to client-go.
func (e events) Decode(frame []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(frame, defaults, into)
	}
	name, object, ok := split(frame)
	if !ok {
		return e.Serializer.Decode(frame, defaults, into)
	}
	event.Type, event.Object.Raw = string(name), object
	return event, defaults, nil
}

// split takes an event apart without looking into the object: whoever decodes that finds
// out whether it is one.
func split(frame []byte) (name, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(frame, []byte(begin))
	if !ok {
		return nil, nil, false
	}
	if name, rest, ok = bytes.Cut(rest, []byte(`","object":`)); !ok {
		return nil, nil, false
	}
	object, ok = bytes.CutSuffix(bytes.TrimSuffix(rest, []byte("\n")), []byte("}"))
	return name, object, ok
}

// kind is a kind whose objects are decoded at once.
type kind struct {
	schema.GroupVersionKind
	resource string
	object   client.Object
	decode   func(raw []byte) (runtime.Object, error)
}

// kinds are those that carry the load of a rollout: each cluster and change has four
// events of them.
func kinds() []kind {
	return []kind{{
		GroupVersionKind: schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork"},
		resource:         "manifestworks", object: &workv1.ManifestWork{}, decode: decodeWork,
	}, {
		GroupVersionKind: schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ManagedClusterAddOn"},
		resource:         "managedclusteraddons", object: &addonv1alpha1.ManagedClusterAddOn{}, decode: decodeAddOn,
	}}
}

// head is how the API server begins an object: it writes custom resources with their keys
// sorted.
func (k kind) head() []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, k.GroupVersion().String(), k.Kind)
}

// objects decodes objects of one kind without asking first what they are, and leaves all
// others (a Status, most of all) to client-go.
type objects struct {
	runtime.Decoder
	kind kind
	head []byte
}

// Decode reads an object into a new one.
func (d objects) Decode(raw []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil || !bytes.HasPrefix(raw, d.head) {
		return d.Decoder.Decode(raw, defaults, into)
	}
	object, err := d.kind.decode(raw)
	return object, &d.kind.GroupVersionKind, err
}

// decodeAddOn decodes a ManagedClusterAddOn.
func decodeAddOn(raw []byte) (runtime.Object, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, addOn); err != nil {
		return nil, err
	}
	addOn.TypeMeta = metav1.TypeMeta{} // as client-go leaves it
	return addOn, nil
}

// decodeWork decodes a ManifestWork without its managed fields, which nobody reads and
// which are as large as its status.
func decodeWork(raw []byte) (runtime.Object, error) {
	var w work
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &w); err != nil {
		return nil, err
	}
	return &workv1.ManifestWork{ObjectMeta: w.Metadata.ObjectMeta, Spec: w.Spec, Status: w.Status}, nil
}

// work has the fields of a ManifestWork.
type work struct {
	Metadata struct {
		metav1.ObjectMeta
		// ManagedFields takes the place of the field it hides.
		ManagedFields skipped `json:"managedFields"`
	} `json:"metadata"`
	Spec   workv1.ManifestWorkSpec   `json:"spec"`
	Status workv1.ManifestWorkStatus `json:"status"`
}

// skipped is a value that is not kept.
type skipped struct{}

// UnmarshalJSON drops the value.
func (skipped) UnmarshalJSON([]byte) error { return nil }
