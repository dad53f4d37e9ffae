package registry

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Signer signs digests as cosign sign --key does.
type Signer struct{ key *ecdsa.PrivateKey }

// NewSigner returns a signer with a new key.
func NewSigner(tb testing.TB) Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return Signer{key}
}

// Public is the public key, as cosign generate-key-pair writes it.
func (s Signer) Public(tb testing.TB) []byte {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Signature is a signed statement about a digest.
type Signature struct{ payload, signature []byte }

// payload is what cosign signs.
func payload(host, digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, host, digest)
}

// PayloadOf is the digest of the statement that cosign signs for an image or chart of a digest.
func PayloadOf(host, of string) string { return digest.FromBytes(payload(host, of)).String() }

// Signature signs a digest.
func (s Signer) Signature(tb testing.TB, host, digest string) Signature {
	tb.Helper()
	out := Signature{payload: payload(host, digest)}
	sum := sha256.Sum256(out.payload)
	var err error
	if out.signature, err = ecdsa.SignASN1(rand.Reader, s.key, sum[:]); err != nil {
		tb.Fatal(err)
	}
	return out
}

// Sign pushes signatures of a digest, in place of those before, as cosign does.
func (s *Server) Sign(tb testing.TB, repository, of string, signatures ...Signature) {
	tb.Helper()
	r, err := s.Remote(repository)
	if err != nil {
		tb.Fatal(err)
	}
	pushed := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		if err := r.Push(tb.Context(), d, bytes.NewReader(content)); err != nil {
			tb.Fatal(err)
		}
		return d
	}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: pushed("application/vnd.oci.image.config.v1+json", []byte("{}")),
	}
	for _, signature := range signatures {
		layer := pushed("application/vnd.dev.cosign.simplesigning.v1+json", signature.payload)
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature.signature)}
		m.Layers = append(m.Layers, layer)
	}
	text, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	d := ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if err := r.PushReference(tb.Context(), d, bytes.NewReader(text), strings.Replace(of, ":", "-", 1)+".sig"); err != nil {
		tb.Fatal(err)
	}
}
