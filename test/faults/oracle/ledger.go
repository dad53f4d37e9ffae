package oracle

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
)

// record is the entry of one cluster in a ledger. admitted is when the cluster got its slot.
type record struct{ revision, stage, state, admitted string }

// inFlight are the states that hold a slot, as docs/design.md lists them.
var inFlight = []string{"Admitted", "Updating", "Soaking", "Lost"}

func (r record) inFlight() bool { return slices.Contains(inFlight, r.state) }

// ledger reads the records of a stored AddOnRollout, by cluster.
func ledger(rollout map[string]any) (map[string]record, error) {
	stored := get(rollout, "status", "ledger")
	names, err := namesOf(text(stored, "names"))
	if err != nil {
		return nil, err
	}
	records := map[string]record{}
	for _, group := range list(stored, "records") {
		for _, times := range list(group, "times") {
			r := record{text(group, "revision"), text(group, "stage"), text(group, "state"), text(times, "admitted")}
			for part := range strings.SplitSeq(text(times, "clusters"), ",") {
				first, last, isRange := strings.Cut(part, "-")
				if !isRange {
					last = first
				}
				from, err := number(first)
				if err != nil {
					return nil, err
				}
				to, err := number(last)
				if err != nil {
					return nil, err
				}
				for i := from; i <= to; i++ {
					if i >= len(names) {
						return nil, fmt.Errorf("position %d of %d names", i, len(names))
					}
					if _, twice := records[names[i]]; twice {
						return nil, fmt.Errorf("%s has two records", names[i])
					}
					records[names[i]] = r
				}
			}
		}
	}
	return records, nil
}

func namesOf(encoded string) ([]string, error) {
	if encoded == "" {
		return nil, nil
	}
	zipped, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	names, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	return strings.Split(string(names), "\n"), nil
}
