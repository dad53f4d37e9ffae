package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/examples"
	"github.com/addonflow/addonflow/test/demo"
)

// shellBlocks are the commands of a document that are run.
var shellBlocks = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

var _ = Describe("A reader of the tutorial", func() {
	It("runs its commands as they stand", func(ctx SpecContext) {
		s := newScene(ctx, "tutorial", clusters(fleetSize))
		text, err := os.ReadFile("../../docs/tutorial.md")
		Expect(err).NotTo(HaveOccurred())
		programs := GinkgoT().TempDir()
		Expect(os.Symlink(options.Binary, filepath.Join(programs, demo.ToolName))).To(Succeed())
		reader := *world
		reader.Repo = s.repo
		script := "set -euo pipefail\nexport " + strings.Join(demo.Environment(&reader, filepath.Join(programs, demo.ToolName)), " ") + "\n"
		blocks := shellBlocks.FindAllStringSubmatch(string(text), -1)
		Expect(blocks).To(HaveLen(6))
		for _, block := range blocks {
			script += strings.ReplaceAll(block[1], "source "+demo.SourceName+" ", "source "+s.addOn+" ") // other specs have no source of that name
		}
		out, err := exec.CommandContext(ctx, "bash", "-c", script).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(And(
			ContainSubstring("✔ addons/greeter: 2 objects, 1 add-on"),
			ContainSubstring("exit code 1: the rollout failed"),
			ContainSubstring("+        image: registry.example.com/greeter:v3-bad"),
		))
		var rollout v1alpha1.AddOnRollout
		Expect(world.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: "greeter"}, &rollout)).To(Succeed())
		Expect(rollout.Status.Phase).To(Equal(v1alpha1.PhaseSucceeded))
		Expect(rollout.Status.Counts.Updated).To(BeEquivalentTo(fleetSize))
		Expect(rollout.Status.Reverting).To(BeTrue())
	})

	DescribeTable("copies a real add-on from the examples", func(ctx SpecContext, addOn, file, version string) {
		s := newScene(ctx, addOn, clusters(3)) // the examples name the placements all and canary
		files := map[string]string{}
		faster := strings.NewReplacer("minSuccessTime: 30m", "minSuccessTime: 1s", "progressDeadline: 30m", "progressDeadline: 10s")
		Expect(fs.WalkDir(examples.Files, addOn, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := examples.Files.ReadFile(name)
			files["addons/"+strings.TrimPrefix(name, addOn+"/")] = faster.Replace(string(text))
			return err
		})).To(Succeed())
		s.deliver("the example", files)
		Expect(s.rollout().Status.Counts.Updated).To(BeEquivalentTo(fleetSize))

		Expect(files["addons/"+file]).To(ContainSubstring(version))
		files["addons/"+file] = strings.Replace(files["addons/"+file], version, version+"-bad", 1)
		s.awaitRolledBack(s.submit("an image that never starts", files))
		Expect(s.rollout().Status.Counts.Updated).To(BeEquivalentTo(fleetSize), "the canary is back")
	},
		Entry("a DaemonSet on every node", "node-exporter", "addontemplate.yaml", "node-exporter:v1.9.1"),
		Entry("an agent that registers on the hub", "fleet-inventory", "addontemplate.yaml", "fleet-inventory:v1.0.0"),
		Entry("a controller with its CRD", "config-policy-controller", "addontemplate.yaml", "config-policy-controller:v0.17.0"),
		Entry("a chart with its CRDs and webhooks", "cert-manager", "chart/Chart.yaml", "appVersion: v1.18.2"),
	)
})
