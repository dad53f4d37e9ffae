package manifests_test

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// served is a kind as the API server serves it.
type served struct {
	crd        apiextensionsv1.CustomResourceDefinition
	version    apiextensionsv1.CustomResourceDefinitionVersion
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// kinds compiles every CRD as the API server does.
func kinds(t *testing.T) map[string]served {
	t.Helper()
	out := map[string]served{}
	for _, crd := range allOf[apiextensionsv1.CustomResourceDefinition](t, "CustomResourceDefinition") {
		if len(crd.Spec.Versions) != 1 {
			t.Fatalf("%s has %d versions", crd.Name, len(crd.Spec.Versions))
		}
		s := served{crd: crd, version: crd.Spec.Versions[0]}
		props := &apiextensions.JSONSchemaProps{}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.version.Schema.OpenAPIV3Schema, props, nil)
		if err != nil {
			t.Fatalf("%s: %v", crd.Name, err)
		}
		if s.structural, err = structuralschema.NewStructural(props); err != nil {
			t.Fatalf("%s: %v", crd.Name, err)
		}
		if errs := structuralschema.ValidateStructural(nil, s.structural); len(errs) > 0 {
			t.Fatalf("%s is not structural: %v", crd.Name, errs.ToAggregate())
		}
		if s.schema, _, err = validation.NewSchemaValidator(props); err != nil {
			t.Fatalf("%s: %v", crd.Name, err)
		}
		s.rules = cel.NewValidator(s.structural, true, math.MaxInt32)
		out[crd.Spec.Names.Kind] = s
	}
	return out
}

// judge returns the API server's objections to an object, and to an update of old by it, unless
// old is nil.
func (s served) judge(t *testing.T, object, old map[string]any) string {
	t.Helper()
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.schema)
	var before any
	if old != nil {
		before = old
	}
	found, _ := s.rules.Validate(t.Context(), nil, s.structural, object, before, math.MaxInt64)
	if all := append(errs, found...).ToAggregate(); all != nil {
		return all.Error()
	}
	return ""
}

// decoded is a YAML document as the API server sees it.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(asJSON, &object); err != nil { // integers as int64, as the API server has them
		t.Fatal(err)
	}
	return object
}

func TestKindsAreServed(t *testing.T) {
	status := map[string]bool{}
	for kind, s := range kinds(t) {
		status[kind] = s.version.Subresources != nil && s.version.Subresources.Status != nil
		group, scope := v1alpha1.GroupVersion.Group, apiextensionsv1.NamespaceScoped
		if kind == hubconfigv1alpha1.AddOnHubConfigKind {
			group, scope = hubconfigv1alpha1.GroupVersion.Group, apiextensionsv1.ClusterScoped
		}
		if s.crd.Spec.Group != group || s.version.Name != v1alpha1.GroupVersion.Version || !s.version.Served || !s.version.Storage {
			t.Errorf("%s is not served and stored as %s/%s", kind, group, v1alpha1.GroupVersion.Version)
		}
		if s.crd.Spec.Scope != scope {
			t.Errorf("%s is %s, want %s", kind, s.crd.Spec.Scope, scope)
		}
		if !slices.Contains(s.crd.Spec.Names.Categories, "addonflow") || len(s.crd.Spec.Names.ShortNames) == 0 {
			t.Errorf("kubectl get addonflow does not list %s, or it has no short name", kind)
		}
	}
	want := map[string]bool{
		v1alpha1.AddOnSourceKind: true, v1alpha1.AddOnRolloutKind: true, v1alpha1.AddOnRevisionKind: false,
		v1alpha1.AddOnApprovalKind: false, v1alpha1.AddOnOrderKind: true, hubconfigv1alpha1.AddOnHubConfigKind: false,
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("kinds, and whether they have a status subresource (-want +got):\n%s", diff)
	}
}

// TestSchemasHaveTheFieldsOfTheTypes compares the schemas with the Go types, field by field: a
// missing field would be pruned from every write of the operator.
func TestSchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	types := map[string]any{
		v1alpha1.AddOnSourceKind:   v1alpha1.AddOnSource{},
		v1alpha1.AddOnRolloutKind:  v1alpha1.AddOnRollout{},
		v1alpha1.AddOnRevisionKind: v1alpha1.AddOnRevision{},
		v1alpha1.AddOnApprovalKind: v1alpha1.AddOnApproval{},
		v1alpha1.AddOnOrderKind:    v1alpha1.AddOnOrder{},

		hubconfigv1alpha1.AddOnHubConfigKind: hubconfigv1alpha1.AddOnHubConfig{},
	}
	for kind, s := range kinds(t) {
		sameFields(t, kind, reflect.TypeOf(types[kind]), *s.version.Schema.OpenAPIV3Schema)
	}
}

func sameFields(t *testing.T, at string, goType reflect.Type, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	marshals := reflect.PointerTo(goType).Implements(reflect.TypeFor[json.Marshaler]())
	switch {
	case strings.HasSuffix(at, ".metadata"), marshals:
	case goType.Kind() == reflect.Slice && schema.Items != nil:
		sameFields(t, at+"[]", goType.Elem(), *schema.Items.Schema)
	case goType.Kind() == reflect.Struct:
		fields := jsonFields(goType)
		want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(schema.Properties))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-type +schema):\n%s", at, diff)
		}
		for name, field := range fields {
			sameFields(t, at+"."+name, field, schema.Properties[name])
		}
	}
}

// jsonFields returns the fields of a struct by the names they are encoded under.
func jsonFields(goType reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range goType.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" || field.Anonymous && name == "" {
			maps.Copy(fields, jsonFields(field.Type))
			continue
		}
		fields[name] = field.Type
	}
	return fields
}

// TestRevisionIsImmutable uses bodies with a slash and a plus in them, as most have: with
// format byte, CEL would read them with another alphabet and refuse every update.
func TestRevisionIsImmutable(t *testing.T) {
	s := kinds(t)[v1alpha1.AddOnRevisionKind]
	digest := "v1:sha256:" + strings.Repeat("ab", 32)
	object := func(body, annotation string) map[string]any {
		return decoded(t, "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRevision\nmetadata: {name: hello-ab, annotations: {a: "+annotation+
			"}}\nspec: {addOn: hello, digest: '"+digest+"', body: "+body+"}\n")
	}
	first := object("H4sI/+8=", "x")
	if got := s.judge(t, first, nil); got != "" {
		t.Errorf("a revision is refused: %s", got)
	}
	if got := s.judge(t, object("H4sI/+8=", "y"), first); got != "" {
		t.Errorf("a new annotation is refused: %s", got)
	}
	if got := s.judge(t, object("H4sI/+9=", "x"), first); !strings.Contains(got, "an AddOnRevision is immutable") {
		t.Errorf("another body is not refused: %q", got)
	}
}

func TestApprovalIsImmutable(t *testing.T) {
	s := kinds(t)[v1alpha1.AddOnApprovalKind]
	object := func(decision, annotation string) map[string]any {
		return decoded(t, "apiVersion: addonflow.io/v1alpha1\nkind: AddOnApproval\nmetadata: {name: a, annotations: {a: "+annotation+
			"}}\nspec: {rolloutUID: u, rollout: hello, stage: fleet, gate: qa, digest: 'v1:sha256:"+strings.Repeat("ab", 32)+
			"', attempt: 1, decision: "+decision+", approver: alice, groups: [qa]}\n")
	}
	first := object("Approve", "x")
	if got := s.judge(t, first, nil); got != "" {
		t.Errorf("an approval is refused: %s", got)
	}
	if got := s.judge(t, object("Approve", "y"), first); got != "" {
		t.Errorf("a new annotation is refused: %s", got)
	}
	if got := s.judge(t, object("Reject", "x"), first); !strings.Contains(got, "an AddOnApproval is immutable") {
		t.Errorf("another decision is not refused: %q", got)
	}
	if got := s.judge(t, object("Perhaps", "x"), nil); !strings.Contains(got, "spec.decision") {
		t.Errorf("an unknown decision is not refused: %q", got)
	}
}

func TestSchemasRefuse(t *testing.T) {
	source := "apiVersion: addonflow.io/v1alpha1\nkind: AddOnSource\nmetadata: {name: fleet}\nspec: "
	rollout := "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\nspec: "
	stage := "{name: canary, placement: {namespace: default, name: canary}"
	cases := map[string]struct {
		text string
		// want is part of the refusal; "" for a valid update.
		want string
	}{
		"source":                      {source + "{url: 'https://git.example.com/team/fleet.git', interval: 1m}", ""},
		"credentials in the URL":      {source + "{url: 'https://me:secret@git.example.com/fleet', interval: 1m}", "spec.url"},
		"SSH":                         {source + "{url: 'ssh://git@git.example.com:2222/fleet', interval: 1m}", ""},
		"SSH in short":                {source + "{url: 'git@git.example.com:team/fleet.git', interval: 1m}", ""},
		"a password for SSH":          {source + "{url: 'ssh://git:secret@git.example.com/fleet', interval: 1m}", "spec.url"},
		"a file":                      {source + "{url: 'file:///etc/fleet', interval: 1m}", "spec.url"},
		"unknown signature":           {source + "{url: 'https://git.example.com/fleet', interval: 1m, verify: {mode: Some, secretRef: {name: keys}}}", "spec.verify.mode"},
		"unknown provider":            {source + "{url: 'https://git.example.com/fleet', interval: 1m, provider: azure}", "spec.provider"},
		"no interval":                 {source + "{url: 'https://git.example.com/fleet'}", "spec.interval: Required"},
		"timeout above the maximum":   {source + "{url: 'https://git.example.com/fleet', interval: 1m, timeout: 601s}", "timeout must be at most 10m"},
		"interval of a second":        {source + "{url: 'https://git.example.com/fleet', interval: 1s}", "interval must be at least 10s"},
		"interval in days":            {source + "{url: 'https://git.example.com/fleet', interval: 1d}", "spec.interval"},
		"short commit":                {source + "{url: 'https://git.example.com/fleet', interval: 1m, ref: {commit: abc1234}}", "spec.ref.commit"},
		"unknown forge":               {source + "{url: 'https://git.example.com/fleet', interval: 1m, commitStatus: {provider: gerrit, address: 'https://g.example.com/a/b'}}", "spec.commitStatus.provider"},
		"unknown detail":              {source + "{url: 'https://git.example.com/fleet', interval: 1m, commitStatus: {provider: gitlab, address: 'https://g.example.com/a/b', detail: cluster}}", "spec.commitStatus.detail"},
		"rollout":                     {rollout + "{stages: [" + stage + "}]}", ""},
		"empty rollout":               {rollout + "{}", ""},
		"strategy and stages":         {rollout + "{strategy: {type: All}, stages: [" + stage + "}]}", "strategy and stages exclude each other"},
		"unknown strategy":            {rollout + "{strategy: {type: Sideways}}", "spec.strategy.type"},
		"stage without placement":     {rollout + "{stages: [{name: canary}]}", "spec.stages[0].placement: Required"},
		"stage name with a slash":     {rollout + "{stages: [{name: a/b, placement: {namespace: a, name: b}}]}", "spec.stages[0].name"},
		"stage with a soak in days":   {rollout + "{stages: [" + stage + ", minSuccessTime: 5d}]}", "spec.stages[0].minSuccessTime"},
		"pace with a soak in days":    {rollout + "{strategy: {type: Progressive, progressive: {minSuccessTime: 5d}}}", "progressive.minSuccessTime must be a duration"},
		"failures before a stage":     {rollout + "{stages: [" + stage + ", gates: {before: [{name: hook, type: webhook, webhook: {url: 'https://x.example.com'}, failures: 3}]}}]}", "failures and errorAfter are for a gate in during"},
		"negative history":            {rollout + "{revisionHistoryLimit: -1}", "spec.revisionHistoryLimit"},
		"placement without namespace": {rollout + "{stages: [{name: canary, placement: {namespace: '', name: canary}}]}", "spec.stages[0].placement.namespace"},
	}
	all := kinds(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := decoded(t, c.text)
			kind, _ := object["kind"].(string)
			got := all[kind].judge(t, object, nil)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("refused with %q, want %q", got, c.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	all := kinds(t)
	cases := []struct{ kind, text, want string }{
		{v1alpha1.AddOnSourceKind, "spec: {url: u, interval: 1m}", "spec: {url: u, interval: 1m, timeout: 60s}"},
		{v1alpha1.AddOnRolloutKind, "spec: {}", "spec: {revisionHistoryLimit: 10}"},
		{v1alpha1.AddOnRolloutKind, "spec: {strategy: {}}", "spec: {revisionHistoryLimit: 10, strategy: {type: All}}"},
	}
	for _, c := range cases {
		got := decoded(t, c.text)
		defaulting.Default(got, all[c.kind].structural)
		if diff := cmp.Diff(decoded(t, c.want), got); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", c.kind, c.text, diff)
		}
	}
}
