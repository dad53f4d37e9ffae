package gitsource

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// keyPair makes a key with ssh-keygen, and returns both halves.
func keyPair(t *testing.T, args ...string) (private, public []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", append([]string{"-q", "-f", file}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %v: %v: %s", args, err, out)
	}
	read := func(name string) []byte {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	return read(file), read(file + ".pub")
}

// serveSSH starts OpenSSH's server for one test.
func serveSSH(t *testing.T, o gitserver.SSHOptions) *gitserver.SSH {
	t.Helper()
	o.Dir = t.TempDir()
	s, err := gitserver.StartSSH(o)
	if errors.Is(err, gitserver.ErrNoSSHD) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// knownHostsOf returns lines with the host keys of a server.
func knownHostsOf(t *testing.T, s *gitserver.SSH) string {
	t.Helper()
	lines, err := s.KnownHosts()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// sshSecret is a Secret as `flux create secret git` writes it.
func sshSecret(identity, public []byte, hosts string) map[string][]byte {
	return map[string][]byte{"identity": identity, "identity.pub": public, "known_hosts": []byte(hosts)}
}

// fetchSSH fetches main with a Secret.
func fetchSSH(t *testing.T, url string, keys map[string][]byte) (*Tree, error) {
	t.Helper()
	credentials, err := ParseCredentials(url, keys)
	if err != nil {
		return nil, err
	}
	return fetchMain(t.Context(), t, url, func(o *Options) { o.Credentials = credentials })
}

func TestSSH_FetchesWithEveryTypeOfKey(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	sha := h.commit("over ssh")
	for name, c := range map[string]struct {
		client   []string
		host     string
		password string
	}{
		"Ed25519":   {[]string{"-t", "ed25519", "-N", ""}, "ed25519", ""},
		"ECDSA":     {[]string{"-t", "ecdsa", "-b", "384", "-N", ""}, "ecdsa", ""},
		"RSA":       {[]string{"-t", "rsa", "-b", "2048", "-N", ""}, "rsa", ""},
		"RSA, PEM":  {[]string{"-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""}, "ed25519", ""},
		"encrypted": {[]string{"-t", "ed25519", "-N", canary}, "ed25519", canary},
	} {
		t.Run(name, func(t *testing.T) {
			private, public := keyPair(t, c.client...)
			s := serveSSH(t, gitserver.SSHOptions{AuthorizedKeys: string(public), HostKeys: []string{c.host}})
			keys := sshSecret(private, public, knownHostsOf(t, s))
			if c.password != "" {
				keys["password"] = []byte(c.password)
			}
			tree, err := fetchSSH(t, s.URL(h.Dir()), keys)
			if err != nil {
				t.Fatal(err)
			}
			if want := (Revision{Ref: "main", Commit: sha}); tree.Revision() != want || data(t, tree) != "over ssh" {
				t.Errorf("fetched %v, want %v", tree.Revision(), want)
			}
		})
	}
}

// sshWorld is a repository behind an SSH server, with the Secret that opens it.
func sshWorld(t *testing.T, o gitserver.SSHOptions) (history, *gitserver.SSH, map[string][]byte) {
	t.Helper()
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	private, public := keyPair(t, "-t", "ed25519", "-N", "")
	o.AuthorizedKeys = string(public)
	s := serveSSH(t, o)
	return h, s, sshSecret(private, public, knownHostsOf(t, s))
}

// TestSSH_RefusesAnotherHost: nothing is trusted on first use, and no file of the machine is
// asked.
func TestSSH_RefusesAnotherHost(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{HostKeys: []string{"ed25519", "ecdsa"}})
	own := string(keys["known_hosts"])
	host := "[127.0.0.1]:" + s.Addr()[strings.LastIndex(s.Addr(), ":")+1:]
	_, other := keyPair(t, "-t", "ed25519", "-N", "")
	_, rsa := keyPair(t, "-t", "rsa", "-b", "2048", "-N", "")
	ed25519, _, _ := strings.Cut(own, "\n")
	revoked := "@revoked * " + strings.SplitN(ed25519, " ", 2)[1] + "\n"
	for name, c := range map[string]struct {
		hosts string
		want  error
		text  string
	}{
		"another key":           {host + " " + string(other), ErrHostKey, "is not the one in known_hosts"},
		"another type of key":   {host + " " + string(rsa), ErrHostKey, "the server has no key of a type that known_hosts has"},
		"a revoked key":         {revoked + ed25519 + "\n", ErrHostKey, "is revoked in known_hosts"},
		"another host's key":    {strings.ReplaceAll(own, "127.0.0.1", "git.example.com"), ErrInvalidCredentials, "key known_hosts has no line for " + host},
		"the host without port": {strings.ReplaceAll(own, host, "127.0.0.1"), ErrInvalidCredentials, "key known_hosts has no line for " + host},
		"an excluded host":      {strings.ReplaceAll(own, host, "*,!"+host), ErrInvalidCredentials, "key known_hosts has no line for " + host},
		"nothing":               {"# none\n", ErrInvalidCredentials, "key known_hosts cannot be used: no line with a host and its key"},
		"no key":                {host + " ssh-ed25519 AAAA\n", ErrInvalidCredentials, "key known_hosts cannot be used: "},
		"an unknown marker":     {"@trusted " + own, ErrInvalidCredentials, "unknown marker @trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetchSSH(t, s.URL(h.Dir()), sshSecret(keys["identity"], nil, c.hosts))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}

// TestSSH_KnowsHostsAsOpenSSHDoes: hashed names, patterns and certificate authorities.
func TestSSH_KnowsHostsAsOpenSSHDoes(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{Authority: true})
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, keys["known_hosts"], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-H", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hashed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(hashed), "127.0.0.1") {
		t.Fatal("the names are not hashed")
	}
	authority, err := s.AuthorityLine()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		hosts string
		want  error
	}{
		"hashed names":                  {string(hashed), nil},
		"a pattern":                     {strings.ReplaceAll(string(keys["known_hosts"]), "[127.0.0.1]:", "[127.0.?.*]:"), nil},
		"a second key of the same type": {"* " + string(keys["identity.pub"]) + string(keys["known_hosts"]), nil},
		"an authority":                  {authority, nil},
		"an authority of other hosts":   {authority[:16] + "git.example.com," + authority[16:], nil},
		"a revoked authority":           {authority + "@revoked * " + strings.SplitN(authority, " ", 3)[2], ErrHostKey},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetchSSH(t, s.URL(h.Dir()), sshSecret(keys["identity"], nil, c.hosts))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestSSH_RefusesSecretsThatCannotWork(t *testing.T) {
	private, public := keyPair(t, "-t", "ed25519", "-N", "")
	encrypted, _ := keyPair(t, "-t", "ed25519", "-N", canary)
	short, _ := keyPair(t, "-t", "rsa", "-b", "1024", "-N", "")
	_, stranger := keyPair(t, "-t", "ed25519", "-N", "")
	hosts := "git.example.com " + string(public)
	for name, c := range map[string]struct {
		keys map[string][]byte
		want string
	}{
		"no identity":        {map[string][]byte{"known_hosts": []byte(hosts)}, "key identity is missing"},
		"no known_hosts":     {map[string][]byte{"identity": private}, "key known_hosts is missing"},
		"for https":          {map[string][]byte{"username": []byte("u"), "password": []byte(canary)}, "key identity is missing"},
		"no key":             {sshSecret([]byte(canary), nil, hosts), "key identity holds no private key in PEM"},
		"no password":        {sshSecret(encrypted, nil, hosts), "key identity is encrypted, and key password is missing"},
		"a wrong password":   {map[string][]byte{"identity": encrypted, "known_hosts": []byte(hosts), "password": []byte("x")}, "key identity cannot be decrypted with key password"},
		"a short RSA key":    {sshSecret(short, nil, hosts), "an RSA key has fewer than 2048 bits"},
		"another public key": {sshSecret(private, stranger, hosts), "key identity.pub is not the public key of identity"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCredentials("ssh://git@git.example.com/team/fleet", c.keys)
			if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Open(Options{URL: "git@git.example.com:team/fleet"}); !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), "set secretRef") {
		t.Errorf("without a Secret: got %v", err)
	}
}

// TestKnownHosts_WeakKeysAreNotUsed: those of other hosts, and revoked ones, are in many files, and do not matter.
func TestKnownHosts_WeakKeysAreNotUsed(t *testing.T) {
	private, good := keyPair(t, "-t", "ed25519", "-N", "")
	_, short := keyPair(t, "-t", "rsa", "-b", "1024", "-N", "")
	line := func(names string, key []byte) string { return names + " " + string(key) }
	for name, c := range map[string]struct{ hosts, want string }{
		"of another host":    {line("old.example.com", short) + line("git.example.com", good), ""},
		"revoked":            {line("@revoked *", short) + line("git.example.com", good), ""},
		"of this host, too":  {line("git.example.com", short) + line("git.example.com", good), ""},
		"of this host alone": {line("git.example.com", short) + line("old.example.com", good), "has no line for git.example.com with a key of Ed25519, ECDSA or RSA (2048 bits or more)"},
		// Files for newer clients have lines such as this one; the length and the name are those of a type to come.
		"of a type to come":   {"git.example.com ssh-new " + base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x07ssh-newkey")) + "\n" + line("git.example.com", good), ""},
		"with a long comment": {"@revoked old.example.com " + strings.TrimSpace(string(short)) + " lost by the former team in 2024\n" + "git.example.com " + strings.TrimSpace(string(good)) + " key of the forge since 2024\n", ""},
		"a line with no key":  {"# hosts\n\n" + line("git.example.com", good) + "old.example.com ssh-rsa AAAA\n", "key known_hosts cannot be used: line 4: "},
		"a line with a typo":  {line("@revokd git.example.com", good), "key known_hosts cannot be used: line 1: unknown marker @revokd"},
	} {
		t.Run(name, func(t *testing.T) {
			credentials, err := ParseCredentials("ssh://git@git.example.com/fleet", sshSecret(private, nil, c.hosts))
			if c.want != "" {
				if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]error{string(good): nil, string(short): ErrHostKey} {
				public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
				if err != nil {
					t.Fatal(err)
				}
				if err := credentials.ssh.hosts.check("git.example.com:22", nil, public); !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", public.Type(), err, want)
				}
			}
		})
	}
}

// TestKnownHosts_AnAuthorityMakesNoKeyStrong: an attacker who factors a short key can use its certificate as well.
func TestKnownHosts_AnAuthorityMakesNoKeyStrong(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", append([]string{"-q"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	public := func(file string) (ssh.PublicKey, string) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			t.Fatal(err)
		}
		return key, string(text)
	}
	run("-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "authority"))
	_, authority := public("authority.pub")
	hosts, err := parseKnownHosts([]byte("@cert-authority git.example.com " + authority))
	if err != nil {
		t.Fatal(err)
	}
	for bits, want := range map[string]error{"1024": ErrHostKey, "2048": nil} {
		run("-t", "rsa", "-b", bits, "-N", "", "-f", filepath.Join(dir, bits))
		run("-h", "-s", filepath.Join(dir, "authority"), "-I", "host", "-n", "git.example.com", filepath.Join(dir, bits))
		certificate, _ := public(bits + "-cert.pub")
		if err := hosts.check("git.example.com:22", nil, certificate); !errors.Is(err, want) {
			t.Errorf("%s bits: got %v, want %v", bits, err, want)
		}
	}
}

func TestSSH_NamesWhatTheServerRefuses(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	private, public := keyPair(t, "-t", "ed25519", "-N", "")
	_, err := fetchSSH(t, s.URL(h.Dir()), sshSecret(private, public, string(keys["known_hosts"])))
	if !errors.Is(err, ErrAuthentication) || !strings.Contains(err.Error(), "the server does not accept the key ssh-ed25519 SHA256:") {
		t.Errorf("an unknown key: got %v", err)
	}
	_, err = fetchSSH(t, s.URL(h.Dir()+"-gone"), keys)
	if !errors.Is(err, ErrRepositoryNotFound) || !strings.Contains(err.Error(), "does not appear to be a git repository") {
		t.Errorf("an unknown repository: got %v", err)
	}
	_, err = fetchMain(t.Context(), t, s.URL(h.Dir()), func(o *Options) {
		o.Credentials, _ = ParseCredentials(s.URL(h.Dir()), keys)
		o.Access = Access{}
	})
	if !errors.Is(err, ErrAddressDenied) {
		t.Errorf("an address of this machine: got %v", err)
	}
	empty, err := serve(t, gitserver.Options{}).Create("empty")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = fetchSSH(t, s.URL(empty.Dir()), keys); !errors.Is(err, ErrRefNotFound) || !strings.Contains(err.Error(), "the repository is empty") {
		t.Errorf("an empty repository: got %v", err)
	}
}

// TestSSH_FindsACommitBelowItsBranch: over SSH, every request needs a program of its own.
func TestSSH_FindsACommitBelowItsBranch(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	old := h.commit("old")
	for range deepenings[0] + 2 {
		h.write("between", nil)
	}
	url := s.URL(h.Dir())
	credentials, err := ParseCredentials(url, keys)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, url, v1alpha1.GitReference{Commit: old}, func(o *Options) { o.Credentials = credentials })
	tree, err := r.Fetch(t.Context(), Revision{Commit: old})
	if err != nil || data(t, tree) != "old" {
		t.Errorf("got %v", err)
	}
	_, err = open(t, url, v1alpha1.GitReference{Commit: strings.Repeat("0123456789", 4)}, func(o *Options) { o.Credentials = credentials }).
		Fetch(t.Context(), Revision{Commit: strings.Repeat("0123456789", 4)})
	if !errors.Is(err, ErrRefNotFound) {
		t.Errorf("an unknown commit: got %v", err)
	}
}

// TestSSH_BoundsBytesAndTime: limits hold for every transport.
func TestSSH_BoundsBytesAndTime(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	h.write("large", map[string]string{"noise": noise(3 << 20)})
	url := s.URL(h.Dir())
	credentials, err := ParseCredentials(url, keys)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fetchMain(t.Context(), t, url, func(o *Options) { o.Credentials, o.Limits.PackBytes = credentials, 1<<20 })
	if !errors.Is(err, ErrLimitExceeded) {
		t.Errorf("a large pack: got %v", err)
	}

	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	hosts := strings.ReplaceAll(string(keys["known_hosts"]), s.Addr()[strings.LastIndex(s.Addr(), ":"):], silent.Addr().String()[strings.LastIndex(silent.Addr().String(), ":"):])
	url = "ssh://git@" + silent.Addr().String() + "/fleet"
	if credentials, err = ParseCredentials(url, sshSecret(keys["identity"], nil, hosts)); err != nil {
		t.Fatal(err)
	}
	_, err = fetchMain(t.Context(), t, url, func(o *Options) { o.Credentials, o.Timeout = credentials, 200*time.Millisecond })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that says nothing: got %v", err)
	}
}

// listen opens a port for one test, answers each connection with a function of the test, and closes it.
func listen(t *testing.T, with func(net.Conn)) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		served.Wait()
	})
	served.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer func() { _ = client.Close() }()
				with(client)
			})
		}
	})
	return listener.Addr().String()
}

// fetchAt fetches from another address than the known one.
func fetchAt(t *testing.T, address, path string, keys map[string][]byte, timeout time.Duration) error {
	t.Helper()
	_, port, _ := strings.Cut(address, ":")
	known := regexp.MustCompile(`\]:\d+`).ReplaceAllString(string(keys["known_hosts"]), "]:"+port)
	login, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	url := "ssh://" + login.Username + "@" + address + path
	credentials, err := ParseCredentials(url, sshSecret(keys["identity"], nil, known))
	if err != nil {
		t.Fatal(err)
	}
	_, err = fetchMain(t.Context(), t, url, func(o *Options) { o.Credentials, o.Timeout = credentials, timeout })
	return err
}

// TestSSH_NamesTheEndOfAnAnswerWhereverItIs: a server that falls silent is a timeout, and one that
// ends is not, whether in the handshake, in the list of references or in the pack.
func TestSSH_NamesTheEndOfAnAnswerWhereverItIs(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	h.write("large", map[string]string{"noise": noise(200 << 10)})
	for _, most := range []int64{60, 1200, 2500, 2800, 3100, 3500, 100_000} {
		for name, c := range map[string]struct {
			timeout time.Duration
			want    *regexp.Regexp
		}{
			"silent": {time.Second, regexp.MustCompile("no complete answer within 1s")},
			"ended":  {time.Minute, regexp.MustCompile("the connection ended: EOF|corrupt answer: ")},
		} {
			t.Run(fmt.Sprintf("%s after %d bytes", name, most), func(t *testing.T) {
				t.Parallel()
				relay := listen(t, func(client net.Conn) {
					server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr())
					if err != nil {
						return
					}
					asked := make(chan struct{})
					go func() {
						defer close(asked)
						_, _ = io.Copy(server, client)
						_ = server.Close()
					}()
					_, _ = io.CopyN(client, server, most)
					if name == "ended" {
						_ = client.Close()
					}
					<-asked
				})
				if err := fetchAt(t, relay, h.Dir(), keys, c.timeout); err == nil || !c.want.MatchString(err.Error()) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		}
	}
}

func TestFirstBytes_KeepsNoMoreThanItsLimit(t *testing.T) {
	said := &firstBytes{}
	n, err := io.Copy(said, io.LimitReader(strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20)) // as a session copies it
	if err != nil || n != 1<<20 || len(said.String()) != saidBytes {
		t.Errorf("got %d of %d bytes, %v", len(said.String()), n, err)
	}
}

// TestSSH_EndsWithAServerThatTalksForEver: what a server may send besides the answer is bounded, or
// not kept.
func TestSSH_EndsWithAServerThatTalksForEver(t *testing.T) {
	private, public := keyPair(t, "-t", "ed25519", "-N", "")
	host, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	keys := sshSecret(private, nil, "[127.0.0.1]:22 "+string(public))
	const much = 8 << 20
	line := strings.Repeat("x", 200<<10)
	pour := func(write func(string) error) {
		for sent := 0; sent < much && write(line) == nil; sent += len(line) {
		}
	}
	onServer := func(client net.Conn, config *ssh.ServerConfig) {
		config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
		config.AddHostKey(host)
		_, channels, requests, err := ssh.NewServerConn(client, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for c := range channels {
			channel, asked, err := c.Accept()
			if err != nil {
				return
			}
			go func() {
				for request := range asked {
					_ = request.Reply(true, nil)
				}
			}()
			pour(func(s string) error {
				_, err := io.WriteString(channel.Stderr(), s)
				return err
			})
			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, 1})
			_ = channel.Close()
		}
	}
	for name, c := range map[string]struct {
		with func(net.Conn)
		want string
	}{
		"before the version": {func(client net.Conn) {
			pour(func(s string) error {
				_, err := io.WriteString(client, s)
				return err
			})
		}, "overflow reading version string"},
		"lines before the version": {func(client net.Conn) {
			pour(func(string) error {
				_, err := io.WriteString(client, strings.Repeat("x\r\n", 64<<10))
				return err
			})
		}, "overflow reading version string"},
		"before the login": {func(client net.Conn) {
			onServer(client, &ssh.ServerConfig{PreAuthConnCallback: func(c ssh.ServerPreAuthConn) { pour(c.SendAuthBanner) }})
		}, "the server ended git-upload-pack: xxx"},
		"on standard error": {func(client net.Conn) { onServer(client, &ssh.ServerConfig{}) }, "the server ended git-upload-pack: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fetchAt(t, listen(t, c.with), "/fleet", keys, time.Minute)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("got %.1000s, want %q", err, c.want)
			}
		})
	}
}

// TestSSH_ReadsTheShortForm: user@host:path names port 22, and a path below the home directory
// of the user unless it begins with a slash.
func TestSSH_ReadsTheShortForm(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	_, port, _ := strings.Cut(s.Addr(), ":")
	keys["known_hosts"] = []byte(strings.ReplaceAll(string(keys["known_hosts"]), "[127.0.0.1]:"+port, "127.0.0.1,[127.0.0.1]:"+port))
	url := s.User() + "@127.0.0.1:" + h.Dir()
	credentials, err := ParseCredentials(url, keys)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, url, branch("main"), func(o *Options) { o.Credentials = credentials })
	if r.endpoint.Port != 22 || r.endpoint.Path != h.Dir() {
		t.Errorf("got port %d and path %q", r.endpoint.Port, r.endpoint.Path)
	}
	r.endpoint.Port, err = strconv.Atoi(port) // only root can listen on 22
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context()); err != nil {
		t.Error(err)
	}
	for raw, want := range map[string]string{
		"git@git.example.com:team/fleet.git":             "team/fleet.git",
		"git@ssh.dev.azure.com:v3/org/project/fleet":     "v3/org/project/fleet",
		"ssh://git@git.example.com/~ana/fleet":           "~ana/fleet",
		"ssh://git.example.com:2222/team/it's a!.git":    "",
		"ssh://git.example.com:2222/team/it's-a!.git":    "/team/it's-a!.git",
		"git@git.example.com:-oProxyCommand=x":           "",
		"git@git.example.com:../fleet":                   "",
		"git@git.example.com:":                           "",
		"@git.example.com:fleet":                         "",
		"ssh://git:" + canary + "@git.example.com/fleet": "",
		"git:" + canary + "@git.example.com:fleet":       "",
	} {
		e, err := parseURL(raw)
		switch {
		case want == "" && (!errors.Is(err, ErrInvalidURL) || strings.Contains(err.Error(), canary)):
			t.Errorf("%s: got %v, want an invalid URL", raw, err)
		case want != "" && (err != nil || e.Path != want || e.Protocol != "ssh"):
			t.Errorf("%s: got %v and %v, want path %q", raw, e, err, want)
		}
	}
	if got, want := quoted("/it's a!"), `'/it'\''s a'\!''`; got != want {
		t.Errorf("quoted as %s, want %s", got, want)
	}
}
