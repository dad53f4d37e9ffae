package addonsource

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
)

// firstWait is the wait after a first failure; it doubles up to the interval.
const firstWait = time.Second

// look returns the revision that the source's reference names: from one ls-remote
// per interval, from memory in between. A requested reconcile always looks.
func (p *pass) look(ctx context.Context) (gitsource.Revision, error) {
	if p.memory.fresh(p.source.Generation, p.now) && !p.requested {
		return p.memory.head, nil
	}
	if h := p.memory.stillUnread(p.source.Generation, p.now); h != nil && !p.requested {
		return gitsource.Revision{}, h
	}
	head, err := p.resolve(ctx)
	if err != nil {
		p.memory.lost(err, p.source.Generation, p.now)
		return gitsource.Revision{}, err
	}
	p.memory.saw(head, p.source.Generation, p.now.Add(jitter.JitteredIntervalDuration(p.source.Spec.Interval.Duration)))
	return head, nil
}

// resolve asks the repository what the reference names.
func (p *pass) resolve(ctx context.Context) (gitsource.Revision, error) {
	if err := p.open(ctx); err != nil {
		return gitsource.Revision{}, err
	}
	head, err := p.repository.Resolve(ctx)
	if err != nil {
		return gitsource.Revision{}, p.unread(ctx, err)
	}
	return head, nil
}

// open opens the repository, once in a pass.
func (p *pass) open(ctx context.Context) error {
	if p.repository != nil {
		return nil
	}
	credentials, err := p.credentials(ctx)
	if err != nil {
		return err
	}
	options := gitsource.Options{URL: p.source.Spec.URL, Credentials: credentials, Limits: p.Limits}
	if p.source.Spec.Reference != nil {
		options.Reference = *p.source.Spec.Reference
	}
	if p.source.Spec.Timeout != nil {
		options.Timeout = p.source.Spec.Timeout.Duration
	}
	repository, err := gitsource.Open(options)
	if err != nil {
		return p.unread(ctx, err)
	}
	p.repository = repository
	return nil
}

// credentials reads the Secret of the source. A Secret that is missing or malformed
// is waited for: nobody tells us when it is mended.
func (p *pass) credentials(ctx context.Context) (gitsource.Credentials, error) {
	ref := p.source.Spec.SecretRef
	if ref == nil {
		return gitsource.Credentials{}, nil
	}
	secret := &corev1.Secret{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.source.Namespace, Name: ref.Name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return gitsource.Credentials{}, wait(v1alpha1.InvalidCredentialsReason, p.backoff(), "secret %q does not exist", ref.Name)
		}
		return gitsource.Credentials{}, retry(v1alpha1.FetchFailedReason, err)
	}
	credentials, err := gitsource.ParseCredentials(secret.Data)
	if err != nil {
		return gitsource.Credentials{}, wait(v1alpha1.InvalidCredentialsReason, p.backoff(), "secret %q: %s", ref.Name, err)
	}
	return credentials, nil
}

// unread turns an error of gitsource into a halt. Only the URL is the spec's own
// mistake; everything else may be mended elsewhere, and is tried again.
func (p *pass) unread(ctx context.Context, err error) *halt {
	reason := v1alpha1.FetchFailedReason
	switch {
	case errors.Is(err, gitsource.ErrInvalidURL):
		return stall(v1alpha1.InvalidURLReason, "%s", err)
	case errors.Is(err, gitsource.ErrInvalidReference):
		return stall(v1alpha1.InvalidReferenceReason, "%s", err)
	case errors.Is(err, gitsource.ErrRefNotFound):
		reason = v1alpha1.RefNotFoundReason
	case errors.Is(err, gitsource.ErrInvalidCredentials), errors.Is(err, gitsource.ErrAuthentication):
		reason = v1alpha1.InvalidCredentialsReason
	case errors.Is(err, gitsource.ErrLimitExceeded):
		reason = v1alpha1.LimitExceededReason
	}
	ctrl.LoggerFrom(ctx).Info("Cannot read the repository", "reason", reason, "error", err.Error())
	return wait(reason, p.backoff(), "%s", err)
}

// backoff returns the next wait: 1 s, 2 s, 4 s ... up to the interval.
func (p *pass) backoff() time.Duration {
	after := firstWait
	for range p.memory.failures {
		if after *= 2; after >= p.source.Spec.Interval.Duration {
			break
		}
	}
	p.memory.failures++
	return min(after, p.source.Spec.Interval.Duration)
}

// fetch reads the head and builds the objects it declares, as far as they could be
// read, and what kept others from being read, for compile to judge both at once.
func (p *pass) fetch(ctx context.Context) ([]gitsource.Object, problem.List, error) {
	if err := p.open(ctx); err != nil {
		return nil, nil, err
	}
	tree, err := p.repository.Fetch(ctx, p.head)
	if errors.Is(err, gitsource.ErrLimitExceeded) {
		return nil, nil, refuse(v1alpha1.LimitExceededReason, problem.List{{
			Reason: v1alpha1.LimitExceededReason, Message: err.Error(),
		}})
	}
	if err != nil {
		return nil, nil, p.unread(ctx, err)
	}
	// The branch may have moved since it was resolved; what came is what counts.
	p.head = tree.Revision()
	p.memory.head = p.head
	options := gitsource.BuildOptions{Path: p.source.Spec.Path}
	if p.source.Spec.Ignore != nil {
		options.Ignore = *p.source.Spec.Ignore
	}
	objects, problems := tree.Build(ctx, options)
	for _, one := range problems {
		// Content that could not be read is nobody's mistake: it is tried again.
		if one.Reason == gitsource.FetchFailed {
			return nil, nil, wait(v1alpha1.FetchFailedReason, p.backoff(), "%s", one)
		}
	}
	return objects, problems, nil
}

// verdict is the reason of a refused commit: what kept it from being read, if
// anything did, else that it is not valid.
func verdict(unread problem.List) string {
	switch {
	case len(unread) == 0:
		return v1alpha1.ValidationFailedReason
	case slices.ContainsFunc(unread, func(p problem.Problem) bool { return p.Reason == gitsource.LimitExceeded }):
		return v1alpha1.LimitExceededReason
	default:
		return v1alpha1.BuildFailedReason
	}
}
