package render

import (
	"errors"
	"sync"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
)

// ErrNoClusterName says that a Cluster has no name, so nothing can be rendered for it.
var ErrNoClusterName = errors.New("cluster has no name")

// ErrInterrupted says that a package was not rendered, for a reason outside the content and the
// cluster. The caller retries.
var ErrInterrupted = chart.ErrInterrupted

// Renderer renders one add-on's content for any number of clusters. What clusters
// share is rendered once: the second cluster with equal inputs costs no more than
// writing its name into the result. A package is rendered for each cluster, because
// its templates may decide anything by the cluster's name. It is safe for concurrent use.
//
// Objects equal OCM's, except where OCM is wrong or stops short:
//
//   - Variables replace string scalars of the parsed manifest; OCM replaces text,
//     so that a value with a quote adds fields. Names of fields are not replaced.
//   - {{NAME}} without a value is an error, other text in braces is kept, an
//     unclosed brace is text; OCM blanks the first two and crashes on the third.
//   - A string that is one variable can be a number or boolean (TypedAnnotation).
//   - StatefulSets, Jobs, CronJobs and init containers are decorated like the
//     containers of Deployments and DaemonSets. What they declare themselves stays,
//     since so far it was written because nothing was injected.
//   - A volume or mount that the template brings itself is not injected again.
//   - Tolerations are replaced when they are given, without a node selector, too.
//   - A CA bundle without a proxy is mounted, not only shipped, and it is shipped
//     to the namespaces of the pods that mount it.
//   - A mirror that is empty is ignored; a|b in a part of a containerID is an
//     alternative of that part; a bad pattern is an error.
//   - manifestConfigs, deleteOption and executor are those of the cluster's own
//     template, apply variables in resource names, and follow the install
//     namespace; OCM takes manifestConfigs of the default template and drops the rest.
//   - Typed decoding adds no empty structs and drops no unknown field. Works that
//     OCM wrote compare equal all the same (Compare).
//   - Pre-delete hooks and hosted mode work for templates; OCM knows the latter for
//     add-ons with a manager of their own only.
type Renderer struct {
	addOn      string
	content    Content
	defaults   *assignment
	placements map[v1alpha1.PlacementReference]*assignment

	templates map[string]*parsedTemplate
	agents    map[ConfigReference]*agentConfig
	pkg       *parsedTemplate // nil for an add-on with templates

	mu     sync.Mutex
	own    map[ownKey]*assignment
	shared map[sharedKey]*sharedRendering
	// outlines of clusters that share their rendering with no other cluster.
	outlines map[aloneKey]outline
	// interruptions counts the renderings that ended with ErrInterrupted; interrupted is the
	// error of the last one.
	interruptions int
	interrupted   error
}

// sharedKey identifies a rendering that clusters share.
type sharedKey struct {
	assignment *assignment
	facts      facts
}

// sharedRendering is rendered for the first cluster that needs it.
type sharedRendering struct {
	once      sync.Once
	rendering *rendering
	err       error
}

// aloneKey identifies one cluster's rendering.
type aloneKey struct {
	sharedKey
	name, hosting string
}

// outline is what is cached of one cluster's rendering.
type outline struct {
	digest string
	hosts  bool
	err    error
}

// maxOutlines bounds the cached outlines.
const maxOutlines = 100_000

// maxShared bounds the renderings that are cached for annotations and configurations of
// clusters.
const maxShared = 1024

// NewRenderer reads content; charts renders its package. It fails only for content without an
// add-on name, or with a package while charts is nil. Check reports what is wrong with
// templates and configurations, and so does Render for the affected clusters.
func NewRenderer(c Content, charts chart.Engine) (*Renderer, error) {
	if c.AddOn == "" {
		return nil, errors.New("cannot render content: it names no add-on")
	}
	if c.Package != nil && charts == nil {
		return nil, errors.New("cannot render content: it has a package, and there is no engine for charts")
	}
	r := &Renderer{
		addOn: c.AddOn, content: c,
		placements: make(map[v1alpha1.PlacementReference]*assignment, len(c.Placements)),
		templates:  make(map[string]*parsedTemplate, len(c.Templates)),
		agents:     map[ConfigReference]*agentConfig{},
		own:        map[ownKey]*assignment{},
		shared:     map[sharedKey]*sharedRendering{},
		outlines:   map[aloneKey]outline{},
	}
	if c.Package != nil {
		r.pkg = parsePackage(c.AddOn, c.Package, charts)
	}
	r.defaults = r.assign("", nil, nil)
	for _, p := range c.Placements {
		r.placements[p.PlacementReference] = r.assign(p.Namespace+"/"+p.Name, p.Configs, nil)
	}
	return r, nil
}

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

// Render returns what the cluster gets. The error is an *InvalidError for content
// that cannot be rendered for it, ErrInvalidImageRegistries or ErrInvalidValues for
// an annotation, or ErrInterrupted.
func (r *Renderer) Render(c Cluster) (Rendered, error) {
	rendered, _, err := r.render(c)
	return rendered, err
}

// render also returns whether the cluster shares its rendering with others.
func (r *Renderer) render(c Cluster) (rendered Rendered, shares bool, err error) {
	if c.Name == "" {
		return Rendered{}, false, ErrNoClusterName
	}
	a := r.assignmentFor(c)
	known := c.facts(a)
	name, err := jsonText(c.Name)
	if err != nil {
		return Rendered{}, false, err
	}
	var p *rendering
	if !a.packaged() {
		shared := r.sharedFor(a, known)
		if shared.err != nil && !shared.alone() {
			return Rendered{}, false, shared.err
		}
		p = shared.rendering
		shares = !p.alone && !p.collides(c.Name)
	}
	if !shares {
		if p, err = r.renderAlone(a, known, c.Name); err != nil {
			return Rendered{}, false, err
		}
	}
	return p.rendered(c, name), shares, nil
}

// Digest returns the digest of what Render returns. The digest of a cluster that shares its
// rendering with no other cluster is cached, so that a second call renders nothing.
func (r *Renderer) Digest(c Cluster) (string, error) {
	o, err := r.outline(c)
	return o.digest, err
}

// Hosts returns Rendered.Hosts of what Render returns, at the cost of Digest.
func (r *Renderer) Hosts(c Cluster) (bool, error) {
	o, err := r.outline(c)
	return o.hosts, err
}

func (r *Renderer) outline(c Cluster) (outline, error) {
	a := r.assignmentFor(c)
	key := aloneKey{sharedKey{a, c.facts(a)}, c.Name, c.Hosting}
	r.mu.Lock()
	o, known := r.outlines[key]
	r.mu.Unlock()
	if known {
		return o, o.err
	}
	rendered, shares, err := r.render(c)
	o = outline{digest: rendered.Digest, hosts: rendered.Hosts(), err: err}
	if shares || errors.Is(err, ErrInterrupted) || err != nil && !a.packaged() {
		return o, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.outlines) >= maxOutlines {
		clear(r.outlines)
	}
	r.outlines[key] = o
	return o, err
}

// Interruptions returns how many renderings ended with ErrInterrupted so far, and the error of
// the last one. If the count changed between two calls, errors of Digest, Hosts and Refuses in
// between may come from an interruption.
func (r *Renderer) Interruptions() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.interruptions, r.interrupted
}

func (r *Renderer) interrupt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interruptions++
	r.interrupted = err
}

// Refuses returns why the cluster cannot be rendered: something of its own is missing or wrong.
// It costs a lookup; for a package, the cost of Digest.
func (r *Renderer) Refuses(c Cluster) error {
	a := r.assignmentFor(c)
	if a.packaged() {
		_, err := r.outline(c)
		return err
	}
	if s := r.sharedFor(a, c.facts(a)); s.err != nil && !s.alone() {
		return s.err
	}
	return nil
}

// sharedFor returns what all clusters of an assignment share.
func (r *Renderer) sharedFor(a *assignment, known facts) *sharedRendering {
	s := r.sharedEntry(sharedKey{a, known})
	s.once.Do(func() { s.rendering, s.err = r.renderAlone(a, known, namePlaceholder) })
	return s
}

func (r *Renderer) sharedEntry(key sharedKey) *sharedRendering {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.shared[key]
	if !ok {
		r.bound()
		s = &sharedRendering{}
		r.shared[key] = s
	}
	return s
}

// alone reports whether each cluster must be rendered by itself. An error may then come from
// the place holder.
func (s *sharedRendering) alone() bool { return s.rendering != nil && s.rendering.alone }

// bound drops what is shared when it has grown too large. The lock is held.
func (r *Renderer) bound() {
	if len(r.shared) >= maxShared || len(r.own) >= maxShared {
		clear(r.shared)
		clear(r.own)
	}
}

// renderAlone renders an assignment for one cluster name, or for all of them with the place
// holder as the name. A rendering may be returned with an *InvalidError; it says what the
// rendering depends on.
func (r *Renderer) renderAlone(a *assignment, known facts, name string) (*rendering, error) {
	b, err := newBuilder(r.addOn, a, known, name)
	if errors.Is(err, ErrInterrupted) {
		r.interrupt(err)
	}
	if err != nil {
		return nil, err
	}
	p := b.build()
	b.stamped()
	return p, b.found.err(r.addOn)
}
