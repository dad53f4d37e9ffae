package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// longestLine bounds a line of a file of plans.
const longestLine = 256 << 20

// Report is what Judge looked at.
type Report struct {
	// Rollouts that were recorded, their steps, those of them whose plan is known, records that no
	// planned step wrote (History.Believed), and works that got other content.
	Rollouts, Steps, Planned, Believed, Contents int
}

// Judge writes a trace of each rollout and judges it, and compares every work that got other
// content with the ledger that was stored before it. The error names each step that is not
// allowed and its trace, which is kept; otherwise the traces are deleted. plans is the
// operators' trace file; without one, no operator ran.
func (r *Recording) Judge(ctx context.Context, c client.Client, plans string) (Report, error) {
	until, err := r.catchUp(ctx, c)
	if err != nil {
		return Report{}, err
	}
	return r.judge(until, plans)
}

// JudgeStored does the same with a recording that is complete.
func (r *Recording) JudgeStored(plans string) (Report, error) { return r.judge(math.MaxUint64, plans) }

func (r *Recording) judge(until uint64, plans string) (report Report, err error) {
	planned, err := readPlans(plans)
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "addonflow-traces-")
	if err != nil {
		return report, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	broken := r.ended
	for _, versions := range r.rollouts {
		report.Rollouts++
		err := judge(&report, filepath.Join(dir, fmt.Sprintf("%s-%s.jsonl", versions[0].Name, versions[0].UID)), steps(versions, planned))
		broken = errors.Join(broken, err)
	}
	for _, contents := range r.works {
		for _, w := range contents {
			if w.written <= r.from || w.written > until {
				continue
			}
			report.Contents++
			broken = errors.Join(broken, r.reserved(w))
		}
	}
	if broken != nil {
		return report, fmt.Errorf("traces in %s: %w", dir, broken)
	}
	return report, os.RemoveAll(dir)
}

// catchUp waits until every rollout is recorded as it is now, and returns the version of the
// hub up to which the record is complete.
func (r *Recording) catchUp(ctx context.Context, c client.Client) (uint64, error) {
	var list v1alpha1.AddOnRolloutList
	if err := c.List(ctx, &list); err != nil {
		return 0, fmt.Errorf("cannot list the rollouts: %w", err)
	}
	until := versionNumber(list.ResourceVersion)
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range list.Items {
			versions := r.rollouts[list.Items[i].UID]
			if len(versions) == 0 || version(versions[len(versions)-1]) < version(&list.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return 0, fmt.Errorf("the watch does not catch up: %w", err)
	}
	return until, nil
}

// readPlans reads a file of plans, by the version with which each was made. A line that is cut
// off is from an operator that was killed, so nothing of it was stored.
func readPlans(name string) (map[string][]addonrollout.Planning, error) {
	plans := map[string][]addonrollout.Planning{}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return plans, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var p addonrollout.Planning
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			if wrong, ok := errors.AsType[*json.SyntaxError](err); ok && wrong.Offset == int64(len(lines.Bytes())) {
				continue
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		plans[p.ResourceVersion] = append(plans[p.ResourceVersion], p)
	}
	return plans, lines.Err()
}

// steps are the plans that took effect: plans that did not change their ledger, and plans whose
// ledger the next version has. A ledger without a plan is a step that was not observed.
func steps(versions []*v1alpha1.AddOnRollout, plans map[string][]addonrollout.Planning) []rollouttest.Step {
	var all []rollouttest.Step
	if first := versions[0].Status.Ledger; len(first.Records) > 0 {
		all = append(all, rollouttest.Step{Ledger: first, Start: true})
	}
	for i, v := range versions {
		changed := i+1 < len(versions) && !same(v.Status.Ledger, versions[i+1].Status.Ledger)
		stored := -1
		of := plans[v.ResourceVersion]
		for k := range of {
			switch {
			case same(of[k].Ledger, v.Status.Ledger):
				all = append(all, step(of[k]))
			case changed && same(of[k].Ledger, versions[i+1].Status.Ledger):
				stored = k
			}
		}
		switch {
		case stored >= 0:
			all = append(all, step(of[stored]))
		case changed:
			all = append(all, rollouttest.Step{Ledger: versions[i+1].Status.Ledger, Foreign: foreign(v, versions[i+1])})
		}
	}
	return all
}

// foreign reports whether another writer than the operator stored the status of the second version, or removed it.
func foreign(before, after *v1alpha1.AddOnRollout) bool {
	none := v1alpha1.AddOnRolloutStatus{}
	if equality.Semantic.DeepEqual(after.Status, none) && !equality.Semantic.DeepEqual(before.Status, none) {
		return true
	}
	return slices.ContainsFunc(after.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "status" && m.Manager != v1alpha1.FieldManager && !slices.ContainsFunc(before.ManagedFields, func(was metav1.ManagedFieldsEntry) bool {
			return was.Subresource == m.Subresource && was.Manager == m.Manager && was.Time.Equal(m.Time)
		})
	})
}

func step(p addonrollout.Planning) rollouttest.Step {
	return rollouttest.Step{Input: &p.Input, Ledger: p.Ledger, Actions: p.Actions, Refused: p.Refused}
}

func same(a, b v1alpha1.Ledger) bool { return equality.Semantic.DeepEqual(a, b) }

// judge writes a trace and judges what was written.
func judge(report *Report, name string, all []rollouttest.Step) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	to := rollouttest.NewRecorder(out)
	for _, s := range all {
		if err := to.Record(s); err != nil {
			return err
		}
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var broken error
	believed, err := rollouttest.CheckTrace(out, func(line int, s rollouttest.Step, verdict error) {
		report.Steps++
		if s.Input != nil {
			report.Planned++
		}
		if verdict != nil {
			broken = errors.Join(broken, fmt.Errorf("%s:%d: not allowed: %w", name, line, verdict))
		}
	})
	report.Believed += believed
	return errors.Join(err, broken)
}

// reserved expects that the newest ledger that an operator stored before the work was written had admitted the work's
// cluster to this content. A status that another writer restores reserves nothing, and takes back no reservation.
func (r *Recording) reserved(w content) error {
	var last *v1alpha1.AddOnRollout
	for _, versions := range r.rollouts {
		if versions[0].Name != w.addOn {
			continue
		}
		for i, v := range versions {
			if version(v) < w.written && (i == 0 || !foreign(versions[i-1], v)) && (last == nil || version(v) > version(last)) {
				last = v
			}
		}
	}
	if last == nil {
		return fmt.Errorf("work %s got revision %s at %d, before there was a rollout", w.name, w.revision, w.written)
	}
	records, err := rollouttest.Records(last.Status.Ledger)
	if err != nil {
		return fmt.Errorf("version %s of rollout %s: %w", last.ResourceVersion, last.Name, err)
	}
	if records[w.cluster].Revision != w.revision {
		return fmt.Errorf("work %s got revision %s at %d, and version %s of the rollout had no record of it",
			w.name, w.revision, w.written, last.ResourceVersion)
	}
	return nil
}
