package measure

import (
	"context"
	"fmt"
	"net/url"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

const (
	// reasonLimit is how many characters of a reason are kept.
	reasonLimit = 300
	// searched is how many bytes of a server's text are searched for credentials. A longer text is not shown, because
	// its first bytes could end in a part of a credential.
	searched = 64 << 10
)

// Measure evaluates a gate of type prometheus or webhook. The Secret is nil if the gate names
// none. Whatever the server does, Measure returns within seconds and with a short reason that
// contains no credential.
func Measure(ctx context.Context, gate v1alpha1.Gate, credentials *Secret, q gates.Question, o Options) gates.Verdict {
	var v gates.Verdict
	server, err := connect(gate, credentials, o)
	if err == nil {
		defer server.close()
		v, err = server.evaluate(ctx, gate, q)
	}
	if err != nil {
		v = gates.Verdict{State: v1alpha1.GateError, Reason: err.Error()}
	}
	if len(v.Reason) > searched {
		v.Reason = fmt.Sprintf("%s sends a text of more than %d bytes, which is not shown", server.address.Host, searched)
	}
	v.Reason = brief.Line(server.redaction.Text(v.Reason), reasonLimit)
	return v
}

// evaluate asks the server.
func (s *server) evaluate(ctx context.Context, gate v1alpha1.Gate, q gates.Question) (gates.Verdict, error) {
	switch gate.Type {
	case v1alpha1.GatePrometheus:
		return s.prometheus(ctx, gate.Prometheus, q)
	case v1alpha1.GateWebhook:
		return s.webhook(ctx, q)
	default:
		return gates.Verdict{}, fmt.Errorf("a gate of type %s is not measured", gate.Type)
	}
}

// Address returns the address that a gate of type prometheus or webhook calls, and the name of
// its Secret; "" if it names none.
func Address(gate v1alpha1.Gate) (address, secretName string) {
	switch {
	case gate.Prometheus != nil:
		address = gate.Prometheus.Address
		if ref := gate.Prometheus.SecretRef; ref != nil {
			secretName = ref.Name
		}
	case gate.Webhook != nil:
		address = gate.Webhook.URL
		if ref := gate.Webhook.SecretRef; ref != nil {
			secretName = ref.Name
		}
	}
	return address, secretName
}

// Host returns the host[:port] that a gate calls, as the annotation of its Secret must name it;
// "" if its address cannot be used.
func Host(gate v1alpha1.Gate) string {
	address, _ := Address(gate)
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return hostOf(parsed)
}
