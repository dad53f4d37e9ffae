package addonstatus

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// contentOf is the content of a cluster: a template and a configuration.
func contentOf(templateHash string) render.Rendered {
	group := addonv1alpha1.GroupName
	return render.Rendered{
		Digest: templateHash,
		ConfigReferences: []render.ConfigHash{
			{ConfigReference: render.ConfigReference{Group: group, Resource: "addondeploymentconfigs", Namespace: "default", Name: "config"}, SpecHash: "c1"},
			{ConfigReference: render.ConfigReference{Group: group, Resource: "addontemplates", Name: "template"}, SpecHash: templateHash},
		},
	}
}

var healthy = render.Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available."}

// written applies moves one after another and returns the number of writes.
func written(t *testing.T, addOn *addonv1alpha1.ManagedClusterAddOn, moves ...Move) int {
	t.Helper()
	writes, now := 0, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, m := range moves {
		now = now.Add(time.Minute)
		next, changed := Next(addOn, m, metav1.NewTime(now))
		if changed {
			writes++
			addOn.Status = next
		}
	}
	return writes
}

func TestNextStatusWords(t *testing.T) {
	v1, v2 := contentOf("t1"), contentOf("t2")
	install := []Move{{Rendered: v1}, {Rendered: v1, State: Done, Available: healthy}}
	cases := map[string]struct {
		reason string
		before []Move
		last   Move
		want   string
	}{
		"Installing":       {reason: "nothing was ever applied", last: Move{Rendered: v1}, want: v1alpha1.Installing},
		"InstallSucceed":   {reason: "verified for the first time", before: install[:1], last: install[1], want: v1alpha1.InstallSucceed},
		"InstallFailed":    {reason: "never verified", before: install[:1], last: Move{Rendered: v1, State: Failed, Reason: "boom"}, want: v1alpha1.InstallFailed},
		"AtRest":           {reason: "looking again must not reword an install into an upgrade", before: install, last: install[1], want: v1alpha1.InstallSucceed},
		"Upgrading":        {reason: "something was applied before", before: install, last: Move{Rendered: v2}, want: v1alpha1.Upgrading},
		"UpgradeSucceed":   {reason: "verified again", before: append(install, Move{Rendered: v2}), last: Move{Rendered: v2, State: Done, Available: healthy}, want: v1alpha1.UpgradeSucceed},
		"UpgradeFailed":    {reason: "the new content gave up", before: append(install, Move{Rendered: v2}), last: Move{Rendered: v2, State: Failed, Reason: "boom"}, want: v1alpha1.UpgradeFailed},
		"RollingBack":      {reason: "the target succeeded here before", before: install, last: Move{Rendered: v2, Reverting: true}, want: v1alpha1.RollingBack},
		"RollbackSucceed":  {reason: "and is verified again", before: append(install, Move{Rendered: v2, Reverting: true}), last: Move{Rendered: v2, Reverting: true, State: Done, Available: healthy}, want: v1alpha1.RollbackSucceed},
		"RollbackFailed":   {reason: "or gave up", before: append(install, Move{Rendered: v2, Reverting: true}), last: Move{Rendered: v2, Reverting: true, State: Failed, Reason: "boom"}, want: v1alpha1.RollbackFailed},
		"InstallRecovered": {reason: "a failure is not for ever", before: []Move{{Rendered: v1}, {Rendered: v1, State: Failed}}, last: install[1], want: v1alpha1.InstallSucceed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			written(t, addOn, slices.Concat(tc.before, []Move{tc.last})...)
			c := meta.FindStatusCondition(addOn.Status.Conditions, progressing)
			want := map[string]string{
				v1alpha1.Installing: "True: installing...", v1alpha1.InstallSucceed: "False: install completed with no errors.", v1alpha1.InstallFailed: "False: install failed: boom",
				v1alpha1.Upgrading: "True: upgrading...", v1alpha1.UpgradeSucceed: "False: upgrade completed with no errors.", v1alpha1.UpgradeFailed: "False: upgrade failed: boom",
				v1alpha1.RollingBack: "True: rolling back...", v1alpha1.RollbackSucceed: "False: rollback completed with no errors.", v1alpha1.RollbackFailed: "False: rollback failed: boom",
			}[tc.want]
			if c == nil || c.Reason != tc.want || string(c.Status)+": "+c.Message != want {
				t.Errorf("%s: got %+v, want %s %s", tc.reason, c, tc.want, want)
			}
		})
	}
}

func TestSeveralConfigurationsOfOneKindKeepTheirOwnHashes(t *testing.T) {
	reference := func(name string) render.ConfigHash {
		return render.ConfigHash{ConfigReference: render.ConfigReference{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs", Namespace: "default", Name: name}, SpecHash: name}
	}
	both := render.Rendered{ConfigReferences: []render.ConfigHash{reference("a"), reference("b")}}
	turned := render.Rendered{ConfigReferences: []render.ConfigHash{reference("b"), reference("a")}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	written(t, addOn, Move{Rendered: both}, Move{Rendered: both, State: Done, Available: healthy}, Move{Rendered: turned})
	for i, want := range []string{"b", "a"} {
		if got := addOn.Status.ConfigReferences[i]; got.Name != want || got.LastAppliedConfig.SpecHash != want {
			t.Errorf("reference %d is %+v, want %s: reordering takes effect, and each keeps what was applied of it", i, got, want)
		}
	}
}

func TestNextStatusCostsTwoWrites(t *testing.T) {
	v1 := contentOf("t1")
	started, done := Move{Rendered: v1}, Move{Rendered: v1, State: Done, Available: healthy}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if got := written(t, addOn, started, started, done, done, done); got != 2 {
		t.Errorf("a move is two writes however often it is looked at, got %d", got)
	}
}

func TestNextStatusHidesTemplateHash(t *testing.T) {
	v1 := contentOf("t1")
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	written(t, addOn, Move{Rendered: v1, HidesTemplateHash: true}, Move{Rendered: v1, HidesTemplateHash: true, State: Done, Available: healthy})
	refs := addOn.Status.ConfigReferences
	if len(refs) != 2 || refs[0].DesiredConfig.SpecHash != "c1" || refs[0].LastAppliedConfig.SpecHash != "c1" {
		t.Fatalf("a configuration's hash is shown on both sides once applied: %+v", refs)
	}
	if refs[1].DesiredConfig.SpecHash != "" || refs[1].LastAppliedConfig == nil || refs[1].LastAppliedConfig.SpecHash != "" {
		t.Errorf("with the template's hash OCM's template manager would deploy at once: %+v", refs[1])
	}
}

func TestNextStatusLeavesAvailableToTheHub(t *testing.T) {
	v1 := contentOf("t1")
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	written(t, addOn, Move{Rendered: v1}, Move{Rendered: v1, State: Done, Available: healthy, UnknownCluster: true})
	if c := meta.FindStatusCondition(addOn.Status.Conditions, "Available"); c != nil {
		t.Errorf("the hub writes Available while the cluster is Unknown, we wrote %+v", c)
	}
}

func TestNextStatusKeepsForeignConditions(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	foreign := metav1.Condition{Type: "ClusterCertificateRotated", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}
	addOn.Status.Conditions = []metav1.Condition{foreign}
	written(t, addOn, Move{Rendered: contentOf("t1")})
	if meta.FindStatusCondition(addOn.Status.Conditions, foreign.Type) == nil {
		t.Error("conditions of other controllers stay")
	}
}

// Available has OCM's text. OCM defines only the name of Degraded.
func TestAvailableAndDegradedAsOCMWordsThem(t *testing.T) {
	v1 := contentOf("t1")
	notApplied := render.Availability{Status: metav1.ConditionUnknown, Reason: "WorkNotApplied", Message: "Addon manifestWork is not applied yet"}
	limping := healthy
	limping.Degraded = "Deployment hello: 1 of 3 replicas ready"
	down := render.Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err x"}
	done := func(a render.Availability) Move { return Move{Rendered: v1, State: Done, Available: a} }
	started := Move{Rendered: v1, Available: notApplied}
	cases := map[string]struct {
		reason              string
		moves               []Move
		available, degraded string
	}{
		"started":         {"nothing is applied yet", []Move{started}, "Unknown WorkNotApplied: Addon manifestWork is not applied yet", "Unknown WorkNotApplied: Addon manifestWork is not applied yet"},
		"done":            {"and well", []Move{started, done(healthy)}, "True ProbeAvailable: hello add-on is available.", "False ProbeNotDegraded: hello add-on is not degraded."},
		"degraded":        {"is still available", []Move{started, done(limping)}, "True ProbeAvailable: hello add-on is available.", "True ProbeDegraded: hello add-on is providing degraded service: Deployment hello: 1 of 3 replicas ready"},
		"unavailable":     {"there is no service to be degraded", []Move{started, done(down)}, "False ProbeUnavailable: Probe addon unavailable with err x", "Unknown ProbeUnavailable: Probe addon unavailable with err x"},
		"moving on":       {"feedback of the content before is not asked", []Move{started, done(healthy), {Rendered: contentOf("t2"), Available: notApplied}}, "True ProbeAvailable: hello add-on is available.", "False ProbeNotDegraded: hello add-on is not degraded."},
		"Lease or None":   {"Available is not ours to write", []Move{{Rendered: v1}, done(render.Availability{})}, "", ""},
		"cluster Unknown": {"the hub writes Available", []Move{{Rendered: v1, Available: notApplied, UnknownCluster: true}}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
			written(t, addOn, tc.moves...)
			for kind, want := range map[string]string{"Available": tc.available, "Degraded": tc.degraded} {
				got := ""
				if c := meta.FindStatusCondition(addOn.Status.Conditions, kind); c != nil {
					got = string(c.Status) + " " + c.Reason + ": " + c.Message
				}
				if got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, kind, got, want)
				}
			}
		})
	}
}

// The mode says which program writes Available: with Lease, the klusterlet.
func TestHealthCheckModeFollowsTheProber(t *testing.T) {
	for prober, want := range map[v1alpha1.ProberType]addonv1alpha1.HealthCheckMode{
		"": "Customized", v1alpha1.ProberLease: "Lease", v1alpha1.ProberNone: "Customized", v1alpha1.ProberWork: "Customized",
	} {
		p, err := render.NewProber(&v1alpha1.Health{Prober: prober})
		if err != nil {
			t.Fatal(err)
		}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		written(t, addOn, Move{Rendered: contentOf("t1"), Mode: p.Mode()})
		if got := addOn.Status.HealthCheck.Mode; got != want {
			t.Errorf("prober %q: mode %q, want %q", prober, got, want)
		}
	}
}
