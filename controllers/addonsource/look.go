package addonsource

import (
	"context"
	"errors"
	"slices"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/jitter"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
)

// firstWait is the wait after a first failure; it doubles up to the interval.
const firstWait = time.Second

// look returns the revision that the source's reference names: by one ls-remote per interval, otherwise from memory.
// A requested reconcile always contacts the server. While the content of a head is being fetched, look sends no
// request. If another process has moved the hub to another revision, that process saw a newer head, and look does not
// use the memory.
func (p *pass) look(ctx context.Context) (gitsource.Revision, error) {
	if !p.unanswered() {
		if p.memory.knows(p.source) && (p.now.Before(p.memory.nextLook) || p.errands.awaits(p.key().NamespacedName, p.errandKey(p.memory.head))) {
			return p.memory.head, nil
		}
		if h := p.memory.stillUnread(p.source.Generation, p.now); h != nil {
			return gitsource.Revision{}, h
		}
	}
	head, err := p.resolve(ctx)
	if errors.Is(err, errAway) {
		return gitsource.Revision{}, err
	}
	p.memory.answered = p.requestedAt()
	if err != nil {
		p.memory.lost(err, p.source.Generation, p.now)
		return gitsource.Revision{}, err
	}
	p.memory.saw(head, p.source, p.now.Add(jitter.JitteredIntervalDuration(p.source.Spec.Interval.Duration)))
	return head, nil
}

// requestedAt returns the user's request that is not carried out yet; "": there is none.
func (p *pass) requestedAt() string {
	if !p.requested {
		return ""
	}
	return p.source.Annotations[fluxmeta.ReconcileRequestAnnotation]
}

// unanswered reports whether the user requested a look that did not happen yet.
func (p *pass) unanswered() bool { return p.requested && p.memory.answered != p.requestedAt() }

// errandKey identifies an errand of this pass.
func (p *pass) errandKey(content gitsource.Revision) errandKey {
	return errandKey{
		generation: p.source.Generation, attempted: p.source.Status.LastAttemptedRevision, requestedAt: p.requestedAt(), content: content,
	}
}

// resolve requests the present revision of the reference from the repository.
func (p *pass) resolve(ctx context.Context) (gitsource.Revision, error) {
	b, err := p.ask(ctx, p.errandKey(gitsource.Revision{}), func(ctx context.Context, repository repository) fetchResult {
		head, err := repository.Resolve(ctx)
		return fetchResult{head: head, err: err}
	})
	if err != nil {
		return gitsource.Revision{}, err
	}
	if b.err != nil {
		return gitsource.Revision{}, p.unread(b.err)
	}
	return b.head, nil
}

// ask returns the result of an errand. If there is none, it sends the errand and ends the pass with errAway.
func (p *pass) ask(ctx context.Context, key errandKey, run func(context.Context, repository) fetchResult) (fetchResult, error) {
	source := p.key().NamespacedName
	if b, ok := p.errands.take(source, key); ok {
		p.course.Read(source, unreadReason(b.err), p.now)
		return b, nil
	}
	if !p.errands.awaits(source, key) {
		repository, err := p.open(ctx)
		if err != nil {
			return fetchResult{}, err
		}
		p.errands.send(ctx, source, &errand{
			key: key, host: repository.Host(), doubtful: p.memory.failures > 0, sent: p.now,
			run: func(ctx context.Context) fetchResult { return run(ctx, repository) },
		})
	}
	return fetchResult{}, errAway
}

// timeout limits one operation on a repository. A longer one in the spec was stored before the CRD had a maximum.
func (p *pass) timeout() time.Duration {
	if t := p.source.Spec.Timeout; t != nil && t.Duration > 0 {
		return min(t.Duration, v1alpha1.MaxTimeout)
	}
	return gitsource.DefaultTimeout
}

// placeless returns a halt if the errand of the source has waited for a place for longer than the source's timeout;
// otherwise nil.
func (p *pass) placeless() error {
	sent, waits := p.errands.waitsSince(p.key().NamespacedName)
	if !waits || p.now.Sub(sent) < p.timeout() {
		return nil
	}
	return wait(v1alpha1.FetchFailedReason, p.timeout(), "the repository has not been read for longer than spec.timeout: "+
		"other sources of this namespace, of its server, or of both are being read, and the operator limits how many are read at once; "+
		"suspend sources whose servers do not answer, or lower their spec.timeout")
}

func (p *pass) open(ctx context.Context) (repository, error) {
	if p.source.Spec.OCI != nil {
		return p.openArtifact(ctx)
	}
	return p.openGit(ctx)
}

func (p *pass) openGit(ctx context.Context) (*gitsource.Repository, error) {
	credentials, err := p.credentials(ctx)
	if err != nil {
		return nil, err
	}
	proxy, err := p.proxy(ctx)
	if err != nil {
		return nil, err
	}
	options := gitsource.Options{
		URL: p.source.Spec.URL, Credentials: credentials, Proxy: proxy, Tokens: p.Tokens, Access: p.Git, Room: p.room, Timeout: p.timeout(),
	}
	options.Verification = p.verification
	if applied, err := gitsource.ParseRevision(p.source.Status.LastAppliedRevision); err == nil && applied.Ref == p.head.Ref && !p.source.Spec.AllowForcePush {
		options.Follows = applied.Commit
	}
	if p.source.Spec.Reference != nil {
		options.Reference = *p.source.Spec.Reference
	}
	repository, err := gitsource.Open(options)
	if err != nil {
		return nil, p.unread(err)
	}
	return repository, nil
}

func (p *pass) credentials(ctx context.Context) (gitsource.Credentials, error) {
	ref, asApp := p.source.Spec.SecretRef, p.source.Spec.Provider == v1alpha1.GitHubProvider
	switch {
	case ref == nil && asApp:
		return gitsource.Credentials{}, stall(v1alpha1.InvalidCredentialsReason, "spec.provider github needs spec.secretRef, which names a Secret with the keys of a GitHub App")
	case ref == nil:
		return gitsource.Credentials{}, nil
	}
	keys, err := p.secret(ctx, "spec.secretRef", ref.Name)
	if err != nil {
		return gitsource.Credentials{}, err
	}
	parse := gitsource.ParseCredentials
	if asApp {
		parse = gitsource.ParseAppCredentials
	}
	credentials, err := parse(p.source.Spec.URL, keys)
	if errors.Is(err, gitsource.ErrInvalidURL) {
		return gitsource.Credentials{}, p.unread(err)
	}
	if err != nil {
		return gitsource.Credentials{}, p.unusable("spec.secretRef", ref.Name, err)
	}
	return credentials, nil
}

func (p *pass) proxy(ctx context.Context) (*gitsource.Proxy, error) {
	ref := p.source.Spec.ProxySecretRef
	if ref == nil {
		return nil, nil
	}
	keys, err := p.secret(ctx, "spec.proxySecretRef", ref.Name)
	if err != nil {
		return nil, err
	}
	proxy, err := gitsource.ParseProxy(keys)
	if err != nil {
		return nil, p.unusable("spec.proxySecretRef", ref.Name, err)
	}
	return proxy, nil
}

// publicKeys returns the check that spec.verify requires, and the keys of its Secret.
func (p *pass) publicKeys(ctx context.Context) (gitsource.Verification, map[string][]byte, error) {
	verify := p.source.Spec.Verify
	if verify == nil {
		return gitsource.Verification{}, nil, nil
	}
	keys, err := p.secret(ctx, "spec.verify.secretRef", verify.SecretRef.Name)
	if err != nil {
		return gitsource.Verification{}, nil, err
	}
	verification, err := gitsource.ParseVerification(verify.Mode, keys, p.Clock)
	if err != nil {
		return gitsource.Verification{}, nil, p.unusable("spec.verify.secretRef", verify.SecretRef.Name, err)
	}
	return verification, keys, nil
}

// secret reads the Secret of the source's namespace that a field names. If it is missing or malformed, the pass is
// repeated after a while, because Secrets are not watched.
func (p *pass) secret(ctx context.Context, field, name string) (map[string][]byte, error) {
	ref, stored := p.reference(field, name), &corev1.Secret{}
	if err := p.Live.Get(ctx, ref.NamespacedName, stored); err != nil {
		unread := ref.Unread(err)
		if apierrors.IsNotFound(err) {
			return nil, wait(v1alpha1.InvalidCredentialsReason, p.backoff(), "%s", unread)
		}
		return nil, retry(v1alpha1.FetchFailedReason, unread)
	}
	return stored.Data, nil
}

// reference is the Secret of the source's namespace that a field names.
func (p *pass) reference(field, name string) secret.Reference {
	return secret.Reference{Field: field, NamespacedName: client.ObjectKey{Namespace: p.source.Namespace, Name: name}}
}

// unusable is the halt for an unusable Secret.
func (p *pass) unusable(field, name string, err error) *halt {
	return wait(v1alpha1.InvalidCredentialsReason, p.backoff(), "%s: %s", p.reference(field, name), err)
}

// unread converts an error of gitsource into a halt. An invalid URL or an invalid reference is a mistake in the spec:
// the source stalls. The cause of any other error may be removed elsewhere, so the pass is repeated.
func (p *pass) unread(err error) *halt {
	reason := unreadReason(err)
	switch reason {
	case v1alpha1.InvalidURLReason, v1alpha1.InvalidReferenceReason:
		return stall(reason, "%s", err)
	}
	return wait(reason, p.backoff(), "%s", err)
}

// unreadReason is the reason of a failed conversation with a server; "": it did not fail. A refused commit was read,
// so it is not a failed conversation.
func unreadReason(err error) string {
	if _, refused := errors.AsType[*gitsource.RefusedCommit](err); refused || err == nil {
		return ""
	}
	switch {
	case errors.Is(err, gitsource.ErrInvalidURL):
		return v1alpha1.InvalidURLReason
	case errors.Is(err, gitsource.ErrInvalidReference), errors.Is(err, oci.ErrInvalidReference):
		return v1alpha1.InvalidReferenceReason
	case errors.Is(err, gitsource.ErrRefNotFound):
		return v1alpha1.RefNotFoundReason
	case errors.Is(err, oci.ErrSignature):
		return v1alpha1.VerificationFailedReason // a signature may be pushed after the signed object
	case errors.Is(err, gitsource.ErrInvalidCredentials), errors.Is(err, gitsource.ErrAuthentication), errors.Is(err, gitsource.ErrHostKey),
		errors.Is(err, oci.ErrAuthentication):
		return v1alpha1.InvalidCredentialsReason
	case errors.Is(err, gitsource.ErrLimitExceeded):
		return v1alpha1.LimitExceededReason
	default:
		return v1alpha1.FetchFailedReason
	}
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

// fetch reads the head and builds its objects. It returns the readable ones and the problems of the others; compile
// judges both together.
func (p *pass) fetch(ctx context.Context) (fetchResult, error) {
	options, head := p.buildOptions(), p.head
	var from registries
	if !p.errands.awaits(p.key().NamespacedName, p.errandKey(head)) {
		var err error
		if from, err = p.registries(ctx); err != nil {
			return fetchResult{}, err
		}
	}
	known := p.memories.charts(p.key().NamespacedName, p.spec)
	b, err := p.ask(ctx, p.errandKey(head), func(ctx context.Context, repository repository) fetchResult {
		tree, err := repository.Fetch(ctx, head)
		if err != nil {
			return fetchResult{err: err}
		}
		objects, unread := tree.Build(ctx, options)
		tree.Close()
		defer from.close()
		denied, err := from.fetch(ctx, objects, known)
		return fetchResult{
			head: tree.Revision(), author: tree.Author(), subject: tree.Subject(),
			objects: objects, unread: unread.Then(denied), err: err,
		}
	})
	if err != nil {
		return fetchResult{}, err
	}
	if refused, ok := errors.AsType[*gitsource.RefusedCommit](b.err); ok {
		return fetchResult{}, p.distrust(refused)
	}
	if b.head.Commit != "" {
		// The branch may have moved after it was resolved. The fetched commit is used.
		p.head = b.head
		p.memory.head = p.head
	}
	if errors.Is(b.err, gitsource.ErrLimitExceeded) || errors.Is(b.err, oci.ErrLimitExceeded) {
		return fetchResult{}, refuse(v1alpha1.LimitExceededReason, problem.List{{
			Reason: v1alpha1.LimitExceededReason, Message: b.err.Error(),
		}})
	}
	if errors.Is(b.err, oci.ErrContent) {
		return fetchResult{}, refuse(v1alpha1.BuildFailedReason, problem.List{{Reason: v1alpha1.BuildFailedReason, Message: b.err.Error()}})
	}
	if b.err != nil {
		return fetchResult{}, p.unread(b.err)
	}
	for _, one := range b.unread {
		// If content could not be read, the commit is not the cause, and the pass is repeated.
		if one.Reason == gitsource.FetchFailed {
			return fetchResult{}, wait(v1alpha1.FetchFailedReason, p.backoff(), "%s", one)
		}
	}
	return b, nil
}

// buildOptions select the part of a commit that belongs to the source.
func (p *pass) buildOptions() gitsource.BuildOptions {
	return gitsource.BuildOptions{Path: p.source.Spec.Path, Ignore: ptr.Deref(p.source.Spec.Ignore, "")}
}

// distrust is the verdict on a commit that must not be rendered.
func (p *pass) distrust(refused *gitsource.RefusedCommit) *halt {
	// As with a fetched commit: the branch may have moved after it was resolved.
	p.head = refused.Revision
	p.memory.head = p.head
	p.memories.attempts.Remove(p.key().NamespacedName) // earlier results under other keys are void
	reason := v1alpha1.VerificationFailedReason
	if errors.Is(refused, gitsource.ErrNotFastForward) {
		reason = v1alpha1.NonFastForwardReason
	}
	why := refused.Problem
	why.Reason = problem.Reason(reason)
	return refuse(reason, problem.List{why})
}

// verdict is the reason of a refused commit: why it could not be read; otherwise that it is invalid.
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
