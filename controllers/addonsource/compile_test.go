package addonsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
)

// built returns the objects of a directory with the given files, and why some could not be
// read.
func built(t *testing.T, files map[string]string) ([]gitsource.Object, problem.List) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Build(t.Context(), gitsource.BuildOptions{})
}

const (
	compiledAddOn = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: hello
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig:
      name: hello
  installStrategy:
    type: Placements
    placements:
    - namespace: default
      name: all
      rolloutStrategy:
        type: Progressive
        progressive:
          maxConcurrency: 10%
`
	compiledTemplate = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: hello
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: hello
          namespace: open-cluster-management-agent-addon
`
	compiledRollout = `apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata:
  name: hello
spec:
  stages:
  - name: canary
    placement:
      namespace: default
      name: canary
    maxConcurrency: 1
`
)

// TestAddressesThatOnlyAFlagAllowsAreWarnings: lint does not know the flags of the operator.
func TestAddressesThatOnlyAFlagAllowsAreWarnings(t *testing.T) {
	for address, want := range map[string]string{
		"https://prometheus.example.com": "",
		"http://prometheus.example.com":  "r.yaml:29: AddOnRollout/hello: spec.stages[0].gates.during[0].prometheus.address: cannot use the address: it is not https; the operator's flag --gate-allow-http allows http\n",
		"https://169.254.169.254":        "r.yaml:29: AddOnRollout/hello: spec.stages[0].gates.during[0].prometheus.address: 169.254.169.254 " + dial.ErrLocal.Error() + "; the operator's flag --gate-allow-loopback allows it\n",
	} {
		objects, unread := built(t, map[string]string{
			"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + strings.Replace(compiledGates, "https://prometheus.example.com", address, 1),
		})
		commit, problems := Compile(objects, load.Lookup{}, CompileOptions{Unread: unread})
		got := ""
		for _, w := range HubWarnings(objects, commit) {
			got += w.String() + "\n"
		}
		if len(problems) > 0 || got != want {
			t.Errorf("%s: %v\n%s", address, problems, got)
		}
	}
}

// TestWindowThatNeverClosesIsAWarning: the gate is accepted, and is probably a mistake.
func TestWindowThatNeverClosesIsAWarning(t *testing.T) {
	const office = `          allow:
          - {weekdays: [Mon, Tue], hours: "09:00-17:00"}
`
	const warned = "r.yaml:21: AddOnRollout/hello: spec.stages[0].gates.before[1].window: the window never closes, so that the gate holds no cluster\n"
	for times, want := range map[string]string{
		office:                  "",
		"":                      warned,
		"          allow: []\n": warned,
		"          allow: [{hours: \"00:00-24:00\"}]\n": warned,
		"          exclude: [{weekdays: [Sun]}]\n":      "",
	} {
		objects, unread := built(t, map[string]string{
			"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + strings.Replace(compiledGates, office, times, 1),
		})
		commit, problems := Compile(objects, load.Lookup{}, CompileOptions{Unread: unread, Now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)})
		got := ""
		for _, w := range commit.Warnings {
			if strings.HasSuffix(w.Field, ".window") {
				got += w.String() + "\n"
			}
		}
		if len(problems) > 0 || got != want {
			t.Errorf("%q: %v\n%s", times, problems, got)
		}
	}
}

// compiledGates are the gates of the stage of compiledRollout.
const compiledGates = `    gates:
      before:
      - name: qa
        type: approval
        approval:
          approvers: {users: [ann]}
          count: 1
      - name: office
        type: window
        window:
          timeZone: Europe/Berlin
          allow:
          - {weekdays: [Mon, Tue], hours: "09:00-17:00"}
      during:
      - name: errors
        type: prometheus
        interval: 30s
        prometheus: {address: "https://prometheus.example.com", query: "sum(errors{$moved})", max: 0.1}
`

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		allow  []string
		want   []string
	}{
		"Good": {
			reason: "nothing is wrong",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout},
		},
		"WrittenZero": {
			reason: "a 0 that was written is not the default, and is said once",
			files:  map[string]string{"a.yaml": strings.Replace(compiledAddOn, "maxConcurrency: 10%", "maxConcurrency: 0", 1), "t.yaml": compiledTemplate},
			want:   []string{"a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0].rolloutStrategy.progressive.maxConcurrency: 0"},
		},
		"BadStage": {
			reason: "a stage is positioned in the file of the rollout",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxConcurrency: 150%", 1)},
			want:   []string{"r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: "},
		},
		"WrittenOtherwise": {
			reason: "YAML reads 025 as 21, 25.0 as 25 and 1e1 as 10: the author may mean something else",
			files: map[string]string{
				"a.yaml": strings.Replace(compiledAddOn, "maxConcurrency: 10%", "maxConcurrency: 025\n          maxFailures: 1e1", 1),
				"t.yaml": compiledTemplate, "r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxConcurrency: 25.0", 1),
			},
			want: []string{
				"a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0].rolloutStrategy.progressive.maxConcurrency: YAML reads 025 as 21; write a whole number in plain digits",
				"a.yaml:20: ClusterManagementAddOn/hello: spec.installStrategy.placements[0].rolloutStrategy.progressive.maxFailures: YAML reads 1e1 as 10",
				"r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: YAML reads 25.0 as 25",
			},
		},
		"Gates": {
			reason: "one of each type",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + compiledGates},
		},
		"BadGates": {
			reason: "what no fleet can pass is refused at its line",
			files: map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + strings.NewReplacer(
				"count: 1", "count: 3", "Europe/Berlin", "Europe/Bern", "interval: 30s", "interval: 30ms", "name: errors", "name: qa",
			).Replace(compiledGates)},
			want: []string{
				"r.yaml:18: AddOnRollout/hello: spec.stages[0].gates.before[0].approval.count: needs 3 approvals, more than the listed users (1)",
				`r.yaml:21: AddOnRollout/hello: spec.stages[0].gates.before[1].window: unknown time zone "Europe/Bern"`,
				"r.yaml:26: AddOnRollout/hello: spec.stages[0].gates.during[0].name: gate \"qa\" is listed twice in this stage",
				"r.yaml:28: AddOnRollout/hello: spec.stages[0].gates.during[0].interval: 30ms: must be at least 1s",
			},
		},
		"GateThatIsNeverMeasured": {
			reason: "no operator calls such an address, whatever its flags",
			files: map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout +
				strings.Replace(compiledGates, "https://prometheus.example.com", "https://ann:pw@prometheus.example.com", 1)},
			want: []string{"r.yaml:29: AddOnRollout/hello: spec.stages[0].gates.during[0].prometheus.address: cannot use the address: it contains user information; credentials belong in the Secret"},
		},
		"GateThatIsTooLong": {
			reason: "a text in the form of a duration is reported as too long",
			files: map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout +
				strings.Replace(compiledGates, "interval: 30s", "interval: 9999999h", 1)},
			want: []string{"r.yaml:28: AddOnRollout/hello: spec.stages[0].gates.during[0].interval: "},
		},
		"TooLong": {
			reason: "a text in the form of a duration is reported as too long",
			files: map[string]string{
				"a.yaml": compiledAddOn, "t.yaml": compiledTemplate,
				"r.yaml": compiledRollout + "    minSuccessTime: 9999999h\n    progressDeadline: 9999999h\n",
			},
			want: []string{
				"r.yaml:12: AddOnRollout/hello: spec.stages[0].minSuccessTime: \"9999999h\": is longer than a duration can be",
				`r.yaml:13: AddOnRollout/hello: spec.stages[0].progressDeadline: "9999999h": is longer than a duration can be`,
			},
		},
		"InOneObject": {
			reason: "an unknown field hides nothing of a policy, and comes before what it may be the cause of",
			files: map[string]string{
				"a.yaml": compiledAddOn, "t.yaml": compiledTemplate,
				"r.yaml": compiledRollout + "  - name: Everyone\n    placement: {namespace: default, name: all}\n  - name: last\n    placment: {namespace: default, name: all}\n  suspnd: true\n",
			},
			want: []string{
				"r.yaml:15: AddOnRollout/hello: spec.stages[2].placment: unknown field; did you mean placement?",
				"r.yaml:16: AddOnRollout/hello: spec.suspnd: unknown field; did you mean suspend?",
				"r.yaml:12: AddOnRollout/hello: spec.stages[1].name: ",
				"r.yaml:14: AddOnRollout/hello: spec.stages[2].placement: ",
			},
		},
		"All": {
			reason: "every problem is listed, by step and file",
			files: map[string]string{
				"a.yaml": strings.Replace(compiledAddOn, "maxConcurrency: 10%", "maxConcurrency: -1", 1),
				"t.yaml": compiledTemplate + "        data:\n          greeting: '{{MISSING}}'\n",
				"r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxFailures: many", 1),
			},
			want: []string{"a.yaml:19: ", "r.yaml:11: ", "t.yaml:16: "},
		},
		"NotAllowed": {
			reason: "a source declares only what it may",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate},
			allow:  []string{"other"},
			want:   []string{"a.yaml:4: ClusterManagementAddOn/hello: metadata.name", "t.yaml:6: "},
		},
		"Unreadable": {
			reason: "what can be read is judged beside what cannot",
			files: map[string]string{
				"a.yaml": compiledAddOn,
				"b.yaml": "a: b\n  c: d\n",
				"r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxConcurrency: 150%", 1),
				"t.yaml": compiledTemplate + "        data:\n          greeting: '{{MISSING}}'\n",
			},
			want: []string{"b.yaml:2: ", "r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: ", "t.yaml:16: AddOnTemplate/hello: "},
		},
		"UnreadableAddOn": {
			reason: "what cannot be read comes first: the rollout and the kinds that the add-on lists are wrong for want of it",
			files: map[string]string{
				"a.yaml": compiledAddOn + "\t\n", "t.yaml": compiledTemplate, "r.yaml": compiledRollout,
				"c.yaml": "apiVersion: example.com/v1\nkind: Tuning\nmetadata:\n  name: a\n",
				"s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: b\n",
			},
			want: []string{
				"a.yaml:20: ", "c.yaml:1: Tuning/a: example.com/v1 Tuning is not supported", "s.yaml:1: Secret/a: a Secret cannot be a configuration",
				`r.yaml:4: AddOnRollout/hello: metadata.name: the commit declares no ClusterManagementAddOn "hello"`,
			},
		},
		"UnreadableTemplate": {
			reason: "a reference to what cannot be read is neither wrong nor waited for",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate + "\t\n", "r.yaml": compiledRollout},
			want:   []string{"t.yaml:15: "},
		},
		"Dependency": {
			reason: "an add-on may depend on one that only the hub has",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + "  dependsOn:\n  - addOn: base\n    optional: true\n"},
		},
		"DependencyCycle": {
			reason: "add-ons that wait for each other are named at each of them",
			files: map[string]string{
				"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + "  dependsOn:\n  - addOn: log\n  - addOn: base\n",
				"ba.yaml": strings.ReplaceAll(compiledAddOn, "hello", "base"), "bt.yaml": strings.ReplaceAll(compiledTemplate, "hello", "base"),
				"br.yaml": strings.ReplaceAll(compiledRollout, "hello", "base") + "  dependsOn:\n  - addOn: hello\n",
			},
			want: []string{
				"br.yaml:13: AddOnRollout/base: spec.dependsOn[0].addOn: the add-ons wait for each other: base -> hello -> base; remove one of them from dependsOn",
				"r.yaml:14: AddOnRollout/hello: spec.dependsOn[1].addOn: the add-ons wait for each other: hello -> base -> hello",
			},
		},
		"OwnDependency": {
			reason: "an add-on that waits for itself waits for ever",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + "  dependsOn:\n  - addOn: hello\n"},
			want:   []string{"r.yaml:13: AddOnRollout/hello: spec.dependsOn[0].addOn: "},
		},
		"DependencyTwice": {
			reason: "of two entries one may be optional",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout + "  dependsOn:\n  - addOn: base\n  - addOn: base\n    optional: true\n"},
			want:   []string{"r.yaml:14: AddOnRollout/hello: spec.dependsOn[1]"},
		},
		"Twice": {
			reason: "an object that is declared twice is said once",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "u.yaml": compiledTemplate},
			want:   []string{"u.yaml:1: AddOnTemplate/hello: already declared in t.yaml:1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, unread := built(t, c.files)
			commit, problems := Compile(objects, load.Lookup{}, CompileOptions{Unread: unread, Options: load.Options{AllowedAddOns: c.allow}})
			if len(problems) != len(c.want) {
				t.Fatalf("%s: got %d problems, want %d:\n%s", c.reason, len(problems), len(c.want), problems.Error())
			}
			for i, prefix := range c.want {
				if got := problems[i].String(); !strings.HasPrefix(got, prefix) {
					t.Errorf("%s: problem %d is %q, want it to begin with %q", c.reason, i, got, prefix)
				}
			}
			if len(unread) > 0 && len(commit.Missing) > 0 {
				t.Errorf("%s: waits for %v", c.reason, commit.Missing)
			}
			if len(c.want) == 0 && (len(commit.AddOns) != 1 || commit.AddOns[0].Digest == "" || len(commit.Missing) > 0) {
				t.Errorf("%s: got %+v", c.reason, commit)
			}
		})
	}
}

// TestFormattingDoesNotChangeContent: a byte order mark, Windows line ends, quotes, comments, or building
// with kustomize do not change the content, so that nothing is rolled out.
func TestFormattingDoesNotChangeContent(t *testing.T) {
	const block = "        data:\n          text: |\n            one\n            two\n"
	template := compiledTemplate + block
	digest := func(files map[string]string) string {
		t.Helper()
		objects, problems := built(t, files)
		commit, more := Compile(objects, nil, CompileOptions{Unread: problems})
		if len(more) > 0 || len(commit.AddOns) != 1 {
			t.Fatalf("%d add-ons, problems %v", len(commit.AddOns), more)
		}
		return commit.AddOns[0].Digest
	}
	windows := func(text string) string { return "\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n") }
	want := digest(map[string]string{"addon.yaml": compiledAddOn, "template.yaml": template})
	for name, files := range map[string]map[string]string{
		"byte order mark and CRLF": {"addon.yaml": windows(compiledAddOn), "template.yaml": windows(template)},
		"the same, kustomized": {
			"addon.yaml": windows(compiledAddOn), "template.yaml": windows(template), "kustomization.yaml": windows("resources:\n- addon.yaml\n- template.yaml\n"),
		},
		"comments and one file": {"all.yaml": "# first\n" + compiledAddOn + "---\n# second\n" + template},
		"quotes":                {"addon.yaml": compiledAddOn, "template.yaml": strings.Replace(template, "|\n            one\n            two\n", "\"one\\ntwo\\n\"\n", 1)},
	} {
		if got := digest(files); got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
	}
	if got := digest(map[string]string{"addon.yaml": compiledAddOn, "template.yaml": strings.Replace(template, "two", "three", 1)}); got == want {
		t.Error("other content has the same digest")
	}
}
