package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestRevisionThatIsMissing_IsNamed: the name is what a user finds on the hub; a digest is not.
func TestRevisionThatIsMissing_IsNamed(t *testing.T) {
	o := at(v1alpha1.Target{})
	o.Rollout.Name = "hello"
	digest := "v1:sha256:" + strings.Repeat("0123456789abcdef", 4)
	_, err := o.Renderer(digest)
	if !errors.Is(err, ErrRevisionMissing) || err.Error() != "revision is missing: hello-0123456789" {
		t.Errorf("got %v", err)
	}
	if got := o.definitionsLost("", digest, false); strings.Contains(got, digest) {
		t.Errorf("a rollback to it says %q", got)
	}
}

func TestChooseAndConfirm_DoNotChangeTheObservation(t *testing.T) {
	good, bad := v1alpha1.Target{Digest: "good", Revision: "hello-good"}, v1alpha1.Target{Digest: "bad", Revision: "hello-bad"}
	o := at(bad)
	o.Rollout.Name = "hello"
	o.Rollout.Status.History = []v1alpha1.HistoryEntry{{Target: bad, Quarantine: &v1alpha1.RememberedQuarantine{RevisionUID: "deleted"}}}
	o.Choice = Choice{}
	o.StoredRevisions = StoredRevisions{
		MarkedSucceeded:   Succeeded{{Name: good.Revision, Digest: good.Digest, At: "2026-01-02T00:00:00Z"}, {Name: bad.Revision, Digest: bad.Digest, At: "2026-01-01T00:00:00Z"}},
		MarkedQuarantined: map[string]v1alpha1.RememberedQuarantine{},
		Stored:            []v1alpha1.Target{good, bad}, StoredAs: map[string]types.UID{good.Revision: "1", bad.Revision: "2"},
	}
	chosen := o.Choose()
	if chosen.Target != good || !chosen.Override.Returns() || len(chosen.Succeeded) != 1 || len(chosen.Quarantined) != 1 {
		t.Errorf("Choose: got %+v", chosen)
	}
	if !reflect.DeepEqual(o.Choice, Choice{}) || len(o.MarkedQuarantined) != 0 || len(o.MarkedSucceeded) != 2 {
		t.Errorf("Choose changed the observation: %+v %+v", o.Choice, o.StoredRevisions)
	}
	o.Choice = chosen
	kept, withdrawn := o.Confirm() // the body of the revision is missing
	if !withdrawn || kept.Barrier == "" || kept.Target != bad {
		t.Errorf("Confirm: got %t %+v", withdrawn, kept)
	}
	if !reflect.DeepEqual(o.Choice, chosen) || o.Barrier != "" {
		t.Errorf("Confirm changed the observation: %+v", o.Choice)
	}
}
