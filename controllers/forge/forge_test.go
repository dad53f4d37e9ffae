package forge

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/githubapp"
	testforge "github.com/addonflow/addonflow/test/forge"
)

const (
	sha      = "1111111111111111111111111111111111111111"
	nextSHA  = "2222222222222222222222222222222222222222"
	goodWord = "correct-horse"
	badWord  = "battery-staple"
)

func TestKey(t *testing.T) {
	want := Key{Kind: "AddOnSource", NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "x"}}
	got, ok := parseKey(want.String())
	if !ok || got != want {
		t.Errorf("parseKey(%q) = %v, %v", want, got, ok)
	}
	if _, ok := parseKey("nonsense"); ok {
		t.Error("parseKey accepted nonsense")
	}
}

func TestContextName(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.CommitStatusSpec
		parts  []string
		want   string
	}{
		"Source":    {"the source's name is the default", nil, nil, "addonflow/team"},
		"Stage":     {"parts follow in order", nil, []string{"hello", "canary"}, "addonflow/team/hello/canary"},
		"OwnPrefix": {"the declared prefix replaces the default", &v1alpha1.CommitStatusSpec{Context: "fleet"}, []string{"hello"}, "fleet/hello"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
			source.Spec.CommitStatus = c.spec
			if got := ContextName(source, c.parts...); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestPlanContextName_IsAsOwnAsTheContext: sources whose contexts differ have plans that differ, and no plan
// is posted under a context of another source.
func TestPlanContextName_IsAsOwnAsTheContext(t *testing.T) {
	declared := func(context string) *v1alpha1.AddOnSource {
		source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
		source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{Provider: "gitea", Context: context}
		source.Spec.PullRequests = &v1alpha1.PullRequestsSpec{Enabled: true}
		return source
	}
	contexts := map[string]string{
		"": "addonflow-plan/fleet", "addonflow/eu/fleet": "addonflow-plan/eu/fleet", "eu/fleet": "eu-plan/fleet", "fleet": "fleet-plan",
		"plan/fleet": "plan-plan/fleet", strings.Repeat("x", 100): "", strings.Repeat("x", 99) + "y": "",
	}
	posted := map[string]string{}
	for context, want := range contexts {
		got := PlanContextName(declared(context))
		if other, taken := posted[got]; taken || want != "" && got != want {
			t.Errorf("plans of %q are %q, want %q; it is that of %q", context, got, want, other)
		}
		posted[got] = context
		for other := range contexts {
			if other != context && shareContexts(declared(context), declared(other)) {
				t.Errorf("%q and %q have one owner", context, other)
			}
		}
	}
	if !shareContexts(declared(""), declared("addonflow-plan/fleet")) || !shareContexts(declared("addonflow-plan/fleet/hello"), declared("")) {
		t.Error("a source may report under the context of another one's plans")
	}
}

// bench is a desk, a forge and the object that keeps the marks.
type bench struct {
	t      *testing.T
	forge  *testforge.Forge
	desk   *Desk
	hub    client.Client
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	source *v1alpha1.AddOnSource
	key    Key
}

func newBench(t *testing.T, token string) *bench {
	t.Helper()
	f := testforge.New("team/fleet", "team/fleet-moved")
	f.RequireToken(goodWord)
	if _, err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "team", Generation: 1}}
	source.Spec.Interval = metav1.Duration{Duration: time.Minute}
	source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{
		Provider: "gitea", Address: f.Address("team/fleet"),
		SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"},
	}
	b := &bench{t: t, forge: f, source: source, key: Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: client.ObjectKeyFromObject(source)}}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(tokenSecret(token)).Build()
	b.start(time.Now)
	return b
}

// start begins a process without memory.
func (b *bench) start(now func() time.Time) {
	t := b.t
	t.Helper()
	b.desk = NewDesk(Options{Secrets: b.hub, Sources: b.hub, HTTP: &http.Client{Timeout: time.Minute}, Now: now})
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	if err := b.desk.Outcomes(v1alpha1.AddOnSourceKind).Start(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = b.desk.Start(ctx) }()
	queue := b.queue
	t.Cleanup(func() { cancel(); <-stopped; queue.ShutDown() })
}

func tokenSecret(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "forge"},
		Data:       map[string][]byte{"token": []byte(token)},
	}
}

// named is how messages name a Secret of the bench's source.
func named(name string) string {
	return "spec.commitStatus.secretRef of AddOnSource team: Secret fleet/" + name
}

// reconcile does what a controller does with its marks, and returns the requeue.
func (b *bench) reconcile(change func(*Book)) time.Duration {
	b.t.Helper()
	book := b.desk.Open(b.key, b.source, b.source.Status.CommitStatuses)
	change(book)
	book.Address(b.t.Context(), b.source)
	b.source.Status.CommitStatuses = book.Stored()
	book.SetConditions(b.source)
	return book.Deliver()
}

// awaitRequest waits for the request that the outcome of a delivery causes. Outcomes that come together cause one.
func (b *bench) awaitRequest() {
	b.t.Helper()
	late := time.AfterFunc(2*time.Minute, b.queue.ShutDown)
	defer late.Stop()
	request, stop := b.queue.Get()
	if stop {
		b.t.Fatal("no outcome caused a request")
	}
	b.queue.Done(request)
	if request.NamespacedName != b.key.NamespacedName {
		b.t.Fatalf("request for %s, want %s", request, b.key.NamespacedName)
	}
}

func (b *bench) condition() (metav1.ConditionStatus, string) {
	c := conditions.Get(b.source, v1alpha1.CommitStatusReportedCondition)
	if c == nil {
		return "", ""
	}
	return c.Status, c.Message
}

// denied returns the condition that says what is wrong with the token, nil if nothing is.
func (b *bench) denied() *metav1.Condition {
	return conditions.Get(b.source, v1alpha1.CommitStatusDeniedCondition)
}

func nothing(*Book) {}

func want(state commitstatus.State, text string) func(*Book) {
	return func(b *Book) {
		b.Enter(commitstatus.Want{SHA: sha, Context: "addonflow/team", State: state, Description: text})
	}
}

// overtaken makes the next commit replace the first.
func overtaken(b *Book) {
	b.Overtake(commitstatus.Succession{Live: []string{nextSHA}, By: nextSHA, Whole: "addonflow/team"})
}

// TestCommitStatus_IsPostedAndReportedInTheCondition follows one status from the want to the condition.
func TestCommitStatus_IsPostedAndReportedInTheCondition(t *testing.T) {
	b := newBench(t, goodWord)
	b.reconcile(want(commitstatus.Success, "applied"))
	if status, _ := b.condition(); status != metav1.ConditionUnknown {
		t.Errorf("on its way: condition %q, want Unknown", status)
	}
	b.awaitRequest()
	b.reconcile(nothing)
	if status, message := b.condition(); status != metav1.ConditionTrue {
		t.Errorf("delivered: condition %q %q, want True", status, message)
	}
	if e, ok := b.forge.Latest(sha, "addonflow/team"); !ok || e.State != "success" || e.Description != "applied" {
		t.Errorf("the forge shows %+v", e)
	}
	requests := b.forge.Requests()
	if after := b.reconcile(nothing); after != 0 || b.forge.Requests() != requests {
		t.Errorf("at rest: requeue %s, %d requests, want none", after, b.forge.Requests()-requests)
	}
}

// TestCommitStatusReported_StaysTrueWhileOnlyTheProgressLagsBehind: progress is posted every 30 seconds, and a verdict at
// once.
func TestCommitStatusReported_StaysTrueWhileOnlyTheProgressLagsBehind(t *testing.T) {
	b := newBench(t, goodWord)
	b.settles(want(commitstatus.Pending, "0/10 updated"))
	b.reconcile(want(commitstatus.Pending, "1/10 updated"))
	if m := b.source.Status.CommitStatuses[0]; m.Accepted.Description != "0/10 updated" || m.Owed == nil || m.Owed.Description != "1/10 updated" {
		t.Fatalf("the mark is %+v", m)
	}
	if status, message := b.condition(); status != metav1.ConditionTrue {
		t.Errorf("condition %q %q, want True", status, message)
	}
	b.reconcile(want(commitstatus.Success, "10/10 updated"))
	if status, _ := b.condition(); status != metav1.ConditionUnknown {
		t.Errorf("with a verdict on its way: condition %q, want Unknown", status)
	}
}

// TestWrongToken: a refused token is reported without the token, causes a reconcile later, and
// is forgotten with another token.
func TestWrongToken(t *testing.T) {
	b := newBench(t, badWord)
	b.reconcile(want(commitstatus.Failure, "does not build"))
	b.awaitRequest()
	after := b.reconcile(nothing)
	status, message := b.condition()
	if status != metav1.ConditionFalse || strings.Contains(message, badWord) {
		t.Errorf("condition %q %q, want False without the token", status, message)
	}
	if after <= 0 {
		t.Errorf("requeue after %s, want some time", after)
	}
	d := b.denied()
	if d == nil || d.Reason != v1alpha1.TokenRefusedReason || !strings.Contains(d.Message, named("forge")+" has the token, and it needs write:repository") {
		t.Errorf("denied %+v", d)
	}
	if err := b.hub.Update(t.Context(), tokenSecret(goodWord)); err != nil {
		t.Fatal(err)
	}
	b.reconcile(nothing)
	if err := b.forge.WaitFor(t.Context(), func(log []testforge.Entry) bool { return len(log) == 1 }); err != nil {
		t.Fatal(err)
	}
}

// TestTokenWithoutThePermission: the condition names the permission while the token lacks it, and is gone once a status
// was accepted.
func TestTokenWithoutThePermission(t *testing.T) {
	b := newBench(t, goodWord)
	b.source.Spec.CommitStatus.Provider = "github"
	b.forge.Set(testforge.Fault{Kind: testforge.Forbidden})
	b.reconcile(want(commitstatus.Failure, "does not build"))
	b.awaitRequest()
	b.reconcile(nothing)
	d := b.denied()
	if d == nil || d.Reason != v1alpha1.PermissionMissingReason || !strings.Contains(d.Message, "Commit statuses: write") {
		t.Fatalf("denied %+v", d)
	}
	b.forge.Set(testforge.Fault{})
	b.reconcile(func(book *Book) { book.Retry(b.source, "now") })
	for b.denied() != nil { // until the post that succeeds; nothing else causes a request
		b.awaitRequest()
		b.reconcile(nothing)
	}
}

// TestMissingToken: without a token there is nothing that could be refused, and the condition says so.
func TestMissingToken(t *testing.T) {
	b := newBench(t, "")
	b.reconcile(want(commitstatus.Failure, "does not build"))
	if d := b.denied(); d == nil || d.Reason != v1alpha1.TokenMissingReason || !strings.Contains(d.Message, named("forge")+` has no key "token"; it needs write:repository`) {
		t.Errorf("denied %+v", d)
	}
}

// appSecret has the keys of a GitHub App, as Flux names them.
func (b *bench) appSecret() *corev1.Secret {
	b.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.t.Fatal(err)
	}
	s := tokenSecret("")
	s.Data = map[string][]byte{
		githubapp.AppIDKey: []byte("12"), githubapp.InstallationIDKey: []byte("345"), githubapp.BaseURLKey: []byte(b.forge.URL() + "/api/v3"),
		githubapp.PrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	return s
}

// TestGitHubAppReportsWithTheTokensOfItsInstallation: a reconcile asks no forge for them, and a token that was revoked is
// replaced without a message.
func TestGitHubAppReportsWithTheTokensOfItsInstallation(t *testing.T) {
	b := newBench(t, "")
	b.source.Spec.CommitStatus.Provider = "github"
	if err := errors.Join(b.hub.Update(t.Context(), b.appSecret()), b.forge.Down()); err != nil {
		t.Fatal(err)
	}
	b.reconcile(want(commitstatus.Pending, "fetched"))
	if status, message := b.condition(); status != metav1.ConditionUnknown {
		t.Errorf("without the forge: condition %q %q", status, message)
	}
	b.awaitRequest()
	if err := b.forge.Up(); err != nil {
		t.Fatal(err)
	}
	b.reconcile(func(book *Book) { book.Retry(b.source, "now") })
	b.settles(nothing)
	b.forge.RequireToken("of the next hour")
	b.settles(want(commitstatus.Success, "applied"))
	if e, ok := b.forge.Latest(sha, "addonflow/team"); !ok || e.State != "success" {
		t.Errorf("the forge shows %+v", e)
	}
	if d := b.denied(); d != nil {
		t.Errorf("denied %+v", d)
	}
}

// TestGitHubAppThatCannotReport: the Secret is judged before a forge is asked, and no value of it is shown.
func TestGitHubAppThatCannotReport(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CommitStatusSpec, map[string][]byte)
		want   string
	}{
		"Key": {func(_ *v1alpha1.CommitStatusSpec, keys map[string][]byte) {
			keys[githubapp.PrivateKeyKey] = []byte(badWord)
		}, named("forge") + `: invalid credentials of a GitHub App: key githubAppPrivateKey is missing or no PEM`},
		"Forge":    {func(_ *v1alpha1.CommitStatusSpec, keys map[string][]byte) { delete(keys, githubapp.BaseURLKey) }, "the App is not of 127.0.0.1"},
		"Provider": {func(s *v1alpha1.CommitStatusSpec, _ map[string][]byte) { s.Provider = "gitea" }, named("forge") + ` has no key "token"`},
		"Checks": {func(s *v1alpha1.CommitStatusSpec, keys map[string][]byte) {
			s.Provider, keys["token"] = "githubchecks", []byte(goodWord)
			maps.DeleteFunc(keys, func(key string, _ []byte) bool { return githubapp.Has(map[string][]byte{key: {1}}) })
		}, named("forge") + ` has no key "githubAppID": provider githubchecks needs a GitHub App`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "")
			b.source.Spec.CommitStatus.Provider = "github"
			s := b.appSecret()
			c.change(b.source.Spec.CommitStatus, s.Data)
			if err := b.hub.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			b.reconcile(want(commitstatus.Success, "applied"))
			if status, message := b.condition(); status != metav1.ConditionFalse || !strings.Contains(message, c.want) || strings.Contains(message, badWord) {
				t.Errorf("condition %q %q, want %q", status, message, c.want)
			}
		})
	}
}

// TestSecretOfAnotherNamespaceIsNotRead: a source names no namespace, so that no tenant can use the Secret of another.
func TestSecretOfAnotherNamespaceIsNotRead(t *testing.T) {
	b := newBench(t, goodWord)
	elsewhere := tokenSecret(goodWord)
	elsewhere.Namespace, elsewhere.Name = "other", "theirs"
	if err := b.hub.Create(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs", "other/theirs", "../other/theirs"} {
		b.source.Spec.CommitStatus.SecretRef.Name = name
		b.reconcile(want(commitstatus.Success, "applied"))
		if _, message := b.condition(); !strings.Contains(message, "does not exist") {
			t.Errorf("%s: condition %q", name, message)
		}
	}
	if b.forge.Requests() > 0 {
		t.Error("the forge was asked")
	}
}

// TestForgeWithAPrivateAuthority: statuses reach a forge whose certificate only the Secret's authority signed, as Git does.
func TestForgeWithAPrivateAuthority(t *testing.T) {
	b := newBench(t, goodWord)
	server := httptest.NewUnstartedServer(b.forge)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake that the operator ends
	server.StartTLS()
	t.Cleanup(server.Close)
	b.source.Spec.CommitStatus.Address = server.URL + "/team/fleet"
	b.reconcile(want(commitstatus.Success, "applied"))
	b.awaitRequest()
	b.reconcile(nothing)
	if status, message := b.condition(); status != metav1.ConditionFalse || !strings.Contains(message, "certificate signed by unknown authority") {
		t.Errorf("without it: condition %q %q", status, message)
	}

	trusting := tokenSecret(goodWord)
	trusting.Data["ca.crt"] = []byte("no certificate")
	if err := b.hub.Update(t.Context(), trusting); err != nil {
		t.Fatal(err)
	}
	b.reconcile(nothing)
	if status, message := b.condition(); status != metav1.ConditionFalse || !strings.Contains(message, named("forge")+`: key "ca.crt" holds no PEM certificate`) {
		t.Errorf("with a wrong one: condition %q %q", status, message)
	}

	trusting.Data["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := b.hub.Update(t.Context(), trusting); err != nil {
		t.Fatal(err)
	}
	b.reconcile(func(book *Book) { book.Retry(b.source, "now") })
	if err := b.forge.WaitFor(t.Context(), func(log []testforge.Entry) bool { return len(log) == 1 }); err != nil {
		t.Fatal(err)
	}
	checked, err := Of(t.Context(), b.hub, b.source)
	if err != nil {
		t.Fatal(err)
	}
	if shown, ok, err := commitstatus.Latest(t.Context(), checked, sha, "addonflow/team"); err != nil || !ok || shown.State != commitstatus.Success {
		t.Errorf("the command line reads %+v, %v, %v", shown, ok, err)
	}
}

// TestNewTokenIsUsedAtOnce: a new token queues the objects whose statuses were refused; nothing else
// would.
func TestNewTokenIsUsedAtOnce(t *testing.T) {
	b := newBench(t, badWord)
	b.store(b.source.DeepCopy())
	b.reconcile(want(commitstatus.Failure, "does not build"))
	b.awaitRequest()
	b.reconcile(nothing)
	b.desk.lookAtRefused(t.Context())
	if n := b.queue.Len(); n != 0 {
		t.Errorf("%d requests with the token of before", n)
	}
	if err := b.hub.Update(t.Context(), tokenSecret(goodWord)); err != nil {
		t.Fatal(err)
	}
	b.desk.lookAtRefused(t.Context())
	b.awaitRequest()
	b.reconcile(nothing)
	if err := b.forge.WaitFor(t.Context(), func(log []testforge.Entry) bool { return len(log) == 1 }); err != nil {
		t.Fatal(err)
	}
}

// TestReconcileOfTheSourceRetriesItsRollouts: if a user requests a reconcile of the source, the statuses of the source
// and of its rollouts are due at once.
func TestReconcileOfTheSourceRetriesItsRollouts(t *testing.T) {
	b := newBench(t, badWord)
	b.reconcile(want(commitstatus.Failure, "does not build"))
	b.awaitRequest()
	b.reconcile(nothing)
	requests := b.forge.Requests()
	other := b.desk.Open(Key{Kind: v1alpha1.AddOnRolloutKind, NamespacedName: b.key.NamespacedName}, b.source, nil)
	b.forge.Set(testforge.Fault{Kind: testforge.Hang}) // the outcome comes after the request that the retry causes
	other.Retry(b.source, "now")
	b.awaitRequest()
	b.reconcile(nothing)
	b.forge.Set(testforge.Fault{})
	b.awaitRequest()
	if b.forge.Requests() == requests {
		t.Error("nothing was tried again")
	}
	for _, c := range []struct {
		request string
		due     int
	}{{"now", 0}, {"", 0}, {"again", 1}} {
		if other.Retry(b.source, c.request); b.queue.Len() != c.due {
			t.Errorf("request %q: %d objects are due, want %d: what is refused waits, unless the user asks anew", c.request, b.queue.Len(), c.due)
		}
	}
}

// TestAfterARestoreTheUserCanReplaceWhatTheForgeShows: the marks come from a backup in which the commit was a success, and
// the operator was restarted. The forge shows its later failure, which is reported although nothing is owed.
func TestAfterARestoreTheUserCanReplaceWhatTheForgeShows(t *testing.T) {
	b := newBench(t, goodWord)
	b.reconcile(want(commitstatus.Failure, "halted"))
	b.awaitRequest()
	b.reconcile(nothing)
	b.source.Status.CommitStatuses[0].Accepted = &v1alpha1.CommitStatement{State: "success", Description: "applied"}
	var ahead atomic.Int64
	b.start(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	after := b.reconcile(want(commitstatus.Success, "applied"))
	ahead.Store(int64(after))
	b.reconcile(want(commitstatus.Success, "applied"))
	// What was handed over before the clock was set is stale, and causes a request as well.
	for status := metav1.ConditionTrue; status == metav1.ConditionTrue; status, _ = b.condition() {
		b.awaitRequest()
		b.reconcile(want(commitstatus.Success, "applied"))
	}
	if status, message := b.condition(); after == 0 || status != metav1.ConditionFalse || !strings.Contains(message, "reconcile source team --force") {
		t.Errorf("read after %s: condition %q %q", after, status, message)
	}
	b.reconcile(func(book *Book) { book.Replace(b.source) })
	for { // it is read again, and posted
		b.awaitRequest()
		b.reconcile(want(commitstatus.Success, "applied"))
		status, _ := b.condition()
		if e, _ := b.forge.Latest(sha, "addonflow/team"); e.State == "success" && status == metav1.ConditionTrue {
			return
		}
	}
}

// TestFirstPassWithoutMarksPostsNothingThatTheForgeShows: the object was restored without its status, and the operator was
// restarted. Git has not answered in its first pass, which tells nothing.
func TestFirstPassWithoutMarksPostsNothingThatTheForgeShows(t *testing.T) {
	b := newBench(t, goodWord)
	b.settles(want(commitstatus.Success, "applied"))
	b.source.Status.CommitStatuses = nil
	b.start(time.Now)
	b.reconcile(nothing)
	requests := b.forge.Requests()
	b.settles(want(commitstatus.Success, "applied"))
	if posts, requests := len(b.forge.Log()), b.forge.Requests()-requests; posts != 1 || requests != 1 {
		t.Errorf("%d posts, %d requests since, want the first post and one read", posts, requests)
	}
}

// TestAnotherDestinationGetsEverything: what one forge has accepted does not count for another
// repository, provider or context.
func TestAnotherDestinationGetsEverything(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.CommitStatusSpec)
		// posted and ended are the statuses that are posted again.
		posted, ended string
	}{
		"Repository": {
			"every commit that is not forgotten", func(s *v1alpha1.CommitStatusSpec) { s.Address += "-moved" },
			"gitea team/fleet-moved addonflow/team", "gitea team/fleet-moved addonflow/team",
		},
		"Provider": {
			"it is read, and shows everything here", func(s *v1alpha1.CommitStatusSpec) { s.Provider = "github" },
			"", "",
		},
		"Context": {
			"commits that are derived", func(s *v1alpha1.CommitStatusSpec) { s.Context = "mine" },
			"gitea team/fleet mine", "",
		},
		"SameInAnotherForm": {
			"nothing has changed", func(s *v1alpha1.CommitStatusSpec) { s.Address += ".git/" },
			"", "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, goodWord)
			derived := func(book *Book) {
				book.Enter(commitstatus.Want{SHA: nextSHA, Context: ContextName(b.source), State: commitstatus.Success, Description: "applied"})
			}
			b.settles(func(book *Book) {
				book.Enter(commitstatus.Want{SHA: sha, Context: ContextName(b.source), State: commitstatus.Pending})
				derived(book)
			})
			before := len(b.forge.Log())
			c.change(b.source.Spec.CommitStatus)
			b.settles(derived)
			got := map[string]string{}
			for _, e := range b.forge.Log()[before:] {
				got[e.SHA] = string(e.API) + " " + e.Repository + " " + e.Context
			}
			if got[nextSHA] != c.posted || got[sha] != c.ended {
				t.Errorf("%s: posted %q", c.reason, got)
			}
			if status, message := b.condition(); status != metav1.ConditionTrue {
				t.Errorf("condition %q %q", status, message)
			}
		})
	}
}

// settles reconciles until the forge has accepted everything.
func (b *bench) settles(change func(*Book)) {
	b.t.Helper()
	for b.reconcile(change); slices.ContainsFunc(b.source.Status.CommitStatuses, func(m commitstatus.Mark) bool { return !commitstatus.Delivered(m) }); b.reconcile(change) {
		b.awaitRequest()
	}
}

func TestAddressTrouble(t *testing.T) {
	plain := func(s *v1alpha1.CommitStatusSpec) { s.Address = strings.Replace(s.Address, "http:", "HTTP:", 1) }
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.CommitStatusSpec)
		want   string
	}{
		"NoSecretRef": {"a forge wants a token", func(s *v1alpha1.CommitStatusSpec) { s.SecretRef = nil }, "spec.commitStatus.secretRef of AddOnSource team is not set"},
		"NoSecret":    {"the Secret is named", func(s *v1alpha1.CommitStatusSpec) { s.SecretRef.Name = "other" }, named("other") + " does not exist"},
		"BadAddress":  {"the address is judged", func(s *v1alpha1.CommitStatusSpec) { s.Address = "https://forge.example" }, "cannot use the address"},
		"PlainText":   {"a token needs TLS", plain, "the token is not sent over http; use https, or let the operator run with --git-allow-http-credentials"},
		"Provider":    {"the provider is judged", func(s *v1alpha1.CommitStatusSpec) { s.Provider = "sourcehut" }, `provider "sourcehut"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, goodWord)
			if name == "PlainText" {
				b.desk.options.RequireTLS = true
			}
			c.change(b.source.Spec.CommitStatus)
			after := b.reconcile(want(commitstatus.Success, "applied"))
			status, message := b.condition()
			if status != metav1.ConditionFalse || !strings.Contains(message, c.want) {
				t.Errorf("%s: condition %q %q, want False with %q", c.reason, status, message, c.want)
			}
			if after != secretAgain || b.forge.Requests() != 0 {
				t.Errorf("requeue after %s with %d requests, want some seconds and none", after, b.forge.Requests())
			}
			if len(b.source.Status.CommitStatuses) != 1 {
				t.Errorf("%d reports are remembered, want 1", len(b.source.Status.CommitStatuses))
			}
		})
	}
}

// TestSupersedeAndPrune ends the open contexts of an older commit, and drops marks with a
// delivered verdict.
func TestSupersedeAndPrune(t *testing.T) {
	b := newBench(t, goodWord)
	b.reconcile(want(commitstatus.Pending, "fetched"))
	b.awaitRequest()
	b.reconcile(overtaken)
	err := b.forge.WaitFor(t.Context(), func(log []testforge.Entry) bool {
		return len(log) > 0 && log[len(log)-1].State == "error" && strings.HasPrefix(log[len(log)-1].Description, "superseded by 2222")
	})
	if err != nil {
		t.Fatal(err)
	}
	for len(b.source.Status.CommitStatuses) > 0 {
		b.awaitRequest()
		b.reconcile(overtaken)
	}
	if violations := testforge.Violations(b.forge.Log()); len(violations) > 0 {
		t.Error(violations)
	}
}

// TestMarksAreDroppedWithoutCommitStatus: without a destination the marks have no meaning.
func TestMarksAreDroppedWithoutCommitStatus(t *testing.T) {
	b := newBench(t, goodWord)
	b.source.Spec.CommitStatus = nil
	if after := b.reconcile(want(commitstatus.Success, "applied")); after != 0 || b.source.Status.CommitStatuses != nil {
		t.Errorf("requeue after %s with %d reports, want nothing", after, len(b.source.Status.CommitStatuses))
	}
	if status, _ := b.condition(); status != "" {
		t.Errorf("condition %q, want none", status)
	}
}

// Tokens that are renewed every hour leave nothing behind in memory, nor does a deleted object.
func TestRenewedTokensAreForgotten(t *testing.T) {
	b := newBench(t, goodWord)
	for _, token := range []string{"first", "second", "third"} {
		if err := b.hub.Update(t.Context(), tokenSecret(token)); err != nil {
			t.Fatal(err)
		}
		l := b.desk.Open(b.key, b.source, nil)
		want(commitstatus.Pending, "")(l)
		l.Address(t.Context(), b.source)
		if n := len(b.desk.limiters); n != 1 {
			t.Errorf("%s token: %d limiters, want 1", token, n)
		}
	}
	b.desk.Forget(b.key)
	if n := len(b.desk.limiters); n != 0 {
		t.Errorf("%d limiters without a token in use", n)
	}
}

// TestCommitStatusDenied_NamesOtherPurposesOfTheToken: the forge accepts every status, and refuses to show comments.
func TestCommitStatusDenied_NamesOtherPurposesOfTheToken(t *testing.T) {
	b := newBench(t, goodWord)
	b.settles(want(commitstatus.Success, "applied"))
	if c := b.denied(); c != nil {
		t.Fatalf("denied %+v", c)
	}
	refused := &commitstatus.DeliveryError{Reason: "forge.example does not let the token read comments (403)", Denied: commitstatus.PermissionMissing}
	b.desk.Use(b.key, "approvals by comment", "read:issue", fmt.Errorf("request 7: %w", refused))
	b.awaitRequest()
	b.desk.Use(b.key, "approvals by comment", "read:issue", errors.New("the forge hangs"))
	b.reconcile(nothing)
	c := b.denied()
	if c == nil || c.Reason != string(commitstatus.PermissionMissing) ||
		!strings.HasPrefix(c.Message, "cannot use the token for approvals by comment: request 7: forge.example does not let the token read comments (403); it needs read:issue; ") {
		t.Errorf("denied %+v", c)
	}
	b.desk.Use(b.key, "approvals by comment", "read:issue", nil)
	b.awaitRequest()
	b.reconcile(nothing)
	if c := b.denied(); c != nil {
		t.Errorf("denied %+v", c)
	}
}
