package measure_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onThisMachine is what the tests' servers need.
var onThisMachine = measure.Options{AllowHTTP: true, AllowLoopback: true}

// measured is a gate with a query, and the limits that set says.
func measured(address string, set ...func(*v1alpha1.PrometheusGate)) v1alpha1.Gate {
	p := &v1alpha1.PrometheusGate{Address: address, Query: "errors{$moved}", SecretRef: &meta.LocalObjectReference{Name: "prom"}}
	for _, s := range set {
		s(p)
	}
	return v1alpha1.Gate{Name: "errors", Type: v1alpha1.GatePrometheus, Prometheus: p}
}

func atMost(limit float64) func(*v1alpha1.PrometheusGate) {
	return func(p *v1alpha1.PrometheusGate) { p.Max = &limit }
}

func atLeast(limit float64) func(*v1alpha1.PrometheusGate) {
	return func(p *v1alpha1.PrometheusGate) { p.Min = &limit }
}

func comparedTo(control string, limit float64) func(*v1alpha1.PrometheusGate) {
	return func(p *v1alpha1.PrometheusGate) { p.Control, p.MaxRatio = control, &limit }
}

func webhook(address string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: "smoke", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{URL: address}}
}

func question() gates.Question {
	return gates.Question{
		Rollout: types.NamespacedName{Namespace: "fleet-system", Name: "hello"}, Stage: "canary", Gate: "smoke",
		Digest: "sha256:ab", Commit: "6dcb09b", Attempt: 2, Moved: []string{"c1"}, Control: []string{"c2", "c3"},
		Counts: v1alpha1.Counts{Total: 3, Updated: 1},
	}
}

// named is a Secret of the gate's namespace.
func named(name string) secret.Reference {
	return secret.Reference{Field: "the field", NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// secretFor has the keys, each with its value, for the server.
func secretFor(address string, keys ...string) *measure.Secret {
	to, _ := url.Parse(address)
	s := &measure.Secret{Reference: named("prom"), Host: to.Host, Keys: map[string][]byte{}}
	for pair := range slices.Chunk(keys, 2) {
		s.Keys[pair[0]] = []byte(pair[1])
	}
	return s
}

// served starts a server that answers everything with a status and a body.
func served(t *testing.T, status int, body string) string {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func serving(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// hostless returns a verdict as "State: reason" with the port of the test's server omitted.
func hostless(v gates.Verdict, address string) string {
	to, _ := url.Parse(address)
	return strings.ReplaceAll(string(v.State)+": "+v.Reason, to.Host, "HOST")
}

// vector is an answer of Prometheus with one element.
func vector(value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1435781451.781,%q]}]}}`, value)
}

func TestPrometheus(t *testing.T) {
	type gate = func(*v1alpha1.PrometheusGate)
	compared := comparedTo("errors{$control}", 1.5)
	for name, c := range map[string]struct {
		status         int
		query, control string
		limits         []gate
		want           string
	}{
		"BelowMax":           {200, vector("0.03"), "", []gate{atMost(0.05)}, "Passed: 0.03, max 0.05"},
		"AtMax":              {200, vector("0.05"), "", []gate{atMost(0.05)}, "Passed: 0.05, max 0.05"},
		"AboveMax":           {200, vector("0.12"), "", []gate{atMost(0.05)}, "Failed: 0.12, above max 0.05"},
		"HardlyAboveMax":     {200, vector("0.050000001"), "", []gate{atMost(0.05)}, "Failed: 0.050000001, above max 0.05"},
		"AboveMin":           {200, vector("0.995"), "", []gate{atLeast(0.99)}, "Passed: 0.995, min 0.99"},
		"BelowMin":           {200, vector("0.5"), "", []gate{atLeast(0.99), atMost(1)}, "Failed: 0.5, below min 0.99"},
		"BelowZero":          {200, vector("-1"), "", []gate{atMost(0)}, "Passed: -1, max 0"},
		"Scalar":             {200, `{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"7"]}}`, "", []gate{atMost(5)}, "Failed: 7, above max 5"},
		"BelowMaxRatio":      {200, vector("0.03"), vector("0.024"), []gate{compared}, "Passed: 0.03; 1.25 times the control's 0.024, maxRatio 1.5"},
		"AboveMaxRatio":      {200, vector("0.06"), vector("0.03"), []gate{compared, atMost(1)}, "Failed: 0.06, which is 2 times the control's 0.03, above maxRatio 1.5"},
		"MaxBeforeRatio":     {200, vector("0.06"), vector("0.06"), []gate{compared, atMost(0.05)}, "Failed: 0.06, above max 0.05"},
		"ControlZero":        {200, vector("0.03"), vector("0"), []gate{compared}, "Error: 0.03 cannot be compared with the control's 0: maxRatio needs a control above 0"},
		"BothZero":           {200, vector("0"), vector("0"), []gate{compared}, "Passed: 0; 0 times the control's 0, maxRatio 1.5"},
		"ControlNegative":    {200, vector("0.03"), vector("-1"), []gate{compared}, "Error: 0.03 cannot be compared with the control's -1: maxRatio needs a control above 0"},
		"ControlHasNoData":   {200, vector("0.03"), `{"status":"success","data":{"resultType":"vector","result":[]}}`, []gate{compared}, "Error: control: HOST has no data for the query"},
		"NoData":             {200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, "", []gate{atMost(5)}, "Error: HOST has no data for the query"},
		"SeveralElements":    {200, `{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"2"]},{"value":[1,"3"]}]}}`, "", []gate{atMost(5)}, "Error: HOST returns 2 elements: the query must return one, such as with sum(...)"},
		"Matrix":             {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "", []gate{atMost(5)}, `Error: HOST returns a "matrix": the query must return one number`},
		"Histogram":          {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"3"}]}]}}`, "", []gate{atMost(5)}, "Error: HOST returns no number"},
		"NaN":                {200, vector("NaN"), "", []gate{atMost(5)}, `Error: HOST returns "NaN", which is not a finite number`},
		"Inf":                {200, vector("+Inf"), "", []gate{atLeast(5)}, `Error: HOST returns "+Inf", which is not a finite number`},
		"MinusInf":           {200, vector("-Inf"), "", []gate{atMost(5)}, `Error: HOST returns "-Inf", which is not a finite number`},
		"NoNumber":           {200, vector("many"), "", []gate{atMost(5)}, `Error: HOST returns "many", which is not a finite number`},
		"Unquoted":           {200, `{"status":"success","data":{"resultType":"scalar","result":[1,7]}}`, "", []gate{atMost(5)}, "Error: HOST returns no number"},
		"PartialAnswer":      {200, `{"status":"success","warnings":["store s1 is down"],"data":{"resultType":"scalar","result":[1,"7"]}}`, "", []gate{atMost(9)}, "Error: HOST warns: store s1 is down"},
		"BadQuery":           {400, `{"status":"error","errorType":"bad_data","error":"1:8: parse error: unexpected identifier"}`, "", []gate{atMost(5)}, "Error: HOST cannot answer the query (400): bad_data: 1:8: parse error: unexpected identifier"},
		"Overloaded":         {503, `upstream connect error`, "", []gate{atMost(5)}, "Error: HOST does not answer like Prometheus (503)"},
		"LoginPage":          {200, `<html>`, "", []gate{atMost(5)}, "Error: HOST does not answer like Prometheus (200)"},
		"SuccessThatIsNot":   {422, vector("1"), "", []gate{atMost(5)}, "Error: HOST does not answer like Prometheus (422)"},
		"RefusedCredentials": {401, `Unauthorized`, "", []gate{atMost(5)}, "Error: HOST does not accept the credentials (401)"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serving(t, func(w http.ResponseWriter, r *http.Request) {
				body := c.query
				if strings.Contains(r.PostFormValue("query"), "c2|c3") {
					body = c.control
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, body)
			})
			verdict := measure.Measure(t.Context(), measured(address, c.limits...), nil, question(), onThisMachine)
			if diff := cmp.Diff(c.want, hostless(verdict, address)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPrometheus_AsksForTheClusters(t *testing.T) {
	var asked []string
	address := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.PostFormValue("query"))
		_, _ = io.WriteString(w, vector("1"))
	})
	gate := measured(address+"/prom/", comparedTo(`sum(e{job="a",$control}) / $controls`, 2))
	gate.Prometheus.Query = "sum(e{$moved}) / sum(r{$moved})"
	gate.Prometheus.ClusterLabel = "k8s_cluster"
	q := question()
	q.Moved, q.Control = []string{"eu.1", `a"b\d`}, []string{"us-1"}
	if verdict := measure.Measure(t.Context(), gate, nil, q, onThisMachine); verdict.State != v1alpha1.GatePassed {
		t.Fatal(verdict)
	}
	moved := `k8s_cluster=~"eu\\.1|a\"b\\\\d"`
	want := []string{
		"POST /prom/api/v1/query sum(e{" + moved + "}) / sum(r{" + moved + "})",
		`POST /prom/api/v1/query sum(e{job="a",k8s_cluster=~"us-1"}) / $controls`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPrometheus_DoesNotAskAboutNoCluster(t *testing.T) {
	var asked atomic.Int32
	address := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, vector("0.03"))
	})
	nothing, all := question(), "sum(errors)"
	nothing.Moved, nothing.Control = nil, nil
	compared := comparedTo("errors{$control}", 1.5)
	for name, c := range map[string]struct {
		query, control string
		limits         []func(*v1alpha1.PrometheusGate)
		asks           int32
		want           string
	}{
		"NoneMoved":           {"errors{$moved}", "", []func(*v1alpha1.PrometheusGate){atMost(1)}, 0, "Waiting: no cluster is Soaking or Done with the content"},
		"NotAboutMoved":       {all, "", []func(*v1alpha1.PrometheusGate){atMost(1)}, 1, "Passed: 0.03, max 1"},
		"NoControl":           {all, "", []func(*v1alpha1.PrometheusGate){compared, atMost(1)}, 1, "Passed: 0.03, max 1; maxRatio is not evaluated: there is no cluster to compare with"},
		"NoControlButAboveIt": {all, "", []func(*v1alpha1.PrometheusGate){compared, atMost(0.01)}, 1, "Failed: 0.03, above max 0.01"},
		"NotAboutControl":     {all, all, []func(*v1alpha1.PrometheusGate){comparedTo(all, 1.5)}, 2, "Passed: 0.03; 1 times the control's 0.03, maxRatio 1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			gate := measured(address, c.limits...)
			gate.Prometheus.Query = c.query
			got := hostless(measure.Measure(t.Context(), gate, nil, nothing, onThisMachine), address)
			if got != c.want || asked.Load() != c.asks {
				t.Errorf("got %s after %d queries\nwant %s after %d", got, asked.Load(), c.want, c.asks)
			}
		})
	}
}

func TestPrometheus_Credentials(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ana:s3cret"))
	for name, c := range map[string]struct {
		keys         []string
		header, want string
	}{
		"Bearer":      {[]string{"bearerToken", "s3cret\n"}, "Bearer s3cret", "Passed: 1, max 2"},
		"Basic":       {[]string{"username", "ana", "password", "s3cret"}, basic, "Passed: 1, max 2"},
		"Both":        {[]string{"bearerToken", "t", "username", "ana", "password", "p"}, "", `Error: the field: Secret default/prom: the keys bearerToken and username exclude each other`},
		"NoPassword":  {[]string{"username", "ana"}, "", `Error: the field: Secret default/prom: the keys username and password must be set together`},
		"Empty":       {nil, "", `Error: the field: Secret default/prom has none of the keys of a gate of type prometheus`},
		"TwoLines":    {[]string{"bearerToken", "a\nb"}, "", `Error: the field: Secret default/prom: the key bearerToken contains a line break or control character`},
		"NoAuthority": {[]string{"ca.crt", "nonsense"}, "", `Error: the field: Secret default/prom: the key ca.crt holds no PEM certificate`},
	} {
		t.Run(name, func(t *testing.T) {
			var header string
			address := serving(t, func(w http.ResponseWriter, r *http.Request) {
				header = r.Header.Get("Authorization")
				_, _ = io.WriteString(w, vector("1"))
			})
			verdict := measure.Measure(t.Context(), measured(address, atMost(2)), secretFor(address, c.keys...), question(), onThisMachine)
			if got := hostless(verdict, address); got != c.want || header != c.header {
				t.Errorf("got %q with %q, want %q with %q", got, header, c.want, c.header)
			}
		})
	}
}

// TestSecret_IsForOneHost: an author of a commit who names a Secret does not get its token.
func TestSecret_IsForOneHost(t *testing.T) {
	var asked atomic.Int32
	address := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"state":"Passed"}`)
	})
	to, _ := url.Parse(address)
	for _, annotation := range []string{"", to.Hostname(), "prom.example.com", to.Host + "0", "http://" + to.Host} {
		secret := &measure.Secret{Reference: named("hook"), Host: annotation, Keys: map[string][]byte{"key": []byte("s3cret")}}
		want := `Error: the field: Secret default/hook is not for HOST: it must have the annotation addonflow.io/gate-host: HOST`
		if got := hostless(measure.Measure(t.Context(), webhook(address), secret, question(), onThisMachine), address); got != want || asked.Load() > 0 {
			t.Errorf("%q: got %s", annotation, got)
		}
	}
}

func TestSecret_NamesTheHostInAnyForm(t *testing.T) {
	for address, annotation := range map[string]string{
		"https://Prom.example.com":       "prom.example.com",
		"https://prom.example.com:443/x": "PROM.example.com",
		"https://prom.example.com/x":     "prom.example.com:443",
		"https://prom.example.com:8443":  "prom.example.com:8443",
		"https://[::1]:9090":             "[::1]:9090",
	} {
		secret := &measure.Secret{Reference: named("hook"), Host: annotation, Keys: map[string][]byte{"key": []byte("s3cret")}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is looked up
		if got := measure.Measure(ctx, webhook(address), secret, question(), measure.Options{AllowLoopback: true}); strings.Contains(got.Reason, "annotation") {
			t.Errorf("%s, annotation %s: %s", address, annotation, got.Reason)
		}
	}
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"http://hook.example.com":               "cannot use the address: it is not https; the operator's flag --gate-allow-http allows http",
		"ftp://hook.example.com":                "cannot use the address: it is neither https nor http",
		"https://ana:s3cret@hook.example.com":   "cannot use the address: it contains user information; credentials belong in the Secret",
		"https://hook.example.com/#x":           "cannot use the address: it has a fragment",
		"https:///x":                            "cannot use the address: it names no host, or an empty port",
		"https://hook.example.com:":             "cannot use the address: it names no host, or an empty port",
		"https://hook.example.com:99999999/%zz": "cannot use the address: it is not a URL",
		"https://hook.example.com:70000":        "cannot use the address: its port is out of range",
		"https://169.254.169.254/latest":        "169.254.169.254 " + dial.ErrLocal.Error() + "; the operator's flag --gate-allow-loopback allows it",
		"https://localhost:9090":                "localhost:9090 " + dial.ErrLocal.Error() + "; the operator's flag --gate-allow-loopback allows it",
	} {
		if err := measure.CheckAddress(webhook(address), measure.Options{}); err == nil || err.Error() != want {
			t.Errorf("%s: before any measurement %v", address, err)
		}
		verdict := measure.Measure(t.Context(), webhook(address), nil, question(), measure.Options{})
		if verdict != (gates.Verdict{State: v1alpha1.GateError, Reason: want}) {
			t.Errorf("%s: got %v", address, verdict)
		}
	}
	verdict := measure.Measure(t.Context(), measured("https://prom.example.com?x=y"), nil, question(), measure.Options{})
	if verdict.Reason != "cannot use the address: it has a query" {
		t.Errorf("got %v", verdict)
	}
}

// TestTransport_RefusesThisMachine: also if only a name, or another form of the address, leads
// there.
func TestTransport_RefusesThisMachine(t *testing.T) {
	var asked atomic.Int32
	address := serving(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	to, _ := url.Parse(address)
	for _, host := range []string{"127.0.0.1", "localhost", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "169.254.169.254", "[fe80::1%25lo]", "[64:ff9b::a9fe:a9fe]"} {
		at := "http://" + host + ":" + to.Port()
		verdict := measure.Measure(t.Context(), webhook(at), nil, question(), measure.Options{AllowHTTP: true})
		want := "HOST leads to a loopback or link-local address, or to a metadata service of a cloud; the operator's flag --gate-allow-loopback allows it"
		if got := hostless(verdict, at); got != "Error: "+want {
			t.Errorf("%s: got %s", host, got)
		}
	}
	if asked.Load() > 0 {
		t.Error("the server was called")
	}
}

func TestTransport_FollowsNoRedirect(t *testing.T) {
	var stolen atomic.Int32
	thief := serving(t, func(http.ResponseWriter, *http.Request) { stolen.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		address := serving(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief, status) })
		verdict := measure.Measure(t.Context(), measured(address, atMost(1)), secretFor(address, "bearerToken", "s3cret"), question(), onThisMachine)
		if want := fmt.Sprintf("Error: HOST answers %d with another address; redirects are not followed", status); hostless(verdict, address) != want {
			t.Errorf("got %v", verdict)
		}
	}
	if stolen.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

func TestTransport_UsesNoProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := serving(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	// A name that cannot be resolved: Go calls no proxy for loopback.
	measure.Measure(t.Context(), webhook("http://hook.invalid"), nil, question(), onThisMachine)
	if asked.Load() > 0 {
		t.Error("the proxy was called")
	}
}

func TestTransport_TrustsTheSecretsAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"state":"Passed"}`) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a refused handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	only := measure.Options{AllowLoopback: true}
	if got := measure.Measure(t.Context(), webhook(server.URL), secretFor(server.URL, "ca.crt", authority), question(), only); got.State != v1alpha1.GatePassed {
		t.Errorf("with the authority: %v", got)
	}
	if got := measure.Measure(t.Context(), webhook(server.URL), nil, question(), only); got.State != v1alpha1.GateError || !strings.Contains(got.Reason, "x509") {
		t.Errorf("without the authority: %v", got)
	}
}

func TestTransport_BoundsTheAnswer(t *testing.T) {
	address := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 2 << 10 {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1<<10))
		}
	})
	if got := hostless(measure.Measure(t.Context(), webhook(address), nil, question(), onThisMachine), address); got != "Error: HOST sends more than 1048576 bytes" {
		t.Errorf("got %s", got)
	}
}

func TestTransport_BoundsTheTime(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"Silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"Slow": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := serving(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
				answer(w, r)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if got := hostless(measure.Measure(ctx, webhook(address), nil, question(), onThisMachine), address); got != "Error: HOST does not answer within 10s" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestMeasure_ShowsNoCredential: no verdict shows a credential that the server repeats in its answer.
func TestMeasure_ShowsNoCredential(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status":"error","error":"you sent %s","state":"Failed","message":"s3cret-key, \u0073\u0033cret-key\u0000\n%s"}`,
			r.Header.Get("Authorization"), strings.Repeat("x ", 500))
	}
	address := serving(t, echo)
	for name, c := range map[string]struct {
		gate v1alpha1.Gate
		keys []string
		want string
	}{
		"Bearer":  {measured(address, atMost(1)), []string{"bearerToken", "s3cret"}, "Error: HOST cannot answer the query (200): : you sent Bearer [redacted]"},
		"Basic":   {measured(address, atMost(1)), []string{"username", "ana", "password", "s3cret"}, "Error: HOST cannot answer the query (200): : you sent Basic [redacted]"},
		"Webhook": {webhook(address), []string{"key", "s3cret-key"}, "Failed: [redacted], [redacted] " + strings.Repeat("x ", 137) + "x…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hostless(measure.Measure(t.Context(), c.gate, secretFor(address, c.keys...), question(), onThisMachine), address)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMeasure_ShowsNoPartOfACredential: wherever a long text is cut, the part of the credential before the cut is not shown.
func TestMeasure_ShowsNoPartOfACredential(t *testing.T) {
	before := 0
	address := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"state":"Failed","message":%q}`, strings.Repeat(" ", before)+"s3cret-key")
	})
	for _, around := range []int{300, 4 << 10, 64 << 10, 256 << 10} {
		for before = around - 12; before <= around; before++ {
			got := measure.Measure(t.Context(), webhook(address), secretFor(address, "key", "s3cret-key"), question(), onThisMachine)
			if got.State != v1alpha1.GateFailed || strings.Contains(got.Reason, "s3") {
				t.Errorf("after %d characters: %v", before, got)
			}
		}
	}
}

func TestWebhook_IsSigned(t *testing.T) {
	var got []string
	address := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = []string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("X-Signature-256"), string(body)}
		_, _ = io.WriteString(w, `{"state":"Passed","message":"3 of 3 checks"}`)
	}) + "/check?team=a"
	verdict := measure.Measure(t.Context(), webhook(address), secretFor(address, "key", "s3cret"), question(), onThisMachine)
	if verdict != (gates.Verdict{State: v1alpha1.GatePassed, Reason: "3 of 3 checks"}) {
		t.Errorf("got %v", verdict)
	}
	want := []string{
		"POST", "/check?team=a", "application/json",
		// printf '%s' BODY | openssl dgst -sha256 -hmac s3cret
		"sha256=7a796368e48230a1e9339f05e33767b375e8bf9fa81483b81cffb0a0d706a405",
		`{"rollout":"hello","namespace":"fleet-system","stage":"canary","gate":"smoke","digest":"sha256:ab","commit":"6dcb09b","attempt":2,` +
			`"counts":{"total":3,"updated":1,"inFlight":0,"failed":0,"parked":0,"waiting":0}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWebhook_IsNotSignedWithoutAKey(t *testing.T) {
	address := serving(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"state":"Passed","message":"%d signatures"}`, len(r.Header.Values("X-Signature-256")))
	})
	if got := measure.Measure(t.Context(), webhook(address), nil, question(), onThisMachine); got.Reason != "0 signatures" {
		t.Errorf("got %v", got)
	}
}

func TestWebhook_Answers(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"Passed":      {200, `{"state":"Passed"}`, "Passed: "},
		"Failed":      {200, `{"state":"Failed","message":"2 of 3 checks"}`, "Failed: 2 of 3 checks"},
		"Waiting":     {200, `{"state":"Waiting","message":"still running","more":1}`, "Waiting: still running"},
		"Error":       {200, `{"state":"Error"}`, `Error: HOST answers state "Error" instead of Passed, Failed or Waiting`},
		"Unknown":     {200, `{"state":"passed"}`, `Error: HOST answers state "passed" instead of Passed, Failed or Waiting`},
		"NoState":     {200, `{}`, `Error: HOST answers state "" instead of Passed, Failed or Waiting`},
		"NoObject":    {200, `["Passed"]`, `Error: HOST does not answer {"state": ..., "message": ...}`},
		"MoreThanOne": {200, `{"state":"Passed"}{"state":"Failed"}`, `Error: HOST does not answer {"state": ..., "message": ...}`},
		"Nothing":     {200, ``, `Error: HOST does not answer {"state": ..., "message": ...}`},
		"NotOK":       {500, `{"state":"Passed"}`, "Error: HOST answers 500 instead of 200"},
		"Refused":     {403, ``, "Error: HOST does not accept the signature (403)"},
	} {
		t.Run(name, func(t *testing.T) {
			address := served(t, c.status, c.body)
			if got := hostless(measure.Measure(t.Context(), webhook(address), nil, question(), onThisMachine), address); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
