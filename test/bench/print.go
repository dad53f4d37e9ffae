package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// median of an odd number of durations.
func median(times []time.Duration) time.Duration {
	s := slices.Clone(times)
	slices.Sort(s)
	return s[len(s)/2]
}

const (
	// promisedVolume are the bytes that one rollout of 10,000 clusters writes to AddOnRollouts at most.
	promisedVolume = 1e9
	// promisedPlanner is the planner's share of one core at most, with 10,000 clusters.
	promisedPlanner = 0.5
)

// plannerText is the planner's share of one core, and whether it keeps the promise; "" if it was not measured.
func (r result) plannerText() string {
	if r.planner == 0 {
		return ""
	}
	return fmt.Sprintf("%s %.3f cores", mark(r.planner <= promisedPlanner), r.planner)
}

// print prints the measurements.
func (b *bench) print(w io.Writer) {
	n := float64(len(b.names))
	fmt.Fprintf(w, "\n%d clusters. The floor is the median of three; ratios are to the floor of this run.\nRequests and CPU time are per cluster, the planner's is its share of one core and needs -profile.\nThe peak is the largest resident set so far; its second number leaves out pages of the program's file.\n\n", len(b.names))
	fmt.Fprintf(w, "%72s CPU time of\n", "")
	fmt.Fprintf(w, "%-26s %8s %8s %7s %9s %9s %9s %10s %9s %12s %14s\n",
		"", "time", "floor", "ratio", "requests", "conflicts", "operator", "API server", "etcd", "planner", "peak RSS, MiB")
	for _, r := range b.results {
		all, conflicts := r.requests.total()
		floor, ratio := "", ""
		if f := b.floors[r.floor]; f > 0 {
			floor, ratio = fmt.Sprintf("%.2fs", f.Seconds()), fmt.Sprintf("%.2fx", r.took.Seconds()/f.Seconds())
		}
		fmt.Fprintf(w, "%-26s %7.2fs %8s %7s %9.2f %9.0f %9s %10s %9s %12s %14s\n",
			r.name, r.took.Seconds(), floor, ratio, all/n, conflicts,
			r.cpu.per(n, b.operator), r.cpu.per(n, apiServer), r.cpu.per(n, etcd), r.plannerText(), r.memory)
	}
	v := b.addOn.volume()
	each := float64(v.total) / float64(len(b.results))
	fmt.Fprintf(w, "\n%s AddOnRollouts: %d writes, %.1f MB in all, %.1f MB a rollout, the largest %d KiB; promised with 10,000 clusters: a rollout %.0f MB, the planner %.1f cores\n",
		mark(each <= promisedVolume), v.writes, float64(v.total)/1e6, each/1e6, v.largest>>10, promisedVolume/1e6, promisedPlanner)
	if len(b.pushed) > 0 {
		verdict := "✔"
		if median(b.pushed) > promised {
			verdict = "✗"
		}
		fmt.Fprintf(w, "\n%s push to first ManifestWork, by webhook: %.2fs, the median of %d (slowest %.2fs); promised: %s\n",
			verdict, median(b.pushed).Seconds(), len(b.pushed), slices.Max(b.pushed).Seconds(), promised)
	}
	fmt.Fprintf(w, "\nkept at rest: %.1f MiB on the heap, %.1f KiB a cluster\n", float64(b.live)/(1<<20), float64(b.live)/1024/n)
	fmt.Fprintf(w, "restart: %.2fs from the start of the process to the first work (promised: %s), %s of its CPU; then its peak is %s MiB\n",
		b.restart.took.Seconds(), promisedRestart, b.restart.cpu, b.restart.memory)
	fmt.Fprintf(w, "page of the rollout: %s by the operator, which makes the plan, and %s again; %d KiB\n",
		b.page.first.Round(time.Millisecond), b.page.again.Round(time.Millisecond), b.page.bytes>>10)
	fmt.Fprintf(w, "heartbeats: %d, and %d that failed\n", b.beats.written.Load(), b.beats.failed.Load())
	all, _ := b.rest.requests.total()
	fmt.Fprintf(w, "\nat rest, %s: %.0f requests, %s CPU\n", b.rest.took, all, b.rest.cpu[b.operator])
	for _, line := range b.rest.requests.lines(1) {
		fmt.Fprintln(w, line)
	}
	for _, r := range b.results {
		fmt.Fprintf(w, "\n%s: requests per cluster\n", r.name)
		for _, line := range r.requests.lines(len(b.names)) {
			fmt.Fprintln(w, line)
		}
	}
}

// per is a program's time for one of n clusters in milliseconds; empty where it is not known.
func (c cpuTimes) per(n float64, program string) string {
	cpu, known := c[program]
	if !known {
		return ""
	}
	return fmt.Sprintf("%.2fms", float64(cpu.Microseconds())/1000/n)
}
