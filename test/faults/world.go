package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/faults/proxy"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/hub"
)

// clusters is how many managed clusters there are.
const clusters = 7

// world is a hub with everything around it, and the operators behind their proxies.
type world struct {
	*demo.World
	history *oracle.History
	// api, forge, prometheus and webhook are the proxies before those servers.
	api, forge, prometheus, webhook *proxy.Proxy
	// measures is the server behind the last two.
	measures *measures
	plans    string
	// clock is the file with what is added to the operators' clock.
	clock string

	options demo.OperatorOptions
	// programs of the operators: whenever one ends, the next is started; the last one again. newer brings the
	// definitions and the policy that an admin applies before the second; nil: they are there.
	programs []string
	newer    func(context.Context) error
	mu       sync.Mutex
	running  []*demo.Operator
	// kills counts the operators that a fault ended; crashes are those that ended otherwise.
	kills    int
	crashes  []error
	stopping bool
	// crashed ends the run.
	crashed context.CancelCauseFunc
	// leaders: an operator that is no longer the leader ends by itself.
	leaders  bool
	watchers sync.WaitGroup
}

// startWorld starts everything but the operators. Stop must be called.
func startWorld(ctx context.Context, p programs, faults []proxy.Fault) (*world, error) {
	names := clusterNames()
	base, err := demo.StartWorld(ctx, demo.WorldOptions{
		Release: hub.OCM12, Binary: p.operators[0], Clusters: names, Canaries: names[:1], ShippedRights: true,
		Fleet: fleet.Options{WithoutFinalizer: true}, StoresJSON: true,
	})
	if err != nil {
		return nil, err
	}
	w := &world{World: base, plans: filepath.Join(base.Dir, "plans.jsonl"), clock: filepath.Join(base.Dir, "clock"), programs: p.operators}
	if p.manifests != "" {
		if w.newer, err = exchange(ctx, base.Client, p.manifests); err != nil {
			return nil, errors.Join(err, base.Stop())
		}
	}
	w.history = oracle.Follow(w.Hub) //nolint:contextcheck // it lives until Stop
	w.measures = startMeasures(w.history)
	if err := w.startProxies(faults); err != nil { //nolint:contextcheck // they live until Stop
		return nil, errors.Join(err, w.Stop())
	}
	w.options = demo.OperatorOptions{
		Binary: p.operators[0], Kubeconfig: filepath.Join(w.Dir, "proxy.kubeconfig"), LogFile: filepath.Join(w.Dir, "operator.log"),
		Flags: append([]string{
			"--concurrent=8", "--max-retry-delay=5s", "--park-after=10s", "--removal-grace-period=20s", "--trace-file=" + w.plans,
			"--gate-allow-http", "--gate-allow-loopback",
		}, p.flags...),
		Env: []string{clockFile + "=" + w.clock},
	}
	return w, nil
}

// clockFile is the environment variable that names the file with what is added to the clock, for
// an operator that was built with the tag faultclock.
const clockFile = "ADDONFLOW_FAULT_CLOCK"

// programs are the operator's.
type programs struct {
	// operators are started one after another; the last one again whenever it ended.
	operators []string
	// flags of these operators, in addition to those of every operator.
	flags []string
	// manifests is the directory with those of the first one, if they are others.
	manifests string
}

func clusterNames() []string {
	names := make([]string, 0, clusters)
	for _, c := range fleet.Numbered("cluster", clusters) {
		names = append(names, c.Name)
	}
	return names
}

// startProxies starts one before each server. A fault names its class, which only one of them has; one of any class is
// of the API server's.
func (w *world) startProxies(faults []proxy.Fault) error {
	config, err := clientcmd.BuildConfigFromFlags("", w.OperatorKubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the operator's kubeconfig: %w", err)
	}
	operator, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("cannot reach the hub: %w", err)
	}
	for _, p := range []struct {
		proxy     **proxy.Proxy
		address   string
		transport http.RoundTripper
		classify  proxy.Classifier
	}{
		{&w.api, config.Host, operator, proxy.Kubernetes},
		{&w.forge, w.Forge.URL(), &http.Transport{}, proxy.Statuses},
		{&w.prometheus, w.measures.server.URL, &http.Transport{}, proxy.Questions("prometheus")},
		{&w.webhook, w.measures.server.URL, &http.Transport{}, proxy.Questions("webhook")},
	} {
		to, err := url.Parse(p.address)
		if err != nil {
			return fmt.Errorf("cannot reach %s: %w", p.address, err)
		}
		own := faults
		if p.proxy != &w.api {
			own = slices.Clone(faults)
			for i := range own {
				own[i].Class = cmp.Or(own[i].Class, "none")
			}
		}
		if *p.proxy, err = proxy.Start(proxy.Options{Upstream: to, Transport: p.transport, Classify: p.classify, Kill: w.kill, Faults: own}); err != nil {
			return err
		}
	}
	text := fmt.Sprintf(kubeconfig, w.api.URL())
	return os.WriteFile(filepath.Join(w.Dir, "proxy.kubeconfig"), []byte(text), 0o600)
}

// kubeconfig has no credentials: the proxy has them.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: hub, cluster: {server: %q}}]
users: [{name: operator, user: {}}]
contexts: [{name: hub, context: {cluster: hub, user: operator}}]
current-context: hub
`

// startOperators starts n operators, which are started again when they end.
func (w *world) startOperators(n int) error {
	for i := range n {
		o := w.options
		if i > 0 {
			o.LogFile = filepath.Join(w.Dir, fmt.Sprintf("operator-%d.log", i+1))
		}
		if err := w.startOperator(o); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startOperator(o demo.OperatorOptions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return nil
	}
	operator, err := demo.StartOperator(o)
	if err != nil {
		return err
	}
	w.running = append(w.running, operator)
	w.watchers.Go(func() {
		<-operator.Done()
		o.Binary = w.next()
		err := errors.Join(w.ended(operator), w.upgrade())
		if err == nil {
			err = w.startOperator(o)
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.crashes = append(w.crashes, err)
			w.crashed(err)
		}
	})
	return nil
}

// next is the program that follows.
func (w *world) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.programs) > 1 {
		w.programs = w.programs[1:]
	}
	return w.programs[0]
}

// upgrade applies what comes with the next program, once.
func (w *world) upgrade() error {
	w.mu.Lock()
	newer := w.newer
	w.newer = nil
	stopping := w.stopping
	w.mu.Unlock()
	if newer == nil || stopping {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return newer(ctx)
}

// leadershipLost is one of the last lines of an operator whose lease another one got. Its workers may end after it.
const leadershipLost = "leader election lost"

// ended removes an operator from those that run. If the operator ended by itself, ended returns an error with the end
// of the log, so that the run fails now and not at its deadline.
func (w *world) ended(operator *demo.Operator) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.running, operator)
	if i < 0 {
		return nil // it was killed
	}
	w.running = slices.Delete(w.running, i, i+1)
	said := operator.Tail(20)
	if w.stopping || w.leaders && strings.Contains(said, leadershipLost) {
		return nil
	}
	return errors.Join(errors.New("the operator ended by itself: "+said), operator.Err())
}

// kill ends every operator as kill -9 does, and returns when they are gone.
func (w *world) kill() {
	w.mu.Lock()
	killed := w.running
	w.running = nil
	w.kills += len(killed)
	w.mu.Unlock()
	for _, o := range killed {
		o.Kill()
	}
}

// proxies are those that were started.
func (w *world) proxies() []*proxy.Proxy {
	return slices.DeleteFunc([]*proxy.Proxy{w.api, w.forge, w.prometheus, w.webhook}, func(p *proxy.Proxy) bool { return p == nil })
}

// end ends the operators.
func (w *world) end() {
	w.mu.Lock()
	w.stopping = true
	running := slices.Clone(w.running)
	w.mu.Unlock()
	for _, o := range running {
		o.Kill()
	}
	w.watchers.Wait()
}

// Stop ends everything.
func (w *world) Stop() error {
	w.end()
	var err error
	for _, p := range w.proxies() {
		err = errors.Join(err, p.Close())
	}
	w.measures.stop()
	w.history.Stop()
	return errors.Join(err, w.World.Stop())
}

// rest waits until the operators have written nothing for a while. The error is that of an
// operator that never stops to write.
func (w *world) rest(ctx context.Context) error {
	const quiet, within = 1500 * time.Millisecond, 30 * time.Second
	for begun := time.Now(); time.Since(begun) < within; {
		last := w.api.Last()
		if posted := w.forge.Last(); posted.After(last) {
			last = posted
		}
		if time.Since(last) >= quiet {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quiet - time.Since(last)):
		}
	}
	return fmt.Errorf("the operator still writes %s after the last step ended", within)
}
