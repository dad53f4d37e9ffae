package forge

import (
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// TestStatusLinksToItsPage: a status without a target URL links to the page of its rollout or
// source, and never to an address that a forge would refuse.
func TestStatusLinksToItsPage(t *testing.T) {
	rollout, source := v1alpha1.AddOnRolloutKind+"/fleet/hello", v1alpha1.AddOnSourceKind+"/fleet/team"
	for name, c := range map[string]struct{ pages, key, want string }{
		"Rollout": {"https://hub.example/addonflow", rollout, "https://hub.example/addonflow/rollouts/fleet/hello/" + sha},
		"Source":  {"https://hub.example/", source, "https://hub.example/sources/fleet/team/" + sha},
		"NoPages": {"", rollout, ""},
		"TooLong": {"https://hub.example", v1alpha1.AddOnRolloutKind + "/fleet/" + strings.Repeat("a", 200), "https://hub.example/"},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDesk(Options{Pages: c.pages})
			if got := d.link(c.key, sha); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	b := newBench(t, goodWord)
	b.desk.options.Pages = "https://hub.example"
	b.reconcile(want(commitstatus.Success, "applied"))
	b.awaitRequest()
	if e, _ := b.forge.Latest(sha, "addonflow/team"); e.TargetURL != "https://hub.example/sources/fleet/team/"+sha {
		t.Errorf("the forge links to %q", e.TargetURL)
	}
}
