package render

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// maxContent is the largest canonical content, in bytes before compression. It limits the memory of Decode, because
// gzip could expand an AddOnRevision of 1 MiB to a gigabyte.
const maxContent = 16 << 20

var (
	// ErrTooLarge means that the content exceeds maxContent, or v1alpha1.MaxRevisionBody when compressed. The user must split
	// the add-on.
	ErrTooLarge = errors.New("content is too large for an AddOnRevision")
	// ErrInvalidBody means that Encode did not write the body, or a newer version wrote it. Its clusters must be held, and
	// never rendered from other content.
	ErrInvalidBody = errors.New("body of an AddOnRevision cannot be read")
)

// Encode returns the content as the body of an AddOnRevision: its canonical JSON, gzip'd without name or time, so
// that equal content gives equal bytes. Another version of Go may compress differently, so revisions are compared by
// digest, never by body. Beyond the limits it returns ErrTooLarge with the sizes.
func (c Content) Encode() ([]byte, error) {
	text, err := c.canonical()
	if err != nil {
		return nil, err
	}
	if len(text) > maxContent {
		return nil, fmt.Errorf("cannot encode add-on %q: %w: %d bytes, at most %d", c.AddOn, ErrTooLarge, len(text), maxContent)
	}
	body, err := compress(text)
	if err != nil {
		return nil, fmt.Errorf("cannot encode add-on %q: %w", c.AddOn, err)
	}
	if len(body) > v1alpha1.MaxRevisionBody {
		return nil, fmt.Errorf("cannot encode add-on %q: %w: %d bytes compressed, at most %d",
			c.AddOn, ErrTooLarge, len(body), v1alpha1.MaxRevisionBody)
	}
	return body, nil
}

func compress(text []byte) ([]byte, error) {
	var body bytes.Buffer
	w, err := gzip.NewWriterLevel(&body, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// Decode reads the body of an AddOnRevision: one gzip stream of one JSON object with known fields. For any other body
// it returns ErrInvalidBody: if a newer version wrote an unknown field, the field may change the meaning of the
// content. Before the caller uses the result, it compares its digest with the digest in the AddOnRevision.
func Decode(body []byte) (Content, error) {
	text, err := decompress(body)
	if err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrInvalidBody, err)
	}
	var c Content
	unknown, err := kjson.UnmarshalStrict(text, &c)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrInvalidBody, err)
	}
	if c.AddOn == "" {
		return Content{}, fmt.Errorf("%w: it names no add-on", ErrInvalidBody)
	}
	return c, nil
}

func decompress(body []byte) ([]byte, error) {
	if len(body) > v1alpha1.MaxRevisionBody {
		return nil, fmt.Errorf("%d bytes compressed, at most %d", len(body), v1alpha1.MaxRevisionBody)
	}
	source := bytes.NewReader(body)
	r, err := gzip.NewReader(source)
	if err != nil {
		return nil, err
	}
	r.Multistream(false) // only one stream is allowed
	text, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxContent {
		return nil, fmt.Errorf("more than %d bytes uncompressed", maxContent)
	}
	if source.Len() > 0 {
		return nil, errors.New("something follows the compressed content")
	}
	return text, nil
}
