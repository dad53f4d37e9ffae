package renderworker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/addonflow/addonflow/render/chart"
)

// kind is the first byte of a frame. Four bytes with the length of the payload follow.
type kind byte

const (
	// To the child: load the chart of all later requests, a chart.Source; answer one request.
	kindLoad    kind = 'l'
	kindRequest kind = 'q'
	// From the child: ready for the next frame; the file it renders next; a limit was reached.
	kindAnswer kind = 'a'
	kindFile   kind = 'f'
	kindLimit  kind = 'x'
)

// maxFrame bounds the payload that one side accepts from the other.
const maxFrame = 64 << 20

var errFrameTooLong = errors.New("a frame is too long")

func writeFrame(w io.Writer, k kind, payload []byte) error {
	if len(payload) > maxFrame {
		return errFrameTooLong
	}
	frame := make([]byte, 0, 5+len(payload))
	frame = append(frame, byte(k))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload))) //nolint:gosec // at most maxFrame
	_, err := w.Write(append(frame, payload...))
	return err
}

func readFrame(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, errFrameTooLong
	}
	payload := make([]byte, size)
	_, err := io.ReadFull(r, payload)
	return kind(head[0]), payload, err
}

// operation is a method of chart.Engine.
type operation string

const (
	admits operation = "admits"
	verify operation = "verify"
	render operation = "render"
)

// request is the payload of kindRequest.
type request struct {
	Operation operation    `json:"operation"`
	Input     *chart.Input `json:"input,omitempty"`
	Versions  []string     `json:"versions,omitempty"`
}

// answer is the payload of kindAnswer.
type answer struct {
	// Used is the CPU time of the child so far, in nanoseconds.
	Used      int64        `json:"used"`
	Error     *chart.Error `json:"error,omitempty"`
	Version   string       `json:"version,omitempty"`
	Manifests []manifest   `json:"manifests,omitempty"`
}

// manifest is a chart.Manifest. Its fields are decoded separately, with int64 for whole
// numbers, as in Kubernetes objects.
type manifest struct {
	File   string          `json:"file"`
	Fields json.RawMessage `json:"fields"`
}

func encoded(manifests []chart.Manifest) ([]manifest, error) {
	out := make([]manifest, 0, len(manifests))
	for _, m := range manifests {
		fields, err := json.Marshal(m.Fields)
		if err != nil {
			return nil, fmt.Errorf("cannot encode an object of %s: %w", m.File, err)
		}
		out = append(out, manifest{File: m.File, Fields: fields})
	}
	return out, nil
}

func decoded(manifests []manifest) ([]chart.Manifest, error) {
	out := make([]chart.Manifest, 0, len(manifests))
	for _, m := range manifests {
		fields := map[string]any{}
		if err := utiljson.Unmarshal(m.Fields, &fields); err != nil {
			return nil, fmt.Errorf("cannot decode an object of %s: %w", m.File, err)
		}
		if fields == nil {
			return nil, fmt.Errorf("cannot decode an object of %s: it is null", m.File)
		}
		out = append(out, chart.Manifest{File: m.File, Fields: fields})
	}
	return out, nil
}
