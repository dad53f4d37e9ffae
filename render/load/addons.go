package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
)

// draft is an add-on of the commit while it is built.
type draft struct {
	AddOn
	addOn   *loaded
	rollout *loaded
	pkg     *loaded
	// broken: an object to which the add-on refers has problems. Then the content is not built, because everything
	// from that object would be reported as missing.
	broken bool
	// absent are the Missing references with their fields.
	absent []referring
	// secrets names the Secrets with values that the package has.
	secrets []string
}

// buildAddOns makes an AddOn of every ClusterManagementAddOn that can be decoded.
func (l *loader) buildAddOns() {
	for _, o := range l.objects {
		if o.role != roleAddOn {
			continue
		}
		l.checkAllowed(o, "metadata.name", o.GetUnstructured().GetName())
		if o.object != nil {
			l.addOns = append(l.addOns, l.newDraft(o))
		}
	}
	slices.SortFunc(l.addOns, func(a, b *draft) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range l.objects {
		switch o.role {
		case roleRollout:
			l.attachRollout(o)
		case roleTemplate:
			name, _ := valueAt(o.GetUnstructured().Object, specKey, "addonName").(string)
			l.checkAllowed(o, "spec.addonName", name)
		default:
		}
	}
}

// newDraft decodes a normalised ClusterManagementAddOn and builds its content.
func (l *loader) newDraft(o *loaded) *draft {
	d := &draft{addOn: o}
	d.Name = o.object.GetName()
	var cma addonv1alpha1.ClusterManagementAddOn
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.object.Object, &cma); err != nil {
		// Schema and pace checks cover every field, so this error points to a gap in those checks.
		l.reportNormalised(o, flaw.Flaw{Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("cannot be decoded: %v", err)})
		d.broken = true
		return d
	}
	d.ClusterManagementAddOn = &cma
	d.Install = installOf(cma.Spec.InstallStrategy)
	d.Paced = declaresPace(o.GetUnstructured())
	d.Position = d.position
	d.Place = func(err error) problem.List { return l.place(d, err) }
	l.resolve(d)
	return d
}

// position finds a field of the add-on's policy.
func (d *draft) position(kind, field string) (path string, line int) {
	switch {
	case kind == addOnKind:
		return d.addOn.Position(field)
	case kind == v1alpha1.AddOnRolloutKind && d.rollout != nil:
		return d.rollout.Position(field)
	default:
		return "", 0
	}
}

// Located returns a problem of the add-on's policy with its position.
func (a AddOn) Located(p problem.Problem) problem.Problem {
	if a.Position != nil {
		p.Path, p.Line = a.Position(p.Kind, p.Field)
	}
	return p
}

// declaresPace reports whether a ClusterManagementAddOn, as it is declared, has the pace of a placement.
func declaresPace(declared *unstructured.Unstructured) bool {
	placements, _ := valueAt(declared.Object, specKey, "installStrategy", "placements").([]any)
	return slices.ContainsFunc(placements, func(p any) bool {
		fields, _ := p.(map[string]any)
		strategy, _ := fields["rolloutStrategy"].(map[string]any)
		return len(strategy) > 0
	})
}

// DeclaresPace reports whether a file of the commit declares a pace of the add-on.
func (a AddOn) DeclaresPace() bool {
	return a.Paced || a.Rollout != nil && (a.Rollout.Strategy != nil || len(a.Rollout.Stages) > 0)
}

// installOf returns the installStrategy as policy. Placements are kept even with type Manual: they install nothing,
// but their pace is declared.
func installOf(strategy addonv1alpha1.InstallStrategy) v1alpha1.Install {
	install := v1alpha1.Install{Type: strategy.Type}
	for _, p := range strategy.Placements {
		install.Placements = append(install.Placements, v1alpha1.InstallPlacement{
			PlacementReference: v1alpha1.PlacementReference{Namespace: p.Namespace, Name: p.Name},
			RolloutStrategy:    p.RolloutStrategy,
		})
	}
	return install
}

// attachRollout gives an AddOnRollout to the add-on it is named after.
func (l *loader) attachRollout(o *loaded) {
	object := o.GetUnstructured()
	if namespace := object.GetNamespace(); namespace != "" && l.options.Namespace != "" && namespace != l.options.Namespace {
		l.report(o, flaw.Flaw{
			Field: "metadata.namespace", Reason: flaw.ReasonCrossNamespaceReference,
			Message: fmt.Sprintf("an AddOnRollout lives in the namespace of its AddOnSource, %s", l.options.Namespace), Hint: "leave it out",
		})
	}
	if !l.declared[object.GetName()] {
		if object.GetName() == "" {
			return
		}
		l.reportNormalised(o, flaw.Flaw{
			Field: "metadata.name", Reason: flaw.ReasonReferenceNotFound,
			Message: fmt.Sprintf("the commit declares no ClusterManagementAddOn %q", object.GetName()),
			Hint:    "name the AddOnRollout after its add-on",
		})
		return
	}
	if o.object == nil {
		return
	}
	i := slices.IndexFunc(l.addOns, func(d *draft) bool { return d.Name == object.GetName() })
	if i < 0 {
		return // problems of its add-on are already reported
	}
	l.setRollout(l.addOns[i], o)
}

// setRollout decodes the spec of an AddOnRollout. It finds AddOnRollouts of one name in two namespaces, because both
// would be for the same add-on.
func (l *loader) setRollout(d *draft, o *loaded) {
	if d.rollout != nil {
		l.reportNormalised(o, duplicate(d.rollout))
		return
	}
	var rollout v1alpha1.AddOnRollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.object.Object, &rollout); err != nil {
		l.reportNormalised(o, flaw.Flaw{Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("cannot be decoded: %v", err)})
		return
	}
	d.rollout, d.Rollout = o, &rollout.Spec
	health := render.HealthFlaws(rollout.Spec.Health, d.Content)
	l.reportNormalised(o, health...)
	if len(health) == 0 {
		d.Refused = l.schemas.policyFlaws(o.object.Object)
	}
}

// checkAllowed checks an add-on against the list of add-ons that the source may declare.
func (l *loader) checkAllowed(o *loaded, at flaw.Path, addOn string) {
	allowed := l.options.AllowedAddOns
	if len(allowed) == 0 || addOn == "" || slices.Contains(allowed, addOn) {
		return
	}
	l.report(o, flaw.Flaw{
		Field: at, Reason: flaw.ReasonAddOnNotAllowed,
		Message: fmt.Sprintf("the AddOnSource may not declare add-on %q", addOn),
		Hint:    "its spec.addOns allows " + strings.Join(slices.Sorted(slices.Values(allowed)), ", "),
	})
}

// commit is the result of a load.
func (l *loader) commit() Commit {
	var c Commit
	for _, d := range l.addOns {
		c.AddOns = append(c.AddOns, d.AddOn)
		c.Missing = append(c.Missing, d.Missing...)
	}
	slices.SortFunc(c.Missing, compareReferences)
	c.Missing = slices.Compact(c.Missing)
	c.Undefined = slices.SortedFunc(slices.Values(l.missingDefinitions), compareReferences)
	if len(l.problems) > 0 {
		return c
	}
	c.Warnings = l.warnings()
	applied := slices.DeleteFunc(slices.Clone(l.objects), func(o *loaded) bool { return o.role == roleRollout || o.role == rolePackage })
	slices.SortStableFunc(applied, func(a, b *loaded) int {
		return cmp.Or(
			cmp.Compare(a.role, b.role),
			strings.Compare(a.object.GetKind(), b.object.GetKind()),
			strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()), strings.Compare(a.object.GetName(), b.object.GetName()),
		)
	})
	for _, o := range applied {
		c.Objects = append(c.Objects, o.object)
	}
	return c
}

func compareReferences(a, b Reference) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
	)
}
