package gates

import (
	"context"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Verdict is the result of one evaluation.
type Verdict struct {
	State v1alpha1.GateState
	// Reason in words, on one line.
	Reason string
	// By names the people who decided.
	By string
}

// Question is what a measurement is about.
type Question struct {
	Rollout types.NamespacedName
	Stage   string
	Gate    string
	// Digest and Commit of the content that the stage rolls out.
	Digest, Commit string
	Attempt        int32
	// Moved are clusters that are Soaking or Done with the content. Control are the clusters
	// that they are compared with.
	Moved, Control []string
	// Counts of the stage's clusters.
	Counts v1alpha1.Counts
}

const (
	// reasonLimit is how many characters of a reason are kept.
	reasonLimit = 300
	// searched is how many characters of a server's text are searched for credentials. The rest
	// is not shown.
	searched = 4096
)

// Measure evaluates a gate of type prometheus or webhook. The Secret is nil if the gate names
// none. Whatever the server does, Measure returns within seconds and with a short reason that
// contains no credential.
func Measure(ctx context.Context, gate v1alpha1.Gate, credentials *Secret, q Question, o Options) Verdict {
	var v Verdict
	server, err := connect(gate, credentials, o)
	if err == nil {
		defer server.close()
		v, err = server.evaluate(ctx, gate, q)
	}
	if err != nil {
		v = Verdict{State: v1alpha1.GateError, Reason: err.Error()}
	}
	v.Reason = brief.Line(server.redaction.Text(brief.Cut(v.Reason, searched)), reasonLimit)
	return v
}

// evaluate asks the server.
func (s *server) evaluate(ctx context.Context, gate v1alpha1.Gate, q Question) (Verdict, error) {
	switch gate.Type {
	case v1alpha1.GatePrometheus:
		return s.prometheus(ctx, gate.Prometheus, q)
	case v1alpha1.GateWebhook:
		return s.webhook(ctx, q)
	default:
		return Verdict{}, fmt.Errorf("a gate of type %s is not measured", gate.Type)
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
