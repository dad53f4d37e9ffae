package render

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// contents draws content with any JSON in it.
func contents() *rapid.Generator[Content] {
	scalar := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	fields := rapid.MapOfN(rapid.String(), scalar, 0, 4)
	return rapid.Custom(func(t *rapid.T) Content {
		c := Content{AddOn: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "add-on")}
		for range rapid.IntRange(0, 2).Draw(t, "templates") {
			c.Templates = append(c.Templates, Template{Name: rapid.String().Draw(t, "name"), Spec: map[string]any{"x": fields.Draw(t, "fields")}})
		}
		for range rapid.IntRange(0, 2).Draw(t, "placements") {
			c.Placements = append(c.Placements, PlacementConfigs{
				PlacementReference: v1alpha1.PlacementReference{Namespace: rapid.String().Draw(t, "namespace"), Name: rapid.String().Draw(t, "name")},
				Configs:            []ConfigReference{{Resource: rapid.String().Draw(t, "resource"), Name: "x"}},
			})
		}
		return c
	})
}

func TestEncodeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expectSameAgain(t, contents().Draw(t, "content"))
	})
}

func TestEncodeTooLarge(t *testing.T) {
	noise := make([]byte, 2<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"Compressed":   hex.EncodeToString(noise),
		"Uncompressed": string(bytes.Repeat([]byte("x"), maxContent)),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Content{AddOn: "a", Templates: []Template{{Spec: map[string]any{"x": text}}}}.Encode()
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want ErrTooLarge", err)
			}
		})
	}
}

func zipped(tb testing.TB, text []byte) []byte {
	tb.Helper()
	body, err := compress(text)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestDecodeRefuses(t *testing.T) {
	bomb := zipped(t, bytes.Repeat([]byte(" "), maxContent+1))
	good := zipped(t, []byte(`{"addOn":"a"}`))
	cases := map[string][]byte{
		"Nothing":       nil,
		"NoGzip":        []byte(`{"addOn":"a"}`),
		"CutOff":        good[:len(good)-1],
		"Followed":      append(bytes.Clone(good), 'x'),
		"TwoStreams":    append(bytes.Clone(good), good...),
		"Bomb":          bomb,
		"Oversized":     make([]byte, v1alpha1.MaxRevisionBody+1),
		"NoJSON":        zipped(t, []byte("hello")),
		"TwoDocuments":  zipped(t, []byte(`{"addOn":"a"}{"addOn":"b"}`)),
		"UnknownField":  zipped(t, []byte(`{"addOn":"a","wind":"north"}`)),
		"WrongCase":     zipped(t, []byte(`{"AddOn":"a"}`)),
		"TwiceTheField": zipped(t, []byte(`{"addOn":"a","addOn":"b"}`)),
		"NoAddOn":       zipped(t, []byte(`{}`)),
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(body); !errors.Is(err, ErrInvalidBody) {
				t.Errorf("got %v, want ErrInvalidBody", err)
			}
		})
	}
	if _, err := Decode(good); err != nil {
		t.Errorf("the good body: %v", err)
	}
}

// FuzzDecode: every body that decodes is valid content: it encodes, and decodes to the same
// digest.
func FuzzDecode(f *testing.F) {
	f.Add(zipped(f, []byte(`{"addOn":"a","templates":[{"name":"t","specHash":"","spec":{"x":[1,1.5,"\u2028",null,1e300]}}]}`)))
	f.Add(zipped(f, []byte(`{"addOn":"a","placements":[{"namespace":"n","name":"p","configs":null}]}`)))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	f.Fuzz(func(t *testing.T, body []byte) {
		content, err := Decode(body)
		if err != nil {
			if !errors.Is(err, ErrInvalidBody) {
				t.Fatalf("got %v, want ErrInvalidBody", err)
			}
			return
		}
		expectSameAgain(t, content)
	})
}

// expectSameAgain asserts that content does not change when it is stored.
func expectSameAgain(t rapid.TB, content Content) {
	t.Helper()
	again, err := content.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(again)
	if err != nil {
		t.Fatal(err)
	}
	before, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if after, err := decoded.Digest(); err != nil || after != before {
		t.Fatalf("digest was %s, decoded again it is %s (%v)", before, after, err)
	}
}

// FuzzDecodeText is FuzzDecode for the JSON text, which random bytes would never reach through
// gzip.
func FuzzDecodeText(f *testing.F) {
	f.Add([]byte(`{"addOn":"a","configs":[{"group":"","resource":"r","name":"n","apiVersion":"v1","kind":"K","specHash":"h","body":{"x":{"y":"z"}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		content, err := Decode(zipped(t, text))
		if err != nil {
			return
		}
		expectSameAgain(t, content)
	})
}
