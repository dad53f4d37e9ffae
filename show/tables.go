package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// column is a table column that is always shown. Wide columns need -o wide.
func column(name string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string"}
}

func wide(name string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1}
}

// row is a table row. cli-runtime reads namespace and labels from object.
func row(object runtime.Object, cells ...any) metav1.TableRow {
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object}}
}

// SourcesTable returns the table of `get sources`.
func SourcesTable(now time.Time, sources ...v1alpha1.AddOnSource) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name"), column("Ready"), column("Suspended"), column("Revision"), column("Add-ons"), column("Age"), column("Message"), wide("URL"), wide("Path"),
	}}
	for i := range sources {
		s := &sources[i]
		ready, message := readiness(s.Status.Conditions)
		if s.Status.ObservedGeneration != s.Generation {
			ready = string(metav1.ConditionUnknown)
		}
		t.Rows = append(t.Rows, row(s, s.Name, ready, truth(s.Spec.Suspend || v1alpha1.SuspendedByAnnotation(s.Annotations)), orNone(ShortCommit(s.Status.LastAppliedRevision)),
			strconv.Itoa(len(s.Status.AddOns)), Age(now, &s.CreationTimestamp), message, s.Spec.Address(), orNone(s.Spec.Path)))
	}
	return t
}

// RolloutsTable returns the table of `get rollouts`.
func RolloutsTable(now time.Time, rollouts ...v1alpha1.AddOnRollout) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name"), column("Ready"), column("Suspended"), column("Phase"), column("Revision"), column("Updated"), column("Failed"),
		column("Stage"), column("Age"), wide("Stable"), wide("Message"),
	}}
	for i := range rollouts {
		r := &rollouts[i]
		ready, _ := readiness(r.Status.Conditions)
		if !Current(r) {
			ready = string(metav1.ConditionUnknown)
		}
		phase, _ := Headline(r)
		t.Rows = append(t.Rows, row(r, r.Name, ready, truth(suspended(r)), phase, commitOf(cmp.Or(r.Spec.Target, r.Status.Target)),
			fmt.Sprintf("%d/%d", r.Status.Counts.Updated, r.Status.Counts.Total), strconv.Itoa(int(r.Status.Counts.Failed)),
			StagePosition(r.Status.Stages), Age(now, &r.CreationTimestamp), commitOf(r.Status.Stable), orNone(Message(r))))
	}
	return t
}

// RevisionsTable returns the table of `get revisions`.
func RevisionsTable(now time.Time, revisions ...v1alpha1.AddOnRevision) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name"), column("Add-on"), column("Succeeded"), column("Quarantined"), column("Age"), wide("Digest"), wide("Reason"),
	}}
	for i := range revisions {
		r := &revisions[i]
		since, reason := none, none
		if q, quarantined := v1alpha1.ReadQuarantine(r.Annotations); quarantined {
			since, reason = truth(true), orNone(FirstLine(q.Reason))
			if !q.Time.IsZero() {
				since = Age(now, &q.Time) + " ago"
			}
		}
		t.Rows = append(t.Rows, row(r, r.Name, r.Spec.AddOn, succeeded(now, r), since, Age(now, &r.CreationTimestamp), r.Spec.Digest, reason))
	}
	return t
}

// EventsTable is the events of sources and rollouts, oldest first.
func EventsTable(now time.Time, events ...corev1.Event) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Last seen"), column("Type"), column("Reason"), column("Object"), column("Message"), wide("Count"),
	}}
	sorted := slices.SortedStableFunc(slices.Values(events), func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b).Time) })
	for i := range sorted {
		e := &sorted[i]
		object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
		seen := lastSeen(e)
		t.Rows = append(t.Rows, row(e, Age(now, &seen), e.Type, e.Reason, object, FirstLine(e.Message), max(e.Count, 1)))
	}
	return t
}

// lastSeen is when an event was recorded last. Recorders use different fields for it.
func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	default:
		return e.CreationTimestamp
	}
}

// succeeded is how long ago a rollout of the revision last ended Succeeded.
func succeeded(now time.Time, r *v1alpha1.AddOnRevision) string {
	at, err := time.Parse(time.RFC3339, r.Annotations[v1alpha1.SucceededAtAnnotation])
	if err != nil {
		return none
	}
	return Age(now, &metav1.Time{Time: at}) + " ago"
}

// readiness is the status of the Ready condition and the first line of its message.
func readiness(conditions []metav1.Condition) (status, message string) {
	c := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	if c == nil {
		return string(metav1.ConditionUnknown), none
	}
	return string(c.Status), orNone(FirstLine(c.Message))
}

// truth is a boolean in the form of conditions.
func truth(is bool) string {
	if is {
		return string(metav1.ConditionTrue)
	}
	return string(metav1.ConditionFalse)
}

func orNone(text string) string { return cmp.Or(text, none) }
