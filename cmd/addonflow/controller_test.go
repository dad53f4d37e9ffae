package main

import (
	"errors"
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/pageserver"
)

// TestFlagsAreFluxs: what an operator of Flux is started with starts this one, and means
// the same.
func TestFlagsAreFluxs(t *testing.T) {
	flags := newControllerCommand().Flags()
	for name, standard := range map[string]string{
		"metrics-addr": ":8080", "health-addr": ":9440", "events-addr": "", "concurrent": "4", "watch-all-namespaces": "true",
		"kube-api-qps": "50", "kube-api-burst": "300", "log-level": "info", "log-encoding": "json", "interval-jitter-percentage": "5",
		"min-retry-delay": "750ms", "max-retry-delay": "15m0s",
		"enable-leader-election": "false", "leader-election-release-on-cancel": "true", "leader-election-lease-duration": "35s",
		"leader-election-renew-deadline": "30s", "leader-election-retry-period": "5s",
	} {
		switch flag := flags.Lookup(name); {
		case flag == nil:
			t.Errorf("there is no --%s", name)
		case flag.DefValue != standard:
			t.Errorf("--%s is %q without being given, Flux's %q", name, flag.DefValue, standard)
		}
	}
}

func TestWatchedNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"usual":       {nil, ""},
		"own":         {[]string{"--watch-all-namespaces=false"}, "here"},
		"another":     {[]string{"--watch-namespace=there"}, "there"},
		"both":        {[]string{"--watch-all-namespaces=false", "--watch-namespace=there"}, "there"},
		"all, spoken": {[]string{"--watch-all-namespaces"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, flags := &controllerOptions{}, pflag.NewFlagSet("controller", pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if got := o.watched("here"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLeaseName: one leader for all namespaces, and one for each that is watched alone.
func TestLeaseName(t *testing.T) {
	all, one, other := leaseName(""), leaseName("one"), leaseName("other")
	if all != "addonflow-leader-election" || one == all || one == other {
		t.Errorf("got %q, %q and %q", all, one, other)
	}
}

// TestPagesFlags: an address that users cannot open, and a proxy that cannot prove itself, are
// refused at the start.
func TestPagesFlags(t *testing.T) {
	for name, c := range map[string]struct {
		options pagesOptions
		base    string
	}{
		"None":     {pagesOptions{}, "/"},
		"Root":     {pagesOptions{publicURL: "https://hub.example"}, "/"},
		"Path":     {pagesOptions{publicURL: "https://hub.example/a/b/"}, "/a/b/"},
		"NoScheme": {pagesOptions{publicURL: "hub.example/a"}, ""},
		"Script":   {pagesOptions{publicURL: "javascript://hub.example"}, ""},
		"User":     {pagesOptions{publicURL: "https://u:p@hub.example"}, ""},
		"Query":    {pagesOptions{publicURL: "https://hub.example/?a"}, ""},
		"Proxy":    {pagesOptions{listener: pageserver.Listener{ProxyCAFile: "ca.crt"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if base, err := c.options.base(); base != c.base || (err == nil) != (c.base != "") {
				t.Errorf("got %q, %v, want %q", base, err, c.base)
			}
		})
	}
}

// TestController_WrongFlagIsNoUnreachableHub: the hub is not asked before the flags are known to be right.
func TestController_WrongFlagIsNoUnreachableHub(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	for _, flag := range []string{"--notify-url=https://hooks.example.com", "--public-url=hub.example.com", "--tenants=x/y/z"} {
		cmd := newControllerCommand()
		cmd.SetArgs([]string{flag})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if exit, ok := errors.AsType[*exitError](cmd.ExecuteContext(t.Context())); !ok || exit.code != exitUsage {
			t.Errorf("%s: %v", flag, exit)
		}
	}
}

// TestController_CollectsGarbageEarly: the operator's own threshold holds unless GOGC is set.
func TestController_CollectsGarbageEarly(t *testing.T) {
	for setting, want := range map[string]int{"": garbagePercent, "80": 100} {
		t.Setenv("GOGC", setting)
		before := debug.SetGCPercent(100)
		cmd := newControllerCommand()
		cmd.SetArgs([]string{"--addon-manager=unknown"})
		err := cmd.ExecuteContext(t.Context())
		if got := debug.SetGCPercent(before); err == nil || got != want {
			t.Errorf("GOGC=%q: the threshold is %d, want %d; %v", setting, got, want, err)
		}
	}
}

// TestWatchNamespace_ConfinesEveryKind: an event of another namespace would wake a rollout that this operator does not
// reconcile.
func TestWatchNamespace_ConfinesEveryKind(t *testing.T) {
	confined := map[string]bool{}
	for object, by := range (&controllerOptions{namespace: "team"}).cacheOptions().ByObject {
		_, only := by.Namespaces["team"]
		confined[reflect.TypeOf(object).Elem().Name()] = only && len(by.Namespaces) == 1
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind+"List")) && !confined[kind] {
			t.Errorf("%s is watched in all namespaces", kind)
		}
	}
}

// TestWorks_HaveNoIndexByNamespace: it would take more memory than what a work does not share with others.
func TestWorks_HaveNoIndexByNamespace(t *testing.T) {
	for kind, want := range map[runtime.Object]bool{&workv1.ManifestWork{}: false, &addonv1alpha1.ManagedClusterAddOn{}: true} {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		informer := (&controllerOptions{}).cacheOptions().NewInformer(&cache.ListWatch{}, kind, 0, indexers)
		if _, found := informer.GetIndexer().GetIndexers()[cache.NamespaceIndex]; found != want {
			t.Errorf("%T: index by namespace: %v, want %v", kind, found, want)
		}
	}
}
