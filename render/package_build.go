package render

import (
	"cmp"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/render/chart"
)

// renderPackage makes the manifests of a package. Where they run and with which
// resources is the chart's to decide, by the values that the configuration becomes;
// only images are redirected, because a chart has no value for that.
func (b *builder) renderPackage() error {
	in, err := b.packageInput()
	if err != nil {
		return b.packageError(err)
	}
	out, err := b.template.pkg.chart.Render(in)
	b.readsKubeVersion, b.alone = out.ReadsKubeVersion, b.alone || out.Alone
	if err != nil {
		return b.packageError(err)
	}
	for _, m := range out.Manifests {
		b.take(m)
	}
	return nil
}

// packageInput is what the chart is rendered with.
func (b *builder) packageInput() (chart.Input, error) {
	values, err := b.packageValues(b.facts.values)
	if err != nil {
		return chart.Input{}, err
	}
	in := chart.Input{
		Release: b.addOn, Namespace: b.installNamespace(), Values: values, BuiltIns: b.builtIns(b.facts.mode),
		KubeVersion: b.facts.kubeVersion,
	}
	if b.name == namePlaceholder {
		in.Mark = namePlaceholder
	}
	return in, nil
}

// packageError keeps what is wrong with the package; what is wrong with one cluster's
// annotation is its own error.
func (b *builder) packageError(err error) error {
	if errors.Is(err, ErrInvalidValues) {
		return err
	}
	b.found.add(b.template.pkg.finding(err))
	return nil
}

// take adds one rendered object.
func (b *builder) take(rendered chart.Manifest) {
	id := IdentityOf(rendered.Fields)
	m := manifest{at: field.NewPath(cmp.Or(strings.TrimSpace(id.String()), "object")), file: rendered.File, fields: rendered.Fields, declared: id}
	invalid := b.invalidIn(&m)
	tidy(m.fields)
	if !checkManifest(m.fields, m.at, invalid) {
		return
	}
	b.mark(&m)
	m.kind, m.workload = workloadKind(id.groupKind().Group, id.Kind)
	if m.workload {
		if p := podOf(m.fields, m.kind, m.at, invalid); p != nil && len(b.found.list) == 0 {
			b.noticeImages(p)
			p.redirect(b.mirrors)
		}
	}
	b.manifests = append(b.manifests, m)
}

// noticeImages sees images that depend on the cluster's name, where a mirror is
// chosen by them.
func (b *builder) noticeImages(p *pod) {
	for _, c := range p.containers {
		image, _ := c.fields["image"].(string)
		b.alone = b.alone || len(b.mirrors) > 0 && varies(image)
	}
}

// verify renders the package for one cluster as Helm does, and again in another
// order.
func (b *builder) verify() {
	in, err := b.packageInput()
	if err == nil {
		err = b.template.pkg.chart.Verify(in)
	}
	if err != nil {
		b.found.add(b.template.pkg.finding(err))
	}
}

// sharesWith reports whether a rendering for all clusters is right for one of this
// name: YAML may read a name like 123 as something else than text.
func (p *rendering) sharesWith(cluster string) bool {
	return !p.packaged || p.digest != "" || chart.PlainText(cluster)
}
