package demo

import (
	"errors"
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

const (
	// approvedRest is the gate of the last stage, measuredCanary that of the first one.
	approvedRest = `    gates:
      before:
      - name: qa
        type: approval
        approval:
          approvers: {users: [alice]}
`
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
)

// approvedTree is HelloTree in which the clusters after the canary wait for an approval.
func approvedTree(tag string, soak time.Duration) (map[string]string, error) {
	tree, err := HelloTree(tag, soak)
	if err != nil {
		return nil, err
	}
	tree[rolloutFile] += approvedRest // the last stage is the end of the file
	return tree, nil
}

// measuredTree is approvedTree in which a web service also measures the canary, and a failure rolls
// back.
func measuredTree(tag, service string) (map[string]string, error) {
	tree, err := approvedTree(tag, measuredSoak)
	if err != nil {
		return nil, err
	}
	const last, spec = "  - name: " + lastStage + "\n", "\nspec:\n"
	return tree, errors.Join(
		replaceOnce(tree, rolloutFile, last, strings.Replace(measuredCanary, "URL", service, 1)+last),
		replaceOnce(tree, rolloutFile, spec, spec+"  onFailure: Rollback\n"),
	)
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
