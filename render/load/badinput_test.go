package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// complaint is an expected problem: its reason, its file, and parts of its text.
type complaint struct {
	reason problem.Reason
	path   string
	parts  []string
}

func (c complaint) matches(p problem.Problem) bool {
	contained := func(part string) bool { return strings.Contains(p.String(), part) }
	return p.Reason == c.reason && p.Path == c.path && !slices.ContainsFunc(c.parts, func(part string) bool { return !contained(part) })
}

// badInput is one mistake in a commit. Only the listed problems may be reported, the first of
// them first.
type badInput struct {
	// row is the documented bad input, and the mistake made.
	row    string
	commit tree
	want   []complaint
}

// followed adds the problems that follow from those of the input.
func (b badInput) followed(by ...complaint) badInput {
	b.want = append(slices.Clone(b.want), by...)
	return b
}

// unset are the problems of the uses of a variable without a value.
func unset(name string) []complaint {
	return []complaint{
		{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[0].spec.template.spec.containers[0].args[0]: no value for " + name}},
		{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[1].data.greeting: no value for " + name}},
	}
}

// one is a single expected problem.
func one(reason problem.Reason, path string, parts ...string) []complaint {
	return []complaint{{reason, path, parts}}
}

// mistake is hello with one text of a file replaced, and the one problem of that file.
func mistake(t *testing.T, row, path, was, is string, reason problem.Reason, parts ...string) badInput {
	t.Helper()
	return badInput{row, hello().edited(t, path, was, is), one(reason, path, parts...)}
}

func TestBadInput(t *testing.T) {
	for _, rows := range [][]badInput{
		badFields(t), badKinds(t), badReferences(t), badStrategies(t), badVariables(t),
		badManifests(t), badMetadata(t), badLimits(t), badRegistrations(t), badConfigs(t),
	} {
		for _, in := range rows {
			t.Run(in.row, func(t *testing.T) { in.check(t) })
		}
	}
}

func (b badInput) check(t *testing.T) {
	t.Helper()
	_, problems := Load(b.commit.objects(t), nil, Options{Charts: chart.InProcess{}, Namespace: "flow", AllowedAddOns: []string{"hello", "other"}})
	for i, want := range b.want {
		if !slices.ContainsFunc(problems, want.matches) || i == 0 && !want.matches(problems[0]) {
			t.Errorf("no problem %s in %s with %q in its place among:\n%v", want.reason, want.path, want.parts, problems)
		}
	}
	if len(problems) != len(b.want) {
		t.Errorf("%d problems, want %d:\n%v", len(problems), len(b.want), problems)
	}
}

func badFields(t *testing.T) []badInput {
	t.Helper()
	return []badInput{
		mistake(t, "unknown_field", configFile, "customizedVariables", "customisedVariables", flaw.ReasonUnknownField, "spec.customisedVariables: unknown field", "did you mean customizedVariables?", configFile+":6:").followed(unset("GREETING")...),
		mistake(t, "wrong_case", configFile, "customizedVariables", "CustomizedVariables", flaw.ReasonUnknownField, "spec.CustomizedVariables", "did you mean customizedVariables?").followed(unset("GREETING")...),
		mistake(t, "wrong_case_in_a_list", configFile, "value: hello", "Value: hello", flaw.ReasonUnknownField, "spec.customizedVariables[0].Value", "did you mean value?"),
		mistake(t, "unknown_field_of_a_rollout", rolloutFile, "maxConcurrency", "maxConcurency", flaw.ReasonUnknownField, "spec.stages[0].maxConcurency", "did you mean maxConcurrency?"),
		mistake(t, "wrong_case_in_a_rollout", rolloutFile, "stages", "Stages", flaw.ReasonUnknownField, "spec.Stages", "did you mean stages?"),
		mistake(t, "unknown_field_in_an_add_on", addOnFile, "addOnMeta", "addonMetadata", flaw.ReasonUnknownField, "spec.addonMetadata"),
		{
			"unknown_field_hides_nothing",
			hello().edited(t, addOnFile, "addOnMeta", "addonMeta").edited(t, configFile, "GREETING", "GRETING"),
			[]complaint{
				{flaw.ReasonUnknownField, addOnFile, []string{"spec.addonMeta", "did you mean addOnMeta?"}},
				{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[0]", "GREETING"}},
				{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[1]", "GREETING"}},
			},
		},
		{
			"missing_reference_beside_an_unknown_field",
			hello().edited(t, addOnFile, "addOnMeta", "addonMeta").with(configFile, ""),
			one(flaw.ReasonUnknownField, addOnFile, "spec.addonMeta"),
		},
		mistake(t, "beta_field_in_alpha", addOnFile, "supportedConfigs", "defaultConfigs", flaw.ReasonUnknownField, "spec.defaultConfigs", "known fields: addOnConfiguration, addOnMeta, installStrategy, supportedConfigs").followed(nothingListed("supportedConfigs")...),
		mistake(t, "unknown_field_in_a_namespace", spaceFile, "kind: Namespace", "kind: Namespace\nspecs: {}", flaw.ReasonUnknownField, "specs"),
		mistake(t, "hint_names_what_can_be_declared", rolloutFile, "  stages:", "  foo: 1\n  stages:", flaw.ReasonUnknownField, "spec.foo: unknown field; known fields: blocked, clusterLabelSelector, dependsOn, health, onFailure, onNewCommit, revisionHistoryLimit, rollback, stages, strategy, suspend"),
		mistake(t, "misspelt_key_of_AddonFlow", addOnFile, "  name: hello\nspec", "  name: hello\n  annotations: {addonflow.io/merge-confgs: 'true'}\nspec", flaw.ReasonUnknownField, "metadata.annotations[addonflow.io/merge-confgs]: AddonFlow knows no such key; did you mean addonflow.io/merge-configs?"),
		mistake(t, "unknown_label_of_AddonFlow", lookFile, "namespace: hello}", "namespace: hello, labels: {addonflow.io/colour: red}}", flaw.ReasonUnknownField, "metadata.labels[addonflow.io/colour]: AddonFlow knows no such key; remove it"),
		mistake(t, "unquoted_boolean", configFile, "value: hello", "value: no", flaw.ReasonInvalidType, "spec.customizedVariables[0].value: must be a string; quote it"),
		mistake(t, "unquoted_number", configFile, "value: hello", "value: 1.10", flaw.ReasonInvalidType, "spec.customizedVariables[0].value: must be a string; quote it"),
		mistake(t, "unquoted_octal", configFile, "value: hello", "value: 010", flaw.ReasonInvalidType, "must be a string; quote it"),
		mistake(t, "in_a_rollout", rolloutFile, "name: canary", "name: 1", flaw.ReasonInvalidType, "spec.stages[0].name: must be a string; quote it"),
		{
			"object_for_a_list", hello().edited(t, rolloutFile, "  stages:\n  - name", "  stages:\n    name"),
			[]complaint{{flaw.ReasonInvalidType, rolloutFile, []string{"spec.stages: must be an array, not object"}}},
		},
	}
}

// nothingListed are the problems that follow if an add-on lists its kinds of configuration in a
// field of another version.
func nothingListed(field string) []complaint {
	return []complaint{
		{flaw.ReasonConfigurationUnsupported, addOnFile, []string{"spec." + field + ": lists no addontemplates"}},
		{flaw.ReasonConfigurationUnsupported, addOnFile, []string{"placements[0].configs[0]"}},
	}
}

func badKinds(t *testing.T) []badInput {
	t.Helper()
	unsupported := func(row, text string, parts ...string) badInput {
		return badInput{"unsupported_" + row, hello().with("x.yaml", text), one(flaw.ReasonUnsupportedKind, "x.yaml", parts...)}
	}
	again := hello()[configFile]
	return []badInput{
		unsupported("kind", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: y}\n", "apps/v1 Deployment", "ClusterManagementAddOn, AddOnTemplate"),
		unsupported("alpha_placement", "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: Placement\nmetadata: {name: x, namespace: y}\n", "did you mean cluster.open-cluster-management.io/v1beta1?"),
		unsupported("future_version", "apiVersion: addon.open-cluster-management.io/v1\nkind: AddOnTemplate\nmetadata: {name: x}\n", "no OCM serves this version; write addon.open-cluster-management.io/v1alpha1"),
		unsupported("template_in_beta", "apiVersion: addon.open-cluster-management.io/v1beta1\nkind: AddOnTemplate\nmetadata: {name: x}\n", "no OCM serves this version; write addon.open-cluster-management.io/v1alpha1"),
		unsupported("package_of_a_later_version", "apiVersion: addonflow.io/v2\nkind: AddOnPackage\nmetadata: {name: x}\n", "AddOnPackage"),
		unsupported("hub_config_of_a_later_version", "apiVersion: addon.open-cluster-management.io/v1beta1\nkind: AddOnHubConfig\nmetadata: {name: x}\n", "AddOnHubConfig"),
		unsupported("template_in_the_wrong_case", "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddonTemplate\nmetadata: {name: x}\n", "did you mean AddOnTemplate?"),
		unsupported("template_in_capitals", "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ADDONTEMPLATE\nmetadata: {name: x}\n", "did you mean AddOnTemplate?"),
		unsupported("config_in_the_wrong_case", "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddonDeploymentConfig\nmetadata: {name: x, namespace: y}\n", "did you mean AddOnDeploymentConfig?"),
		unsupported("wrong_case_of_a_version_nobody_serves", "apiVersion: addon.open-cluster-management.io/v99\nkind: AddonTemplate\nmetadata: {name: x}\n", "v99 AddonTemplate"),
		{
			"config_map_in_the_wrong_case",
			hello().edited(t, addOnFile, "  installStrategy:", "  - resource: configmaps\n  installStrategy:").with("x.yaml", "apiVersion: v1\nkind: Configmap\nmetadata: {name: x, namespace: y}\n"),
			one(flaw.ReasonUnsupportedKind, "x.yaml", "did you mean ConfigMap?"),
		},
		mistake(t, "manager_of_its_own", addOnFile, "  name: hello\nspec", "  name: hello\n  annotations: {addon.open-cluster-management.io/lifecycle: self}\nspec", render.ReasonNotSupported, "lifecycle", "manager of its own"),
		{"addon_manager", hello().edited(t, addOnFile, "  name: hello\nspec", "  name: hello\n  annotations: {addon.open-cluster-management.io/lifecycle: addon-manager}\nspec"), nil},
		{"taken_over", hello().edited(t, addOnFile, "  name: hello\nspec", "  name: hello\n  annotations: {addon.open-cluster-management.io/lifecycle: addonflow}\nspec"), nil},
		unsupported("config_map_nobody_lists", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\n", "v1 ConfigMap", "list configmaps in supportedConfigs"),
		unsupported("misspelt_group", "apiVersion: addons.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {name: x}\n", "did you mean addon.open-cluster-management.io/v1alpha1?"),
		unsupported("secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: y}\n", "it would be copied into every AddOnRevision; keep it on the managed clusters"),
		mistake(t, "secret_as_configuration", addOnFile, "  installStrategy:", "  - resource: secrets\n  installStrategy:", flaw.ReasonUnsupportedKind, "spec.supportedConfigs[2].resource", "Secret"),
		mistake(t, "approval_as_configuration", addOnFile, "  installStrategy:", "  - {group: addonflow.io, resource: addonapprovals}\n  installStrategy:", flaw.ReasonUnsupportedKind, "spec.supportedConfigs[2].resource", "addonflow.io"),
		unsupported("approval_from_git", "apiVersion: addonflow.io/v1alpha1\nkind: AddOnApproval\nmetadata: {name: x, namespace: y}\n", "addonflow.io/v1alpha1 AddOnApproval is not supported", "come from users on the hub, never from Git"),
		{
			"approval_that_an_add_on_lists",
			hello().edited(t, addOnFile, "  installStrategy:", "  - {group: addonflow.io, resource: addonapprovals}\n  installStrategy:").
				with("x.yaml", "apiVersion: addonflow.io/v1alpha1\nkind: AddOnApproval\nmetadata: {name: x, namespace: team}\n"),
			append(one(flaw.ReasonUnsupportedKind, "x.yaml", "AddOnApproval is not supported"), one(flaw.ReasonUnsupportedKind, addOnFile, "addonflow.io")...),
		},
		{
			"work_that_an_add_on_lists",
			hello().edited(t, addOnFile, "  installStrategy:", "  - {group: work.open-cluster-management.io, resource: manifestworks}\n  installStrategy:").
				with("x.yaml", "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: x, namespace: cluster1}\n"),
			append(one(flaw.ReasonUnsupportedKind, "x.yaml", "ManifestWork is not supported"), one(flaw.ReasonUnsupportedKind, addOnFile, "manifestworks.work.open-cluster-management.io cannot be a configuration")...),
		},
		mistake(t, "decision_as_configuration", addOnFile, "  installStrategy:", "  - {group: cluster.open-cluster-management.io, resource: placementdecisions}\n  installStrategy:", flaw.ReasonUnsupportedKind, "spec.supportedConfigs[2].resource", "placementdecisions"),
		mistake(t, "add_on_of_a_cluster_as_configuration", addOnFile, "  installStrategy:", "  - {group: addon.open-cluster-management.io, resource: managedclusteraddons}\n  installStrategy:", flaw.ReasonUnsupportedKind, "spec.supportedConfigs[2].resource", "managedclusteraddons"),
		mistake(t, "beta_add_on_with_alpha_fields", addOnFile, "management.io/v1alpha1\nkind: Cl", "management.io/v1beta1\nkind: Cl", flaw.ReasonUnknownField, "spec.supportedConfigs", "known fields: addOnMeta, defaultConfigs, installStrategy").followed(nothingListed("defaultConfigs")...),
		{
			"duplicate_object", hello().with("z/again.yaml", again),
			one(flaw.ReasonDuplicateObject, "z/again.yaml", "AddOnDeploymentConfig/agent", "is declared in "+configFile),
		},
		{
			"duplicate_in_another_version", hello().with("z/again.yaml", strings.Replace(again, "v1alpha1", "v1beta1", 1)),
			one(flaw.ReasonDuplicateObject, "z/again.yaml", "is declared in "+configFile),
		},
	}
}

func badReferences(t *testing.T) []badInput {
	t.Helper()
	return []badInput{
		mistake(t, "rollout_without_add_on", rolloutFile, "name: hello}", "name: helo}", flaw.ReasonReferenceNotFound, `declares no ClusterManagementAddOn "helo"`),
		mistake(t, "no_template_for_anyone", addOnFile, "    defaultConfig: {name: hello}\n", "", flaw.ReasonReferenceNotFound, "placement hello/everyone names no AddOnTemplate"),
		{
			"no_template_in_manual", hello().edited(t, addOnFile, "    defaultConfig: {name: hello}\n", "").edited(t, addOnFile, "type: Placements", "type: Manual"),
			one(flaw.ReasonReferenceNotFound, addOnFile, "no AddOnTemplate is named"),
		},
		mistake(t, "not_a_template_add_on", addOnFile, "resource: addontemplates\n    defaultConfig: {name: hello}", "resource: others", flaw.ReasonConfigurationUnsupported, "lists no addontemplates"),
		mistake(t, "unlisted_configuration", addOnFile, "  - group: addon.open-cluster-management.io\n    resource: addondeploymentconfigs\n", "", flaw.ReasonConfigurationUnsupported, "addondeploymentconfigs.addon.open-cluster-management.io is not supported for this add-on", "spec.installStrategy.placements[0].configs[0]"),
		{
			"template_of_another_add_on", hello().edited(t, templateFile, "addonName: hello", "addonName: other"),
			one(flaw.ReasonInvalidReference, addOnFile, `AddOnTemplate "hello" belongs to add-on "other"`),
		},
		mistake(t, "two_templates_for_one_placement", addOnFile, "      rolloutStrategy:", "      - {group: addon.open-cluster-management.io, resource: addontemplates, name: hello}\n      - {group: addon.open-cluster-management.io, resource: addontemplates, name: other}\n      rolloutStrategy:", flaw.ReasonInvalidReference, "spec.installStrategy.placements[0].configs[2]", `the placement has addontemplates.addon.open-cluster-management.io "hello" already`),
		mistake(t, "template_reference_with_namespace", addOnFile, "{name: hello}", "{name: hello, namespace: hello}", flaw.ReasonInvalidReference, "spec.supportedConfigs[0].defaultConfig.namespace", "cluster-scoped"),
		mistake(t, "config_reference_without_namespace", addOnFile, "namespace: hello, name: agent", "name: agent", flaw.ReasonInvalidReference, "spec.installStrategy.placements[0].configs[0].namespace", "is required"),
		mistake(t, "config_map_reference_without_namespace", addOnFile, "  installStrategy:", "  - {resource: configmaps, defaultConfig: {name: x}}\n  installStrategy:", flaw.ReasonInvalidReference, "spec.supportedConfigs[2].defaultConfig.namespace", "is required"),
		mistake(t, "sentinel_of_the_conversion", addOnFile, "{name: hello}", "{name: __reserved_no_default__}", flaw.ReasonInvalidReference, "spec.supportedConfigs[0].defaultConfig.name", "reserved by OCM"),
		{
			"long_name_of_an_add_on", renamed(t, strings.Repeat("a", 64)),
			[]complaint{
				{flaw.ReasonInvalidManifest, addOnFile, []string{"metadata.name: has 64 characters"}},
				{flaw.ReasonAddOnNotAllowed, templateFile, nil},
			},
		},
		mistake(t, "rollout_in_another_namespace", rolloutFile, "{name: hello}", "{name: hello, namespace: theirs}", flaw.ReasonCrossNamespaceReference, "metadata.namespace", "lives in the namespace of its AddOnSource, flow"),
		{
			"add_on_of_another_source", renamed(t, "theirs"),
			[]complaint{
				{flaw.ReasonAddOnNotAllowed, templateFile, []string{"spec.addonName"}},
				{flaw.ReasonAddOnNotAllowed, addOnFile, []string{`may not declare add-on "theirs"`, "hello, other"}},
			},
		},
		mistake(t, "same_placement_twice", addOnFile, "    placements:\n", "    placements:\n    - {namespace: hello, name: everyone}\n", flaw.ReasonDuplicatePlacement, "spec.installStrategy.placements[1]", "is there twice").followed(unset("GREETING")...),
		{
			"two_placements_may_overlap",
			hello().edited(t, addOnFile, "    placements:\n", "    placements:\n    - namespace: hello\n      name: some\n"+
				"      configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: hello, name: agent}]\n"),
			nil,
		},
	}
}

// renamed is hello under another name.
func renamed(t *testing.T, name string) tree {
	t.Helper()
	return hello().edited(t, addOnFile, "  name: hello\n", "  name: "+name+"\n").
		edited(t, templateFile, "addonName: hello", "addonName: "+name).
		edited(t, rolloutFile, "metadata: {name: hello}", "metadata: {name: "+name+"}")
}

// badStrategies are the paces that cannot be decoded, and those that can be decoded and are
// therefore left to rollout.Validate, whatever the CRD's patterns say.
func badStrategies(t *testing.T) []badInput {
	t.Helper()
	var rows []badInput
	for i, left := range []string{
		"maxConcurrency: 0", `maxConcurrency: "0%"`, "maxConcurrency: -1", `maxConcurrency: "101%"`, `maxConcurrency: "5.5%"`,
		"maxConcurrency: ten", `maxConcurrency: "10"`, `maxConcurrency: ""`, "maxFailures: 1000", `maxFailures: "200%"`,
		"progressDeadline: 5mX", "progressDeadline: 5|", "progressDeadline: xNone", "progressDeadline: 5d",
		"progressDeadline: -5m", "progressDeadline: 0s", "progressDeadline: 1h30m", "minSuccessTime: -5m",
	} {
		name := fmt.Sprintf("pace_left_to_the_planner_%02d", i)
		rows = append(rows, badInput{name, paced(t, left), nil})
	}
	for name, pace := range map[string]string{
		"quantity_fraction":  "maxConcurrency: 1.5",
		"quantity_huge":      "maxConcurrency: 1e10",
		"quantity_boolean":   "maxFailures: true",
		"deadline_no_string": "progressDeadline: 10",
		"soak_number":        "minSuccessTime: 5",
		"soak_days":          "minSuccessTime: 5d",
		"soak_missing_units": `minSuccessTime: "5"`,
	} {
		reason, field := flaw.ReasonInvalidRolloutStrategy, strings.SplitN(pace, ":", 2)[0]
		if field == minSuccessTimeField {
			reason = flaw.ReasonInvalidDuration
		}
		rows = append(rows, badInput{name, paced(t, pace), one(reason, addOnFile, "spec.installStrategy.placements[0].rolloutStrategy.progressive."+field)})
	}
	return append(rows,
		badInput{"soak_in_a_stage", hello().edited(t, rolloutFile, "10m", "5d"), one(flaw.ReasonInvalidDuration, rolloutFile, "spec.stages[0].minSuccessTime: 5d cannot be read")},
		badInput{"quantity_in_a_stage", hello().edited(t, rolloutFile, "maxConcurrency: 1", "maxConcurrency: 1.5"), one(flaw.ReasonInvalidRolloutStrategy, rolloutFile, "spec.stages[0].maxConcurrency: 1.5 cannot be read")},
		badInput{"soak_longer_than_a_duration", hello().edited(t, rolloutFile, "10m", "9999999h"), one(flaw.ReasonInvalidDuration, rolloutFile, "spec.stages[0].minSuccessTime: 9999999h cannot be read")},
		badInput{"strategy_two_strategies", paced(t, "maxConcurrency: 1").edited(t, addOnFile, "        progressive:", "        all: {}\n        progressive:"), nil},
		badInput{"strategy_unknown_type", hello().edited(t, addOnFile, "type: Progressive", "type: Sideways"), nil},
		badInput{"strategy_type_of_another_type", hello().edited(t, addOnFile, "type: Progressive", "type: 7"), one(flaw.ReasonInvalidType, addOnFile, "rolloutStrategy.type: must be a string; quote it")},
		badInput{"unknown_group_is_known_on_the_hub_only", paced(t, "mandatoryDecisionGroups: [{groupName: canarry}]"), nil},
		badInput{"target_in_git", hello().edited(t, rolloutFile, "  stages:", "  target: {source: a, revision: b, digest: c, commit: d}\n  stages:"), one(flaw.ReasonInvalidManifest, rolloutFile, "spec.target: is written by AddonFlow")},
	)
}

// paced is hello with one pace.
func paced(t *testing.T, pace string) tree {
	t.Helper()
	return hello().edited(t, addOnFile, "{maxConcurrency: 25%, minSuccessTime: 1h30m, progressDeadline: 10m}", "\n          "+pace)
}
