package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/faults/proxy"
	"github.com/addonflow/addonflow/test/forge"
	"github.com/addonflow/addonflow/test/trace/recording"
)

// reference is the undisturbed run.
type reference struct {
	// Writes are the operator's, by class, and Applied those that the server accepted and that changed something, by kind
	// and by object of that kind.
	Writes  map[string]int            `json:"writes"`
	Applied map[string]map[string]int `json:"applied"`
	// Reports are those of agents.
	Reports int `json:"reports"`
	// Standing are the end states: before the removal, and after it.
	Standing []map[string]string `json:"standing"`
	// Reported are the statuses by commit and context.
	Reported map[string][]string `json:"reported"`
	// Order are the classes of its writes, in their order.
	Order []string `json:"order"`
	// Watched are the resources that the operator watches.
	Watched []string `json:"watched"`
	// Revisions of its history, and Took is how long the run was.
	Revisions int           `json:"revisions"`
	Took      time.Duration `json:"took"`
}

// result is what became of a point.
type result struct {
	Point string `json:"point"`
	Class string `json:"class"`
	// Commit of the operator.
	Commit string `json:"commit"`
	// Hits is how many faults struck, and Unmet are those that did not, because the run made fewer writes.
	Hits       int             `json:"hits"`
	Unmet      []string        `json:"unmet,omitempty"`
	Revisions  int             `json:"revisions"`
	Steps      int             `json:"steps"`
	Violations []string        `json:"violations,omitempty"`
	Recoveries []time.Duration `json:"recoveries,omitempty"`
	// Most is the kind that was written most often, compared with the undisturbed run, and Factor how much more often.
	Most    string        `json:"most,omitempty"`
	Factor  float64       `json:"factor,omitempty"`
	Took    time.Duration `json:"took"`
	Account string        `json:"account"`
	// Timings are how long its parts took, in seconds.
	Timings string `json:"timings"`
}

// harness runs points.
type harness struct {
	// operator, clocked and previous are programs: as shipped, with a clock that can be set, and of
	// the commit before.
	operator, clocked, previous string
	// keep is where the logs of failing runs go.
	keep string
}

// run runs the reference workload with the point's faults, and judges it.
func (h harness) run(ctx context.Context, p point, undisturbed *reference) (result, *reference, error) {
	begun := time.Now()
	w, err := startWorld(ctx, h.programs(p), p.faults)
	if err != nil {
		return result{}, nil, err
	}
	defer func() { _ = w.Stop() }()
	load := &workload{world: w, point: p, expected: undisturbed}
	if err := load.prepare(ctx); err != nil {
		return result{}, nil, fmt.Errorf("cannot prepare the workload: %w", err)
	}
	running, crashed := context.WithCancelCause(ctx)
	defer crashed(nil)
	w.leaders, w.crashed = p.leaders, crashed
	if err := w.startOperators(max(1, p.operators)); err != nil { //nolint:contextcheck // an upgrade is not cut off by the end of the run
		return result{}, nil, err
	}
	started := time.Since(begun)
	failed := load.run(running)
	if ctx.Err() != nil {
		return result{}, nil, context.Cause(ctx)
	}
	r := result{Point: p.name, Class: p.class}
	r.Timings = fmt.Sprintf("start %.1f, %s", started.Seconds(), strings.Join(load.timings, ", "))
	seen := load.summary()
	if failed != nil {
		r.Violations = append(r.Violations, fmt.Sprintf("does not converge: %v", failed))
	}
	if err := load.judge(ctx, &r, seen, p, undisturbed); err != nil {
		return r, nil, err
	}
	r.Took = time.Since(begun)
	if len(r.Violations) > 0 {
		r.Violations = append(r.Violations, h.save(w, p))
	}
	return r, seen, nil
}

// programs that a point runs.
func (h harness) programs(p point) programs {
	chosen := programs{operators: []string{h.operator}, flags: p.flags}
	switch {
	case p.clocked:
		chosen.operators = []string{h.clocked}
	case p.rolledBack:
		chosen.operators = []string{h.operator, h.previous, h.operator}
	case p.upgraded:
		chosen.operators, chosen.manifests = []string{h.previous, h.operator}, h.previous+".manifests"
	}
	return chosen
}

// summary is the run as a reference for others.
func (w *workload) summary() *reference {
	writes := map[string]int{}
	var arrivals []proxy.Arrival
	for _, p := range w.proxies() {
		maps.Copy(writes, p.Seen())
		arrivals = append(arrivals, p.Order()...)
	}
	slices.SortFunc(arrivals, func(a, b proxy.Arrival) int { return a.Time.Compare(b.Time) })
	order := make([]string, 0, len(arrivals))
	for _, a := range arrivals {
		order = append(order, a.Class)
	}
	return &reference{
		Writes: writes, Applied: w.applied(), Standing: w.standing, Reported: oracle.Reported(w.Forge.Log(), w.shas, w.names()),
		Order: order, Watched: w.api.Watched(),
	}
}

// applied counts the operator's writes that changed something, by kind and object.
func (w *workload) applied() map[string]map[string]int {
	all, stored, names := map[string]map[string]int{}, w.history.Stored(), w.names()
	add := func(o proxy.Object, n int) {
		if n == 0 || o.Kind == "events" || o.Kind == "leases" {
			return
		}
		if all[o.Kind] == nil {
			all[o.Kind] = map[string]int{}
		}
		all[o.Kind][names.Replace(strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))] += n
	}
	for o, n := range w.api.Applied() {
		add(o, min(n, stored[[3]string{o.Kind, o.Namespace, o.Name}]))
	}
	for o, n := range w.forge.Applied() {
		add(o, n)
	}
	return all
}

// judge holds everything that was seen to the promises.
func (w *workload) judge(ctx context.Context, r *result, seen *reference, p point, undisturbed *reference) error {
	w.mu.Lock()
	kills, crashes := w.kills, slices.Clone(w.crashes)
	w.mu.Unlock()
	for _, err := range crashes {
		r.Violations = append(r.Violations, err.Error())
	}
	var hits []proxy.Hit
	struck := make([]int, len(p.faults))
	for _, p := range w.proxies() {
		hits, r.Recoveries = append(hits, p.Hits()...), append(r.Recoveries, p.Recoveries()...)
		for i, n := range p.Struck() {
			struck[i] += n
		}
	}
	r.Hits, r.Unmet = len(hits)+w.strokes, p.unmet(struck)
	if r.Hits == 0 && undisturbed != nil {
		r.Violations = append(r.Violations, idle)
	}
	if n := w.measures.refused(); n > 0 {
		r.Violations = append(r.Violations, fmt.Sprintf("%d requests of a webhook are not signed", n))
	}
	changes, err := w.history.Changes()
	if err != nil {
		return err
	}
	account, broken := oracle.Judge(changes, expectations(p))
	seen.Reports = account.Reports
	r.Revisions, r.Violations = account.Revisions, append(r.Violations, broken...)
	stored, err := recording.Stored(changes)
	if err != nil {
		return err
	}
	report, err := stored.JudgeStored(w.plans)
	r.Steps = report.Steps
	if err != nil {
		r.Violations = append(r.Violations, "trace: "+err.Error())
	}
	lost := 0
	for _, h := range hits {
		if h.Write.Resource == "statuses" || h.Action.Kills() {
			lost++
		}
	}
	log := w.Forge.Log()
	terminal, broken := oracle.Statuses(log, w.shas, max(lost, kills, p.repeats))
	r.Violations = append(r.Violations, broken...)
	if lost == 0 && p.repeats == 0 && !p.clocked { // progress is posted by the clock
		r.Violations = append(r.Violations, forge.Violations(log)...)
	}
	if terminal != len(w.shas) {
		r.Violations = append(r.Violations, fmt.Sprintf("%d commits pushed, %d terminal", len(w.shas), terminal))
	}
	if account.Reserved != account.Released {
		r.Violations = append(r.Violations, fmt.Sprintf("%d slots reserved, %d released", account.Reserved, account.Released))
	}
	requested, approved, err := w.requests(ctx)
	if err != nil {
		return err
	}
	if requested != clusters || approved != clusters {
		r.Violations = append(r.Violations, fmt.Sprintf("%d certificates requested, %d approved", requested, approved))
	}
	r.Account = fmt.Sprintf("commits %d/%d, slots %d/%d, statuses %d, approvals %d, orders %d/%d, CSRs %d/%d",
		len(w.shas), terminal, account.Reserved, account.Released, len(log), account.Approvals, account.Orders, account.Answered, requested, approved)
	shown, err := w.Shown(ctx, planted, nil)
	if err != nil {
		return err
	}
	for _, at := range shown {
		r.Violations = append(r.Violations, "not only in Secrets: "+at)
	}
	if undisturbed != nil {
		r.Violations = slices.Concat(r.Violations, w.compare(seen), r.count(seen, undisturbed, w.demanded(hits, account, undisturbed)), w.missing())
	}
	return nil
}

// compare holds a run to the undisturbed one.
func (w *workload) compare(seen *reference) []string {
	var broken []string
	for i, standing := range seen.Standing {
		for _, d := range w.differences(i, standing) {
			broken = append(broken, fmt.Sprintf("end state %d: %s", i+1, d))
		}
	}
	return broken
}

// demanded is how many writes of each kind the faults made necessary: one for each answer that the operator did not
// get; those that undo each edit; a ledger for each cluster that came or went; and the status of a
// ManagedClusterAddOn for each report that an agent made besides those of the undisturbed run.
func (w *workload) demanded(hits []proxy.Hit, account oracle.Account, undisturbed *reference) map[string]int {
	all := maps.Clone(w.undo)
	if all == nil {
		all = map[string]int{}
	}
	for _, h := range hits {
		all[h.Write.Kind()]++
	}
	all["addonrollouts"] += account.Moves
	all["managedclusteraddons"] += max(0, account.Reports-undisturbed.Reports)
	return all
}

// count compares how often each kind, and each object of it, was written with twice the undisturbed run, and what was
// demanded besides. An object that the undisturbed run does not write may be written as often as another of its kind.
func (r *result) count(seen, undisturbed *reference, demanded map[string]int) []string {
	var broken []string
	judge := func(what, kind string, n, normal int) {
		if n > 2*normal+demanded[kind] {
			broken = append(broken, fmt.Sprintf("%d writes of %s; the undisturbed run has %d, and the faults demand %d", n, what, normal, demanded[kind]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(seen.Applied)) {
		objects, normal := seen.Applied[kind], undisturbed.Applied[kind]
		n := total(objects)
		if factor := float64(n) / float64(max(1, total(normal))); factor > r.Factor {
			r.Most, r.Factor = kind, factor
		}
		judge(kind, kind, n, total(normal))
		most := 0
		for _, n := range normal {
			most = max(most, n)
		}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			usual, known := normal[name]
			if !known {
				usual = most
			}
			judge(kind+" "+name, kind, objects[name], usual)
		}
	}
	return broken
}

// total of the writes of a kind.
func total(objects map[string]int) int {
	sum := 0
	for _, n := range objects {
		sum += n
	}
	return sum
}

// save keeps what a failing run left, and says where.
func (h harness) save(w *world, p point) string {
	dir, err := os.MkdirTemp(h.keep, p.file()+"-")
	if err == nil {
		err = errors.Join(os.CopyFS(dir, os.DirFS(w.Dir)), w.history.Save(filepath.Join(dir, "history.jsonl")))
	}
	if err != nil {
		return errors.Join(errors.New("its logs could not be kept"), err).Error()
	}
	return "logs: " + dir
}
