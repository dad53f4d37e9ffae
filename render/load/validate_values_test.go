package load

import (
	"path"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// templates makes commits of hello with a changed template.
type templates struct{ *testing.T }

// with replaces a text of the template.
func (t templates) with(from, to string) tree {
	return hello().edited(t.T, templateFile, from, to)
}

// withPod adds a field to the Deployment's pod, withContainer to its container.
func (t templates) withPod(field string) tree {
	return t.with("              containers:", "              "+field+"\n              containers:")
}

func (t templates) withContainer(field string) tree {
	const image = "image: quay.io/hello/agent:v1"
	return t.with(image, image+"\n                "+field)
}

// withManifest adds a manifest.
func (t templates) withManifest(text string) tree {
	const settings = "      - apiVersion: v1\n        kind: ConfigMap\n"
	return t.with(settings, "      - "+text+"\n"+settings)
}

// TestValuesThatStopARollout: each value is refused on the commit, before a cluster refuses it.
func TestValuesThatStopARollout(t *testing.T) {
	hello := templates{t}
	service := func(spec string) tree {
		return hello.withManifest("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: " + spec + "}")
	}
	for name, c := range map[string]struct {
		commit tree
		want   string
	}{
		"selector of other pods":            {hello.with("matchLabels: {app: hello}", "matchLabels: {app: helo}"), "spec.selector: selects app=helo, and the pods have app=hello; change one of the two"},
		"selector of all pods":              {hello.with("matchLabels: {app: hello}", "matchLabels: {}"), "spec.selector: is empty"},
		"value of a label":                  {hello.with("labels: {app: hello}", "labels: {app: hello, team: a b}"), "metadata.labels.team: \"a b\" cannot be the value of a label"},
		"key of a label":                    {hello.with("labels: {app: hello}", "labels: {app: hello, 'a b': x}"), "\"a b\" cannot be the key of a label"},
		"name of a container":               {hello.with("- name: agent", "- name: Hello_Agent"), "containers[0].name: \"Hello_Agent\" cannot be a name here"},
		"name of a port":                    {hello.withContainer("ports: [{name: more-than-fifteen, containerPort: 80}]"), "ports[0].name: \"more-than-fifteen\" cannot be a name here"},
		"key of a ConfigMap":                {hello.withManifest("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: hello}, data: {'a/b': x}}"), "\"a/b\" cannot be a key"},
		"image without a tag":               {hello.with("quay.io/hello/agent:v1", "'quay.io/hello/agent:'"), "containers[0].image: \"quay.io/hello/agent:\" cannot be an image; invalid reference format"},
		"image in capitals":                 {hello.with("quay.io/hello/agent:v1", "quay.io/Hello/agent:v1"), "cannot be an image; invalid reference format: repository name (Hello/agent) must be lowercase"},
		"port 0":                            {hello.withContainer("ports: [{containerPort: 0}]"), "ports[0].containerPort: 0: must be from 1 to 65535"},
		"port that is too large":            {hello.withContainer("ports: [{containerPort: 80800}]"), "containerPort: 80800: must be from 1 to 65535"},
		"port of a probe in quotes":         {hello.withContainer("livenessProbe: {httpGet: {port: '8080'}}"), "httpGet.port: \"8080\" is a text, which would be the name of a port; write a number without quotes"},
		"port 0 of a probe":                 {hello.withContainer("livenessProbe: {httpGet: {port: 0}}"), "httpGet.port: 0: must be from 1 to 65535"},
		"port of a probe that is too large": {hello.withContainer("readinessProbe: {tcpSocket: {port: 70000}}"), "tcpSocket.port: 70000: must be from 1 to 65535"},
		"port of a gRPC probe":              {hello.withContainer("startupProbe: {grpc: {port: 70000}}"), "grpc.port: 70000: must be from 1 to 65535"},
		"port that a Service leads to":      {service("{ports: [{port: 80, targetPort: 70000}]}"), "ports[0].targetPort: 70000: must be from 1 to 65535"},
		"port of a Service":                 {service("{ports: [{port: 0}]}"), "ports[0].port: 0: must be from 1 to 65535"},
		"ports with one name":               {hello.withContainer("ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]"), "ports[1].name: \"a\" stands in ports[0] already"},
		"containers with one name":          {hello.with("              - name: agent", "              - {name: agent, image: b}\n              - name: agent"), "containers[1].name: \"agent\" stands in containers[0] already"},
		"volumes with one name":             {hello.withPod("volumes: [{name: a}, {name: a, emptyDir: {}}]"), "volumes[1].name: \"a\" stands in volumes[0] already"},
		"mounts at one path":                {hello.withContainer("volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}]"), "volumeMounts[1].mountPath: \"/x\" stands in volumeMounts[0] already"},
		"ports of a Service with one name":  {service("{ports: [{name: a, port: 1}, {name: a, port: 2}]}"), "ports[1].name: \"a\" stands in ports[0] already"},
		"volume with two sources":           {hello.withPod("volumes: [{name: a, emptyDir: {}, hostPath: {path: /}}]"), "volumes[0].hostPath: emptyDir stands there already; keep one of the two"},
		"probe with two handlers":           {hello.withContainer("livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}"), "livenessProbe.tcpSocket: exec stands there already"},
		"variable with two origins":         {hello.withContainer("env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "env[0].valueFrom: value stands there already"},
		"request above the limit":           {hello.withContainer("resources: {limits: {memory: 64m}, requests: {memory: 64Mi}}"), "requests.memory: 64Mi: is more than the limit, which is 64m"},
		"pull policy in another case":       {hello.withContainer("imagePullPolicy: always"), "imagePullPolicy: \"always\" is none of Always, IfNotPresent, Never; did you mean Always?"},
		"strategy in another case":          {hello.with("replicas: 1", "strategy: {type: recreate}"), "strategy.type: \"recreate\" is none of Recreate, RollingUpdate; did you mean Recreate?"},
		"protocol in another case":          {service("{ports: [{port: 1, protocol: tcp}]}"), "did you mean TCP?"},
		"value of a variable":               {hello.withContainer("imagePullPolicy: '{{GREETING}}'"), "imagePullPolicy: \"hello\" is none of"},
	} {
		t.Run(name, func(t *testing.T) {
			badInput{name, c.commit, []complaint{{flaw.ReasonInvalidManifest, templateFile, []string{c.want}}}}.check(t)
		})
	}
}

// TestLint_AcceptsValuesThatOnlyAClusterCanJudge: lint accepts values that it could only guess about, and
// leaves them to the canary.
func TestLint_AcceptsValuesThatOnlyAClusterCanJudge(t *testing.T) {
	hello := templates{t}
	for name, commit := range map[string]tree{
		"variables in names":              hello.with("- name: agent", "- name: 'a-{{GREETING}}'"),
		"a selector with a variable":      hello.with("matchLabels: {app: hello}", "matchLabels: {app: '{{GREETING}}'}"),
		"more labels than selected":       hello.with("labels: {app: hello}", "labels: {app: hello, team: a}"),
		"an image with a variable":        hello.with("agent:v1", "agent:{{GREETING}}"),
		"an image with port and digest":   hello.with("quay.io/hello/agent:v1", "localhost:5000/agent:v1@sha256:"+strings.Repeat("0", 64)),
		"one variable twice":              hello.withContainer("env: [{name: A, value: a}, {name: A, value: b}]"),
		"no value beside an origin":       hello.withContainer("env: [{name: A, value: '', valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
		"a volume without a source":       hello.withPod("volumes: [{name: a}]"),
		"a volume mounted twice":          hello.withContainer("volumeMounts: [{name: a, mountPath: /x}, {name: a, mountPath: /y}]"),
		"the volume of a registration":    hello.withContainer("volumeMounts: [{name: hub-kubeconfig, mountPath: /x}]"),
		"a probe by a port's name":        hello.withContainer("livenessProbe: {httpGet: {port: http}}"),
		"a job that leaves much out":      hello.withManifest("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: hello}, spec: {template: {spec: {containers: [{name: a}]}}}}"),
		"a service that leaves its port":  hello.withManifest("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 80, targetPort: 0}]}}"),
		"a part of an owner's Deployment": hello.withManifest("{apiVersion: apps/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {replicas: 3}}"),
		"a kind that only clusters know":  hello.withManifest("{apiVersion: example.com/v1, kind: Deployment, metadata: {name: j, namespace: hello}, spec: {strategy: {type: recreate}}}"),
		"what only the canary shows":      hello.with("replicas: 1", "replicas: -1"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := Load(commit.objects(t), nil, Options{Charts: chart.InProcess{}}); len(problems) > 0 {
				t.Errorf("refused: %v", problems)
			}
		})
	}
}

// TestPackagesAreHeldToTheirValues: rendered manifests of a chart are checked in the same way.
func TestPackagesAreHeldToTheirValues(t *testing.T) {
	const file = "hello/chart/templates/deployment.yaml"
	commit := packagedHello().edited(t, file, "image:", "imagePullPolicy: always\n        image:")
	_, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}})
	if len(problems) != 1 || path.Base(problems[0].Path) != path.Base(file) || !strings.Contains(problems[0].String(), "did you mean Always?") {
		t.Errorf("got %v, want one in %s about imagePullPolicy", problems, file)
	}
}

// TestOneObjectInTwoVersions: an API server serves an object in all versions of its group, so
// two manifests that differ only in the version would undo each other.
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
