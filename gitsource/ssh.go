package gitsource

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/dial"
)

const (
	defaultUser = "git"
	defaultPort = 22
	// uploadPack is the program that serves a repository.
	uploadPack = "git-upload-pack"
	// saidBytes is how much of the server's error messages is kept.
	saidBytes = 4 << 10
)

// sshKeys are the credentials for SSH, parsed. A Secret that cannot be used is refused before
// the server is called.
type sshKeys struct {
	identity ssh.Signer
	hosts    knownHosts
}

// sshGit is the SSH side of a session. Unlike go-git's transport, it reads no file and no variable of the
// environment, checks the address that it dials, and ends with its context.
type sshGit struct {
	*exchange
	endpoint transport.Endpoint
	keys     *sshKeys
	access   Access
	proxy    *Proxy

	connection *ssh.Client
	// listed is the program that has listed its references and waits for a request.
	listed *program
}

// program is one git-upload-pack on the server.
type program struct {
	session *ssh.Session
	in      io.WriteCloser
	out     *bufio.Reader
	said    *firstBytes
}

func (p *program) Close() error { return p.session.Close() }

// AdvertisedReferencesContext connects and lists the references.
func (g *sshGit) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if err := g.connect(ctx); err != nil {
		return nil, err
	}
	p, refs, err := g.start(ctx)
	if err != nil {
		return nil, err
	}
	g.listed = p
	return refs, nil
}

// address is the host and port to dial, as known_hosts names it.
func address(e transport.Endpoint) string {
	return net.JoinHostPort(e.Host, strconv.Itoa(cmp.Or(e.Port, defaultPort)))
}

// connect opens the connection. The connection ends with ctx.
func (g *sshGit) connect(ctx context.Context) error {
	at := address(g.endpoint)
	server, err := g.access.dial(ctx, g.proxy, at)
	if errors.Is(err, dial.ErrLocal) {
		return g.stop(fmt.Errorf("%w: %s", ErrAddressDenied, denied(at, g.proxy)))
	}
	if errors.Is(err, dial.ErrProxyCredentials) {
		return g.stop(unauthorized(g.proxy))
	}
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	conn := watched{server, g.exchange}
	c, channels, requests, err := ssh.NewClientConn(conn, at, &ssh.ClientConfig{
		User: cmp.Or(g.endpoint.User, defaultUser),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(g.keys.identity)},
		HostKeyCallback: func(address string, remote net.Addr, key ssh.PublicKey) error {
			if err := g.keys.hosts.check(address, remote, key); err != nil {
				return g.stop(err)
			}
			return nil
		},
		HostKeyAlgorithms: g.keys.hosts.algorithms(at),
	})
	if err != nil {
		_ = conn.Close()
		return g.refusal(err)
	}
	g.connection = ssh.NewClient(c, channels, requests)
	return nil
}

// refusal names the two failures of a handshake that the user can fix.
func (g *sshGit) refusal(err error) error {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &negotiation) && strings.Contains(err.Error(), "host key"):
		return g.stop(fmt.Errorf("%w: the server has no key of a type that known_hosts has (%s)", ErrHostKey,
			strings.Join(g.keys.hosts.algorithms(address(g.endpoint)), ", ")))
	case strings.Contains(err.Error(), "unable to authenticate"): // x/crypto has no error to match
		key := g.keys.identity.PublicKey()
		return g.stop(fmt.Errorf("%w: the server does not accept the key %s %s of user %s", ErrAuthentication,
			key.Type(), ssh.FingerprintSHA256(key), brief.Printable(cmp.Or(g.endpoint.User, defaultUser))))
	}
	return err
}

// start starts the program on the server and reads its references.
func (g *sshGit) start(ctx context.Context) (*program, *packp.AdvRefs, error) {
	session, err := g.connection.NewSession()
	if err != nil {
		return nil, nil, err
	}
	p := &program{session: session, said: &firstBytes{}}
	session.Stderr = p.said
	refs, err := g.list(ctx, p)
	if err != nil {
		_ = p.Close()
		return nil, nil, err
	}
	return p, refs, nil
}

func (g *sshGit) list(ctx context.Context, p *program) (*packp.AdvRefs, error) {
	var err error
	if p.in, err = p.session.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.session.Start(uploadPack + " " + quoted(g.endpoint.Path)); err != nil {
		return nil, err
	}
	if err := g.checkFormat(firstLine(p.out)); err != nil {
		return nil, err
	}
	refs := packp.NewAdvRefs()
	err = refs.Decode(g.bound(p.out, p, listAnswer))
	switch {
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, g.ended(ctx, p)
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// firstLine returns the start of the first packet. It does not wait for more bytes than the packet has.
func firstLine(r *bufio.Reader) []byte {
	length, err := r.Peek(flushLength)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(string(length), 16, 16)
	if err != nil {
		return nil
	}
	line, _ := r.Peek(min(int(n), sha256Length))
	return line
}

// notFound matches the texts of forges that do not have a repository, or hide it.
var notFound = regexp.MustCompile(`(?i)not found|does not appear to be a git repository|could not be found|does not exist|cannot find|no such`)

// ended is the error of a program that ended before it listed any reference. Its reason is on the standard error.
func (g *sshGit) ended(ctx context.Context, p *program) error {
	err := p.session.Wait()
	said := strings.TrimSpace(p.said.String())
	switch {
	case ctx.Err() != nil, said == "" && g.lost() != nil: // the connection ended, not the program
		return err
	case said == "":
		return g.stop(fmt.Errorf("the server ended %s without a message: %w", uploadPack, cmp.Or(err, io.ErrUnexpectedEOF)))
	case notFound.MatchString(said):
		return g.stop(fmt.Errorf("%w: %w", ErrRepositoryNotFound, shown{errors.New(said)}))
	}
	return g.stop(fmt.Errorf("the server ended %s: %w", uploadPack, shown{errors.New(said)}))
}

// UploadPack sends one request. Over SSH a program answers only one request, so a second request starts another
// program.
func (g *sshGit) UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	p := g.listed
	g.listed = nil
	if p == nil {
		var err error
		if p, _, err = g.start(ctx); err != nil {
			return nil, err
		}
	}
	var text bytes.Buffer
	if err := encode(&text, request); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	// A server that refuses may end before it has read the whole request. Then its answer counts.
	_, _ = p.in.Write(text.Bytes())
	_ = p.in.Close()
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(g.bound(p.out, p, packAnswer)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return response, nil
}

// encode writes a request as git-upload-pack reads it.
func encode(w io.Writer, request *packp.UploadPackRequest) error {
	if err := request.UploadRequest.Encode(w); err != nil {
		return err
	}
	if err := request.UploadHaves.Encode(w, false); err != nil {
		return err
	}
	return pktline.NewEncoder(w).EncodeString("done\n")
}

func (g *sshGit) Close() error {
	if g.connection == nil {
		return nil
	}
	return g.connection.Close()
}

// quoted is a path as an argument for the shell on the server, quoted like git does.
func quoted(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// watched is the connection of an exchange, and learns why the connection ended. x/crypto and go-git do not report
// the cause.
type watched struct {
	net.Conn
	*exchange
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.lose(err)
	}
	return n, err
}

// firstBytes keeps the first bytes that are written to it. The buffer is a field, because io.Copy would use its
// ReadFrom, which keeps all bytes.
type firstBytes struct{ kept bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.kept.Write(p[:min(len(p), saidBytes-f.kept.Len())])
	return len(p), nil
}

func (f *firstBytes) String() string { return f.kept.String() }
