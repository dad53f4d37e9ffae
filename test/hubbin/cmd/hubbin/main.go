// Command hubbin prints where binaries are that tests, demo and bench start, after
// fetching or building them if necessary. Without an argument it is the directory of the
// embedded hub's kube-apiserver and etcd:
//
//	export KUBEBUILDER_ASSETS=$(go run ./test/hubbin/cmd/hubbin)
//
// With the argument ocm it is one binary with OCM's own addon-manager, placement
// controller and work agent; with registry, one with an OCI registry; with gitea it is Gitea. The
// path goes to standard output, progress to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/addonflow/addonflow/test/hubbin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	path, err := find(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hubbin:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// find returns the path of what the arguments ask for.
func find(ctx context.Context, args []string) (string, error) {
	switch {
	case len(args) == 0:
		found, err := hubbin.Find(ctx, os.Stderr)
		return found.Dir, err
	case slices.Equal(args, []string{"ocm"}):
		return hubbin.FindOCM(ctx, os.Stderr)
	case slices.Equal(args, []string{"gitea"}):
		found, err := hubbin.FindGitea(ctx, os.Stderr)
		return found.Binary, err
	case slices.Equal(args, []string{"registry"}):
		return hubbin.FindRegistry(ctx, os.Stderr)
	}
	return "", fmt.Errorf("no binaries for %q", args)
}
