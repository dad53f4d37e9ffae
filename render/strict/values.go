package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// A valueRule judges a value that has its field's type. It returns the flaws of the value and of the values below it.
// A value with a variable in it is judged when the variable is replaced.
type valueRule func(at flaw.Path, value any) []flaw.Flaw

// fieldOf is a field of a Go type by its JSON name; "" is any value of the type itself.
type fieldOf struct {
	of   reflect.Type
	name string
}

// valueOf names a field of a type.
func valueOf[T any](name string) fieldOf { return fieldOf{reflect.TypeFor[T](), name} }

// valueRules are rules for the ten mistakes in values that most often stop a rollout. Every other mistake is found at
// the canary. A field that is absent is not judged: rendering, an admission webhook of the cluster or another owner
// of the object may set it.
func valueRules() map[fieldOf]valueRule {
	label := entries(written("the key of a label", validation.IsQualifiedName), written("the value of a label", validation.IsValidLabelValue))
	file := entries(written("a key", validation.IsConfigMapKey), anything)
	name := written("a name here", validation.IsDNS1123Label)
	return map[fieldOf]valueRule{
		// 1. A workload selects its own pods.
		valueOf[appsv1.DeploymentSpec](""):  selectsOwnPods,
		valueOf[appsv1.DaemonSetSpec](""):   selectsOwnPods,
		valueOf[appsv1.StatefulSetSpec](""): selectsOwnPods,
		valueOf[appsv1.ReplicaSetSpec](""):  selectsOwnPods,
		// 2. Labels have the form that Kubernetes wants,
		valueOf[metav1.ObjectMeta](labelsKey):        label,
		valueOf[metav1.LabelSelector]("matchLabels"): label,
		valueOf[corev1.PodSpec]("nodeSelector"):      label,
		valueOf[corev1.ServiceSpec](selectorKey):     label,
		// 3. and names in objects,
		valueOf[corev1.Container](nameKey):     name,
		valueOf[corev1.Volume](nameKey):        name,
		valueOf[corev1.ServicePort](nameKey):   name,
		valueOf[corev1.ContainerPort](nameKey): written("a name here", validation.IsValidPortName),
		// 4. and keys of files.
		valueOf[corev1.ConfigMap]("data"):       file,
		valueOf[corev1.ConfigMap]("binaryData"): file,
		valueOf[corev1.Secret]("data"):          file,
		valueOf[corev1.Secret]("stringData"):    file,
		// 5. A kubelet can read the image.
		valueOf[corev1.Container]("image"): written("an image", isImage),
		// 6. A port is a number that a port can have, or the name of one.
		valueOf[corev1.ContainerPort]("containerPort"): portNumber,
		valueOf[corev1.ServicePort]("port"):            portNumber,
		valueOf[corev1.ServicePort]("targetPort"):      targetPort,
		valueOf[corev1.HTTPGetAction]("port"):          port,
		valueOf[corev1.TCPSocketAction]("port"):        port,
		valueOf[corev1.GRPCAction]("port"):             portNumber,
		// 7. Entries of a list differ.
		valueOf[corev1.PodSpec]("containers"):     distinct(nameKey),
		valueOf[corev1.PodSpec]("initContainers"): distinct(nameKey),
		valueOf[corev1.PodSpec]("volumes"):        distinct(nameKey),
		valueOf[corev1.Container]("ports"):        distinct(nameKey),
		valueOf[corev1.Container]("volumeMounts"): distinct("mountPath"),
		valueOf[corev1.ServiceSpec]("ports"):      distinct(nameKey),
		// 8. A probe has one handler, a volume one source, a variable one origin.
		valueOf[corev1.Probe](""):  oneOf(fieldsOf[corev1.ProbeHandler]()...),
		valueOf[corev1.Volume](""): oneOf(fieldsOf[corev1.VolumeSource]()...),
		valueOf[corev1.EnvVar](""): oneOf("value", "valueFrom"),
		// 9. No container requests more than its limit.
		valueOf[corev1.ResourceRequirements](""): requestsWithinLimits,
		// 10. A word of an enumeration is one of its values, by case.
		valueOf[corev1.PullPolicy](""):                    words(corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
		valueOf[corev1.Protocol](""):                      words(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		valueOf[corev1.RestartPolicy](""):                 words(corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever),
		valueOf[corev1.URIScheme](""):                     words(corev1.URISchemeHTTP, corev1.URISchemeHTTPS),
		valueOf[corev1.TaintEffect](""):                   words(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		valueOf[corev1.ServiceType](""):                   words(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName),
		valueOf[appsv1.DeploymentStrategyType](""):        words(appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType),
		valueOf[appsv1.DaemonSetUpdateStrategyType](""):   words(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType),
		valueOf[appsv1.StatefulSetUpdateStrategyType](""): words(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType),
	}
}

// refused is the flaw of a value that no API server takes.
func refused(at flaw.Path, hint, message string, about ...any) []flaw.Flaw {
	return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf(message, about...), Hint: hint}}
}

// fixed returns a text that is not empty and has no variable in it.
func fixed(value any) (string, bool) {
	text, isString := value.(string)
	return text, isString && text != "" && len(variable.References(text)) == 0
}

// written judges a text by a rule; the texts that rule returns are the hint. what names the expected form in the
// message.
func written(what string, rule func(string) []string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		text, judged := fixed(value)
		if !judged {
			return nil
		}
		if messages := rule(text); len(messages) > 0 {
			return refused(at, messages[0], "%q cannot be %s", flaw.Shown(text), what)
		}
		return nil
	}
}

func anything(flaw.Path, any) []flaw.Flaw { return nil }

// entries checks the keys of a map with one rule and its values with another.
func entries(key, entry valueRule) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		object, _ := value.(map[string]any)
		var flaws []flaw.Flaw
		for _, name := range slices.Sorted(maps.Keys(object)) {
			flaws = append(append(flaws, key(at.Child(name), name)...), entry(at.Child(name), object[name])...)
		}
		return flaws
	}
}

// isImage holds the image of a container to what the kubelet can pull.
func isImage(text string) []string {
	if _, err := reference.ParseNormalizedNamed(text); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func portNumber(at flaw.Path, value any) []flaw.Flaw {
	if number, isNumber := value.(int64); isNumber && len(validation.IsValidPortNum(int(number))) > 0 {
		return refused(at, "", "%d: must be from 1 to 65535", number)
	}
	return nil
}

// targetPort judges the target port of a Service: 0 means the port of the Service.
func targetPort(at flaw.Path, value any) []flaw.Flaw {
	if value == int64(0) {
		return nil
	}
	return port(at, value)
}

// port judges the number or the name of a port.
func port(at flaw.Path, value any) []flaw.Flaw {
	if _, isNumber := value.(int64); isNumber {
		return portNumber(at, value)
	}
	if text, judged := fixed(value); judged && strings.Trim(text, "0123456789") == "" {
		return refused(at, "write a number without quotes", "%q is a text, which would be the name of a port", flaw.Shown(text))
	}
	return written("a name here", validation.IsValidPortName)(at, value)
}

// words requires one of the values of an enumeration.
func words[T ~string](values ...T) valueRule {
	known := make([]string, 0, len(values))
	for _, value := range values {
		known = append(known, string(value))
	}
	return func(at flaw.Path, value any) []flaw.Flaw {
		text, judged := fixed(value)
		if !judged || slices.Contains(known, text) {
			return nil
		}
		hint := ""
		if match := flaw.Closest(text, known); match != "" {
			hint = "did you mean " + match + "?"
		}
		return refused(at, hint, "%q is none of %s", flaw.Shown(text), strings.Join(known, ", "))
	}
}
