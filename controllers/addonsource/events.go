package addonsource

import (
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// revisionMetadata is the key in which Flux's notification-controller expects the revision of an event.
const revisionMetadata = "event.toolkit.fluxcd.io/revision"

// eventLimit is the longest text of an event, in bytes, that every API accepts.
const eventLimit = 1000

// announce sends an event if the pass changed Ready. It is called after the status was written, so that a restart
// does not announce it again.
func (p *pass) announce(h *halt) {
	ready := conditions.Get(p.source, fluxmeta.ReadyCondition)
	before := conditions.Get(p.before, fluxmeta.ReadyCondition)
	if ready == nil || before != nil && before.Reason == ready.Reason && before.Message == ready.Message {
		return
	}
	p.Events.AnnotatedEventf(p.source, p.eventMetadata(), eventType(h), ready.Reason, "%s", shortened(ready.Message))
}

// eventMetadata names the revision, if there is one.
func (p *pass) eventMetadata() map[string]string {
	if p.head.Commit == "" {
		return nil
	}
	return map[string]string{revisionMetadata: p.head.String()}
}

// eventType is Warning for results that need attention.
func eventType(h *halt) string {
	if h == nil || h.reason == v1alpha1.TakingOverReason || h.reason == v1alpha1.PlacementUndecidedReason || h.reason == fluxmeta.ProgressingReason {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// shortened cuts a text at the end of a line; if that is not possible, anywhere.
func shortened(text string) string {
	if len(text) <= eventLimit {
		return text
	}
	cut := []byte(text)[:eventLimit]
	for i := len(cut) - 1; i > eventLimit/2; i-- {
		if cut[i] == '\n' {
			return string(cut[:i]) + "\n..."
		}
	}
	return strings.ToValidUTF8(string(cut), "") + "..."
}
