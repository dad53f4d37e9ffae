package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/examples"
)

const root = ".."

// documents are the Markdown files by path below the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"README.md": text(t, "README.md")}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			found[name] = text(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// text reads a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// guideText is everything that tells a user how to use AddonFlow.
func guideText(t *testing.T) string {
	t.Helper()
	all := documents(t)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "docs/how-to/") || slices.Contains([]string{"docs/user-guide.md", "docs/troubleshooting.md", "docs/operating.md"}, name) {
			parts = append(parts, all[name])
		}
	}
	return strings.Join(parts, "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// dropped from a heading to make its anchor, as forges do.
	dropped   = regexp.MustCompile(`[^a-z0-9 -]`)
	yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)```")
)

func TestLinksLeadSomewhere(t *testing.T) {
	for name, content := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(content, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			linked := name
			if target != "" {
				linked = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, linked)); err != nil {
				t.Errorf("%s: %s leads nowhere", name, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(text(t, linked)), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, linked, anchor)
			}
		}
	}
}

func anchors(content string) []string {
	var out []string
	for _, match := range heading.FindAllStringSubmatch(content, -1) {
		out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return out
}

// TestGuideHasEveryField: of what a user declares with its path, of the rest by name.
func TestGuideHasEveryField(t *testing.T) {
	guide := guideText(t)
	explained := func(field string) {
		if !strings.Contains(guide, "`"+field+"`") && !strings.Contains(guide, "`"+field+"[]`") {
			t.Errorf("the user guide does not explain %s", field)
		}
	}
	for _, part := range []struct {
		prefix string
		of     any
		// apart are explained field by field.
		apart []string
	}{
		{"", v1alpha1.AddOnPackageSpec{}, nil},
		{"", v1alpha1.AddOnSourceSpec{}, []string{"ref", "commitStatus"}},
		{"ref.", v1alpha1.GitReference{}, nil},
		{"commitStatus.", v1alpha1.CommitStatusSpec{}, nil},
		{"", v1alpha1.AddOnSourceStatus{}, nil},
		{"", v1alpha1.AddOnRolloutSpec{}, []string{"stages", "health"}},
		{"health.", v1alpha1.Health{}, nil},
		{"health.healthCheckExprs[].", v1alpha1.HealthCheckExpr{}, nil},
		{"stages[].", v1alpha1.Stage{}, nil},
		{"", v1alpha1.AddOnRolloutStatus{}, nil},
		{"", v1alpha1.Counts{}, nil},
	} {
		for _, field := range jsonFields(reflect.TypeOf(part.of)) {
			if !slices.Contains(part.apart, field) {
				explained(part.prefix + field)
			}
		}
	}
}

// jsonFields are the names under which the fields of a struct are encoded.
func jsonFields(goType reflect.Type) []string {
	var names []string
	for field := range goType.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" {
			names = append(names, jsonFields(field.Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}

func TestGuideHasEveryReason(t *testing.T) {
	guide := guideText(t)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api/v1alpha1/conditions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		reason, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		reasons++
		if !strings.Contains(guide, reason) {
			t.Errorf("the user guide does not say what to do about %s", reason)
		}
		return true
	})
	if reasons == 0 {
		t.Error("found no reason in api/v1alpha1/conditions.go")
	}
}

var (
	namedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// cases of a test, or transcripts of TestScenarios, that a document names.
	namedCases = regexp.MustCompile(`\b(Test[A-Z]\w+) \(([^()]+)\)`)
	// specs of a suite that a document names by their text.
	namedSpec = regexp.MustCompile(`\b(addonsource|e2e|test/ocm|test/gitea) "([^"]+)"`)
)

// testSources are the test files, joined by directory, and the directory of each test.
func testSources(t *testing.T) (sources, tests map[string]string) {
	t.Helper()
	sources, tests = map[string]string{}, map[string]string{}
	for _, dir := range []string{"api", "cmd", "commitstatus", "controllers", "dashboard", "dial", "gates", "githubapp", "gitsource", "manifests", "oci", "proposal", "registration", "render", "rollout", "test"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, "_test.go") {
				content := text(t, name)
				sources[path.Dir(name)] += content
				for _, match := range testFunc.FindAllStringSubmatch(content, -1) {
					tests[match[1]] = path.Dir(name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sources, tests
}

func TestNamedTestsExist(t *testing.T) {
	sources, tests := testSources(t)
	for name, content := range documents(t) {
		for _, test := range namedTest.FindAllString(content, -1) {
			if tests[test] == "" {
				t.Errorf("%s names %s, which does not exist", name, test)
			}
		}
		for _, match := range namedCases.FindAllStringSubmatch(content, -1) {
			for c := range strings.SplitSeq(match[2], ", ") {
				if !hasCase(sources[tests[match[1]]], match[1], c) {
					t.Errorf("%s names the case %q of %s, which does not exist", name, c, match[1])
				}
			}
		}
		for _, match := range namedSpec.FindAllStringSubmatch(content, -1) {
			dir := map[string]string{"addonsource": "controllers/addonsource", "e2e": "test/e2e", "test/ocm": "test/ocm", "test/gitea": "test/gitea"}[match[1]]
			if !strings.Contains(sources[dir], `It("`+match[2]+`"`) {
				t.Errorf("%s names the spec %q, which does not exist in %s", name, match[2], dir)
			}
		}
	}
}

// TestEveryRowNamesItsTest: a row without a test is a claim. A threat may say that it is not held.
func TestEveryRowNamesItsTest(t *testing.T) {
	for name, least := range map[string]int{"docs/compatibility.md": 100, "docs/security.md": 50} {
		rows := 0
		for line := range strings.Lines(text(t, name)) {
			cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "/"), "|")
			if len(cells) < 4 || strings.Trim(cells[1], "- ") == "" || strings.TrimSpace(cells[len(cells)-2]) == "test" {
				continue
			}
			rows++
			last := cells[len(cells)-2]
			admitted := name == "docs/security.md" && strings.TrimSpace(last) == "not held"
			if !admitted && !namedTest.MatchString(last) && !namedSpec.MatchString(last) {
				t.Errorf("%s: no test in the last column: %s", name, line)
			}
		}
		if rows < least {
			t.Errorf("%s: found %d rows only", name, rows)
		}
	}
}

var (
	// heldIn is a path in the column "held in" of the promises: a file, or a package.
	heldIn = regexp.MustCompile(`\b[a-z]+(?:/[a-z]+)*\.go\b|\b[a-z]+(?:/[a-z]+)+\b|\b(?:addonsource|addonrollout|commitstatus|rollout)\b`)
	// quotedName is a function there, in the file or package named before it.
	quotedName = regexp.MustCompile("`([A-Za-z]+)`")
	declared   = regexp.MustCompile(`(?m)^func (?:\([^)]+\) )?(\w+)[(\[]`)
)

// TestEveryPromiseNamesTheCodeThatHoldsIt: every file, package and function in the column "held in" exists. A file without a
// directory is in the directory of the file before it.
func TestEveryPromiseNamesTheCodeThatHoldsIt(t *testing.T) {
	_, table, _ := strings.Cut(text(t, "docs/design.md"), "\n| promise | held in |")
	paths, functions := 0, 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.Trim(cells[2], "- ") == "" || strings.TrimSpace(cells[2]) == "held in" {
			continue
		}
		at, dir := "", "."
		for _, word := range regexp.MustCompile(heldIn.String()+"|"+quotedName.String()).FindAllString(cells[2], -1) {
			if name, isName := strings.CutPrefix(word, "`"); isName {
				functions++
				if name = strings.TrimSuffix(name, "`"); !slices.Contains(functionsOf(t, at), name) {
					t.Errorf("docs/design.md: %s has no function %s", at, name)
				}
				continue
			}
			paths++
			found := false
			for _, candidate := range []string{word, "controllers/" + word, path.Join(dir, word)} {
				if info, err := os.Stat(filepath.Join(root, candidate)); err == nil && !found {
					found, at, dir = true, candidate, candidate
					if !info.IsDir() {
						dir = path.Dir(candidate)
					}
				}
			}
			if !found {
				t.Errorf("docs/design.md names %s, which does not exist", word)
			}
		}
	}
	if paths < 40 || functions < 8 {
		t.Errorf("found %d paths and %d functions only", paths, functions)
	}
}

// TestAnswersOfArchitectureNameWhatTheLinkedFilesHave: a name in an answer is a word of a file that the answer links.
func TestAnswersOfArchitectureNameWhatTheLinkedFilesHave(t *testing.T) {
	_, table, _ := strings.Cut(text(t, "docs/architecture.md"), "\n## Questions\n")
	table, _, _ = strings.Cut(table, "\n## ")
	names := 0
	for line := range strings.Lines(table) {
		var linked strings.Builder
		for _, match := range link.FindAllStringSubmatch(line, -1) {
			if path.Ext(match[1]) == ".go" {
				linked.WriteString(text(t, path.Join("docs", match[1])))
			}
		}
		for _, match := range quotedName.FindAllStringSubmatch(line, -1) {
			names++
			if !regexp.MustCompile(`(?i)\b` + match[1] + `\b`).MatchString(linked.String()) {
				t.Errorf("docs/architecture.md: no file that the answer links has %s: %.80s", match[1], line)
			}
		}
	}
	if names < 30 {
		t.Errorf("found %d names only", names)
	}
}

// functionsOf are the functions and methods of a file or package.
func functionsOf(t *testing.T, at string) []string {
	t.Helper()
	files := []string{at}
	if path.Ext(at) != ".go" {
		found, err := fs.Glob(os.DirFS(root), at+"/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	}
	var names []string
	for _, name := range files {
		for _, match := range declared.FindAllStringSubmatch(text(t, name), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// TestEveryExampleOfAProposalHasARow: an example without a row was not judged.
func TestEveryExampleOfAProposalHasARow(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "test/proposals/testdata/*/*/case.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	content := text(t, "docs/compatibility.md")
	for _, found := range paths {
		dir := filepath.Dir(found)
		name := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
		if !regexp.MustCompile(`[( ]` + regexp.QuoteMeta(name) + `[,)]`).MatchString(content) {
			t.Errorf("no row of docs/compatibility.md names TestProposals (%s)", name)
		}
	}
}

// hasCase reports whether a test has a case whose name is or begins with the given one. The cases of TestProposals are
// directories, those of TestScenarios are transcripts.
func hasCase(source, test, name string) bool {
	if test == "TestProposals" {
		_, err := os.Stat(filepath.Join(root, "test/proposals/testdata", name, "case.yaml"))
		return err == nil
	}
	if test == "TestScenarios" {
		_, err := os.Stat(filepath.Join(root, "rollout/testdata", name+".golden"))
		return err == nil
	}
	return strings.Contains(source, `"`+name)
}

// TestReadmeExample: what a user copies from the README is a good source, and, with
// the other files of examples/hello, a good commit that differs from it in no field.
func TestReadmeExample(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text(t, "README.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d YAML blocks in the README, want source and rollout", len(blocks))
	}
	sameObject[v1alpha1.AddOnSource](t, blocks[0][1], "source.yaml", func(s *v1alpha1.AddOnSource) { s.Spec.Prune = false })
	sameObject[v1alpha1.AddOnRollout](t, blocks[1][1], "hello/addonrollout.yaml", func(*v1alpha1.AddOnRollout) {})
	tree := treeOf(t, "hello")
	tree["addonrollout.yaml"] = blocks[1][1]
	if problems := lint(t, tree); len(problems) > 0 {
		t.Errorf("the example is not a good commit:\n%v", problems)
	}
}

// TestGuideProblems: the guide's two lines are what lint says of these two mistakes.
func TestGuideProblems(t *testing.T) {
	tree := treeOf(t, "hello")
	tree["addonrollout.yaml"] = strings.Replace(tree["addonrollout.yaml"], "progressDeadline", "progressDeadlin", 1)
	tree["addontemplate.yaml"] = strings.Replace(tree["addontemplate.yaml"], "{{GREETING}}", "{{GRETING}}", 1)
	guide := guideText(t)
	problems := lint(t, tree)
	if len(problems) != 2 {
		t.Errorf("lint has %d problems, the guide two", len(problems))
	}
	for _, p := range problems {
		if line := "\n    addons/hello/" + p.String() + "\n"; !strings.Contains(guide, line) {
			t.Errorf("the guide has no line%s", line)
		}
	}
}

// TestGuideExamples: what a user copies from the guide is a good commit with the other files of
// examples/hello, or an object that the hub takes.
func TestGuideExamples(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(guideText(t), -1)
	policies := 0
	for _, match := range blocks {
		block := match[1]
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(block), &kind); err != nil && strings.HasPrefix(block, "apiVersion:") {
			t.Errorf("%v in\n%s", err, block)
		}
		switch kind.Kind {
		case "AddOnRollout":
			policies++
			tree := treeOf(t, "hello")
			tree["addonrollout.yaml"] = block
			if problems := lint(t, tree); len(problems) > 0 {
				t.Errorf("%v in\n%s", problems, block)
			}
		case "AddOnApproval", "AddOnOrder": // see TestObjectsInTheGuide_HaveOnlyFieldsOfTheirKinds
		case "Kustomization":
			strictly[types.Kustomization](t, block)
		case "Role":
			strictly[rbacv1.Role](t, block)
		case "ClusterRole":
			strictly[rbacv1.ClusterRole](t, block)
		case "Secret":
			strictly[corev1.Secret](t, block)
		default: // a part of an object
			field, _, _ := strings.Cut(block, ":")
			switch strings.TrimSpace(field) {
			case "health":
				strictly[v1alpha1.AddOnRolloutSpec](t, block)
			case "- apiVersion":
				strictly[[]batchv1.Job](t, block)
			default:
				t.Errorf("nothing judges\n%s", block)
			}
		}
	}
	if policies < 7 {
		t.Errorf("found %d AddOnRollouts only", policies)
	}
}

// TestObjectsInTheGuide_HaveOnlyFieldsOfTheirKinds: in README, guide and how-tos. A block without apiVersion is a part
// of an object and is skipped.
func TestObjectsInTheGuide_HaveOnlyFieldsOfTheirKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	found := map[string]int{}
	for name, content := range documents(t) {
		if name != "README.md" && name != "docs/user-guide.md" && !strings.HasPrefix(name, "docs/how-to/") {
			continue
		}
		for _, match := range yamlBlock.FindAllStringSubmatch(content, -1) {
			for document := range strings.SplitSeq(match[1], "\n---\n") {
				if !strings.Contains("\n"+document, "\napiVersion: "+v1alpha1.GroupVersion.String()+"\n") {
					continue
				}
				_, kind, err := decoder.Decode([]byte(document), nil, nil)
				if err != nil {
					t.Errorf("%s: %v in\n%s", name, err, document)
					continue
				}
				found[kind.Kind]++
			}
		}
	}
	for _, kind := range []string{"AddOnApproval", "AddOnOrder", "AddOnRollout", "AddOnSource"} {
		if found[kind] == 0 {
			t.Errorf("no example of %s", kind)
		}
	}
}

// strictly decodes a block without unknown fields.
func strictly[T any](t *testing.T, block string) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block), new(T)); err != nil {
		t.Errorf("%v in\n%s", err, block)
	}
}

// sameObject compares a document's block with an example, but for what may differ.
func sameObject[T any](t *testing.T, block, example string, but func(*T)) {
	t.Helper()
	content, err := examples.Files.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var got, want T
	if err := yaml.UnmarshalStrict([]byte(block), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, block)
	}
	if err := yaml.UnmarshalStrict(content, &want); err != nil {
		t.Fatal(err)
	}
	but(&want)
	if !reflect.DeepEqual(want, got) {
		t.Errorf("the README's block is not examples/%s:\n%s", example, block)
	}
}

// TestDocumentsAreShort: what is read from the first line to the last, or looked up, stays
// short enough for it.
func TestDocumentsAreShort(t *testing.T) {
	most := map[string]int{"README.md": 150, "docs/architecture.md": 120, "docs/design.md": 400}
	for name, content := range documents(t) {
		if decisionName.MatchString(name) {
			most[name] = 50
		}
		if lines := strings.Count(content, "\n"); most[name] > 0 && lines > most[name] {
			t.Errorf("%s has %d lines, at most %d", name, lines, most[name])
		}
	}
	if terms := strings.Count(text(t, "docs/concepts.md"), "\n| **"); terms == 0 || terms > 40 {
		t.Errorf("docs/concepts.md has %d terms, at most 40", terms)
	}
	for row := range strings.Lines(text(t, "docs/concepts.md")) {
		if term, meaning, _ := strings.Cut(strings.TrimPrefix(row, "| **"), "**"); term != row && (strings.Contains(term, ",") || strings.Contains(meaning, "*")) {
			t.Errorf("a row of docs/concepts.md defines more than one term: %s", row)
		}
	}
}

// TestForgesNameThePermissions: the table of forges has a row for each provider, with the permission that the condition
// CommitStatusDenied names.
func TestForgesNameThePermissions(t *testing.T) {
	schema := text(t, "api/v1alpha1/addonsource_types.go")
	_, enum, _ := strings.Cut(schema, "// Provider is the forge's API.\n\t// +kubebuilder:validation:Enum=")
	enum, _, _ = strings.Cut(enum, "\n")
	table := strings.ReplaceAll(text(t, "docs/how-to/forges.md"), "`", "")
	for provider := range strings.SplitSeq(enum, ";") {
		_, row, _ := strings.Cut(table, "\n| "+provider+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if permission := commitstatus.Permission(provider); permission == "" || !strings.Contains(row, "| "+permission) {
			t.Errorf("the row of %s does not say that the token needs %q: %s", provider, permission, row)
		}
	}
}

// TestWebhooksNameTheProofs: the table of webhooks has each type, with the headers that prove the sender.
func TestWebhooksNameTheProofs(t *testing.T) {
	table := text(t, "docs/how-to/webhooks.md")
	for kind, webhook := range commitstatus.Webhooks() {
		i := slices.IndexFunc(strings.Split(table, "\n"), func(row string) bool {
			types, proof, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			known := strings.HasPrefix(row, "| `") && slices.Contains(strings.Split(types, ", "), "`"+kind+"`")
			for _, header := range webhook.Signed {
				known = known && strings.Contains(proof, "`"+header.Name)
			}
			return known && strings.Contains(proof, webhook.Token) && (!webhook.Password || strings.Contains(proof, "basic authentication"))
		})
		if i < 0 {
			t.Errorf("docs/how-to/webhooks.md has no row of %s that names what proves the sender: %+v", kind, webhook)
		}
	}
}

// TestImagesAreSmall: a clone stays small, and every image is shown.
func TestImagesAreSmall(t *testing.T) {
	shown, total := "", int64(0)
	for _, content := range documents(t) {
		shown += content
	}
	entries, err := os.ReadDir(filepath.Join(root, "docs/images"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if !strings.Contains(shown, "images/"+entry.Name()+")") {
			t.Errorf("no document shows docs/images/%s", entry.Name())
		}
	}
	if total > 300<<10 {
		t.Errorf("docs/images has %d bytes", total)
	}
}

var decisionName = regexp.MustCompile(`^docs/decisions/(\d{4})-[a-z0-9-]+\.md$`)

func TestDecisionRecordsHaveTheRequiredSections(t *testing.T) {
	index := text(t, "docs/decisions/README.md")
	numbers := map[string]string{}
	for name, content := range documents(t) {
		if !strings.HasPrefix(name, "docs/decisions/") || name == "docs/decisions/README.md" {
			continue
		}
		match := decisionName.FindStringSubmatch(name)
		if match == nil {
			t.Errorf("%s is not named NNNN-title.md", name)
			continue
		}
		if other := numbers[match[1]]; other != "" {
			t.Errorf("%s and %s have one number", name, other)
		}
		numbers[match[1]] = name
		if !strings.Contains(index, "("+path.Base(name)+")") {
			t.Errorf("%s is not in the index", name)
		}
		for _, part := range []string{"\nStatus: ", "\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if !strings.Contains(content, part) {
				t.Errorf("%s has no %q", name, strings.TrimSpace(part))
			}
		}
	}
	for i := range len(numbers) {
		if number := strconv.Itoa(10001 + i)[1:]; numbers[number] == "" {
			t.Errorf("decision %s is missing", number)
		}
	}
	if len(numbers) > 25 {
		t.Errorf("there are %d decisions, at most 25: merge some, or delete those that no longer hold", len(numbers))
	}
}
