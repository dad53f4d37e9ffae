package rollout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// fields are the fields that errors name, each with its reason.
func fields(errs []FieldError) []string {
	var found []string
	for _, e := range errs {
		found = append(found, e.Field+" "+e.Reason)
	}
	return found
}

// numbered returns n good stages.
func numbered(n int) []v1alpha1.Stage {
	stages := make([]v1alpha1.Stage, n)
	for i := range stages {
		stages[i] = v1alpha1.Stage{Name: fmt.Sprintf("s%d", i), Placement: v1alpha1.PlacementReference{Namespace: "default", Name: "all"}}
	}
	return stages
}

func TestValidate(t *testing.T) {
	all := v1alpha1.PlacementReference{Namespace: "default", Name: "all"}
	stage := func(change func(*v1alpha1.Stage)) v1alpha1.AddOnRolloutSpec {
		s := v1alpha1.Stage{Name: "everyone", Placement: all}
		change(&s)
		return v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary", Placement: all}, s}}
	}
	strategy := func(s v1alpha1.RolloutStrategy) v1alpha1.AddOnRolloutSpec {
		return v1alpha1.AddOnRolloutSpec{Strategy: &s}
	}
	text := func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	progressive := func(p clusterv1alpha1.RolloutProgressive) v1alpha1.AddOnRolloutSpec {
		return strategy(v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive, Progressive: &p})
	}
	deadline := func(d string) v1alpha1.AddOnRolloutSpec {
		return progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: d}})
	}
	const invalid = " InvalidRolloutStrategy"
	for name, tc := range map[string]struct {
		reason string
		in     v1alpha1.AddOnRolloutSpec
		want   []string
	}{
		"good gates": {"one of each type", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{
				Before: []v1alpha1.Gate{
					{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Count: new(int32(3)), Approvers: &v1alpha1.Approvers{Users: []string{"ann"}, Groups: []string{"sre"}}}},
					{Name: "office", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{TimeZone: "UTC", Exclude: []v1alpha1.TimeRange{{Cron: "0 0 24 12 *", Duration: &metav1.Duration{Duration: time.Hour}}}}},
					{Name: "always", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{TimeZone: "UTC"}},
				},
				During: []v1alpha1.Gate{{Name: "slo", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{Max: new(0.1)}, Interval: &metav1.Duration{Duration: time.Second}}},
			}
		}), nil},
		"gates that the API server would refuse": {"by the rules of the schema", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{
				{Name: "b", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Cron: "0 0 * * *"}, {Cron: "0 0 * * *", Hours: "09:00-10:00"}, {}}}},
				{Name: "c", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{}},
				{Name: "d", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{MaxRatio: new(2.0)}},
				{Name: "e", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Approvers: &v1alpha1.Approvers{}}},
			}}
		}), []string{
			"stages[1].gates.before[0].window.allow[0] InvalidGate", "stages[1].gates.before[0].window.allow[1] InvalidGate",
			"stages[1].gates.before[0].window.allow[2] InvalidGate", "stages[1].gates.before[1].prometheus InvalidGate",
			"stages[1].gates.before[2].prometheus.maxRatio InvalidGate", "stages[1].gates.before[3].approval.approvers InvalidGate",
		}},
		"gates that no result passes": {"the rollout would wait for ever", v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary", Placement: all, Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{
			{Name: "a", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{Query: "up", Max: new(1.0), Min: new(2.0)}},
			{Name: "b", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{Query: "up{$moved}", Max: new(1.0)}},
		}}}}}, []string{"stages[0].gates.before[0].prometheus.max InvalidGate", "stages[0].gates.before[1].prometheus.query InvalidGate"}},
		"two gates of one name": {"in one stage", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{
				Before: []v1alpha1.Gate{{Name: "slo", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{}}},
				During: []v1alpha1.Gate{{Name: "slo", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{}}},
			}
		}), []string{"stages[1].gates.during[0].name DuplicateGate"}},
		"a gate of another type than its field": {"", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval, Webhook: &v1alpha1.WebhookGate{}}, {Name: "b", Type: "manual"}}}
		}), []string{"stages[1].gates.before[0].approval InvalidGate", "stages[1].gates.before[0].webhook InvalidGate", "stages[1].gates.before[1].type InvalidGate"}},
		"an approval during a stage": {"nothing is evaluated again and again", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{During: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{}}}}
		}), []string{"stages[1].gates.during[0].type InvalidGate"}},
		"a gate evaluated twice a second": {"", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{During: []v1alpha1.Gate{{
				Name: "slo", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{},
				Interval: &metav1.Duration{Duration: 500 * time.Millisecond}, ErrorAfter: &metav1.Duration{},
			}}}
		}), []string{"stages[1].gates.during[0].interval InvalidGate", "stages[1].gates.during[0].errorAfter InvalidGate"}},
		"an interval of an approval": {"it would be ignored", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{}, Interval: &metav1.Duration{Duration: time.Minute}}}}
		}), []string{"stages[1].gates.before[0].interval InvalidGate"}},
		"more approvals than approvers": {"a user counts once", stage(func(s *v1alpha1.Stage) {
			s.Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{
				Count: new(int32(2)), Approvers: &v1alpha1.Approvers{Users: []string{"ann", "ann"}},
			}}}}
		}), []string{"stages[1].gates.before[0].approval.count InvalidGate"}},
		"empty":                       {"no policy is All", v1alpha1.AddOnRolloutSpec{}, nil},
		"good stage":                  {"", stage(func(s *v1alpha1.Stage) { s.MaxConcurrency, s.ProgressDeadline = text("10%"), "1h30m" }), nil},
		"maxConcurrency 0 in a stage": {"it holds the stage", stage(func(s *v1alpha1.Stage) { s.MaxConcurrency = new(intstr.FromInt(0)) }), nil},
		"maxConcurrency -1 in a stage": {
			"never", stage(func(s *v1alpha1.Stage) { s.MaxConcurrency = new(intstr.FromInt(-1)) }),
			[]string{"stages[1].maxConcurrency" + invalid},
		},
		"maxConcurrency 0% in a strategy": {
			"it would mean every cluster in OCM", progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: *text("0%")}),
			[]string{"strategy.progressive.maxConcurrency" + invalid},
		},
		"maxConcurrency -1 in a strategy": {
			"it would mean every cluster in OCM, too", progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt(-1)}),
			[]string{"strategy.progressive.maxConcurrency" + invalid},
		},
		"group index -1": {
			"no placement has such a group", progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
				MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}, {GroupIndex: -1}},
			}}),
			[]string{"strategy.progressive.mandatoryDecisionGroups[1].groupIndex" + invalid},
		},
		"whenEmpty in lower case": {"", stage(func(s *v1alpha1.Stage) { s.WhenEmpty = "pass" }), []string{"stages[1].whenEmpty" + invalid}},
		"quantity 101%":           {"", stage(func(s *v1alpha1.Stage) { s.MaxConcurrency = text("101%") }), []string{"stages[1].maxConcurrency" + invalid}},
		"quantity 5.5%":           {"", stage(func(s *v1alpha1.Stage) { s.MaxFailures = text("5.5%") }), []string{"stages[1].maxFailures" + invalid}},
		"quantity ten":            {"", progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: *text("ten")}), []string{"strategy.progressive.maxConcurrency" + invalid}},
		"quantity as text":        {"the string is the number", progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: *text("10")}), nil},
		"budget beyond the fleet": {"a budget beyond the fleet lets all fail", stage(func(s *v1alpha1.Stage) { s.MaxFailures = new(intstr.FromInt(1000)) }), nil},
		"progressDeadline 5mX":    {"", deadline("5mX"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline 5|":     {"", deadline("5|"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline xNone":  {"", deadline("xNone"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline 5d":     {"", deadline("5d"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline -5m":    {"", deadline("-5m"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline None":   {"", deadline("None"), nil},
		"progressDeadline 0s":     {"", deadline("0s"), []string{"strategy.progressive.progressDeadline" + invalid}},
		"progressDeadline good":   {"", deadline("1h30m"), nil},
		"minSuccessTime": {
			"", stage(func(s *v1alpha1.Stage) { s.MinSuccessTime = metav1.Duration{Duration: -5 * time.Minute} }),
			[]string{"stages[1].minSuccessTime InvalidDuration"},
		},
		"no type": {"", strategy(v1alpha1.RolloutStrategy{Progressive: &clusterv1alpha1.RolloutProgressive{}}), []string{"strategy.progressive" + invalid}},
		"two strategies": {"", strategy(v1alpha1.RolloutStrategy{
			Type: v1alpha1.StrategyProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{}, All: &clusterv1alpha1.RolloutAll{},
		}), []string{"strategy.all" + invalid}},
		"types of an AddOnRollout in a ClusterManagementAddOn": {
			"the API server refuses them there",
			v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
				{PlacementReference: all, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: "UpdateAll"}},
				{PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "b"}, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: "RollingUpdateWithPlacement"}},
				{PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "c"}, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: "Slowly"}},
			}}},
			[]string{
				"installStrategy.placements[0].rolloutStrategy.type" + invalid, "installStrategy.placements[1].rolloutStrategy.type" + invalid,
				"installStrategy.placements[2].rolloutStrategy.type" + invalid,
			},
		},
		"unknown type": {"", strategy(v1alpha1.RolloutStrategy{Type: "Slowly"}), []string{"strategy.type" + invalid}},
		"one placement twice": {"", v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
			{PlacementReference: all}, {PlacementReference: all},
		}}}, []string{"installStrategy.placements[1] DuplicatePlacement"}},
		"a placement's pace": {"", v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
			{PlacementReference: all, RolloutStrategy: clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
					RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "xNone", MaxFailures: *text("-1")},
				},
			}},
		}}}, []string{
			"installStrategy.placements[0].rolloutStrategy.progressivePerGroup.progressDeadline" + invalid,
			"installStrategy.placements[0].rolloutStrategy.progressivePerGroup.maxFailures" + invalid,
		}},
		"a soak of All": {"nothing comes after it", strategy(v1alpha1.RolloutStrategy{All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{
			MinSuccessTime: metav1.Duration{Duration: time.Minute}, MaxFailures: intstr.FromInt(1),
		}}}), []string{"strategy.all.minSuccessTime" + invalid, "strategy.all.maxFailures" + invalid}},
		"strategy and stages": {"", v1alpha1.AddOnRolloutSpec{
			Strategy: &v1alpha1.RolloutStrategy{}, Stages: []v1alpha1.Stage{{Name: "a", Placement: all}},
		}, []string{"strategy" + invalid}},
		"a stage's name twice": {
			"",
			v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "a", Placement: all}, {Name: "a", Placement: all}}},
			[]string{"stages[1].name DuplicateStage"},
		},
		"too many stages": {"the schema takes 31", v1alpha1.AddOnRolloutSpec{Stages: numbered(32)}, []string{"stages" + invalid}},
		"enough stages":   {"", v1alpha1.AddOnRolloutSpec{Stages: numbered(31)}, nil},
		"a stage's name in capitals": {
			"it is the name of a commit status", stage(func(s *v1alpha1.Stage) { s.Name = "Everyone" }), []string{"stages[1].name" + invalid},
		},
		"a stage's name ends in a dash": {"", stage(func(s *v1alpha1.Stage) { s.Name = "every-" }), []string{"stages[1].name" + invalid}},
		"a stage's name too long":       {"", stage(func(s *v1alpha1.Stage) { s.Name = strings.Repeat("a", 41) }), []string{"stages[1].name" + invalid}},
		"a stage's name, longest":       {"", stage(func(s *v1alpha1.Stage) { s.Name = strings.Repeat("a", 40) }), nil},
		"no history":                    {"", v1alpha1.AddOnRolloutSpec{RevisionHistoryLimit: new(int32(0))}, nil},
		"less than no history":          {"", v1alpha1.AddOnRolloutSpec{RevisionHistoryLimit: new(int32(-1))}, []string{"revisionHistoryLimit" + invalid}},
		"a stage without placement":     {"", v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "a"}}}, []string{"stages[0].placement" + invalid}},
		"a share of none": {"", strategy(v1alpha1.RolloutStrategy{
			Type:                       v1alpha1.StrategyRollingUpdateWithPlacement,
			RollingUpdateWithPlacement: &v1alpha1.RollingUpdateWithPlacement{PlacementReference: all, MaxConcurrentlyUpdating: new(intstr.FromInt(0))},
		}), []string{"strategy.rollingUpdateWithPlacement.maxConcurrentlyUpdating" + invalid}},
		"a share of nothing": {
			"", strategy(v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyRollingUpdateWithPlacement}),
			[]string{"strategy.rollingUpdateWithPlacement" + invalid},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Validate(tc.in)
			if diff := cmp.Diff(tc.want, fields(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, e := range got {
				if e.Message == "" || strings.ContainsAny(e.Error(), "\n") {
					t.Errorf("it says %q", e.Error())
				}
			}
		})
	}
}

func TestValidateDeclared(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in string
		want       []string
	}{
		"maxConcurrency 0":      {"typed, it looks like a field left out", `{"progressive":{"maxConcurrency":0}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"maxConcurrency 0%":     {"", `{"progressive":{"maxConcurrency":"0%"}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"maxConcurrency text 0": {"", `{"progressive":{"maxConcurrency":"0"}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"0 in a stage":          {"it holds", `{"placement":{"name":"a"},"maxConcurrency":0}`, nil},
		"quantity 1.5":          {"", `{"progressive":{"maxFailures":1.5}}`, []string{"s.progressive.maxFailures InvalidRolloutStrategy"}},
		"quantity 1e10":         {"", `{"progressive":{"maxConcurrency":1e10}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"quantity true":         {"", `{"progressive":{"maxConcurrency":true}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"progressDeadline":      {"", `{"all":{"progressDeadline":"5d"}}`, []string{"s.all.progressDeadline InvalidRolloutStrategy"}},
		"progressDeadline 5":    {"", `{"all":{"progressDeadline":5}}`, []string{"s.all.progressDeadline InvalidRolloutStrategy"}},
		"minSuccessTime 5":      {"", `{"progressive":{"minSuccessTime":5}}`, []string{"s.progressive.minSuccessTime InvalidDuration"}},
		"minSuccessTime 5d":     {"", `{"progressive":{"minSuccessTime":"5d"}}`, []string{"s.progressive.minSuccessTime InvalidDuration"}},
		"minSuccessTime -5m":    {"", `{"progressive":{"minSuccessTime":"-5m"}}`, []string{"s.progressive.minSuccessTime InvalidDuration"}},
		"null is absent":        {"as in the API server", `{"progressive":{"maxConcurrency":null,"maxFailures":null,"minSuccessTime":null,"progressDeadline":null},"all":null}`, nil},
		"empty deadline":        {"the schema refuses it", `{"progressive":{"progressDeadline":""}}`, []string{"s.progressive.progressDeadline InvalidRolloutStrategy"}},
		"quantity an object":    {"", `{"progressive":{"maxConcurrency":{"a":1}}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy"}},
		"minSuccessTime 300us":  {"the schema has no unit below ms", `{"progressive":{"minSuccessTime":"300us"}}`, []string{"s.progressive.minSuccessTime InvalidDuration"}},
		"minSuccessTime .5h":    {"", `{"placement":{"name":"a"},"minSuccessTime":".5h"}`, []string{"s.minSuccessTime InvalidDuration"}},
		"minSuccessTime 1.5h":   {"", `{"placement":{"name":"a"},"minSuccessTime":"1.5h500ms"}`, nil},
		"empty type":            {"the schema refuses it", `{"type":""}`, []string{"s.type InvalidRolloutStrategy"}},
		"good":                  {"", `{"type":"Progressive","progressive":{"minSuccessTime":"0","maxConcurrency":"10","maxFailures":0,"progressDeadline":"1h30m"}}`, nil},
		"all at once":           {"every error, in order", `{"progressive":{"minSuccessTime":"x","maxConcurrency":0}}`, []string{"s.progressive.maxConcurrency InvalidRolloutStrategy", "s.progressive.minSuccessTime InvalidDuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(tc.in), &object); err != nil {
				t.Fatal(err)
			}
			got := ValidateDeclared("s", object)
			if diff := cmp.Diff(tc.want, fields(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, e := range got {
				if strings.Contains(e.Message, "map[") || strings.Contains(e.Message, "<nil>") {
					t.Errorf("it says %q", e.Error())
				}
			}
		})
	}
}

func TestFieldErrorText(t *testing.T) {
	got := Validate(v1alpha1.AddOnRolloutSpec{Strategy: &v1alpha1.RolloutStrategy{
		Type: v1alpha1.StrategyProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromString("0%")},
	}})[0].Error()
	want := "strategy.progressive.maxConcurrency: 0%: must be at least 1; give a number from 1 or a percentage from 1% to 100%, or omit it for the default"
	if got != want {
		t.Errorf("it says\n%s, want\n%s", got, want)
	}
}
