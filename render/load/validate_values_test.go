package load

import (
	"path"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/flaw"
)

// TestValuesThatNoAPIServerTakes: each is refused where it stands, before a cluster does.
func TestValuesThatNoAPIServerTakes(t *testing.T) {
	const settings = "      - apiVersion: v1\n        kind: ConfigMap\n"
	const image = "image: quay.io/hello/agent:v1"
	const container = "\n                "
	wrong := func(parts ...string) []complaint {
		return []complaint{{flaw.ReasonInvalidManifest, templateFile, parts}}
	}
	row := func(row, from, to string, want ...string) badInput {
		return badInput{row, hello().edited(t, templateFile, from, to), wrong(want...)}
	}
	manifest := func(row, text string, want ...string) badInput {
		return badInput{row, hello().edited(t, templateFile, settings, "      - "+text+"\n"+settings), wrong(want...)}
	}
	for _, in := range []badInput{
		row("replicas_below_zero", "replicas: 1", "replicas: -1", "manifests[0].spec.replicas: -1: must not be negative"),
		row("deadline_before_ready", "replicas: 1", "progressDeadlineSeconds: 5\n          minReadySeconds: 10", "spec.progressDeadlineSeconds: 5: must be greater than minReadySeconds, which is 10"),
		row("selector_of_others", "matchLabels: {app: hello}", "matchLabels: {app: helo}", "spec.selector: selects app=helo, and the pods have app=hello"),
		row("selector_of_all", "matchLabels: {app: hello}", "matchLabels: {}", "spec.selector: is empty"),
		row("label_of_pods", "labels: {app: hello}", "labels: {app: hello, team: a b}", "metadata.labels.team: \"a b\" cannot be the value of a label"),
		row("key_of_a_label", "labels: {app: hello}", "labels: {app: hello, 'a b': x}", "\"a b\" cannot be the key of a label"),
		row("strategy_in_another_case", "replicas: 1", "strategy: {type: recreate}", "strategy.type: \"recreate\" is none of Recreate, RollingUpdate; did you mean Recreate?"),
		row("strategy_of_two_minds", "replicas: 1", "strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}", "strategy.rollingUpdate: type is Recreate"),
		row("update_of_nobody", "replicas: 1", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}", "no pod could ever be replaced"),
		row("surge_in_words", "replicas: 1", "strategy: {rollingUpdate: {maxSurge: one}}", "maxSurge: \"one\" is neither a number nor a percentage"),
		row("port_zero", image, image+container+"ports: [{containerPort: 0}]", "ports[0].containerPort: 0: must be from 1 to 65535"),
		row("port_too_large", image, image+container+"ports: [{containerPort: 80800}]", "containerPort: 80800: must be from 1 to 65535"),
		row("port_of_a_probe_quoted", image, image+container+"livenessProbe: {httpGet: {port: '8080'}}", "httpGet.port: \"8080\" is a text", "write a number without quotes"),
		row("protocol", image, image+container+"ports: [{containerPort: 80, protocol: tcp}]", "did you mean TCP?"),
		row("two_ports_of_a_name", image, image+container+"ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]", "ports[1].name: \"a\" stands in ports[0] already"),
		row("pull_policy", image, image+container+"imagePullPolicy: always", "did you mean Always?"),
		row("name_of_a_container", "- name: agent", "- name: Hello_Agent", "containers[0].name: \"Hello_Agent\" cannot be a name here"),
		row("container_twice", "              - name: agent", "              - {name: agent, image: b}\n              - name: agent", "containers[1].name: \"agent\" stands in containers[0] already"),
		row("container_and_init_container", "              containers:", "              initContainers: [{name: agent, image: b}]\n              containers:", "containers[0].name: \"agent\" stands in initContainers[0] already"),
		row("volume_twice", "              containers:", "              volumes: [{name: a}, {name: a, emptyDir: {}}]\n              containers:", "volumes[1].name: \"a\" stands in volumes[0] already"),
		row("volume_of_two_sources", "              containers:", "              volumes: [{name: a, emptyDir: {}, hostPath: {path: /}}]\n              containers:", "volumes[0].hostPath: emptyDir stands there already"),
		row("restart_policy", "              containers:", "              restartPolicy: Never\n              containers:", "restartPolicy: Never is not for pods of this kind; write Always"),
		row("two_mounts", image, image+container+"volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]", "volumeMounts[1].mountPath: \"/x\" stands in volumeMounts[0] already"),
		row("probe_of_two_minds", image, image+container+"livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}", "livenessProbe.tcpSocket: exec stands there already"),
		row("variable_from_two_origins", image, image+container+"env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "env[0].valueFrom: there is a value already"),
		row("request_above_limit", image, image+container+"resources: {limits: {memory: 64m}, requests: {memory: 64Mi}}", "requests.memory: 64Mi: is more than the limit, which is 64m"),
		row("negative_amount", image, image+container+"resources: {limits: {memory: -1}}", "limits.memory: -1: must not be negative"),
		row("value_of_a_variable", image, image+container+"imagePullPolicy: '{{GREETING}}'", "imagePullPolicy: \"hello\" is none of"),
		manifest("job_restarts_always", "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: hello}, spec: {template: {spec: {restartPolicy: Always, containers: [{name: a, image: b}]}}}}", "restartPolicy: Always is not for pods of this kind; write OnFailure or Never"),
		manifest("schedule", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: hello}, spec: {schedule: '5 * * *'}}", "spec.schedule: \"5 * * *\" has 4 fields, a schedule has 5"),
		manifest("service_port", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 0}]}}", "ports[0].port: 0: must be from 1 to 65535"),
		manifest("service_ports_without_names", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 1, name: a}, {port: 2}]}}", "ports[1].name: is required"),
		manifest("key_of_a_config_map", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: hello}, data: {'a/b': x}}", "\"a/b\" cannot be a key"),
	} {
		t.Run(in.row, func(t *testing.T) { in.check(t) })
	}
}

// TestValuesThatSomeAPIServerTakes: nothing is refused for a guess.
func TestValuesThatSomeAPIServerTakes(t *testing.T) {
	const settings = "      - apiVersion: v1\n        kind: ConfigMap\n"
	const image = "image: quay.io/hello/agent:v1"
	const container = "\n                "
	manifest := func(text string) tree {
		return hello().edited(t, templateFile, settings, "      - "+text+"\n"+settings)
	}
	row := func(from, to string) tree { return hello().edited(t, templateFile, from, to) }
	for name, commit := range map[string]tree{
		"nobody for now":                  row("replicas: 1", "replicas: 0"),
		"variables in names":              row("- name: agent", "- name: 'a-{{GREETING}}'"),
		"a selector with a variable":      row("matchLabels: {app: hello}", "matchLabels: {app: '{{GREETING}}'}"),
		"more labels than selected":       row("labels: {app: hello}", "labels: {app: hello, team: a}"),
		"no host port":                    row(image, image+container+"ports: [{containerPort: 80, hostPort: 0}]"),
		"one variable twice":              row(image, image+container+"env: [{name: A, value: a}, {name: A, value: b}]"),
		"a variable with a dot":           row(image, image+container+"env: [{name: a.b-c, value: a}]"),
		"a volume without a source":       row("              containers:", "              volumes: [{name: a}]\n              containers:"),
		"a volume mounted twice":          row(image, image+container+"volumeMounts: [{name: a, mountPath: /x}, {name: a, mountPath: /y}]"),
		"a probe by a port's name":        row(image, image+container+"livenessProbe: {httpGet: {port: http}}"),
		"a job that leaves much out":      manifest("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: hello}, spec: {template: {spec: {containers: [{name: a}]}}}}"),
		"a service that leaves its port":  manifest("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 80, targetPort: 0}]}}"),
		"a schedule in a word":            manifest("{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: hello}, spec: {schedule: '@every 1h'}}"),
		"a schedule with a time zone":     manifest("{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: hello}, spec: {schedule: 'CRON_TZ=UTC 0 0 * * *'}}"),
		"a part of somebody's Deployment": manifest("{apiVersion: apps/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {replicas: 3}}"),
		"a kind that nobody here knows":   manifest("{apiVersion: example.com/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {replicas: -1}}"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := Load(commit.objects(t), nil, Options{}); len(problems) > 0 {
				t.Errorf("refused: %v", problems)
			}
		})
	}
}

// TestPackagesAreHeldToTheirValues: so is what a chart renders.
func TestPackagesAreHeldToTheirValues(t *testing.T) {
	const file = "hello/chart/templates/deployment.yaml"
	commit := packagedHello().edited(t, file, "image:", "imagePullPolicy: always\n        image:")
	_, problems := Load(commit.packageObjects(t), nil, Options{})
	if len(problems) != 1 || path.Base(problems[0].Path) != path.Base(file) || !strings.Contains(problems[0].String(), "did you mean Always?") {
		t.Errorf("got %v, want one in %s about imagePullPolicy", problems, file)
	}
}

// TestOneObjectInTwoVersions: an API server serves it as one, whatever version it is
// written in, so that each version would undo the other.
func TestOneObjectInTwoVersions(t *testing.T) {
	const settings = "      - apiVersion: v1\n        kind: ConfigMap\n"
	scaler := func(version string) string {
		return "      - {apiVersion: autoscaling/" + version + ", kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: hello}, spec: {maxReplicas: 3}}\n"
	}
	beta := strings.ReplaceAll(hello()[templateFile], "addon.open-cluster-management.io/v1alpha1", "addon.open-cluster-management.io/v1beta1")
	for _, in := range []badInput{
		{
			"manifests_of_a_template", hello().edited(t, templateFile, settings, scaler("v1")+scaler("v2")+settings),
			[]complaint{{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[2]: HorizontalPodAutoscaler hello/a is manifest 1 already"}}},
		},
		{
			"objects_of_the_commit", hello().with("hello/z.yaml", beta),
			[]complaint{{flaw.ReasonDuplicateObject, "hello/z.yaml", []string{"hello/z.yaml:", "is declared in " + templateFile + ":"}}},
		},
	} {
		t.Run(in.row, func(t *testing.T) { in.check(t) })
	}
}
