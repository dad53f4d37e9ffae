package gitsource

import (
	"bytes"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of known_hosts
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/addonflow/addonflow/api/brief"
)

// Markers of a line of known_hosts.
const (
	authorityMarker = "cert-authority"
	revokedMarker   = "revoked"
)

// rsaBits is the length of the shortest RSA key that is used, of a host or of a client.
const rsaBits = 2048

// knownHosts are the lines of a known_hosts file, as sshd(8) describes it. The knownhosts of x/crypto is not used,
// because it needs a file, and nothing is written to disk here.
type knownHosts []knownHost

type knownHost struct {
	marker   string
	patterns []string
	key      ssh.PublicKey
}

// parseKnownHosts reads a file with at least one key. An invalid line is an error. A key of an unknown type is
// ignored: files for newer clients have such keys, and no server can use them with this client.
func parseKnownHosts(file []byte) (knownHosts, error) {
	var known knownHosts
	for i, line := range bytes.Split(file, []byte("\n")) {
		marker, patterns, key, _, _, err := ssh.ParseKnownHosts(withoutComment(line))
		switch {
		case errors.Is(err, io.EOF): // empty, or a comment
			continue
		case err != nil && strings.Contains(err.Error(), "unknown key algorithm"): // x/crypto has no error to match
			continue
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		case marker != "" && marker != authorityMarker && marker != revokedMarker:
			return nil, fmt.Errorf("line %d: unknown marker @%s", i+1, brief.Printable(marker))
		}
		known = append(known, knownHost{marker: marker, patterns: patterns, key: key})
	}
	if len(known) == 0 {
		return nil, errors.New("no line with a host and its key")
	}
	return known, nil
}

// withoutComment returns a line without the comment after its key, which x/crypto refuses if it has more than two words.
func withoutComment(line []byte) []byte {
	fields, most := bytes.Fields(line), 3
	if bytes.HasPrefix(line, []byte("@")) {
		most = 4
	}
	return bytes.Join(fields[:min(len(fields), most)], []byte(" "))
}

// checkKey refuses keys that are too weak: DSA, and short RSA keys.
func checkKey(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return nil
	case ssh.KeyAlgoRSA:
		wrapped, _ := key.(ssh.CryptoPublicKey)
		if public, ok := wrapped.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() >= rsaBits {
			return nil
		}
		return fmt.Errorf("an RSA key has fewer than %d bits", rsaBits)
	}
	return fmt.Errorf("keys of type %s are not supported; use Ed25519, ECDSA or RSA", brief.Printable(key.Type()))
}

// of returns the lines for the host and port of an address. Lines with a weak key are left out, because files can
// contain old keys.
func (k knownHosts) of(address string) knownHosts {
	name := strings.ToLower(knownhosts.Normalize(address))
	var lines knownHosts
	for _, line := range k {
		if line.marker != revokedMarker && line.matches(name) && checkKey(line.key) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// matches reports whether the line is about a host. A pattern that begins with ! excludes it.
func (l knownHost) matches(name string) bool {
	found := false
	for _, pattern := range l.patterns {
		if rest, ok := strings.CutPrefix(pattern, "!"); ok {
			if matchesPattern(rest, name) {
				return false
			}
			continue
		}
		found = found || matchesPattern(pattern, name)
	}
	return found
}

// matchesPattern compares a name with a pattern with * and ?, or with a hashed name.
func matchesPattern(pattern, name string) bool {
	if fields := strings.Split(pattern, "|"); len(fields) == 4 && fields[0] == "" && fields[1] == "1" {
		salt, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil {
			return false
		}
		sum, err := base64.StdEncoding.DecodeString(fields[3])
		if err != nil {
			return false
		}
		mac := hmac.New(sha1.New, salt)
		_, _ = mac.Write([]byte(name))
		return hmac.Equal(mac.Sum(nil), sum)
	}
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(strings.ToLower(pattern)))
	matched, err := regexp.MatchString("^"+expression+"$", name)
	return err == nil && matched
}

// algorithms returns the algorithms of the known keys of an address. The client requests one of these from the
// server, because the server may have further keys.
func (k knownHosts) algorithms(address string) []string {
	var all []string
	for _, line := range k.of(address) {
		switch {
		case line.marker == authorityMarker:
			all = append(all, ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
				ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
		case line.key.Type() == ssh.KeyAlgoRSA:
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			all = append(all, line.key.Type())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// check is an ssh.HostKeyCallback. The error is ErrHostKey.
func (k knownHosts) check(address string, remote net.Addr, key ssh.PublicKey) error {
	checker := ssh.CertChecker{
		IsHostAuthority: func(authority ssh.PublicKey, address string) bool {
			return k.has(address, authorityMarker, authority)
		},
		IsRevoked: func(c *ssh.Certificate) bool { return k.revokes(c.Key) || k.revokes(c.SignatureKey) },
		HostKeyFallback: func(address string, _ net.Addr, key ssh.PublicKey) error {
			switch {
			case k.revokes(key):
				return errors.New("is revoked in known_hosts")
			case !k.has(address, "", key):
				return errors.New("is not the one in known_hosts; if the server has a new key, compare it with what its " +
					"administrators publish, and add it")
			}
			return nil
		},
	}
	err := checker.CheckHostKey(address, remote, key)
	if certificate, ok := key.(*ssh.Certificate); ok && err == nil { // an authority does not make a weak key strong
		err = checkKey(certificate.Key)
	}
	if err != nil {
		return fmt.Errorf("%w: the key of %s (%s %s) %w", ErrHostKey, brief.Printable(address), brief.Printable(key.Type()), ssh.FingerprintSHA256(key), err)
	}
	return nil
}

func (k knownHosts) has(address, marker string, key ssh.PublicKey) bool {
	return slices.ContainsFunc(k.of(address), func(l knownHost) bool { return l.marker == marker && sameKey(l.key, key) })
}

// revokes reports whether the key is revoked, for any host.
func (k knownHosts) revokes(key ssh.PublicKey) bool {
	return slices.ContainsFunc(k, func(l knownHost) bool { return l.marker == revokedMarker && sameKey(l.key, key) })
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }
