// Command ocmbin prints the path of the binary that holds OCM's own
// addon-manager, placement controller and work agent, after building it if
// necessary. The path goes to standard output, progress to standard error.
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
	path, err := hubbin.FindOCM(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ocmbin:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}
