package strict

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/addonflow/addonflow/render/flaw"
)

func otherRules() map[fieldOf]valueRule {
	return map[fieldOf]valueRule{
		valueOf[corev1.Service](""):                          serviceName,
		valueOf[corev1.ServiceSpec](""):                      nodePorts,
		valueOf[corev1.ServiceSpec]("type"):                  oneOf("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
		valueOf[corev1.ServiceSpec]("clusterIP"):             clusterIP,
		valueOf[corev1.ServiceSpec]("sessionAffinity"):       oneOf("ClientIP", "None"),
		valueOf[corev1.ServiceSpec]("internalTrafficPolicy"): oneOf("Cluster", "Local"),
		valueOf[corev1.ServiceSpec]("externalTrafficPolicy"): oneOf("Cluster", "Local"),
		valueOf[corev1.ServiceSpec]("selector"):              labelsRule,
		valueOf[corev1.ServiceSpec]("ports"):                 servicePorts,
		valueOf[corev1.ServicePort]("port"):                  within(1, 65535),
		valueOf[corev1.ServicePort]("nodePort"):              within(0, 65535),
		valueOf[corev1.ServicePort]("targetPort"):            targetPort,
		valueOf[corev1.ServicePort]("protocol"):              oneOf("TCP", "UDP", "SCTP"),
		valueOf[corev1.ServicePort](nameKey):                 nameBy(validation.IsDNS1123Label),
		valueOf[corev1.ConfigMap](""):                        keysOnce,
		valueOf[corev1.ConfigMap]("data"):                    fileKeys,
		valueOf[corev1.ConfigMap]("binaryData"):              fileKeys,
		valueOf[corev1.Secret]("data"):                       fileKeys,
		valueOf[corev1.Secret]("stringData"):                 fileKeys,
	}
}

// nameRule judges the name of an object.
func nameRule(rule func(string) []string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		object, _ := value.(map[string]any)
		metadata, _ := object[metadataKey].(map[string]any)
		return nameBy(rule)(at.Child(metadataKey).Child(nameKey), metadata[nameKey])
	}
}

// serviceName is a label of the name by which others find the Service.
func serviceName(at flaw.Path, value any) []flaw.Flaw {
	return nameRule(validation.IsDNS1123Label)(at, value)
}

// cronJobName leaves room for what the names of Jobs end in.
func cronJobName(at flaw.Path, value any) []flaw.Flaw {
	const longest = validation.DNS1035LabelMaxLength - 11
	return nameRule(func(name string) []string {
		if len(name) > longest {
			return []string{fmt.Sprintf("at most %d characters: Jobs are named after it", longest)}
		}
		return nil
	})(at, value)
}

// clusterIP is an address, or None.
func clusterIP(at flaw.Path, value any) []flaw.Flaw {
	if value == corev1.ClusterIPNone {
		return nil
	}
	return address(at, value)
}

// nodePorts are for Services that nodes forward to.
func nodePorts(at flaw.Path, value any) []flaw.Flaw {
	spec, _ := value.(map[string]any)
	if spec["type"] != string(corev1.ServiceTypeClusterIP) {
		return nil
	}
	ports, _ := spec["ports"].([]any)
	var flaws []flaw.Flaw
	for i, item := range ports {
		port, _ := item.(map[string]any)
		if number, set := port["nodePort"].(int64); set && number != 0 {
			flaws = append(flaws, refused(at.Child("ports").Index(i).Child("nodePort"), "write type: NodePort, or remove it", "%d: type is ClusterIP", number)...)
		}
	}
	return flaws
}

// servicePorts: several ports of a Service are told apart by names, and by numbers.
func servicePorts(at flaw.Path, value any) []flaw.Flaw {
	items, _ := value.([]any)
	flaws := duplicates(map[string]flaw.Path{}, at, nameKey, items)
	seen := map[string]flaw.Path{}
	for i, item := range items {
		port, isObject := item.(map[string]any)
		if isObject && len(items) > 1 && port[nameKey] == nil {
			flaws = append(flaws, flaw.Flaw{
				Field: at.Index(i).Child(nameKey), Reason: flaw.ReasonInvalidManifest, Message: flaw.IsRequired,
				Hint: "every port has a name where there are several", Missing: true,
			})
		}
		protocol, _ := port["protocol"].(string)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		number, isNumber := port["port"].(int64)
		key := fmt.Sprint(protocol, " ", number)
		if first, twice := seen[key]; twice && isNumber {
			flaws = append(flaws, refused(at.Index(i).Child("port"), "", "%s stands in %s already", key, entryOf(first))...)
		}
		seen[key] = at.Index(i)
	}
	return flaws
}

// keysOnce: a key has a text or bytes.
func keysOnce(at flaw.Path, value any) []flaw.Flaw {
	object, _ := value.(map[string]any)
	texts, _ := object["data"].(map[string]any)
	bytes, _ := object["binaryData"].(map[string]any)
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(bytes)) {
		if _, twice := texts[key]; twice {
			flaws = append(flaws, refused(at.Child("binaryData").Child(key), "keep one of the two", "stands in data already")...)
		}
	}
	return flaws
}
