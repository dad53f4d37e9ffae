package load

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// digestOf loads a tree and returns the digest of its add-on hello.
func digestOf(tb testing.TB, f tree) string {
	tb.Helper()
	for _, addOn := range load(tb, f, nil).AddOns {
		if addOn.Name == "hello" {
			return addOn.Digest
		}
	}
	tb.Fatal("the commit declares no add-on hello")
	return ""
}

// TestDigestGolden fails if the canonical form changes. Then the version in digestVersion must
// change, too; see there.
func TestDigestGolden(t *testing.T) {
	const want = "v1:sha256:e7c9601769d70eca7597e8d34163564ea768a8ab44e4f1fdaba26b35907f69b0"
	if got := digestOf(t, hello()); got != want {
		t.Errorf("digest is %s, was %s: every revision of every add-on would get a new name", got, want)
	}
}

func TestDigestIgnoresOrder(t *testing.T) {
	want := digestOf(t, hello())
	rapid.Check(t, func(r *rapid.T) {
		// Fields of an object are maps, whose order also differs in each run.
		objects := rapid.Permutation(hello().objects(t)).Draw(r, "objects")
		commit, problems := Load(objects, nil, Options{Charts: chart.InProcess{}})
		if len(problems) > 0 || commit.AddOns[0].Digest != want {
			r.Fatalf("digest is %s, want %s; problems %v", commit.AddOns[0].Digest, want, problems)
		}
	})
}

// TestDigestFollowsContent lists what is content and what is policy.
func TestDigestFollowsContent(t *testing.T) {
	start := hello()
	before := digestOf(t, start)
	cases := map[string]struct {
		commit  tree
		content bool
	}{
		"Comment":           {start.edited(t, templateFile, "spec:\n  addonName", "# greets\nspec:\n  addonName"), false},
		"FileMoved":         {start.with(templateFile, "").with("elsewhere.yaml", start[templateFile]), false},
		"VersionBeta":       {start.edited(t, configFile, "management.io/v1alpha1", "management.io/v1beta1"), false},
		"DefaultWritten":    {start.edited(t, templateFile, "    workload:", "    deleteOption: null\n    workload:"), false},
		"LabelOfATemplate":  {start.edited(t, templateFile, "  name: hello\n", "  name: hello\n  labels: {a: b}\n"), false},
		"Pace":              {start.edited(t, addOnFile, "25%", "50%"), false},
		"StrategyType":      {start.edited(t, addOnFile, "type: Progressive\n        progressive: {maxConcurrency: 25%, minSuccessTime: 1h30m, progressDeadline: 10m}", "type: All"), false},
		"Stages":            {start.edited(t, rolloutFile, "maxConcurrency: 1", "maxConcurrency: 2"), false},
		"NoRollout":         {start.with(rolloutFile, ""), false},
		"DisplayName":       {start.edited(t, addOnFile, "displayName: Hello", "displayName: Hi"), false},
		"Image":             {start.edited(t, templateFile, "agent:v1", "agent:v2"), true},
		"ManifestOrder":     {start.edited(t, templateFile, `args: ["--greeting={{GREETING}}", "--cluster={{CLUSTER_NAME}}"]`, `args: ["--cluster={{CLUSTER_NAME}}", "--greeting={{GREETING}}"]`), true},
		"Registration":      {start.edited(t, templateFile, "clusterRoleName: hello-agent", "clusterRoleName: other"), true},
		"Value":             {start.edited(t, configFile, "value: hello", "value: hi"), true},
		"TemplateName":      {start.edited(t, templateFile, "  name: hello\n", "  name: hello-v2\n").edited(t, addOnFile, "{name: hello}", "{name: hello-v2}"), true},
		"ConfigName":        {start.edited(t, configFile, "name: agent", "name: agents").edited(t, addOnFile, "name: agent}", "name: agents}"), true},
		"PlacementAssigned": {start.edited(t, addOnFile, "name: everyone\n", "name: anyone\n"), true},
		"SupportedKind":     {start.edited(t, addOnFile, "  installStrategy:", "  - resource: configmaps\n  installStrategy:"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if changed := digestOf(t, c.commit) != before; changed != c.content {
				t.Errorf("digest changed: %v, want %v", changed, c.content)
			}
		})
	}
}

// TestPlacementWithoutConfigsIsPolicy adds such a placement to an add-on that has defaults for
// everything.
func TestPlacementWithoutConfigsIsPolicy(t *testing.T) {
	start := hello().edited(t, addOnFile, "addondeploymentconfigs\n", "addondeploymentconfigs\n    defaultConfig: {namespace: hello, name: agent}\n")
	more := start.edited(t, addOnFile, "    placements:\n", "    placements:\n    - {namespace: hello, name: more}\n")
	manual := start.edited(t, addOnFile, "type: Placements", "type: Manual")
	for name, changed := range map[string]tree{"placement": more, "install type": manual} {
		if digestOf(t, start) != digestOf(t, changed) {
			t.Errorf("another %s changes the digest", name)
		}
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	content := load(t, hello(), nil).AddOns[0].Content
	body, err := content.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := content.Encode()
	if err != nil || !bytes.Equal(body, again) {
		t.Errorf("encoding is not deterministic (%v)", err)
	}
	decoded, err := render.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content, decoded); diff != "" {
		t.Errorf("decoded (-content +decoded):\n%s", diff)
	}
}
