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

// draft is an add-on of the commit while it is put together.
type draft struct {
	AddOn
	addOn   *loaded
	rollout *loaded
	pkg     *loaded
	// broken says that nothing can be told of something it refers to: its content is
	// not built, because what it lacks would be reported as missing.
	broken bool
	// open is what the problems of its objects leave open about others.
	open open
}

// buildAddOns makes an AddOn of every good ClusterManagementAddOn.
func (l *loader) buildAddOns() {
	declared := map[string]bool{}
	for _, name := range l.refused {
		declared[name] = true
	}
	for _, o := range l.objects {
		if o.role != roleAddOn {
			continue
		}
		declared[o.GetUnstructured().GetName()] = true
		l.checkAllowed(o, "metadata.name", o.GetUnstructured().GetName())
		if object := o.judged(); object != nil {
			l.addOns = append(l.addOns, l.newDraft(o, object))
		}
	}
	slices.SortFunc(l.addOns, func(a, b *draft) int { return strings.Compare(a.Name, b.Name) })
	l.checkPackages(declared)
	for _, o := range l.objects {
		switch o.role {
		case roleRollout:
			l.attachRollout(o, declared)
		case roleTemplate:
			name, _ := valueAt(o.GetUnstructured().Object, specKey, "addonName").(string)
			l.checkAllowed(o, "spec.addonName", name)
		default:
		}
	}
}

// newDraft decodes a normalised ClusterManagementAddOn, or the part of it that is
// good, and builds its content.
func (l *loader) newDraft(o *loaded, object *unstructured.Unstructured) *draft {
	d := &draft{addOn: o}
	d.open.note(o)
	d.Name = object.GetName()
	var cma addonv1alpha1.ClusterManagementAddOn
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &cma); err != nil {
		// Every field was checked against schema and pace, so this names what was forgotten there.
		l.reportNormalised(o, flaw.Flaw{Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("cannot be decoded: %v", err)})
		d.broken = true
		return d
	}
	d.ClusterManagementAddOn = &cma
	d.Install = installOf(cma.Spec.InstallStrategy)
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

// installOf is the installStrategy as policy. Placements are kept with type Manual
// too: the pace stays written down while nothing is installed by it.
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
func (l *loader) attachRollout(o *loaded, declared map[string]bool) {
	object := o.GetUnstructured()
	if namespace := object.GetNamespace(); namespace != "" && l.options.Namespace != "" && namespace != l.options.Namespace {
		l.report(o, flaw.Flaw{
			Field: "metadata.namespace", Reason: flaw.ReasonCrossNamespaceReference,
			Message: fmt.Sprintf("an AddOnRollout lives in the namespace of its AddOnSource, %s", l.options.Namespace), Hint: "leave it out",
		})
	}
	if !declared[object.GetName()] {
		if l.options.Incomplete || object.GetName() == "" {
			return
		}
		l.reportNormalised(o, flaw.Flaw{
			Field: "metadata.name", Reason: flaw.ReasonReferenceNotFound,
			Message: fmt.Sprintf("the commit declares no ClusterManagementAddOn %q", object.GetName()),
			Hint:    "name the AddOnRollout after its add-on",
		})
		return
	}
	if o.judged() == nil {
		return
	}
	i := slices.IndexFunc(l.addOns, func(d *draft) bool { return d.Name == object.GetName() })
	if i < 0 {
		return // its add-on has problems of its own
	}
	l.setRollout(l.addOns[i], o)
}

// setRollout decodes the spec of an AddOnRollout. One name in two namespaces is
// caught here, since both can only mean the add-on.
func (l *loader) setRollout(d *draft, o *loaded) {
	if d.rollout != nil {
		l.reportNormalised(o, duplicate(d.rollout))
		return
	}
	var rollout v1alpha1.AddOnRollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.judged().Object, &rollout); err != nil {
		l.reportNormalised(o, flaw.Flaw{Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("cannot be decoded: %v", err)})
		return
	}
	d.rollout, d.Rollout = o, &rollout.Spec
	content := d.Content
	if d.open.manifests {
		content = render.Content{}
	}
	l.reportNormalised(o, render.HealthFlaws(rollout.Spec.Health, content)...)
}

// checkAllowed holds a source to the add-ons it may declare.
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
		if !l.options.Incomplete && d.addOn.object != nil {
			c.Missing = append(c.Missing, d.Missing...)
		}
	}
	for _, o := range l.objects {
		if o.object == nil {
			c.doubts = append(c.doubts, o)
		}
	}
	slices.SortFunc(c.Missing, compareReferences)
	c.Missing = slices.Compact(c.Missing)
	c.Suspects = l.suspects()
	c.Undefined = slices.SortedFunc(slices.Values(l.missingDefinitions), compareReferences)
	objects := slices.Clone(l.objects)
	slices.SortStableFunc(objects, func(a, b *loaded) int { return cmp.Compare(a.role, b.role) })
	for _, o := range objects {
		if o.object != nil && o.role != roleRollout && o.role != rolePackage {
			c.Objects = append(c.Objects, o.object)
		}
	}
	slices.SortStableFunc(c.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			cmp.Compare(roleOf(a.GroupVersionKind(), l.listed), roleOf(b.GroupVersionKind(), l.listed)),
			strings.Compare(a.GetKind(), b.GetKind()),
			strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()),
		)
	})
	return c
}

func compareReferences(a, b Reference) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
	)
}
