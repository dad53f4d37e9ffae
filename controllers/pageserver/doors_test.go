package pageserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// sha is the commit of every rollout.
var sha = strings.Repeat("2", 40)

// world is a hub with the rollout hello in the namespaces team and other, and jane, who may get the
// rollouts of team.
type world struct {
	t      *testing.T
	config *rest.Config
	scheme *runtime.Scheme
	hub    client.Client
	clock  *clocktesting.FakePassiveClock
}

// withoutHub is a world with objects only: the hub decides no right.
func withoutHub(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, scheme: runtime.NewScheme(), clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.must(errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme), addonv1alpha1.Install(w.scheme), clusterv1.Install(w.scheme)))
	w.hub = fake.NewClientBuilder().WithScheme(w.scheme).WithObjects(objects...).Build()
	return w
}

// rights is a door for a viewer with the right to get objects of some kinds in every namespace.
type rights []string

func (r rights) Enter(*http.Request) (*Viewer, error) {
	return &Viewer{May: func(_ context.Context, a Access) (bool, error) { return slices.Contains(r, a.Resource), nil }}, nil
}

func (rights) Login(http.ResponseWriter, *http.Request, string) error { return nil }

func (rights) Logout(http.ResponseWriter, *http.Request) {}

func newWorld(t *testing.T) *world {
	t.Helper()
	crds, err := manifests.CRDFiles()
	if err != nil {
		t.Fatal(err)
	}
	h := hubtest.Start(t, hub.Options{CRDYAML: crds, Namespaces: []string{"team", "other"}})
	w := withoutHub(t)
	w.config = h.Config()
	w.hub = w.client(w.config)
	for _, namespace := range []string{"team", "other"} {
		ro := &v1alpha1.AddOnRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"},
			Spec: v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{
				Source: "fleet", Revision: "hello-2222222222", Digest: "v1:sha256:" + strings.Repeat("2", 64), Commit: "main@sha1:" + sha,
			}},
		}
		w.must(w.hub.Create(t.Context(), ro))
		ro.Status.ObservedGeneration, ro.Status.Target, ro.Status.Phase = ro.Generation, ro.Spec.Target, v1alpha1.PhaseProgressing
		ro.Status.Message = "everyone 1/2 of " + namespace
		w.must(w.hub.Status().Update(t.Context(), ro))
		w.must(w.hub.Create(t.Context(), &v1alpha1.AddOnSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"},
			Spec:       v1alpha1.AddOnSourceSpec{URL: "https://git.example/" + namespace, Interval: metav1.Duration{Duration: time.Minute}},
		}))
	}
	w.must(w.hub.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "jane"}}))
	w.grant("team", "jane", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addonrollouts"}, Verbs: []string{"get", "list"}})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) client(config *rest.Config) client.Client {
	w.t.Helper()
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	w.must(err)
	return c
}

// grant gives a right in a namespace to the user and to the ServiceAccount of a name.
func (w *world) grant(namespace, name string, rule rbacv1.PolicyRule) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	w.must(w.hub.Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	w.must(w.hub.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "team", Name: name},
		},
	}))
}

// token is one of jane's ServiceAccount.
func (w *world) token() string {
	w.t.Helper()
	request := &authenticationv1.TokenRequest{}
	jane := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "jane"}}
	w.must(w.hub.SubResource("token").Create(w.t.Context(), jane, request))
	return request.Status.Token
}

// pages are served from a client's reads, through a door.
func (w *world) pages(reads client.Reader, door Door) http.Handler {
	w.t.Helper()
	s, err := New(Options{
		Hub: reads, Door: door, Base: "/", Namespace: "team", Poll: 10 * time.Millisecond,
		Inspector: func(client.ObjectKey) func(context.Context) (Inspection, error) {
			return func(context.Context) (Inspection, error) {
				return Inspection{Plan: rollout.Plan{Clusters: []rollout.ClusterPlan{{Name: "eu-01", State: rollout.Updating, Reason: "a secret reason"}}}}, nil
			}
		},
	})
	w.must(err)
	return s.Handler()
}

// browser keeps cookies and follows no redirection.
type browser struct {
	t       *testing.T
	base    string
	client  *http.Client
	cookies map[string]*http.Cookie
	headers map[string]string
}

func newBrowser(t *testing.T, server *httptest.Server) *browser {
	t.Helper()
	c := server.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{t: t, base: server.URL, client: c, cookies: map[string]*http.Cookie{}, headers: map[string]string{}}
}

// do sends a request and returns the code, where it leads, and the page.
func (b *browser) do(method, path string, form url.Values) (code int, location, page string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	if host := b.headers["Host"]; host != "" {
		r.Host = host
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range answer.Cookies() {
		b.cookies[c.Name] = c
	}
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		b.t.Errorf("%s %s: policy %q", method, path, policy)
	}
	return answer.StatusCode, answer.Header.Get("Location"), string(text)
}

// TestTokenDoor: a viewer logs in with a token of the hub and sees what its user may get, each part
// for itself.
func TestTokenDoor(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewTLSServer(w.pages(w.hub, NewTokenDoor(w.hub, w.clock)))
	t.Cleanup(server.Close)
	b := newBrowser(t, server)
	page := "/rollouts/team/hello/" + sha

	b.headers["X-Remote-User"] = "jane" // no certificate proves that a proxy sent it
	if code, to, _ := b.do("GET", page, nil); code != http.StatusFound || !strings.HasPrefix(to, "/login?to=rollouts%2Fteam") {
		t.Fatalf("without a login: %d to %s", code, to)
	}
	delete(b.headers, "X-Remote-User")
	for _, wrong := range []string{"", "wrong", strings.Repeat("x", 4000)} {
		if code, _, _ := b.do("POST", "/login", url.Values{"token": {wrong}}); code != http.StatusUnauthorized || len(b.cookies) != 0 {
			t.Errorf("a wrong token of %d bytes: %d, %v", len(wrong), code, b.cookies)
		}
	}
	if code, _, _ := b.do("POST", "/login", url.Values{"token": {strings.Repeat("x", 20000)}}); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form without end: %d", code)
	}
	b.headers["Sec-Fetch-Site"] = "cross-site"
	if code, _, _ := b.do("POST", "/login", url.Values{"token": {w.token()}}); code != http.StatusForbidden {
		t.Errorf("a login from another site: %d", code)
	}
	delete(b.headers, "Sec-Fetch-Site")
	if code, to, _ := b.do("POST", "/login", url.Values{"token": {w.token()}, "to": {"//evil.example"}}); code != http.StatusSeeOther || to != "/" {
		t.Errorf("a login leads elsewhere: %d to %s", code, to)
	}
	if code, to, _ := b.do("POST", "/login", url.Values{"token": {w.token()}, "to": {page[1:]}}); code != http.StatusSeeOther || to != page {
		t.Fatalf("login: %d to %s", code, to)
	}
	if c := b.cookies[tokenCookie]; c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}

	code, _, text := b.do("GET", page, nil)
	if code != http.StatusOK || !strings.Contains(text, "everyone 1/2 of team") || !strings.Contains(text, "system:serviceaccount:team:jane") {
		t.Fatalf("%d %s", code, text)
	}
	if !strings.Contains(text, "Single clusters are not shown: you may not get managedclusters.") || strings.Contains(text, "eu-01") {
		t.Errorf("clusters need a right of their own:\n%s", text)
	}
	_, _, there := b.do("GET", "/rollouts/other/hello", nil)
	code, _, absent := b.do("GET", "/rollouts/other/absent", nil)
	if code != http.StatusForbidden || strings.ReplaceAll(absent, "absent", "hello") != there {
		t.Errorf("whether a rollout exists is shown: %d\n%s\n%s", code, there, absent)
	}
	for _, path := range []string{"/sources/team/fleet", "/clusters/eu-01", "/rollouts/team/hello/" + sha + "/clusters"} {
		if code, _, text := b.do("GET", path, nil); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if _, _, text := b.do("GET", "/", nil); !strings.Contains(text, "team/hello") || strings.Contains(text, "other/hello") || strings.Contains(text, "git.example") {
		t.Errorf("the fleet of jane:\n%s", text)
	}
	for path, want := range map[string]int{"/rollouts/team/hello/" + strings.Repeat("9", 40): http.StatusNotFound, "/rollouts/team/..%2Fhello": http.StatusNotFound, "/rollouts/team/hello": http.StatusFound} {
		if code, _, _ := b.do("GET", path, nil); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		if code, _, _ := b.do(method, page, url.Values{}); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
	w.seesChanges(b, "events"+page)

	w.must(w.hub.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "jane"}}))
	hubtest.Eventually(t, "a withdrawn right ends", func() bool {
		w.clock.SetTime(w.clock.Now().Add(remembered + time.Second))
		code, _, _ := b.do("GET", page, nil)
		return code == http.StatusForbidden
	})
	b.do("POST", "/logout", url.Values{})
	if c := b.cookies[tokenCookie]; c.MaxAge >= 0 {
		t.Errorf("the cookie stays after the logout: %+v", c)
	}
}

// seesChanges follows the events of a page while its rollout changes.
func (w *world) seesChanges(b *browser, path string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, b.base+"/"+path, http.NoBody)
	w.must(err)
	r.AddCookie(b.cookies[tokenCookie])
	answer, err := b.client.Do(r)
	w.must(err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		w.t.Fatalf("the events ended: %v", lines.Err())
		return ""
	}
	before := next()
	ro := &v1alpha1.AddOnRollout{}
	w.must(w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "hello"}, ro))
	ro.Status.Message = "everyone 1/2 of team, in flight"
	w.must(w.hub.Status().Update(w.t.Context(), ro))
	if after := next(); after == before {
		w.t.Error("the same version after a change")
	}
}

// TestProxyDoor: a proxy names the user only with a certificate of the given authority.
func TestProxyDoor(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	ours, theirs := issue(t, dir, "ours"), issue(t, dir, "theirs")
	l := Listener{CertFile: ours.certFile, KeyFile: ours.keyFile, ProxyCAFile: ours.certFile}
	config, err := l.tls(t.Context())
	w.must(err)
	server := httptest.NewUnstartedServer(w.pages(w.hub, NewTokenDoor(w.hub, w.clock)))
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	page := "/rollouts/team/hello/" + sha
	for name, c := range map[string]struct {
		proxy *issued
		user  string
		want  int
	}{
		"WithoutACertificate": {nil, "jane", http.StatusFound},
		"WithoutAUser":        {&ours, "", http.StatusFound},
		"Jane":                {&ours, "jane", http.StatusOK},
		"Joe":                 {&ours, "joe", http.StatusForbidden},
		"AnotherAuthority":    {&theirs, "jane", 0},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			if c.proxy != nil {
				transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.proxy.pair, nil }
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+page, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if c.user != "" {
				r.Header.Set("X-Remote-User", c.user)
			}
			answer, err := transport.RoundTrip(r)
			if c.want == 0 {
				if err == nil {
					_ = answer.Body.Close()
					t.Errorf("a certificate of another authority was accepted: %d", answer.StatusCode)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != c.want {
				t.Errorf("%d, want %d", answer.StatusCode, c.want)
			}
		})
	}
}

// TestLocalDoor: the user of a kubeconfig needs the key, at an address of this machine, and the hub
// itself refuses what the user may not get.
func TestLocalDoor(t *testing.T) {
	w := newWorld(t)
	as := rest.CopyConfig(w.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	door := NewLocalDoor()
	server := httptest.NewServer(w.pages(w.client(as), door))
	t.Cleanup(server.Close)
	b := newBrowser(t, server)
	page := "/rollouts/team/hello/" + sha
	if code, _, _ := b.do("GET", page, nil); code != http.StatusFound {
		t.Errorf("without the key: %d", code)
	}
	if code, _, _ := b.do("GET", "/login?key=wrong", nil); code != http.StatusOK || len(b.cookies) != 0 {
		t.Errorf("with a wrong key: %d", code)
	}
	if code, to, _ := b.do("GET", "/login?key="+door.Key(), nil); code != http.StatusFound || to != "/" {
		t.Errorf("with the key: %d to %s", code, to)
	}
	if code, _, text := b.do("GET", page, nil); code != http.StatusOK || !strings.Contains(text, "everyone 1/2 of team") {
		t.Errorf("%d %s", code, text)
	}
	for _, path := range []string{"/rollouts/other/hello", "/sources/team/fleet"} {
		if code, _, _ := b.do("GET", path, nil); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _, text := b.do("GET", "/", nil); code != http.StatusOK || !strings.Contains(text, "team/hello") || strings.Contains(text, "other/hello") || !strings.Contains(text, "Sources are not shown") {
		t.Errorf("the namespace of the kubeconfig: %d %s", code, text)
	}
	b.headers["Host"] = "evil.example" // its address was changed to 127.0.0.1
	if code, _, _ := b.do("GET", page, nil); code != http.StatusFound {
		t.Errorf("under another name: %d", code)
	}
}

// Browsers send the cookies of 127.0.0.1 to every port of it.
func TestLocalDoor_LeavesOtherDashboardsOfTheMachineOpen(t *testing.T) {
	w := withoutHub(t)
	first, second := NewLocalDoor(), NewLocalDoor()
	server, other := httptest.NewServer(w.pages(w.hub, first)), httptest.NewServer(w.pages(w.hub, second))
	t.Cleanup(server.Close)
	t.Cleanup(other.Close)
	b := newBrowser(t, server)
	b.do("GET", "/login?key="+first.Key(), nil)
	b.base = other.URL
	b.do("GET", "/login?key="+second.Key(), nil)
	for _, base := range []string{server.URL, other.URL} {
		b.base = base
		if code, to, _ := b.do("GET", "/", nil); code != http.StatusOK {
			t.Errorf("%s: %d to %s", base, code, to)
		}
	}
	b.do("POST", "/logout", url.Values{})
	for _, c := range b.cookies {
		if out := strings.HasSuffix(other.URL, strings.TrimPrefix(c.Name, "addonflow-key-")); out != (c.MaxAge < 0) {
			t.Errorf("after the logout of %s: %s", other.URL, c)
		}
	}
}

// The page of a cluster without add-ons is not that of a name without a cluster.
func TestCluster_ThatDoesNotExistHasNoPage(t *testing.T) {
	w := withoutHub(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-01"}})
	server := httptest.NewServer(w.pages(w.hub, rights{"managedclusters", "managedclusteraddons", "manifestworks"}))
	t.Cleanup(server.Close)
	b := newBrowser(t, server)
	for name, want := range map[string]int{"eu-01": http.StatusOK, "absent": http.StatusNotFound} {
		code, _, text := b.do("GET", "/clusters/"+name, nil)
		if code != want || strings.Contains(text, "No add-on of AddonFlow is on this cluster") != (want == http.StatusOK) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// Each kind that is hidden as a whole is named.
func TestFleet_NamesTheKindsThatAreHidden(t *testing.T) {
	name := metav1.ObjectMeta{Namespace: "team", Name: "hello"}
	w := withoutHub(t, &v1alpha1.AddOnRollout{ObjectMeta: name}, &v1alpha1.AddOnSource{ObjectMeta: name})
	for _, may := range []rights{{}, {rolloutsResource}, {sourcesResource}} {
		server := httptest.NewServer(w.pages(w.hub, may))
		t.Cleanup(server.Close)
		_, _, text := newBrowser(t, server).do("GET", "/", nil)
		for kind, resource := range map[string]string{"rollouts": rolloutsResource, "sources": sourcesResource} {
			if strings.Contains(text, "You may not list the "+kind+" of any namespace.") == slices.Contains(may, resource) {
				t.Errorf("with %v: %s", may, text)
			}
		}
		if strings.Contains(text, "There is no rollout here yet.") {
			t.Errorf("with %v, the page says that there is none", may)
		}
	}
}

// TestPlansThatAreNotLookedAtAreForgotten: a plan, and what was rendered for it, has every cluster of a fleet.
func TestPlansThatAreNotLookedAtAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Inspector: func(client.ObjectKey) func(context.Context) (Inspection, error) {
			return func(context.Context) (Inspection, error) { return Inspection{}, nil }
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, name := range []string{"a", "b"} {
				if _, err := s.inspect(t.Context(), client.ObjectKey{Name: name}, "1"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(keptFor / 2) //nolint:forbidigo // the clock of the bubble
		}
		if s.plans.of.Len() != 2 {
			t.Errorf("%d plans that are looked at are kept, want 2", s.plans.of.Len())
		}
		time.Sleep(keptFor) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if s.plans.of.Len() != 0 {
			t.Errorf("%d plans are kept", s.plans.of.Len())
		}
	})
}

// TestAPlanThatIsLookedAtStaysWhenManyAreMade: the plan that was not looked at for longest makes room, and nothing
// keeps it in memory.
func TestAPlanThatIsLookedAtStaysWhenManyAreMade(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	get := func(n int) *planned {
		return s.plans.get(client.ObjectKey{Name: strconv.Itoa(n)}, func(client.ObjectKey) func(context.Context) (Inspection, error) { return nil })
	}
	kept := get(0)
	unseen := weak.Make(get(1))
	for n := range plansKept {
		get(2 + n)
		if get(0) != kept {
			t.Fatalf("the plan is made again after %d others", n+2)
		}
	}
	goruntime.GC()
	if unseen.Value() != nil {
		t.Error("a plan that made room is still in memory")
	}
}

// TestListenerFilesGoTogether: a proxy that cannot prove itself is refused at the start.
func TestListenerFilesGoTogether(t *testing.T) {
	for want, l := range map[string]Listener{
		"must be set together":        {CertFile: "a"},
		"needs a certificate":         {ProxyCAFile: "ca"},
		"":                            {CertFile: "a", KeyFile: "b", ProxyCAFile: "ca"},
		"its key must be set togethe": {KeyFile: "b", ProxyCAFile: "ca"},
	} {
		if err := l.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// issued is a certificate that signed itself, for a server, a client and an authority.
type issued struct {
	certFile, keyFile string
	pair              tls.Certificate
}

func issue(t *testing.T, dir, name string) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	i := issued{certFile: filepath.Join(dir, name+".crt"), keyFile: filepath.Join(dir, name+".key")}
	certPEM, keyPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(os.WriteFile(i.certFile, certPEM, 0o600), os.WriteFile(i.keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	if i.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return i
}
