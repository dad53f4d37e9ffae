package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// builder renders one assignment, step by step in OCM's order, and collects the errors.
type builder struct {
	addOn      string
	assignment *assignment
	template   *parsedTemplate
	agent      *agentConfig
	mirrors    []addonv1alpha1.ImageMirror
	name       string // of the cluster
	variables  variables
	facts      facts
	found      findings
	manifests  []manifest
}

// manifestsField is the field in which a template lists its manifests.
const manifestsField = "spec.agentSpec.workload.manifests"

// manifest is one manifest while it becomes an object.
type manifest struct {
	at       flaw.Path // in the template; "" for an injected one
	file     string    // the file of the package that rendered it
	fields   map[string]any
	kind     workloadType
	workload bool
	declared Identity // with variables, before it was relocated
	hook     bool     // run when the add-on is removed
	location string   // in hosted mode; "" is that of the managed cluster
}

func newBuilder(addOn string, a *assignment, known facts, name string) (*builder, error) {
	b := &builder{addOn: addOn, assignment: a, template: a.template, agent: a.agent, name: name, facts: known, mirrors: a.agent.registries}
	if a.mirrors {
		mirrors, err := parseImageRegistries(known.registries)
		if err != nil {
			return nil, err
		}
		b.mirrors = mirrors
	}
	b.found.list = slices.Concat(a.found.list, a.agent.found.list)
	if b.template == nil || b.agent.unreadable {
		return nil, b.found.err(addOn)
	}
	b.found.list = append(b.found.list, b.template.found.list...)
	b.variables = newVariables(b.template, b.agent, name)
	b.merge(known.variables)
	if b.template.pkg == nil {
		return b, nil
	}
	return b, b.renderPackage()
}

func (b *builder) build() *rendering {
	if b.template.pkg != nil {
		b.unique()
		return b.bounded(b.deployable(b.finish()))
	}
	b.substitute()
	for i := range b.manifests {
		b.decorate(&b.manifests[i])
	}
	for _, fields := range caBundleObjects(b.addOn, b.agent.proxy, b.namespaces()) {
		b.manifests = append(b.manifests, manifest{fields: fields, declared: IdentityOf(fields)})
	}
	for _, m := range b.manifests {
		relocate(m.fields, b.agent.namespace)
	}
	b.unique()
	return b.bounded(b.deployable(b.finish()))
}

// deployable refuses hooks without other objects: the hub refuses an empty work.
func (b *builder) deployable(p *rendering) *rendering {
	if hooks := len(binned(p.objects, false).hooks); hooks > 0 && hooks == len(p.objects) && len(b.found.list) == 0 {
		b.found.add(Finding{
			Template: b.template.name, Field: manifestsField, Reason: flaw.ReasonInvalidManifest,
			Message: "every manifest is a pre-delete hook: nothing would be deployed", Hint: "declare the objects that the hooks clean up",
		})
	}
	return p
}

// substitute parses every manifest into one with its variables replaced.
func (b *builder) substitute() {
	s := &substitution{template: b.template.name, values: b.variables.values, typed: b.template.typed, unassigned: b.assignment.unassigned, found: &b.found}
	for i, raw := range b.template.manifests {
		m := manifest{at: flaw.Path(manifestsField).Index(i)}
		declared, ok := raw.(map[string]any)
		if !ok {
			b.report(&m, misshapen(m.at, "is not an object"))
			continue
		}
		m.fields, _ = s.value(raw, m.at).(map[string]any)
		flaws, renderable := shapeFlaws(m.fields, m.at)
		b.report(&m, flaws...)
		if !renderable {
			continue
		}
		b.report(&m, b.nameFlaws(m.at, declared, m.fields)...)
		m.declared = IdentityOf(m.fields)
		m.kind, m.workload = workloadKind(m.declared.groupKind().Group, m.declared.Kind)
		b.mark(&m)
		b.manifests = append(b.manifests, m)
	}
}

// nameFlaws judges names that contain variables, which the check of the declared manifest skips.
func (b *builder) nameFlaws(at flaw.Path, declared, fields map[string]any) []flaw.Flaw {
	name := IdentityOf(fields).Name
	if name == IdentityOf(declared).Name {
		return nil
	}
	return ManifestNameFlaws(at.Child(metadataKey).Child(nameKey), fields, name)
}

// mark reads the annotations that say when and where a manifest is delivered.
func (b *builder) mark(m *manifest) {
	metadata, _ := m.fields[metadataKey].(map[string]any)
	known := false
	m.hook = isPreDeleteHook(m.fields)
	if m.location, known = hostedLocation(m.fields); !known {
		b.found.add(b.atAnnotation(m, addonv1alpha1.HostedManifestLocationAnnotationKey, Finding{
			Reason:  flaw.ReasonInvalidManifest,
			Message: fmt.Sprintf("%.80q is not a location of a manifest in hosted mode", m.location),
			Hint:    "use " + strings.Join(hostedLocations(), ", "),
		}))
	}
	if annotated(metadata, helmHookAnnotation) {
		b.found.add(b.atAnnotation(m, helmHookAnnotation, Finding{
			Reason:  ReasonNotSupported,
			Message: "hooks of Helm are not run: the manifest would be deployed with the others",
			Hint:    "annotate a Job or Pod with " + addonv1alpha1.AddonPreDeleteHookAnnotationKey + " to run it before the add-on is removed",
		}))
	}
}

// atAnnotation sets the position of a finding about an annotation: in the template, or in the
// file of the package.
func (b *builder) atAnnotation(m *manifest, key string, f Finding) Finding {
	if b.template.pkg != nil {
		f.Package, f.File, f.Message = b.template.pkg.Name, m.file, m.declared.String()+": "+f.Message
		return f
	}
	f.Template, f.Field = b.template.name, string(m.at.Child(metadataKey).Child(annotationsKey).Child(key))
	return f
}

// decorate applies the configuration to a pod template, in OCM's order.
func (b *builder) decorate(m *manifest) {
	if !m.workload || m.kind.template == nil {
		return
	}
	p, flaws := podOf(m.fields, m.kind, m.at)
	b.report(m, flaws...)
	if p == nil || len(b.found.list) > 0 {
		return // it will not be delivered, and its lists may have the wrong type
	}
	p.name = m.declared.Name
	p.inject(b.variables.env)
	p.mount(b.template.registrations)
	p.place(b.agent.nodeSelector, b.agent.tolerations)
	p.redirect(b.mirrors)
	p.inject(proxyEnvironment(b.agent.proxy))
	p.mount(proxyVolumes(b.addOn, b.agent.proxy))
	p.require(b.agent.requirements)
}

// namespaces returns the namespaces in which pods run; without pods, OCM's default. They are in the template's order:
// if they were sorted, a name that depends on the cluster would change the order of the objects.
func (b *builder) namespaces() []string {
	var names []string
	for _, m := range b.manifests {
		if m.workload && m.declared.Namespace != "" && !slices.Contains(names, m.declared.Namespace) {
			names = append(names, m.declared.Namespace)
		}
	}
	if len(names) == 0 || b.agent.namespace != "" { // all objects are in one namespace
		return []string{defaultInstallNamespace}
	}
	return names
}

// unique drops manifests that are equal to an earlier one, as OCM does. It refuses two different manifests of one
// object, of which OCM would keep the last.
func (b *builder) unique() {
	seen := map[Identity]int{}
	kept := b.manifests[:0]
	for _, m := range b.manifests {
		id := IdentityOf(m.fields).Object()
		first, again := seen[id]
		if !again {
			seen[id] = len(kept)
			kept = append(kept, m)
			continue
		}
		if !bytes.Equal(b.encode(&kept[first], kept[first].fields), b.encode(&m, m.fields)) {
			b.report(&m, misshapen(m.at, fmt.Sprintf("is a second, different %s", id)))
		}
	}
	b.manifests = kept
}

// stamped returns the findings; those without a position are about the package.
func (b *builder) stamped() []Finding {
	if b.template == nil || b.template.pkg == nil {
		return b.found.list
	}
	for i := range b.found.list {
		if f := &b.found.list[i]; f.Template == "" && f.Config == "" {
			f.Package = b.template.pkg.Name
		}
	}
	return b.found.list
}

// report adds the errors of a manifest: at its field in the template, or in the file of the package that rendered it.
func (b *builder) report(m *manifest, flaws ...flaw.Flaw) {
	for _, f := range flaws {
		if b.template.pkg != nil {
			b.found.add(Finding{Package: b.template.pkg.Name, File: m.file, Reason: f.Reason, Message: string(f.Field) + ": " + f.Message, Hint: f.Hint})
			continue
		}
		f.Field = cmp.Or(f.Field, manifestsField)
		b.found.addAll(Finding{Template: b.template.name}, f)
	}
}

// encode writes an object as the API server does: keys sorted, no spaces, <, > and & escaped. So the text that is
// read back from the hub is equal byte by byte. If an object cannot be encoded, its manifest gets a finding.
func (b *builder) encode(m *manifest, fields map[string]any) []byte {
	text, err := json.Marshal(fields)
	if err != nil {
		b.report(m, misshapen(m.at, fmt.Sprintf("cannot be encoded: %s", err)))
	}
	return text
}

// marked returns fields with the annotation that holds the digest of their content; fields is
// not changed.
func marked(fields map[string]any, digest string) map[string]any {
	metadata, _ := fields["metadata"].(map[string]any)
	annotations, _ := metadata[annotationsKey].(map[string]any)
	return with(fields, "metadata",
		with(metadata, annotationsKey,
			with(annotations, v1alpha1.DigestAnnotation, digest)))
}

// with returns a shallow copy of fields with one more field.
func with(fields map[string]any, key string, value any) map[string]any {
	out := make(map[string]any, len(fields)+1)
	maps.Copy(out, fields)
	out[key] = value
	return out
}
