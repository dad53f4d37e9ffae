// Command hubbin prints the directory that holds the embedded hub's
// kube-apiserver and etcd, after fetching or building them if necessary:
//
//	export KUBEBUILDER_ASSETS=$(go run ./test/hubbin/cmd/hubbin)
//
// The directory goes to standard output, progress to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/addonflow/addonflow/test/hubbin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	found, err := hubbin.Find(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hubbin:", err)
		os.Exit(1)
	}
	fmt.Println(found.Dir)
}
