package plan

import (
	"errors"
	"strings"
	"testing"

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
