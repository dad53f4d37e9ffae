package forge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/addonflow/addonflow/test/freeport"
)

// API is the dialect in which a status came in.
type API string

const (
	// Gitea is the API of Gitea and Forgejo.
	Gitea API = "gitea"
	// GitHub is GitHub's REST API.
	GitHub API = "github"
)

// Entry is one status as the forge stored it.
type Entry struct {
	// Sequence counts the stored statuses from 1; it is the status's id in both APIs.
	Sequence int64 `json:"sequence"`
	// Time is when the status was stored.
	Time time.Time `json:"time"`
	// API is the one through which the status was posted.
	API API `json:"api"`
	// Repository is owner/name.
	Repository string `json:"repository"`
	// SHA is the commit.
	SHA string `json:"sha"`
	// Context, State, Description and TargetURL are as they were sent.
	Context     string `json:"context"`
	State       string `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"targetURL"`
}

// Forge is the forge. Make it with New.
type Forge struct {
	mu           sync.Mutex
	clock        func() time.Time
	repositories []string
	commits      []string
	token        string
	entries      []Entry
	requests     int
	changed      chan struct{}
	fault        Fault
	faultLeft    int
	released     chan struct{}

	address string
	server  *http.Server
}

// New returns a forge with the given repositories (owner/name); without any, every
// repository exists. It answers nothing until Start, but is an http.Handler at once.
func New(repositories ...string) *Forge {
	return &Forge{
		clock:        time.Now,
		repositories: slices.Clone(repositories),
		changed:      make(chan struct{}),
		released:     make(chan struct{}),
	}
}

// SetClock replaces the clock that stamps the entries.
func (f *Forge) SetClock(clock func() time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = clock
}

// RequireToken refuses requests without that token; if it is empty, no request is refused.
func (f *Forge) RequireToken(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = token
}

// Commits names the commits that exist; without any, all do.
func (f *Forge) Commits(shas ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits = slices.Clone(shas)
}

// Start listens on a free port of 127.0.0.1 and returns the base URL.
func (f *Forge) Start() (string, error) {
	address, err := freeport.Address(context.Background())
	if err != nil {
		return "", err
	}
	if err := f.listen(address); err != nil {
		return "", err
	}
	return f.URL(), nil
}

// URL returns the base URL; it stays the same over Down and Up. Empty before Start.
func (f *Forge) URL() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.address == "" {
		return ""
	}
	return "http://" + f.address
}

// Address returns the web address of a repository, as a user would copy it.
func (f *Forge) Address(repository string) string {
	return f.URL() + "/" + repository
}

// Down takes the forge off the network: connections are cut, new ones refused. The
// log stays. A forge that is down already stays down.
func (f *Forge) Down() error {
	f.mu.Lock()
	server := f.server
	f.server = nil
	f.mu.Unlock()
	if server == nil {
		return nil
	}
	return server.Close()
}

// Up brings the forge back on the port it had. A forge that is up stays up.
func (f *Forge) Up() error {
	f.mu.Lock()
	address, up := f.address, f.server != nil
	f.mu.Unlock()
	switch {
	case up:
		return nil
	case address == "":
		return errors.New("cannot bring the forge back: it was never started")
	}
	return f.listen(address)
}

// Close ends the forge and all hanging requests.
func (f *Forge) Close() error {
	f.Set(Fault{})
	return f.Down()
}

// listen serves on the address.
func (f *Forge) listen(address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot start the forge: %w", err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	f.mu.Lock()
	f.address, f.server = listener.Addr().String(), server
	f.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
	return nil
}
