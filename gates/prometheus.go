package gates

import (
	"context"
	"errors"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// prometheus evaluates a gate of type prometheus.
func (s *server) prometheus(ctx context.Context, gate *v1alpha1.PrometheusGate, q Question) (Verdict, error) {
	return Verdict{}, errors.New("prometheus is not evaluated yet")
}
