package strict

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/addonflow/addonflow/render/flaw"
)

func podRules() map[fieldOf]valueRule {
	return map[fieldOf]valueRule{
		valueOf[corev1.PodSpec](""):                                   uniqueContainers,
		valueOf[corev1.PodSpec]("volumes"):                            distinct(nameKey),
		valueOf[corev1.PodSpec]("restartPolicy"):                      oneOf("Always", "OnFailure", "Never"),
		valueOf[corev1.PodSpec]("dnsPolicy"):                          oneOf("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
		valueOf[corev1.PodSpec]("nodeSelector"):                       labelsRule,
		valueOf[corev1.PodSpec]("serviceAccountName"):                 nameBy(validation.IsDNS1123Subdomain),
		valueOf[corev1.PodSpec]("activeDeadlineSeconds"):              within(1, 1<<31-1),
		valueOf[corev1.PodDNSConfig]("nameservers"):                   each(address),
		valueOf[corev1.HostAlias]("ip"):                               address,
		valueOf[corev1.PodOS](nameKey):                                oneOf("linux", "windows"),
		valueOf[corev1.PodSecurityContext]("runAsUser"):               within(0, 1<<31-1),
		valueOf[corev1.Toleration](""):                                toleration,
		valueOf[corev1.Toleration]("effect"):                          oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"),
		valueOf[corev1.TopologySpreadConstraint]("maxSkew"):           within(1, 1<<31-1),
		valueOf[corev1.TopologySpreadConstraint]("whenUnsatisfiable"): oneOf("DoNotSchedule", "ScheduleAnyway"),
		valueOf[corev1.WeightedPodAffinityTerm]("weight"):             within(1, 100),
		valueOf[corev1.PreferredSchedulingTerm]("weight"):             within(1, 100),
	}
}

func containerRules() map[fieldOf]valueRule {
	return map[fieldOf]valueRule{
		valueOf[corev1.Container](""):                         checkedOnce,
		valueOf[corev1.Container](nameKey):                    nameBy(validation.IsDNS1123Label),
		valueOf[corev1.Container]("ports"):                    distinct(nameKey),
		valueOf[corev1.Container]("volumeMounts"):             distinct("mountPath"),
		valueOf[corev1.Container]("imagePullPolicy"):          oneOf("Always", "IfNotPresent", "Never"),
		valueOf[corev1.Container]("terminationMessagePolicy"): oneOf("File", "FallbackToLogsOnError"),
		valueOf[corev1.ContainerPort]("containerPort"):        within(1, 65535),
		valueOf[corev1.ContainerPort]("hostPort"):             within(0, 65535),
		valueOf[corev1.ContainerPort](nameKey):                nameBy(validation.IsValidPortName),
		valueOf[corev1.ContainerPort]("protocol"):             oneOf("TCP", "UDP", "SCTP"),
		valueOf[corev1.EnvVar](nameKey):                       nameBy(validation.IsRelaxedEnvVarName),
		valueOf[corev1.EnvVar](""):                            oneOrigin,
		valueOf[corev1.Probe](""):                             oneAction,
		valueOf[corev1.Probe]("initialDelaySeconds"):          notNegative,
		valueOf[corev1.Probe]("timeoutSeconds"):               notNegative,
		valueOf[corev1.Probe]("periodSeconds"):                notNegative,
		valueOf[corev1.Probe]("successThreshold"):             notNegative,
		valueOf[corev1.Probe]("failureThreshold"):             notNegative,
		valueOf[corev1.HTTPGetAction]("port"):                 portOrName,
		valueOf[corev1.HTTPGetAction]("scheme"):               oneOf("HTTP", "HTTPS"),
		valueOf[corev1.TCPSocketAction]("port"):               portOrName,
		valueOf[corev1.GRPCAction]("port"):                    within(1, 65535),
		valueOf[corev1.ResourceRequirements](""):              requestsWithinLimits,
		valueOf[corev1.ResourceRequirements]("limits"):        amounts,
		valueOf[corev1.ResourceRequirements]("requests"):      amounts,
		valueOf[corev1.SecurityContext](""):                   privileges,
		valueOf[corev1.SecurityContext]("runAsUser"):          within(0, 1<<31-1),
		valueOf[corev1.SecurityContext]("procMount"):          oneOf("Default", "Unmasked"),
	}
}

func volumeRules() map[fieldOf]valueRule {
	return map[fieldOf]valueRule{
		valueOf[corev1.Volume](nameKey):                          nameBy(validation.IsDNS1123Label),
		valueOf[corev1.Volume](""):                               oneSource,
		valueOf[corev1.VolumeMount]("subPath"):                   inside,
		valueOf[corev1.KeyToPath]("path"):                        inside,
		valueOf[corev1.DownwardAPIVolumeFile]("path"):            inside,
		valueOf[corev1.KeyToPath]("mode"):                        fileMode,
		valueOf[corev1.DownwardAPIVolumeFile]("mode"):            fileMode,
		valueOf[corev1.ConfigMapVolumeSource]("defaultMode"):     fileMode,
		valueOf[corev1.SecretVolumeSource]("defaultMode"):        fileMode,
		valueOf[corev1.ProjectedVolumeSource]("defaultMode"):     fileMode,
		valueOf[corev1.DownwardAPIVolumeSource]("defaultMode"):   fileMode,
		valueOf[corev1.HostPathVolumeSource]("type"):             oneOf("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
		valueOf[corev1.PersistentVolumeClaimSpec]("accessModes"): each(oneOf("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")),
		valueOf[corev1.PersistentVolumeClaimSpec]("volumeMode"):  oneOf("Filesystem", "Block"),
	}
}

// address is an IP address.
func address(at flaw.Path, value any) []flaw.Flaw {
	if text, judged := fixed(value); judged && netutils.ParseIPSloppy(text) == nil {
		return refused(at, "", "%q is no IP address", flaw.Shown(text))
	}
	return nil
}

// toleration wants fields that mean something together.
func toleration(at flaw.Path, value any) []flaw.Flaw {
	t, _ := value.(map[string]any)
	operator, _ := fixed(t["operator"])
	key, _ := t["key"].(string)
	text, valued := fixed(t["value"])
	effect, affects := fixed(t["effect"])
	switch {
	case operator == "Exists" && valued:
		return refused(at.Child("value"), flaw.RemoveIt, "%q: operator is Exists", flaw.Shown(text))
	case operator == "Equal" && key == "":
		return refused(at.Child("operator"), "name a key, or write Exists", "is Equal, and there is no key")
	case affects && effect != string(corev1.TaintEffectNoExecute) && t["tolerationSeconds"] != nil:
		return refused(at.Child("tolerationSeconds"), flaw.RemoveIt, "effect is %s, which evicts nobody", effect)
	}
	return nil
}

// checkedOnce: what says that a container lives or has started has to say it once.
func checkedOnce(at flaw.Path, value any) []flaw.Flaw {
	container, _ := value.(map[string]any)
	var flaws []flaw.Flaw
	for _, name := range []string{"livenessProbe", "startupProbe"} {
		probe, _ := container[name].(map[string]any)
		if times, set := probe["successThreshold"].(int64); set && times > 1 {
			flaws = append(flaws, refused(at.Child(name).Child("successThreshold"), "", "%d: must be 1 for a %s", times, name)...)
		}
	}
	return flaws
}

// privileges: a privileged container may do anything.
func privileges(at flaw.Path, value any) []flaw.Flaw {
	security, _ := value.(map[string]any)
	if security["privileged"] == true && security["allowPrivilegeEscalation"] == false {
		return refused(at.Child("allowPrivilegeEscalation"), "change one of the two", "is false, and privileged is true")
	}
	return nil
}

// inside is a path that stays in its volume.
func inside(at flaw.Path, value any) []flaw.Flaw {
	if text, judged := fixed(value); judged && (path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..")) {
		return refused(at, "", "%q: must be a path in the volume, without ..", flaw.Shown(text))
	}
	return nil
}

// fileMode is what a file's owner, group and others may do.
func fileMode(at flaw.Path, value any) []flaw.Flaw {
	if mode, isNumber := value.(int64); isNumber && (mode < 0 || mode > 0o777) {
		return refused(at, "modes are octal numbers, such as 0644", "%d: must be from 0 to 0777, which is 511", mode)
	}
	return nil
}
