package githubapp

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
)

const (
	// assertionLife is how long a JWT is valid; GitHub allows 10 minutes.
	assertionLife = 9 * time.Minute
	// skew is how far the clock of the server may be behind.
	skew = time.Minute
	// early is how long before its end a token is replaced, so that none ends during a fetch.
	early = 5 * time.Minute
	// answerBytes bounds an answer, messageLength what is shown of it.
	answerBytes   = 64 << 10
	messageLength = 200
	// kept bounds how many tokens are in memory.
	kept = 1000
)

// ErrRefused is returned if GitHub does not give a token to the App: the key, the App or the installation is wrong,
// or was removed.
var ErrRefused = errors.New("GitHub refuses a token")

// Token acts for an installation until it expires.
type Token struct {
	Text    secret.Text
	Expires time.Time
}

// Username is the user with which a token authenticates to Git over https.
const Username = "x-access-token"

// Tokens are the tokens of one process. Use New; it is safe for concurrent use.
type Tokens struct {
	now func() time.Time

	mu   sync.Mutex
	have map[[sha256.Size]byte]Token
}

// New returns an empty store. now is the system's clock if nil.
func New(now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{now: now, have: map[[sha256.Size]byte]Token{}}
}

// Token returns a token of the installation: the one in memory, or a new one that the client
// requests. The error is ErrRefused, or one of the connection. It shows neither key nor token.
func (t *Tokens) Token(ctx context.Context, client *http.Client, c *Credentials) (Token, error) {
	t.mu.Lock()
	token, ok := t.have[c.identity]
	t.mu.Unlock()
	if ok && t.now().Before(token.Expires.Add(-early)) {
		return token, nil
	}
	token, err := t.request(ctx, client, c)
	if err != nil {
		return Token{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for identity, old := range t.have {
		if len(t.have) >= kept || !t.now().Before(old.Expires) {
			delete(t.have, identity)
		}
	}
	t.have[c.identity] = token
	return token, nil
}

// Forget drops the installation's token, because a server refused it.
func (t *Tokens) Forget(c *Credentials) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.have, c.identity)
}

func (t *Tokens) request(ctx context.Context, client *http.Client, c *Credentials) (Token, error) {
	assertion, err := c.assertion(t.now())
	if err != nil {
		return Token{}, err
	}
	direct := *client // a redirect would take the assertion elsewhere
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	installation := c.installationID
	if c.owner != "" {
		if installation, err = c.find(ctx, &direct, assertion); err != nil {
			return Token{}, err
		}
	}
	var issued struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := c.ask(ctx, &direct, assertion, http.MethodPost, &issued, "app", "installations", installation, "access_tokens"); err != nil {
		return Token{}, err
	}
	if issued.Token == "" || issued.ExpiresAt.IsZero() {
		return Token{}, fmt.Errorf("cannot ask %s for a token: it answers without one", c.base.Host)
	}
	return Token{Text: secret.Text(issued.Token), Expires: issued.ExpiresAt}, nil
}

// find returns the number of the owner's installation. An organization and a user have an endpoint each.
func (c *Credentials) find(ctx context.Context, client *http.Client, assertion string) (string, error) {
	var found struct {
		ID uint64 `json:"id"`
	}
	err := c.ask(ctx, client, assertion, http.MethodGet, &found, "orgs", c.owner, "installation")
	if errors.Is(err, ErrRefused) {
		err = c.ask(ctx, client, assertion, http.MethodGet, &found, "users", c.owner, "installation")
	}
	return strconv.FormatUint(found.ID, 10), err
}

// ask makes a request with the assertion, and decodes the answer.
func (c *Credentials) ask(ctx context.Context, client *http.Client, assertion, method string, out any, path ...string) error {
	fail := func(err error) error { return fmt.Errorf("cannot ask %s for a token: %w", c.base.Host, err) }
	request, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path...).String(), http.NoBody)
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Authorization", "Bearer "+assertion)
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	request.Header.Set("User-Agent", "addonflow")
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return fail(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return fail(err)
	}
	switch status := response.StatusCode; {
	case (status == http.StatusOK || status == http.StatusCreated) && json.Unmarshal(answer, out) == nil:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		var body struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(answer, &body) // a proxy may have answered
		said := brief.Line(secret.NewRedaction(secret.Text(assertion)).Text(body.Message), messageLength)
		return fmt.Errorf("%w: App %s, installation %s: %s answers %d %s", ErrRefused, c.appID, cmp.Or(c.installationID, "of "+c.owner), c.base.Host, status, said)
	default:
		return fmt.Errorf("cannot ask %s for a token: it answers %d", c.base.Host, status)
	}
}

// assertion is the JWT with which the App asks for a token.
func (c *Credentials) assertion(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-skew).Unix(), "exp": now.Add(assertionLife).Unix(), "iss": c.appID,
	})
	if err != nil {
		return "", fmt.Errorf("cannot make a token request: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign a token request: %w", err)
	}
	return text + "." + encode(signature), nil
}
