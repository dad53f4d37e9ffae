package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/controllers/pageserver"
	"github.com/addonflow/addonflow/dashboard"
)

// Times between two checks whether an open page has changed: in the operator's cache, and on the hub.
const (
	pollCache = 2 * time.Second
	pollHub   = 5 * time.Second
)

func newDashboardCommand(c *cli) *cobra.Command {
	port := 0
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve the pages of rollouts, sources and clusters on this machine",
		Long: `Serve the pages of rollouts, sources and clusters on this machine.

Reads with your own credentials, and writes nothing. Prints an address with a key, without which
nothing is shown. Ends with Ctrl-C.`,
		Example: `  # Then open the address that it prints
  addonflow dashboard
  # Of another hub, at an address that stays the same
  addonflow dashboard --context staging --port 9191`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.dashboard(cmd.Context(), port) },
	}
	cmd.Flags().IntVar(&port, "port", 0, "Port to listen on; 0: any free one.")
	return c.command(cmd)
}

func (c *cli) dashboard(ctx context.Context, port int) error {
	hub, err := c.connect()
	if err != nil {
		return err
	}
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	door := pageserver.NewLocalDoor()
	inspector := inspecting(func(key client.ObjectKey) *addonrollout.Inspector {
		return addonrollout.NewInspector(hub, key, c.charts)
	})
	pages, err := pageserver.New(pageserver.Options{Hub: hub, Inspector: inspector, Door: door, Base: "/", Namespace: namespace, Poll: pollHub})
	if err != nil {
		return err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot serve pages: %w", err)}
	}
	if _, err := fmt.Fprintf(c.Out, "http://%s/login?key=%s\n", listener.Addr(), door.Key()); err != nil {
		return errors.Join(err, listener.Close())
	}
	c.hint("Open this address. Ctrl-C ends it.")
	if err := pageserver.Serve(ctx, listener, pages.Handler()); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	return nil
}

// inspecting plans each rollout with its own inspector.
func inspecting(inspector func(client.ObjectKey) *addonrollout.Inspector) func(client.ObjectKey) func(context.Context) (pageserver.Inspection, error) {
	return func(key client.ObjectKey) func(context.Context) (pageserver.Inspection, error) {
		of := inspector(key)
		return func(ctx context.Context) (pageserver.Inspection, error) {
			i, err := of.Inspect(ctx)
			note := ""
			if missing, ok := errors.AsType[*addonrollout.MissingError](err); ok {
				note, err = "Clusters are held: "+missing.Error()+".", nil
			}
			change := func(ctx context.Context, by v1alpha1.Target) (*dashboard.Change, error) {
				c, err := i.Change(ctx, by)
				if err != nil || c.Cluster == "" {
					return nil, err
				}
				return &dashboard.Change{Cluster: c.Cluster, From: c.From, Before: c.Before, After: c.After}, nil
			}
			return pageserver.Inspection{Plan: i.Plan(), Note: note, Change: change}, err
		}
	}
}

// pagesOptions are the flags of the operator's own pages.
type pagesOptions struct {
	publicURL string
	listener  pageserver.Listener
}

// base is the path of --public-url, with slashes around it. The error means wrong usage.
func (o *pagesOptions) base() (string, error) {
	if err := o.listener.Validate(); err != nil {
		return "", err
	}
	at, err := url.Parse(o.publicURL)
	if err != nil || o.publicURL != "" && (at.Scheme != "https" && at.Scheme != "http" || at.Host == "") || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return "", fmt.Errorf("cannot use --public-url=%q: want such as https://hub.example/addonflow", o.publicURL)
	}
	return strings.TrimSuffix("/"+strings.Trim(at.EscapedPath(), "/"), "/") + "/", nil
}

// uncached are the kinds that the operator may not watch, or whose bodies are too large for the cache.
func uncached() []client.Object {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return []client.Object{&v1alpha1.AddOnRevision{}, &corev1.Namespace{}, crd}
}

// setupPages serves the pages from the operator's cache, on every replica. To show what a rollout
// changes, the pages use the renderings that its reconciles in this process have made.
func (o *controllerOptions) setupPages(mgr ctrl.Manager, rollouts *addonrollout.Reconciler) error {
	base, err := o.pages.base()
	if err != nil || o.pages.listener.Address == "" {
		return err
	}
	hub, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: mgr.GetCache(), DisableFor: uncached()},
	})
	if err != nil {
		return err
	}
	pages, err := pageserver.New(pageserver.Options{
		Hub: hub, Inspector: inspecting(func(key client.ObjectKey) *addonrollout.Inspector { return rollouts.Inspector(hub, key) }), Door: pageserver.NewTokenDoor(hub, clock.RealClock{}), Base: base, Watched: o.namespace, Poll: pollCache,
	})
	if err != nil {
		return err
	}
	listener := o.pages.listener
	listener.Handler = pages.Handler()
	return mgr.Add(&listener)
}
