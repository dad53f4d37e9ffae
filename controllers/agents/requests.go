package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/registration"
)

// Approval in OCM's words.
const (
	approvalReason  = "AutoApprovedByHubCSRApprovingController"
	approvalMessage = "Auto approving addon agent certificate."
)

// Reasons of events other than those of a Refusal.
const (
	eventApproved      = "Approved"
	eventSigned        = "Signed"
	eventNotPermitted  = "NotPermitted"
	eventCannotSign    = "CannotSign"
	eventUnknownReason = "NotAskedForYet"
)

const (
	// patience is how long the operator may take to learn what an agent requests before an
	// event reports that the request waits.
	patience = time.Minute
	// signAgain is the pause before a request whose signing CA cannot be used is tried again,
	// because Secrets are not watched.
	signAgain = 15 * time.Second
	// retryAfter is when a failure that only an admin can fix is tried again.
	retryAfter = 5 * time.Minute
)

// Requests approves and signs CertificateSigningRequests. See the package
// documentation.
type Requests struct {
	Options

	mu sync.Mutex
	// reported is the last event about a request, so that it is not repeated.
	reported map[string]string
}

// NewRequests returns a reconciler; register it with SetupWithManager.
func NewRequests(o Options) *Requests { return &Requests{Options: o, reported: map[string]string{}} }

// Reconcile looks at one request.
func (r *Requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, csr); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	addOn, cluster := registration.AddOnOf(csr)
	if finished(csr) {
		return ctrl.Result{}, nil
	}
	ours, err := r.managed(ctx, addOn)
	if err != nil || !ours {
		return ctrl.Result{}, err
	}
	key := Key{Cluster: cluster, AddOn: addOn}
	facts, err := r.facts(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !hasCondition(csr, certificatesv1.CertificateApproved) {
		return r.review(ctx, csr, key, facts)
	}
	return r.sign(ctx, csr, facts)
}

// finished reports whether nothing is left to do about a request.
func finished(csr *certificatesv1.CertificateSigningRequest) bool {
	if len(csr.Status.Certificate) > 0 || hasCondition(csr, certificatesv1.CertificateDenied) || hasCondition(csr, certificatesv1.CertificateFailed) {
		return true
	}
	// Kubernetes signs for its own signers.
	return hasCondition(csr, certificatesv1.CertificateApproved) && strings.HasPrefix(csr.Spec.SignerName, "kubernetes.io/")
}

func hasCondition(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}

// review approves a request, or leaves it pending and reports why.
func (r *Requests) review(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, key Key, facts registration.Facts) (ctrl.Result, error) {
	if refusal := registration.Check(csr, facts); refusal != nil {
		return r.leave(csr, key, refusal), nil
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: approvalReason, Message: approvalMessage, LastUpdateTime: metav1.NewTime(r.Clock.Now()),
	})
	err := r.Client.SubResource("approval").Update(ctx, approved)
	if err == nil {
		r.report(csr, corev1.EventTypeNormal, eventApproved, fmt.Sprintf("Approved for add-on %s on %s", key.AddOn, key.Cluster))
		return ctrl.Result{}, nil
	}
	return r.unwritten(csr, "approve", err)
}

// leave reports why a request stays pending. It waits for a while if the agent is not declared
// yet.
func (r *Requests) leave(csr *certificatesv1.CertificateSigningRequest, key Key, refusal *registration.Refusal) ctrl.Result {
	reason := string(refusal.Reason)
	if _, known := r.Book.asked(key); !known && refusal.Reason == registration.ReasonNotAsked {
		if left := patience - r.Clock.Since(csr.CreationTimestamp.Time); left > 0 {
			return ctrl.Result{RequeueAfter: left}
		}
		reason = eventUnknownReason
	}
	r.report(csr, corev1.EventTypeWarning, reason, "Left pending: "+refusal.Message)
	return ctrl.Result{}
}

// sign issues the certificate of an approved request for a custom signer.
func (r *Requests) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, facts registration.Facts) (ctrl.Result, error) {
	if refusal := registration.CheckContent(csr, facts); refusal != nil {
		r.report(csr, corev1.EventTypeWarning, string(refusal.Reason), "Not signed: "+refusal.Message)
		return ctrl.Result{}, nil //nolint:nilerr // a refused request is not tried again
	}
	certificate, err := r.certificate(ctx, csr, facts)
	if err != nil {
		r.report(csr, corev1.EventTypeWarning, eventCannotSign, "Not signed: "+err.Error())
		return ctrl.Result{RequeueAfter: signAgain}, nil //nolint:nilerr // reported in an event, and tried again
	}
	signed := csr.DeepCopy()
	signed.Status.Certificate = certificate
	err = r.Client.Status().Update(ctx, signed)
	if err == nil {
		r.report(csr, corev1.EventTypeNormal, eventSigned, "Signed for "+csr.Spec.SignerName)
		return ctrl.Result{}, nil
	}
	return r.unwritten(csr, "sign", err)
}

// errNamespace: a signing CA is in a namespace that is not allowed.
var errNamespace = errors.New("no signing CA is taken from this namespace")

// certificate signs with the CA that the Secret holds now, so that a new one takes effect with
// the next request.
func (r *Requests) certificate(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, facts registration.Facts) ([]byte, error) {
	namespace, name, _ := registration.SigningCA(facts, csr.Spec.SignerName)
	if !slices.Contains(r.SigningNamespaces, namespace) {
		return nil, fmt.Errorf("signing CA %s/%s: %w", namespace, name, errNamespace)
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("cannot read signing CA %s/%s: %w", namespace, name, err)
	}
	authority, err := registration.NewAuthority(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("cannot use signing CA %s/%s: %w", namespace, name, err)
	}
	return authority.Sign(csr, r.Clock.Now(), r.Random)
}

// unwritten returns the result of a failed write: an admin must grant a missing permission;
// everything else is tried again.
func (r *Requests) unwritten(csr *certificatesv1.CertificateSigningRequest, verb string, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: lostWrite}, nil // a conflict does not always come with an event
	case apierrors.IsForbidden(err):
		r.report(csr, corev1.EventTypeWarning, eventNotPermitted,
			fmt.Sprintf("The operator may not %s for signer %s: grant it verb %s on signers, with resourceNames [%s]", verb, csr.Spec.SignerName, verb, csr.Spec.SignerName))
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, fmt.Errorf("cannot %s %s: %w", verb, csr.Name, err)
}

// report sends an event about a request, unless it was the last one about it.
func (r *Requests) report(csr *certificatesv1.CertificateSigningRequest, kind, reason, message string) {
	said := string(csr.UID) + reason + message
	r.mu.Lock()
	known := r.reported[csr.Name] == said
	r.reported[csr.Name] = said
	r.mu.Unlock()
	if !known {
		r.Recorder.Event(csr, kind, reason, shortened(message))
	}
}

// eventLimit is the longest text of an event that every API accepts, in bytes.
const eventLimit = 1000

// shortened cuts a text, because a hostile request may make it long.
func shortened(text string) string {
	if len(text) <= eventLimit {
		return text
	}
	return strings.ToValidUTF8(text[:eventLimit], "") + "..."
}

// forget drops the last event of a deleted request.
func (r *Requests) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reported, name)
}
