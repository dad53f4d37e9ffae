package hook

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

const (
	// bodyLimit is how much of a payload is read. It is hashed as it arrives, and neither kept nor parsed, so that its size
	// costs time and no memory. GitHub sends up to 25 MB, and drops an event that is larger.
	bodyLimit = 25 << 20
	// readTimeout is for a whole request, headerTimeout for its headers.
	readTimeout   = 30 * time.Second
	headerTimeout = 10 * time.Second
	// requestsAtOnce bounds the look-ups at the same time, and bodiesAtOnce the bodies that are read for one source.
	// Slow webhooks of one source thus take no place of another source. Most forges do not repeat a webhook that gets
	// 503; then the source is read at its interval.
	requestsAtOnce = 32
	bodiesAtOnce   = 8
	// secretFor is how long a token, or the error of reading it, is used before the Secret is read again. Many
	// webhooks thus cause few requests to the hub.
	secretFor = 5 * time.Second
	// secretTimeout bounds the read of a Secret, for which other webhooks wait.
	secretTimeout = 5 * time.Second
	// logAgain is the least time between two lines of the log with one text about one source, and logForgotten how long
	// the last one is remembered.
	logAgain     = secretFor
	logForgotten = time.Hour
	// stopWithin is how long open webhooks have when the operator ends, and after them the requests to look.
	stopWithin = 2 * time.Second
)

// Options of a Receiver.
type Options struct {
	// Address to listen on.
	Address string
	// Sources reads AddOnSources from a watch cache.
	Sources client.Reader
	// Live reads Secrets and AddOnSources by name, from the API server.
	Live client.Reader
	// Client writes.
	Client client.Client
	Log    logr.Logger
	// Clock returns the time; nil: the system's.
	Clock func() time.Time
}

// Receiver serves webhooks. Add it to the manager.
type Receiver struct {
	Options
	requests *prometheus.CounterVec
	places   chan struct{}
	asker    *asker

	mu     sync.Mutex
	tokens map[client.ObjectKey]token
	// bodies counts what is being read for a source.
	bodies map[client.ObjectKey]int
	logged map[line]*repeats
}

// line is a text of the log about a source. The number of sources bounds the map.
type line struct {
	source client.ObjectKey
	text   string
}

// repeats are when a line was logged last, and how often it was left out since.
type repeats struct {
	last    time.Time
	leftOut int
}

// token is what was read of a Secret.
type token struct {
	value secret.Text
	err   error
	name  string
	read  time.Time
}

// New returns a Receiver, whose metrics are registered.
func New(options Options, registry prometheus.Registerer) (*Receiver, error) {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	r := &Receiver{
		Options: options, places: make(chan struct{}, requestsAtOnce), tokens: map[client.ObjectKey]token{}, bodies: map[client.ObjectKey]int{},
		logged: map[line]*repeats{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addonflow_webhook_requests_total", Help: "Requests to the port for webhooks, by HTTP status code.",
		}, []string{"code"}),
	}
	r.asker = newAsker(options)
	return r, registry.Register(r.requests)
}

// NeedLeaderElection is false: a webhook reaches any replica.
func (r *Receiver) NeedLeaderElection() bool { return false }

// Start serves until the context ends, and then writes the requests to look that wait.
func (r *Receiver) Start(ctx context.Context) error {
	defer r.asker.finish()
	server := &manager.Server{Name: "webhooks", Server: r.server(ctx), ShutdownTimeout: new(stopWithin)}
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("cannot serve webhooks: %w", err)
	}
	return nil
}

// server returns the server, whose requests end with the context.
func (r *Receiver) server(ctx context.Context) *http.Server {
	return &http.Server{
		Addr: r.Address, Handler: r, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// ServeHTTP answers a webhook. No answer says more than its code.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	code := r.answer(w, request) //nolint:contextcheck // the look outlives the webhook that causes it
	r.requests.WithLabelValues(fmt.Sprint(code)).Inc()
	http.Error(w, http.StatusText(code), code)
}

// answer returns the code of the answer.
func (r *Receiver) answer(w http.ResponseWriter, request *http.Request) int {
	source, token, code := r.lookUp(request)
	if code != 0 {
		return code
	}
	key := client.ObjectKeyFromObject(source)
	if !r.enter(key) {
		return http.StatusServiceUnavailable
	}
	defer r.leave(key)
	request.Body = http.MaxBytesReader(w, request.Body, bodyLimit)
	err := verify(commitstatus.Webhooks()[source.Spec.Webhook.Type], request, token)
	switch {
	case errors.Is(err, errDenied):
		r.log(nil, "A webhook is refused: its signature or token is wrong", key)
		return http.StatusUnauthorized
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusBadRequest
	}
	r.asker.ask(source, r.Clock())
	return http.StatusAccepted
}

// lookUp returns the source of a webhook and its token, or the code of the answer.
func (r *Receiver) lookUp(request *http.Request) (source *v1alpha1.AddOnSource, token secret.Text, code int) {
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	default:
		return nil, "", http.StatusServiceUnavailable
	}
	if !strings.HasPrefix(request.URL.Path, v1alpha1.WebhookPathPrefix) {
		return nil, "", http.StatusNotFound
	}
	source, err := r.sourceAt(request.Context(), request.URL.Path)
	switch {
	case err != nil:
		r.log(err, "cannot find the source of a webhook", client.ObjectKey{})
		return nil, "", http.StatusInternalServerError
	case source == nil:
		return nil, "", http.StatusNotFound
	case request.Method != http.MethodPost:
		return nil, "", http.StatusMethodNotAllowed
	}
	if token, err = r.token(request.Context(), source); err != nil {
		r.log(err, "cannot check a webhook", client.ObjectKeyFromObject(source))
		return nil, "", http.StatusInternalServerError
	}
	return source, token, 0
}

// log writes a line about a webhook once per logAgain, as an error if err is not nil. The line counts the equal lines that
// were left out since the last one.
func (r *Receiver) log(err error, text string, source client.ObjectKey) {
	leftOut, due := r.repeat(line{source, text})
	switch {
	case !due:
	case err != nil:
		r.Log.Error(err, text, "source", source, "leftOut", leftOut)
	default:
		r.Log.Info(text, "source", source, "leftOut", leftOut)
	}
}

// repeat reports whether a line is due, and how often it was left out since it was last due.
func (r *Receiver) repeat(l line) (leftOut int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock()
	maps.DeleteFunc(r.logged, func(_ line, other *repeats) bool { return now.Sub(other.last) >= logForgotten })
	known := r.logged[l]
	if known == nil {
		known = &repeats{}
		r.logged[l] = known
	}
	if now.Sub(known.last) < logAgain {
		known.leftOut++
		return 0, false
	}
	leftOut, known.last, known.leftOut = known.leftOut, now, 0
	return leftOut, true
}

// enter takes one of the places of a source, if one is free, and leave gives it back.
func (r *Receiver) enter(source client.ObjectKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bodies[source] >= bodiesAtOnce {
		return false
	}
	r.bodies[source]++
	return true
}

func (r *Receiver) leave(source client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bodies[source]--; r.bodies[source] == 0 {
		delete(r.bodies, source)
	}
}

// sourceAt returns the source whose webhooks come to the path, nil if there is none.
func (r *Receiver) sourceAt(ctx context.Context, path string) (*v1alpha1.AddOnSource, error) {
	var list v1alpha1.AddOnSourceList
	if err := r.Sources.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		s := &list.Items[i]
		if s.Spec.Webhook != nil && s.Status.WebhookPath != "" && subtle.ConstantTimeCompare([]byte(s.Status.WebhookPath), []byte(path)) == 1 {
			return s, nil
		}
	}
	return nil, nil
}

// tokenKey is the key of the token in the Secret.
const tokenKey = "token"

// token returns the token of a source. The Secret is read again after secretFor, or if another one is named.
func (r *Receiver) token(ctx context.Context, source *v1alpha1.AddOnSource) (secret.Text, error) {
	key, name := client.ObjectKeyFromObject(source), source.Spec.Webhook.SecretRef.Name
	ref := secret.Reference{Field: "spec.webhook.secretRef", NamespacedName: client.ObjectKey{Namespace: source.Namespace, Name: name}}
	now := r.Clock()
	r.mu.Lock()
	defer r.mu.Unlock() // one reads, and the others use what it read
	if known := r.tokens[key]; known.name == name && now.Sub(known.read) < secretFor {
		return known.value, known.err
	}
	for other, t := range r.tokens {
		if now.Sub(t.read) >= secretFor {
			delete(r.tokens, other)
		}
	}
	found := token{name: name, read: now}
	found.value, found.err = r.read(ctx, ref)
	r.tokens[key] = found
	return found.value, found.err
}

// read reads the token in a Secret within secretTimeout. It does not end with the webhook that causes it, because
// other webhooks use the result.
func (r *Receiver) read(ctx context.Context, ref secret.Reference) (secret.Text, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), secretTimeout)
	defer cancel()
	var stored corev1.Secret
	if err := r.Live.Get(ctx, ref.NamespacedName, &stored); err != nil {
		return "", ref.Unread(err)
	}
	value := secret.Text(strings.TrimSpace(string(stored.Data[tokenKey])))
	if value == "" {
		return "", fmt.Errorf("%s has no key %q", ref, tokenKey)
	}
	return value, nil
}
