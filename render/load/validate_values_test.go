package load

import (
	"path"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/chart"
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
		row("deadline_of_nothing", "replicas: 1", "progressDeadlineSeconds: 0", "spec.progressDeadlineSeconds: 0: must be greater than minReadySeconds, which is 0"),
		row("more_than_all", "replicas: 1", "strategy: {rollingUpdate: {maxUnavailable: 101%}}", "maxUnavailable: \"101%\": must not be more than 100%"),
		row("exists_with_a_value", "              containers:", "              tolerations: [{key: a, operator: Exists, value: x}]\n              containers:", "tolerations[0].value: \"x\": operator is Exists; remove it"),
		row("equal_without_a_key", "              containers:", "              tolerations: [{operator: Equal}]\n              containers:", "tolerations[0].operator: is Equal, and there is no key"),
		row("eviction_that_is_none", "              containers:", "              tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 3}]\n              containers:", "tolerationSeconds: effect is NoSchedule, which evicts nobody"),
		row("no_skew", "              containers:", "              topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]\n              containers:", "maxSkew: 0: must be from 1"),
		row("weight", "              containers:", "              affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {matchFields: []}}]}}\n              containers:", "weight: 101: must be from 1 to 100"),
		row("name_server", "              containers:", "              dnsConfig: {nameservers: [1.1.1.1, dns]}\n              containers:", "dnsConfig.nameservers[1]: \"dns\" is no IP address"),
		row("alias_without_an_address", "              containers:", "              hostAliases: [{ip: x, hostnames: [a]}]\n              containers:", "hostAliases[0].ip: \"x\" is no IP address"),
		row("system", "              containers:", "              os: {name: mac}\n              containers:", "os.name: \"mac\" is none of linux, windows"),
		row("host_path", "              containers:", "              volumes: [{name: a, hostPath: {path: /x, type: Dir}}]\n              containers:", "hostPath.type: \"Dir\" is none of"),
		row("mode_in_decimals", "              containers:", "              volumes: [{name: a, configMap: {name: a, defaultMode: 1000}}]\n              containers:", "configMap.defaultMode: 1000: must be from 0 to 0777, which is 511; modes are octal numbers"),
		row("path_out_of_its_volume", "              containers:", "              volumes: [{name: a, configMap: {name: a, items: [{key: a, path: ../b}]}}]\n              containers:", "items[0].path: \"../b\": must be a path in the volume"),
		row("path_of_a_mount", image, image+container+"volumeMounts: [{name: a, mountPath: /x, subPath: /y}]", "subPath: \"/y\": must be a path in the volume"),
		row("termination_message", image, image+container+"terminationMessagePolicy: file", "did you mean File?"),
		row("escalation", image, image+container+"securityContext: {privileged: true, allowPrivilegeEscalation: false}", "securityContext.allowPrivilegeEscalation: is false, and privileged is true"),
		row("alive_twice", image, image+container+"livenessProbe: {successThreshold: 2, httpGet: {port: 80}}", "livenessProbe.successThreshold: 2: must be 1 for a livenessProbe"),
		manifest("partition", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: j, namespace: hello}, spec: {updateStrategy: {rollingUpdate: {partition: -1}}}}", "partition: -1: must not be negative"),
		manifest("nothing_updates_on_delete", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: j, namespace: hello}, spec: {updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}}}", "updateStrategy.rollingUpdate: type is OnDelete; remove it"),
		manifest("claims_when_deleted", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: j, namespace: hello}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: x}}}", "whenDeleted: \"x\" is none of Retain, Delete"),
		manifest("claim_templates", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: j, namespace: hello}, spec: {volumeClaimTemplates: [{spec: {accessModes: [ReadWriteOnly]}}]}}", "accessModes[0]: \"ReadWriteOnly\" is none of"),
		manifest("name_of_a_cron_job", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: "+strings.Repeat("a", 53)+", namespace: hello}, spec: {schedule: '@daily'}}", "cannot be a name here; at most 52 characters"),
		manifest("name_of_a_service", "{apiVersion: v1, kind: Service, metadata: {name: a.b, namespace: hello}, spec: {}}", "metadata.name: \"a.b\" cannot be a name here"),
		manifest("node_port_of_a_cluster_ip", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {type: ClusterIP, ports: [{port: 1, nodePort: 30000}]}}", "ports[0].nodePort: 30000: type is ClusterIP"),
		manifest("port_twice", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 1, name: a}, {port: 1, name: b, protocol: TCP}]}}", "ports[1].port: TCP 1 stands in ports[0] already"),
		manifest("cluster_ip", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {clusterIP: none}}", "spec.clusterIP: \"none\" is no IP address"),
		manifest("affinity_of_a_service", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {sessionAffinity: clientIP}}", "did you mean ClientIP?"),
		manifest("key_twice", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: hello}, data: {a: x}, binaryData: {a: eA==}}", "binaryData.a: stands in data already"),
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
		"a service without an address":    manifest("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {clusterIP: None, sessionAffinity: None, ports: [{port: 1, name: a}, {port: 1, name: b, protocol: UDP}]}}"),
		"node ports where they may be":    manifest("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {type: NodePort, ports: [{port: 1, nodePort: 30000}]}}"),
		"tolerations of all sorts":        row("              containers:", "              tolerations: [{operator: Exists}, {key: a, effect: NoExecute, tolerationSeconds: 3}, {key: a, value: b}]\n              containers:"),
		"modes and paths":                 row("              containers:", "              volumes: [{name: a, configMap: {name: a, defaultMode: 420, items: [{key: a, path: b/..c, mode: 256}]}}, {name: b, hostPath: {path: /x, type: ''}}]\n              containers:"),
		"a surge of more than all":        row("replicas: 1", "strategy: {rollingUpdate: {maxSurge: 200%, maxUnavailable: 100%}}"),
		"addresses of both families":      row("              containers:", "              dnsConfig: {nameservers: [1.1.1.1, 'fd00::1']}\n              containers:"),
		"a part of somebody's Deployment": manifest("{apiVersion: apps/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {replicas: 3}}"),
		"a kind that nobody here knows":   manifest("{apiVersion: example.com/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {replicas: -1}}"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := Load(commit.objects(t), nil, Options{Charts: chart.InProcess{}}); len(problems) > 0 {
				t.Errorf("refused: %v", problems)
			}
		})
	}
}

// TestPackagesAreHeldToTheirValues: so is what a chart renders.
func TestPackagesAreHeldToTheirValues(t *testing.T) {
	const file = "hello/chart/templates/deployment.yaml"
	commit := packagedHello().edited(t, file, "image:", "imagePullPolicy: always\n        image:")
	_, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}})
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
	beta := strings.ReplaceAll(hello()[configFile], "addon.open-cluster-management.io/v1alpha1", "addon.open-cluster-management.io/v1beta1")
	for _, in := range []badInput{
		{
			"manifests_of_a_template", hello().edited(t, templateFile, settings, scaler("v1")+scaler("v2")+settings),
			[]complaint{{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[2]: HorizontalPodAutoscaler hello/a is manifest 1 already"}}},
		},
		{
			"objects_of_the_commit", hello().with("hello/z.yaml", beta),
			[]complaint{{flaw.ReasonDuplicateObject, "hello/z.yaml", []string{"hello/z.yaml:", "is declared in " + configFile + ":"}}},
		},
	} {
		t.Run(in.row, func(t *testing.T) { in.check(t) })
	}
}
