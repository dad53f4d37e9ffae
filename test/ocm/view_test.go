package ocm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const addOnNameLabel = addonv1alpha1.AddonLabelKey

// seenOf is everything that OCM or AddonFlow writes about an add-on, on all clusters, except
// for known differences: AddonFlow's label and annotations, its feedback rules, field owners,
// clocks.
func seenOf(ctx context.Context, c client.Client, addOn string) flat {
	GinkgoHelper()
	out := flat{}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	Expect(c.List(ctx, &addOns, client.MatchingFields{"metadata.name": addOn})).To(Succeed())
	for i := range addOns.Items {
		flattenAddOn(out, &addOns.Items[i])
	}
	var works workv1.ManifestWorkList
	Expect(c.List(ctx, &works, client.MatchingLabels{addOnNameLabel: addOn})).To(Succeed())
	for i := range works.Items {
		flattenWork(out, &works.Items[i])
	}
	var bindings rbacv1.RoleBindingList
	Expect(c.List(ctx, &bindings, client.MatchingLabels{addOnNameLabel: addOn})).To(Succeed())
	for i := range bindings.Items {
		b := &bindings.Items[i]
		path := join("rolebinding", b.Namespace, b.RoleRef.Kind, b.RoleRef.Name)
		flatten(out, path+".subjects", generic(b.Subjects))
	}
	var requests certificatesv1.CertificateSigningRequestList
	Expect(c.List(ctx, &requests, client.MatchingLabels{addOnNameLabel: addOn})).To(Succeed())
	for i := range requests.Items {
		flattenRequest(out, &requests.Items[i])
	}
	return out
}

func flattenAddOn(out flat, a *addonv1alpha1.ManagedClusterAddOn) {
	path := join("addon", a.Namespace)
	flattenMetadata(out, path, &a.ObjectMeta)
	flatten(out, path+".finalizers", generic(a.Finalizers))
	flatten(out, path+".spec", generic(a.Spec))
	s := a.Status.DeepCopy()
	for i := range s.ConfigReferences {
		s.ConfigReferences[i].LastObservedGeneration = 0 // a bookmark of OCM's
	}
	flatten(out, path+".status.configReferences", byConfig(s.ConfigReferences))
	flatten(out, path+".status.registrations", generic(s.Registrations))
	flatten(out, path+".status.namespace", generic(s.Namespace))
	for _, kind := range s.SupportedConfigs { // OCM's order is that of a Go map
		flatten(out, path+".status.supportedConfigs["+kind.Resource+"."+kind.Group+"]", true)
	}
	for _, condition := range s.Conditions {
		words := strings.Join([]string{string(condition.Status), condition.Reason, condition.Message}, " ")
		flatten(out, path+".status.conditions["+condition.Type+"]", words)
	}
}

// byConfig keys references by what they name, several of one kind by their order.
func byConfig(references []addonv1alpha1.ConfigReference) any {
	out := map[string]any{}
	for _, r := range references {
		key := r.Resource
		if r.DesiredConfig != nil {
			key = join(r.Resource, r.DesiredConfig.Namespace, r.DesiredConfig.Name)
		}
		out[key] = map[string]any{"desired": generic(r.DesiredConfig), "applied": generic(r.LastAppliedConfig)}
	}
	return out
}

func flattenMetadata(out flat, path string, m *metav1.ObjectMeta) {
	flatten(out, path+".labels", generic(without(m.Labels, ours)))
	flatten(out, path+".annotations", generic(without(m.Annotations, ours)))
	for _, owner := range m.OwnerReferences {
		flatten(out, path+".owner."+owner.Kind, owner.Name)
	}
}

func flattenWork(out flat, w *workv1.ManifestWork) {
	path := join("work", w.Namespace, w.Name)
	flattenMetadata(out, path, &w.ObjectMeta)
	for _, manifest := range w.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		Expect(json.Unmarshal(manifest.Raw, &o.Object)).To(Succeed())
		annotations := without(o.GetAnnotations(), ours)
		o.SetAnnotations(annotations)
		delete(o.Object, "status") // typed clients write its zeros
		// Which of several works an object is in is not compared: OCM breaks ties by the
		// order of a Go map.
		flatten(out, join("work", w.Namespace, o.GetKind(), o.GetNamespace(), o.GetName()), o.Object)
	}
	flatten(out, path+".deleteOption", generic(w.Spec.DeleteOption))
	flatten(out, path+".executor", generic(w.Spec.Executor))
	for _, config := range w.Spec.ManifestConfigs {
		flattenConfig(out, join("work", w.Namespace), config)
	}
}

// flattenConfig lays out what the agent is asked for one object. Our own questions have
// names of their own, and cover the well-known status that OCM asks for.
func flattenConfig(out flat, path string, config workv1.ManifestConfigOption) {
	id := config.ResourceIdentifier
	path = join(path, "config", id.Group, id.Resource, id.Namespace, id.Name)
	var rules []workv1.FeedbackRule
	for _, rule := range config.FeedbackRules {
		rule.JsonPaths = slices.DeleteFunc(slices.Clone(rule.JsonPaths), func(p workv1.JsonPath) bool {
			return strings.HasPrefix(p.Name, "addonflow.")
		})
		if len(rule.JsonPaths) > 0 {
			rules = append(rules, rule)
		}
	}
	flatten(out, path+".feedbackRules", generic(rules))
	flatten(out, path+".updateStrategy", generic(config.UpdateStrategy))
}
