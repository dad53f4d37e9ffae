package rollouttest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Records reads the records of a ledger by cluster, as the API describes them. It shares nothing with the planner's
// decoder, and refuses everything that the description does not allow.
func Records(l v1alpha1.Ledger) (map[string]rollout.Record, error) { return (&decoder{}).records(l) }

// decoder remembers the last lists of names: most ledgers of a history have the same one.
type decoder struct {
	names []string
	known map[string][]string
}

func (d *decoder) records(l v1alpha1.Ledger) (map[string]rollout.Record, error) {
	if err := d.unzip(l.Names); err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	found, named := map[string]rollout.Record{}, make([]bool, len(d.names))
	for _, g := range l.Records {
		if err := coherent(g.RecordKey); err != nil {
			return nil, fmt.Errorf("records of %s in state %s: %w", g.Revision, g.State, err)
		}
		for _, t := range g.Times {
			at, err := spots(t.Clusters, len(d.names))
			switch {
			case err != nil:
				return nil, err
			case t.Admitted.Nanosecond() != 0 || t.Since.Nanosecond() != 0 || t.Admitted.IsZero() || t.Since.IsZero():
				return nil, fmt.Errorf("times %s and %s are not whole seconds", t.Admitted, t.Since)
			case t.Ahead != nil && g.State != rollout.Soaking:
				return nil, fmt.Errorf("a clock is ahead in state %s", g.State)
			}
			for _, i := range at {
				if named[i] {
					return nil, fmt.Errorf("%s has two records", d.names[i])
				}
				r := rollout.Record{Cluster: d.names[i], RecordKey: g.RecordKey, Admitted: t.Admitted.UTC(), Since: t.Since.UTC()}
				if t.Ahead != nil {
					r.Ahead = t.Ahead.UTC()
				}
				found[r.Cluster], named[i] = r, true
			}
		}
	}
	if l.Removal != nil {
		for _, leaving := range l.Removal.Leaving {
			at, err := spots(leaving.Clusters, len(d.names))
			if err != nil {
				return nil, fmt.Errorf("removal: %w", err)
			}
			for _, i := range at {
				named[i] = true
			}
		}
	}
	if i := slices.Index(named, false); i >= 0 {
		return nil, fmt.Errorf("%s is named, and nothing is said about it", d.names[i])
	}
	return found, nil
}

// unzip reads the list of names: one a line, in order, each once.
func (d *decoder) unzip(zipped []byte) error {
	if known, ok := d.known[string(zipped)]; ok || len(zipped) == 0 {
		d.names = known
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	d.names = strings.Split(string(text), "\n")
	if !slices.IsSorted(d.names) || slices.Contains(d.names, "") || len(slices.Compact(slices.Clone(d.names))) < len(d.names) {
		return fmt.Errorf("%q are not sorted, or not different", d.names)
	}
	if d.known == nil || len(d.known) == 32 {
		d.known = map[string][]string{}
	}
	d.known[string(zipped)] = d.names
	return nil
}

// coherent returns an error if the flags of a record contradict its state.
func coherent(k v1alpha1.RecordKey) error {
	is := func(states ...rollout.State) bool { return slices.Contains(states, k.State) }
	flying := is(rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Lost)
	failure := is(rollout.Failed, rollout.TimedOut, rollout.NotWritten, rollout.LeftFailed)
	switch {
	case k.Revision == "":
		return errors.New("no revision")
	case !flying && !failure && !is(rollout.Done, rollout.Parked, rollout.Left):
		return errors.New("no state of a record")
	case k.Failed && !flying && !is(rollout.Parked), k.Excused && is(rollout.Soaking, rollout.Done), k.Reverted && is(rollout.Done):
		return errors.New("a flag that ends before this state")
	case k.Reported && !is(rollout.Updating, rollout.Lost), k.Refusal != "" && !is(rollout.Admitted, rollout.Failed, rollout.TimedOut):
		return errors.New("a flag that the state does not have")
	}
	return nil
}

// spots reads positions such as "0-3,7": ascending, below n.
func spots(text string, n int) ([]int, error) {
	var found []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 31)
		last := first
		if isRange && err == nil {
			last, err = strconv.ParseUint(to, 10, 31)
		}
		if err != nil || last < first || int(last) >= n || len(found) > 0 && int(first) <= found[len(found)-1] {
			return nil, fmt.Errorf("positions %q of %d clusters", text, n)
		}
		for i := first; i <= last; i++ {
			found = append(found, int(i))
		}
	}
	return found, nil
}
