package show

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
)

// Cluster is one cluster of one rollout, in the operator's own plan.
type Cluster struct {
	// Namespace and Rollout name the AddOnRollout.
	Namespace, Rollout string
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Stage of the cluster; "": none.
	Stage string
	// State it is in, such as Waiting, Soaking or Failed.
	State string
	// Revision is the name of the AddOnRevision that its works should have.
	Revision string
	// Reason says what the cluster waits for, or why it has its state.
	Reason string
	// SoakingUntil and Deadline are nil if they do not apply.
	SoakingUntil, Deadline *time.Time
}

// ClusterList returns clusters as a List, in the form in which kubectl prints lists, so that every output format,
// such as jsonpath, works.
func ClusterList(clusters []Cluster) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": ""}}}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	list.Items = make([]unstructured.Unstructured, 0, len(clusters))
	for _, c := range clusters {
		list.Items = append(list.Items, c.object())
	}
	return list
}

// object is the cluster in the form of an API object; the API has no such kind.
func (c Cluster) object() unstructured.Unstructured {
	fields := map[string]any{"rollout": c.Rollout, "state": c.State}
	for name, value := range map[string]string{"stage": c.Stage, "revision": c.Revision, "reason": c.Reason} {
		if value != "" {
			fields[name] = value
		}
	}
	for name, at := range map[string]*time.Time{"soakingUntil": c.SoakingUntil, "deadline": c.Deadline} {
		if at != nil {
			fields[name] = at.Format(time.RFC3339)
		}
	}
	o := unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind("RolloutCluster")
	o.SetNamespace(c.Namespace)
	o.SetName(c.Cluster)
	return o
}

// Clusters returns the clusters of a plan that belong to the rollout, sorted by name. Clusters that only a stage or
// strategy selects are omitted.
func Clusters(r *v1alpha1.AddOnRollout, plan rollout.Plan) []Cluster {
	out := make([]Cluster, 0, len(plan.Clusters))
	for _, c := range plan.Clusters {
		if c.State != rollout.Ignored {
			out = append(out, ClusterOf(r, c))
		}
	}
	return out
}

// ClusterOf returns one cluster of a plan.
func ClusterOf(r *v1alpha1.AddOnRollout, c rollout.ClusterPlan) Cluster {
	return Cluster{
		Namespace: r.Namespace, Rollout: r.Name,
		Cluster: c.Name, Stage: c.Stage, State: string(c.State), Revision: revisionOf(r.Name, c.Revision), Reason: c.Reason,
		SoakingUntil: moment(c.SoakingUntil), Deadline: moment(c.Deadline),
	}
}

// revisionOf is the name of the AddOnRevision of a digest. Another text, such as the one for works that AddonFlow did
// not write, is returned unchanged.
func revisionOf(addOn, digest string) string {
	switch digest {
	case "", rollout.Mixed, rollout.Foreign:
		return digest
	}
	return render.RevisionName(addOn, digest)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// ClustersTable returns the table of `get clusters`.
func ClustersTable(clusters ...Cluster) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Cluster"), column("Rollout"), column("Stage"), column("State"), column("Revision"), column("Reason"),
		wide("Soaking until"), wide("Deadline"),
	}}
	for _, c := range clusters {
		// cli-runtime prints the namespace of a row from its object.
		owner := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Rollout}}
		t.Rows = append(t.Rows, row(owner, c.Cluster, c.Rollout, orNone(c.Stage), c.State, orNone(c.Revision), orNone(FirstLine(c.Reason)),
			timeOfDay(c.SoakingUntil), timeOfDay(c.Deadline)))
	}
	return t
}

// timeOfDay is a time of day in the form of commit statuses.
func timeOfDay(t *time.Time) string {
	if t == nil {
		return none
	}
	return clock.Text(*t, *t)
}
