package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/test/demo"
)

// shapeAddOns is many add-ons on every cluster, some of which are rolled out at once.
const shapeAddOns = "addons"

// numbered are the names of n add-ons.
func numbered(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%03d", demo.AddOn, i+1))
	}
	return names
}

// treeOf are the files of examples/hello for add-ons of other names, with the pace.
func treeOf(addOns []string, tag, pace string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range addOns {
		tree, err := demo.HelloTree(tag, time.Second)
		if err != nil {
			return nil, err
		}
		tree["addons/hello/addonrollout.yaml"] = strings.Join([]string{
			"apiVersion: addonflow.io/v1alpha1", "kind: AddOnRollout", "metadata:", "  name: hello",
			"spec:", pace, "",
		}, "\n")
		for path, text := range tree {
			all[strings.ReplaceAll(path, demo.AddOn, name)] = strings.ReplaceAll(text, demo.AddOn, name)
		}
	}
	return all, nil
}

// measureAddOns installs the add-ons, atOnce with each commit, and then upgrades and reverts atOnce of them while the
// others rest.
func (b *bench) measureAddOns(ctx context.Context, addOns, atOnce int) error {
	if err := b.idle(ctx); err != nil {
		return err
	}
	type move struct {
		name, tag string
		addOns    []string
	}
	var moves []move
	names := numbered(addOns)
	for batch := range slices.Chunk(names, atOnce) {
		moves = append(moves, move{fmt.Sprintf("install, %d before", len(moves)*atOnce), "v1", batch})
	}
	some := names[:min(atOnce, addOns)]
	moves = append(moves, move{profiled, "v2", some}, move{"revert", "v1", some})
	for _, m := range moves {
		tree, err := treeOf(m.addOns, m.tag, allAtOnce)
		if err != nil {
			return err
		}
		r, err := b.rollOut(ctx, m.name, tree, m.addOns...)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", m.name, err)
		}
		r.name, r.moves = m.name, len(m.addOns)*len(b.names)
		b.results = append(b.results, r)
		fmt.Printf("  ✔ %-34s %4.1fs\n", m.name, r.took.Seconds())
	}
	var err error
	if b.rest, err = b.atRest(ctx, 20*time.Second); err != nil {
		return err
	}
	return b.kept(ctx)
}

// printAddOns prints what many add-ons cost.
func (b *bench) printAddOns(w io.Writer, addOns, atOnce int) {
	fmt.Fprintf(w, "\n%d add-ons on each of %d clusters, %d rolled out at once.\nRequests and CPU time are for one add-on on one cluster.\n\n", addOns, len(b.names), atOnce)
	fmt.Fprintf(w, "%-22s %9s %9s %9s %9s %10s %9s %9s\n", "", "time", "requests", "conflicts", "operator", "API server", "etcd", "peak RSS")
	for _, r := range b.results {
		all, conflicts := r.requests.total()
		n := float64(r.moves)
		fmt.Fprintf(w, "%-22s %8.1fs %9.2f %9.0f %9s %10s %9s %6dMiB\n", r.name, r.took.Seconds(), all/n, conflicts,
			r.cpu.per(n, b.operator), r.cpu.per(n, apiServer), r.cpu.per(n, etcd), r.memory.peak>>20)
	}
	v, all := b.addOn.volume(), float64(addOns*len(b.names))
	fmt.Fprintf(w, "\nAddOnRollouts: %d writes, %.1f MB in all, the largest %d KiB\n", v.writes, float64(v.total)/1e6, v.largest>>10)
	fmt.Fprintf(w, "kept at rest: %.1f MiB on the heap, %.1f KiB for one add-on on one cluster\n", float64(b.live)/(1<<20), float64(b.live)/1024/all)
	requests, _ := b.rest.requests.total()
	fmt.Fprintf(w, "at rest, %s: %.0f requests, %s CPU\n", b.rest.took, requests, b.rest.cpu[b.operator])
	moved := b.results[len(b.results)-2]
	for _, line := range moved.requests.lines(moved.moves) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "heartbeats: %d, and %d that failed\n", b.beats.written.Load(), b.beats.failed.Load())
}
