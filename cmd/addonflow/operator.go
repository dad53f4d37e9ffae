package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/flowcontrol"
	runtimecontroller "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/metrics"
	"github.com/fluxcd/pkg/runtime/pprof"
	"github.com/fluxcd/pkg/runtime/probes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crtmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/gatechecks"
	"github.com/addonflow/addonflow/controllers/hook"
	"github.com/addonflow/addonflow/controllers/hubclient"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/githubapp"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
)

// controllerName is the field manager and the source of events. The Lease's name begins with it.
const controllerName = "addonflow"

// newScheme knows every kind the operator and the commands read or write.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, addonv1alpha1.Install,
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("cannot assemble the scheme: %w", err)
		}
	}
	return s, nil
}

// newManager connects cache, metrics, probes and the controllers.
func (o *controllerOptions) newManager(ctx context.Context, config *rest.Config, mode addonsource.Mode) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(o.throttled(ctx, config), ctrl.Options{
		Scheme:                        scheme,
		Cache:                         o.cacheOptions(),
		NewClient:                     hubclient.NewClient,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddr, ExtraHandlers: pprof.GetHandlers()},
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                o.leaderElection.Enable,
		LeaderElectionReleaseOnCancel: o.leaderElection.ReleaseOnCancel,
		LeaseDuration:                 &o.leaderElection.LeaseDuration,
		RenewDeadline:                 &o.leaderElection.RenewDeadline,
		RetryPeriod:                   &o.leaderElection.RetryPeriod,
		LeaderElectionID:              leaseName(o.namespace),
		LeaderElectionNamespace:       runtimeNamespace(),
		GracefulShutdownTimeout:       new(10 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the hub: %w", err)
	}
	probes.SetupChecks(mgr, ctrl.Log.WithName("setup"))
	return mgr, o.setupControllers(ctx, mgr, mode)
}

// leaseName is the name of the leader's Lease. Operators of different namespaces have different Leases and do not
// wait for each other.
func leaseName(namespace string) string {
	const name = controllerName + "-leader-election"
	if namespace == "" {
		return name
	}
	return leaderelection.GenerateID(name, namespace)
}

// cacheOptions keeps objects and fields that no controller reads out of the cache.
func (o *controllerOptions) cacheOptions() cache.Options {
	own := map[string]cache.Config(nil)
	if o.namespace != "" {
		own = map[string]cache.Config{o.namespace: {}}
	}
	// The objects of a fleet differ only in names and times. Equal parts are kept once, to save memory.
	same, manifests := hubclient.NewSharer(), render.NewAbridger()
	stripped := func(in any) (any, error) {
		out, err := cache.TransformStripManagedFields()(in)
		if err != nil {
			return nil, err
		}
		return same.Share(out)
	}
	return cache.Options{
		DefaultTransform: stripped,
		NewInformer:      newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.AddOnSource{}:   {Namespaces: own},
			&v1alpha1.AddOnRollout{}:  {Namespaces: own, Transform: same.Share},
			&v1alpha1.AddOnApproval{}: {Namespaces: own},
			&v1alpha1.AddOnOrder{}:    {Namespaces: own},
			&v1alpha1.AddOnRevision{}: {Namespaces: own},
			&workv1.ManifestWork{}: {Label: addonrollout.WorkSelector(), Transform: func(in any) (any, error) {
				return same.Share(addonrollout.TrimWork(in, manifests))
			}},
			&clusterv1.ManagedCluster{}: {Transform: func(in any) (any, error) {
				return same.Share(addonrollout.TrimManagedCluster(in))
			}},
			&certificatesv1.CertificateSigningRequest{}:                 {Label: agents.Selector()},
			&rbacv1.RoleBinding{}:                                       {Label: agents.Selector()},
			&rbacv1.ClusterRole{}:                                       {Label: agents.RoleSelector()},
			&rbacv1.Role{}:                                              {Label: agents.RoleSelector()},
			&admissionregistrationv1.ValidatingAdmissionPolicy{}:        {Field: admission.Selector()},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}: {Field: admission.Selector()},
			// The managed fields of these kinds, and of AddOnRollouts, are kept, because they name a foreign writer.
			&addonv1alpha1.ManagedClusterAddOn{}:    {Transform: same.Share},
			&addonv1alpha1.ClusterManagementAddOn{}: {Transform: same.Share},
		},
	}
}

// newInformer leaves out the index of works by namespace, which has a map for each cluster. No controller lists the
// works of one namespace from the cache; such a list is an error.
func newInformer(lw toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, work := kind.(*workv1.ManifestWork); work {
		delete(indexers, toolscache.NamespaceIndex)
	}
	return toolscache.NewSharedIndexInformer(lw, kind, resync, indexers)
}

// setupControllers registers both controllers and their common parts.
func (o *controllerOptions) setupControllers(ctx context.Context, mgr ctrl.Manager, mode addonsource.Mode) error {
	recorder, err := o.setupEvents(mgr)
	if err != nil {
		return fmt.Errorf("cannot set up events: %w", err)
	}
	gotk := metrics.NewRecorder()
	crtmetrics.Registry.MustRegister(gotk.Collectors()...)
	tokens := githubapp.New(operatorClock().Now)
	desk := forge.NewDesk(forge.Options{
		Secrets: mgr.GetAPIReader(), Sources: mgr.GetClient(),
		HTTP:   commitstatus.NewHTTPClient(dial.Policy{AllowLoopback: o.git.AllowLoopback}),
		Tokens: tokens, Now: operatorClock().Now, Pages: o.pages.publicURL,
		Separate: o.tenants != "", RequireTLS: !o.git.AllowHTTPCredentials,
	})
	crtmetrics.Registry.MustRegister(desk.Collector())
	if err := mgr.Add(desk); err != nil {
		return fmt.Errorf("cannot set up commit statuses: %w", err)
	}
	charts := renderworker.NewPool(renderworker.Options{})
	if err := mgr.Add(charts); err != nil {
		return fmt.Errorf("cannot set up charts: %w", err)
	}
	gateDesk := gatechecks.NewDesk(gatechecks.Options{Secrets: mgr.GetAPIReader(), Measure: o.gates, Clock: operatorClock()})
	if err := mgr.Add(gateDesk); err != nil {
		return fmt.Errorf("cannot set up gates: %w", err)
	}
	parts := shared{
		charts: charts, gates: gateDesk,
		mgr: mgr, recorder: recorder, tokens: tokens, desk: desk, book: agents.NewBook(), mode: mode,
		metrics: runtimecontroller.NewMetrics(mgr, gotk, v1alpha1.Finalizer),
	}
	rollouts, err := o.setupRollouts(ctx, parts)
	if err != nil {
		return fmt.Errorf("cannot set up rollouts: %w", err)
	}
	if err := o.setupPages(mgr, rollouts); err != nil {
		return fmt.Errorf("cannot set up pages: %w", err)
	}
	if err := o.setupAgents(ctx, parts); err != nil {
		return fmt.Errorf("cannot set up registration: %w", err)
	}
	if err := o.setupSources(parts); err != nil {
		return fmt.Errorf("cannot set up sources: %w", err)
	}
	if err := o.setupWebhooks(ctx, mgr); err != nil {
		return fmt.Errorf("cannot set up webhooks: %w", err)
	}
	return nil
}

// setupEvents adds the sender of events, and the notifier if there is one.
func (o *controllerOptions) setupEvents(mgr ctrl.Manager) (*eventSender, error) {
	recorder, err := newEventSender(mgr, o.eventsAddr)
	if err != nil {
		return nil, err
	}
	if recorder.notifier = o.notifier; recorder.notifier != nil {
		if err := mgr.Add(recorder.notifier); err != nil {
			return nil, err
		}
	}
	return recorder, mgr.Add(recorder)
}

// setupWebhooks adds the receiver of webhooks, which runs on every replica.
func (o *controllerOptions) setupWebhooks(ctx context.Context, mgr ctrl.Manager) error {
	if o.webhookAddr == "0" {
		return nil
	}
	// A follower also has a watch cache of the sources.
	if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.AddOnSource{}); err != nil {
		return err
	}
	receiver, err := hook.New(hook.Options{
		Address: o.webhookAddr, Sources: mgr.GetCache(), Live: mgr.GetAPIReader(),
		Client: client.WithFieldOwner(mgr.GetClient(), v1alpha1.FieldManager), Log: ctrl.Log.WithName("webhooks"),
	}, crtmetrics.Registry)
	if err != nil {
		return err
	}
	return mgr.Add(receiver)
}

// shared has the parts that both controllers use.
type shared struct {
	charts   *renderworker.Pool
	gates    *gatechecks.Desk
	mgr      ctrl.Manager
	recorder *eventSender
	tokens   *githubapp.Tokens
	desk     *forge.Desk
	book     *agents.Book
	mode     addonsource.Mode
	metrics  runtimecontroller.Metrics
}

func (o *controllerOptions) setupRollouts(ctx context.Context, s shared) (*addonrollout.Reconciler, error) {
	trace, err := traceTo(o.traceFile)
	if err != nil {
		return nil, err
	}
	r := addonrollout.New(addonrollout.Options{
		Client:            client.WithFieldOwner(s.mgr.GetClient(), v1alpha1.FieldManager),
		Live:              s.mgr.GetAPIReader(),
		Recorder:          s.recorder,
		Metrics:           s.metrics,
		Desk:              s.desk,
		Gates:             s.gates,
		Agents:            s.book,
		Charts:            s.charts,
		Reconciles:        renderworker.NewReconciles(o.concurrent),
		Clock:             operatorClock(),
		ParkAfter:         o.parkAfter,
		RemovalGrace:      o.removalGrace,
		HookTimeout:       o.hookTimeout,
		HidesTemplateHash: s.mode == addonsource.Coexist,
		Tenants:           o.readTenants(s.mgr.GetAPIReader()),
		Trace:             trace,
	})
	return r, r.SetupWithManager(ctx, s.mgr, o.workers(), crtmetrics.Registry)
}

// workers are the options of a controller, with its own rate limiter.
func (o *controllerOptions) workers() controller.Options {
	return controller.Options{MaxConcurrentReconciles: o.concurrent, RateLimiter: runtimecontroller.GetRateLimiter(o.rateLimiter)}
}

// setupAgents registers the controllers that give agents access to the hub.
func (o *controllerOptions) setupAgents(ctx context.Context, s shared) error {
	options := agents.Options{
		Client:            client.WithFieldOwner(s.mgr.GetClient(), v1alpha1.FieldManager),
		Live:              s.mgr.GetAPIReader(),
		Recorder:          s.recorder,
		Book:              s.book,
		Clock:             operatorClock(),
		Random:            rand.Reader,
		Roles:             o.rolePolicy(),
		SigningNamespaces: o.caNamespaces,
	}
	workers := controller.Options{MaxConcurrentReconciles: o.concurrent}
	if err := agents.NewRequests(options).SetupWithManager(ctx, s.mgr, workers); err != nil {
		return err
	}
	if err := agents.NewBindings(options).SetupWithManager(s.mgr, workers); err != nil {
		return err
	}
	if s.mode != addonsource.Replace {
		return nil // OCM's addon-manager makes the objects for tokens
	}
	return setupTokens(ctx, s.mgr, options, workers)
}

func (o *controllerOptions) rolePolicy() registration.RolePolicy {
	return registration.RolePolicy{Allowed: o.hubRoles}
}

// setupSources registers the controller of AddOnSources.
func (o *controllerOptions) setupSources(s shared) error {
	r := addonsource.New(addonsource.Config{
		Client:       client.WithFieldOwner(s.mgr.GetClient(), v1alpha1.FieldManager),
		Live:         s.mgr.GetAPIReader(),
		Accounts:     addonsource.Accounts(s.mgr.GetConfig(), s.mgr.GetClient()),
		Events:       s.recorder,
		Metrics:      s.metrics,
		Desk:         s.desk,
		Namespace:    o.namespace,
		AddonManager: s.mode, DefaultCanary: o.defaultCanary,
		Clock:  operatorClock().Now,
		Charts: s.charts, Reconciles: renderworker.NewReconciles(o.concurrent),
		Git:     o.git,
		Tokens:  s.tokens,
		Permits: addonsource.Permits{Roles: o.rolePolicy(), SigningNamespaces: o.caNamespaces},
		Tenants: o.readTenants(s.mgr.GetAPIReader()),
	})
	crtmetrics.Registry.MustRegister(r.Collector())
	if err := r.SetupWithManager(s.mgr, o.workers()); err != nil {
		return err
	}
	planner := addonsource.NewPlanner(r, func(ctx context.Context) (proposal.Fleet, error) { return hubFleet(ctx, s.mgr.GetClient()) })
	if err := planner.SetupWithManager(s.mgr, o.workers()); err != nil {
		return err
	}
	if err := addonsource.NewReverter(r).SetupWithManager(s.mgr, o.workers()); err != nil {
		return err
	}
	return addonsource.NewApprover(r).SetupWithManager(s.mgr, o.workers())
}

// readTenants returns the function that reads the policy of tenants; nil: there is no policy.
func (o *controllerOptions) readTenants(hub client.Reader) func(context.Context) (tenancy.Policy, error) {
	if o.tenants == "" {
		return nil
	}
	return func(ctx context.Context) (tenancy.Policy, error) { return tenancy.Read(ctx, hub, o.tenantsKey) }
}

// throttled limits requests by the flags if the hub has no priority and fairness. Otherwise the hub limits them, as
// for Flux's controllers.
func (o *controllerOptions) throttled(ctx context.Context, config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.QPS, limited.Burst = o.client.QPS, o.client.Burst
	if enabled, err := flowcontrol.IsEnabled(ctx, config); err == nil && enabled {
		limited.QPS, limited.Burst = -1, -1
	}
	return limited
}
