package ocm

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// corpusFile is one add-on of the corpus: its name, its objects, and why OCM and
// AddonFlow differ on it, if they do.
type corpusFile struct {
	name    string
	text    string
	differs string
}

// corpus reads corpus/*.yaml. The comment at the beginning of a file says what it is for; one
// that begins with "differs:" says which difference is deliberate.
func corpus() []corpusFile {
	GinkgoHelper()
	paths, err := filepath.Glob("corpus/*.yaml")
	Expect(err).NotTo(HaveOccurred())
	files := make([]corpusFile, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		files = append(files, corpusFile{
			name: strings.TrimSuffix(filepath.Base(path), ".yaml"), text: filled(string(text)), differs: deliberate(string(text)),
		})
	}
	return files
}

// deliberate is why OCM and AddonFlow differ on a file, by the comment it begins with;
// "" where they do not.
func deliberate(text string) string {
	why, differs := strings.CutPrefix(comment(text), "differs: ")
	if !differs {
		return ""
	}
	return why
}

// comment is the comment a file begins with, on one line.
func comment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, "# ")
		if !is {
			break
		}
		words = append(words, strings.TrimSpace(rest))
	}
	return strings.Join(words, " ")
}

var filling = regexp.MustCompile(`@fill (\d+) (\w)`)

// filled expands "@fill 1000 x" to a thousand times x, which keeps the file readable.
func filled(text string) string {
	return filling.ReplaceAllStringFunc(text, func(match string) string {
		parts := filling.FindStringSubmatch(match)
		n, err := strconv.Atoi(parts[1])
		Expect(err).NotTo(HaveOccurred())
		return strings.Repeat(parts[2], n)
	})
}

// objects of the file, in order.
func (f corpusFile) objects() []*unstructured.Unstructured {
	GinkgoHelper()
	var all []*unstructured.Unstructured
	for text := range strings.SplitSeq(f.text, "\n---\n") {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed(), f.name)
		all = append(all, o)
	}
	return all
}

// declared returns the objects that belong in Git. Admins write the other objects to the hub, with
// OCM and with AddonFlow.
func (f corpusFile) declared() (inGit, onHub []*unstructured.Unstructured) {
	for _, o := range f.objects() {
		switch o.GetKind() {
		case "ManagedClusterAddOn", "ClusterRole":
			onHub = append(onHub, o)
		default:
			inGit = append(inGit, o)
		}
	}
	return inGit, onHub
}

// tree is the corpus as a commit.
func tree(files []corpusFile) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, f := range files {
		var documents []string
		inGit, _ := f.declared()
		for _, o := range inGit {
			text, err := yaml.Marshal(o.Object)
			Expect(err).NotTo(HaveOccurred())
			documents = append(documents, string(text))
		}
		out["addons/"+f.name+".yaml"] = strings.Join(documents, "---\n")
	}
	return out
}

// apply writes objects to a hub as a user would, server-side.
func apply(ctx context.Context, c client.Client, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, o := range objects {
		o = o.DeepCopy()
		Expect(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership)).
			To(Succeed(), o.GetKind()+"/"+o.GetName())
	}
}

// ours are the label and annotations that AddonFlow puts on what it writes.
func ours(key string) bool { return strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") }
