package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// A valueRule judges a value that has its field's type: what is wrong with it at the
// field, or below. Values with a variable in them are judged when it is replaced.
type valueRule func(at flaw.Path, value any) []flaw.Flaw

// fieldOf is a field of a Go type by its JSON name; "" is the object itself.
type fieldOf struct {
	of   reflect.Type
	name string
}

// valueRules are the values that every API server refuses in manifests, as far as they
// show in one manifest and need no guess. A field that is not there is not judged: an
// admission webhook of the cluster, or another owner of the object, may give it.
func valueRules() map[fieldOf]valueRule {
	rules := map[fieldOf]valueRule{}
	for _, set := range []map[fieldOf]valueRule{workloadRules(), podRules(), containerRules(), volumeRules(), otherRules()} {
		maps.Copy(rules, set)
	}
	return rules
}

// valueOf names a field of a type.
func valueOf[T any](name string) fieldOf { return fieldOf{reflect.TypeFor[T](), name} }

func workloadRules() map[fieldOf]valueRule {
	const selector = ""
	return map[fieldOf]valueRule{
		valueOf[appsv1.DeploymentSpec](selector):                                       both(selectorRule, readyBeforeDeadline, podsRestart("Always")),
		valueOf[appsv1.DaemonSetSpec](selector):                                        both(selectorRule, podsRestart("Always")),
		valueOf[appsv1.StatefulSetSpec](selector):                                      both(selectorRule, podsRestart("Always")),
		valueOf[appsv1.ReplicaSetSpec](selector):                                       both(selectorRule, podsRestart("Always")),
		valueOf[batchv1.JobSpec](""):                                                   podsRestart("OnFailure", "Never"),
		valueOf[appsv1.DeploymentSpec]("replicas"):                                     notNegative,
		valueOf[appsv1.DeploymentSpec]("minReadySeconds"):                              notNegative,
		valueOf[appsv1.DeploymentSpec]("revisionHistoryLimit"):                         notNegative,
		valueOf[appsv1.DeploymentSpec]("progressDeadlineSeconds"):                      notNegative,
		valueOf[appsv1.DeploymentStrategy]("type"):                                     oneOf("Recreate", "RollingUpdate"),
		valueOf[appsv1.DeploymentStrategy](""):                                         noRollingUpdateWith("Recreate"),
		valueOf[appsv1.RollingUpdateDeployment](""):                                    movesSomething,
		valueOf[appsv1.RollingUpdateDeployment]("maxSurge"):                            numberOrPercent,
		valueOf[appsv1.RollingUpdateDeployment]("maxUnavailable"):                      both(numberOrPercent, notAboveAll),
		valueOf[appsv1.DaemonSetSpec]("minReadySeconds"):                               notNegative,
		valueOf[appsv1.DaemonSetSpec]("revisionHistoryLimit"):                          notNegative,
		valueOf[appsv1.DaemonSetUpdateStrategy]("type"):                                oneOf("RollingUpdate", "OnDelete"),
		valueOf[appsv1.RollingUpdateDaemonSet]("maxSurge"):                             both(numberOrPercent, notAboveAll),
		valueOf[appsv1.RollingUpdateDaemonSet]("maxUnavailable"):                       both(numberOrPercent, notAboveAll),
		valueOf[appsv1.ReplicaSetSpec]("replicas"):                                     notNegative,
		valueOf[appsv1.StatefulSetSpec]("replicas"):                                    notNegative,
		valueOf[appsv1.StatefulSetSpec]("minReadySeconds"):                             notNegative,
		valueOf[appsv1.StatefulSetSpec]("podManagementPolicy"):                         oneOf("OrderedReady", "Parallel"),
		valueOf[appsv1.StatefulSetUpdateStrategy](""):                                  noRollingUpdateWith("OnDelete"),
		valueOf[appsv1.RollingUpdateStatefulSetStrategy]("partition"):                  notNegative,
		valueOf[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy]("whenDeleted"): oneOf("Retain", "Delete"),
		valueOf[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy]("whenScaled"):  oneOf("Retain", "Delete"),
		valueOf[appsv1.StatefulSetUpdateStrategy]("type"):                              oneOf("RollingUpdate", "OnDelete"),
		valueOf[batchv1.JobSpec]("parallelism"):                                        notNegative,
		valueOf[batchv1.JobSpec]("completions"):                                        notNegative,
		valueOf[batchv1.JobSpec]("backoffLimit"):                                       notNegative,
		valueOf[batchv1.JobSpec]("activeDeadlineSeconds"):                              notNegative,
		valueOf[batchv1.JobSpec]("ttlSecondsAfterFinished"):                            notNegative,
		valueOf[batchv1.JobSpec]("completionMode"):                                     oneOf("NonIndexed", "Indexed"),
		valueOf[batchv1.CronJob](""):                                                   cronJobName,
		valueOf[batchv1.CronJobSpec]("schedule"):                                       schedule,
		valueOf[batchv1.CronJobSpec]("concurrencyPolicy"):                              oneOf("Allow", "Forbid", "Replace"),
		valueOf[batchv1.CronJobSpec]("startingDeadlineSeconds"):                        notNegative,
		valueOf[batchv1.CronJobSpec]("successfulJobsHistoryLimit"):                     notNegative,
		valueOf[batchv1.CronJobSpec]("failedJobsHistoryLimit"):                         notNegative,
		valueOf[metav1.ObjectMeta](labelsKey):                                          labelsRule,
		valueOf[metav1.LabelSelector]("matchLabels"):                                   labelsRule,
		valueOf[metav1.LabelSelectorRequirement]("operator"):                           oneOf("In", "NotIn", "Exists", "DoesNotExist"),
	}
}

// refused is the flaw of a value that no API server takes.
func refused(at flaw.Path, hint, message string, about ...any) []flaw.Flaw {
	return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf(message, about...), Hint: hint}}
}

// both applies several rules to one value.
func both(rules ...valueRule) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		var flaws []flaw.Flaw
		for _, rule := range rules {
			flaws = append(flaws, rule(at, value)...)
		}
		return flaws
	}
}

func notNegative(at flaw.Path, value any) []flaw.Flaw {
	if number, isNumber := value.(int64); isNumber && number < 0 {
		return refused(at, "", "%d: must not be negative", number)
	}
	return nil
}

func within(least, most int64) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		if number, isNumber := value.(int64); isNumber && (number < least || number > most) {
			return refused(at, "", "%d: must be from %d to %d", number, least, most)
		}
		return nil
	}
}

// fixed returns a text that is not empty and has no variable in it.
func fixed(value any) (string, bool) {
	text, isString := value.(string)
	return text, isString && text != "" && len(variable.References(text)) == 0
}

func oneOf(values ...string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		text, judged := fixed(value)
		if !judged || slices.Contains(values, text) {
			return nil
		}
		hint := ""
		if match := flaw.Closest(text, values); match != "" {
			hint = "did you mean " + match + "?"
		}
		return refused(at, hint, "%q is none of %s", flaw.Shown(text), strings.Join(values, ", "))
	}
}

// nameBy holds a name to the rule of its field, in the API server's words.
func nameBy(rule func(string) []string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		text, judged := fixed(value)
		if !judged {
			return nil
		}
		if messages := rule(text); len(messages) > 0 {
			return refused(at, messages[0], "%q cannot be a name here", flaw.Shown(text))
		}
		return nil
	}
}

func labelsRule(at flaw.Path, value any) []flaw.Flaw {
	entries, _ := value.(map[string]any)
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		for _, message := range validation.IsQualifiedName(key) {
			flaws = append(flaws, refused(at.Child(key), message, "%q cannot be the key of a label", flaw.Shown(key))...)
		}
		if text, judged := fixed(entries[key]); judged {
			for _, message := range validation.IsValidLabelValue(text) {
				flaws = append(flaws, refused(at.Child(key), message, "%q cannot be the value of a label", flaw.Shown(text))...)
			}
		}
	}
	return flaws
}

// fileKeys are keys of a ConfigMap or Secret.
func fileKeys(at flaw.Path, value any) []flaw.Flaw {
	entries, _ := value.(map[string]any)
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		for _, message := range validation.IsConfigMapKey(key) {
			flaws = append(flaws, refused(at.Child(key), message, "%q cannot be a key", flaw.Shown(key))...)
		}
	}
	return flaws
}

// portOrName is a port, or the name of one.
func portOrName(at flaw.Path, value any) []flaw.Flaw {
	text, judged := fixed(value)
	if !judged {
		return within(1, 65535)(at, value)
	}
	if strings.Trim(text, "0123456789") == "" {
		return refused(at, "write a number without quotes", "%q is a text, which would be the name of a port", flaw.Shown(text))
	}
	return nameBy(validation.IsValidPortName)(at, value)
}

// targetPort of a Service is that of the Service where it is 0.
func targetPort(at flaw.Path, value any) []flaw.Flaw {
	if value == int64(0) {
		return nil
	}
	return portOrName(at, value)
}

// numberOrPercent is a number of pods or a share of them.
func numberOrPercent(at flaw.Path, value any) []flaw.Flaw {
	text, judged := fixed(value)
	if !judged {
		return notNegative(at, value)
	}
	if len(validation.IsValidPercent(text)) > 0 {
		return refused(at, "such as 1 or 25%", "%q is neither a number nor a percentage", flaw.Shown(text))
	}
	return nil
}

// notAboveAll wants at most 100 %.
func notAboveAll(at flaw.Path, value any) []flaw.Flaw {
	text, judged := fixed(value)
	if percent, err := strconv.Atoi(strings.TrimSuffix(text, "%")); judged && err == nil && percent > 100 {
		return refused(at, "", "%q: must not be more than 100%%", flaw.Shown(text))
	}
	return nil
}

// each applies a rule to the items of a list.
func each(rule valueRule) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		items, _ := value.([]any)
		var flaws []flaw.Flaw
		for i, item := range items {
			flaws = append(flaws, rule(at.Index(i), item)...)
		}
		return flaws
	}
}

// schedule wants the five fields of cron, or a word such as @daily.
func schedule(at flaw.Path, value any) []flaw.Flaw {
	text, judged := fixed(value)
	if fields := strings.Fields(text); judged && !strings.HasPrefix(text, "@") && !strings.Contains(text, "TZ=") && len(fields) != 5 {
		return refused(at, `such as "*/5 * * * *" or "@daily"`, "%q has %d fields, a schedule has 5", flaw.Shown(text), len(fields))
	}
	return nil
}
