package demo

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/addonflow/addonflow/examples"
)

// Paths of the add-on in the repository; examples/source.yaml says path: addons.
const (
	addOnDir     = "addons/" + AddOn
	templateFile = addOnDir + "/addontemplate.yaml"
	rolloutFile  = addOnDir + "/addonrollout.yaml"
	// Stages of examples/hello.
	firstStage = "canary"
	lastStage  = "everyone"
	// imageName is the image of examples/hello, without its tag.
	imageName = "registry.example.com/hello"
	// exampleSoak is the soak that examples/hello declares, exampleTag its tag.
	exampleSoak = "minSuccessTime: 10m"
	exampleTag  = imageName + ":v1"
)

// Image is the image of a commit.
func Image(tag string) string { return imageName + ":" + tag }

// HelloTree is examples/hello as it is committed: with another image tag and a soak
// short enough to watch.
func HelloTree(tag string, soak time.Duration) (map[string]string, error) {
	tree := map[string]string{}
	err := fs.WalkDir(examples.Files, AddOn, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := examples.Files.ReadFile(name)
		tree[path.Join("addons", name)] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read examples/%s: %w", AddOn, err)
	}
	for _, edit := range []struct{ file, from, to string }{
		{templateFile, exampleTag, Image(tag)},
		{rolloutFile, exampleSoak, "minSuccessTime: " + soak.String()},
	} {
		if err := replaceOnce(tree, edit.file, edit.from, edit.to); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// replaceOnce replaces a text that a file has once.
func replaceOnce(tree map[string]string, file, from, to string) error {
	if strings.Count(tree[file], from) != 1 {
		return fmt.Errorf("cannot edit %s: it does not hold %q once", file, from)
	}
	tree[file] = strings.Replace(tree[file], from, to, 1)
	return nil
}

// measuredCanary is the gate of the first stage, approvedRest that of the last one.
const (
	measuredCanary = `    gates:
      during:
      - name: errors
        type: webhook
        interval: 1s
        failures: 2
        webhook:
          url: URL
          secretRef: {name: telemetry}
`
	approvedRest = `    gates:
      before:
      - name: qa
        type: approval
        approval:
          approvers: {users: [alice]}
`
)

// declareGates lets the add-on be measured while the canary soaks, wait for an approval before the
// other clusters, and roll back by itself.
func declareGates(tree map[string]string, service string) error {
	const last = "  - name: " + lastStage + "\n"
	if err := replaceOnce(tree, rolloutFile, last, strings.Replace(measuredCanary, "URL", service, 1)+last); err != nil {
		return err
	}
	tree[rolloutFile] += approvedRest
	return replaceOnce(tree, rolloutFile, "\nspec:\n", "\nspec:\n  onFailure: Rollback\n")
}

// BreakTemplate returns a template that uses a variable without a value, and its line.
func BreakTemplate(template string) (broken string, line int, err error) {
	const right, wrong = "{{GREETING}}", "{{GRETING}}"
	before, _, found := strings.Cut(template, right)
	if !found {
		return "", 0, fmt.Errorf("cannot break %s: it does not use %s", templateFile, right)
	}
	return strings.Replace(template, right, wrong, 1), strings.Count(before, "\n") + 1, nil
}
