package oracle

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/hub"
)

// addOnKeys is where ManagedClusterAddOns are stored.
const addOnKeys = registry + "addon.open-cluster-management.io/managedclusteraddons/"

// noon is when the stories begin.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// story is a history that a test tells, one write after the other.
type story struct {
	changes []hub.Change
	at      time.Time
	// content is the spec of the works from now on, declared what the rollout is to reach, and retries how many attempts
	// there were before.
	content, declared string
	retries           int
	// suspended is the annotation of the rollout from now on.
	suspended string
}

func (s *story) store(key string, object map[string]any) {
	value, err := json.Marshal(object)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	s.changes = append(s.changes, hub.Change{Revision: int64(len(s.changes) + 1), Key: key, Value: value})
}

// bind stores a binding of c1 with groups as its subjects.
func (s *story) bind(groups ...string) {
	subjects := make([]any, len(groups))
	for i, group := range groups {
		subjects[i] = map[string]any{"kind": "Group", "name": group}
	}
	s.store(bindingKeys+"c1/reader", map[string]any{
		"metadata": map[string]any{"namespace": "c1", "name": "reader", "labels": map[string]any{
			"addonflow.io/managed-by": "addonflow", "open-cluster-management.io/addon-name": "hello",
		}},
		"subjects": subjects,
	})
}

func (s *story) remove(key string) {
	before := []byte(nil)
	for _, c := range s.changes {
		if c.Key == key {
			before = c.Value
		}
	}
	s.changes = append(s.changes, hub.Change{Revision: int64(len(s.changes) + 1), Key: key, Before: before})
}

// revision stores content; with a time it has succeeded.
func (s *story) revision(digest, succeeded string) {
	s.store(registry+"addonflow.io/addonrevisions/default/"+digest, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"addonflow.io/add-on": "hello"}, "annotations": map[string]any{"addonflow.io/succeeded-at": succeeded}},
		"spec":     map[string]any{"digest": digest},
	})
}

// rollout stores a ledger: "c1 v1 canary Admitted".
func (s *story) rollout(records ...string) { s.ledger("addonflow", records...) }

// restore writes a ledger back from a backup.
func (s *story) restore(records ...string) { s.ledger("backup", records...) }

func (s *story) ledger(writer string, records ...string) {
	var names []string
	var groups []any
	for i, r := range records {
		f := strings.Fields(r)
		names = append(names, f[0])
		groups = append(groups, map[string]any{"revision": f[1], "stage": f[2], "state": f[3], "times": []any{map[string]any{"clusters": fmt.Sprint(i)}}})
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, strings.Join(names, "\n"))
	_ = z.Close() // a buffer refuses no write
	s.store(rolloutKeys+"default/hello", map[string]any{
		"metadata": map[string]any{"name": "hello", "uid": "r1", "annotations": map[string]any{"addonflow.io/suspend": s.suspended}, "managedFields": []any{map[string]any{"manager": writer, "subresource": "status"}}},
		"spec":     map[string]any{"target": map[string]any{"digest": s.declared}},
		"status":   map[string]any{"attempt": 1 + s.retries, "ledger": map[string]any{"names": base64.StdEncoding.EncodeToString(zipped.Bytes()), "records": groups}},
	})
}

// approve stores an approval of v1 in the stage that needs one, in this attempt.
func (s *story) approve() { s.decide("a", "Approve", "r1") }

// decide stores a decision about a rollout with a UID.
func (s *story) decide(name, decision, uid string) {
	s.store(approvals+"default/"+name, map[string]any{"spec": map[string]any{
		"rolloutUID": uid, "rollout": "hello", "stage": "approved", "gate": "qa", "digest": "v1", "attempt": 1 + s.retries, "decision": decision,
	}})
}

// gated is the story of the stage that needs an approval.
func (s *story) gated() {
	const before = "c1 v1 canary Done,c2 v1 rest Done,c3 v1 rest Done"
	s.rollout(append(strings.Split(before, ","), "c4 v1 approved Admitted")...)
	s.work("c4", "v1", "")
	s.work("c4", "v1", "v1")
	s.rollout(append(strings.Split(before, ","), "c4 v1 approved Done")...)
}

// withdraw deletes the approval, which its user gave up before.
func (s *story) withdraw() {
	s.store(approvals+"default/a", map[string]any{"metadata": map[string]any{"annotations": map[string]any{GivenUp: "true"}}, "spec": map[string]any{
		"rolloutUID": "r1", "rollout": "hello", "stage": "approved", "gate": "qa", "digest": "v1", "attempt": 1 + s.retries, "decision": "Approve",
	}})
	s.remove(approvals + "default/a")
}

// available stores whether a cluster is.
func (s *story) available(cluster, status string) {
	s.store(clusterKeys+cluster, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "ManagedClusterConditionAvailable", "status": status}}}})
}

// work stores a cluster's work, as it is written, or with the feedback of its agent.
func (s *story) work(cluster, content, feedback string) {
	fields := []any{map[string]any{"time": s.at.Format(time.RFC3339)}}
	metadata := map[string]any{
		"namespace": cluster, "name": "hello", "labels": map[string]any{"open-cluster-management.io/addon-name": "hello"},
		"annotations": map[string]any{"addonflow.io/revision": content, "addonflow.io/digest": content}, "managedFields": fields,
	}
	work := map[string]any{"metadata": metadata, "spec": map[string]any{"image": s.content}}
	if feedback != "" {
		value := func(name, kind string, v any) any {
			return map[string]any{"name": "addonflow." + name, "fieldValue": map[string]any{"type": kind, strings.ToLower(kind): v}}
		}
		values := []any{value("digest", "String", feedback)}
		for _, name := range []string{"desired", "total", "updated", "ready", "available"} {
			values = append(values, value(name, "Integer", 1))
		}
		work["status"] = map[string]any{"resourceStatus": map[string]any{"manifests": []any{map[string]any{"statusFeedback": map[string]any{"values": values}}}}}
		metadata["managedFields"] = append(fields, map[string]any{"time": s.at.Format(time.RFC3339), "subresource": "status"})
	}
	s.store(workKeys+cluster+"/hello", work)
}

// selects stores which clusters the placement of a stage selects.
func (s *story) selects(stage string, clusters ...string) {
	var all []any
	for _, name := range clusters {
		all = append(all, map[string]any{"clusterName": name})
	}
	s.store(decisionKeys+"default/"+stage+"-decision-1", map[string]any{
		"metadata": map[string]any{"namespace": "default", "labels": map[string]any{placementLabel: stage}}, "status": map[string]any{"decisions": all},
	})
}

// approved is the story of the last stage, when c3 has not verified the content.
func (s *story) approved() {
	s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
	s.work("c2", "v1", "")
	s.work("c2", "v1", "v1")
	s.approve()
	s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c4 v1 approved Admitted")
	s.work("c4", "v1", "")
	s.work("c4", "v1", "v1")
	s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c4 v1 approved Done")
}

// withoutCanary is the story of v2 when no cluster is in the canary, with the record of c1.
func (s *story) withoutCanary(record string) {
	s.selects("canary", "c1")
	s.selects("canary")
	s.revision("v2", "")
	s.rollout(record, "c2 v2 rest Admitted")
	s.work("c2", "v2", "")
	s.work("c2", "v2", "v2")
	s.rollout(record, "c2 v2 rest Done")
}

// canary is the story up to a canary that has verified v1.
func canary() *story {
	s := &story{at: noon}
	s.revision("v1", "")
	s.rollout("c1 v1 canary Admitted")
	s.work("c1", "v1", "")
	s.rollout("c1 v1 canary Updating")
	s.work("c1", "v1", "v1")
	s.rollout("c1 v1 canary Soaking")
	s.at = s.at.Add(time.Minute)
	return s
}

// rest is the story of the stage after the canary.
func (s *story) rest() {
	for _, cluster := range []string{"c2", "c3"} {
		s.rollout("c1 v1 canary Done", cluster+" v1 rest Admitted")
		s.work(cluster, "v1", "")
		s.work(cluster, "v1", "v1")
	}
}

func TestJudge(t *testing.T) {
	const handMade = addOnKeys + "c9/hello"
	made := map[string]any{"metadata": map[string]any{"name": "hello", "uid": "1"}, "spec": map[string]any{}}
	for name, c := range map[string]struct {
		tell func(*story)
		want string // "": all is well
	}{
		"the stage after a soaked canary": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"a work before its reservation": {want: "c2 gets v1 before it is reserved", tell: func(s *story) {
			s.work("c2", "v1", "")
		}},
		"a work without a slot": {want: "c2 gets v1 without a slot", tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
			s.work("c2", "v1", "")
		}},
		"a repair without a slot": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done")
			s.work("c1", "", "")
			s.work("c1", "v1", "v1")
		}},
		"a digest that a hand edit changed": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done")
			s.work("c1", Edited, "v1")
			s.work("c1", "v1", "v1")
		}},
		"the stage after a canary that is not verified": {want: "gets unproven v2 before c1 of stage canary has verified it", tell: func(s *story) {
			s.revision("v2", "")
			s.rollout("c1 v1 canary Done", "c2 v2 rest Admitted")
			s.work("c2", "v2", "")
			s.work("c2", "v2", "v2")
			s.rollout("c1 v1 canary Done", "c2 v2 rest Done")
		}},
		"the stage after a canary that reports the content before": {want: "gets unproven v2 before c1 of stage canary has verified it", tell: func(s *story) {
			s.revision("v2", "")
			s.rollout("c1 v2 canary Admitted")
			s.work("c1", "v2", "v1")
			s.rollout("c1 v2 canary Done", "c2 v2 rest Admitted")
			s.work("c2", "v2", "")
			s.rollout("c1 v2 canary Done", "c2 v2 rest Done")
		}},
		"the stage before the end of the soak": {want: "the soak is 10s", tell: func(s *story) {
			s.at = noon.Add(5 * time.Second)
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"proven content everywhere": {tell: func(s *story) {
			s.revision("v0", "2026-01-01T00:00:00Z")
			s.rollout("c1 v1 canary Done", "c2 v0 rest Admitted")
			s.work("c2", "v0", "")
			s.rollout("c1 v1 canary Done", "c2 v0 rest Done")
		}},
		"too many slots": {want: `2 clusters of stage "rest" hold a slot; the limit is 1`, tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted", "c3 v1 rest Updating")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"too many works that are not verified": {want: `the works of 2 clusters of stage "rest" are not verified; the limit is 1`, tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Admitted")
			s.work("c3", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"a lost cluster that is parked": {tell: func(s *story) {
			s.available("c2", "True")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.available("c2", "Unknown")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Parked", "c3 v1 rest Admitted")
			s.work("c3", "v1", "")
			s.available("c2", "True")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Updating", "c3 v1 rest Updating")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"a cluster that is parked although it was never lost": {want: `the works of 2 clusters of stage "rest" are not verified; the limit is 1`, tell: func(s *story) {
			s.available("c2", "True")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Parked", "c3 v1 rest Admitted")
			s.work("c3", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"a slot that stays": {want: "the slot of c1 is never released", tell: func(*story) {}},
		"a hand-made add-on that changes": {want: "changes", tell: func(s *story) {
			s.store(handMade, made)
			s.store(handMade, map[string]any{"metadata": map[string]any{"name": "hello", "uid": "1", "labels": map[string]any{"a": "b"}}, "spec": map[string]any{}})
		}},
		"a status of a hand-made add-on": {tell: func(s *story) {
			s.store(handMade, made)
			s.store(handMade, map[string]any{"metadata": made["metadata"], "spec": made["spec"], "status": map[string]any{"a": "b"}})
		}},
		"a stage that needs an approval and has none": {want: "c4 of stage approved gets unproven v1, which is not approved", tell: func(s *story) {
			s.rest()
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Admitted")
			s.work("c4", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Done")
		}},
		"a stage that was approved in an attempt before": {want: "c4 of stage approved gets unproven v1, which is not approved", tell: func(s *story) {
			s.rest()
			s.approve()
			s.retries++
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Admitted")
			s.work("c4", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Done")
		}},
		"a cluster that is passed by": {want: "c4 gets unproven v1 before c3 of stage rest has verified it", tell: (*story).approved},
		"a cluster that is passed by while no placement selects it": {tell: func(s *story) {
			s.selects("rest", "c2", "c3")
			s.selects("rest", "c2")
			s.approved()
		}},
		"a cluster that is passed by and returned before the content was declared": {want: "c4 gets unproven v1 before c3 of stage rest has verified it", tell: func(s *story) {
			s.selects("rest", "c2", "c3")
			s.selects("rest", "c2")
			s.selects("rest", "c2", "c3")
			s.declared = "v1"
			s.approved()
		}},
		"a cluster that is passed by while it is not available": {tell: func(s *story) {
			for _, status := range []string{"True", "Unknown"} {
				s.available("c3", status)
			}
			s.approved()
		}},
		"an upgrade whose canary is empty": {want: "c2 gets unproven v2, which no cluster of stage canary has verified", tell: func(s *story) {
			s.revision("v0", "2026-01-01T00:00:00Z")
			s.withoutCanary("c1 v1 canary Done")
		}},
		"a first install whose canary is empty": {tell: func(s *story) { s.withoutCanary("c1 v1 canary Done") }},
		"a first install whose canary left in flight": {want: "c2 gets unproven v2, which no cluster of stage canary has verified", tell: func(s *story) {
			s.withoutCanary("c1 v2 canary Left")
		}},
		"an approved stage": {tell: func(s *story) {
			s.rest()
			s.approve()
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Admitted")
			s.work("c4", "v1", "")
			s.work("c4", "v1", "v1")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Done")
		}},
		"an admission that is not approved, before any work": {want: "c4 is admitted to unproven v1 in stage approved, which is not approved", tell: func(s *story) {
			s.rest()
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Admitted")
			s.approve()
			s.work("c4", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Done")
		}},
		"an approval of another rollout of that name": {want: "which is not approved", tell: func(s *story) {
			s.rest()
			s.decide("a", "Approve", "r0")
			s.gated()
		}},
		"a stage that one user approved and another one rejected": {want: "which is not approved", tell: func(s *story) {
			s.rest()
			s.approve()
			s.decide("b", "Reject", "r1")
			s.gated()
		}},
		"an approval that was withdrawn": {want: "which is not approved", tell: func(s *story) {
			s.rest()
			s.approve()
			s.withdraw()
			s.gated()
		}},
		"an approval that is deleted after its use": {tell: func(s *story) {
			s.rest()
			s.approve()
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Admitted")
			s.withdraw()
			s.work("c4", "v1", "")
			s.work("c4", "v1", "v1")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done", "c4 v1 approved Done")
		}},
		"content that failed in the first stage": {want: "c2 gets content that failed in the first stage: never-starts", tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.content = ":never-starts"
			s.work("c2", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"content of a commit with an error": {want: "c2 gets content of a commit with an error: refused", tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.content = ":refused"
			s.work("c2", "v1", "")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"an admission while the rollout is suspended": {want: "c2 is admitted while the rollout is suspended", tell: func(s *story) {
			s.suspended = "true"
			s.rollout("c1 v1 canary Done")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"clusters in flight while the rollout is suspended, and one after it": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.suspended = "true"
			s.rollout("c1 v1 canary Done", "c2 v1 rest Updating")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
			s.suspended = "false"
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Admitted")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"an admission to quarantined content": {want: "c2 is admitted to v1, which is quarantined", tell: func(s *story) {
			s.store(revisions+"default/v1", map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"addonflow.io/quarantined": "{}"}}, "spec": map[string]any{"digest": "v1"},
			})
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
		}},
		"an older status that is written back": {tell: func(s *story) {
			s.rest()
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted", "c3 v1 rest Done")
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
			s.store(revisions+"default/v1", map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"addonflow.io/quarantined": "{}"}}, "spec": map[string]any{"digest": "v1"},
			})
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted", "c3 v1 rest Done")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done", "c3 v1 rest Done")
		}},
		"an older status between a reservation and its work": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.restore("c1 v1 canary Soaking")
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
		}},
		"an older status in which the content was done": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.restore("c1 v1 canary Done", "c2 v1 rest Done")
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
		}},
		"a status that is lost between a reservation and its work": {tell: func(s *story) {
			s.rollout("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.store(rolloutKeys+"default/hello", map[string]any{"metadata": map[string]any{"name": "hello"}})
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Updating")
			s.rollout("c1 v1 canary Done", "c2 v1 rest Done")
		}},
		"a reservation that only an older status has": {want: "c2 gets v1 before it is reserved", tell: func(s *story) {
			s.restore("c1 v1 canary Done", "c2 v1 rest Admitted")
			s.work("c2", "v1", "")
			s.work("c2", "v1", "v1")
		}},
		"a slot that an older status has": {want: "the slot of c2 is never released", tell: func(s *story) {
			s.rollout("c1 v1 canary Done")
			s.restore("c1 v1 canary Done", "c2 v1 rest Admitted")
		}},
		"an order without an answer": {want: "1 orders given, 0 answered", tell: func(s *story) {
			s.store(orderKeys+"default/a", map[string]any{"spec": map[string]any{"verb": "abort"}})
		}},
		"an answer that changes": {want: "the answer of an order changes", tell: func(s *story) {
			for _, state := range []string{"", "Refused", "CarriedOut"} {
				s.store(orderKeys+"default/a", map[string]any{"spec": map[string]any{"verb": "abort"}, "status": map[string]any{"state": state}})
			}
		}},
		"a work whose owner a user deleted": {tell: func(s *story) {
			const owner, owned = addOnKeys + "c8/hello", workKeys + "c8/hello"
			s.store(owner, map[string]any{"metadata": map[string]any{"uid": "u9", "annotations": map[string]any{GivenUp: "true"}}})
			s.store(owned, map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "u9"}}}})
			s.remove(owner)
			s.remove(owned)
		}},
		"a work whose owner exists": {want: "is deleted", tell: func(s *story) {
			const owner, owned = addOnKeys + "c8/hello", workKeys + "c8/hello"
			s.store(owner, map[string]any{"metadata": map[string]any{"uid": "u9"}})
			s.store(owned, map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "u9"}}}})
			s.remove(owned)
		}},
		"a binding of the agent": {tell: func(s *story) { s.bind("system:open-cluster-management:cluster:c1:addon:hello") }},
		"a binding of another cluster's agent": {want: "grants rights to Group system:open-cluster-management:cluster:c2:addon:hello", tell: func(s *story) {
			s.bind("system:open-cluster-management:cluster:c1:addon:hello", "system:open-cluster-management:cluster:c2:addon:hello")
		}},
		"a binding that is deleted": {want: "is deleted", tell: func(s *story) {
			s.bind("system:open-cluster-management:cluster:c1:addon:hello")
			s.remove(bindingKeys + "c1/reader")
		}},
		"a work that is deleted": {want: "is deleted", tell: func(s *story) { s.remove(workKeys + "c1/hello") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := canary()
			c.tell(s)
			if c.want != "the slot of c1 is never released" && !strings.Contains(string(s.changes[len(s.changes)-1].Value), "Done") {
				s.rollout("c1 v1 canary Done")
			}
			_, broken := Judge(s.changes, Expectations{
				Stages: map[string][]Stage{"hello": {
					{Name: "canary", Clusters: []string{"c1"}, Placements: []string{"default/canary"}, Limit: 1, Soak: 10 * time.Second},
					{Name: "rest", Clusters: []string{"c2", "c3"}, Placements: []string{"default/rest"}, Limit: 1},
					{Name: "approved", Clusters: []string{"c4"}, Limit: 1, Approval: "qa"},
				}},
				Confined: []string{"never-starts"}, Refused: []string{"refused"},
				HandMade: []string{handMade}, Removed: "other",
			})
			all := strings.Join(broken, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("violations are %q, want %q", all, c.want)
			}
		})
	}
}
