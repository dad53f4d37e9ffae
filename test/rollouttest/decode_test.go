package rollouttest_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// three is a ledger of three clusters: a is Done, b and c soak.
func three() v1alpha1.Ledger {
	at := func(state rollout.State, name string) rollout.Record {
		return rollout.Record{
			Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "canary", State: state},
			Admitted: rollouttest.Epoch(), Since: rollouttest.Epoch().Add(time.Minute),
		}
	}
	l := rollouttest.LedgerOf(at(rollout.Done, "a"), at(rollout.Soaking, "b"), at(rollout.Soaking, "c"))
	l.Records = l.Records[:2]
	l.Records[1].Times[0].Clusters = "1-2"
	return l
}

func TestLedgerIsReadByItsDescription(t *testing.T) {
	l := three()
	ahead := metav1.NewTime(rollouttest.Epoch().Add(time.Hour))
	l.Records[1].Times[0].Ahead = &ahead
	records, err := rollouttest.Records(l)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 3 || records["a"].State != rollout.Done || records["c"].State != rollout.Soaking || records["c"].Stage != "canary" {
		t.Errorf("got %+v", records)
	}
	if r := records["b"]; r.Since.Sub(r.Admitted) != time.Minute || !r.Ahead.Equal(ahead.Time) || r.Cluster != "b" {
		t.Errorf("got %+v", r)
	}
	if records, err := rollouttest.Records(v1alpha1.Ledger{}); err != nil || len(records) != 0 {
		t.Errorf("an empty ledger: %v, %v", records, err)
	}
}

func TestLedgerThatContradictsItsDescriptionIsRefused(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Ledger){
		"names are no gzip": func(l *v1alpha1.Ledger) { l.Names = []byte("a") },
		"names end early":   func(l *v1alpha1.Ledger) { l.Names = l.Names[:len(l.Names)-9] },
		"a name twice": func(l *v1alpha1.Ledger) {
			l.Names = rollouttest.LedgerOf(rollout.Record{Cluster: "a"}, rollout.Record{Cluster: "a"}).Names
		},
		"a name without a record":      func(l *v1alpha1.Ledger) { l.Records = l.Records[:1] },
		"two records of a cluster":     func(l *v1alpha1.Ledger) { l.Records[1].Times[0].Clusters = "0-2" },
		"a position without a name":    func(l *v1alpha1.Ledger) { l.Records[1].Times[0].Clusters = "1-3" },
		"positions out of order":       func(l *v1alpha1.Ledger) { l.Records[1].Times[0].Clusters = "2,1" },
		"a range backwards":            func(l *v1alpha1.Ledger) { l.Records[1].Times[0].Clusters = "2-1" },
		"no positions":                 func(l *v1alpha1.Ledger) { l.Records[1].Times[0].Clusters = "" },
		"no revision":                  func(l *v1alpha1.Ledger) { l.Records[0].Revision = "" },
		"the state of no record":       func(l *v1alpha1.Ledger) { l.Records[0].State = rollout.Waiting },
		"done, and failed before":      func(l *v1alpha1.Ledger) { l.Records[0].Failed = true },
		"done, and reverted":           func(l *v1alpha1.Ledger) { l.Records[0].Reverted = true },
		"soaks, and is excused":        func(l *v1alpha1.Ledger) { l.Records[1].Excused = true },
		"soaks, and reports":           func(l *v1alpha1.Ledger) { l.Records[1].Reported = true },
		"soaks, and is refused":        func(l *v1alpha1.Ledger) { l.Records[1].Refusal = "no quota" },
		"a part of a second":           func(l *v1alpha1.Ledger) { l.Records[0].Times[0].Since.Time = l.Records[0].Times[0].Since.Add(1) },
		"no time":                      func(l *v1alpha1.Ledger) { l.Records[0].Times[0].Admitted = metav1.Time{} },
		"done, and its clock is ahead": func(l *v1alpha1.Ledger) { l.Records[0].Times[0].Ahead = new(metav1.Now()) },
		"a removal of unknown clusters": func(l *v1alpha1.Ledger) {
			l.Removal = &v1alpha1.RemovalRecord{Leaving: []v1alpha1.LeavingClusters{{Clusters: "3"}}}
		},
	} {
		l := three()
		change(&l)
		if records, err := rollouttest.Records(l); err == nil {
			t.Errorf("%s: read as %+v", name, records)
		}
	}
}
