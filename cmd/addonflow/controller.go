package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/gates/measure"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
)

// controllerOptions are the flags of `addonflow controller`. Their names are those of Flux's controllers.
type controllerOptions struct {
	metricsAddr    string
	healthAddr     string
	webhookAddr    string
	eventsAddr     string
	notifyURL      string
	notifyKeyFile  string
	notifier       *notifier
	concurrent     int
	allNamespaces  bool
	namespace      string
	addonManager   string
	defaultCanary  bool
	parkAfter      time.Duration
	removalGrace   time.Duration
	hubRoles       []string
	caNamespaces   []string
	tenants        string
	tenantsKey     crclient.ObjectKey
	hookTimeout    time.Duration
	gates          measure.Options
	git            gitsource.Access
	pages          pagesOptions
	traceFile      string
	client         client.Options
	logger         logger.Options
	leaderElection leaderelection.Options
	rateLimiter    controller.RateLimiterOptions
	jitter         jitter.IntervalOptions
}

func newControllerCommand() *cobra.Command {
	o := &controllerOptions{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the operator against the hub of the current kubeconfig",
		Long: `Run the operator against the hub of the current kubeconfig.

It ends with exit code 0 when asked to (SIGINT, SIGTERM), 1 when it fails, such as after
the loss of its leadership, 2 for wrong usage and 6 if the hub cannot be reached.`,
		Example: `  # On a hub, as the deployment runs it
  addonflow controller --enable-leader-election

  # Against the hub of a kubeconfig, on a hub without OCM's addon-manager
  KUBECONFIG=hub.kubeconfig addonflow controller --addon-manager=replace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *controllerOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.metricsAddr, "metrics-addr", ":8080", "The address the metric endpoint binds to; 0 turns it off.")
	fs.StringVar(&o.healthAddr, "health-addr", ":9440", "The address the health endpoint binds to.")
	fs.StringVar(&o.webhookAddr, "webhook-addr", ":9292", "The address at which webhooks of forges are received; 0 turns it off.")
	fs.StringVar(&o.eventsAddr, "events-addr", "", "The address of an events receiver, such as Flux's notification-controller.")
	fs.StringVar(&o.notifyURL, "notify-url", "", "The URL to which events of rollouts are posted, as signed CloudEvents.")
	fs.StringVar(&o.notifyKeyFile, "notify-key-file", "", "The file with the key of the signatures of --notify-url.")
	fs.IntVar(&o.concurrent, "concurrent", 4, "The number of sources, and of rollouts, reconciled at once. Those that wait for a chart do not count.")
	fs.BoolVar(&o.allNamespaces, "watch-all-namespaces", true,
		"Watch for AddOnSources and AddOnRollouts in all namespaces; if false, in the runtime namespace alone.")
	fs.StringVar(&o.namespace, "watch-namespace", "", "The namespace whose AddOnSources and AddOnRollouts are reconciled; all if empty.")
	fs.StringVar(&o.addonManager, "addon-manager", string(addonsource.Coexist),
		"Whether OCM's addon-manager runs beside this operator (coexist) or not (replace).")
	fs.BoolVar(&o.defaultCanary, "default-canary", false,
		"Move one cluster first, and then at most 10 % at a time, in add-ons whose files declare no pace; first installs excepted.")
	fs.DurationVar(&o.parkAfter, "park-after", addonrollout.DefaultParkAfter,
		"How long a cluster that is lost after its admission keeps its slot if no progressDeadline is set.")
	fs.DurationVar(&o.removalGrace, "removal-grace-period", addonrollout.DefaultRemovalGrace,
		"Grace period of each cluster that leaves the install set, and the period of the removal budget.")
	fs.StringSliceVar(&o.hubRoles, "allowed-hub-roles", nil,
		"Roles that templates may give to their agents besides those with the label "+registration.AllowLabel+"=true: ClusterRole/<name> or Role/<namespace>/<name>.")
	fs.StringSliceVar(&o.caNamespaces, "signing-ca-namespaces", []string{registration.DefaultSigningNamespace},
		"The namespaces whose Secrets templates may name as a signing CA.")
	fs.StringVar(&o.tenants, "tenants", "",
		"The ConfigMap, NAMESPACE/NAME, that says which namespaces may declare what. Without it, every namespace may declare everything.")
	fs.DurationVar(&o.hookTimeout, "pre-delete-timeout", addonrollout.DefaultHookTimeout,
		"How long the pre-delete hooks of a cluster may take before they are reported; nothing is removed before they complete.")
	fs.BoolVar(&o.gates.AllowHTTP, "gate-allow-http", false,
		"Allow gates of type prometheus and webhook to call addresses without TLS.")
	fs.BoolVar(&o.gates.AllowLoopback, "gate-allow-loopback", false,
		"Allow gates of type prometheus and webhook to call loopback and link-local addresses, and metadata services of clouds.")
	fs.BoolVar(&o.git.AllowLoopback, "git-allow-loopback", false,
		"Allow Git servers, registries and forges at loopback and link-local addresses, and at the addresses of clouds' metadata services.")
	fs.BoolVar(&o.git.AllowHTTPCredentials, "git-allow-http-credentials", false,
		"Allow the credentials of a source, and the token of its forge, to be sent over http, in plain text.")
	fs.StringVar(&o.pages.listener.Address, "dashboard-addr", "", "The address at which the pages of rollouts are served; if empty, they are not served.")
	fs.StringVar(&o.pages.listener.CertFile, "dashboard-tls-cert-file", "",
		"The certificate of the pages. Without it a proxy in front must serve them over TLS, or browsers do not keep logins.")
	fs.StringVar(&o.pages.listener.KeyFile, "dashboard-tls-key-file", "", "The key of the certificate of the pages.")
	fs.StringVar(&o.pages.listener.ProxyCAFile, "dashboard-proxy-ca-file", "",
		"The authority of a proxy that logs users in: with a client certificate of it, X-Remote-User and X-Remote-Group name the user.")
	fs.StringVar(&o.pages.publicURL, "public-url", "",
		"The address at which users reach the pages: commit statuses without a targetURL link to them.")
	fs.StringVar(&o.traceFile, "trace-file", "", "A file to which every plan and its input are appended, for tests.")
	_ = fs.MarkHidden("trace-file") // the flag was declared above
	o.client.BindFlags(fs)
	o.logger.BindFlags(fs)
	o.leaderElection.BindFlags(fs)
	o.rateLimiter.BindFlags(fs)
	o.jitter.BindFlags(fs)
}

// garbagePercent is the operator's GOGC, in percent of the heap in use. In comparison with Go's default of 100, the
// peak of the operator's memory is a quarter lower, and its CPU time a tenth higher; see docs/scale.md.
const garbagePercent = 50

func (o *controllerOptions) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	mode, err := addonsource.ParseMode(o.addonManager)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if _, err := o.pages.base(); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if err := o.parseTenants(); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if o.notifier, err = newNotifier(o.notifyURL, o.notifyKeyFile, ctrl.Log.WithName("notify")); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	o.namespace = o.watched(runtimeNamespace())
	log := logger.NewLogger(o.logger)
	logger.SetLogger(log)
	if err := o.jitter.SetGlobalJitter(nil); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot load a kubeconfig: %w", err)}
	}
	mgr, err := o.newManager(ctx, config, mode)
	switch {
	case silent(err):
		return &exitError{code: exitUnreachable, err: err}
	case err != nil:
		return &exitError{code: exitFailed, err: err}
	}
	if err := o.checkTenants(ctx, mgr.GetAPIReader()); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	log.Info("Starting the operator", "version", version(), "addonManager", mode)
	if err := mgr.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot run the operator: %w", err)}
	}
	return nil
}

func (o *controllerOptions) parseTenants() error {
	if o.tenants == "" {
		return nil
	}
	key, err := tenancy.ParseName(o.tenants)
	if err != nil {
		return fmt.Errorf("--tenants: %w", err)
	}
	o.tenantsKey = key
	return nil
}

// checkTenants returns an error at the start if the policy of tenants is invalid.
func (o *controllerOptions) checkTenants(ctx context.Context, hub crclient.Reader) error {
	if o.tenants == "" {
		return nil
	}
	_, err := tenancy.Read(ctx, hub, o.tenantsKey)
	return err
}

// watched returns the namespace that the operator watches; "": all. runtime is the namespace in which it runs.
func (o *controllerOptions) watched(runtime string) string {
	if o.namespace == "" && !o.allNamespaces {
		return runtime
	}
	return o.namespace
}

// runtimeNamespace is the namespace of the pod, which has the leader's Lease.
func runtimeNamespace() string {
	if ns := os.Getenv("RUNTIME_NAMESPACE"); ns != "" {
		return ns
	}
	return "addonflow-system"
}
