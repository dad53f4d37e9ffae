package addonsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
)

// registries are the registries of a source, by host. They are opened for one errand.
type registries map[string]chartRegistry

// chartRegistry is an *oci.Registry, or one that hung.
type chartRegistry interface {
	Chart(ctx context.Context, repository, digest string) (map[string][]byte, error)
	Close()
}

// hung is a registry that did not answer in time. The errand does not ask it again.
type hung struct{ host string }

// Chart is part of chartRegistry.
func (h hung) Chart(context.Context, string, string) (map[string][]byte, error) {
	return nil, fmt.Errorf("%s did not answer in time: %w", h.host, context.DeadlineExceeded)
}

// Close is part of chartRegistry.
func (hung) Close() {}

// listed are the registries of the source, without connections. With them, fetch only refuses charts of
// other registries.
func (p *pass) listed() registries {
	all := registries{}
	for _, spec := range p.source.Spec.Registries {
		all[spec.Host] = nil
	}
	return all
}

// registries opens the registries of the source. It does not connect.
func (p *pass) registries(ctx context.Context) (registries, error) {
	all := registries{}
	for _, spec := range p.source.Spec.Registries {
		opened, err := p.registry(ctx, spec, p.cosign[spec.Host])
		if err != nil {
			return nil, err
		}
		all[spec.Host] = opened
	}
	return all, nil
}

// registry opens one registry with the credentials and keys of its Secrets.
func (p *pass) registry(ctx context.Context, spec v1alpha1.RegistrySpec, verification oci.Verification) (*oci.Registry, error) {
	options := oci.Options{
		Host: spec.Host, Insecure: spec.Insecure, Verification: verification, Room: sharedRoom{p.room}, Timeout: p.timeout(),
		Access: oci.Access{AllowLoopback: p.Git.AllowLoopback, AllowHTTP: p.Git.AllowHTTPCredentials},
	}
	if spec.SecretRef != nil {
		field := "secretRef of registry " + spec.Host
		keys, err := p.secret(ctx, field, spec.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		if options.Credentials, err = oci.ParseCredentials(keys); err != nil {
			return nil, p.unusable(field, spec.SecretRef.Name, err)
		}
	}
	proxy, err := p.proxy(ctx)
	if err != nil {
		return nil, err
	}
	options.Proxy = proxy.URL()
	opened, err := oci.Open(options)
	if err != nil {
		return nil, stall(v1alpha1.InvalidURLReason, "%s", err)
	}
	return opened, nil
}

func (r registries) close() {
	for _, one := range r {
		one.Close()
	}
}

// sharedRoom adapts the room of all fetches to the interface of oci.
type sharedRoom struct{ *gitsource.Room }

func (r sharedRoom) Claim(ctx context.Context, end func(error)) oci.Claim {
	return r.Room.Claim(ctx, end)
}

// charts are the files of charts, by their references.
type charts map[string]map[string][]byte

// charts returns the charts of the commit of a source that was judged last, if it was judged under the fingerprint.
// They can be used again, because a digest always names the same files.
func (m *memories) charts(source types.NamespacedName, spec string) charts {
	known, a := charts{}, m.attempt(source)
	if a == nil || a.spec != spec {
		return known
	}
	for _, o := range a.objects {
		if reference := o.OCIChart(); reference != "" {
			if _, files := o.Folder(gitsource.OCIField); files != nil {
				known[reference] = files
			}
		}
	}
	return known
}

func (c charts) bytes() int64 {
	var sum int64
	for _, files := range c {
		for _, content := range files {
			sum += int64(len(content))
		}
	}
	return sum
}

// unreadChart is a chart that could not be read now.
type unreadChart struct {
	at    problem.Problem
	cause error
}

func (u *unreadChart) Error() string { return u.at.String() }

func (u *unreadChart) Unwrap() error { return u.cause }

// chartProblem is a problem with the chart of an AddOnPackage.
func chartProblem(o gitsource.Object) problem.Problem {
	at := problem.Problem{Kind: o.GetKind(), Name: o.GetName(), Field: gitsource.OCIField}
	at.Path, at.Line = o.Position(at.Field)
	return at
}

// denied refuses the AddOnPackages with charts in other registries. It does not connect.
func (r registries) denied(objects []gitsource.Object) problem.List {
	var problems problem.List
	for _, o := range objects {
		reference, err := v1alpha1.ParseChartReference(o.OCIChart())
		if _, listed := r[reference.Host]; err != nil || listed {
			continue
		}
		at := chartProblem(o)
		at.Reason, at.Message, at.Hint = v1alpha1.BuildFailedReason, "charts are not read from "+reference.Host, r.hint()
		problems = append(problems, at)
	}
	return problems
}

// fetch gives the AddOnPackages among the objects the charts that they name. It returns the problems of the commit,
// or an *unreadChart. After an *unreadChart, only known charts are given.
func (r registries) fetch(ctx context.Context, objects []gitsource.Object, known charts) (problem.List, error) {
	problems := r.denied(objects)
	fetched := charts{}
	var unread error
	for i, o := range objects {
		text := o.OCIChart()
		reference, err := v1alpha1.ParseChartReference(text)
		if err != nil {
			continue // an object without a chart, or one that Compile refuses
		}
		registry := r[reference.Host]
		if registry == nil || unread != nil && known[text] == nil {
			continue // denied, not opened, or after an unread chart
		}
		at := chartProblem(o)
		if known[text] == nil {
			known[text], err = registry.Chart(ctx, reference.Repository, reference.Digest)
		}
		switch {
		case err == nil:
			fetched[text] = known[text]
			if most := gitsource.DefaultLimits().TotalBytes; fetched.bytes() > most {
				at.Reason, at.Message, at.Hint = gitsource.LimitExceeded, fmt.Sprintf("the charts of the commit have more than %d bytes", most), "split the tree into several AddOnSources"
				return append(problems, at), nil
			}
			objects[i] = o.WithChart(known[text])
		case errors.Is(err, oci.ErrContent), errors.Is(err, oci.ErrLimitExceeded), errors.Is(err, oci.ErrInvalidReference):
			at.Reason, at.Message = v1alpha1.BuildFailedReason, err.Error()
			problems = append(problems, at)
		default:
			if errors.Is(err, context.DeadlineExceeded) {
				registry.Close()
				r[reference.Host] = hung{reference.Host}
			}
			at.Reason, at.Message = problem.Reason(unreadReason(err)), err.Error()
			unread = &unreadChart{at: at, cause: err}
		}
	}
	return problems, unread
}

// hint says from which registries charts are read.
func (r registries) hint() string {
	if len(r) == 0 {
		return "list the registry in spec.registries of the AddOnSource"
	}
	return "spec.registries of the AddOnSource allows " + strings.Join(slices.Sorted(maps.Keys(r)), ", ")
}
