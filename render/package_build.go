package render

import (
	"cmp"
	"errors"
	"strings"

	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// renderPackage creates the manifests of a package. The chart decides where the pods run and with which resources, by
// values from the configuration. Only images are redirected afterwards, because charts have no common value for the
// registry of their images.
func (b *builder) renderPackage() error {
	in, err := b.packageInput()
	if err != nil {
		return b.packageError(err)
	}
	rendered, err := b.template.pkg.charts.Render(b.template.pkg.source, in)
	if err != nil {
		return b.packageError(err)
	}
	for _, m := range rendered {
		b.take(m)
	}
	return nil
}

func (b *builder) packageInput() (chart.Input, error) {
	values, err := b.packageValues(b.facts.values)
	if err != nil {
		return chart.Input{}, err
	}
	return chart.Input{
		Release: b.addOn, Namespace: b.installNamespace(), Values: values, BuiltIns: b.builtIns(b.facts.mode),
		KubeVersion: b.facts.kubeVersion,
	}, nil
}

// packageError stores the errors of the package. An invalid annotation of the cluster and an interruption are
// returned as errors.
func (b *builder) packageError(err error) error {
	if errors.Is(err, ErrInvalidValues) || errors.Is(err, ErrInterrupted) {
		return err
	}
	b.found.add(b.template.pkg.finding(err))
	return nil
}

func (b *builder) take(rendered chart.Manifest) {
	id := IdentityOf(rendered.Fields)
	m := manifest{at: flaw.Path(cmp.Or(strings.TrimSpace(id.String()), "object")), file: rendered.File, fields: rendered.Fields, declared: id}
	tidy(m.fields)
	flaws, renderable := shapeFlaws(m.fields, m.at)
	b.report(&m, flaws...)
	if !renderable {
		return
	}
	b.mark(&m)
	m.kind, m.workload = workloadKind(id.groupKind().Group, id.Kind)
	if m.workload {
		p, flaws := podOf(m.fields, m.kind, m.at)
		b.report(&m, flaws...)
		if p != nil && len(b.found.list) == 0 {
			p.redirect(b.mirrors)
		}
	}
	b.manifests = append(b.manifests, m)
}

// verify renders the package for one cluster, and again in another order, to find results that
// depend on the order.
func (b *builder) verify() error {
	in, err := b.packageInput()
	if err == nil {
		err = b.template.pkg.charts.Verify(b.template.pkg.source, in)
	}
	if err == nil {
		return nil
	}
	return b.packageError(err)
}
