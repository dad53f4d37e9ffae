package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// maxRaw is the most bytes of a structured feedback value that expressions can read.
const maxRaw = 64 * 1024

// ErrInvalidHealth means that the health policy cannot be used.
var ErrInvalidHealth = errors.New("health cannot be judged")

// check is a compiled HealthCheckExpr.
type check struct {
	kind                                  schema.GroupKind
	namespace, name                       string
	field                                 string // position of the policy
	inProgress, failed, current, degraded *expression
}

// NewProber returns the prober of a policy; for nil, the default. The error wraps ErrInvalidHealth and names the
// first error of the policy.
func NewProber(h *v1alpha1.Health) (Prober, error) {
	p, flaws := newProber(h)
	if len(flaws) > 0 {
		return Prober{}, fmt.Errorf("%w: %s: %s", ErrInvalidHealth, flaws[0].Field, flaws[0].Message)
	}
	return p, nil
}

// newProber compiles a policy and returns all its errors, at paths of an AddOnRollout.
func newProber(h *v1alpha1.Health) (Prober, []flaw.Flaw) {
	if h == nil {
		return Prober{}, nil
	}
	const at = flaw.Path("spec.health")
	p, flaws := Prober{kind: h.Prober}, proberFlaws(h, at)
	if len(h.HealthCheckExprs) == 0 {
		return p, flaws
	}
	env, err := newCELEnvironment()
	if err != nil {
		return p, append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidHealth, Message: err.Error()})
	}
	for i, e := range h.HealthCheckExprs {
		c, found := newCheck(env, e, at.Child("healthCheckExprs").Index(i))
		p.checks, flaws = append(p.checks, c), append(flaws, found...)
	}
	return p, flaws
}

// proberFlaws applies the rules that the AddOnRollout's schema applies on the hub.
func proberFlaws(h *v1alpha1.Health, at flaw.Path) []flaw.Flaw {
	add := func(name, message, hint string) []flaw.Flaw {
		return []flaw.Flaw{{Field: at.Child(name), Reason: flaw.ReasonInvalidHealth, Message: message, Hint: hint}}
	}
	const exprs = "healthCheckExprs"
	switch h.Prober {
	case "", v1alpha1.ProberLease, v1alpha1.ProberWork, v1alpha1.ProberDeploymentAvailability,
		v1alpha1.ProberWorkloadAvailability, v1alpha1.ProberNone:
		if len(h.HealthCheckExprs) > 0 {
			return add(exprs, fmt.Sprintf("prober %s would ignore them", Prober{kind: h.Prober}.Type()), "set prober: CEL, or remove them")
		}
	case v1alpha1.ProberCEL:
		switch {
		case len(h.HealthCheckExprs) == 0:
			return add(exprs, "prober CEL needs at least one", "")
		case len(h.HealthCheckExprs) > maxChecks:
			return add(exprs, fmt.Sprintf("%d entries, at most %d are allowed", len(h.HealthCheckExprs), maxChecks), "")
		}
	default:
		return add("prober", fmt.Sprintf("unknown prober %q", h.Prober), "Lease, Work, DeploymentAvailability, WorkloadAvailability, CEL or None")
	}
	return nil
}

// maxChecks is how many entries healthCheckExprs may have.
const maxChecks = 20

func newCheck(env *cel.Env, e v1alpha1.HealthCheckExpr, at flaw.Path) (check, []flaw.Flaw) {
	c := check{
		kind:      schema.FromAPIVersionAndKind(e.APIVersion, e.Kind).GroupKind(),
		namespace: e.Namespace, name: e.Name, field: strings.TrimPrefix(string(at), "spec.health."),
	}
	var flaws []flaw.Flaw
	add := func(name string, r refusal) {
		flaws = append(flaws, flaw.Flaw{Field: at.Child(name), Reason: flaw.ReasonInvalidHealth, Message: r.message, Hint: r.hint})
	}
	for name, value := range map[string]string{apiVersionKey: e.APIVersion, kindKey: e.Kind, "current": e.Current} {
		if value == "" {
			add(name, refusal{"is required", ""})
		}
	}
	if _, err := schema.ParseGroupVersion(e.APIVersion); err != nil {
		add(apiVersionKey, refusal{fmt.Sprintf("%q is not an apiVersion", e.APIVersion), "such as apps/v1"})
	}
	for _, x := range []struct {
		name, text string
		into       **expression
	}{
		{"inProgress", e.InProgress, &c.inProgress},
		{"failed", e.Failed, &c.failed},
		{"current", e.Current, &c.current},
		{"degraded", e.Degraded, &c.degraded},
	} {
		if x.text == "" {
			continue
		}
		compiled, why := compileExpression(env, x.text)
		if why != nil {
			add(x.name, *why)
			continue
		}
		*x.into = compiled
	}
	return c, flaws
}

// matches reports whether the check judges an object. Versions are ignored.
func (c *check) matches(kind schema.GroupKind, namespace, name string) bool {
	return c.kind == kind && (c.namespace == "" || c.namespace == namespace) && (c.name == "" || c.name == name)
}

func (c *check) matchesReported(m workv1.ManifestResourceMeta) bool {
	return c.matches(schema.GroupKind{Group: m.Group, Kind: m.Kind}, m.Namespace, m.Name)
}

// checkHealth evaluates the expressions for one work. Partial feedback is not enough: every object of the work must
// be reported, and every object with the content's digest must have echoed it.
func (p Prober) checkHealth(work *workv1.ManifestWork) health {
	h := health{current: true, verified: true}
	if len(p.checks) == 0 {
		return h
	}
	reported := work.Status.ResourceStatus.Manifests
	if len(reported) < len(work.Spec.Workload.Manifests) {
		return health{reason: fmt.Sprintf("%d of %d objects reported", len(reported), len(work.Spec.Workload.Manifests))}
	}
	for i := range reported {
		for c := range p.checks {
			if p.checks[c].matchesReported(reported[i].ResourceMeta) {
				h.add(p.checks[c].judge(work, &reported[i]).health())
			}
		}
	}
	return h
}

// unmatched reports checks that match no object on the cluster: such a check must not count as
// healthy.
func (p Prober) unmatched(parts []*workv1.ManifestWork) health {
	h := health{applied: true, current: true, verified: true}
	for c := range p.checks {
		found := false
		for _, work := range parts {
			for i := range work.Status.ResourceStatus.Manifests {
				found = found || p.checks[c].matchesReported(work.Status.ResourceStatus.Manifests[i].ResourceMeta)
			}
		}
		if !found {
			h.verified = false
			h.reason = fmt.Sprintf("%s: no %s is reported", p.checks[c].field, p.checks[c].kind.Kind)
			break
		}
	}
	return h
}

// judgement is the result of a check for one object.
type judgement struct {
	// known: all values that the expressions read are reported, and are about the current content.
	known bool
	// current, failed and degraded are the results of the expressions. A failure counts only if
	// the object echoed its content.
	current, failed, degraded bool
	// reason of the judgement; with degraded, why the object is degraded.
	reason string
}

func (j judgement) health() health {
	return health{current: j.known, verified: j.current, failed: j.failed, reason: j.unwell()}
}

// unwell returns the reason if the object is not current.
func (j judgement) unwell() string {
	if j.current {
		return ""
	}
	return j.reason
}

// judge evaluates the expressions in Flux's order.
func (c *check) judge(work *workv1.ManifestWork, m *workv1.ManifestCondition) judgement {
	object := m.ResourceMeta.Kind + " " + m.ResourceMeta.Name
	a, echoes := askOf(work, m.ResourceMeta)
	if echoes {
		v := values(m.StatusFeedbacks.Values)
		if h, ok := a.echoed(v, work); !ok {
			return judgement{reason: h.reason}
		}
		if h, ok := a.observed(v); !ok {
			return judgement{reason: h.reason}
		}
	}
	read := readable(work, m)
	for _, x := range []struct {
		name       string
		expression *expression
		then       judgement
	}{
		{"in progress", c.inProgress, judgement{known: true}},
		{"failed", c.failed, judgement{known: true, failed: a.asks(valueDigest)}},
	} {
		holds, err := x.expression.maybe(read)
		if err != nil {
			return judgement{reason: words(object + ": " + err.Error())}
		}
		if holds {
			x.then.reason = words(object + ": " + x.name + ": " + x.expression.text)
			return x.then
		}
	}
	return c.judgeCurrent(object, read)
}

func (c *check) judgeCurrent(object string, read map[string]any) judgement {
	current, err := c.current.maybe(read)
	if err != nil {
		return judgement{reason: words(object + ": " + err.Error())}
	}
	if !current {
		return judgement{known: true, reason: words(object + ": not current: " + c.current.text)}
	}
	degraded, err := c.degraded.maybe(read)
	j := judgement{known: true, current: true, degraded: degraded && err == nil}
	if j.degraded {
		j.reason = words(object + ": " + c.degraded.text)
	}
	return j
}

// maybe evaluates an optional expression.
func (e *expression) maybe(values map[string]any) (bool, error) {
	if e == nil {
		return false, nil
	}
	return e.holds(values)
}

// askOf returns AddOnFlow's feedback rules for an object.
func askOf(work *workv1.ManifestWork, m workv1.ManifestResourceMeta) (ask, bool) {
	for i := range work.Spec.ManifestConfigs {
		id := work.Spec.ManifestConfigs[i].ResourceIdentifier
		if id.Group != m.Group || id.Resource != m.Resource || id.Namespace != m.Namespace || id.Name != m.Name {
			continue
		}
		if a, ok := askedOf(&work.Spec.ManifestConfigs[i]); ok {
			return a, true
		}
	}
	return ask{}, false
}

// readable returns what expressions read about one object of a work.
func readable(work *workv1.ManifestWork, m *workv1.ManifestCondition) map[string]any {
	feedback := make(map[string]any, len(m.StatusFeedbacks.Values))
	for i := range m.StatusFeedbacks.Values {
		if value := plainValue(&m.StatusFeedbacks.Values[i].Value); value != nil {
			feedback[m.StatusFeedbacks.Values[i].Name] = value
		}
	}
	if _, echoes := feedback[valueDigest]; echoes {
		feedback[valueDigest] = values(m.StatusFeedbacks.Values).echo(work)
	}
	conditions := make(map[string]map[string]string, len(m.Conditions))
	for i := range m.Conditions {
		c := &m.Conditions[i]
		conditions[c.Type] = map[string]string{"status": string(c.Status), "reason": c.Reason, "message": c.Message}
	}
	meta := m.ResourceMeta
	return map[string]any{
		feedbackVariable: feedback, conditionsVariable: conditions,
		metadataKey:   map[string]string{nameKey: meta.Name, namespaceKey: meta.Namespace},
		apiVersionKey: schema.GroupVersion{Group: meta.Group, Version: meta.Version}.String(), kindKey: meta.Kind,
	}
}

// plainValue returns a feedback value as CEL reads it; nil if there is none.
func plainValue(v *workv1.FieldValue) any {
	switch {
	case v.Type == workv1.Integer && v.Integer != nil:
		return *v.Integer
	case v.Type == workv1.String && v.String != nil:
		return *v.String
	case v.Type == workv1.Boolean && v.Boolean != nil:
		return *v.Boolean
	case v.Type == workv1.JsonRaw && v.JsonRaw != nil && len(*v.JsonRaw) <= maxRaw:
		var value any
		if utiljson.Unmarshal([]byte(*v.JsonRaw), &value) == nil {
			return value
		}
	}
	return nil
}
