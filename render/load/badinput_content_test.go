package load

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

func badVariables(t *testing.T) []badInput {
	t.Helper()
	variable := func(lines ...string) tree {
		return hello().edited(t, configFile, "  - name: GREETING\n    value: hello\n", strings.Join(lines, "\n")+"\n")
	}
	greeting := func(value string) tree { return hello().edited(t, configFile, "value: hello", "value: "+value) }
	settings := func(value string) tree { return hello().edited(t, templateFile, `"{{GREETING}}"}`, value+"}") }
	return []badInput{
		{
			"unresolved_variable", hello().edited(t, configFile, "GREETING", "GRETING"),
			[]complaint{
				{flaw.ReasonUnresolvedVariable, templateFile, []string{"spec.agentSpec.workload.manifests[0].spec.template.spec.containers[0].args[0]", "GREETING"}},
				{flaw.ReasonUnresolvedVariable, templateFile, []string{"spec.agentSpec.workload.manifests[1].data.greeting", "GREETING"}},
			},
		},
		{"spaces_are_text", settings(`"{{ GREETING }}"`), nil},
		{"dots_are_text", settings(`"{{foo.bar}}"`), nil},
		{"prometheus_is_text", settings(`"{{ $labels.job }}"`), nil},
		{"unclosed_is_text", settings(`"{{GREETING"`), nil},
		{
			"name", variable("  - name: 9LIVES", "    value: x", "  - {name: GREETING, value: x}"),
			one(flaw.ReasonInvalidVariable, configFile, "spec.customizedVariables[0].name", "^[a-zA-Z_]"),
		},
		{
			"long_name", variable("  - {name: GREETING, value: x}", "  - {name: "+strings.Repeat("A", 256)+", value: x}"),
			one(flaw.ReasonInvalidVariable, configFile, "spec.customizedVariables[1].name", "255"),
		},
		{
			"long_value", greeting(strings.Repeat("a", 1025)),
			one(flaw.ReasonInvalidVariable, configFile, "spec.customizedVariables[0].value: may not be more than 1024 characters"),
		},
		{"longest_value", greeting(strings.Repeat("é", 1024)), nil},
		{
			"variable_duplicate", variable("  - {name: GREETING, value: a}", "  - {name: GREETING, value: b}"),
			append(one(flaw.ReasonDuplicateVariable, configFile, "spec.customizedVariables[1]", `variable "GREETING" is set twice`), unset("GREETING")...),
		},
		{
			"variable_reserved", variable("  - {name: GREETING, value: a}", "  - {name: CLUSTER_NAME, value: b}"),
			one(flaw.ReasonReservedVariable, configFile, "spec.customizedVariables[1].name", "CLUSTER_NAME"),
		},
		{
			"variable_install_namespace_is_computed", variable("  - {name: GREETING, value: a}", "  - {name: INSTALL_NAMESPACE, value: b}").edited(t, configFile, `""`, "there"),
			one(flaw.ReasonReservedVariable, configFile, "INSTALL_NAMESPACE"),
		},
		{"variable_install_namespace_is_free", variable("  - {name: GREETING, value: a}", "  - {name: INSTALL_NAMESPACE, value: b}"), nil},
		{"variable_hub_kubeconfig_may_be_overridden", variable("  - {name: GREETING, value: a}", "  - {name: HUB_KUBECONFIG, value: /b}"), nil},
		mistake(t, "replicas_in_words", templateFile, "replicas: 1", `replicas: "three"`, flaw.ReasonInvalidType, "manifests[0].spec.replicas: must be an integer", "without quotes"),
		mistake(t, "replicas_of_an_untyped_variable", templateFile, "replicas: 1", `replicas: "{{GREETING}}"`, flaw.ReasonInvalidType, "manifests[0].spec.replicas: must be an integer", "addonflow.io/typed-variables: GREETING=integer"),
		mistake(t, "api_version", templateFile, "apiVersion: apps/v1", "apiVersion: apps/V 1", flaw.ReasonInvalidManifest, "manifests[0].apiVersion", "is not an apiVersion"),
		mistake(t, "api_version_without_group", templateFile, "apiVersion: apps/v1", "apiVersion: /v1", flaw.ReasonInvalidManifest, "manifests[0].apiVersion"),
		{"null_value", greeting("null"), one(flaw.ReasonInvalidType, configFile, "spec.customizedVariables[0].value: must be a string; quote it")},
		{"tilde_value", greeting("~"), one(flaw.ReasonInvalidType, configFile, "spec.customizedVariables[0].value: must be a string; quote it")},
		{"nothing_after_the_colon", greeting(""), one(flaw.ReasonInvalidType, configFile, "must be a string; quote it")},
		{"absent_value", variable("  - name: GREETING"), one(flaw.ReasonInvalidVariable, configFile, `variable "GREETING" has no value`)},
		{"empty_value", greeting(`""`), nil},
		{"newline", greeting(`"a\nkind: Secret"`), nil},
		{"quote", greeting(`'a","evil":"1'`), nil},
		{"hash_and_colon", greeting(`"a: b # c"`), nil},
		{"nul", greeting(`"a\0b"`), one(flaw.ReasonInvalidVariable, configFile, "spec.customizedVariables[0].value", "NUL")},
		{"recursive", variable("  - {name: GREETING, value: '{{OTHER}}'}", "  - {name: OTHER, value: '{{GREETING}}'}"), nil},
	}
}

func badManifests(t *testing.T) []badInput {
	t.Helper()
	const at = "spec.agentSpec.workload.manifests"
	settings := "{name: hello-settings, namespace: hello}"
	manifest := func(row, from, to string, parts ...string) badInput {
		return badInput{row, hello().edited(t, templateFile, from, to), one(flaw.ReasonInvalidManifest, templateFile, parts...)}
	}
	nameless := complaint{flaw.ReasonInvalidManifest, templateFile, []string{at + "[1].metadata.name: must be set"}}
	text := hello()[templateFile]
	list := text[strings.Index(text, "      manifests:"):strings.Index(text, "  registration:")]
	return []badInput{
		manifest("no_name", settings, "{namespace: hello}", at+"[1].metadata.name", "manifest 1 has no name"),
		manifest("no_metadata", "metadata: "+settings, "immutable: true", at+"[1].metadata", "manifest 1 has no metadata.name"),
		manifest("generate_name", settings, "{generateName: x-}", at+"[1].metadata.generateName", "fixed name").followed(nameless),
		manifest("no_kind", "        kind: ConfigMap\n", "", at+"[1].kind", "manifest 1 has no kind"),
		manifest("twice", list, list+"      - {apiVersion: v1, kind: ConfigMap, metadata: {name: hello-settings, namespace: hello}}\n", at+"[2]", "is manifest 1 already"),
		{
			"null_and_empty", hello().edited(t, templateFile, list, "      manifests: [null, {}]\n"),
			[]complaint{
				{flaw.ReasonInvalidManifest, templateFile, []string{at + "[0]", "manifest 0 must be an object"}},
				{flaw.ReasonInvalidManifest, templateFile, []string{at + "[1].apiVersion", "manifest 1 has no apiVersion"}},
				{flaw.ReasonInvalidManifest, templateFile, []string{at + "[1].kind", "manifest 1 has no kind"}},
				nameless,
			},
		},
		mistake(t, "rule_in_CEL", templateFile, "    workload:", "    manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: x}, conditionRules: [{type: CEL, condition: ''}]}]\n    workload:", flaw.ReasonInvalidTemplate, "spec.agentSpec.manifestConfigs[0].conditionRules[0]", "Condition is required for CEL rules"),
		mistake(t, "executor_without_its_service_account", templateFile, "    workload:", "    executor: {subject: {type: ServiceAccount}}\n    workload:", flaw.ReasonInvalidTemplate, "spec.agentSpec.executor.subject.serviceAccount: is required with type ServiceAccount: the hub refuses works without it"),
		{"executor_with_its_service_account", hello().edited(t, templateFile, "    workload:", "    executor: {subject: {type: ServiceAccount, serviceAccount: {name: a, namespace: b}}}\n    workload:"), nil},
		{"orphaning_rules_may_be_absent", hello().edited(t, templateFile, "    workload:", "    deleteOption: {propagationPolicy: SelectivelyOrphan}\n    workload:"), nil},
		{"pre_delete_annotation_means_nothing_on_other_kinds", hello().edited(t, templateFile, settings, "{name: hello-settings, namespace: hello, annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}}"), nil},
		{"manifest_configs_may_match_nothing", hello().edited(t, templateFile, "    workload:", "    manifestConfigs: [{resourceIdentifier: {group: apps, resource: deployments, namespace: hello, name: nobody}, updateStrategy: {type: CreateOnly}}]\n    workload:"), nil},
		manifest("no_manifests", list, "      manifests: []\n", at, "is empty"),
		manifest("no_workload", "    workload:\n"+list, "    deleteOption: {}\n", at, "is empty"),
		manifest("name", "name: hello-settings", "name: Hello_Settings", at+"[1].metadata.name", `"Hello_Settings" cannot be a name`),
		manifest("name_with_a_variable", "name: hello-settings", "name: 'Hello-{{CLUSTER_NAME}}'", at+"[1].metadata.name", "cannot be a name"),
		manifest("label_too_long", settings, "{name: hello-settings, labels: {a: "+strings.Repeat("x", 64)+"}}", at+"[1].metadata.labels", "63"),
		manifest("annotation_is_a_number", settings, "{name: hello-settings, annotations: {example.com/level: 3}}", at+"[1].metadata.annotations[example.com/level]: must be a string; quote it"),
		manifest("namespace_is_a_boolean", settings, "{name: hello-settings, namespace: no}", at+"[1].metadata.namespace: must be a string; quote it"),
		manifest("uid", settings, "{name: hello-settings, uid: x}", at+"[1].metadata.uid", "is set by the API server; remove it"),
		manifest("resource_version", settings, `{name: hello-settings, resourceVersion: "1"}`, at+"[1].metadata.resourceVersion"),
		manifest("owner", settings, "{name: hello-settings, ownerReferences: [{name: x}]}", at+"[1].metadata.ownerReferences"),
		manifest("finalizers", settings, "{name: hello-settings, finalizers: [x/y]}", at+"[1].metadata.finalizers"),
		manifest("managed_fields", settings, "{name: hello-settings, managedFields: [{manager: a}]}", at+"[1].metadata.managedFields"),
		{"status_and_null_time_are_kept", hello().edited(t, templateFile, settings, "{name: hello-settings, creationTimestamp: null}\n        status: {}"), nil},
		{
			"manifest_too_large", hello().edited(t, templateFile, `"{{GREETING}}"}`, strings.Repeat("x", 600<<10)+"}"),
			one(flaw.ReasonManifestTooLarge, templateFile, "manifests[1]"),
		},
		{"large_add_on_is_split", large(t), nil},
		{
			"same_object_in_two_add_ons", twoAddOns(t),
			[]complaint{
				{flaw.ReasonObjectConflict, "other.template.yaml", []string{"Deployment hello/hello-agent", "manifests[0]"}},
				{flaw.ReasonObjectConflict, "other.template.yaml", []string{`add-ons "hello" and "other" both deploy ConfigMap hello/hello-settings`, "placement hello/everyone", "manifests[1]"}},
			},
		},
		{"not_on_the_same_placement", twoAddOns(t).edited(t, "other.addon.yaml", "name: everyone", "name: someone"), nil},
		{"same_namespace_is_shared", shareNamespace(t), nil},
	}
}

// large is an add-on of small manifests that need several works together.
func large(t *testing.T) tree {
	t.Helper()
	var manifests strings.Builder
	for i := range 4 {
		fmt.Fprintf(&manifests, "      - {apiVersion: v1, kind: ConfigMap, metadata: {name: part-%d, namespace: hello}, data: {x: %s}}\n", i, strings.Repeat("x", 300<<10))
	}
	return hello().edited(t, templateFile, "  registration:", manifests.String()+"  registration:")
}

// twoAddOns deploys the objects of hello a second time, in the add-on other.
func twoAddOns(t *testing.T) tree {
	t.Helper()
	other := hello().edited(t, addOnFile, "  name: hello\n", "  name: other\n").edited(t, addOnFile, "{name: hello}", "{name: other}").
		edited(t, templateFile, "  name: hello\n", "  name: other\n").edited(t, templateFile, "addonName: hello", "addonName: other")
	return hello().with("other.addon.yaml", other[addOnFile]).with("other.template.yaml", other[templateFile])
}

// shareNamespace makes two add-ons deploy the same Namespace and nothing else in common.
func shareNamespace(t *testing.T) tree {
	t.Helper()
	const namespace = "      - {apiVersion: v1, kind: Namespace, metadata: {name: hello}}\n  registration:"
	return twoAddOns(t).edited(t, templateFile, "  registration:", namespace).
		edited(t, "other.template.yaml", "  registration:", namespace).
		edited(t, "other.template.yaml", "hello-settings", "other-settings").
		edited(t, "other.template.yaml", "hello-agent, namespace", "other-agent, namespace")
}

func badMetadata(t *testing.T) []badInput {
	t.Helper()
	metadata := func(row, to string, parts ...string) badInput {
		in := badInput{row, hello().edited(t, lookFile, "{name: everyone, namespace: hello}", to), nil}
		if len(parts) > 0 {
			in.want = one(flaw.ReasonInvalidManifest, lookFile, parts...)
		}
		return in
	}
	return []badInput{
		metadata("object_without_name", "{namespace: hello}", "metadata.name: is required"),
		metadata("object_with_generate_name", "{name: everyone, generateName: x, namespace: hello}", "metadata.generateName"),
		metadata("object_name", "{name: Every_one, namespace: hello}", "metadata.name", "RFC 1123"),
		metadata("object_label", "{name: everyone, namespace: hello, labels: {a: "+strings.Repeat("x", 64)+"}}", "metadata.labels", "63"),
		metadata("object_annotation", "{name: everyone, namespace: hello, annotations: {a: 1}}", "metadata.annotations.a: must be a string; quote it"),
		metadata("object_namespace_missing", "{name: everyone}", "metadata.namespace: is required"),
		metadata("object_uid", "{name: everyone, namespace: hello, uid: x}", "metadata.uid: is set by the API server"),
		metadata("object_resource_version", `{name: everyone, namespace: hello, resourceVersion: "1"}`, "metadata.resourceVersion"),
		metadata("object_owner", "{name: everyone, namespace: hello, ownerReferences: [{name: a}]}", "metadata.ownerReferences"),
		metadata("object_finalizers", "{name: everyone, namespace: hello, finalizers: [a/b]}", "metadata.finalizers"),
		metadata("nothing_is_set", "{name: everyone, namespace: hello, resourceVersion: '', finalizers: [], ownerReferences: [], labels: {a: null}}"),
		metadata("object_managed_fields", "{name: everyone, namespace: hello, managedFields: [{manager: a}]}", "metadata.managedFields"),
		metadata("own_annotation", "{name: everyone, namespace: hello, annotations: {addonflow.io/suspend: x}}", "metadata.annotations[addonflow.io/suspend]"),
		metadata("typed_variables_elsewhere", "{name: everyone, namespace: hello, annotations: {addonflow.io/typed-variables: A=integer}}", "is for an AddOnTemplate"),
		metadata("dropped", "{name: everyone, namespace: hello, creationTimestamp: null, generation: 3, selfLink: /x}\nstatus: {numberOfSelectedClusters: 3}"),
		metadata("null", "{name: everyone, namespace: hello, uid: null, labels: null}"),
		mistake(t, "unknown_metadata", lookFile, "name: everyone,", "name: everyone, lables: {},", flaw.ReasonUnknownField, "metadata.lables", "did you mean labels?"),
		{"namespace_of_a_cluster_scoped_object_is_dropped", hello().edited(t, templateFile, "  name: hello\n", "  name: hello\n  namespace: hello\n"), nil},
	}
}

func badLimits(t *testing.T) []badInput {
	t.Helper()
	var supported strings.Builder
	for i := range maxSupportedConfigs {
		fmt.Fprintf(&supported, "  - {group: example.com, resource: things%d}\n", i)
	}
	configs := hello()
	for i := range maxConfigs {
		name := fmt.Sprintf("c%04d", i)
		configs["configs/"+name+".yaml"] = strings.Replace(hello()[configFile], "name: agent", "name: "+name, 1)
	}
	addOns := tree{}
	for i := range maxAddOns + 1 {
		name := fmt.Sprintf("a%03d", i)
		addOns[name+".yaml"] = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ClusterManagementAddOn\nmetadata: {name: hello" + name + "}\n" +
			"spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello}}]}\n"
	}
	_, problems := Load(addOns.objects(t), nil, Options{Charts: chart.InProcess{}})
	if len(problems) != 1 || problems[0].Reason != flaw.ReasonLimitExceeded || !strings.Contains(problems[0].Message, "201 ClusterManagementAddOns, at most 200") {
		t.Errorf("too many add-ons: %v", problems)
	}
	return []badInput{
		{
			"supported_configs", hello().edited(t, addOnFile, "  installStrategy:", supported.String()+"  installStrategy:"),
			one(flaw.ReasonLimitExceeded, addOnFile, "spec.supportedConfigs: lists 34 kinds, at most 32"),
		},
		{"configs", configs, one(flaw.ReasonLimitExceeded, "", "1002 templates and configurations, at most 1000")},
	}
}

func badRegistrations(t *testing.T) []badInput {
	t.Helper()
	const kubeClient = "  - type: KubeClient\n    kubeClient:\n      hubPermissions:\n      - type: CurrentCluster\n        currentCluster: {clusterRoleName: hello-agent}\n"
	row := func(row, registration string, want []complaint) badInput {
		return badInput{row, hello().edited(t, templateFile, kubeClient, registration), want}
	}
	permission := func(text string) string {
		return "  - {type: KubeClient, kubeClient: {hubPermissions: [" + text + "]}}\n"
	}
	invalid := func(parts ...string) []complaint { return one(flaw.ReasonInvalidRegistration, templateFile, parts...) }
	signer := func(parts ...string) []complaint { return one(flaw.ReasonInvalidSigner, templateFile, parts...) }
	return []badInput{
		row("missing_block", permission("{type: CurrentCluster}"), invalid("spec.registration[0].kubeClient.hubPermissions[0].currentCluster", "is required with type CurrentCluster")),
		row("missing_namespace_block", permission("{type: SingleNamespace}"), invalid("hubPermissions[0].singleNamespace", "is required with type SingleNamespace")),
		row("block_of_the_other_type", permission("{type: CurrentCluster, currentCluster: {clusterRoleName: a}, singleNamespace: {namespace: a, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}}"), invalid("singleNamespace", "does not belong")),
		row("role_kind", permission("{type: SingleNamespace, singleNamespace: {namespace: a, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Rule, name: a}}}"), invalid("roleRef.kind", `"Rule" is neither Role nor ClusterRole`)),
		row("custom_signer_missing", "  - type: CustomSigner\n", invalid("spec.registration[0].customSigner", "is required with type CustomSigner")),
		row("good_single_namespace", permission("{type: SingleNamespace, singleNamespace: {namespace: a, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}}"), nil),
		row("no_signing_ca", "  - {type: CustomSigner, customSigner: {signerName: example.com/agent}}\n", signer("spec.registration[0].customSigner.signingCA", "is required")),
		row("signer_name", "  - {type: CustomSigner, customSigner: {signerName: agent, signingCA: {name: ca}}}\n", signer("spec.registration[0].customSigner.signerName")),
		row("signer_of_kubernetes", "  - {type: CustomSigner, customSigner: {signerName: kubernetes.io/kube-apiserver-client, signingCA: {name: ca}}}\n", signer("belongs to Kubernetes")),
		row("unknown_type", "  - type: Oidc\n", invalid("spec.registration[0].type", `"Oidc"`, "KubeClient")),
		row("same_credentials_twice", "  - type: KubeClient\n  - type: KubeClient\n", invalid("spec.registration[1]", "both would write one secret")),
		row("both_types", "  - type: KubeClient\n  - {type: CustomSigner, customSigner: {signerName: example.com/agent, signingCA: {name: ca}}}\n", nil),
		mistake(t, "install_namespace", configFile, `agentInstallNamespace: ""`, "agentInstallNamespace: My_Namespace", flaw.ReasonInvalidRegistration, "spec.agentInstallNamespace"),
	}
}

func badConfigs(t *testing.T) []badInput {
	t.Helper()
	config := func(row, yaml string, parts ...string) badInput {
		in := badInput{row, hello().edited(t, configFile, "  agentInstallNamespace", "  "+yaml+"\n  agentInstallNamespace"), nil}
		if len(parts) > 0 {
			in.want = one(flaw.ReasonInvalidConfig, configFile, parts...)
		}
		return in
	}
	toleration := func(row, yaml string, parts ...string) badInput {
		return badInput{row, hello().edited(t, configFile, "{key: dedicated, operator: Exists, effect: NoSchedule}", yaml), one(flaw.ReasonInvalidConfig, configFile, parts...)}
	}
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	certificate := "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	return []badInput{
		config("mirror_cycle", "registries: [{source: a.io/x, mirror: b.io/x}, {source: b.io/x, mirror: a.io/x}]", "spec.registries[0]", "a.io/x -> b.io/x -> a.io/x"),
		config("mirror_is_a_url", "registries: [{source: a.io/x, mirror: 'https://b.io/x'}]", "spec.registries[0].mirror", "without a scheme"),
		config("mirror_with_blank", "registries: [{source: a.io/x, mirror: 'b.io /x'}]", "spec.registries[0].mirror"),
		config("good_mirrors", "registries: [{source: quay.io/open-, mirror: mirror.example.com:5000/open-}, {mirror: everything.example.com}]"),
		config("bad_regex", "resourceRequirements: [{containerID: 'deployments:a[:b', resources: {}}]", "spec.resourceRequirements[0].containerID", "a["),
		config("huge_regex", "resourceRequirements: [{containerID: 'deployments:"+strings.Repeat("a", 300)+":b', resources: {}}]", "spec.resourceRequirements[0].containerID"),
		config("resource_type", "resourceRequirements: [{containerID: 'deploys:a:b', resources: {}}]", "spec.resourceRequirements[0].containerID"),
		config("quantity", "resourceRequirements: [{containerID: 'deployments:a:b', resources: {limits: {cpu: lots}}}]", "spec.resourceRequirements[0].resources.limits.cpu"),
		config("good_requirements", "resourceRequirements: [{containerID: '*:*:*', resources: {limits: {cpu: 1, memory: 64Mi}}}]"),
		config("ca_bundle_not_base64", "proxyConfig: {caBundle: '%%%'}", "spec.proxyConfig.caBundle"),
		config("ca_bundle_not_pem", "proxyConfig: {caBundle: "+encode("hello")+"}", "spec.proxyConfig.caBundle", "is not a bundle of PEM certificates"),
		config("ca_bundle_with_key", "proxyConfig: {caBundle: "+encode(certificate+"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n")+"}", `PEM block of type "PRIVATE KEY"`),
		config("ca_bundle_cut_off", "proxyConfig: {caBundle: "+encode(certificate+"-----BEGIN CERTIFICATE-----\nMIIB")+"}", "is not a bundle of PEM certificates"),
		config("good_ca_bundle", "proxyConfig: {caBundle: "+encode("# comment\n"+certificate+certificate)+"}"),
		toleration("toleration_operator", "{key: a, operator: Is}", "spec.nodePlacement.tolerations[0].operator", `"Is" is neither Exists nor Equal`),
		toleration("toleration_value", "{key: a, operator: Exists, value: b}", "tolerations[0].value"),
		toleration("toleration_without_key", "{value: b}", "tolerations[0].operator"),
		toleration("toleration_effect", "{key: a, value: b, effect: NoRun}", "tolerations[0].effect"),
		toleration("toleration_seconds", "{key: a, value: b, effect: NoSchedule, tolerationSeconds: 3}", "tolerations[0].tolerationSeconds"),
		mistake(t, "node_selector", configFile, "kubernetes.io/os: linux", "'kubernetes.io/os/x': linux", flaw.ReasonInvalidConfig, "spec.nodePlacement.nodeSelector[kubernetes.io/os/x]"),
	}
}
