package hubclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"pgregory.net/rapid"
)

const (
	// expired is how the API server ends a watch that fell behind.
	expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (203)","reason":"Expired","code":410}}` + "\n"
	deleted = `{"type":"DELETED","object":{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"gone","resourceVersion":"7"},"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"a\nb \"}}\" \u2028"}}]}}}}` + "\n"
	// foreign is what no API server writes and what is a good event all the same.
	foreign = `{"object":{"kind":"ManifestWork","metadata":{"name":"w"},"apiVersion":"work.open-cluster-management.io/v1"},"type":"MODIFIED"}` + "\n"
)

// seen is what a watch told, and how it ended.
type seen struct {
	events []watch.Event
	err    error
}

// read decodes a watch as rest.Request.Watch does, with what it takes from serializers.
func read(tb testing.TB, s runtime.NegotiatedSerializer, k kind, stream io.Reader) seen {
	tb.Helper()
	object, event, frames, err := runtime.NewClientNegotiator(s, k.GroupVersion()).StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		tb.Fatal(err)
	}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(frames.NewFrameReader(io.NopCloser(stream)), event), object)
	var out seen
	for {
		kind, object, err := decoder.Decode()
		if err != nil {
			out.err = err
			return out
		}
		if w, ok := object.(*workv1.ManifestWork); ok {
			w.ManagedFields = nil // the one thing that is left out
		}
		out.events = append(out.events, watch.Event{Type: kind, Object: object})
	}
}

// scheme knows the kinds.
func scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1alpha1.Install, workv1.Install} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// standard are client-go's serializers.
func standard(tb testing.TB) runtime.NegotiatedSerializer {
	tb.Helper()
	return serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme(tb))}
}

// recorded is what an API server answered to a watch of each kind.
func recorded(tb testing.TB, k kind) string {
	tb.Helper()
	raw, err := os.ReadFile("testdata/" + map[string]string{"ManifestWork": "works", "ManagedClusterAddOn": "addons"}[k.Kind] + ".watch")
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// TestStreamsAreReadAsClientGoReadsThem: every event, and the way the stream ends.
func TestStreamsAreReadAsClientGoReadsThem(t *testing.T) {
	broken := errors.New("stream error: stream ID 7; INTERNAL_ERROR")
	for _, k := range kinds() {
		answer := recorded(t, k)
		cases := map[string]struct {
			stream func() io.Reader
			events int
			err    error // nil: any but the end of a stream
		}{
			"what the API server answers":  {text(answer + answer), 4, io.EOF},
			"nothing":                      {text(""), 0, io.EOF},
			"an error between":             {text(answer + expired + answer), 5, io.EOF},
			"a deletion":                   {text(deleted + answer), 3, io.EOF},
			"other order of fields":        {text(answer + foreign + answer), 5, io.EOF},
			"an indented event":            {text(answer + indented(t, answer)), 4, io.EOF},
			"an empty line":                {text(answer + "\n" + answer), 4, io.EOF},
			"byte by byte":                 {func() io.Reader { return iotest.OneByteReader(strings.NewReader(answer + expired)) }, 3, io.EOF},
			"the end comes with the event": {func() io.Reader { return iotest.DataErrReader(strings.NewReader(answer)) }, 2, io.EOF},
			"cut in the object":            {text(answer + answer[:1000]), 2, io.ErrUnexpectedEOF},
			"cut in the head":              {text(answer + answer[:5]), 2, io.ErrUnexpectedEOF},
			"the connection breaks": {func() io.Reader {
				return io.MultiReader(strings.NewReader(answer+answer[:1000]), iotest.ErrReader(broken))
			}, 2, broken},
			"an object that is none":         {text(answer + `{"type":"ADDED","object":{"apiVersion":]}}` + "\n"), 2, nil},
			"an object with more behind it":  {text(answer + `{"type":"ADDED","object":{}}}` + "\n"), 2, nil},
			"an object of a wrong shape":     {text(answer + strings.Replace(answer, `"metadata":{`, `"metadata":[{`, 1)), 2, nil},
			"an object of an unknown kind":   {text(answer + `{"type":"ADDED","object":{"apiVersion":"v7","kind":"Thing"}}` + "\n"), 2, nil},
			"an event of an unknown type":    {text(answer + `{"type":"SHOUTED","object":{"apiVersion":"v1","kind":"Pod"}}` + "\n"), 2, nil},
			"an event without an object":     {text(answer + `{"type":"ADDED"}` + "\n"), 2, nil},
			"no JSON":                        {text(answer + "upstream timed out\n"), 2, nil},
			"an event beyond what fits":      {text(answer + `{"type":"ADDED","object":{"x":"` + strings.Repeat("x", 17<<20) + `"}}` + "\n"), 2, streaming.ErrObjectTooLarge},
			"a large event":                  {text(answer + large(1<<20) + answer), 5, io.EOF},
			"an event of exactly the buffer": {text(large(lineBuffer) + large(lineBuffer+1) + large(lineBuffer-1) + answer), 5, io.EOF},
		}
		for name, c := range cases {
			t.Run(k.Kind+" "+name, func(t *testing.T) {
				ours := read(t, newSerializers(scheme(t), k), k, c.stream())
				theirs := read(t, standard(t), k, c.stream())
				if diff := cmp.Diff(theirs.events, ours.events); diff != "" {
					t.Errorf("client-go reads -, this package reads +:\n%s", diff)
				}
				if len(ours.events) != c.events {
					t.Errorf("%d events, want %d", len(ours.events), c.events)
				}
				if c.err != nil && !errors.Is(ours.err, c.err) || c.err == nil && quiet(ours.err) || quiet(ours.err) != quiet(theirs.err) {
					t.Errorf("ended with %v, want %v; client-go's with %v", ours.err, c.err, theirs.err)
				}
			})
		}
	}
}

// quiet reports whether a watch ends with an error as if it had ended by itself: the
// informer goes on where it was. Any other makes it list anew.
func quiet(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

func indented(t *testing.T, events string) string {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(events) {
		if err := json.Indent(&out, []byte(line), "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// large is an event of size bytes with its line break.
func large(size int) string {
	const format = `{"type":"ADDED","object":{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"%s"}}}` + "\n"
	return fmt.Sprintf(format, strings.Repeat("n", size-len(format)+len("%s")))
}

// TestStreamsCutAnywhereLoseNothing: what came whole is told, and what did not ends the
// watch as a broken connection does, so that the informer asks for it again.
func TestStreamsCutAnywhereLoseNothing(t *testing.T) {
	for _, k := range kinds() {
		answer := recorded(t, k)
		whole := read(t, newSerializers(scheme(t), k), k, strings.NewReader(answer+answer))
		first := strings.Index(answer, "\n") + 1
		ends := []int{first, len(answer), len(answer) + first, 2 * len(answer)}
		for at := 0; at < 2*len(answer); at += 37 {
			complete := 0
			for _, end := range ends {
				if at >= end {
					complete++
				}
			}
			got := read(t, newSerializers(scheme(t), k), k, strings.NewReader((answer + answer)[:at]))
			if diff := cmp.Diff(whole.events[:complete], append([]watch.Event{}, got.events...)); diff != "" || !quiet(got.err) {
				t.Fatalf("%s cut at %d: %v\n%s", k.Kind, at, got.err, diff)
			}
		}
	}
}

// TestProperty_FramesAreClientGosFrames: of any stream of JSON, however it is written and
// in whatever pieces it comes.
func TestProperty_FramesAreClientGosFrames(t *testing.T) {
	standard, ok := runtime.SerializerInfoForMediaType(standard(t).SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("no JSON")
	}
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 6).Draw(t, "events")
		pieces := rapid.SliceOfN(rapid.IntRange(1, 200), 1, 8).Draw(t, "pieces")
		frames := func(f runtime.Framer) (out []string) {
			r := f.NewFrameReader(io.NopCloser(&inPieces{strings.NewReader(strings.Join(stream, "")), pieces, 0}))
			var frame []byte
			for {
				room := make([]byte, pieces[len(out)%len(pieces)])
				n, err := r.Read(room)
				frame = append(frame, room[:n]...)
				switch {
				case err == nil:
					out, frame = append(out, strings.TrimSpace(string(frame))), nil
				case !errors.Is(err, io.ErrShortBuffer):
					return append(out, err.Error())
				}
			}
		}
		if diff := cmp.Diff(frames(standard.StreamSerializer.Framer), frames(newFramer())); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawEvent draws a line as the API server writes it, or something else that is JSON.
func drawEvent(t *rapid.T) string {
	object, err := json.Marshal(rapid.MapOfN(rapid.String(), rapid.String(), 0, 5).Draw(t, "object"))
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`{"type":"MODIFIED","object":%s}`, object)
	switch rapid.SampledFrom([]string{"line", "line", "line", "indented", "reversed"}).Draw(t, "form") {
	case "indented":
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(line), "", "\t"); err != nil {
			t.Fatal(err)
		}
		line = out.String()
	case "reversed":
		line = fmt.Sprintf(`{"object":%s,"type":"MODIFIED"}`, object)
	}
	return line + "\n"
}

// inPieces hands out what it reads in pieces of the given sizes.
type inPieces struct {
	io.Reader
	sizes []int
	n     int
}

func (r *inPieces) Read(out []byte) (int, error) {
	size := r.sizes[r.n%len(r.sizes)]
	r.n++
	return r.Reader.Read(out[:min(size, len(out))])
}

// TestEveryFieldOfAWorkIsRead: the type that leaves the managed fields out has all others,
// also those that a new version of OCM's API brings.
func TestEveryFieldOfAWorkIsRead(t *testing.T) {
	if diff := cmp.Diff(fieldsOf[workv1.ManifestWork](), fieldsOf[work]()); diff != "" {
		t.Errorf("ManifestWork has -, work has +:\n%s", diff)
	}
}

// BenchmarkWatch is what one event costs, read by client-go and by this package.
func BenchmarkWatch(b *testing.B) {
	for _, k := range kinds() {
		line, _, _ := strings.Cut(recorded(b, k), "\n")
		stream := strings.Repeat(line+"\n", 10)
		for name, s := range map[string]runtime.NegotiatedSerializer{"client-go": standard(b), "hubclient": newSerializers(scheme(b), k)} {
			b.Run(k.Kind+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(stream)))
				for b.Loop() {
					if got := read(b, s, k, strings.NewReader(stream)); len(got.events) != 10 {
						b.Fatal(got.err)
					}
				}
			})
		}
	}
}

// fieldsOf lists the fields of a type as JSON names them, without those of TypeMeta, which
// a decoder knows already.
func fieldsOf[T any]() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); len(f.Index) == 1 && name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
