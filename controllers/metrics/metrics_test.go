package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/metrics"
	"github.com/addonflow/addonflow/rollout"
)

// epoch is when the tests begin.
var epoch = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

// fleet is a rollout whose statuses are stored one after the other, and a server for scrapes.
type fleet struct {
	t       *testing.T
	course  *metrics.Rollouts
	rollout *v1alpha1.AddOnRollout
	address string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, course: metrics.NewRollouts(), rollout: &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello"}}}
	f.address = served(t, f.course)
	return f
}

// served serves collectors from a registry that checks everything.
func served(t *testing.T, collectors ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return server.URL
}

// stores writes the next status, some minutes after the first.
func (f *fleet) stores(minute int, change func(*v1alpha1.AddOnRolloutStatus)) {
	f.t.Helper()
	before := f.rollout.Status.DeepCopy()
	change(&f.rollout.Status)
	f.course.Stored(before, f.rollout, at(minute).Time)
}

func keyOf(o metav1.ObjectMeta) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

func at(minute int) *metav1.Time {
	return &metav1.Time{Time: epoch.Add(time.Duration(minute) * time.Minute)}
}

// begins is a status in which a new content is rolled out.
func begins(digest string, minute int) func(*v1alpha1.AddOnRolloutStatus) {
	return func(s *v1alpha1.AddOnRolloutStatus) {
		target := v1alpha1.Target{Digest: digest, Commit: "main@sha1:" + digest}
		if len(s.History) > 0 && s.History[0].Finished == nil {
			s.History[0].Finished, s.History[0].SupersededBy = at(minute), target.Commit
		}
		s.History = slices.Insert(s.History, 0, v1alpha1.HistoryEntry{Target: target, Phase: v1alpha1.PhaseProgressing, Started: *at(minute)})
		s.Target, s.Phase, s.Attempt = &target, v1alpha1.PhaseProgressing, 1
		s.Stages = nil
	}
}

// ends is a status in which the rollout is in a phase that ends it.
func ends(phase v1alpha1.Phase, minute int) func(*v1alpha1.AddOnRolloutStatus) {
	return func(s *v1alpha1.AddOnRolloutStatus) {
		s.Phase, s.History[0].Phase, s.History[0].Finished = phase, phase, at(minute)
	}
}

// scraped are the lines of a scrape that begin with a prefix and are not 0, without buckets.
func scraped(t *testing.T, address string, prefixes ...string) []string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v:\n%s", response.Status, err, text)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		wanted := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
		if wanted && !strings.Contains(line, "_bucket{") && !strings.HasSuffix(line, " 0") {
			lines = append(lines, strings.ReplaceAll(line, `name="hello",namespace="team"`, "_"))
		}
	}
	return lines
}

// shows compares a scrape.
func (f *fleet) shows(when string, want []string, prefixes ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, scraped(f.t, f.address, prefixes...)); diff != "" {
		f.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestTheEndOfARolloutIsCountedOnce(t *testing.T) {
	f := newFleet(t)
	f.stores(0, begins("a", 0))
	f.stores(10, ends(v1alpha1.PhaseSucceeded, 10))
	f.stores(11, func(*v1alpha1.AddOnRolloutStatus) {}) // nothing changed
	f.stores(60, func(s *v1alpha1.AddOnRolloutStatus) { // a cluster joins
		s.Phase, s.History[0].Phase, s.History[0].Finished = v1alpha1.PhaseProgressing, v1alpha1.PhaseProgressing, nil
	})
	f.stores(70, ends(v1alpha1.PhaseSucceeded, 70))
	f.shows("one rollout of ten minutes", []string{
		`addonflow_rollout_duration_seconds_sum{_,result="succeeded"} 600`,
		`addonflow_rollout_duration_seconds_count{_,result="succeeded"} 1`,
	}, "addonflow_rollout_duration")
}

func TestARestartCountsNothingAgain(t *testing.T) {
	f := newFleet(t)
	begins("a", 0)(&f.rollout.Status)
	ends(v1alpha1.PhaseSucceeded, 10)(&f.rollout.Status)
	f.stores(20, func(*v1alpha1.AddOnRolloutStatus) {})
	f.shows("a rollout that ended before the start", nil, "addonflow_rollout_duration", "addonflow_rollout_lead", "addonflow_rollout_time")
	f.shows("its phase", []string{`addonflow_rollout_phase{_,phase="Succeeded"} 1`}, "addonflow_rollout_phase")
}

func TestAFailureCountsUntilTheFleetIsRestored(t *testing.T) {
	for restored, want := range map[string]struct {
		by      func(*fleet)
		minutes int
	}{
		"by the next commit": {func(f *fleet) {
			f.stores(30, begins("c", 30))
			f.stores(50, ends(v1alpha1.PhaseSucceeded, 50))
		}, 45},
		"by the second commit after it": {func(f *fleet) {
			f.stores(30, begins("c", 30))
			f.stores(40, ends(v1alpha1.PhaseFailed, 40))
			f.stores(45, begins("d", 45))
			f.stores(65, ends(v1alpha1.PhaseSucceeded, 65))
		}, 60},
		"by a rollback": {func(f *fleet) {
			f.stores(6, begins("a", 6))
			f.stores(6, func(s *v1alpha1.AddOnRolloutStatus) { s.Phase = v1alpha1.PhaseRollingBack })
			f.stores(8, ends(v1alpha1.PhaseRolledBack, 8))
		}, 3},
		"by a retry": {func(f *fleet) {
			f.stores(10, func(s *v1alpha1.AddOnRolloutStatus) {
				s.Phase, s.History[0].Phase, s.History[0].Finished = v1alpha1.PhaseProgressing, v1alpha1.PhaseProgressing, nil
			})
			f.stores(25, ends(v1alpha1.PhaseSucceeded, 25))
		}, 20},
	} {
		t.Run(restored, func(t *testing.T) {
			f := newFleet(t)
			f.stores(0, begins("b", 0))
			f.stores(5, ends(v1alpha1.PhaseFailed, 5))
			want.by(f)
			f.shows("from the failure in minute 5", []string{
				fmt.Sprintf("addonflow_rollout_time_to_restore_seconds_sum{_} %d", want.minutes*60),
				"addonflow_rollout_time_to_restore_seconds_count{_} 1",
			}, "addonflow_rollout_time_to_restore")
		})
	}
}

func TestTheTimeToRestoreSurvivesARestart(t *testing.T) {
	f := newFleet(t)
	begins("b", 0)(&f.rollout.Status)
	ends(v1alpha1.PhaseFailed, 5)(&f.rollout.Status)
	begins("c", 30)(&f.rollout.Status)
	f.stores(50, ends(v1alpha1.PhaseSucceeded, 50))
	f.shows("from the failure in minute 5", []string{
		"addonflow_rollout_time_to_restore_seconds_sum{_} 2700", "addonflow_rollout_time_to_restore_seconds_count{_} 1",
	}, "addonflow_rollout_time_to_restore")
}

func TestTheLeadTimeBeginsWithTheFirstPlanForTheContent(t *testing.T) {
	f := newFleet(t)
	f.stores(0, begins("a", 0))
	f.stores(5, begins("b", 5)) // supersedes a
	f.stores(9, begins("a", 9)) // reverts b
	f.stores(20, ends(v1alpha1.PhaseSucceeded, 20))
	f.shows("20 minutes, of which the last rollout took 11", []string{
		`addonflow_rollout_duration_seconds_sum{_,result="succeeded"} 660`,
		`addonflow_rollout_duration_seconds_count{_,result="succeeded"} 1`,
		`addonflow_rollout_duration_seconds_sum{_,result="superseded"} 540`,
		`addonflow_rollout_duration_seconds_count{_,result="superseded"} 2`,
		"addonflow_rollout_lead_time_seconds_sum{_} 1200",
		"addonflow_rollout_lead_time_seconds_count{_} 1",
	}, "addonflow_rollout_duration", "addonflow_rollout_lead")
}

func TestAGateWaitsFromWhenItsStageIsReached(t *testing.T) {
	f := newFleet(t)
	gate := v1alpha1.GateStatus{Name: "release", When: v1alpha1.GateBefore, Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: at(0)}
	stages := func(canary, everyone string) []v1alpha1.StageStatus {
		return []v1alpha1.StageStatus{{Name: "canary", Phase: canary}, {Name: "everyone", Phase: everyone, Gates: []v1alpha1.GateStatus{gate}}}
	}
	f.stores(0, func(s *v1alpha1.AddOnRolloutStatus) {
		begins("a", 0)(s)
		s.Stages = stages(rollout.StageProgressing, rollout.StageWaiting)
		s.History[0].Stages = []v1alpha1.StageTimes{{Name: "canary", Phase: rollout.StageProgressing, Started: *at(0)}}
	})
	f.shows("during the canary", []string{
		`addonflow_rollout_stage_phase{_,phase="Progressing",stage="canary"} 1`,
		`addonflow_rollout_stage_phase{_,phase="Waiting",stage="everyone"} 1`,
	}, "addonflow_gate", "addonflow_rollout_stage", "addonflow_stage")
	f.stores(20, func(s *v1alpha1.AddOnRolloutStatus) {
		s.Stages = stages(rollout.StageComplete, rollout.StageHeld)
		s.History[0].Stages = []v1alpha1.StageTimes{{Name: "canary", Phase: rollout.StageComplete, Started: *at(0), Finished: at(20)}}
	})
	f.shows("after the canary", []string{
		fmt.Sprintf(`addonflow_gate_waiting_since_timestamp_seconds{gate="release",_,stage="everyone",type="approval"} %g`, float64(at(20).Unix())),
		`addonflow_stage_duration_seconds_sum{_,result="succeeded",stage="canary"} 1200`,
		`addonflow_stage_duration_seconds_count{_,result="succeeded",stage="canary"} 1`,
	}, "addonflow_gate", "addonflow_stage")
	gate.State, gate.Since = v1alpha1.GatePassed, at(50)
	f.stores(50, func(s *v1alpha1.AddOnRolloutStatus) {
		s.Stages = stages(rollout.StageComplete, rollout.StageProgressing)
	})
	f.shows("after the approval", []string{
		`addonflow_gate_wait_seconds_sum{_,result="succeeded",type="approval"} 1800`,
		`addonflow_gate_wait_seconds_count{_,result="succeeded",type="approval"} 1`,
	}, "addonflow_gate")
}

func TestCommitStatusesThatWaitAreCounted(t *testing.T) {
	f, sources := newFleet(t), metrics.NewSources()
	marks := []v1alpha1.CommitMark{{Accepted: &v1alpha1.CommitStatement{}}, {Posting: &v1alpha1.CommitStatement{}}, {Owed: &v1alpha1.CommitStatement{}}}
	f.stores(0, func(s *v1alpha1.AddOnRolloutStatus) { s.CommitStatuses = marks })
	f.shows("of the rollout", []string{"addonflow_rollout_commit_statuses_waiting{_} 2"}, "addonflow_rollout_commit")
	key := metav1.ObjectMeta{Namespace: "team", Name: "hello"}
	sources.Stored(keyOf(key), marks[1:2])
	sources.Read(keyOf(key), "", epoch)
	sources.Read(keyOf(key), v1alpha1.FetchFailedReason, epoch.Add(time.Minute))
	address := served(t, sources)
	want := []string{
		"addonflow_source_commit_statuses_waiting{_} 1",
		fmt.Sprintf("addonflow_source_last_read_timestamp_seconds{_} %g", float64(epoch.Unix())),
		`addonflow_source_reads_total{_,result="FetchFailed"} 1`,
		`addonflow_source_reads_total{_,result="succeeded"} 1`,
	}
	if diff := cmp.Diff(want, scraped(t, address, "addonflow_")); diff != "" {
		t.Errorf("of the source (-want +got):\n%s", diff)
	}
	sources.Forget(keyOf(key))
	f.course.Forget(keyOf(key))
	if left := append(scraped(t, address, "addonflow_"), scraped(t, f.address, "addonflow_")...); len(left) > 0 {
		t.Errorf("after both are gone: %v", left)
	}
}

// answering is a forge that gives one answer to every post.
type answering struct {
	commitstatus.Forge

	err error
}

func (a answering) Post(context.Context, commitstatus.Status) error { return a.err }

func TestPostsAreMeasuredByTheirResult(t *testing.T) {
	forges := metrics.NewForges()
	for _, err := range []error{nil, &commitstatus.DeliveryError{Reason: "503"}, &commitstatus.DeliveryError{Denied: commitstatus.TokenRefused}} {
		if got := forges.Measured("gitea", answering{err: err}).Post(t.Context(), commitstatus.Status{}); !errors.Is(got, err) {
			t.Errorf("the post ends with %v, want %v", got, err)
		}
	}
	want := []string{
		`addonflow_commit_status_post_duration_seconds_count{provider="gitea",result="TokenRefused"} 1`,
		`addonflow_commit_status_post_duration_seconds_count{provider="gitea",result="accepted"} 1`,
		`addonflow_commit_status_post_duration_seconds_count{provider="gitea",result="failed"} 1`,
	}
	if diff := cmp.Diff(want, scraped(t, served(t, forges), "addonflow_commit_status_post_duration_seconds_count")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamesAreAsPrometheusWantsThem: units, suffixes and help texts.
func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	f, sources, forges := newFleet(t), metrics.NewSources(), metrics.NewForges()
	f.stores(0, begins("a", 0))
	f.stores(10, ends(v1alpha1.PhaseSucceeded, 10))
	sources.Read(keyOf(f.rollout.ObjectMeta), "", epoch)
	sources.Stored(keyOf(f.rollout.ObjectMeta), nil)
	if err := forges.Measured("gitea", answering{}).Post(t.Context(), commitstatus.Status{}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.course, sources, forges)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
