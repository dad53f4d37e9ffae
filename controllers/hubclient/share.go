package hubclient

import (
	"bytes"
	"hash/maphash"
	"maps"
	"math/bits"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// generation is how many bytes of values one generation of a Sharer keeps. The values that the objects of
	// an add-on have in common are some KiB; the rest are values of one cluster, which pass through.
	generation = 1 << 20
	// perValue is the memory of a value besides its text, in bytes.
	perValue = 96
)

// Sharer lets the objects of a cache share equal parts. The works and ManagedClusterAddOns of an add-on differ between
// clusters in names, versions and times; decoded one by one, each has its own copy of every label, condition and
// manifest.
//
// Objects that share must not be changed in place. That holds for objects of a cache anyway.
//
// It keeps the values that it saw lately: of two generations, a value that is seen moves into the younger one.
// When that is full, the older one is dropped. A dropped value is shared no longer with objects to come, which
// costs memory and nothing else. It is safe for concurrent use.
type Sharer struct {
	seed maphash.Seed

	mu           sync.Mutex
	young, older map[uint64]reflect.Value
	// weight of the younger generation, in bytes.
	weight int
}

// NewSharer returns a Sharer that has seen nothing.
func NewSharer() *Sharer { return &Sharer{seed: maphash.MakeSeed(), young: map[uint64]reflect.Value{}} }

// Share changes an object that was just decoded, before anything else reads it: equal parts become those of
// objects that it saw before. Use it as the last step of a cache's transform.
func (s *Sharer) Share(object any) (any, error) {
	v := reflect.ValueOf(object)
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fields(v.Elem())
	}
	return object, nil
}

// value shares a value and what it consists of, and returns its hash. Equal values have equal hashes. v can
// be set.
func (s *Sharer) value(v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		if text == "" {
			return 0
		}
		hash := maphash.String(s.seed, text)
		s.keep(v, hash, len(text))
		return hash
	case reflect.Bool:
		if v.Bool() {
			return 1
		}
		return 0
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return uint64(v.Int()) //nolint:gosec // a hash may wrap
	case reflect.Struct:
		return s.fields(v)
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		hash := mix(1, s.value(v.Elem()))
		s.keep(v, hash, 0)
		return hash
	case reflect.Slice:
		return s.slice(v)
	case reflect.Map:
		if at, ok := reflect.TypeAssert[*map[string]string](v.Addr()); ok && len(*at) > 0 {
			return s.texts(v, at)
		}
	default: // an interface or a float: two values that differ may have one hash
	}
	return 0
}

// fields shares the exported fields of a struct.
func (s *Sharer) fields(v reflect.Value) uint64 {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		return uint64(at.UnixNano())
	case *metav1.ObjectMeta:
		// The other fields are those of one object.
		for _, shared := range []any{&at.Labels, &at.Annotations, &at.Finalizers, &at.ManagedFields, &at.OwnerReferences} {
			s.value(reflect.ValueOf(shared).Elem())
		}
		return 0
	}
	hash := uint64(0)
	for _, field := range v.Fields() {
		if field.CanSet() {
			hash = mix(hash, s.value(field))
		}
	}
	return hash
}

// slice shares a slice and its elements.
func (s *Sharer) slice(v reflect.Value) uint64 {
	if v.Len() == 0 {
		return 0
	}
	var hash uint64
	if text, ok := reflect.TypeAssert[[]byte](v); ok {
		hash = maphash.Bytes(s.seed, text)
		s.keep(v, hash, len(text))
		return hash
	}
	for i := range v.Len() {
		hash = mix(hash, s.value(v.Index(i)))
	}
	s.keep(v, hash, 0)
	return hash
}

// texts shares a map of strings. Its hash does not depend on the order of the keys.
func (s *Sharer) texts(v reflect.Value, at *map[string]string) uint64 {
	hash := uint64(len(*at))
	for key, value := range *at {
		hash += mix(maphash.String(s.seed, key), maphash.String(s.seed, value))
	}
	if s.keep(v, hash, 0) {
		return hash
	}
	for key, value := range *at { // the map is of one object, but its keys are not
		pair := [2]string{key, value}
		s.value(reflect.ValueOf(&pair[0]).Elem())
		s.value(reflect.ValueOf(&pair[1]).Elem())
		(*at)[pair[0]] = pair[1] // the runtime takes the new copy of an equal key
	}
	return hash
}

// keep sets v to the equal value that was seen before, and reports whether there is one. Otherwise v is seen
// from now on; length is that of its text.
func (s *Sharer) keep(v reflect.Value, hash uint64, length int) bool {
	hash = mix(hash, uint64(v.Kind())) // a text and a slice that has only this text do not displace each other
	known, ok := s.young[hash]
	if !ok {
		if known, ok = s.older[hash]; ok {
			s.enter(hash, known, length)
		}
	}
	if ok && known.Type() == v.Type() && equal(known, v) {
		v.Set(known)
		return true
	}
	if v.Kind() == reflect.Slice && v.Cap() > v.Len() { // a decoder grows it ahead of what is to come
		exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	seen := reflect.New(v.Type()).Elem()
	seen.Set(v)
	s.enter(hash, seen, length)
	return false
}

// enter keeps a value in the younger generation.
func (s *Sharer) enter(hash uint64, v reflect.Value, length int) {
	if s.weight > generation {
		s.young, s.older, s.weight = map[uint64]reflect.Value{}, s.young, 0
	}
	s.young[hash] = v
	s.weight += length + perValue
}

func equal(a, b reflect.Value) bool {
	switch a := a.Interface().(type) {
	case string:
		return a == b.String()
	case []byte:
		return bytes.Equal(a, b.Bytes())
	case map[string]string:
		other, ok := reflect.TypeAssert[map[string]string](b)
		return ok && maps.Equal(a, other)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func mix(hash, next uint64) uint64 {
	high, low := bits.Mul64(hash^0x9e3779b97f4a7c15, next^0xbf58476d1ce4e5b9)
	return high ^ low
}
