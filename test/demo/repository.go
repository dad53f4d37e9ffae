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
		{addOnDir + "/addonrollout.yaml", exampleSoak, "minSuccessTime: " + soak.String()},
	} {
		if strings.Count(tree[edit.file], edit.from) != 1 {
			return nil, fmt.Errorf("cannot edit %s: it does not hold %q once", edit.file, edit.from)
		}
		tree[edit.file] = strings.Replace(tree[edit.file], edit.from, edit.to, 1)
	}
	return tree, nil
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
