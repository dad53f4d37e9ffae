package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"

	"github.com/addonflow/addonflow/test/faults/oracle"
)

// signingKey is what the webhook's requests are signed with.
const signingKey = "faults-key-b6d1"

// planted is in the URL of the webhook.
const planted = "planted-b6d1"

// measures is the server that gates ask: /api/v1/query answers as Prometheus does, /board as a
// webhook. The measurement is bad on clusters that have the content that degrades.
type measures struct {
	history *oracle.History
	server  *httptest.Server

	mu    sync.Mutex
	fault measureFault
	// healed is closed when the fault ends.
	healed   chan struct{}
	unsigned int
}

// measureFault is what is wrong with the server.
type measureFault string

const (
	measureFails   measureFault = "answers 500"
	measureRefuses measureFault = "answers 401"
	measureHangs   measureFault = "hangs"
	measureGarbage measureFault = "answers garbage"
	measureNoData  measureFault = "has no data"
)

func startMeasures(history *oracle.History) *measures {
	m := &measures{history: history, healed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/query", m.query)
	mux.HandleFunc("POST /board", m.board)
	m.server = httptest.NewServer(m.faulty(mux))
	return m
}

func (m *measures) stop() {
	m.heal()
	m.server.Close()
}

func (m *measures) fail(f measureFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *measures) heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = ""
	close(m.healed)
	m.healed = make(chan struct{})
}

// faulty answers as the fault says.
func (m *measures) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		fault, healed := m.fault, m.healed
		m.mu.Unlock()
		switch fault {
		case measureFails:
			http.Error(w, "injected fault", http.StatusInternalServerError)
		case measureRefuses:
			http.Error(w, "injected fault", http.StatusUnauthorized)
		case measureGarbage:
			fmt.Fprint(w, `{"status":"success","state":"Perhaps","data":{"resultType":"matrix"}}`)
		case measureNoData:
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		case measureHangs:
			select {
			case <-healed:
			case <-r.Context().Done():
			}
			fallthrough
		default:
			next.ServeHTTP(w, r)
		}
	})
}

var named = regexp.MustCompile(`cluster=~"([^"]*)"`)

// query is the part of the clusters named in the query that run content that degrades.
func (m *measures) query(w http.ResponseWriter, r *http.Request) {
	found := named.FindStringSubmatch(r.PostFormValue("query"))
	if found == nil {
		http.Error(w, "the query names no cluster", http.StatusBadRequest)
		return
	}
	bad, objects := 0, m.history.Objects()
	names := strings.Split(found[1], "|")
	for _, name := range names {
		spec, _ := json.Marshal(objects["/registry/work.open-cluster-management.io/manifestworks/"+name+"/addon-"+alpha+"-deploy-0"].Content["spec"]) // it was read from JSON
		if strings.Contains(string(spec), ":"+degrades) {
			bad++
		}
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[0,"%g"]}]}}`, float64(bad)/float64(len(names)))
}

// board is a webhook that agrees, if the request is signed.
func (m *measures) board(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what was cut off is not signed
	mac := hmac.New(sha256.New, []byte(signingKey))
	_, _ = mac.Write(body) // a hash refuses no write
	if r.Header.Get("X-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		m.mu.Lock()
		m.unsigned++
		m.mu.Unlock()
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, `{"state":"Passed","message":"agreed"}`)
}

// refused counts the requests of the webhook that were not signed.
func (m *measures) refused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unsigned
}
