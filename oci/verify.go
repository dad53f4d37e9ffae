package oci

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of cosign.
const (
	// signatureSuffix ends the tag of the signatures of a digest.
	signatureSuffix = ".sig"
	// signatureType is the media type of what is signed, a layer of the signatures' manifest.
	signatureType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// signatureAnnotation of that layer is the signature.
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	// keySuffix ends the keys of a Secret with public keys, as in Flux.
	keySuffix = ".pub"
)

// Bounds of the signatures of one digest.
const (
	mostSignatures = 32
	payloadBytes   = 64 << 10
)

// Verification is which signatures a digest needs. The zero value needs none.
type Verification struct{ keys []*ecdsa.PublicKey }

// ParseVerification reads the public keys of a Secret: ECDSA keys in PEM, as cosign
// generate-key-pair writes them, in entries that end in .pub. Other entries are ignored. The error
// is ErrInvalidCredentials.
func ParseVerification(keys map[string][]byte) (Verification, error) {
	var v Verification
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if !strings.HasSuffix(name, keySuffix) {
			continue
		}
		block, _ := pem.Decode(keys[name])
		if block == nil {
			return Verification{}, fmt.Errorf("%w: key %s holds no public key in PEM", ErrInvalidCredentials, name)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		public, ok := key.(*ecdsa.PublicKey)
		if err != nil || !ok {
			return Verification{}, fmt.Errorf("%w: key %s holds no public key of ECDSA, as cosign generate-key-pair writes it", ErrInvalidCredentials, name)
		}
		v.keys = append(v.keys, public)
	}
	if len(v.keys) == 0 {
		return Verification{}, fmt.Errorf("%w: no key with the name of a public key (NAME%s)", ErrInvalidCredentials, keySuffix)
	}
	return v, nil
}

// signed is the payload that cosign signs.
type signed struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// verify refuses a digest that none of the keys signed. Nothing that it names is read before.
func (s *session) verify(digest string) error {
	keys := s.options.Verification.keys
	if len(keys) == 0 {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w: %s", s.name(digest), ErrSignature, fmt.Sprintf(format, args...))
	}
	tag := strings.Replace(digest, ":", "-", 1) + signatureSuffix
	m, err := s.manifest(tag)
	switch {
	case errors.Is(err, ErrNotFound):
		return refuse("it is not signed: there is no tag %s, as cosign sign --key writes it", tag)
	case err != nil:
		return err
	}
	if len(m.Layers) > mostSignatures {
		return refuse("it has %d signatures, at most %d are read", len(m.Layers), mostSignatures)
	}
	for _, layer := range m.Layers {
		signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if layer.MediaType != signatureType || err != nil || layer.Size > payloadBytes {
			continue
		}
		payload, err := s.blob(layer, payloadBytes)
		if err != nil {
			return err
		}
		var claims signed
		if json.Unmarshal(payload, &claims) != nil || claims.Critical.Image.Digest != digest || claims.Critical.Type != "cosign container image signature" {
			continue // a signature of something else
		}
		sum := sha256.Sum256(payload)
		if slices.ContainsFunc(keys, func(key *ecdsa.PublicKey) bool { return ecdsa.VerifyASN1(key, sum[:], signature) }) {
			return nil
		}
	}
	return refuse("none of its signatures is of this digest and valid under a key of verify.secretRef")
}
