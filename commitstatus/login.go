package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/githubapp"
)

// App is an installation of a GitHub App. Its tokens are valid for an hour, so each request uses the current one.
type App struct {
	Credentials *githubapp.Credentials
	Tokens      *githubapp.Tokens
}

// ActsAsApp reports whether a GitHub App can post to a kind of forge.
func ActsAsApp(kind string) bool { return providers()[kind].apps }

// NeedsApp reports whether only a GitHub App can post to a kind of forge.
func NeedsApp(kind string) bool { return providers()[kind].needsApp }

// validate refuses an App whose API is on another server than the address, because its tokens would be sent there.
func (a *App) validate(provider string, repo repository) error {
	api, err := url.Parse(repo.api)
	switch {
	case err != nil:
		return err
	case !ActsAsApp(provider):
		return fmt.Errorf("provider %q takes no GitHub App", provider)
	case !a.Credentials.Serves(api.Hostname()):
		return fmt.Errorf("the App is not of %s; correct the address or key %s", repo.host, githubapp.BaseURLKey)
	case a.Credentials.Scheme() != api.Scheme:
		return fmt.Errorf("key %s has %s, and the address %s", githubapp.BaseURLKey, a.Credentials.Scheme(), api.Scheme)
	}
	return nil
}

// login authenticates a client: with a token, or with tokens that it requests for an App.
type login struct {
	// field is the name of the header.
	field     string
	authorize func(token string) string
	token     Secret
	app       *App

	mu sync.Mutex
	// sent are the last tokens, the newest last. They are kept because answers may repeat their token.
	sent []Secret
}

// sentTokens is how many of the newest tokens are removed from texts. Few are enough: a request lasts seconds, and a
// token is used for an hour, unless it is refused.
const sentTokens = 4

// header returns the value of the header of the next request. The App's token may have to be requested first.
func (l *login) header(ctx context.Context, client *http.Client) (Secret, error) {
	token := l.token
	if l.app != nil {
		issued, err := l.app.Tokens.Token(ctx, client, l.app.Credentials)
		if err != nil {
			return "", notIssued(err)
		}
		token = issued.Text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.sent, token) {
		l.sent = append(l.sent[max(0, len(l.sent)+1-sentTokens):], token)
	}
	return Secret(l.authorize(string(token))), nil
}

// renew drops the token that the forge refused, and reports whether the next request will use another one.
func (l *login) renew() bool {
	if l.app == nil {
		return false
	}
	l.app.Tokens.Forget(l.app.Credentials)
	return true
}

// redact removes the tokens, and the headers that carried them, from a text.
func (l *login) redact(text string) string {
	l.mu.Lock()
	tokens := slices.Clone(l.sent)
	l.mu.Unlock()
	var secrets []Secret
	for _, token := range tokens {
		sent := l.authorize(string(token))
		credentials := sent[strings.LastIndex(sent, " ")+1:]
		_, password, _ := strings.Cut(string(token), ":")
		secrets = append(secrets, token, Secret(credentials), Secret(password))
	}
	return secret.NewRedaction(secrets...).Text(text)
}

// notIssued is the error if the App got no token. The status was not sent.
func notIssued(err error) *DeliveryError {
	if errors.Is(err, githubapp.ErrRefused) {
		return &DeliveryError{Reason: oneLine(err.Error()), Permanent: true, RetryAfter: lookAgain, Denied: TokenRefused, cause: err}
	}
	return &DeliveryError{Reason: oneLine(err.Error()), Everyone: true, cause: err}
}
