package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// policy reads the spec of an AddOnRollout; without an install strategy in it, placement all
// installs.
func policy(tb testing.TB, text string) v1alpha1.AddOnRolloutSpec {
	tb.Helper()
	var spec v1alpha1.AddOnRolloutSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		tb.Fatal(err)
	}
	if spec.Install == nil {
		spec.Install = installed(clusterv1alpha1.RolloutStrategy{})
	}
	if found := rollout.Validate(spec); len(found) > 0 {
		tb.Fatalf("not a valid policy: %v", found)
	}
	return spec
}

func installed(pace clusterv1alpha1.RolloutStrategy) *v1alpha1.Install {
	return &v1alpha1.Install{Type: installPlacements, Placements: []v1alpha1.InstallPlacement{{
		PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "all"}, RolloutStrategy: pace,
	}}}
}

// placements reads a list of placements with their specs only, by name.
func placements(tb testing.TB, text string) []clusterv1beta1.Placement {
	tb.Helper()
	var specs map[string]clusterv1beta1.PlacementSpec
	if err := yaml.UnmarshalStrict([]byte(text), &specs); err != nil {
		tb.Fatal(err)
	}
	var out []clusterv1beta1.Placement
	for name, spec := range specs {
		pl := clusterv1beta1.Placement{Spec: spec}
		pl.Namespace, pl.Name = "default", name
		out = append(out, pl)
	}
	return out
}

// said is what a forecast says, its findings and the notes about its fleet.
func said(tb testing.TB, spec v1alpha1.AddOnRolloutSpec, fleet Fleet) string {
	tb.Helper()
	f, err := Of("hello", spec, fleet, Windows{})
	if err != nil {
		tb.Fatal(err)
	}
	text := f.Text() + "\n"
	for _, found := range f.Findings {
		text += fmt.Sprintf("! %s: %s; %s\n", found.Field, found.Message, found.Hint)
	}
	for _, note := range fleet.Notes {
		text += "~ " + note + "\n"
	}
	return text
}

const canaryThenEveryone = `
stages:
- {name: canary, placement: {namespace: default, name: canary}, minSuccessTime: 10m, progressDeadline: 30m}
- {name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 10%, progressDeadline: 30m}
`

// TestPace is what a user reads of a policy without a fleet file. placements are those of the
// directory.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct{ policy, placements, want string }{
		"CanaryThenEveryone": {
			policy: canaryThenEveryone,
			want: "canary 1 cluster, soak 10m; everyone 99 clusters, 10 at a time; about 32m if every cluster takes 2m\n" +
				"~ 100 clusters, of which Placement default/canary selects 1\n",
		},
		"NumberOfClusters": {
			policy: canaryThenEveryone, placements: "{canary: {numberOfClusters: 3}, all: {}}",
			want: "canary 3 clusters at once, soak 10m; everyone 97 clusters, 10 at a time; about 32m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"StagesOfUnknownSizeShareTheRest": {
			policy: `stages:
- {name: canary, placement: {namespace: default, name: canary}}
- {name: europe, placement: {namespace: default, name: europe}, maxConcurrency: 10%}
- {name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 50%}`,
			want: "canary 1 cluster; europe 49 clusters, 5 at a time; everyone 50 clusters, 25 at a time; about 26m if every cluster takes 2m\n" +
				"~ 100 clusters, of which Placement default/canary selects 1, Placement default/europe selects 49\n",
		},
		"LastStageLeavesClustersOut": {
			policy: canaryThenEveryone, placements: "{canary: {numberOfClusters: 1}, all: {numberOfClusters: 40}}",
			want: "canary 1 cluster, soak 10m; everyone 39 clusters, 4 at a time; about 32m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"ClustersInNoStage": {
			policy: "stages: [{name: canary, placement: {namespace: default, name: canary}}]", placements: "{canary: {numberOfClusters: 5}}",
			want: "canary 5 clusters at once; 95 clusters in no stage; about 2m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"NoPace": {policy: "{}", want: "all 100 clusters at once; about 2m if every cluster takes 2m\n~ 100 clusters\n"},
		"Progressive": {
			policy: "strategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 1h}}",
			want:   "all 100 clusters, 1 at a time, soak 1h; about 4d7h if every cluster takes 2m\n~ 100 clusters\n",
		},
		"SoakLongerThanDeadline": { // the deadline ends where the soak begins
			policy: "strategy: {type: Progressive, progressive: {maxConcurrency: 50, minSuccessTime: 1h, progressDeadline: 10m}}",
			want:   "all 100 clusters, 50 at a time, soak 1h; about 2h4m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"MandatoryGroupsOfAPlacementOnTheHub": {
			policy: "strategy: {type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: canary}], maxConcurrency: 11, minSuccessTime: 8m}}",
			want: "group-canary 1 cluster, soak 8m; rest 99 clusters, 11 at a time, soak 8m; about 1h40m if every cluster takes 2m\n" +
				"~ 100 clusters\n~ the sizes of decision groups\n" +
				"~ Placement default/all on the hub, which is not declared here, has the decision group canary\n",
		},
		"GroupByGroup": {
			policy:     "strategy: {type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 8m}}",
			placements: "{all: {decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 30%, decisionGroups: [{groupName: canary}]}}}}",
			want: "group-canary 1 cluster, soak 8m; group-1 30 clusters at once, soak 8m; group-2 30 clusters at once, soak 8m; " +
				"group-3 30 clusters at once, soak 8m; group-4 9 clusters at once, soak 8m; about 50m if every cluster takes 2m\n" +
				"~ 100 clusters\n~ the sizes of decision groups\n",
		},
		"ManyGroups": {
			policy:     "strategy: {type: ProgressivePerGroup, progressivePerGroup: {}}",
			placements: "{all: {decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 10}}}}",
			want: "group-0 10 clusters at once; group-1 10 clusters at once; group-2 10 clusters at once; group-3 10 clusters at once; " +
				"group-4 10 clusters at once; group-5 10 clusters at once; and 4 more stages; about 20m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"ManualWithoutPace": {
			policy: "install: {type: Manual}", want: "all 100 clusters at once; about 2m if every cluster takes 2m\n~ 100 clusters\n",
		},
		"GatesAreWaitsWithoutATime": {
			policy: `stages:
- {name: canary, placement: {namespace: default, name: canary}, minSuccessTime: 10m, gates: {during: [
    {name: errors, type: prometheus, prometheus: {address: "https://p.example.com", query: up, max: 1}}]}}
- {name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 10, gates: {before: [
    {name: release, type: approval, approval: {}},
    {name: office-hours, type: window, window: {timeZone: Europe/Berlin, allow: [{weekdays: [Mon], hours: "09:00-17:00"}]}}]}}`,
			want: "canary 1 cluster, soak 10m; everyone 99 clusters, 10 at a time, after approval release, in window office-hours; " +
				"about 32m if every cluster takes 2m, and the waits for gates\n~ 100 clusters, of which Placement default/canary selects 1\n",
		},
		"EmptyStagePasses": {
			policy: `stages:
- {name: one, placement: {namespace: default, name: all}, maxConcurrency: 50}
- {name: two, placement: {namespace: default, name: all}, whenEmpty: Pass}`,
			want: "one 100 clusters, 50 at a time; two no cluster; about 4m if every cluster takes 2m\n~ 100 clusters\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := policy(t, c.policy)
			if got := said(t, spec, Assumed(spec, placements(t, cmp.Or(c.placements, "{}")))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPlacementsInParallel(t *testing.T) {
	spec := policy(t, "{}")
	pace := func(limit int, soak time.Duration) clusterv1alpha1.RolloutStrategy {
		p := &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt(limit)}
		p.MinSuccessTime.Duration = soak
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: p}
	}
	spec.Install = installed(pace(10, 0))
	spec.Install.Placements = append(spec.Install.Placements, v1alpha1.InstallPlacement{
		PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "slow"}, RolloutStrategy: pace(1, time.Minute),
	})
	const want = "all 50 clusters, 10 at a time; slow 50 clusters, 1 at a time, soak 1m; about 2h30m if every cluster takes 2m\n" +
		"~ 100 clusters, of which Placement default/all selects 50, Placement default/slow selects 50\n"
	if got := said(t, spec, Assumed(spec, nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatNeverEnds(t *testing.T) {
	for name, c := range map[string]struct{ policy, placements, want string }{
		"MaxConcurrency0": {
			policy: `stages:
- {name: canary, placement: {namespace: default, name: canary}}
- {name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 0%}`,
			want: "stages[1].maxConcurrency: the rollout never ends: everyone 0/99, held: maxConcurrency of stage everyone is 0; give a number from 1 to start the stage",
		},
		"EmptyStage": {
			policy: canaryThenEveryone, placements: "{canary: {}}",
			want: "stages[1].placement: the rollout never ends: everyone 0/0, held: Placement default/all of stage everyone selects no cluster of the install set; " +
				"select one, or set whenEmpty: Pass",
		},
		"ShareOfAPlacement": {
			policy: "strategy: {type: RollingUpdateWithPlacement, rollingUpdateWithPlacement: {namespace: default, name: some, maxConcurrentlyUpdating: 30%}}",
			want:   "strategy.rollingUpdateWithPlacement: the rollout never ends: 30 of 100, rest held by strategy; declare stages, or another strategy, to move the rest",
		},
		"EmptyShare": {
			policy:     "strategy: {type: RollingUpdateWithPlacement, rollingUpdateWithPlacement: {namespace: default, name: some}}",
			placements: "{some: {numberOfClusters: 0}}",
			want:       "strategy.rollingUpdateWithPlacement: the rollout never ends: share 0/0, held: Placement default/some selects no cluster of the install set; select one, or name another placement",
		},
		"UnknownMandatoryGroup": {
			policy:     "strategy: {type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 3}]}}",
			placements: "{all: {}}",
			want:       `strategy.progressive.mandatoryDecisionGroups: the rollout never ends: held: unknown mandatory decision group: no decision group has index 3; the groups are 0 (without a name)`,
		},
		"Suspended": {policy: "suspend: true", want: "suspend: the rollout never ends: suspended; all 0/100; remove suspend"},
		"DeadlineShorterThanAnyCluster": {
			policy: "stages: [{name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 10, progressDeadline: 1m}]",
			want:   "stages[0].progressDeadline: clusters of everyone time out if they take 2m; give them a longer progressDeadline",
		},
		"LongerThanAYear": {
			policy: "strategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 100h}}",
			want: "strategy.progressive.minSuccessTime: the rollout takes longer than a year: all 100 clusters, 1 at a time, soak 4d4h; " +
				"shorten minSuccessTime, or raise maxConcurrency",
		},
		"LongestSoak": {
			policy: "stages: [{name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 1, minSuccessTime: 200000h}]",
			want: "stages[0].minSuccessTime: the rollout takes longer than a year: everyone 100 clusters, 1 at a time, soak 8333d8h; " +
				"shorten minSuccessTime, or raise maxConcurrency",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := policy(t, c.policy)
			f, err := Of("hello", spec, Assumed(spec, placements(t, cmp.Or(c.placements, "{}"))), Windows{})
			if err != nil || len(f.Findings) != 1 {
				t.Fatalf("got %+v, %v; want one finding", f.Findings, err)
			}
			got := f.Findings[0].Field + ": " + f.Findings[0].Message
			if hint := f.Findings[0].Hint; hint != "" {
				got += "; " + hint
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if text := f.Text(); strings.Contains(text, "about") {
				t.Errorf("a rollout that does not end has a time: %s", text)
			}
		})
	}
}

// TestBatchesThatAreLeftOut compares the forecast with the simulation of every single batch.
func TestBatchesThatAreLeftOut(t *testing.T) {
	declared := func(text string) []clusterv1beta1.Placement { return placements(t, text) }
	rapid.Check(t, func(t *rapid.T) {
		spec := drawn(t)
		size := rapid.SampledFrom([]string{"1", "7", "30%"}).Draw(t, "size of a group")
		grouped := "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: " + size + ", decisionGroups: [{groupName: canary}]}}}"
		fleet := Assumed(spec, declared("{all: "+grouped+", more: "+strings.Replace(grouped, "{", "{numberOfClusters: 40, ", 1)+"}"))
		windows := every(minutes(t, "between openings", 4*24*60), minutes(t, "open for", 24*60))
		short, whole := newRun("hello", spec, fleet, windows), newRun("hello", spec, fleet, windows)
		whole.every = everyBatch
		if err := errors.Join(short.simulate(), whole.simulate()); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(whole.forecast(), short.forecast()); diff != "" {
			t.Errorf("every batch simulated -, most of them left out +:\n%s", diff)
		}
	})
}

func minutes(t *rapid.T, label string, most int) time.Duration {
	return time.Duration(rapid.IntRange(1, most).Draw(t, label)) * time.Minute
}

// every is a window that opens at the begin and again after each period.
func every(period, open time.Duration) Windows {
	begins := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	return Windows{Begins: begins, At: func(_ v1alpha1.WindowGate, at time.Time) (bool, time.Time) {
		opened := begins.Add(at.Sub(begins) / period * period)
		switch {
		case open >= period:
			return true, time.Time{}
		case at.Before(opened.Add(open)):
			return true, opened.Add(open)
		}
		return false, opened.Add(period)
	}}
}

// TestClosedWindowsTakeTime: a window that is open for five minutes a week admits two or three batches each time.
func TestClosedWindowsTakeTime(t *testing.T) {
	const week = 7 * 24 * time.Hour
	windowed := func(more string) v1alpha1.AddOnRolloutSpec {
		return policy(t, `stages:
- {name: canary, placement: {namespace: default, name: canary}}
- {name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 10%, gates: {before: [`+more+`
    {name: night, type: window, window: {timeZone: UTC, allow: [{cron: "0 2 * * SAT", duration: 5m}]}}]}}`)
	}
	const stages = "canary 1 cluster; everyone 99 clusters, 10 at a time, "
	for name, c := range map[string]struct {
		spec    v1alpha1.AddOnRolloutSpec
		windows Windows
		text    string
		finding string
	}{
		"FiveMinutesAWeek":  {windowed(""), every(week, 5*time.Minute), stages + "in window night; about 21d if every cluster takes 2m and it begins now", ""},
		"BesideAnApproval":  {windowed("{name: release, type: approval, approval: {}},"), every(week, 5*time.Minute), stages + "after approval release, in window night; about 21d if every cluster takes 2m and it begins now, and the waits for gates", ""},
		"AlwaysOpen":        {windowed(""), every(week, week), stages + "in window night; about 22m if every cluster takes 2m and it begins now", ""},
		"WithoutTheirTimes": {windowed(""), Windows{}, stages + "in window night; about 22m if every cluster takes 2m, and the waits for gates", ""},
		"LongerThanAYear":   {windowed(""), every(13*week, time.Minute), stages + "in window night", "stages[1].gates.before: the rollout takes longer than a year: everyone 99 clusters, 10 at a time; shorten minSuccessTime, or raise maxConcurrency, or open the window for longer"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Of("hello", c.spec, Assumed(c.spec, placements(t, "{canary: {numberOfClusters: 1}, all: {}}")), c.windows)
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, x := range f.Findings {
				found += fmt.Sprintf("%s: %s; %s", x.Field, x.Message, x.Hint)
			}
			if f.Text() != c.text || found != c.finding {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", f.Text(), found, c.text, c.finding)
			}
		})
	}
}

// drawn is a policy with stages, with a strategy, or with a pace for each of two placements, of decision groups or not.
func drawn(t *rapid.T) v1alpha1.AddOnRolloutSpec {
	limit := func(label string) intstr.IntOrString {
		return rapid.OneOf(
			rapid.Map(rapid.IntRange(1, 40), intstr.FromInt),
			rapid.Map(rapid.IntRange(1, 100), func(n int) intstr.IntOrString { return intstr.FromString(fmt.Sprintf("%d%%", n)) }),
		).Draw(t, label)
	}
	soak := func(label string) (d metav1.Duration) {
		d.Duration = rapid.SampledFrom([]time.Duration{0, 500 * time.Millisecond, time.Minute, 3 * time.Hour, 50 * time.Hour}).Draw(t, label)
		return d
	}
	ref := func(name string) v1alpha1.PlacementReference {
		return v1alpha1.PlacementReference{Namespace: "default", Name: name}
	}
	progressive := func(label string) clusterv1alpha1.RolloutStrategy {
		p := &clusterv1alpha1.RolloutProgressive{MaxConcurrency: limit(label + " limit")}
		p.MinSuccessTime = soak(label + " soak")
		if rapid.Bool().Draw(t, label+" mandatory") {
			p.MandatoryDecisionGroups.MandatoryDecisionGroups = []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}}
		}
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: p}
	}
	spec := v1alpha1.AddOnRolloutSpec{Install: installed(clusterv1alpha1.RolloutStrategy{})}
	perGroup := func(label string) *clusterv1alpha1.RolloutProgressivePerGroup {
		p := &clusterv1alpha1.RolloutProgressivePerGroup{}
		p.MinSuccessTime = soak(label + " soak")
		if rapid.Bool().Draw(t, label+" mandatory") {
			p.MandatoryDecisionGroups.MandatoryDecisionGroups = []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}}
		}
		return p
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		for i := range rapid.IntRange(1, 4).Draw(t, "stages") {
			name := fmt.Sprintf("stage-%d", i)
			n := limit(name + " limit")
			st := v1alpha1.Stage{Name: name, Placement: ref(name), MaxConcurrency: &n, MinSuccessTime: soak(name + " soak")}
			if rapid.Bool().Draw(t, name+" window") {
				st.Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "window", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{}}}}
			}
			spec.Stages = append(spec.Stages, st)
		}
	case 1:
		p := progressive("strategy").Progressive
		spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive, Progressive: p}
	case 2:
		spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressivePerGroup, ProgressivePerGroup: perGroup("strategy")}
	case 3:
		spec.Install = installed(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: perGroup("all")})
		spec.Install.Placements = append(spec.Install.Placements, v1alpha1.InstallPlacement{
			PlacementReference: ref("more"), RolloutStrategy: progressive("more"),
		})
	default:
		spec.Install = installed(progressive("all"))
		spec.Install.Placements = append(spec.Install.Placements, v1alpha1.InstallPlacement{
			PlacementReference: ref("more"), RolloutStrategy: progressive("more"),
		})
	}
	return spec
}

// scale is a forecast whose work is measured.
type scale struct {
	spec    v1alpha1.AddOnRolloutSpec
	fleet   Fleet
	windows Windows
}

// scales are two stages, one cluster after the other, and the worst cases: the most stages that a policy can have, as
// many decision groups as clusters, and windows that are open for a minute.
func scales(tb testing.TB) map[string]scale {
	tb.Helper()
	most := v1alpha1.AddOnRolloutSpec{Install: installed(clusterv1alpha1.RolloutStrategy{})}
	for i := range 31 {
		name := fmt.Sprintf("stage-%02d", i)
		most.Stages = append(most.Stages, v1alpha1.Stage{
			Name: name, Placement: v1alpha1.PlacementReference{Namespace: "default", Name: name},
			MaxConcurrency: new(intstr.FromInt32(1)), MinSuccessTime: metav1.Duration{Duration: time.Minute},
		})
	}
	two := policy(tb, canaryThenEveryone)
	one := policy(tb, "strategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}")
	groups := policy(tb, "strategy: {type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 10m}}")
	window := policy(tb, `stages: [{name: everyone, placement: {namespace: default, name: all}, maxConcurrency: 1, minSuccessTime: 50h,
  gates: {before: [{name: night, type: window, window: {timeZone: UTC, allow: [{cron: "* * * * *", duration: 1m}]}}]}}]`)
	return map[string]scale{
		"stages/100":                   {two, fleetOf(tb, two, 100), Windows{}},
		"stages/1000":                  {two, fleetOf(tb, two, 1000), Windows{}},
		"stages/10000":                 {two, fleetOf(tb, two, 10000), Windows{}},
		"one-by-one/100":               {one, fleetOf(tb, one, 100), Windows{}},
		"one-by-one/10000":             {one, fleetOf(tb, one, 10000), Windows{}},
		"31-stages/100":                {most, Assumed(most, nil), Windows{}},
		"groups-of-one/100":            {groups, fleetOf(tb, groups, 100), Windows{}},
		"window-each-day/100":          {window, Assumed(window, nil), every(24*time.Hour, time.Minute)},
		"window-each-other-minute/100": {window, Assumed(window, nil), every(2*time.Minute, time.Minute)},
	}
}

// TestForecast_TakesFewDecisions: a forecast costs about a microsecond per cluster and plan, and has 100 ms.
func TestForecast_TakesFewDecisions(t *testing.T) {
	for name, c := range scales(t) {
		r := newRun("hello", c.spec, c.fleet, c.windows)
		if err := r.simulate(); err != nil || len(r.findings()) > 0 {
			t.Errorf("%s: %v, %v", name, r.findings(), err)
		}
		if took := mostDecisions - r.budget; took > 100_000 {
			t.Errorf("%s: %d decisions", name, took)
		}
	}
}

// BenchmarkForecast is the whole forecast of one policy.
func BenchmarkForecast(b *testing.B) {
	all := scales(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := all[name]
				if f, err := Of("hello", c.spec, c.fleet, c.windows); err != nil || len(f.Findings) > 0 {
					b.Fatal(f, err)
				}
			}
		})
	}
}

// fleetOf is a fleet of n clusters with a canary among a hundred.
func fleetOf(tb testing.TB, spec v1alpha1.AddOnRolloutSpec, n int) Fleet {
	tb.Helper()
	k := Known{Declared: placements(tb, `
all: {clusterSets: [global], decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1}}}
canary: {clusterSets: [global], predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}`)}
	for i := range n {
		c := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cluster-%05d", i)}}
		if i%100 == 0 {
			c.Labels = map[string]string{"canary": "true"}
		}
		k.Clusters = append(k.Clusters, c)
	}
	fleet, err := k.Fleet(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return fleet
}

func TestLedgerWithoutRoom(t *testing.T) {
	spec := policy(t, canaryThenEveryone)
	r := newRun("hello", spec, Assumed(spec, nil), Windows{})
	r.in.LedgerLimit = 800 // of two stages, one has room
	if err := r.simulate(); err != nil {
		t.Fatal(err)
	}
	found := r.findings()
	if len(found) != 1 || found[0].Field != "stages[1]" || !strings.Contains(found[0].Message, ", waits for room in the ledger (LedgerFull)") {
		t.Errorf("got %+v", found)
	}
}

// TestMeasured_IsTheMedianWithoutTheSoak: a cluster that is still moving, or was moved without its soak, is left out.
func TestMeasured_IsTheMedianWithoutTheSoak(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := func(stage string, state rollout.State, took time.Duration) rollout.Record {
		return rollout.Record{RecordKey: v1alpha1.RecordKey{Stage: stage, State: state}, Admitted: at, Since: at.Add(took)}
	}
	records := []rollout.Record{
		record("canary", rollout.Done, 10*time.Minute+50*time.Second),
		record("everyone", rollout.Done, 40*time.Second),
		record("everyone", rollout.Done, 4*time.Hour),
		record("everyone", rollout.Updating, time.Second),
		record("canary", rollout.Done, 3*time.Minute),
	}
	under := Forecast{Stages: []Stage{{Name: "canary", Soak: 10 * time.Minute}, {Name: "everyone"}}}
	if got, want := Measured(records, under), (Took{PerCluster: 50 * time.Second, Clusters: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Measured(records[3:], under); got != (Took{}) {
		t.Errorf("got %+v of no cluster", got)
	}
}

// TestOf_TakesWhatTheClustersTookBefore: times and deadlines follow from it.
func TestOf_TakesWhatTheClustersTookBefore(t *testing.T) {
	policy := v1alpha1.AddOnRolloutSpec{Strategy: &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyAll}}
	fleet := Assumed(policy, nil)
	fleet.Took = Took{PerCluster: 50 * time.Second, Clusters: 3}
	f, err := Of("hello", policy, fleet, Windows{})
	if err != nil || f.Duration != 50*time.Second || f.PerCluster != 50*time.Second || f.Measured != 3 {
		t.Errorf("got %+v, %v", f, err)
	}
}
