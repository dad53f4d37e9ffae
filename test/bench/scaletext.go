package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What the operator may take: memory, and how much of it for each cluster.
const (
	promisedMemory     = 60 << 20
	promisedPerCluster = 12_000
	// barWidth is how long the longest bar of the plot is.
	barWidth = 50
	// far is the number of clusters in the last table. It is extrapolated from a run with farFrom clusters or more.
	far, farFrom = 100_000, 5000
)

// scaleText is what the figures say, as Markdown.
func scaleText(all []figures) (string, error) {
	if len(all) < 2 {
		return "", errors.New("growth needs two sizes")
	}
	var b strings.Builder
	last := all[len(all)-1]
	fmt.Fprintf(&b, "Measured on a machine with %d cores and %d GiB of memory, on which hub, fleet and operator run together.\n"+
		"Every ManagedCluster writes its status once in %s meanwhile.\n\n", last.Cores, last.Memory>>30, last.Heartbeat)
	b.WriteString("CPU time in milliseconds for each cluster:\n\n| clusters | step | operator | API server | etcd | requests | conflicts | wall time |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		for _, s := range f.Steps {
			fmt.Fprintf(&b, "| %d | %s | %.1f | %.1f | %.1f | %.2f | %.0f | %s |\n", f.Clusters, s.Name, f.each(s.Operator), f.each(s.Server), f.each(s.Etcd),
				s.Requests/float64(f.Clusters), s.Conflicts, s.Took.Round(time.Second))
		}
	}
	b.WriteString("\nCPU time of an upgrade for each cluster, in milliseconds; bars of equal length mean growth in proportion:\n\n")
	plot(&b, all)
	fmt.Fprintf(&b, "\nThe exponent of the growth, fitted to all sizes; at most %.2f is promised:\n\n| cost | exponent | |\n|---|---|---|\n", steepest)
	for _, c := range costs() {
		e := exponent(all, c.of)
		fmt.Fprintf(&b, "| %s | %.2f | %s |\n", c.name, e, mark(e <= steepest))
	}
	fmt.Fprintf(&b, "\nMemory of the operator; promised is a peak of %d MiB and %d KB for each cluster:\n\n"+
		"| clusters | kept at rest | peak | of it, pages of the program | promised peak | |\n|---|---|---|---|---|---|\n", promisedMemory>>20, promisedPerCluster/1000)
	for _, f := range all {
		most := int64(promisedMemory + promisedPerCluster*f.Clusters)
		fmt.Fprintf(&b, "| %d | %.1f MiB | %d MiB | %d MiB | %d MiB | %s |\n", f.Clusters, float64(f.Live)/(1<<20), f.Peak>>20, f.Files>>20, most>>20, mark(f.Peak <= most))
	}
	slope, base := line(all, size, func(f figures) float64 { return float64(f.Peak) })
	fmt.Fprintf(&b, "\nThe peak is about %.0f MiB and %.1f KB for each cluster.\n", base/(1<<20), slope/1000)
	fmt.Fprintf(&b, "\nA restart with a commit to roll out, and 20 seconds with nothing to do but heartbeats:\n\n"+
		"| clusters | first work after a start | | its CPU until then | peak of the new process | requests at rest | CPU at rest | heartbeats | failed |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %d | %.1fs | %s | %s | %d MiB | %.0f | %s | %d | %d |\n", f.Clusters, f.Restart.Seconds(), mark(f.Restart <= promisedRestart), f.RestartCPU,
			f.RestartPeak>>20, f.RestRequests, f.RestCPU, f.Beats, f.LostBeats)
	}
	fmt.Fprintf(&b, "\nThe page of the rollout, made for its first viewer; promised is a first paint within %s and at most %d KiB:\n\n"+
		"| clusters | time until it is sent | | size | |\n|---|---|---|---|---|\n", promisedPage, promisedBytes>>10)
	for _, f := range all {
		fmt.Fprintf(&b, "| %d | %dms | %s | %d KiB | %s |\n", f.Clusters, f.Page.Milliseconds(), mark(f.Page <= promisedPage), f.PageSize>>10, mark(f.PageSize <= promisedBytes))
	}
	if last.Clusters >= farFrom {
		extrapolate(&b, all, slope, base)
	}
	return b.String(), nil
}

// each is CPU time for each cluster, in milliseconds.
func (f figures) each(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000 / float64(f.Clusters)
}

func size(f figures) float64 { return float64(f.Clusters) }

func mark(kept bool) string {
	if kept {
		return "✔"
	}
	return "✗"
}

// step returns the figures of a step; zero if it was not measured.
func (f figures) step(name string) stepFigures {
	for _, s := range f.Steps {
		if s.Name == name {
			return s
		}
	}
	return stepFigures{}
}

// plot draws the CPU time of an upgrade.
func plot(b *strings.Builder, all []figures) {
	longest := 0.0
	for _, f := range all {
		longest = max(longest, f.each(f.step(profiled).Server))
	}
	for _, f := range all {
		s := f.step(profiled)
		for i, bar := range []struct {
			name string
			cpu  time.Duration
		}{{"operator", s.Operator}, {"API server", s.Server}, {"etcd", s.Etcd}} {
			label := ""
			if i == 0 {
				label = fmt.Sprint(f.Clusters)
			}
			ms := f.each(bar.cpu)
			fmt.Fprintf(b, "    %7s  %-10s %s %.1f\n", label, bar.name, strings.Repeat("█", max(1, int(ms/longest*barWidth+0.5))), ms)
		}
	}
}

// extrapolate computes what a far larger hub would need; nothing of it was measured.
func extrapolate(b *strings.Builder, all []figures, slope, base float64) {
	last := all[len(all)-1]
	s := last.step(profiled)
	hub, operator := last.each(s.Server+s.Etcd)/1000*far, last.each(s.Operator)/1000*far
	fmt.Fprintf(b, "\nComputed, not measured: one hub with %d clusters, if the cost of each cluster stays that at %d:\n\n| | |\n|---|---|\n", far, last.Clusters)
	fmt.Fprintf(b, "| CPU time of API server and etcd for one upgrade | %.0f s; %.1f cores if it is to take an hour |\n", hub, hub/3600)
	fmt.Fprintf(b, "| CPU time of the operator for one upgrade | %.0f s; %.2f cores if it is to take an hour |\n", operator, operator/3600)
	fmt.Fprintf(b, "| peak memory of the operator | %.1f GiB |\n", (base+slope*far)/(1<<30))
	fmt.Fprintf(b, "| requests of the operator for one upgrade | %.0f |\n", s.Requests/float64(last.Clusters)*far)
	fmt.Fprintf(b, "| heartbeats | %.0f writes a second |\n", far/last.Heartbeat.Seconds())
}
