// Command ocm is three of Open Cluster Management's own programs in one
// binary, built from OCM's public Go module: its addon-manager, its placement
// controller and its work agent. Their controllers are started as upstream's
// commands start them, without the leader election and the serving of metrics
// around them. A fourth is what OCM's add-on framework makes of charts and
// manifests.
//
//	ocm addon-manager   hub: what AddonFlow lives beside, or replaces
//	ocm placement       hub: Placements to PlacementDecisions
//	ocm work-agent      managed cluster: applies ManifestWorks
//	ocm package NAME    prints the objects of one of packages
//
// Upstream's own command packages are not used: they import the registration
// agent, too, and with it a module that the checksum database does not know.
package main

import (
	"context"
	"os"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/utils/clock"
	"open-cluster-management.io/api/feature"
	"open-cluster-management.io/ocm/pkg/addon"
	"open-cluster-management.io/ocm/pkg/common/options"
	"open-cluster-management.io/ocm/pkg/features"
	placement "open-cluster-management.io/ocm/pkg/placement/controllers"
	"open-cluster-management.io/ocm/pkg/work/spoke"
)

func main() {
	root := &cobra.Command{Use: "ocm", Short: "OCM's addon-manager, placement controller and work agent", SilenceUsage: true}
	root.AddCommand(
		program("addon-manager", addon.RunManager),
		program("placement", placement.RunControllerManager),
		workAgent(),
		packageCommand(),
	)
	os.Exit(cli.Run(root))
}

// program runs controllers against the API server of --kubeconfig until it gets a signal.
func program(name string, start controllercmd.StartFunc) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{Use: name, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		// What upstream's --kube-api-qps and --kube-api-burst default to.
		config.QPS, config.Burst = 50, 100
		return start(cmd.Context(), &controllercmd.ControllerContext{
			KubeConfig:        config,
			EventRecorder:     events.NewLoggingEventRecorder(name, clock.RealClock{}),
			OperatorNamespace: "open-cluster-management-hub",
		})
	}}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "The API server to work on.")
	return cmd
}

// workAgent is the part of a klusterlet that applies ManifestWorks.
func workAgent() *cobra.Command {
	common, agent := options.NewAgentOptions(), spoke.NewWorkloadAgentOptions()
	cmd := program("work-agent", func(ctx context.Context, c *controllercmd.ControllerContext) error {
		if err := features.SpokeMutableFeatureGate.Add(feature.DefaultSpokeWorkFeatureGates); err != nil {
			return err
		}
		return spoke.NewWorkAgentConfig(common, agent).RunWorkloadAgent(ctx, c)
	})
	common.AddFlags(cmd.Flags())
	agent.AddFlags(cmd.Flags())
	return cmd
}
