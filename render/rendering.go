package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/render/flaw"
)

// rendering is the objects of one cluster and how they are delivered.
type rendering struct {
	addOn   string
	cluster string
	objects []object
	// options are the template's manifestConfigs for this cluster; workload.ask has AddonFlow's.
	options      []workv1.ManifestConfigOption
	deleteOption *workv1.DeleteOption
	executor     *workv1.ManifestWorkExecutor
	// settings is the SHA-256 of all fields above except the objects.
	settings [sha256.Size]byte

	// marks identifies the version of the marks and feedback rules.
	marks string

	template     string
	configs      []ConfigHash
	others       []ConfigHash // of configs, the kinds that rendering does not read
	specHashes   string       // the config-spec-hash annotation
	registration []addonv1alpha1.RegistrationSpec
	namespace    string

	// packaged: rendered from an AddOnPackage.
	packaged bool
}

type object struct {
	id     Identity
	fields map[string]any
	// plain is the object as JSON, without the mark.
	plain []byte
	// marked: the delivered object carries the digest.
	marked bool
	// workload is nil for objects without pods and without feedback rules, and for hooks.
	workload *workload
	orphan   bool
	hook     *workv1.ManifestConfigOption // the feedback rules of a pre-delete hook; nil for deployed objects
	location string                       // in hosted mode
}

// delivered is the object as a work has it.
func (o *object) delivered(digest string) []byte {
	if !o.marked {
		return o.plain
	}
	text, _ := json.Marshal(marked(o.fields, digest)) // it was encoded without the mark
	return text
}

// workload is an object with feedback rules: it runs pods, or the template has feedback rules for it. In the second
// case kind is zero.
type workload struct {
	kind workloadType
	ask  workv1.ManifestConfigOption
}

// digestVersionRendered begins the input of a cluster's digest. Before changing it, see
// rendering.sum: every cluster would count as changed.
const digestVersionRendered = "v1"

// sum returns the digest of one cluster: v1:sha256:<hex> over the SHA-256 sums of its objects in the template's
// order, the other settings of its works (manifestConfigs, deleteOption, executor), and the registration of its
// agent. AddonFlow's marks are left out. In hosted mode it includes the name of the hosting cluster, because a move
// to another one is a change.
func (p *rendering) sum(hosting string) string {
	all := sha256.New()
	all.Write([]byte(digestVersionRendered + "\x00"))
	for i := range p.objects {
		sum := sha256.Sum256(p.objects[i].plain)
		all.Write(sum[:])
	}
	all.Write(p.settings[:])
	if hosting != "" {
		all.Write([]byte("hosting\x00" + hosting))
	}
	return digestVersionRendered + ":sha256:" + hex.EncodeToString(all.Sum(nil))
}

// seal completes a rendering after its objects are built.
func (p *rendering) seal() error {
	hashed := []any{p.options, p.deleteOption, p.executor}
	if len(p.registration) > 0 {
		// The agent's identity and permissions on the hub are rolled out like its workloads:
		// cluster by cluster.
		hashed = append(hashed, p.registration)
		if p.packaged || !slices.ContainsFunc(p.objects, func(o object) bool { return o.id.Namespace != "" }) {
			// The namespace of the agent's credentials is rolled out in the same way. In a template, the digest
			// depends on it already, by the namespaces of the objects.
			hashed = append(hashed, p.namespace)
		}
	}
	if len(p.others) > 0 {
		// Rendering does not read these configurations, so every change of them counts.
		hashed = append(hashed, p.others)
	}
	settings, err := json.Marshal(hashed)
	if err != nil {
		return fmt.Errorf("manifestConfigs, deleteOption, executor or registration cannot be encoded: %w", err)
	}
	p.settings = sha256.Sum256(settings)
	p.marks, err = marksOf(p.objects)
	return err
}

// Rendered has the objects of one cluster. Its fields must not be changed, because some belong to the template.
type Rendered struct {
	// Digest is the value of addonflow.io/digest. It is equal for equal objects, manifestConfigs, deleteOption,
	// executor and registration, whatever they were rendered from.
	Digest string
	// Template is the name of the AddOnTemplate; "": an AddOnPackage is rendered.
	Template string
	// ConfigReferences are the configurations with their hashes, as
	// MCA.status.configReferences lists them.
	ConfigReferences []ConfigHash
	// Registration blocks of the template.
	Registration []addonv1alpha1.RegistrationSpec
	// Namespace is where the registration agent keeps the add-on's credentials
	// (MCA.status.namespace).
	Namespace string
	// Hosting is the hosting cluster in hosted mode; "": the default mode.
	Hosting string

	rendering *rendering
}

func (p *rendering) rendered(hosting string) Rendered {
	return Rendered{
		Digest: p.sum(hosting), Template: p.template, ConfigReferences: p.configs,
		Registration: p.registration, Namespace: p.namespace, Hosting: hosting, rendering: p,
	}
}

// Deploys reports whether there are objects to apply for the agent of the cluster itself, and for that of its hosting
// cluster. Pre-delete hooks do not count.
func (r Rendered) Deploys() (own, hosting bool) {
	if r.rendering == nil {
		return false, false
	}
	b := r.bins()
	return len(b.managed) > 0, len(b.hosting) > 0
}

// Hosts reports whether an object or a pre-delete hook is delivered to the hosting cluster. Otherwise the cluster
// does not depend on the hosting cluster, even if its annotation names one.
func (r Rendered) Hosts() bool {
	if r.Hosting == "" || r.rendering == nil {
		return false
	}
	b := r.bins()
	return len(b.hosting)+len(b.hostingHooks) > 0
}

// Objects returns copies of the cluster's objects, in the template's order and without
// AddonFlow's marks: those of both clusters in hosted mode, and pre-delete hooks.
func (r Rendered) Objects() ([]*unstructured.Unstructured, error) {
	if r.rendering == nil {
		return nil, nil
	}
	out := make([]*unstructured.Unstructured, 0, len(r.rendering.objects))
	for i := range r.rendering.objects {
		if r.Hosting != "" && r.rendering.objects[i].location == addonv1alpha1.HostedManifestLocationNoneValue {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(r.rendering.objects[i].plain); err != nil {
			return nil, fmt.Errorf("cannot read rendered %s: %w", r.rendering.objects[i].id, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// specHashAnnotation is the value of open-cluster-management.io/config-spec-hash
// in OCM's exact JSON, "" without configurations.
func specHashAnnotation(configs []ConfigHash) string {
	if len(configs) == 0 {
		return ""
	}
	hashes := make(map[string]string, len(configs))
	for _, c := range configs {
		resource := c.Resource
		if c.Group != "" {
			resource += "." + c.Group
		}
		hashes[resource+"/"+c.Namespace+"/"+c.Name] = c.SpecHash
	}
	text, _ := json.Marshal(hashes) // strings only
	return string(text)
}

// finish encodes the manifests.
func (b *builder) finish() *rendering {
	p := &rendering{
		addOn: b.addOn, cluster: b.name, template: b.template.name, configs: slices.Clip(b.assignment.configs), others: b.assignment.others,
		specHashes:   specHashAnnotation(b.assignment.configs),
		registration: b.template.registration, executor: b.template.executor,
	}
	moved := b.moved()
	p.options = b.options(moved)
	for i := range b.manifests {
		p.objects = append(p.objects, b.object(&b.manifests[i], p.options))
	}
	p.deleteOption = b.deleteOption(moved, p.objects)
	p.namespace = registrationNamespace(b.agent.namespace, p.objects)
	if b.template.pkg != nil {
		p.packaged, p.namespace = true, b.installNamespace()
	}
	if err := p.seal(); err != nil {
		b.found.add(Finding{Template: b.template.name, Field: "spec.agentSpec", Reason: flaw.ReasonInvalidTemplate, Message: err.Error()})
	}
	return p
}

func (b *builder) object(m *manifest, options []workv1.ManifestConfigOption) object {
	id := IdentityOf(m.fields)
	metadata, _ := m.fields["metadata"].(map[string]any)
	o := object{id: id, fields: m.fields, plain: b.encode(m, m.fields), orphan: orphaned(metadata), location: m.location}
	if m.hook {
		o.hook, o.marked = hookAsk(id), true
		return o
	}
	effective := effectOn(id.resource(), options)
	rules := rulesFor(m, effective)
	if !m.workload && (len(effective.FeedbackRules) == 0 || !rules.digest) {
		return o
	}
	o.marked = rules.digest
	o.workload = &workload{kind: m.kind, ask: workv1.ManifestConfigOption{
		ResourceIdentifier: id.resource(), FeedbackRules: rules.union(effective),
	}}
	return o
}
