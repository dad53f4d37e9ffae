package gitsource

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// signingKey makes a key with ssh-keygen, and returns git's flags that sign with it.
func signingKey(t *testing.T, args ...string) (flags []string, public []byte) {
	t.Helper()
	private, public := keyPair(t, append(args, "-N", "")...)
	file := filepath.Join(t.TempDir(), "signing")
	if err := os.WriteFile(file, private, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + file}, public
}

// signed makes a signed commit without a change on main.
func (h history) signed(flags []string) string {
	h.t.Helper()
	sha := h.git(append(flags, "commit-tree", "-S", "-p", "refs/heads/main", "-m", "signed", "refs/heads/main^{tree}")...)
	h.git("update-ref", "refs/heads/main", sha)
	return sha
}

// rewritten stores a changed copy of a commit at the head of main.
func (h history) rewritten(sha string, change func(string) string) {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), "git", "-C", h.Dir(), "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	c.Stdin = strings.NewReader(change(h.git("cat-file", "commit", sha) + "\n"))
	out, err := c.Output()
	h.must(err)
	h.git("update-ref", "refs/heads/main", strings.TrimSpace(string(out)))
}

// entity makes an OpenPGP key.
func entity(t *testing.T, created time.Time, lifetime time.Duration) *openpgp.Entity {
	t.Helper()
	e, err := openpgp.NewEntity("Ana", "", "ana@example.com", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return created }, KeyLifetimeSecs: uint32(lifetime.Seconds()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// exported is the public half of a key, in armor.
func exported(t *testing.T, e *openpgp.Entity) []byte {
	t.Helper()
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// signedBy makes a commit that an OpenPGP key signed.
func (h history) signedBy(e *openpgp.Entity, at time.Time) {
	h.t.Helper()
	unsigned := h.git("commit-tree", "-p", "refs/heads/main", "-m", "to sign", "refs/heads/main^{tree}")
	h.rewritten(unsigned, func(raw string) string {
		var signature bytes.Buffer
		h.must(openpgp.ArmoredDetachSign(&signature, e, strings.NewReader(raw), &packet.Config{Time: func() time.Time { return at }}))
		return withSignature(raw, signature.String())
	})
}

// withSignature adds a signature to a commit, as git does.
func withSignature(raw, signature string) string {
	header, message, _ := strings.Cut(raw, "\n\n")
	return header + "\ngpgsig " + strings.ReplaceAll(strings.TrimSpace(signature), "\n", "\n ") + "\n\n" + message
}

// verifying fetches a reference that must be signed.
func (h history) verifying(mode v1alpha1.VerifyMode, ref v1alpha1.GitReference, keys map[string][]byte) error {
	h.t.Helper()
	v, err := ParseVerification(mode, keys, nil)
	h.must(err)
	r := open(h.t, h.URL(), ref, func(o *Options) { o.Verification = v })
	head, err := r.Resolve(h.t.Context())
	h.must(err)
	tree, err := r.Fetch(h.t.Context(), head)
	if err != nil {
		if refused, ok := errors.AsType[*RefusedCommit](err); !ok || refused.Revision != head || !errors.Is(err, ErrSignature) || tree != nil {
			h.t.Errorf("got %v about another commit than %v", err, head)
		}
		return err
	}
	tree.Close()
	return nil
}

func (h history) mustRefuse(err error, want string) {
	h.t.Helper()
	if !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), want) {
		h.t.Errorf("got %v, want a refusal with %q", err, want)
	}
}

func TestVerify_SSHSignaturesOfCommits(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	unsigned := h.commit("unsigned")
	flags, ana := signingKey(t, "-t", "ed25519")
	main, keys := branch("main"), map[string][]byte{"ana.sshpub": ana, "README": []byte("not a key")}
	h.mustRefuse(h.verifying("", main, keys), "commit "+unsigned[:10]+" is not signed; sign it with a key that spec.verify.secretRef has")

	sha := h.signed(flags)
	h.must(h.verifying(v1alpha1.VerifyHEAD, main, keys))
	for _, kind := range [][]string{{"-t", "ecdsa"}, {"-t", "rsa", "-b", "2048"}} {
		other, public := signingKey(t, kind...)
		h.signed(other)
		h.must(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"team.sshpub": append(public, ana...)}))
		h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, keys), "which is not in the Secret")
	}
	h.git("update-ref", "refs/heads/main", sha)
	expires := func(at string) map[string][]byte {
		return map[string][]byte{"ana.sshpub": []byte(`expiry-time="` + at + `" ` + string(ana))}
	}
	h.must(h.verifying(v1alpha1.VerifyHEAD, main, expires("29990101Z")))
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, expires("20200101")), "which has expired")

	h.rewritten(sha, func(raw string) string { return strings.Replace(raw, "signed\n", "signed, and changed\n", 1) })
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, keys), "has an SSH signature that is not valid")
	h.rewritten(sha, func(raw string) string {
		_, signature, _ := strings.Cut(raw, "gpgsig ")
		signature, _, _ = strings.Cut(signature, "\n\n")
		return strings.Replace(raw, "gpgsig ", "gpgsig "+signature+"\ngpgsig ", 1)
	})
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, keys), "has more than one signature")
}

// fidoKey signs as a security key does, whose key ssh-keygen -t ed25519-sk stores.
type fidoKey struct {
	public  ssh.PublicKey
	private ed25519.PrivateKey
}

const fidoApplication = "ssh:"

func newFIDOKey(t *testing.T) fidoKey {
	t.Helper()
	raw, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, raw, fidoApplication}))
	if err != nil {
		t.Fatal(err)
	}
	return fidoKey{public, private}
}

func (k fidoKey) PublicKey() ssh.PublicKey { return k.public }

func (k fidoKey) Sign(_ io.Reader, text []byte) (*ssh.Signature, error) {
	application, digest := sha256.Sum256([]byte(fidoApplication)), sha256.Sum256(text)
	touched := []byte{1, 0, 0, 0, 7} // the flag of a touch, and a counter
	signed := slices.Concat(application[:], touched, digest[:])
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, signed), Rest: touched}, nil
}

// TestVerify_KeysOfSecurityKeys: one of them in a Secret makes no other key unusable.
func TestVerify_KeysOfSecurityKeys(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	key := newFIDOKey(t)
	flags, ana := signingKey(t, "-t", "ed25519")
	keys := map[string][]byte{"team.sshpub": append(ssh.MarshalAuthorizedKey(key.public), ana...)}
	h.signed(flags)
	h.must(h.verifying(v1alpha1.VerifyHEAD, branch("main"), keys))
	unsigned := h.git("commit-tree", "-p", "refs/heads/main", "-m", "to sign", "refs/heads/main^{tree}")
	h.rewritten(unsigned, func(raw string) string {
		signature, err := sshsig.Sign(strings.NewReader(raw), key, sshsig.HashSHA512, sshNamespace)
		h.must(err)
		return withSignature(raw, string(sshsig.Armor(signature)))
	})
	h.must(h.verifying(v1alpha1.VerifyHEAD, branch("main"), keys))
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, branch("main"), map[string][]byte{"ana.sshpub": ana}), "which is not in the Secret")
	h.rewritten(h.git("rev-parse", "main"), func(raw string) string { return strings.Replace(raw, "to sign", "to steal", 1) })
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, branch("main"), keys), "has an SSH signature that is not valid")
}

func TestVerify_OpenPGPSignaturesOfCommits(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	now, main := time.Now(), branch("main")
	ana := entity(t, now.Add(-time.Hour), 0)
	keys := map[string][]byte{"ana.asc": exported(t, ana)}
	h.signedBy(ana, now)
	h.must(h.verifying(v1alpha1.VerifyHEAD, main, keys))

	other := entity(t, now.Add(-time.Hour), 0)
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"other.asc": exported(t, other)}), "is signed with an OpenPGP key that is not in the Secret")
	h.must(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"team.asc": append(exported(t, other), exported(t, ana)...)}))

	for _, name := range []string{"ana", "ana.pub", "pubring.gpg"} { // Flux reads each of them
		h.must(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{name: exported(t, ana), "README": []byte("not a key")}))
	}

	h.must(ana.RevokeKey(packet.KeyCompromised, "stolen", nil))
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"ana.asc": exported(t, ana)}), "which is revoked")
	keys["ana-revoked.asc"] = exported(t, ana)
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, keys), "which is revoked")

	expired := entity(t, now.Add(-48*time.Hour), 24*time.Hour)
	h.signedBy(expired, now.Add(-36*time.Hour))
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"expired.asc": exported(t, expired)}), "which has expired")

	h.signedBy(other, now)
	h.rewritten(h.git("rev-parse", "main"), func(raw string) string { return strings.Replace(raw, "to sign", "to steal", 1) })
	h.mustRefuse(h.verifying(v1alpha1.VerifyHEAD, main, map[string][]byte{"other.asc": exported(t, other)}), "has an OpenPGP signature that is not valid")
}

// TestVerify_OpenPGPSignaturesWithSHA1AreRefused: another commit can be made with the same hash. The functions of
// openpgp do not sign with it.
func TestVerify_OpenPGPSignaturesWithSHA1AreRefused(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	ana := entity(t, time.Now().Add(-time.Hour), 0)
	unsigned := h.git("commit-tree", "-p", "refs/heads/main", "-m", "to sign", "refs/heads/main^{tree}")
	for hash, want := range map[crypto.Hash]string{crypto.SHA1: "has an OpenPGP signature with SHA-1; sign it with SHA-256 or a stronger hash", crypto.SHA256: ""} {
		h.rewritten(unsigned, func(raw string) string {
			signature := packet.Signature{
				Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: ana.PrivateKey.PubKeyAlgo, Hash: hash,
				CreationTime: time.Now(), IssuerKeyId: &ana.PrimaryKey.KeyId,
			}
			sum := hash.New()
			_, _ = sum.Write([]byte(raw))
			h.must(signature.Sign(sum, ana.PrivateKey, &packet.Config{NonDeterministicSignaturesViaNotation: new(false)}))
			var text bytes.Buffer
			w, err := armor.Encode(&text, openpgp.SignatureType, nil)
			h.must(err)
			h.must(errors.Join(signature.Serialize(w), w.Close()))
			return withSignature(raw, text.String())
		})
		err := h.verifying(v1alpha1.VerifyHEAD, branch("main"), map[string][]byte{"ana.asc": exported(t, ana)})
		if want == "" {
			h.must(err)
		} else {
			h.mustRefuse(err, want)
		}
	}
}

// TestVerify_ReadsWhatGnuPGWrites: the programs that people sign with.
func TestVerify_ReadsWhatGnuPGWrites(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("no gpg on this machine")
	}
	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // the path of gpg-agent's socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "gpg-agent").Run() //nolint:noctx // the test's context has ended
		_ = os.RemoveAll(home)
	})
	gpg := func(args ...string) []byte {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "gpg", append([]string{"--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...).Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return out
	}
	gpg("--quick-generate-key", "ana@example.com", "ed25519", "sign", "1d")
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	h.signed([]string{"-c", "user.signingkey=ana@example.com"})
	h.git("-c", "user.signingkey=ana@example.com", "tag", "-s", "-m", "release", "v1.0.0", "refs/heads/main")
	keys := map[string][]byte{"ana.asc": gpg("--armor", "--export", "ana@example.com")}
	h.must(h.verifying(v1alpha1.VerifyTagAndHEAD, v1alpha1.GitReference{Tag: "v1.0.0"}, keys))
}

func TestVerify_Tags(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("unsigned")
	flags, ana := signingKey(t, "-t", "ed25519")
	keys := map[string][]byte{"ana.sshpub": ana}
	h.git("tag", "v0.1.0", "refs/heads/main")
	h.git("tag", "-a", "-m", "release", "v0.2.0", "refs/heads/main")
	h.git(append(flags, "tag", "-s", "-m", "release", "v1.0.0", "refs/heads/main")...)
	h.git("update-ref", "refs/tags/v2.0.0", h.git("rev-parse", "refs/tags/v1.0.0"))
	h.signed(flags)
	h.git(append(flags, "tag", "-s", "-m", "release", "v1.1.0", "refs/heads/main")...)
	h.git(append(flags, "tag", "-s", "-m", "of a tag", "v1.2.0", "v1.1.0")...)
	for tag, want := range map[string][2]string{
		"v0.1.0": {"tag v0.1.0 is not annotated, so it cannot be signed", "tag v0.1.0 is not annotated"},
		"v0.2.0": {"tag v0.2.0 is not signed", "tag v0.2.0 is not signed"},
		"v1.0.0": {"", " is not signed"},
		"v1.1.0": {"", ""},
		"v1.2.0": {"tag v1.2.0 was signed under another name, or for another object", "tag v1.2.0 was signed under"},
		"v2.0.0": {"tag v2.0.0 was signed under another name, or for another object", "tag v2.0.0 was signed under"},
	} {
		for i, mode := range []v1alpha1.VerifyMode{v1alpha1.VerifyTag, v1alpha1.VerifyTagAndHEAD} {
			for _, ref := range []v1alpha1.GitReference{{Tag: tag}, {SemVer: tag}, {Name: "refs/tags/" + tag}} {
				switch err := h.verifying(mode, ref, keys); want[i] {
				case "":
					if err != nil {
						t.Errorf("%s, %s: %v", tag, mode, err)
					}
				default:
					h.mustRefuse(err, want[i])
				}
			}
		}
	}
	v, err := ParseVerification(v1alpha1.VerifyTag, keys, nil)
	h.must(err)
	_, err = Open(Options{URL: h.URL(), Reference: branch("main"), Verification: v})
	if !errors.Is(err, ErrInvalidReference) || !strings.Contains(err.Error(), "verify.mode Tag needs a tag") {
		t.Errorf("a branch: got %v", err)
	}
}

func TestParseVerification_NamesTheKeyThatIsWrong(t *testing.T) {
	_, ana := keyPair(t, "-t", "ed25519", "-N", "")
	_, short := keyPair(t, "-t", "rsa", "-b", "1024", "-N", "")
	for name, c := range map[string]struct {
		key, value, want string
	}{
		"no key":        {"note", "x", "no OpenPGP key (NAME.asc) and no SSH key (NAME.sshpub)"},
		"no OpenPGP":    {"ana.asc", canary, "key ana.asc holds no OpenPGP public key"},
		"half OpenPGP":  {"ana.asc", pgpKeyBlock + "\n" + canary, "key ana.asc holds an OpenPGP key that cannot be read"},
		"no SSH":        {"ana.sshpub", canary, "key ana.sshpub holds a line that is not an SSH public key"},
		"a short key":   {"ana.sshpub", string(short), "an RSA key has fewer than 2048 bits"},
		"an option":     {"ana.sshpub", "cert-authority " + string(ana), "has the option cert-authority, which means nothing here"},
		"an expiry":     {"ana.sshpub", `expiry-time="tomorrow" ` + string(ana), "want YYYYMMDD"},
		"only comments": {"ana.sshpub", "# none\n", "no OpenPGP key (NAME.asc) and no SSH key (NAME.sshpub)"},
		"half a key":    {"ana", pgpKeyBlock + "\n" + canary, "key ana holds an OpenPGP key that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseVerification("", map[string][]byte{c.key: []byte(c.value)}, nil)
			if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzSplit: the signature of a commit and of a tag is all that the signed text lacks.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("tree 1\ngpgsig -----BEGIN\n a\n \n b\nauthor x\n\nmessage\ngpgsig no\n"))
	f.Add([]byte("tree 1\ngpgsig-sha256 x\n\nm"))
	f.Add([]byte("object 1\n\nmessage\n-----BEGIN SSH SIGNATURE-----\nx\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if payload, signature, err := splitCommit(raw); err == nil {
			headers, _, _ := bytes.Cut(append([]byte("\n"), payload...), []byte("\n\n"))
			if (signature == "") != bytes.Equal(payload, raw) || bytes.Contains(headers, []byte("\ngpgsig")) {
				t.Errorf("%q: %q and %q", raw, payload, signature)
			}
		}
		if payload, signature := splitTag(raw); string(payload)+signature != string(raw) {
			t.Errorf("%q: %q and %q", raw, payload, signature)
		}
	})
}
