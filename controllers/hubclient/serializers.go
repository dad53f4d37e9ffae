package hubclient

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// serializers are client-go's for JSON, but for the stream of a watch and for objects of
// one kind.
type serializers struct {
	serializer.WithoutConversionCodecFactory
	kind kind
}

// newSerializers returns the serializers for a kind of the scheme.
func newSerializers(scheme *runtime.Scheme, of kind) serializers {
	return serializers{
		WithoutConversionCodecFactory: serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)},
		kind:                          of,
	}
}

// SupportedMediaTypes is JSON, the only one custom resources are watched in.
func (s serializers) SupportedMediaTypes() []runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(s.WithoutConversionCodecFactory.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil // every codec factory has it
	}
	stream := *info.StreamSerializer
	stream.Serializer, stream.Framer = events{stream.Serializer}, newFramer()
	info.StreamSerializer = &stream
	return []runtime.SerializerInfo{info}
}

// DecoderToVersion decodes objects into the version they come in.
func (s serializers) DecoderToVersion(d runtime.Decoder, v runtime.GroupVersioner) runtime.Decoder {
	return objects{Decoder: s.WithoutConversionCodecFactory.DecoderToVersion(d, v), kind: s.kind, head: s.kind.head()}
}
