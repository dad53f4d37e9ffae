package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// dateTime is the format of a time with its date, because a journal may have entries from weeks ago.
const dateTime = "2006-01-02 15:04:05"

// HistoryTable has a row for each rollout of an add-on, newest first, and below it rows for the stages that began and
// the clusters that failed.
func HistoryTable(now time.Time, r *v1alpha1.AddOnRollout) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Started"), column("Took"), column("Commit"), column("Phase"), column("Updated"), column("Failed"), column("Reason"), wide("Revision"),
	}}
	for i := range r.Status.History {
		h := &r.Status.History[i]
		reason := FirstLine(h.Reason)
		if h.SupersededBy != "" {
			reason = strings.TrimPrefix(reason+"; superseded by "+ShortCommit(h.SupersededBy), "; ")
		}
		t.Rows = append(t.Rows, row(r, timestamp(h.Started), Took(now, h.Started, h.Finished), ShortCommit(h.Target.Commit), string(h.Phase),
			fmt.Sprintf("%d/%d", h.Counts.Updated, h.Counts.Total), fmt.Sprint(h.Counts.Failed), orNone(reason), h.Target.Revision))
		for _, s := range h.Stages {
			t.Rows = append(t.Rows, row(r, "  "+timestamp(s.Started), Took(now, s.Started, cmp.Or(s.Finished, h.Finished)), "stage "+s.Name, s.Phase, "", "", "", ""))
		}
		for _, f := range h.Failing {
			t.Rows = append(t.Rows, row(r, "", "", "cluster "+f.Cluster, "Failed", "", "", FirstLine(f.Reason), ""))
		}
	}
	return t
}

// JournalTable has a row for each decision of the journal, oldest first.
func JournalTable(r *v1alpha1.AddOnRollout) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Time"), column("Decision"), column("Stage"), column("Clusters"), column("Commit"), column("Reason"),
	}}
	for _, e := range r.Status.Journal {
		clusters := none
		if e.Clusters > 0 {
			clusters = fmt.Sprint(e.Clusters)
		}
		t.Rows = append(t.Rows, row(r, timestamp(e.At), e.Decision, orNone(e.Stage), clusters, orNone(e.Commit), orNone(FirstLine(e.Reason))))
	}
	return t
}

// History returns the history and the journal of a rollout as one object. The object has the form of an API object,
// but the API has no such kind.
func History(r *v1alpha1.AddOnRollout) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		History []v1alpha1.HistoryEntry `json:"history"`
		Journal []v1alpha1.JournalEntry `json:"journal"`
	}{r.Status.History, r.Status.Journal})
	if err != nil {
		return nil, fmt.Errorf("cannot print the history: %w", err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind("RolloutHistory")
	o.SetNamespace(r.Namespace)
	o.SetName(r.Name)
	return o, nil
}

// Took is the duration between two times; without an end, the duration so far. It is not known if a clock was set
// back meanwhile.
func Took(now time.Time, started metav1.Time, finished *metav1.Time) string {
	end, suffix := now, " so far"
	if finished != nil {
		end, suffix = finished.Time, ""
	}
	if end.Before(started.Time) {
		return none
	}
	return duration.HumanDuration(end.Sub(started.Time)) + suffix
}

// timestamp is a time to the second, in UTC.
func timestamp(t metav1.Time) string { return t.UTC().Format(dateTime) }
