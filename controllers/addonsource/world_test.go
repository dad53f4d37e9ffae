package addonsource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/chart"
	testforge "github.com/addonflow/addonflow/test/forge"
	"github.com/addonflow/addonflow/test/gitserver"
)

// world is the environment of one spec: a namespace, a repository, a forge, a source and an
// operator that runs pass by pass.
type world struct {
	namespace string
	// addOn is a name no other spec uses.
	addOn  string
	repo   *gitserver.Repo
	forge  *testforge.Forge
	events *record.FakeRecorder

	requests   *counter
	desk       *forge.Desk
	stop       func()
	reconciler *addonsource.Reconciler
	cache      *lagging
	clock      *clocktesting.FakeClock
	// logged are the lines at level info.
	logged []string
	// mode of the operator, and its engine for charts; changes apply from the next start.
	mode   addonsource.Mode
	charts chart.Engines
	// operator has the rights of the operator, an admin's if nil; permits is what agents may have.
	operator *rest.Config
	// tenants reads what sources may declare, nil: everything.
	tenants func(context.Context) (tenancy.Policy, error)
	permits addonsource.Permits
}

var worlds int

// newWorld makes a world with a source that reports to its forge.
func newWorld(change ...func(*v1alpha1.AddOnSource)) *world {
	GinkgoHelper()
	return newWorldIn(fmt.Sprintf("team-%d", worlds+1), change...)
}

// newWorldIn makes a world in a Namespace of that name.
func newWorldIn(namespace string, change ...func(*v1alpha1.AddOnSource)) *world {
	GinkgoHelper()
	worlds++
	w := &world{namespace: namespace, addOn: fmt.Sprintf("hello-%d", worlds), clock: clocktesting.NewFakeClock(time.Now()), stop: func() {}, charts: chart.InProcess{}}
	DeferCleanup(func() { w.stop() })
	var err error
	w.repo, err = theGit.Create(w.namespace)
	Expect(err).NotTo(HaveOccurred())
	// The source of an earlier world would own the contexts if its forge had the same port and repository.
	w.forge = testforge.New(w.namespace + "/fleet")
	w.forge.RequireToken("correct-horse")
	_, err = w.forge.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(w.forge.Close()).To(Succeed())
		w.announced()
		GinkgoWriter.Printf("said to the forge: %+v\n", w.forge.Log())
	})

	if namespace != metav1.NamespaceDefault {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	}
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forge"},
		Data:       map[string][]byte{"token": []byte("correct-horse")},
	})
	w.create(w.newSource("fleet", change...))
	w.start()
	return w
}

// newSource returns a source over the world's repository.
func (w *world) newSource(name string, change ...func(*v1alpha1.AddOnSource)) *v1alpha1.AddOnSource {
	source := &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.AddOnSourceSpec{
			URL:       w.repo.URL(),
			Reference: &v1alpha1.GitReference{Branch: "main"},
			Interval:  metav1.Duration{Duration: time.Minute},
			Path:      "addons",
			CommitStatus: &v1alpha1.CommitStatusSpec{
				Provider: "gitea", Address: w.forge.Address(w.namespace + "/fleet"),
				SecretRef: &fluxmeta.LocalObjectReference{Name: "forge"},
			},
		},
	}
	for _, c := range change {
		c(source)
	}
	return source
}

// start starts an operator without memory, in place of the one before.
func (w *world) start() {
	GinkgoHelper()
	config := theHub.Config()
	if w.operator != nil {
		config = rest.CopyConfig(w.operator)
	}
	w.requests = &counter{}
	config.Wrap(w.requests.wrap)
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	w.desk = forge.NewDesk(forge.Options{Secrets: c, Sources: c, HTTP: &http.Client{Timeout: time.Minute}, Now: time.Now, Separate: w.tenants != nil})
	w.stop()
	w.stop = deliver(w.desk)
	if w.events != nil {
		w.announced()
	}
	w.events = record.NewFakeRecorder(100)
	w.cache = &lagging{Client: c}
	w.reconciler = addonsource.New(addonsource.Config{
		Git: gitsource.Access{AllowLoopback: true, AllowHTTPCredentials: true}, Client: w.cache, Live: c, Events: w.events, Desk: w.desk, Charts: w.charts, Clock: w.clock.Now, AddonManager: w.mode,
		Accounts: addonsource.Accounts(config, c), Permits: w.permits, Tenants: w.tenants,
	})
}

// lagging is the operator's client. Its watch cache of AddOnRollouts can be stopped.
type lagging struct {
	client.Client
	stopped *v1alpha1.AddOnRolloutList
	// meanwhile runs once, before the next write of an object of a commit.
	meanwhile func()
}

func (l *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if rollouts, ok := list.(*v1alpha1.AddOnRolloutList); ok && l.stopped != nil {
		l.stopped.DeepCopyInto(rollouts)
		return nil
	}
	return l.Client.List(ctx, list, options...)
}

func (l *lagging) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if meanwhile := l.meanwhile; meanwhile != nil {
		l.meanwhile = nil
		meanwhile()
	}
	return l.Client.Patch(ctx, o, patch, options...)
}

// stopCache keeps the operator's watch cache as it is now; the returned function lets it go on.
func (w *world) stopCache() (resume func()) {
	GinkgoHelper()
	now := &v1alpha1.AddOnRolloutList{}
	Expect(w.cache.List(context.Background(), now, client.InNamespace(w.namespace))).To(Succeed())
	w.cache.stopped = now
	return func() { w.cache.stopped = nil }
}

// deliver lets a desk post, and returns the function that stops it, which may be called more
// than once.
func deliver(desk *forge.Desk) func() {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = desk.Start(ctx) }()
	return func() { cancel(); <-stopped }
}

// pass runs one reconcile of the source and checks that its status is well-formed.
func (w *world) pass() ctrl.Result {
	GinkgoHelper()
	result, err := w.passOf("fleet")
	Expect(err).NotTo(HaveOccurred())
	return result
}

// passOf runs one reconcile of a source of the world.
func (w *world) passOf(name string) (ctrl.Result, error) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: w.namespace, Name: name}
	result, err := w.reconcile(key)
	source := &v1alpha1.AddOnSource{}
	if admin.Get(context.Background(), key, source) == nil && len(source.Status.Conditions) > 0 {
		checker := check.NewChecker(admin, &check.Conditions{
			NegativePolarity: []string{fluxmeta.StalledCondition, fluxmeta.ReconcilingCondition},
		})
		failed, warned := checker.Check(context.Background(), source)
		Expect(failed).NotTo(HaveOccurred())
		Expect(warned).NotTo(HaveOccurred())
	}
	return result, err
}

// reconcile runs one reconcile, and those that its errands to the Git server lead to.
func (w *world) reconcile(key client.ObjectKey) (ctrl.Result, error) {
	for {
		log := funcr.NewJSON(func(line string) { w.logged = append(w.logged, line) }, funcr.Options{})
		result, err := w.reconciler.Reconcile(ctrl.LoggerInto(context.Background(), log), ctrl.Request{NamespacedName: key})
		if err != nil || !w.reconciler.Await(key) {
			return result, err
		}
	}
}

// passes runs passes until none requests another one soon, as a queue would. The desk's waits, such as
// those after a start, are real time.
func (w *world) passes() {
	GinkgoHelper()
	for begin := time.Now(); time.Since(begin) < patience; {
		result := w.pass()
		if result.RequeueAfter == 0 || result.RequeueAfter > 10*time.Second {
			return
		}
		w.clock.Step(result.RequeueAfter)
	}
	Fail("the source never comes to rest")
}

// announced returns the events since the last call.
func (w *world) announced() []string {
	var events []string
	for {
		select {
		case e := <-w.events.Events:
			GinkgoWriter.Println("event:", e)
			events = append(events, e)
		default:
			return events
		}
	}
}

// look advances the clock to the next look at the repository, and runs its passes.
func (w *world) look() {
	GinkgoHelper()
	w.clock.Step(2 * time.Minute)
	w.passes()
}

// delivered runs passes, and advances the clock, until the forge shows a state of a context, which is appended
// to the source's.
func (w *world) delivered(sha, state string, part ...string) testforge.Entry {
	GinkgoHelper()
	wanted := strings.Join(append([]string{"addonflow/fleet"}, part...), "/")
	var entry testforge.Entry
	shown := func([]testforge.Entry) bool {
		var found bool
		entry, found = w.forge.Latest(sha, wanted)
		return found && entry.State == state
	}
	for range 12 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := w.forge.WaitFor(ctx, shown)
		cancel()
		if err == nil {
			return entry
		}
		w.clock.Step(15 * time.Second) // what failed is tried again after a while
		w.pass()
	}
	Expect(entry.State).To(Equal(state), "log: %v", w.forge.Log())
	return entry
}

// green writes, as the rollout controller would, that the target is rolled out, and waits until
// the forge shows it on a commit.
func (w *world) green(sha string) testforge.Entry {
	GinkgoHelper()
	w.rolledOut()
	w.passes()
	return w.delivered(sha, "success")
}

// goes waits until a source that is being deleted is gone; its forge accepts the last statuses.
func (w *world) goes() {
	GinkgoHelper()
	Eventually(func() bool {
		source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
		if !exists(source) {
			return true
		}
		w.pass()
		return false
	}).WithTimeout(time.Minute).Should(BeTrue())
}

// rolledOut writes, as the rollout controller would, that the target is rolled out.
func (w *world) rolledOut() {
	GinkgoHelper()
	w.changeRolloutStatus(func(r *v1alpha1.AddOnRollout) {
		r.Status.Target, r.Status.Phase, r.Status.Outcome = r.Spec.Target, v1alpha1.PhaseSucceeded, "success"
		r.Status.ObservedGeneration = r.Generation
	})
}

// source reads the source.
func (w *world) source() *v1alpha1.AddOnSource {
	GinkgoHelper()
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	w.read(source)
	return source
}

// change updates the source as a user would.
func (w *world) change(f func(*v1alpha1.AddOnSource)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a running operator writes as well
		source := w.source()
		f(source)
		return admin.Update(context.Background(), source)
	})).To(Succeed())
}

// request asks for a reconcile, the n-th time.
func (w *world) request(token string) {
	GinkgoHelper()
	w.change(func(s *v1alpha1.AddOnSource) {
		s.Annotations = map[string]string{fluxmeta.ReconcileRequestAnnotation: token}
	})
}

func (w *world) create(o client.Object) {
	GinkgoHelper()
	Expect(admin.Create(context.Background(), o)).To(Succeed())
}

func (w *world) read(o client.Object) {
	GinkgoHelper()
	Expect(admin.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
}

// exists reports whether an object exists.
func exists(o client.Object) bool {
	GinkgoHelper()
	err := admin.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// commit pushes files, with ADDON in paths and contents replaced by the world's add-on.
func (w *world) commit(message string, files map[string]string) string {
	GinkgoHelper()
	named := map[string]string{}
	for path, content := range files {
		named[w.named(path)] = w.named(content)
	}
	sha, err := w.repo.Commit(message, named)
	Expect(err).NotTo(HaveOccurred())
	return sha
}

// remove pushes the removal of files.
func (w *world) remove(message string, paths ...string) string {
	GinkgoHelper()
	for i := range paths {
		paths[i] = w.named(paths[i])
	}
	sha, err := w.repo.Remove(message, paths...)
	Expect(err).NotTo(HaveOccurred())
	return sha
}

func (w *world) named(s string) string {
	return strings.NewReplacer("ADDON", w.addOn, "NAMESPACE", w.namespace).Replace(s)
}

func (w *world) rollout() *v1alpha1.AddOnRollout {
	return &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.addOn}}
}

func (w *world) cma() *addonv1alpha1.ClusterManagementAddOn {
	return &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: w.addOn}}
}

func (w *world) template() *addonv1alpha1.AddOnTemplate {
	return &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: w.addOn}}
}

// revisions lists the AddOnRevisions of the world.
func (w *world) revisions() []v1alpha1.AddOnRevision {
	GinkgoHelper()
	list := &v1alpha1.AddOnRevisionList{}
	Expect(admin.List(context.Background(), list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// removed writes, as the rollout controller would, that no cluster has the add-on.
func (w *world) removed() {
	GinkgoHelper()
	r := w.rollout()
	w.read(r)
	r.Status.Phase, r.Status.ObservedGeneration = v1alpha1.PhaseRemoved, r.Generation
	Expect(admin.Status().Update(context.Background(), r)).To(Succeed())
}

// counter counts the write requests of an operator, and its dry runs separately.
type counter struct {
	mu      sync.Mutex
	writes  []string
	dryRuns []string
	// before is called before a write request is sent, if not nil.
	before func(*http.Request)
	// down answers dry runs with an error of the hub.
	down bool
	// left is how many writes arrive before the operator is killed; nil: it is not.
	left *int
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		switch request := r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery; {
		case r.Method == http.MethodGet:
		case r.URL.Query().Has("dryRun"):
			c.dryRuns = append(c.dryRuns, request)
		default:
			c.writes = append(c.writes, request)
		}
		before, down := c.before, c.down && r.URL.Query().Has("dryRun")
		killed := c.left != nil && r.Method != http.MethodGet && !r.URL.Query().Has("dryRun")
		if killed && *c.left > 0 {
			*c.left--
			killed = false
		}
		c.mu.Unlock()
		if killed {
			return nil, errors.New("the operator was killed")
		}
		if down {
			return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody, Request: r}, nil
		}
		if before != nil && r.Method != http.MethodGet {
			before(r)
		}
		return next.RoundTrip(r)
	})
}

// reset forgets what was counted.
func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes, c.dryRuns = nil, nil
}

// fail makes dry runs fail, or succeed again.
func (c *counter) fail(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// tried returns the dry runs since the last reset.
func (c *counter) tried() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.dryRuns...)
}

// written returns the write requests since the last reset.
func (c *counter) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.writes...)
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
