package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/render/flaw"
)

// rendering is what the clusters of one assignment share: encoded objects with holes for a
// cluster's name and digest. It does not change once built.
type rendering struct {
	addOn   string
	objects []object
	// options are the template's manifestConfigs for this rendering; asks are AddonFlow's.
	options []workv1.ManifestConfigOption
	// optionsVary: a resource name in options or deleteOption depends on the cluster.
	optionsVary  bool
	deleteOption *workv1.DeleteOption
	executor     *workv1.ManifestWorkExecutor
	// settings is everything above but the objects, as the digest covers it.
	settings segments

	// marks identifies these marks and feedback rules among those of other versions.
	marks string

	template     string
	configs      []ConfigHash
	others       []ConfigHash // of configs, the kinds that rendering does not read
	specHashes   string       // the config-spec-hash annotation
	registration []addonv1alpha1.RegistrationSpec
	namespace    string

	// packaged: rendered from an AddOnPackage.
	packaged bool
	// alone: valid only for the cluster it was rendered for.
	alone bool
	// varying are the objects whose identity depends on the cluster.
	varying []int
	// digest of every cluster in the default mode, if nothing depends on the cluster.
	digest string
	// managed and hosted are the objects by destination, in the two install modes.
	managed, hosted bins
}

// object is one rendered object.
type object struct {
	id Identity
	// plain is the object, delivered the object with AddonFlow's mark.
	plain, delivered segments
	sum              [sha256.Size]byte // of plain, if it is the same for every cluster
	// workload is nil for objects that run no pods and have no feedback rules, and for hooks.
	workload *workload
	orphan   bool
	hook     *workv1.ManifestConfigOption // the feedback rules of a pre-delete hook; nil for a deployed object
	location string                       // in hosted mode
}

// workload is an object with feedback rules: it runs pods, or the template has feedback rules
// for it. kind is zero for the latter.
type workload struct {
	kind workloadType
	ask  workv1.ManifestConfigOption
}

// digestVersionRendered begins the input of a cluster's digest. Before changing it, see
// rendering.sum: every cluster would count as changed.
const digestVersionRendered = "v1"

// sum returns the digest of one cluster: v1:sha256:<hex> over the SHA-256 sums of its objects
// in the template's order, the other settings of its works (manifestConfigs, deleteOption,
// executor), and how its agent registers; all without AddonFlow's marks. In hosted mode it
// covers the name of the hosting cluster: a move to another one is a change. Objects are summed
// one by one, so that large ones, which seldom contain the cluster's name, are summed once.
func (p *rendering) sum(f fill, hosting string) string {
	if p.digest != "" && hosting == "" {
		return p.digest
	}
	scratch, all := sha256.New(), sha256.New()
	all.Write([]byte(digestVersionRendered + "\x00"))
	for i := range p.objects {
		o := &p.objects[i]
		sum := o.sum
		if !o.plain.same() {
			sum = o.plain.sum(scratch, f)
		}
		all.Write(sum[:])
	}
	settings := p.settings.sum(scratch, f)
	all.Write(settings[:])
	if hosting != "" {
		all.Write([]byte("hosting\x00" + hosting))
	}
	return digestVersionRendered + ":sha256:" + hex.EncodeToString(all.Sum(nil))
}

// seal completes a rendering once its objects are built.
func (p *rendering) seal() error {
	hashed := []any{p.options, p.deleteOption, p.executor}
	if len(p.registration) > 0 {
		// The agent's identity and permissions on the hub are rolled out like its workloads:
		// cluster by cluster.
		hashed = append(hashed, p.registration)
		if p.packaged || !slices.ContainsFunc(p.objects, func(o object) bool { return o.id.Namespace != "" }) {
			// So is the namespace of its credentials. In a template, the namespaced objects
			// already show it.
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
	if p.marks, err = marksOf(p.objects); err != nil {
		return err
	}
	p.settings = cut(settings)
	p.optionsVary = !p.settings.same()
	scratch, same := sha256.New(), p.settings.same()
	for i := range p.objects {
		o := &p.objects[i]
		if o.plain.same() {
			o.sum = o.plain.sum(scratch, fill{})
		} else {
			same = false
		}
		if o.id.varies() {
			p.varying = append(p.varying, i)
		}
	}
	p.managed, p.hosted = binned(p.objects, false), binned(p.objects, true)
	if same {
		p.digest = p.sum(fill{}, "")
	}
	return nil
}

// collides reports whether, for this cluster, an object whose name depends on the cluster has
// the same identity as another.
func (p *rendering) collides(cluster string) bool {
	if len(p.varying) == 0 {
		return false
	}
	seen := make(map[Identity]bool, len(p.objects))
	for i := range p.objects {
		id := p.objects[i].id.of(cluster)
		if seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// of returns the identity on a cluster.
func (id Identity) of(cluster string) Identity {
	id.Namespace, id.Name = named(id.Namespace, cluster), named(id.Name, cluster)
	return id
}

// named inserts the name of the cluster into text.
func named(text, cluster string) string {
	return strings.ReplaceAll(text, namePlaceholder, cluster)
}

// Rendered is what one cluster gets. Its fields are shared between clusters and
// must not be changed.
type Rendered struct {
	// Digest is the value of addonflow.io/digest: equal for equal objects, manifestConfigs,
	// deleteOption, executor and registration, whatever they were rendered from.
	Digest string
	// Template is the name of the AddOnTemplate, "" when an AddOnPackage is rendered.
	Template string
	// ConfigReferences are the configurations with their hashes, as
	// MCA.status.configReferences lists them.
	ConfigReferences []ConfigHash
	// Registration blocks of the template.
	Registration []addonv1alpha1.RegistrationSpec
	// Namespace is where the registration agent keeps the add-on's credentials
	// (MCA.status.namespace).
	Namespace string
	// Hosting is the hosting cluster in hosted mode, "" in the default mode.
	Hosting string

	cluster string
	fill    fill
	shared  *rendering
}

func (p *rendering) rendered(c Cluster, name []byte) Rendered {
	digest := p.sum(fill{name: name}, c.Hosting)
	return Rendered{
		Digest: digest, Template: p.template, ConfigReferences: p.configs,
		Registration: p.registration, Namespace: named(p.namespace, c.Name), Hosting: c.Hosting,
		cluster: c.Name, fill: fill{name: name, digest: []byte(digest)}, shared: p,
	}
}

// Deploys reports whether there is anything to apply for the agent of the cluster itself, and
// for that of its hosting cluster. Pre-delete hooks are not deployed.
func (r Rendered) Deploys() (own, hosting bool) {
	if r.shared == nil {
		return false, false
	}
	b := r.bins()
	return len(b.managed) > 0, len(b.hosting) > 0
}

// Hosts reports whether anything goes to the hosting cluster, deployed or as a pre-delete hook.
// Otherwise the cluster does not depend on the hosting cluster, even if its annotation names
// one.
func (r Rendered) Hosts() bool {
	if r.Hosting == "" || r.shared == nil {
		return false
	}
	b := r.bins()
	return len(b.hosting)+len(b.hostingHooks) > 0
}

// Objects returns copies of the cluster's objects, in the template's order and without
// AddonFlow's marks: those of both clusters in hosted mode, and pre-delete hooks.
func (r Rendered) Objects() ([]*unstructured.Unstructured, error) {
	if r.shared == nil {
		return nil, nil
	}
	out := make([]*unstructured.Unstructured, 0, len(r.shared.objects))
	for i := range r.shared.objects {
		if r.Hosting != "" && r.shared.objects[i].location == addonv1alpha1.HostedManifestLocationNoneValue {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(r.shared.objects[i].plain.appendTo(nil, r.fill)); err != nil {
			return nil, fmt.Errorf("cannot read rendered %s: %w", r.shared.objects[i].id, err)
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
	text, _ := json.Marshal(hashes) //nolint:errchkjson // strings only
	return string(text)
}

// finish encodes the manifests.
func (b *builder) finish() *rendering {
	p := &rendering{
		addOn: b.addOn, template: b.template.name, configs: slices.Clip(b.assignment.configs), others: b.assignment.others,
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
	p.alone = b.alone
	if err := p.seal(); err != nil {
		b.found.add(Finding{Template: b.template.name, Field: "spec.agentSpec", Reason: flaw.ReasonInvalidTemplate, Message: err.Error()})
	}
	return p
}

func (b *builder) object(m *manifest, options []workv1.ManifestConfigOption) object {
	id := IdentityOf(m.fields)
	metadata, _ := m.fields["metadata"].(map[string]any)
	o := object{id: id, plain: cut(b.encode(m, m.fields)), orphan: orphaned(metadata)}
	o.delivered, o.location = o.plain, m.location
	if m.hook {
		o.hook, o.delivered = hookAsk(id), cut(b.encode(m, marked(m.fields)))
		return o
	}
	effective := b.effective(options, id.resource())
	rules := rulesFor(m, effective)
	if !m.workload && (len(effective.FeedbackRules) == 0 || !rules.digest) {
		return o
	}
	if rules.digest {
		o.delivered = cut(b.encode(m, marked(m.fields)))
	}
	o.workload = &workload{kind: m.kind, ask: workv1.ManifestConfigOption{
		ResourceIdentifier: id.resource(), FeedbackRules: rules.union(effective),
	}}
	return o
}
