package load

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// TestManifestsAreHeldToTheirTypes: fields that an API server of the managed cluster would
// refuse or silently drop are reported on the commit; fields that it accepts are not.
func TestManifestsAreHeldToTheirTypes(t *testing.T) {
	const agent = "        metadata: {name: hello-agent, namespace: hello}\n"
	const settings = "      - apiVersion: v1\n        kind: ConfigMap\n"
	image := "image: quay.io/hello/agent:v1"
	row := func(row, from, to string, want ...complaint) badInput {
		return badInput{row, hello().edited(t, templateFile, from, to), want}
	}
	wrong := func(parts ...string) complaint { return complaint{flaw.ReasonInvalidType, templateFile, parts} }
	unknown := func(parts ...string) complaint { return complaint{flaw.ReasonUnknownField, templateFile, parts} }
	typed := func(row, from, to string, want ...complaint) badInput {
		commit := hello().edited(t, templateFile, "  name: hello\nspec", "  name: hello\n  annotations: {addonflow.io/typed-variables: 'GREETING=integer,SWITCH=boolean'}\nspec").
			edited(t, configFile, "value: hello", "value: \"3\"\n  - {name: SWITCH, value: \"true\"}").
			edited(t, templateFile, `data: {greeting: "{{GREETING}}"}`, "data: {}").
			edited(t, templateFile, from, to)
		return badInput{row, commit, want}
	}
	refusal := func(parts ...string) complaint { return complaint{flaw.ReasonInvalidManifest, templateFile, parts} }
	newer := func(row, names, from, to string, want ...complaint) badInput {
		commit := hello().edited(t, templateFile, "  name: hello\nspec", "  name: hello\n  annotations: {addonflow.io/newer-names: '"+names+"'}\nspec").
			edited(t, templateFile, from, to)
		return badInput{row, commit, want}
	}
	manifest := func(row, text string, want ...complaint) badInput {
		return badInput{row, hello().edited(t, templateFile, settings, "      - "+text+"\n"+settings), want}
	}
	for _, in := range []badInput{
		row("replicas_in_words", "replicas: 1", `replicas: "three"`, wrong("manifests[0].spec.replicas: must be an integer, not string; write a number without quotes")),
		row("replicas_as_a_fraction", "replicas: 1", `replicas: 1.5`, wrong("spec.replicas: must be an integer, not number")),
		row("replicas_beyond_32_bits", "replicas: 1", `replicas: 4294967296`, wrong("spec.replicas: is too large for an int32")),
		row("ports_as_a_number", image, image+"\n                ports: 80", wrong("containers[0].ports: must be an array, not integer")),
		row("port_as_a_text", image, image+"\n                ports: [{containerPort: \"80\"}]", wrong("ports[0].containerPort: must be an integer")),
		row("environment_as_a_number", image, image+"\n                env: [{name: A, value: 1}]", wrong("env[0].value: must be a string; quote it")),
		row("misspelt_field_of_a_container", image, image+"\n                imagePulPolicy: Always", unknown("containers[0].imagePulPolicy", "did you mean imagePullPolicy?", templateFile+":22:")),
		row("field_of_a_container_in_another_case", image, image+"\n                ImagePullPolicy: Always", unknown("did you mean imagePullPolicy?")),
		row("misspelt_field_of_a_pod", "              containers:", "              hostnetwork: true\n              containers:", unknown("spec.template.spec.hostnetwork", "did you mean hostNetwork?")),
		row("misspelt_metadata", agent, "        metadata: {name: hello-agent, namespace: hello, lables: {}}\n", unknown("manifests[0].metadata.lables", "did you mean labels?")),
		row("quantity", image, image+"\n                resources: {limits: {cpu: lots}}", refusal("resources.limits.cpu: lots is not a quantity")),
		row("good_quantities", image, image+"\n                resources: {limits: {cpu: 0.5, memory: '64Mi '}, requests: {cpu: 0.25}}"),
		row("quantity_by_a_variable", image, image+"\n                resources: {limits: {cpu: '{{GREETING}}m'}}", refusal("limits.cpu: hellom is not a quantity")),
		row("quantity_that_is_a_variable", image, image+"\n                resources: {limits: {cpu: '{{GREETING}}'}}", refusal("limits.cpu: hello is not a quantity")),
		row("number_or_name", image, image+"\n                readinessProbe: {httpGet: {port: true}}", wrong("httpGet.port: must be an integer or a string")),
		row("good_number_or_name", image, image+"\n                readinessProbe: {httpGet: {port: '{{GREETING}}'}}\n                livenessProbe: {tcpSocket: {port: 80}}"),
		row("null_is_absent", image, image+"\n                ports: null\n                args2: null", unknown("containers[0].args2", "did you mean args?")),
		row("status_is_nobodys", "        kind: Deployment\n", "        kind: Deployment\n        status: {whatever: 1}\n"),
		row("two_in_one_manifest", "replicas: 1", "replicas: many\n          selektor: {}", wrong("spec.replicas"), unknown("spec.selektor", "did you mean selector?")),
		row("variable_without_a_type", "replicas: 1", `replicas: "{{GREETING}}"`, wrong("spec.replicas", "addonflow.io/typed-variables: GREETING=integer")),
		row("boolean_variable_without_a_type", image, image+"\n                tty: '{{GREETING}}'", wrong("tty: must be a boolean", "GREETING=boolean")),
		row("variable_beside_digits", "replicas: 1", `replicas: "1{{GREETING}}"`, wrong("spec.replicas", "without quotes")),
		typed("integer_variable", "replicas: 1", `replicas: "{{GREETING}}"`),
		typed("boolean_variable", image, image+"\n                tty: '{{SWITCH}}'"),
		typed("boolean_variable_for_a_number", "replicas: 1", `replicas: "{{SWITCH}}"`, wrong("spec.replicas", "SWITCH=integer")),
		typed("integer_variable_for_a_text", image, image+"\n                command: ['{{GREETING}}']", wrong("command[0]: must be a string, and GREETING is declared integer; use another variable here")),
		typed("integer_variable_inside_a_text", image, image+"\n                command: ['x{{GREETING}}']"),
		manifest("job", "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: hello}, spec: {backofLimit: 1, template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}}", unknown("spec.backofLimit", "did you mean backoffLimit?")),
		manifest("cron_job", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: hello}, spec: {schedule: 5, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}}}}", wrong("manifests[1].spec.schedule: must be a string; quote it")),
		manifest("service", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: hello}, spec: {ports: [{port: 80, targetport: 80}]}}", unknown("ports[0].targetport", "did you mean targetPort?")),
		manifest("config_map", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: hello}, data: {a: 1}}", wrong("manifests[1].data.a: must be a string; quote it")),
		manifest("secret_not_base64", "{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: hello}, data: {a: '%%'}}", complaint{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[1].data.a: is not base64"}}),
		manifest("secret_by_a_variable", "{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: hello}, data: {a: '{{GREETING}}'}}", complaint{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[1].data.a: is not base64"}}),
		manifest("a_kind_that_only_the_cluster_knows", "{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: hello}, spec: {replicas: many, anything: 1}}"),
		manifest("a_version_that_is_not_known", "{apiVersion: batch/v2, kind: Job, metadata: {name: j, namespace: hello}, spec: {backofLimit: 1}}"),
		row("misspelt_kind", "kind: Deployment", "kind: Deploymnt", refusal(`manifests[0].kind: apps/v1 has no kind "Deploymnt"; did you mean Deployment?`)),
		{"misspelt_kind_hides_nothing", hello().edited(t, templateFile, "kind: Deployment", "kind: Deploymnt").edited(t, templateFile, "- name: agent", "- name: Agent"), []complaint{
			refusal("manifests[0].kind"), refusal(`containers[0].name: "Agent" cannot be a name here`),
		}},
		row("kind_of_another_group", "apiVersion: apps/v1", "apiVersion: v1", refusal(`v1 has no kind "Deployment"; write apiVersion: apps/v1`)),
		manifest("misspelt_kind_of_a_role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Rolle, metadata: {name: c, namespace: hello}}", refusal(`kind: rbac.authorization.k8s.io/v1 has no kind "Rolle"; did you mean Role?`)),
		manifest("what_a_served_kubernetes_had", "{apiVersion: v1, kind: Pod, metadata: {name: c, namespace: hello}, spec: {workloadRef: {name: a}, resourceClaims: [{name: a, source: {resourceClaimName: b}}], containers: [{name: a}]}}"),
		manifest("empty_metadata_sets_nothing", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: hello, resourceVersion: '', uid: '', generateName: '', ownerReferences: [], managedFields: [], labels: {a: null}, annotations: {b: null}}}"),
		manifest("empty_metadata_is_no_name", "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: '', namespace: hello}}", refusal("manifest 1 has no name")),
		newer("later_field", "Later,laterToo", image, image+"\n                laterToo: {a: '{{GREETING}}'}"),
		newer("later_kind", "Later", "kind: Deployment", "kind: Later"),
		newer("later_names_excuse_no_other", "Later", image, image+"\n                laterToo: 1", unknown("laterToo: unknown field; if a newer Kubernetes has it, annotate addonflow.io/newer-names: laterToo")),
		newer("later_names_do_not_excuse_what_is_known", "name", "- name: agent", "- name: Agent", refusal(`"Agent" cannot be a name here`)),
		newer("later_names_that_are_none", "spec.later", image, image, refusal(`annotations[addonflow.io/newer-names]: cannot read names: "spec.later" is the name of no field and no kind`)),
	} {
		t.Run(in.row, func(t *testing.T) { in.check(t) })
	}
}

// TestPackagesAreHeldToTheirTypes: rendered manifests of a chart are checked in the same way,
// and reported in their file.
func TestPackagesAreHeldToTheirTypes(t *testing.T) {
	commit := packagedHello()
	const file = "hello/chart/templates/deployment.yaml"
	for name, c := range map[string]struct{ from, to, want string }{
		"newer kind":    {"kind: Deployment", "kind: Frob", `kind: apps/v1 has no kind "Frob"; if a newer Kubernetes has it, annotate addonflow.io/newer-names: Frob`},
		"unknown field": {"image:", "imagePulPolicy: Always\n        image:", "imagePulPolicy: unknown field; did you mean imagePullPolicy?"},
		"unknown kind":  {"kind: Deployment", "kind: Deploymnt", `kind: apps/v1 has no kind "Deploymnt"; did you mean Deployment?`},
		"wrong type":    {"image:", "ports: 80\n        image:", "ports: must be an array, not integer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(commit.edited(t, file, c.from, c.to).packageObjects(t), nil, Options{Charts: chart.InProcess{}})
			if len(problems) != 1 || path.Base(problems[0].Path) != path.Base(file) || !strings.Contains(problems[0].String(), c.want) {
				t.Errorf("got %v, want one in %s with %q", problems, file, c.want)
			}
		})
	}
}

// TestPackagesNameWhatIsNewer: a package may have fields that only the clusters know.
func TestPackagesNameWhatIsNewer(t *testing.T) {
	commit := packagedHello().edited(t, "hello/chart/templates/deployment.yaml", "image:", "frob: 1\n        image:").
		edited(t, packageFile, "metadata: {name: hello", "metadata: {annotations: {addonflow.io/newer-names: frob}, name: hello")
	if _, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}}); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestMetadataThatSetsNothing: empty metadata that exporters leave, or that charts render, is
// normalised as the API server does, in a package as in a template.
func TestMetadataThatSetsNothing(t *testing.T) {
	const metadata = "{name: a, labels: {part-of: null}, annotations: {note: null}, resourceVersion: '', ownerReferences: []}"
	packaged := packagedHello()
	packaged["hello/chart/templates/more.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: " + metadata + "\n"
	declared := hello().edited(t, templateFile, "{name: hello-settings, namespace: hello}", strings.Replace(metadata, "name: a", "name: a, namespace: hello", 1))
	for name, objects := range map[string][]Located{"package": packaged.packageObjects(t), "template": declared.objects(t)} {
		loaded, problems := Load(objects, nil, Options{Charts: chart.InProcess{}})
		if len(problems) > 0 || len(loaded.AddOns) != 1 {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		cluster := render.Cluster{Name: "cluster1", KubeVersion: "v1.33.0"}
		for _, p := range loaded.AddOns[0].Content.Placements {
			cluster.Placements = append(cluster.Placements, p.PlacementReference)
		}
		for _, o := range objectsFor(t, loaded.AddOns[0].Content, cluster) {
			if o.GetName() != "a" {
				continue
			}
			got, _ := o.Object[metadataKey].(map[string]any)
			want := map[string]any{"name": "a", "namespace": o.GetNamespace(), "labels": map[string]any{"part-of": ""}, "annotations": map[string]any{"note": ""}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +rendered):\n%s", name, diff)
			}
		}
	}
}
