package gitsource

import (
	"bytes"
	"cmp"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Endings of the names of a Secret's entries with public keys, as in Flux.
const (
	pgpSuffix = ".asc"
	sshSuffix = ".sshpub"
)

// Beginnings of signatures and keys in armor.
const (
	pgpSignature = "-----BEGIN PGP SIGNATURE-----"
	sshSignature = "-----BEGIN SSH SIGNATURE-----"
	pgpKeyBlock  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
)

// sshNamespace is the namespace of Git's SSH signatures.
const sshNamespace = "git"

// Verification has the signatures that a commit or its tag needs. The zero value needs none.
type Verification struct {
	mode v1alpha1.VerifyMode
	pgp  openpgp.EntityList
	ssh  []sshSigner
	now  func() time.Time
}

// sshSigner is a public key that may sign until a time; zero: without end.
type sshSigner struct {
	key     ssh.PublicKey
	expires time.Time
}

// ParseVerification reads the public keys of a Secret: SSH keys, one per line, in entries that end in .sshpub, and
// OpenPGP keys in entries that end in .asc. As in Flux, an entry of another name may have an OpenPGP key. The error is
// ErrInvalidCredentials. A key has expired if its expiry is before the time of now; nil: the system's clock.
func ParseVerification(mode v1alpha1.VerifyMode, keys map[string][]byte, now func() time.Time) (Verification, error) {
	v := Verification{mode: cmp.Or(mode, v1alpha1.VerifyHEAD), now: now}
	if v.now == nil {
		v.now = time.Now
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		var err error
		switch {
		case strings.HasSuffix(name, sshSuffix):
			err = v.addSSH(string(keys[name]))
		case strings.HasSuffix(name, pgpSuffix), bytes.Contains(keys[name], []byte(pgpKeyBlock)):
			err = v.addOpenPGP(string(keys[name]))
		}
		if err != nil {
			return Verification{}, fmt.Errorf("%w: key %s %w", ErrInvalidCredentials, name, err)
		}
	}
	if len(v.pgp) == 0 && len(v.ssh) == 0 {
		return Verification{}, fmt.Errorf("%w: no OpenPGP key (NAME%s) and no SSH key (NAME%s)", ErrInvalidCredentials, pgpSuffix, sshSuffix)
	}
	return v, nil
}

// addOpenPGP adds the keys of every armored block.
func (v *Verification) addOpenPGP(text string) error {
	blocks := strings.Split(text, pgpKeyBlock)
	if len(blocks) == 1 {
		return errors.New("holds no OpenPGP public key; gpg --armor --export prints it")
	}
	for _, block := range blocks[1:] {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(pgpKeyBlock + block))
		if err != nil {
			return fmt.Errorf("holds an OpenPGP key that cannot be read: %w", err)
		}
		v.pgp = append(v.pgp, entities...)
	}
	return nil
}

// addSSH adds the keys of a file in the format of OpenSSH's authorized_keys. Of the options of a line, only
// expiry-time is used.
func (v *Verification) addSSH(text string) error {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return errors.New("holds a line that is not an SSH public key")
		}
		if err := checkSigner(key); err != nil {
			return err
		}
		signer := sshSigner{key: key}
		for _, option := range options {
			value, ok := strings.CutPrefix(option, "expiry-time=")
			if !ok {
				return fmt.Errorf("has the option %s, which means nothing here; remove it", brief.Printable(option))
			}
			if signer.expires, err = parseExpiry(strings.Trim(value, `"`)); err != nil {
				return err
			}
		}
		v.ssh = append(v.ssh, signer)
	}
	return nil
}

// checkSigner accepts also the keys of security keys (FIDO), with which no server or client is authenticated here.
func checkSigner(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	}
	return checkKey(key)
}

// parseExpiry reads a time as sshd(8) describes expiry-time. Times without Z are UTC here, too.
func parseExpiry(value string) (time.Time, error) {
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if at, err := time.Parse(layout, strings.TrimSuffix(value, "Z")); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("has an expiry-time %q; want YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS", brief.Printable(value))
}

// needsTag reports whether the tag must be signed, needsCommit whether the commit must be.
func (v Verification) needsTag() bool {
	return v.mode == v1alpha1.VerifyTag || v.mode == v1alpha1.VerifyTagAndHEAD
}

func (v Verification) needsCommit() bool {
	return v.mode == v1alpha1.VerifyHEAD || v.mode == v1alpha1.VerifyTagAndHEAD
}

// checkMode refuses to verify a tag if the reference does not name one.
func (v Verification) checkMode(r v1alpha1.GitReference) error {
	tag := r.Commit == "" && (strings.HasPrefix(r.Name, tagPrefix) || r.Name == "" && (r.SemVer != "" || r.Tag != ""))
	if v.needsTag() && !tag {
		return fmt.Errorf("%w: verify.mode %s needs a tag; set ref.tag or ref.semver, or verify.mode HEAD", ErrInvalidReference, v.mode)
	}
	return nil
}

// errSHA1 means that the signature is of a SHA-1 hash, for which another text with the same hash can be made.
var errSHA1 = errors.New("with SHA-1")

// RefusedCommit is why a commit that the server delivered must not be used. It wraps
// ErrSignature or ErrNotFastForward.
type RefusedCommit struct {
	Revision Revision
	// Problem has message and hint.
	Problem problem.Problem
	kind    error
}

// Error returns the message and the hint.
func (r *RefusedCommit) Error() string { return r.kind.Error() + ": " + r.Problem.String() }

// Unwrap returns the kind.
func (r *RefusedCommit) Unwrap() error { return r.kind }

// verify checks the required signatures: of the commit, and of the tag want with the name ref that points to it.
func (v Verification) verify(p *pack, want plumbing.Hash, ref string, commit *object.Commit) error {
	refuse := func(what string, cause error) error {
		hint := "sign it with a key that spec.verify.secretRef has"
		if errors.Is(cause, errSHA1) {
			hint = "sign it with SHA-256 or a stronger hash"
		}
		return &RefusedCommit{
			Revision: Revision{Ref: ref, Commit: commit.Hash.String()}, kind: ErrSignature,
			Problem: problem.Problem{Message: what + " " + cause.Error(), Hint: hint},
		}
	}
	if v.needsTag() {
		tag := strings.TrimPrefix(ref, tagPrefix)
		if err := v.verifyTag(p, want, tag, commit.Hash); err != nil {
			return refuse("tag "+brief.Printable(tag), err)
		}
	}
	if v.needsCommit() {
		if err := v.verifyCommit(p, commit); err != nil {
			return refuse("commit "+commit.Hash.String()[:10], err)
		}
	}
	return nil
}

func (v Verification) verifyCommit(p *pack, commit *object.Commit) error {
	raw, err := p.raw(commit.Hash)
	if err != nil {
		return err
	}
	payload, signature, err := splitCommit(raw)
	if err != nil {
		return err
	}
	// The signed text must name the tree that is built, even if another parser reads it differently.
	if !bytes.HasPrefix(payload, []byte("tree "+commit.TreeHash.String()+"\n")) {
		return errors.New("does not begin with its tree")
	}
	return v.check(payload, signature)
}

func (v Verification) verifyTag(p *pack, hash plumbing.Hash, name string, commit plumbing.Hash) error {
	o, err := p.object(hash)
	if err != nil {
		return err
	}
	if o.Type() != plumbing.TagObject {
		return errors.New("is not annotated, so it cannot be signed")
	}
	raw, err := p.raw(hash)
	if err != nil {
		return err
	}
	// Otherwise the signature of one tag, under another name, would be valid for another version.
	if !bytes.HasPrefix(raw, fmt.Appendf(nil, "object %s\ntype commit\ntag %s\n", commit, name)) {
		return errors.New("was signed under another name, or for another object")
	}
	payload, signature := splitTag(raw)
	return v.check(payload, signature)
}

func (p *pack) raw(h plumbing.Hash) ([]byte, error) {
	o, err := p.object(h)
	if err != nil {
		return nil, err
	}
	r, err := o.Reader()
	if err != nil {
		return nil, corrupt(err)
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

// splitCommit returns the signed part of a commit, and the signature; "": there is none. The signature is the header
// gpgsig with its continuation lines, as git reads it.
func splitCommit(raw []byte) (payload []byte, signature string, err error) {
	const header = "gpgsig "
	var text strings.Builder
	inside, found := false, false
	for line := range bytes.Lines(raw) {
		switch {
		case string(line) == "\n":
			return append(payload, raw[len(payload)+text.Len():]...), undo(text.String(), header), nil
		case inside && line[0] == ' ':
			text.Write(line)
		case bytes.HasPrefix(line, []byte("gpgsig")):
			if found || !bytes.HasPrefix(line, []byte(header)) {
				return nil, "", errors.New("has more than one signature, or one of another hash")
			}
			inside, found = true, true
			text.Write(line)
		default:
			inside = false
			payload = append(payload, line...)
		}
	}
	return nil, "", errors.New("has no message")
}

// undo removes the header's name and the space before each of its other lines.
func undo(text, header string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, header), "\n ", "\n")
}

// splitTag returns the signed part of a tag, and the signature at its end; "": there is none.
func splitTag(raw []byte) (payload []byte, signature string) {
	at, read := len(raw), 0
	for line := range bytes.Lines(raw) {
		for _, begin := range []string{pgpSignature, sshSignature} {
			if bytes.HasPrefix(line, []byte(begin)) {
				at = read // the last signature counts
			}
		}
		read += len(line)
	}
	return raw[:at], string(raw[at:])
}

// check refuses a signature that none of the keys made.
func (v Verification) check(payload []byte, signature string) error {
	switch signature = strings.TrimSpace(signature); {
	case signature == "":
		return errors.New("is not signed")
	case strings.HasPrefix(signature, pgpSignature):
		return v.checkOpenPGP(payload, signature)
	case strings.HasPrefix(signature, sshSignature):
		return v.checkSSH(payload, signature)
	}
	return errors.New("is signed neither with OpenPGP nor with SSH")
}

// checkOpenPGP tries each key separately: if one of two copies of a key is revoked, the key is revoked.
func (v Verification) checkOpenPGP(payload []byte, signature string) error {
	config := &packet.Config{Time: v.now}
	unknown := errors.New("is signed with an OpenPGP key that is not in the Secret")
	result := unknown
	for _, entity := range v.pgp {
		block, err := armor.Decode(strings.NewReader(signature))
		if err != nil {
			return fmt.Errorf("has an OpenPGP signature that is not valid: %w", shown{err})
		}
		made, _, err := openpgp.VerifyDetachedSignature(openpgp.EntityList{entity}, bytes.NewReader(payload), block.Body, config)
		key := entity.PrimaryKey.KeyIdString()
		switch {
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
		case errors.Is(err, pgperrors.ErrKeyRevoked):
			return fmt.Errorf("is signed with the OpenPGP key %s, which is revoked", key)
		case errors.Is(err, pgperrors.ErrKeyExpired):
			return fmt.Errorf("is signed with the OpenPGP key %s, which has expired", key)
		case errors.Is(err, pgperrors.ErrSignatureExpired):
			return errors.New("has an OpenPGP signature that has expired")
		case err != nil:
			return fmt.Errorf("has an OpenPGP signature that is not valid: %w", shown{err})
		case made.Hash == crypto.SHA1: // weaker ones are not read
			return fmt.Errorf("has an OpenPGP signature %w", errSHA1)
		default:
			result = nil
		}
	}
	return result
}

func (v Verification) checkSSH(payload []byte, armored string) error {
	signature, err := sshsig.Unarmor([]byte(armored))
	if err != nil {
		return fmt.Errorf("has an SSH signature that is not valid: %w", shown{err})
	}
	i := slices.IndexFunc(v.ssh, func(s sshSigner) bool { return sameKey(s.key, signature.PublicKey) })
	if i < 0 {
		return fmt.Errorf("is signed with the SSH key %s, which is not in the Secret", ssh.FingerprintSHA256(signature.PublicKey))
	}
	for _, s := range v.ssh {
		if sameKey(s.key, signature.PublicKey) && !s.expires.IsZero() && !v.now().Before(s.expires) {
			return fmt.Errorf("is signed with the SSH key %s, which has expired", ssh.FingerprintSHA256(s.key))
		}
	}
	if signature.Signature.Format == ssh.KeyAlgoRSA {
		return fmt.Errorf("has an SSH signature %w", errSHA1)
	}
	if err := sshsig.Verify(bytes.NewReader(payload), signature, v.ssh[i].key, signature.HashAlgorithm, sshNamespace); err != nil {
		return fmt.Errorf("has an SSH signature that is not valid: %w", shown{err})
	}
	return nil
}
