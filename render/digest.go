package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// The version of the canonical form. It is part of the digest and of what is hashed. A change
// of the form (a renamed field of Content, a changed default of an embedded CRD, another order)
// changes every digest. So after such a change:
//
//   - the version becomes v2, and docs/decisions says why;
//   - Decode keeps reading v1 bodies for as long as any cluster may run one;
//   - an add-on whose v1 and v2 content is the same is not a rollout, because
//     clusters are compared by their rendered inputs, not by the digest alone.
//
// A field added to Content with omitempty, absent in existing content, changes no digest and
// needs no new version.
const digestVersion = "v1"

// maxNameLength is the API server's limit for names of most objects.
const maxNameLength = 253

// Digest returns v1:sha256:<hex>, the identity of the content. It is equal for equal content, whatever order, file
// layout or API version declares the content.
//
// The hash is over the version, a zero byte and the canonical JSON of the content. JSON delimits every string and
// list, so two different contents never have the same text.
func (c Content) Digest() (string, error) {
	body, err := c.canonical()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write([]byte(digestVersion + "\x00"))
	hash.Write(body)
	return digestVersion + ":sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// canonical returns the canonical text of the content: fields in the order in which the types declare
// them, map keys sorted, no spaces. Lists are in the order of Content's invariant.
func (c Content) canonical() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the content of add-on %q: %w", c.AddOn, err)
	}
	return body, nil
}

// RevisionName returns the name of the AddOnRevision of an add-on's digest: <add-on>-<10 hex of
// the digest>. If the name would be too long, the add-on part is cut. The name is not unique;
// callers compare the digest of the AddOnRevision.
func RevisionName(addOn, digest string) string {
	const shown = 10
	short := digest[strings.LastIndexByte(digest, ':')+1:]
	short = short[:min(shown, len(short))]
	addOn = addOn[:min(len(addOn), maxNameLength-1-len(short))]
	return strings.TrimRight(addOn, "-.") + "-" + short
}
