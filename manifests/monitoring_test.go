package manifests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/metrics"
)

// operator is what one scrape of the operator shows, driven by what the operator stores.
type operator struct {
	rollouts   *metrics.Rollouts
	sources    *metrics.Sources
	forges     *metrics.Forges
	conditions *fluxmetrics.Recorder
	leads      prometheus.Gauge
	rollout    *v1alpha1.AddOnRollout
	now        time.Time
}

var (
	helloKey = types.NamespacedName{Namespace: "team", Name: "hello"}
	fleetKey = types.NamespacedName{Namespace: "team", Name: "fleet"}
)

func newOperator() (*operator, *prometheus.Registry) {
	o := &operator{
		rollouts: metrics.NewRollouts(), sources: metrics.NewSources(), forges: metrics.NewForges(), conditions: fluxmetrics.NewRecorder(),
		// As controller-runtime has it; the suite of the operator checks that a scrape has it.
		leads: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "leader_election_master_status", ConstLabels: prometheus.Labels{"name": "addonflow-leader-election"},
		}),
		rollout: &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: helloKey.Namespace, Name: helloKey.Name}},
	}
	o.leads.Set(1)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o.rollouts, o.sources, o.forges, o.leads)
	registry.MustRegister(o.conditions.Collectors()...)
	return o, registry
}

// stores writes a status of the rollout.
func (o *operator) stores(change func(*v1alpha1.AddOnRolloutStatus)) {
	before := o.rollout.Status.DeepCopy()
	change(&o.rollout.Status)
	o.rollouts.Stored(before, o.rollout, o.now)
}

// begins rolls a content out.
func (o *operator) begins(digest string) {
	o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
		s.Target, s.Phase, s.Attempt = &v1alpha1.Target{Digest: digest}, v1alpha1.PhaseProgressing, 1
		s.Counts = v1alpha1.Counts{Total: 10, Waiting: 9, InFlight: 1}
		s.History = slices.Insert(s.History, 0, v1alpha1.HistoryEntry{Target: *s.Target, Phase: s.Phase, Started: metav1.NewTime(o.now)})
	})
}

// ends ends the rollout.
func (o *operator) ends(phase v1alpha1.Phase) {
	o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
		s.Phase, s.History[0].Phase, s.History[0].Finished = phase, phase, &metav1.Time{Time: o.now}
		s.Counts = v1alpha1.Counts{Total: 10, Updated: 10}
	})
}

// rolloutStalled records the condition Stalled of the rollout.
func (o *operator) rolloutStalled() {
	o.conditions.RecordCondition(corev1.ObjectReference{Kind: v1alpha1.AddOnRolloutKind, Namespace: helloKey.Namespace, Name: helloKey.Name},
		metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue})
}

// alertStories are what happens, by minute, and the alerts that fire some minutes later, once
// only.
func alertStories() map[string]struct {
	events map[int]func(*operator)
	fires  map[int][]string
} {
	const day = 24 * 60
	waits := []v1alpha1.CommitMark{{Owed: &v1alpha1.CommitStatement{}}}
	return map[string]struct {
		events map[int]func(*operator)
		fires  map[int][]string
	}{
		"healthy": {
			map[int]func(*operator){
				0:  func(o *operator) { o.begins("a"); o.sources.Read(fleetKey, "", o.now); o.sources.Stored(fleetKey, nil) },
				30: func(o *operator) { o.ends(v1alpha1.PhaseSucceeded) },
				60: func(o *operator) { o.sources.Read(fleetKey, "", o.now) },
			},
			map[int][]string{20: nil, 90: nil, 12 * 60: nil},
		},
		"no leader": {
			map[int]func(*operator){5: func(o *operator) { o.leads.Set(0) }},
			map[int][]string{10: nil, 20: {"AddonFlowNoLeader"}},
		},
		"fails, and the next commit succeeds": {
			map[int]func(*operator){
				0:  func(o *operator) { o.begins("a") },
				10: func(o *operator) { o.ends(v1alpha1.PhaseFailed) },
				30: func(o *operator) { o.begins("b") },
				40: func(o *operator) { o.ends(v1alpha1.PhaseSucceeded) },
			},
			map[int][]string{9: nil, 15: {"AddonFlowRolloutFailed"}, 35: nil, 50: nil},
		},
		"is rolled back": {
			map[int]func(*operator){
				0:  func(o *operator) { o.begins("a") },
				10: func(o *operator) { o.ends(v1alpha1.PhaseRolledBack) },
			},
			map[int][]string{15: {"AddonFlowRolledBack"}},
		},
		"a rollout is stalled": {
			map[int]func(*operator){0: func(o *operator) {
				o.begins("a")
				o.ends(v1alpha1.PhaseSucceeded)
				o.rolloutStalled()
			}},
			map[int][]string{10: nil, 20: {"AddonFlowRolloutStalled"}},
		},
		"a failed rollout is stalled as well": {
			map[int]func(*operator){0: func(o *operator) {
				o.begins("a")
				o.ends(v1alpha1.PhaseFailed)
				o.rolloutStalled()
			}},
			map[int][]string{20: {"AddonFlowRolloutFailed"}},
		},
		"nothing moves": {
			map[int]func(*operator){0: func(o *operator) { o.begins("a") }},
			map[int][]string{60: nil, 7 * 60: {"AddonFlowRolloutStuck"}},
		},
		"an approval waits": {
			map[int]func(*operator){
				0: func(o *operator) {
					o.begins("a")
					o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
						s.Stages = []v1alpha1.StageStatus{{Name: "canary", Phase: "Held", Gates: []v1alpha1.GateStatus{{
							Name: "release", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &metav1.Time{Time: o.now},
						}}}}
					})
				},
				day + 60: func(o *operator) {
					o.stores(func(s *v1alpha1.AddOnRolloutStatus) { s.Stages[0].Gates[0].State = v1alpha1.GatePassed })
				},
			},
			map[int][]string{8 * 60: nil, day + 10: {"AddonFlowApprovalWaits"}, day + 70: nil},
		},
		"clusters are parked": {
			map[int]func(*operator){0: func(o *operator) {
				o.begins("a")
				o.ends(v1alpha1.PhaseSucceeded)
				o.stores(func(s *v1alpha1.AddOnRolloutStatus) { s.Counts = v1alpha1.Counts{Total: 10, Updated: 8, Parked: 2} })
			}},
			map[int][]string{50: nil, 70: {"AddonFlowClustersParked"}},
		},
		"the repository cannot be read": {
			map[int]func(*operator){
				0:  func(o *operator) { o.sources.Read(fleetKey, "", o.now) },
				10: func(o *operator) { o.sources.Read(fleetKey, v1alpha1.FetchFailedReason, o.now) },
				20: func(o *operator) { o.sources.Read(fleetKey, v1alpha1.FetchFailedReason, o.now) },
				30: func(o *operator) { o.sources.Read(fleetKey, v1alpha1.FetchFailedReason, o.now) },
				50: func(o *operator) { o.sources.Read(fleetKey, "", o.now) },
			},
			map[int][]string{5: nil, 45: {"AddonFlowSourceUnreadable"}, 55: nil},
		},
		"a commit is refused": {
			map[int]func(*operator){0: func(o *operator) {
				o.conditions.RecordCondition(corev1.ObjectReference{Kind: v1alpha1.AddOnSourceKind, Namespace: fleetKey.Namespace, Name: fleetKey.Name},
					metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue})
			}},
			map[int][]string{10: nil, 20: {"AddonFlowSourceStalled"}},
		},
		"the forge is down": {
			map[int]func(*operator){
				0:  func(o *operator) { o.sources.Stored(fleetKey, waits) },
				60: func(o *operator) { o.sources.Stored(fleetKey, nil) },
			},
			map[int][]string{20: nil, 40: {"AddonFlowCommitStatusesWait"}, 70: nil},
		},
		"most rollouts fail": {
			map[int]func(*operator){
				0:  func(o *operator) { o.begins("a") },
				10: func(o *operator) { o.ends(v1alpha1.PhaseFailed) },
				20: func(o *operator) { o.begins("b") },
				30: func(o *operator) { o.ends(v1alpha1.PhaseFailed) },
				40: func(o *operator) { o.begins("c") },
				50: func(o *operator) { o.ends(v1alpha1.PhaseFailed) },
				60: func(o *operator) { o.begins("d") },
				70: func(o *operator) { o.ends(v1alpha1.PhaseSucceeded) },
			},
			map[int][]string{80: {"AddonFlowManyRolloutsFail"}},
		},
	}
}

// TestAlertsFire: promtool evaluates the alerts over what the operator exports.
func TestAlertsFire(t *testing.T) {
	promtool := promtoolPath(t)
	dir := t.TempDir()
	writeYAML(t, filepath.Join(dir, "rules.yaml"), rulesOf(t))
	type expression struct {
		Expr    string           `json:"expr"`
		At      string           `json:"eval_time"`
		Samples []map[string]any `json:"exp_samples"`
	}
	type story struct {
		Name        string              `json:"name"`
		Interval    string              `json:"interval"`
		Series      []map[string]string `json:"input_series"`
		Expressions []expression        `json:"promql_expr_test"`
	}
	var stories []story
	tested := map[string]bool{}
	all := alertStories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		written := story{Name: name, Interval: "1m", Series: exported(t, s.events, slices.Max(slices.Collect(maps.Keys(s.fires))))}
		for _, minute := range slices.Sorted(maps.Keys(s.fires)) {
			e := expression{Expr: `count by (alertname) (ALERTS{alertstate="firing"})`, At: fmt.Sprintf("%dm", minute)}
			for _, alert := range s.fires[minute] {
				tested[alert] = true
				e.Samples = append(e.Samples, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", alert), "value": 1})
			}
			written.Expressions = append(written.Expressions, e)
		}
		stories = append(stories, written)
	}
	file := filepath.Join(dir, "test.yaml")
	writeYAML(t, file, map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": stories})
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(alerts(t))), slices.Sorted(maps.Keys(tested))); diff != "" {
		t.Errorf("alerts that no story fires (-alerts +fired):\n%s", diff)
	}
}

// exported are the series of a story, as Prometheus stores them: one sample a minute.
func exported(t *testing.T, events map[int]func(*operator), until int) []map[string]string {
	t.Helper()
	o, registry := newOperator()
	values := map[string][]string{}
	for minute := range until + 1 {
		o.now = time.Unix(int64(minute)*60, 0).UTC() // promtool's time begins there
		if event := events[minute]; event != nil {
			event(o)
		}
		for series, value := range scrape(t, registry) {
			for len(values[series]) < minute {
				values[series] = append(values[series], "_")
			}
			values[series] = append(values[series], value)
		}
		for series := range values {
			if len(values[series]) == minute {
				values[series] = append(values[series], "stale")
			}
		}
	}
	var input []map[string]string
	for _, series := range slices.Sorted(maps.Keys(values)) {
		input = append(input, map[string]string{"series": series, "values": strings.Join(values[series], " ")})
	}
	return input
}

// scrape has the value of each series, histograms as their sum and count.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]string{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			of := "{" + strings.Join(labels, ",") + "}"
			if h := m.GetHistogram(); h != nil {
				series[family.GetName()+"_sum"+of] = fmt.Sprint(h.GetSampleSum())
				series[family.GetName()+"_count"+of] = fmt.Sprint(h.GetSampleCount())
				bucket := "{" + strings.Join(append(labels, `le="+Inf"`), ",") + "}"
				series[family.GetName()+"_bucket"+bucket] = fmt.Sprint(h.GetSampleCount())
				continue
			}
			series[family.GetName()+of] = fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
		}
	}
	return series
}

// metricNames are in expressions of alerts and of the dashboard.
var metricNames = regexp.MustCompile(`\b(addonflow|gotk|leader)_\w+`)

// dashboardVariables are replaced by Grafana.
var dashboardVariables = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$name", ".*")

// TestMonitoringReadsWhatTheOperatorExports: a misspelled metric makes an alert that never fires,
// and an empty panel.
func TestMonitoringReadsWhatTheOperatorExports(t *testing.T) {
	o, registry := newOperator()
	o.begins("a")
	o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
		s.Stages = []v1alpha1.StageStatus{{Name: "canary", Phase: "Held", Gates: []v1alpha1.GateStatus{{
			Name: "release", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &metav1.Time{Time: o.now},
		}}}}
	})
	o.now = o.now.Add(time.Minute)
	o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
		s.History[0].Stages = []v1alpha1.StageTimes{{Name: "canary", Phase: "Failed", Finished: &metav1.Time{Time: o.now}}}
		s.Stages = append(slices.Clone(s.Stages), v1alpha1.StageStatus{Name: "everyone", Phase: "Waiting"})
	})
	o.ends(v1alpha1.PhaseFailed)
	o.ends(v1alpha1.PhaseSucceeded)
	o.stores(func(s *v1alpha1.AddOnRolloutStatus) {
		s.Stages[0].Gates = append(slices.Clone(s.Stages[0].Gates), v1alpha1.GateStatus{
			Name: "second", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &metav1.Time{Time: o.now},
		})
		s.Stages[0].Gates[0].State = v1alpha1.GatePassed
	})
	o.sources.Read(fleetKey, "", o.now)
	o.sources.Stored(fleetKey, nil)
	o.conditions.RecordCondition(corev1.ObjectReference{Kind: v1alpha1.AddOnSourceKind}, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue})
	if err := o.forges.Measured("gitea", silentForge{}).Post(t.Context(), commitstatus.Status{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for series := range scrape(t, registry) {
		name, _, _ := strings.Cut(series, "{")
		known[name] = true
	}
	expressions := alerts(t)
	maps.Copy(expressions, panels(t))
	for where, expression := range expressions {
		names := metricNames.FindAllString(expression, -1)
		if len(names) == 0 {
			t.Errorf("%s reads no metric: %s", where, expression)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s reads %s, which the operator does not export", where, name)
			}
		}
	}
}

// silentForge takes no post.
type silentForge struct{ commitstatus.Forge }

// Post implements commitstatus.Forge.
func (silentForge) Post(context.Context, commitstatus.Status) error { return context.Canceled }

// TestTheDashboardCanBeEvaluated: promtool reads every expression of it.
func TestTheDashboardCanBeEvaluated(t *testing.T) {
	promtool := promtoolPath(t)
	var rules []map[string]string
	for title, expression := range panels(t) {
		rules = append(rules, map[string]string{"record": "panel:" + metricName.ReplaceAllString(title, "_"), "expr": expression})
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	writeYAML(t, file, map[string]any{"groups": []map[string]any{{"name": "panels", "rules": rules}}})
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// metricName matches what a metric's name cannot have.
var metricName = regexp.MustCompile(`\W+`)

// monitoring decodes an object of manifests/monitoring.
func monitoring(t *testing.T, kind string) map[string]any {
	t.Helper()
	for _, o := range built(t, "monitoring") {
		if o.kind != kind {
			continue
		}
		var fields map[string]any
		if err := yaml.UnmarshalStrict(o.text, &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	t.Fatalf("manifests/monitoring has no %s", kind)
	return nil
}

// rulesOf is the spec of the PrometheusRule, which is a file of Prometheus.
func rulesOf(t *testing.T) any { t.Helper(); return monitoring(t, "PrometheusRule")["spec"] }

// alerts are the expressions of the alerts by name.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	rules, ok := rulesOf(t).(map[string]any)
	if !ok {
		t.Fatal("the rules are no object")
	}
	spec := decode[struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}](t, rules)
	found := map[string]string{}
	for _, group := range spec.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule.Expr
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s has no severity, summary or description", rule.Alert)
			}
		}
	}
	return found
}

// panels are the expressions of the dashboard by the title of their panel.
func panels(t *testing.T) map[string]string {
	t.Helper()
	board := decode[corev1.ConfigMap](t, monitoring(t, "ConfigMap"))
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(board.Data["addonflow.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found[panel.Title+" "+target.RefID] = dashboardVariables.Replace(target.Expr)
		}
	}
	if len(found) < 10 {
		t.Errorf("found %d expressions of the dashboard only", len(found))
	}
	return found
}

// TestTheServiceMonitorFindsTheMetrics: its selector is a label of one service, which has the port.
func TestTheServiceMonitorFindsTheMetrics(t *testing.T) {
	monitor := decode[struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port        string `json:"port"`
				Interval    string `json:"interval"`
				HonorLabels bool   `json:"honorLabels"`
			} `json:"endpoints"`
		} `json:"spec"`
	}](t, monitoring(t, "ServiceMonitor"))
	var found []string
	for _, service := range allOf[corev1.Service](t, "Service") {
		matches := len(monitor.Spec.Selector.MatchLabels) > 0
		for key, value := range monitor.Spec.Selector.MatchLabels {
			matches = matches && service.Labels[key] == value
		}
		if matches && service.Spec.Ports[0].Name == monitor.Spec.Endpoints[0].Port {
			found = append(found, service.Name)
		}
	}
	if want := []string{"addonflow-metrics"}; !slices.Equal(found, want) {
		t.Errorf("the ServiceMonitor selects %v, want %v", found, want)
	}
	if !monitor.Spec.Endpoints[0].HonorLabels {
		t.Error("Prometheus would overwrite the label namespace of rollouts with that of the operator")
	}
}

func promtoolPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; on Debian: apt-get install prometheus")
	}
	return path
}

func writeYAML(t *testing.T, file string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
