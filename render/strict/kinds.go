package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// kindsByVersion are the kinds of objects in the stable versions of Kubernetes' own groups,
// by apiVersion. Kubernetes takes no kind from a stable version, and nobody else can add one.
// Versions before that come and go, and every other group is somebody's own: they are not
// there.
type kindsByVersion map[string][]string

func collectKinds() (kindsByVersion, error) {
	scheme := runtime.NewScheme()
	stable := runtime.SchemeBuilder{
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, appsv1.AddToScheme,
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	}
	if err := stable.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot collect the kinds of Kubernetes: %w", err)
	}
	kinds := kindsByVersion{}
	for kind, is := range scheme.AllKnownTypes() {
		if _, isObject := is.FieldByName("ObjectMeta"); isObject { // lists and options have none
			apiVersion := kind.GroupVersion().String()
			kinds[apiVersion] = append(kinds[apiVersion], kind.Kind)
		}
	}
	return kinds, nil
}

// judge returns the flaw of a kind that its apiVersion does not have, and what was probably
// meant, which is what is written if nothing is wrong with it.
func (k kindsByVersion) judge(at flaw.Path, apiVersion, kind string, newer []string) (meantVersion, meantKind string, flaws []flaw.Flaw) {
	known, closed := k[apiVersion]
	if !closed || kind == "List" || slices.Contains(known, kind) || slices.Contains(newer, kind) || len(variable.References(kind)) > 0 {
		return apiVersion, kind, nil
	}
	at = at.Child(kindKey)
	if item, isList := strings.CutSuffix(kind, "List"); isList && slices.Contains(known, item) {
		return apiVersion, kind, refused(at, "write its items as manifests of their own", "a %s cannot be deployed", kind)
	}
	meantVersion, meantKind, hint := apiVersion, kind, newerHint(kind)
	if version := k.versionOf(kind); version != "" {
		meantVersion, hint = version, "write apiVersion: "+version
	} else if match := flaw.Closest(kind, known); match != "" {
		meantKind, hint = match, "did you mean "+match+"?"
	}
	return meantVersion, meantKind, refused(at, hint, "%s has no kind %q", apiVersion, flaw.Shown(kind))
}

// versionOf is the first apiVersion, by name, that has a kind.
func (k kindsByVersion) versionOf(kind string) string {
	for _, version := range slices.Sorted(maps.Keys(k)) {
		if slices.Contains(k[version], kind) {
			return version
		}
	}
	return ""
}
