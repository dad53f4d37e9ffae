package render

import (
	"errors"
	"sync"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
)

// ErrNoClusterName means that a Cluster has no name, so nothing can be rendered for it.
var ErrNoClusterName = errors.New("cluster has no name")

// ErrInterrupted means that a package was not rendered, for a reason outside of the content and the cluster. The caller
// retries.
var ErrInterrupted = chart.ErrInterrupted

// Renderer renders one add-on's content for any number of clusters. Templates and
// configurations are parsed once. It is safe for concurrent use.
//
// Objects equal OCM's, except where OCM is wrong or stops short:
//
//   - Variables replace string scalars of the parsed manifest; OCM replaces text,
//     so that a value with a quote adds fields. Names of fields are not replaced.
//   - {{NAME}} without a value is an error, other text in braces is kept, an
//     unclosed brace is text; OCM blanks the first two and crashes on the third.
//   - A string that is one variable can be a number or boolean (TypedAnnotation).
//   - StatefulSets, Jobs, CronJobs and init containers are decorated like the containers of
//     Deployments and DaemonSets. Values that they declare themselves stay: OCM injects nothing
//     there, so their authors had to declare these values.
//   - A volume or mount that the template brings itself is not injected again.
//   - Tolerations are replaced when they are given, without a node selector, too.
//   - A CA bundle without a proxy is mounted, not only shipped, and it is shipped
//     to the namespaces of the pods that mount it.
//   - A mirror that is empty is ignored; a|b in a part of a containerID is an
//     alternative of that part; a bad pattern is an error.
//   - manifestConfigs, deleteOption and executor are those of the template that the cluster gets.
//     Variables in their resource names are replaced, and the names follow the install namespace.
//     OCM uses manifestConfigs of the default template and drops the rest.
//   - Typed decoding adds no empty structs and drops no unknown field. Works that
//     OCM wrote compare equal all the same (Compare).
//   - Pre-delete hooks and hosted mode work for templates; OCM supports hosted mode only for
//     add-ons with a manager of their own.
type Renderer struct {
	*shared

	// interruptions counts the renderings that ended with ErrInterrupted; interrupted is the
	// error of the last one.
	counts        sync.Mutex
	interruptions int
	interrupted   error
}

// shared has the parts that the renderers of one content share: the content, and the cached results.
type shared struct {
	addOn      string
	content    Content
	bounds     *Bounds // nil: none
	defaults   *assignment
	placements map[v1alpha1.PlacementReference]*assignment

	templates map[string]*parsedTemplate
	agents    map[ConfigReference]*agentConfig
	pkg       *parsedTemplate // nil for an add-on with templates

	mu  sync.Mutex
	own map[ownKey]*assignment
	// outlines has one outline per cluster, so that a cluster is rendered again only when it is written. alike has
	// their inputs, each once.
	outlines map[outlineKey]outline
	alike    map[outlineInputs]*outlineInputs
}

// outlineInputs has everything on which one cluster's rendering depends, except its name. Most clusters of a fleet
// have the same.
type outlineInputs struct {
	assignment *assignment
	facts      facts
	hosting    string
}

// outlineKey identifies one cluster's rendering.
type outlineKey struct {
	*outlineInputs
	name string
}

// outline is the cached part of one cluster's rendering.
type outline struct {
	digest      string
	hosts       bool
	definitions map[string]Definition
	err         error
}

// Limits of the caches.
const (
	maxOutlines = 100_000
	maxOwn      = 1024 // assignments with configurations of clusters
)

// NewRenderer reads content; charts renders its package. It fails only if the content has no add-on name, or has a
// package and charts is nil. Errors of templates and configurations are reported by Check, and by Render for the
// affected clusters.
func NewRenderer(c Content, charts chart.Engine) (*Renderer, error) {
	return NewRendererWithin(nil, c, charts)
}

// NewRendererWithin is NewRenderer with bounds; nil: none.
func NewRendererWithin(bounds *Bounds, c Content, charts chart.Engine) (*Renderer, error) {
	if c.AddOn == "" {
		return nil, errors.New("cannot render content: it names no add-on")
	}
	if c.Package != nil && charts == nil {
		return nil, errors.New("cannot render content: it has a package, and there is no engine for charts")
	}
	r := &Renderer{shared: &shared{
		addOn: c.AddOn, content: c, bounds: bounds,
		placements: make(map[v1alpha1.PlacementReference]*assignment, len(c.Placements)),
		templates:  make(map[string]*parsedTemplate, len(c.Templates)),
		agents:     map[ConfigReference]*agentConfig{},
		own:        map[ownKey]*assignment{},
		outlines:   map[outlineKey]outline{},
		alike:      map[outlineInputs]*outlineInputs{},
	}}
	if c.Package != nil {
		r.pkg = parsePackage(c.AddOn, c.Package, charts)
	}
	r.defaults = r.assign("", nil, nil)
	for _, p := range c.Placements {
		r.placements[p.PlacementReference] = r.assign(p.Namespace+"/"+p.Name, p.Configs, nil)
	}
	return r, nil
}

// Apart returns a renderer of the same content. Both use one cache of results. Each counts its own interruptions.
func (r *Renderer) Apart() *Renderer { return &Renderer{shared: r.shared} }

// IsWithin reports whether the renderer has these bounds.
func (r *Renderer) IsWithin(bounds *Bounds) bool { return r.bounds.key() == bounds.key() }

func (r *Renderer) template(t Template) *parsedTemplate {
	if r.templates[t.Name] == nil {
		r.templates[t.Name] = parseTemplate(r.addOn, t)
	}
	return r.templates[t.Name]
}

func (r *Renderer) agentConfig(c Config) *agentConfig {
	if r.agents[c.ConfigReference] == nil {
		r.agents[c.ConfigReference] = parseAgentConfig(c)
	}
	return r.agents[c.ConfigReference]
}

// Render returns the objects of the cluster. The error is an *InvalidError if the content cannot be rendered for it,
// ErrInvalidImageRegistries or ErrInvalidValues for an annotation, or ErrInterrupted. All errors except
// ErrInterrupted are cached, because content that reaches a limit would use up the limit each time.
func (r *Renderer) Render(c Cluster) (Rendered, error) {
	key := r.keyOf(c)
	if o, known := r.outlined(key); known && o.err != nil {
		return Rendered{}, o.err
	}
	rendered, _, err := r.render(key)
	return rendered, err
}

// Digest returns the digest of what Render returns. It is cached, so that a second call renders
// nothing.
func (r *Renderer) Digest(c Cluster) (string, error) {
	o := r.outline(c)
	return o.digest, o.err
}

// Hosts returns the same as Render and then Rendered.Hosts, at the cost of Digest.
func (r *Renderer) Hosts(c Cluster) (bool, error) {
	o := r.outline(c)
	return o.hosts, o.err
}

// Refuses returns why the cluster cannot be rendered, because a label, claim or configuration of the cluster is
// missing or wrong. It costs as much as Digest.
func (r *Renderer) Refuses(c Cluster) error { return r.outline(c).err }

func (r *Renderer) outline(c Cluster) outline {
	key := r.keyOf(c)
	o, known := r.outlined(key)
	if !known {
		_, o, _ = r.render(key)
	}
	return o
}

func (r *Renderer) keyOf(c Cluster) outlineKey {
	a := r.assignmentFor(c)
	in := outlineInputs{a, c.facts(a), c.Hosting}
	r.mu.Lock()
	defer r.mu.Unlock()
	same, known := r.alike[in]
	if !known {
		kept := in // only cached inputs are on the heap
		same = &kept
		r.alike[in] = same
	}
	return outlineKey{same, c.Name}
}

func (r *Renderer) outlined(key outlineKey) (outline, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, known := r.outlines[key]
	return o, known
}

// render renders, and caches the outline. The error of the outline has fewer findings.
func (r *Renderer) render(key outlineKey) (Rendered, outline, error) {
	rendered, err := r.build(key)
	o := outline{digest: rendered.Digest, hosts: rendered.Hosts(), definitions: rendered.definitions(), err: err}
	if errors.Is(err, ErrInterrupted) {
		r.interrupt(err)
		return rendered, o, err
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		o.err = invalid.shortened() // thousands of clusters may lack the same variables
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.outlines[key]; !known && len(r.outlines) >= maxOutlines {
		clear(r.outlines)
		clear(r.alike)
	}
	r.outlines[key] = o
	return rendered, o, err
}

func (r *Renderer) build(key outlineKey) (Rendered, error) {
	if key.name == "" {
		return Rendered{}, ErrNoClusterName
	}
	b, err := newBuilder(r.addOn, key.assignment, key.facts, key.name)
	if err != nil {
		return Rendered{}, err
	}
	p := b.build()
	b.stamped()
	if err := b.found.err(r.addOn); err != nil {
		return Rendered{}, err
	}
	return p.rendered(key.hosting), nil
}

// Interruptions returns how many renderings have ended with ErrInterrupted, and the error of the last one. If the
// count changed between two calls, errors of Digest, Hosts and Refuses in between may come from an interruption.
func (r *Renderer) Interruptions() (int, error) {
	r.counts.Lock()
	defer r.counts.Unlock()
	return r.interruptions, r.interrupted
}

func (r *Renderer) interrupt(err error) {
	r.counts.Lock()
	defer r.counts.Unlock()
	r.interruptions++
	r.interrupted = err
}
