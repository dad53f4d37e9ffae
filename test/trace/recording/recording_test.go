package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ledger has one record, of cluster c1.
func ledger(state rollout.State) v1alpha1.Ledger {
	return rollouttest.LedgerOf(rollout.Record{Cluster: "c1", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "canary", State: state}, Admitted: noon, Since: noon})
}

func stored(version string, l v1alpha1.Ledger) *v1alpha1.AddOnRollout {
	ro := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "one", ResourceVersion: version}}
	ro.Status.Ledger = l
	return ro
}

func plan(version, addOn string, l v1alpha1.Ledger) addonrollout.Planning {
	return addonrollout.Planning{ResourceVersion: version, Input: rollout.Input{AddOn: addOn}, Ledger: l}
}

// TestStepsAreThePlansThatTookEffect: a plan that lost a write conflict is not a step, and a
// ledger without a plan is a step that was not observed.
func TestStepsAreThePlansThatTookEffect(t *testing.T) {
	versions := []*v1alpha1.AddOnRollout{
		stored("10", v1alpha1.Ledger{}), stored("12", ledger(rollout.Admitted)), stored("15", ledger(rollout.Admitted)), stored("20", ledger(rollout.Done)),
	}
	plans := map[string][]addonrollout.Planning{
		"10": {plan("10", "waits", v1alpha1.Ledger{}), plan("10", "lost", ledger(rollout.Failed)), plan("10", "stored", ledger(rollout.Admitted))},
		"12": {plan("12", "looks", ledger(rollout.Admitted))},
		"20": {plan("20", "not stored", v1alpha1.Ledger{})},
	}
	var got []string
	for _, s := range steps(versions, plans) {
		if s.Input == nil {
			got = append(got, "unobserved")
			continue
		}
		got = append(got, s.Input.AddOn)
	}
	if want := "waits stored looks unobserved"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestLineThatAKilledOperatorCutOffIsLeftOut: another operator's line may follow it.
func TestLineThatAKilledOperatorCutOffIsLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plans.jsonl")
	if err := os.WriteFile(file, []byte("\n{\"resourceVersion\":\"6\",\"na\n{\"resourceVersion\":\"7\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plans, err := readPlans(file)
	if err != nil || len(plans) != 1 || len(plans["7"]) != 1 {
		t.Errorf("got %v, %v", plans, err)
	}
	if err := os.WriteFile(file, []byte("no plan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPlans(file); err == nil {
		t.Error("a line that is no plan is read")
	}
}

// TestWorkIsReservedBeforeItIsWritten: by the versions of the hub alone.
func TestWorkIsReservedBeforeItIsWritten(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "addon-hello-deploy-0", UID: "work", ResourceVersion: "11", Labels: map[string]string{addOnLabel: "hello"},
		Annotations: map[string]string{v1alpha1.DigestAnnotation: "d2", v1alpha1.RevisionAnnotation: "v2"},
	}}
	for version, reserved := range map[string]bool{"10": true, "12": false} {
		r := empty()
		r.note(watch.Event{Type: watch.Added, Object: stored("9", v1alpha1.Ledger{})})
		r.note(watch.Event{Type: watch.Modified, Object: stored(version, ledger(rollout.Admitted))})
		r.note(watch.Event{Type: watch.Added, Object: work})
		if err := r.reserved(r.works["work"][0]); (err == nil) != reserved {
			t.Errorf("reserved at %s, written at 11: %v", version, err)
		}
	}
	// A status that another writer stored last, as from a backup, neither reserves nor takes back a reservation.
	for name, ledgers := range map[string][]v1alpha1.Ledger{
		"taken back": {ledger(rollout.Admitted), {}}, "reserved": {{}, ledger(rollout.Admitted)},
	} {
		restored := stored("10", ledgers[1])
		restored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "backup", Subresource: "status"}}
		r := empty()
		r.note(watch.Event{Type: watch.Added, Object: stored("9", ledgers[0])})
		r.note(watch.Event{Type: watch.Modified, Object: restored})
		r.note(watch.Event{Type: watch.Added, Object: work})
		if err := r.reserved(r.works["work"][0]); (err == nil) != (name == "taken back") {
			t.Errorf("%s by a backup: %v", name, err)
		}
	}
}
