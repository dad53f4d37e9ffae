package oci

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// shelf is a registry without a network: its manifests by tag or digest, and one blob for every digest.
type shelf struct {
	manifests map[string]string
	blob      []byte
	// leaks: the answer to a request of the blob is an error that repeats the request's credentials.
	leaks bool
}

// RoundTrip is part of http.RoundTripper.
func (s shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	at := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	content, code, kind := s.blob, http.StatusOK, "application/octet-stream"
	if manifest, isManifest := s.manifests[at]; isManifest {
		content, kind = []byte(manifest), ocispec.MediaTypeImageManifest
	} else if strings.Contains(r.URL.Path, "/manifests/") {
		content, code = nil, http.StatusNotFound
	}
	switch {
	case r.Header.Get("Authorization") == "":
		content, code = nil, http.StatusUnauthorized
	case s.leaks && strings.Contains(r.URL.Path, "/blobs/"):
		content, code = fmt.Appendf(nil, `{"errors":[{"code":"DENIED","message":%q}]}`, r.Header.Get("Authorization")), http.StatusBadGateway
	}
	return &http.Response{
		StatusCode: code, Request: r, ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
		Header: http.Header{"Content-Type": {kind}, "Www-Authenticate": {`Basic realm="registry"`}},
	}, nil
}

const shelfHost = "registry.example.com"

// open opens the registry of a shelf with credentials.
func (s shelf) open(t *testing.T, verification Verification) *Registry {
	t.Helper()
	r := open(t, shelfHost, func(o *Options) {
		o.Credentials, o.Verification = Account(shelfHost, "ana", "canary-31c8"), verification
	})
	r.client.transport.RegisterProtocol("http", s)
	return r
}

// fit fails unless an error is one line of bounded length, names what was read, and shows no credential.
func fit(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 5000 || strings.ContainsFunc(text, unicode.IsControl) || !strings.Contains(text, shelfHost+"/charts/hello") {
		t.Errorf("the error does not fit: %q", text)
	}
	if strings.Contains(text, "canary") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("ana:canary-31c8"))) {
		t.Errorf("%q shows the password", text)
	}
}

// layersOf lists the layers of a manifest that have a digest, by a decoder of its own.
func layersOf(manifest, digest string) (types []string) {
	var m struct {
		Layers []struct{ MediaType, Digest string } `json:"layers"`
	}
	_ = json.Unmarshal([]byte(manifest), &m)
	for _, l := range m.Layers {
		if l.Digest == digest {
			types = append(types, l.MediaType)
		}
	}
	return types
}

// manifestOf is the manifest of a chart with a layer.
func manifestOf(layer []byte) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[{"mediaType":%q,"digest":%q,"size":%d}],`+
		`"annotations":{%q:"main@sha1:%s"}}`, ocispec.MediaTypeImageManifest, chartConfig, digest.FromString("{}"), chartContent, digest.FromBytes(layer), len(layer),
		ocispec.AnnotationRevision, strings.Repeat("a", 40))
}

// FuzzManifest: whatever a digest names, a chart or artifact is read only from a layer whose digest the manifest has, at
// clean paths, and the commit is one of 40 digits that the manifest has. An error names the digest and shows no credential.
func FuzzManifest(f *testing.F) {
	archive := packed(f, []tar.Header{{Name: "hello/Chart.yaml", Size: 10, Typeflag: tar.TypeReg}})
	f.Add(manifestOf(archive), archive, false)
	f.Add(manifestOf(archive), archive, true)
	f.Add(strings.ReplaceAll(manifestOf(archive), chartContent, fluxContent), archive, false)
	f.Add(strings.Replace(manifestOf(nil), `"size":0`, `"size":-1`, 1), []byte{}, false)
	f.Add(strings.ReplaceAll(manifestOf(archive), "sha256:", "sha512:"), archive, false)
	f.Add(strings.Replace(manifestOf(archive), chartConfig, "\u202e"+strings.Repeat("x", 1<<16), 1), archive, false)
	f.Fuzz(func(t *testing.T, manifest string, blob []byte, leaks bool) {
		of := digest.FromString(manifest).String()
		r := shelf{manifests: map[string]string{of: manifest}, blob: blob, leaks: leaks}.open(t, Verification{})
		types := strings.Join(layersOf(manifest, digest.FromBytes(blob).String()), " ")
		files, err := r.Chart(t.Context(), "charts/hello", of)
		if err != nil {
			fit(t, err)
		} else if !strings.Contains(types, chartContent) {
			t.Errorf("a chart of %d files is read from another layer", len(files))
		}
		for path, content := range files {
			if !fs.ValidPath(path) || int64(len(content)) > chartLimits().FileBytes {
				t.Errorf("%q with %d bytes", path, len(content))
			}
		}
		tree, err := r.Artifact(t.Context(), "charts/hello", of)
		if err != nil {
			fit(t, err)
		} else if tree.Close(); types == "" {
			t.Errorf("an artifact of %d files is read from another layer", len(tree.Files))
		}
		commit, err := r.Commit(t.Context(), "charts/hello", of)
		if err != nil {
			fit(t, err)
		} else if commit != "" && (len(commit) != 40 || !strings.Contains(manifest, commit)) {
			t.Errorf("commit %q", commit)
		}
	})
}

// FuzzSignature: a digest is accepted only if the payload that the key signed is about it, whatever else of the payload
// names it. The statement of cosign is accepted under every name of the image.
func FuzzSignature(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	archive := packed(f, []tar.Header{{Name: "hello/Chart.yaml", Size: 10, Typeflag: tar.TypeReg}})
	manifest := manifestOf(archive)
	of := digest.FromString(manifest).String()
	statement := func(name, of string) string {
		quoted, _ := json.Marshal(name) //nolint:errchkjson // a string
		return fmt.Sprintf(`{"critical":{"identity":{"docker-reference":%s},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, quoted, of)
	}
	read := func(t *testing.T, payload string, signature []byte) error {
		t.Helper()
		signatures, err := json.Marshal(ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Layers: []ocispec.Descriptor{{
			MediaType: signatureType, Digest: digest.FromString(payload), Size: int64(len(payload)),
			Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		s := shelf{manifests: map[string]string{of: manifest, strings.Replace(of, ":", "-", 1) + signatureSuffix: string(signatures)}, blob: []byte(payload)}
		session, err := s.open(t, Verification{keys: []*ecdsa.PublicKey{&key.PublicKey}}).connect(t.Context(), "charts/hello")
		if err != nil {
			t.Fatal(err)
		}
		defer session.close()
		_, err = session.content(of)
		return err
	}
	sign := func(t *testing.T, payload string) []byte {
		t.Helper()
		sum := sha256.Sum256([]byte(payload))
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	f.Add(statement("registry.example.com/charts/hello", of), []byte("signature"))
	f.Add(statement(of, "sha256:"+strings.Repeat("a", 64)), []byte{})
	f.Add(strings.Replace(statement("", of), "cosign container image", "another", 1), []byte{0x30, 6, 2, 1, 0, 2, 1, 0})
	f.Add(`{"critical":{"image":{"docker-manifest-digest":["`+of+`"]}}}`, []byte{})
	f.Fuzz(func(t *testing.T, payload string, forged []byte) {
		refused := func(what, payload string, signature []byte) {
			t.Helper()
			if err := read(t, payload, signature); !errors.Is(err, ErrSignature) {
				t.Errorf("%s: %v", what, err)
			} else if fit(t, err); strings.Contains(err.Error(), "there is no tag") {
				t.Errorf("%s is not read: %v", what, err)
			}
		}
		refused("a payload that the key did not sign", payload, forged)
		if !strings.Contains(payload, of) && !strings.Contains(payload, `\`) {
			refused("a payload that does not name the digest", payload, sign(t, payload))
		}
		other := statement(payload+of, "sha256:"+strings.Repeat("a", 64))
		refused("a statement about another digest", other, sign(t, other))
		if whole := statement(payload, of); len(whole) <= payloadBytes {
			if err := read(t, whole, sign(t, whole)); err != nil {
				t.Errorf("the statement of cosign is refused: %v", err)
			}
		}
	})
}
