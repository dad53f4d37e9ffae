package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
)

// Options say which registry to read and how.
type Options struct {
	// Host of the registry, with a port if it is not 443.
	Host string
	// Insecure reads the registry over plain http, which Access must allow.
	Insecure bool
	// Credentials of the registry; the zero value is anonymous.
	Credentials Credentials
	// Advice is how to give credentials to a registry that asks for them; "": those of an AddOnSource.
	Advice string
	// Proxy through which the registry is reached, with its credentials; nil: directly.
	Proxy *url.URL
	// Access has the permissions of the operator's flags.
	Access Access
	// Timeout of one call, DefaultTimeout if zero.
	Timeout time.Duration
	// Verification is which signatures a digest needs.
	Verification Verification
	// Room bounds the memory that all fetches of a process use together; nil: no bounds.
	Room Room
}

// Room gives out claims to memory. gitsource has one for all repositories.
type Room interface {
	// Claim returns a claim without a place. ctx ends a wait for a place; end ends the fetch.
	Claim(ctx context.Context, end func(error)) Claim
}

// Claim is the share of a room that one fetch uses.
type Claim interface {
	// Read reads from an answer, of which before bytes were read already.
	Read(before int64, read func() (int, error)) (int, error)
	// Turn waits until no other archive is being unpacked.
	Turn(ctx context.Context) error
	// Release frees the claim.
	Release()
}

// Registry reads one registry. It is safe for concurrent use.
type Registry struct {
	options   Options
	client    *client
	auth      *auth.Client
	redaction secret.Redaction
}

// Open checks the options; it does not connect. The error is ErrInvalidCredentials,
// ErrInvalidReference or ErrPlainHTTP.
func Open(o Options) (*Registry, error) {
	reference := registry.Reference{Registry: o.Host}
	if err := reference.ValidateRegistry(); err != nil {
		return nil, fmt.Errorf("%w: %q is not a host of a registry", ErrInvalidReference, brief.Printable(o.Host))
	}
	if o.Insecure && !o.Access.AllowHTTP {
		return nil, fmt.Errorf("%w: registry %s has insecure: true; use https, or let the operator run with --git-allow-http-credentials", ErrPlainHTTP, o.Host)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Room == nil {
		o.Room = unbounded{}
	}
	c, err := newClient(o, reference.Host())
	if err != nil {
		return nil, err
	}
	secrets := o.Credentials.secrets()
	if o.Proxy != nil && o.Proxy.User != nil {
		password, _ := o.Proxy.User.Password()
		secrets = append(secrets, secret.Text(password), secret.Text(o.Proxy.User.Username()+":"+password))
	}
	r := &Registry{options: o, client: c, redaction: secret.NewRedaction(secrets...)}
	r.auth = c.authorized(func(repository string) auth.Credential { return o.Credentials.of(o.Host, repository) })
	return r, nil
}

// Close closes idle connections.
func (r *Registry) Close() { r.client.transport.CloseIdleConnections() }

// session is one call, bounded by the timeout.
type session struct {
	*Registry
	remote *remote.Repository
	claim  Claim
	ctx    context.Context //nolint:containedctx // lives exactly as long as the call that made it
	cancel context.CancelCauseFunc
	free   func()
}

// errUnread is the cause of a session that ended because its deadline passed.
var errUnread = errors.New("no complete answer")

// connect begins a call about one repository of the registry. It does not connect.
func (r *Registry) connect(ctx context.Context, repository string) (*session, error) {
	reference := registry.Reference{Registry: r.options.Host, Repository: repository}
	if err := reference.ValidateRepository(); err != nil {
		return nil, fmt.Errorf("%w: %q is not a repository of a registry", ErrInvalidReference, brief.Printable(repository))
	}
	ctx, free := context.WithTimeoutCause(ctx, r.options.Timeout, errUnread)
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, repositoryKey{}, repository))
	s := &session{Registry: r, ctx: ctx, cancel: cancel, free: free}
	s.remote = &remote.Repository{
		Client: r.auth, Reference: reference, PlainHTTP: r.options.Insecure, MaxMetadataBytes: metadataBytes,
		TagListMaxPages: tagPages, ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest, dockerManifest},
	}
	s.claim = r.options.Room.Claim(ctx, cancel)
	return s, nil
}

func (s *session) close() {
	s.claim.Release()
	s.cancel(nil)
	s.free()
}

// dockerManifest is the manifest of Docker's registries before OCI.
const dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"

// content returns the manifest of a digest, after its signatures were verified.
func (s *session) content(digest string) (ocispec.Manifest, error) {
	if err := s.verify(digest); err != nil {
		return ocispec.Manifest{}, err
	}
	return s.manifest(digest)
}

// manifest returns what a digest or tag names.
func (s *session) manifest(reference string) (m ocispec.Manifest, err error) {
	descriptor, body, err := s.remote.FetchReference(s.ctx, reference)
	if err != nil {
		return m, s.explain("read "+s.name(reference), err)
	}
	text, err := s.read(body, descriptor, metadataBytes)
	if err != nil {
		return m, s.explain("read "+s.name(reference), err)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.MediaType != ocispec.MediaTypeImageManifest && m.MediaType != dockerManifest && m.MediaType != "" {
		return m, fmt.Errorf("%s: %w: it is not a manifest of a chart or an artifact", s.name(reference), ErrContent)
	}
	return m, nil
}

// blob returns what a descriptor of a manifest names.
func (s *session) blob(descriptor ocispec.Descriptor, most int64) ([]byte, error) {
	if descriptor.Size > most {
		return nil, fmt.Errorf("%s: %w: the archive has %d bytes, at most %d are read", s.name(descriptor.Digest.String()), ErrLimitExceeded, descriptor.Size, most)
	}
	if err := descriptor.Digest.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w: its manifest names a digest that is none", s.name(""), ErrContent)
	}
	body, err := s.remote.Blobs().Fetch(s.ctx, descriptor)
	if err != nil {
		return nil, s.explain("read "+s.name(descriptor.Digest.String()), err)
	}
	content, err := s.read(body, descriptor, most)
	if err != nil {
		return nil, s.explain("read "+s.name(descriptor.Digest.String()), err)
	}
	return content, nil
}

// read reads an answer to its end and compares it with its digest.
func (s *session) read(body io.ReadCloser, descriptor ocispec.Descriptor, most int64) ([]byte, error) {
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(io.LimitReader(&claimed{body: body, claim: s.claim}, min(most, descriptor.Size)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > most:
		return nil, final{fmt.Errorf("%w: the answer is longer than %d bytes", ErrLimitExceeded, most)}
	}
	sum := sha256.Sum256(content)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != descriptor.Digest.String() {
		return nil, final{fmt.Errorf("%w: %d bytes with the digest %s", ErrCorrupt, len(content), got)}
	}
	return content, nil
}

// name is a reference for messages.
func (s *session) name(reference string) string {
	r := s.remote.Reference
	r.Reference = reference
	return brief.Printable(r.String())
}

// explain turns an error of the transport into one of this package. It omits the texts of the
// server, because a server may repeat the request's headers.
func (s *session) explain(verb string, err error) error {
	fail := func(cause error) error { return fmt.Errorf("cannot %s: %w", verb, cause) }
	if ended, ok := errors.AsType[final](err); ok {
		return fail(s.redaction.Error(ended.error))
	}
	response, answered := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(context.Cause(s.ctx), errUnread):
		return fail(fmt.Errorf("no complete answer within %s: %w", s.options.Timeout, context.DeadlineExceeded))
	case s.ctx.Err() != nil:
		return fail(context.Cause(s.ctx))
	case errors.Is(err, errdef.ErrInvalidReference):
		return fail(fmt.Errorf("%w: it is neither a tag nor a digest", ErrInvalidReference))
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		advice := cmp.Or(s.options.Advice, "secretRef names a Secret with an entry for "+s.options.Host)
		return fail(fmt.Errorf("%w: the registry asks for credentials; %s", ErrAuthentication, advice))
	case errors.Is(err, errdef.ErrNotFound), answered && response.StatusCode == http.StatusNotFound:
		return fail(fmt.Errorf("%w: the registry answered 404", ErrNotFound))
	case answered && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden):
		return fail(fmt.Errorf("%w: %s answered %d%s", ErrAuthentication, s.host(response.URL.Host), response.StatusCode, s.elsewhere(response.URL)))
	case answered:
		return fail(fmt.Errorf("%s answered %d", s.host(response.URL.Host), response.StatusCode))
	}
	// Redact before the text is cut: half a password must not be shown either.
	return fail(shown{s.redaction.Error(err)})
}

// host is a host for messages. The registry chooses it and may have got the credentials.
func (s *session) host(name string) string { return brief.Printable(s.redaction.Text(name)) }

// elsewhere explains a refusal by a server that gets no credentials, or by a registry whose server of tokens gets none.
func (s *session) elsewhere(at *url.URL) string {
	if originOf(at) != s.client.origin {
		return ", which is not the registry itself and gets no credentials"
	}
	if issuer := s.client.withheld.Load(); issuer != nil {
		return "; the credentials were not sent, because the token server " + s.host(*issuer) + " is another host"
	}
	return ""
}

// claimed reads an answer within its share of the room.
type claimed struct {
	body  io.Reader
	claim Claim
	n     int64
}

func (c *claimed) Read(p []byte) (int, error) {
	n, err := c.claim.Read(c.n, func() (int, error) { return c.body.Read(p) })
	c.n += int64(n)
	return n, err
}

// unbounded is a room without bounds.
type unbounded struct{}

func (unbounded) Claim(context.Context, func(error)) Claim { return noClaim{} }

type noClaim struct{}

func (noClaim) Read(_ int64, read func() (int, error)) (int, error) { return read() }
func (noClaim) Turn(context.Context) error                          { return nil }
func (noClaim) Release()                                            {}
