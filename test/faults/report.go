package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	ranges "github.com/addonflow/addonflow/rollout/positions"
)

// summary is what a report is made of.
type summary struct {
	// Writes are the kinds of write of the reference workload, and Revisions those of its history.
	Writes    int   `json:"writes"`
	Revisions int   `json:"revisions"`
	Rows      []row `json:"rows"`
	// Broken are the points with violations, each with its first one.
	Broken []string `json:"broken,omitempty"`
	// Missing are the points that did not run.
	Missing []string `json:"missing,omitempty"`
	// Ran are the points that were run, by class and commit.
	Ran []ran `json:"ran"`
}

// ran are the points of a class that were run last on a commit.
type ran struct {
	Class  string   `json:"class"`
	Commit string   `json:"commit"`
	Points []string `json:"points"`
}

// row is one class of faults.
type row struct {
	Class string `json:"class"`
	// Points of the matrix, and how many of them were run.
	Points int `json:"points"`
	Run    int `json:"run"`
	// Faults that struck; Missed are those that did not.
	Faults     int `json:"faults"`
	Missed     int `json:"missed"`
	Revisions  int `json:"revisions"`
	Violations int `json:"violations"`
	// Most is the kind that a point wrote most often, compared with the undisturbed run, and Factor how much more often.
	Most   string  `json:"most,omitempty"`
	Factor float64 `json:"factor,omitempty"`
	// Took is how long the points that were run took together.
	Took time.Duration `json:"took"`
	P50  time.Duration `json:"p50"`
	P99  time.Duration `json:"p99"`
}

func summarise(all []point, results []result, undisturbed *reference) summary {
	s := summary{Writes: len(undisturbed.Writes), Revisions: undisturbed.Revisions}
	for _, p := range all {
		if !slices.ContainsFunc(results, func(r result) bool { return r.Point == p.name }) {
			s.Missing = append(s.Missing, p.name)
		}
		if i := slices.IndexFunc(s.Rows, func(r row) bool { return r.Class == p.class }); i >= 0 {
			s.Rows[i].Points++
		} else {
			s.Rows = append(s.Rows, row{Class: p.class, Points: 1})
		}
	}
	for _, r := range results {
		s.ran(r)
		if len(r.Violations) > 0 {
			s.Broken = append(s.Broken, fmt.Sprintf("**%s**: %.200s", r.Point, r.Violations[0]))
		}
	}
	for i := range s.Rows {
		var recoveries []time.Duration
		for _, r := range results {
			if r.Class != s.Rows[i].Class {
				continue
			}
			s.Rows[i].add(r)
			recoveries = append(recoveries, r.Recoveries...)
		}
		s.Rows[i].P50, s.Rows[i].P99 = percentile(recoveries, 50), percentile(recoveries, 99)
	}
	return s
}

// since completes a summary with the classes of an earlier one of which no point ran since.
func (s summary) since(earlier summary) summary {
	for i, r := range s.Rows {
		j := slices.IndexFunc(earlier.Rows, func(e row) bool { return e.Class == r.Class })
		if r.Run > 0 || j < 0 {
			continue
		}
		s.Rows[i] = earlier.Rows[j]
		s.Rows[i].Points = r.Points
		for _, l := range earlier.Ran {
			if l.Class != r.Class {
				continue
			}
			s.Ran = append(s.Ran, l)
			s.Missing = slices.DeleteFunc(s.Missing, func(name string) bool { return slices.Contains(l.Points, name) })
			for _, broken := range earlier.Broken {
				if slices.ContainsFunc(l.Points, func(name string) bool { return strings.HasPrefix(broken, "**"+name+"**") }) {
					s.Broken = append(s.Broken, broken)
				}
			}
		}
	}
	return s
}

// published is the summary in a page; an empty one if there is no such page.
func published(page string) (summary, error) {
	var s summary
	text, err := os.ReadFile(page)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	_, results, found := strings.Cut(string(text), resultsLine)
	if err != nil || !found {
		return s, errors.Join(err, fmt.Errorf("%s has no results", page))
	}
	return s, json.Unmarshal([]byte(strings.TrimSuffix(results, " -->\n")), &s)
}

// all is the sum of the classes. It has no time of recovery: each class has its own.
func (s summary) all() row {
	total := row{Class: "all"}
	for _, r := range s.Rows {
		total.Points += r.Points
		total.Run += r.Run
		total.Faults += r.Faults
		total.Missed += r.Missed
		total.Revisions += r.Revisions
		total.Violations += r.Violations
		total.Took += r.Took
	}
	return total
}

// ran notes what a point ran on.
func (s *summary) ran(r result) {
	i := slices.IndexFunc(s.Ran, func(l ran) bool { return l.Class == r.Class && l.Commit == r.Commit })
	if i < 0 {
		i, s.Ran = len(s.Ran), append(s.Ran, ran{Class: r.Class, Commit: r.Commit})
	}
	s.Ran[i].Points = append(s.Ran[i].Points, r.Point)
}

func (r *row) add(one result) {
	r.Run++
	r.Faults += one.Hits
	r.Revisions += one.Revisions
	r.Missed += len(one.Unmet)
	r.Took += one.Took
	if one.Factor > r.Factor {
		r.Most, r.Factor = one.Most, one.Factor
	}
	if len(one.Violations) > 0 {
		r.Violations++
	}
}

// percentile of durations, to a hundredth of a second; 0 if there are none.
func percentile(all []time.Duration, n int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)*n/100].Round(10 * time.Millisecond)
}

func (s summary) broken() bool {
	return slices.ContainsFunc(s.Rows, func(r row) bool { return r.Violations > 0 })
}

// header of the table.
var header = []string{"class", "points", "run", "faults", "not met", "revisions checked", "violations", "most writes", "seconds each", "recovery p50", "p99"}

func (r row) cells() []string {
	cells := []string{r.Class}
	for _, n := range []int{r.Points, r.Run, r.Faults, r.Missed, r.Revisions, r.Violations} {
		cells = append(cells, fmt.Sprint(n))
	}
	most := "" // it ran before this was counted
	if r.Factor > 0 {
		most = fmt.Sprintf("%.2f× %s", r.Factor, r.Most)
	}
	cells = append(cells, most, fmt.Sprintf("%.0f", r.Took.Seconds()/float64(max(1, r.Run))))
	for _, d := range []time.Duration{r.P50, r.P99} {
		cell := "" // no fault of the class is followed by a write that shows the recovery
		if d > 0 {
			cell = d.String()
		}
		cells = append(cells, cell)
	}
	return cells
}

// text is the table for a terminal.
func (s summary) text() string {
	var b strings.Builder
	write := func(cells []string) {
		fmt.Fprintf(&b, "%-34s", cells[0])
		for i, c := range cells[1:] {
			fmt.Fprintf(&b, "  %*s", max(6, len(header[i+1])), c)
		}
		b.WriteByte('\n')
	}
	write(header)
	for _, r := range append(slices.Clone(s.Rows), s.all()) {
		write(r.cells())
	}
	return b.String()
}

// estimate computes how long all points take, from the points that ran. For a class without such points it uses the
// mean of the others.
func (s summary) estimate() time.Duration {
	total := s.all()
	var all time.Duration
	for _, r := range s.Rows {
		of := r
		if r.Run == 0 {
			of = total
		}
		all += of.Took * time.Duration(r.Points) / time.Duration(max(1, of.Run))
	}
	return (all / hubsAtOnce).Round(time.Minute)
}

//go:embed report.md
var frame string

// The lines of the frame that are replaced.
const (
	tableLine   = "<!-- table -->\n"
	resultsLine = "<!-- results "
)

// document is docs/reliability.md. Its last line has the results, so that a test can write it
// again.
func document(s summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The reference workload makes %d kinds of write and stores %d revisions.\n\n", s.Writes, s.Revisions)
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, r := range append(slices.Clone(s.Rows), s.all()) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	fmt.Fprintf(&b, "\nWith %d hubs at once, all points take %s at this pace.\n\n", hubsAtOnce, s.estimate())
	if len(s.Broken) > 0 {
		b.WriteString("Points with a violation, each with its first one, on the commit that is named below:\n\n")
	}
	for _, broken := range s.Broken {
		fmt.Fprintf(&b, "- %s\n", broken)
	}
	if len(s.Broken) > 0 {
		b.WriteByte('\n')
	}
	if len(s.Missing) > 0 {
		fmt.Fprintf(&b, "Points that did not run: %s.\n\n", joined(s.Missing))
	}
	b.WriteString("What was run last on which commit:\n\n")
	for _, r := range s.Ran {
		points := joined(r.Points)
		if i := slices.IndexFunc(s.Rows, func(w row) bool { return w.Class == r.Class }); s.Rows[i].Points == len(r.Points) {
			points = "all"
		}
		fmt.Fprintf(&b, "- %s, %s: %s\n", r.Class, r.Commit, points)
	}
	b.WriteByte('\n')
	results, _ := json.Marshal(s) // it has numbers and texts only
	return strings.Replace(frame, tableLine, b.String(), 1) + "\n" + resultsLine + string(results) + " -->\n"
}

// joined names points. Those that differ in their seed only are named once, with their seeds.
func joined(points []string) string {
	seeds, order := map[string][]int{}, []string{}
	for _, p := range points {
		name, seed, _ := strings.Cut(p, ", seed ")
		if _, known := seeds[name]; !known {
			order = append(order, name)
		}
		if n, err := strconv.Atoi(seed); err == nil {
			seeds[name] = append(seeds[name], n)
		} else {
			seeds[name] = nil
		}
	}
	for i, name := range order {
		if of := seeds[name]; len(of) > 0 {
			slices.Sort(of)
			order[i] = name + ", seed " + ranges.Format(of)
		}
	}
	return strings.Join(order, "; ")
}
