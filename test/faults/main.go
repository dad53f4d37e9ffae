// Command faults runs the shipped operator against an embedded hub, under the shipped roles,
// and makes things go wrong.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	binary := flag.String("operator", "bin/addonflow", "path of the operator's binary")
	only := flag.String("only", "", "run the points whose name contains this")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	h := harness{binary: *binary, keep: os.TempDir()}
	begun := time.Now()
	r, ref, err := h.run(ctx, point{name: "undisturbed", class: "none"}, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	print(r)
	text, _ := json.MarshalIndent(ref, "", " ")
	_ = os.WriteFile("/tmp/faults-reference.json", text, 0o644)
	fmt.Println(time.Since(begun), len(matrix(ref)))
	if *only == "" {
		return
	}
	for _, p := range matrix(ref) {
		if !strings.Contains(p.name, *only) {
			continue
		}
		r, _, err := h.run(ctx, p, ref)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		print(r)
	}
}

func print(r result) {
	fmt.Printf("%-60s hits %d, %d revisions, %d steps, %s, took %s, recovered %v\n", r.Point, r.Hits, r.Revisions, r.Steps, r.Account, r.Took.Round(100*time.Millisecond), r.Recoveries)
	for _, v := range r.Violations {
		fmt.Println("   ✗", v)
	}
}
