package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// bins are the objects of a rendering, by index in the template's order, grouped by where and when they are
// delivered.
type bins struct {
	// managed and hosting are deployed on the managed and on the hosting cluster.
	managed, hosting []int
	// hooks and hostingHooks run when the add-on is removed.
	hooks, hostingHooks []int
}

// binned groups the objects for one of the two install modes. In the default mode all objects go to the managed
// cluster, whatever location they declare. In hosted mode, objects without a location go there.
func binned(objects []object, hosted bool) bins {
	var b bins
	for i := range objects {
		o := &objects[i]
		location := o.location
		if !hosted || location == "" {
			location = addonv1alpha1.HostedManifestLocationManagedValue
		}
		switch {
		case location == addonv1alpha1.HostedManifestLocationNoneValue:
		case location == addonv1alpha1.HostedManifestLocationHostingValue && o.hook != nil:
			b.hostingHooks = append(b.hostingHooks, i)
		case location == addonv1alpha1.HostedManifestLocationHostingValue:
			b.hosting = append(b.hosting, i)
		case o.hook != nil:
			b.hooks = append(b.hooks, i)
		default:
			b.managed = append(b.managed, i)
		}
	}
	return b
}

// installMode is the value of installMode for packages, in OCM's words; "" is the default.
func (c Cluster) installMode() string {
	if c.Hosting == "" {
		return ""
	}
	return "Hosted"
}

// bins are those of the cluster's install mode.
func (r Rendered) bins() bins { return binned(r.rendering.objects, r.Hosting != "") }

// hostedLocation reads where a manifest is delivered in hosted mode: from the annotation; without it, from the label
// of the same key, as in OCM. ok is false for a value that OCM does not know.
func hostedLocation(fields map[string]any) (location string, ok bool) {
	metadata, _ := fields[metadataKey].(map[string]any)
	const key = addonv1alpha1.HostedManifestLocationAnnotationKey
	if location = texts(metadata[annotationsKey])[key]; location == "" {
		location = texts(metadata[labelsKey])[addonv1alpha1.HostedManifestLocationLabelKey]
	}
	return location, location == "" || slices.Contains(hostedLocations(), location)
}

// hostedLocations are the values OCM knows.
func hostedLocations() []string {
	return []string{
		addonv1alpha1.HostedManifestLocationHostingValue,
		addonv1alpha1.HostedManifestLocationManagedValue,
		addonv1alpha1.HostedManifestLocationNoneValue,
	}
}

// HostingWorkName returns the name of the deploy work of an index on the hosting
// cluster, for the ManagedClusterAddOn of a namespace.
func HostingWorkName(addOn, namespace string, index int) string {
	return fmt.Sprintf("addon-%s-deploy-hosting-%s-%d", addOn, namespace, index)
}

// AddOnNamespace returns the namespace of the ManagedClusterAddOn that a work belongs to. OCM's
// label names it if it is not the work's own namespace.
func AddOnNamespace(work *workv1.ManifestWork) string {
	if namespace := work.Labels[addonv1alpha1.AddonNamespaceLabelKey]; namespace != "" {
		return namespace
	}
	return work.Namespace
}

// hostingIndex returns the index of a deploy work on a hosting cluster.
func hostingIndex(work *workv1.ManifestWork, addOn string) (int, bool) {
	if !strings.Contains(work.Name, "-deploy-hosting-") {
		return 0, false // most works; this avoids building a name
	}
	namespace := AddOnNamespace(work)
	suffix, ok := strings.CutPrefix(work.Name, "addon-"+addOn+"-deploy-hosting-"+namespace+"-")
	if !ok || work.Labels[addonv1alpha1.AddonLabelKey] != addOn {
		return 0, false
	}
	index, err := strconv.Atoi(suffix)
	return index, err == nil && index >= 0 && HostingWorkName(addOn, namespace, index) == work.Name
}

// IsHostingWork reports whether a work deploys the add-on on a hosting cluster.
func IsHostingWork(work *workv1.ManifestWork, addOn string) bool {
	_, ok := hostingIndex(work, addOn)
	return ok
}

// IsDeployWork reports whether a work deploys the add-on, on the managed or the hosting cluster.
func IsDeployWork(work *workv1.ManifestWork, addOn string) bool {
	_, ok := deployIndex(work, addOn)
	return ok || IsHostingWork(work, addOn)
}

// side is one of the two namespaces with the works of a cluster.
type side struct {
	// namespace of the works: the managed cluster's or the hosting cluster's.
	namespace string
	hosting   bool
	objects   []int
}

// sides are the namespaces of the cluster's deploy works, the managed one first.
func (r Rendered) sides(owner Owner) []side {
	b := r.bins()
	all := []side{{namespace: owner.Namespace, objects: b.managed}}
	if r.Hosting != "" {
		all = append(all, side{namespace: r.Hosting, hosting: true, objects: b.hosting})
	}
	return all
}

// workName returns the name of the side's work with an index.
func (s side) workName(owner Owner, index int) string {
	if s.hosting {
		return HostingWorkName(owner.Name, owner.Namespace, index)
	}
	return workName(owner.Name, index)
}

// index returns the index of a work that belongs to the side.
func (s side) index(work *workv1.ManifestWork, owner Owner) (int, bool) {
	if work.Namespace != s.namespace || AddOnNamespace(work) != owner.Namespace {
		return 0, false
	}
	if s.hosting {
		return hostingIndex(work, owner.Name)
	}
	return deployIndex(work, owner.Name)
}

// stray returns the deploy works of the ManagedClusterAddOn that are on neither side, because they
// are on a hosting cluster that it no longer uses.
func stray(owner Owner, sides []side, existing []*workv1.ManifestWork) []*workv1.ManifestWork {
	var out []*workv1.ManifestWork
	for _, work := range existing {
		if !work.DeletionTimestamp.IsZero() || AddOnNamespace(work) != owner.Namespace || !IsHostingWork(work, owner.Name) {
			continue
		}
		if !slices.ContainsFunc(sides, func(s side) bool { _, ok := s.index(work, owner); return ok }) {
			out = append(out, work)
		}
	}
	return out
}
