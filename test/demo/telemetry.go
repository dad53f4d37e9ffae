package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	// leakyTag ends the tag of an image that is ready, serves cleanly for healthyRounds, and fails
	// requests afterwards.
	leakyTag      = "-leaky"
	healthyRounds = 25
	// perRound is how many requests a cluster serves in a round. usualErrors and leakyErrors are
	// how many of them fail.
	perRound    = 100
	usualErrors = 0.5
	leakyErrors = 30
	// errorLimit is the greatest share of failed requests that passes.
	errorLimit = 0.05
)

// telemetry is the web service of the team that runs the add-on: a gate of type webhook asks it.
// It is not a Prometheus. The requests are simulated; the image that serves them is read from the
// simulated cluster in every round.
type telemetry struct {
	clusters []string
	// running returns the image whose pods are ready on a cluster; "" if there is none.
	running func(cluster string) string
	// key signs the questions.
	key string

	mu sync.Mutex
	// served has the traffic of each cluster since its image changed, newest the image that
	// appeared last.
	served map[string]traffic
	known  map[string]bool
	newest string
	// answers counts the answers to signed questions by commit and state.
	answers map[string]map[v1alpha1.GateState]int
}

// traffic is what one cluster served with one image.
type traffic struct {
	image            string
	rounds           int
	requests, failed float64
}

func newTelemetry(clusters []string, key string, running func(cluster string) string) *telemetry {
	return &telemetry{
		clusters: clusters, running: running, key: key,
		served: map[string]traffic{}, known: map[string]bool{}, answers: map[string]map[v1alpha1.GateState]int{},
	}
}

// start serves on a free port of this machine, one round of traffic after the other. It returns
// the address, and what ends both.
func (t *telemetry) start(every time.Duration) (address string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("cannot start the telemetry: %w", err)
	}
	server := &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // until Close
	running.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				t.round()
			}
		}
	})
	return listener.Addr().String(), func() error {
		cancel()
		err := server.Close()
		running.Wait()
		return err
	}, nil
}

// round lets every cluster serve some requests with the image that it runs now.
func (t *telemetry) round() {
	for _, cluster := range t.clusters {
		image := t.running(cluster)
		t.mu.Lock()
		if !t.known[image] && image != "" {
			t.known[image], t.newest = true, image
		}
		served := t.served[cluster]
		if served.image != image {
			served = traffic{image: image}
		}
		served.requests += perRound
		if served.rounds >= healthyRounds && strings.HasSuffix(image, leakyTag) {
			served.failed += leakyErrors
		} else {
			served.failed += usualErrors
		}
		served.rounds++
		t.served[cluster] = served
		t.mu.Unlock()
	}
}

// verdict compares the share of requests that fail on the clusters with the newest image with the
// limit, and names that of the others beside it.
func (t *telemetry) verdict() (v1alpha1.GateState, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var newest, others traffic
	var on []string
	for _, cluster := range t.clusters {
		served := t.served[cluster]
		sum := &others
		if served.image == t.newest {
			sum, on = &newest, append(on, cluster)
		}
		sum.requests += served.requests
		sum.failed += served.failed
	}
	switch len(on) {
	case 0:
		return v1alpha1.GateWaiting, "no cluster runs " + short(t.newest)
	case len(t.clusters):
		return v1alpha1.GateWaiting, "every cluster runs " + short(t.newest)
	}
	state, share := v1alpha1.GatePassed, newest.failed/newest.requests
	if share > errorLimit {
		state = v1alpha1.GateFailed
	}
	return state, fmt.Sprintf("%s fails %.1f%% of requests on %s, at most %.0f%%; the others fail %.1f%%",
		short(t.newest), 100*share, strings.Join(on, ", "), 100*errorLimit, 100*others.failed/others.requests)
}

// short is an image without its registry.
func short(image string) string { return image[strings.LastIndex(image, "/")+1:] }

// ServeHTTP answers a gate, if its question is signed.
func (t *telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var question struct {
		Commit string `json:"commit"`
	}
	mac := hmac.New(sha256.New, []byte(t.key))
	mac.Write(body)
	signed := hmac.Equal([]byte(r.Header.Get("X-Signature-256")), []byte("sha256="+hex.EncodeToString(mac.Sum(nil))))
	switch {
	case !signed:
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	case err != nil || json.Unmarshal(body, &question) != nil:
		http.Error(w, "the question cannot be read", http.StatusBadRequest)
		return
	}
	state, message := t.verdict()
	t.count(question.Commit, state)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"state": string(state), "message": message}) // a lost answer is asked for again
}

func (t *telemetry) count(commit string, state v1alpha1.GateState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers[commit] == nil {
		t.answers[commit] = map[v1alpha1.GateState]int{}
	}
	t.answers[commit][state]++
}

// answered returns how many questions about a commit were answered with a state.
func (t *telemetry) answered(commit string, state v1alpha1.GateState) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answers[commit][state]
}

// readyImage is the image whose pods are ready on a cluster, if it is one.
func (w *World) readyImage(cluster string) string {
	images := slices.Compact(w.Fleet.Running(cluster)[workload].ReadyImages)
	if len(images) != 1 {
		return ""
	}
	return images[0]
}
