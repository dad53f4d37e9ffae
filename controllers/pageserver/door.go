package pageserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Access is the right to get objects of a kind: one object by name, all of a namespace, or all.
type Access struct{ Group, Resource, Namespace, Name string }

// Viewer is the user of a request for a page.
type Viewer struct {
	// Name of the user; "": the user of the kubeconfig.
	Name string
	// May reports whether the viewer has a right. The error means that the right could not be checked.
	May func(context.Context, Access) (bool, error)
}

// Errors of a Door.
var (
	// ErrLogin means that the request does not identify the viewer.
	ErrLogin = errors.New("log in first")
	// ErrBusy means that too many tokens are being reviewed.
	ErrBusy = errors.New("too many logins at once; try again in a minute")
)

// Door identifies the viewer of a request.
type Door interface {
	// Enter returns the viewer, or ErrLogin, or ErrBusy, or the error of a review.
	Enter(r *http.Request) (*Viewer, error)
	// Login checks a secret that the user entered, and sets the cookie of the viewer. It returns ErrLogin if the
	// secret is wrong.
	Login(w http.ResponseWriter, r *http.Request, secret string) error
	// Logout removes the cookie.
	Logout(w http.ResponseWriter, r *http.Request)
}

// LocalDoor accepts one user, who knows a key. The objects are read with the user's own credentials, so the hub
// itself refuses objects that the user may not get.
type LocalDoor struct{ key string }

// NewLocalDoor makes a key. It is unknown to other users of the machine, and to other sites that the user's browser
// visits.
func NewLocalDoor() LocalDoor { return LocalDoor{rand.Text()} }

// Key returns the key that Login expects.
func (d LocalDoor) Key() string { return d.key }

// localCookie is the name of the cookie with the key. A browser accepts the cookie without TLS only if it is not
// Secure. A browser sends the cookies of a host to all of its ports, so the name contains the port: another door has
// another key.
func localCookie(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "addonflow-key"
	}
	return "addonflow-key-" + port
}

// Enter accepts a request with the key and a loopback name as host. Another site can point its own name at this
// machine; such a request is refused.
func (d LocalDoor) Enter(r *http.Request) (*Viewer, error) {
	if !loopback(r.Host) {
		return nil, ErrLogin
	}
	cookie, err := r.Cookie(localCookie(r))
	if err != nil || !d.fits(cookie.Value) {
		return nil, ErrLogin
	}
	return &Viewer{May: func(context.Context, Access) (bool, error) { return true, nil }}, nil
}

func (d LocalDoor) fits(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(d.key)) == 1
}

// Login sets the cookie.
func (d LocalDoor) Login(w http.ResponseWriter, r *http.Request, secret string) error {
	if !loopback(r.Host) || !d.fits(secret) {
		return ErrLogin
	}
	http.SetCookie(w, &http.Cookie{Name: localCookie(r), Value: d.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // no TLS on loopback
	return nil
}

// Logout removes the cookie.
func (d LocalDoor) Logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: localCookie(r), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // no TLS on loopback
}

// loopback reports whether a request was sent to this machine by a loopback name.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || address != nil && address.IsLoopback()
}

const (
	// tokenCookie: a browser sends it over TLS only, and to this host only.
	tokenCookie = "__Host-addonflow-token" //nolint:gosec // the name of a cookie
	// tokenLimit is the size of a cookie that every browser accepts, minus its name and attributes.
	tokenLimit = 3800
	// remembered is how long the result of a review is used. A withdrawn right or token is valid for this time at
	// most.
	remembered = 15 * time.Second
	// answersKept is how many results are kept in memory.
	answersKept = 20000
)

// Headers of a proxy that authenticates users; Kubernetes defines the names.
const (
	proxyUser  = "X-Remote-User"
	proxyGroup = "X-Remote-Group"
)

// authenticated is the group of all authenticated users.
const authenticated = "system:authenticated"

// TokenDoor reviews tokens and rights on the hub.
type TokenDoor struct {
	hub     client.Client
	limiter *rate.Limiter
	// users and may are the valid results of reviews: users by the sum of their token, and rights.
	users, may *cache.LRUExpireCache
	// known are the sums of tokens that were valid.
	known *lru.Cache
}

// NewTokenDoor returns a door that creates TokenReviews and SubjectAccessReviews on the hub. A proxy may name the
// user in headers if its client certificate was verified. The server verifies the certificate with the authority
// of the TLS configuration.
func NewTokenDoor(hub client.Client, passive clock.PassiveClock) *TokenDoor {
	return &TokenDoor{
		hub: hub, limiter: rate.NewLimiter(10, 20), known: lru.New(answersKept),
		users: cache.NewLRUExpireCacheWithClock(answersKept, passive), may: cache.NewLRUExpireCacheWithClock(answersKept, passive),
	}
}

// Enter returns the user in the proxy's headers, or the user of the cookie's token.
func (d *TokenDoor) Enter(r *http.Request) (*Viewer, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if name := r.Header.Get(proxyUser); name != "" {
			groups := slices.Clone(r.Header.Values(proxyGroup))
			if !slices.Contains(groups, authenticated) {
				groups = append(groups, authenticated) // as the API server does
			}
			return d.viewer(authenticationv1.UserInfo{Username: name, Groups: groups}), nil
		}
	}
	cookie, err := r.Cookie(tokenCookie)
	if err != nil {
		return nil, ErrLogin
	}
	user, err := d.userOf(r.Context(), cookie.Value)
	if err != nil {
		return nil, err
	}
	return d.viewer(user), nil
}

// Login reviews a token and sets the cookie.
func (d *TokenDoor) Login(w http.ResponseWriter, r *http.Request, secret string) error {
	secret = strings.TrimSpace(secret)
	if _, err := d.userOf(r.Context(), secret); err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: secret, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return nil
}

// Logout removes the cookie.
func (d *TokenDoor) Logout(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// userOf reviews a token on the hub.
func (d *TokenDoor) userOf(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	if token == "" || len(token) > tokenLimit {
		return authenticationv1.UserInfo{}, ErrLogin
	}
	key := sha256.Sum256([]byte(token))
	answer, _ := d.users.Get(key)
	if user, ok := answer.(authenticationv1.UserInfo); ok {
		return user, nil
	}
	if _, known := d.known.Get(key); !known && !d.limiter.Allow() { // wrong tokens do not slow down users who are logged in
		return authenticationv1.UserInfo{}, ErrBusy
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := d.hub.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, errors.New("cannot review a token") // an error could contain the token
	}
	if !review.Status.Authenticated || review.Status.Error != "" || review.Status.User.Username == "" {
		return authenticationv1.UserInfo{}, ErrLogin
	}
	d.users.Add(key, review.Status.User, remembered)
	d.known.Add(key, nil)
	return review.Status.User, nil
}

// viewer is a user whose rights are reviewed on the hub.
func (d *TokenDoor) viewer(user authenticationv1.UserInfo) *Viewer {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	identity := identify(user)
	return &Viewer{Name: user.Username, May: func(ctx context.Context, a Access) (bool, error) {
		key := strings.Join([]string{identity, a.Group, a.Resource, a.Namespace, a.Name}, "\x00")
		answer, _ := d.may.Get(key)
		if allowed, ok := answer.(bool); ok {
			return allowed, nil
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: a.Group, Resource: a.Resource, Namespace: a.Namespace, Name: a.Name},
		}}
		if err := d.hub.Create(ctx, review); err != nil {
			return false, err
		}
		allowed := review.Status.Allowed && !review.Status.Denied
		d.may.Add(key, allowed, remembered)
		return allowed, nil
	}}
}

// identify is a digest of all fields that decide the rights of a user.
func identify(user authenticationv1.UserInfo) string {
	text, err := user.Marshal()
	if err != nil {
		return rand.Text() // cannot happen; no result is shared then
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
