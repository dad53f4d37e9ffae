package ocm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"
)

const (
	// packages are compiled into OCM's binary: the framework renders nothing else.
	packages               = "../hubbin/ocm/packages"
	packageDifferencesFile = "testdata/package_differences.txt"
)

// packageCase is a chart or a folder of manifests, for one cluster: what is deliberate of
// how the two differ, and whether both must refuse it.
type packageCase struct {
	name    string
	differs string
	fails   bool
	cluster clusterv1.ManagedCluster
	addOn   addonv1alpha1.ManagedClusterAddOn
}

var _ = Describe("The same charts and manifests", func() {
	It("become the same objects under OCM's add-on framework and under AddonFlow", func(ctx SpecContext) {
		cases := packageCases()
		Expect(len(cases)).To(BeNumerically(">=", 12))
		report := differences{file: packageDifferencesFile}
		for _, c := range cases {
			theirs, mine := c.byFramework(ctx), c.byAddonFlow(ctx)
			both := theirs[refusal] != "" && mine[refusal] != ""
			Expect(both).To(Equal(c.fails), "%s: whether both refuse it", c.name)
			report.add(c.name, c.differs, difference(theirs, mine))
		}
		report.hold()
	})
})

// packageCases reads what is compiled into OCM's binary.
func packageCases() []packageCase {
	GinkgoHelper()
	paths, err := filepath.Glob(packages + "/*/hub.yaml")
	Expect(err).NotTo(HaveOccurred())
	cases := make([]packageCase, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		c := packageCase{name: filepath.Base(filepath.Dir(path)), differs: deliberate(string(text)), fails: strings.HasPrefix(comment(string(text)), "fails: ")}
		cluster, addOn, ok := strings.Cut(string(text), "\n---\n")
		Expect(ok).To(BeTrue(), path)
		Expect(yaml.Unmarshal([]byte(cluster), &c.cluster)).To(Succeed(), path)
		Expect(yaml.Unmarshal([]byte(addOn), &c.addOn)).To(Succeed(), path)
		cases = append(cases, c)
	}
	return cases
}

// byFramework is what an add-on manager makes of the package that is built with OCM's
// framework.
func (c packageCase) byFramework(ctx SpecContext) flat {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, ocm, "package", c.name).Output()
	Expect(err).NotTo(HaveOccurred(), c.name)
	var printed struct {
		Objects []map[string]any
		Error   string
	}
	Expect(json.Unmarshal(out, &printed)).To(Succeed(), c.name)
	if printed.Error != "" {
		return refused(printed.Error)
	}
	return laidOut(printed.Objects)
}

// byAddonFlow is what `addonflow render` makes of it.
func (c packageCase) byAddonFlow(ctx SpecContext) flat {
	GinkgoHelper()
	args := []string{
		"render", filepath.Join(packages, c.name, "git"), "--cluster=" + c.cluster.Name,
		"--kube-version=" + c.cluster.Status.Version.Kubernetes,
		"--values=" + c.addOn.Annotations["addon.open-cluster-management.io/values"],
		"--hosting-cluster=" + c.addOn.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey],
		"--image-registries=" + c.cluster.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey],
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, addonflow, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		Expect(stderr.String()).To(ContainSubstring("AddOnPackage/"+c.name+": "), "for what the package itself is")
		return refused(stderr.String())
	}
	var objects []map[string]any
	for document := range strings.SplitSeq(string(out), "---\n") {
		var fields map[string]any
		Expect(yaml.Unmarshal([]byte(document), &fields)).To(Succeed(), c.name)
		if len(fields) > 0 {
			objects = append(objects, fields)
		}
	}
	return laidOut(objects)
}

// refusal is the path of a package that gives no objects.
const refusal = "refused"

// refused is a package that gives no objects. The words are each program's own.
func refused(message string) flat {
	fmt.Fprintln(GinkgoWriter, strings.TrimSpace(message))
	return flat{refusal: "true"}
}

// laidOut lists objects by their names; their order does not matter.
func laidOut(objects []map[string]any) flat {
	out := flat{}
	for _, fields := range objects {
		o := &unstructured.Unstructured{Object: fields}
		o.SetAnnotations(without(o.GetAnnotations(), ours))
		delete(fields, "status") // typed clients write its zeros
		path := join(o.GetKind(), o.GetNamespace(), o.GetName())
		Expect(out).NotTo(HaveKey(path + ".kind"))
		flatten(out, path, fields)
	}
	// Typed clients leave an empty text out, but for the keys of data.
	maps.DeleteFunc(out, func(path, value string) bool { return value == `""` && !strings.Contains(path, ".data.") })
	return out
}
