package rollouttest

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// LedgerOf is a stored ledger of the records: each in a group of its own.
func LedgerOf(records ...rollout.Record) v1alpha1.Ledger {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b rollout.Record) int { return strings.Compare(a.Cluster, b.Cluster) })
	var names []string
	var l v1alpha1.Ledger
	for i, r := range records {
		names = append(names, r.Cluster)
		l.Records = append(l.Records, v1alpha1.RecordGroup{RecordKey: r.RecordKey, Times: []v1alpha1.RecordTimes{{
			Admitted: metav1.NewTime(r.Admitted), Since: metav1.NewTime(r.Since), Clusters: strconv.Itoa(i),
		}}})
	}
	for i, r := range records {
		if !r.Ahead.IsZero() {
			l.Records[i].Times[0].Ahead = new(metav1.NewTime(r.Ahead))
		}
	}
	if len(names) > 0 {
		l.Names = zipped(strings.Join(names, "\n"))
	}
	return l
}

// zipped is the text as a ledger stores its names.
func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer refuses no write
	_ = z.Close()
	return b.Bytes()
}
