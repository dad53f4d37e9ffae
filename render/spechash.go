package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrNothingToHash means that an object has no fields besides metadata and status.
var ErrNothingToHash = errors.New("object has no field besides apiVersion, kind, metadata and status")

// SpecHash returns OCM's hash of a configuration object: the lower-case hex SHA-256 of the JSON of every top-level
// field except apiVersion, kind, metadata and status. It equals OCM's specHash only for the object as the API server
// stores it, such as Load's objects and objects read from the hub, but not for an object from a file.
//
// It returns ErrNothingToHash if no such field is left; OCM fails then, too.
func SpecHash(object *unstructured.Unstructured) (string, error) {
	body := HashedFields(object.Object)
	if len(body) == 0 {
		return "", fmt.Errorf("cannot hash %s %q: %w", object.GetKind(), object.GetName(), ErrNothingToHash)
	}
	return hashBody(body)
}

// HashedFields are the fields of an object that SpecHash hashes, as in Config.Body: a shallow
// copy, whose values must not be changed.
func HashedFields(object map[string]any) map[string]any {
	body := make(map[string]any, len(object))
	for field, value := range object {
		switch field {
		case apiVersionKey, kindKey, metadataKey, statusKey:
		default:
			body[field] = value
		}
	}
	return body
}

// hashBody relies on the form of encoding/json: sorted keys, no spaces, <, > and & escaped. OCM hashes the same
// bytes.
func hashBody(body map[string]any) (string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("cannot hash object: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
