package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/test/hub"
)

// Stage is a stage as it was committed, with its clusters.
type Stage struct {
	// Name as the ledger has it; empty: every stage of the ledger.
	Name     string
	Clusters []string
	// Placements that select the clusters, all of them, as namespace and name.
	Placements []string
	// Limit is how many clusters may be in flight at once.
	Limit int
	// Soak is how long the content stays verified on a cluster of the stage before the next
	// stage gets it.
	Soak time.Duration
	// Approval names the gate that holds the stage until a user approves; empty: none.
	Approval string
}

// Expectations are what is known of the workload.
type Expectations struct {
	// Stages of each add-on, in order.
	Stages map[string][]Stage
	// HandMade are the keys of objects that no operator may change. An operator may write the
	// status of those.
	HandMade []string
	// Confined are words in content that fails, or is stopped: no cluster gets it after the first stage. Refused are
	// words in content of a commit with an error: no cluster gets it.
	Confined, Refused []string
	// Removed is the add-on whose removal is approved at last; only then may anything of it go.
	Removed string
	// Gone are parts of the keys of objects that may go besides: others delete them, or their
	// cluster.
	Gone []string
}

// Account is what was counted in a history.
type Account struct {
	// Revisions that were judged.
	Revisions int
	// Reserved and Released are slots.
	Reserved, Released int
	// Orders that were given, and Answered those of them that have an answer.
	Orders, Answered int
	// Approvals that were given.
	Approvals int
	// Reports are the statuses that agents wrote to works, and Moves how often a cluster was lost or returned, or a
	// placement took one out or in again.
	Reports, Moves int
}

// GivenUp is the annotation with which the owner of a hand-made object says that it may change
// from now on.
const GivenUp = "faults/given-up"

// operator is the field manager of the operators.
const operator = "addonflow"

// Edited is the digest that a hand edit writes to a work. It is not a write of the operator.
const Edited = "edited"

// The keys of the kinds that are judged.
const (
	registry    = "/registry/"
	rolloutKeys = registry + "addonflow.io/addonrollouts/"
	orderKeys   = registry + "addonflow.io/addonorders/"
	approvals   = registry + "addonflow.io/addonapprovals/"
	revisions   = registry + "addonflow.io/addonrevisions/"
	workKeys    = registry + "work.open-cluster-management.io/manifestworks/"
	// Built-in kinds are stored without their group.
	bindingKeys = registry + "rolebindings/"

	clusterKeys    = registry + "cluster.open-cluster-management.io/managedclusters/"
	decisionKeys   = registry + "cluster.open-cluster-management.io/placementdecisions/"
	placementLabel = "cluster.open-cluster-management.io/placement"
)

// guarded are the kinds of which nothing may go without an approved removal.
var guarded = []string{
	registry + "addonflow.io/", registry + "work.open-cluster-management.io/",
	registry + "addon.open-cluster-management.io/", registry + "cluster.open-cluster-management.io/",
	bindingKeys, registry + "secrets/", registry + "configmaps/", registry + "namespaces/",
}

// judge folds a history.
type judge struct {
	Expectations
	objects  map[string]Object
	approved bool
	// reserved are the records of the newest ledger that an operator stored, by add-on and cluster. A status that
	// another writer restores reserves nothing, and takes back no reservation.
	reserved map[string]map[string]record
	verified map[string]map[string]time.Time // by add-on and cluster: revision -> when
	// latest is the newest content of a cluster's work, by add-on and cluster; settled: it was
	// verified since.
	latest  map[string]string
	settled map[string]bool
	// written is the revision at which a cluster's work got its newest content, and parked are clusters that were lost
	// after that, and parked: they count towards no limit, also when they return.
	written map[string]int64
	parked  map[string]bool
	// attempts are those in which the ledger gave a cluster its newest record.
	attempts map[string]float64
	// admissions are the Admitted records that were stored, by add-on and cluster.
	admissions map[string][]record
	// decided are the decisions that count, by their keys: one that is deleted counts on if its stage was admitted
	// before, which gated has.
	decided  map[string]decision
	gated    map[decision]bool
	original map[string]string
	// orphaning are the uids of objects that a user deleted: the hub deletes what they own.
	orphaning map[string]bool
	// declared is the revision at which an add-on's commits last began to declare content, and absent the last one at
	// which a cluster was not available, or not selected, by placement and cluster; "" is no placement.
	declared map[string]int64
	absent   map[string]int64
	account  Account
	broken   []string
}

// Judge checks every promise at every revision, and returns each that is broken.
func Judge(changes []hub.Change, e Expectations) (Account, []string) {
	j := &judge{
		Expectations: e, objects: map[string]Object{}, reserved: map[string]map[string]record{}, verified: map[string]map[string]time.Time{},
		latest: map[string]string{}, settled: map[string]bool{}, written: map[string]int64{}, parked: map[string]bool{}, attempts: map[string]float64{},
		admissions: map[string][]record{}, decided: map[string]decision{}, gated: map[decision]bool{}, original: map[string]string{}, orphaning: map[string]bool{},
		declared: map[string]int64{}, absent: map[string]int64{},
	}
	for _, c := range changes {
		j.change(c)
	}
	for addOn := range e.Stages {
		for cluster, r := range j.records(addOn) {
			if r.inFlight() {
				j.fail(0, "%s: the slot of %s is never released", addOn, cluster)
			}
		}
	}
	if j.account.Orders != j.account.Answered {
		j.fail(0, "%d orders given, %d answered", j.account.Orders, j.account.Answered)
	}
	return j.account, j.broken
}

func (j *judge) fail(revision int64, format string, args ...any) {
	j.broken = append(j.broken, fmt.Sprintf("revision %d: ", revision)+fmt.Sprintf(format, args...))
}

// change judges a write by all that was stored before it, and then keeps it.
func (j *judge) change(c hub.Change) {
	j.account.Revisions++
	content, err := decode(c.Value)
	if err != nil {
		j.fail(c.Revision, "%s: %v", c.Key, err)
		return
	}
	before, existed := j.objects[c.Key]
	j.deletion(c, before.Content, content)
	j.handMade(c, content)
	j.presence(c, before.Content, content)
	switch {
	case c.Value == nil && strings.HasPrefix(c.Key, approvals):
		if d := j.decided[c.Key]; !j.gated[d.asked()] {
			delete(j.decided, c.Key)
		}
	case c.Value == nil:
	case strings.HasPrefix(c.Key, workKeys):
		j.work(c, before.Content, content)
	case strings.HasPrefix(c.Key, rolloutKeys):
		j.rollout(c, before.Content, content)
	case strings.HasPrefix(c.Key, orderKeys):
		j.order(c, before.Content, content)
	case strings.HasPrefix(c.Key, approvals):
		j.approval(c, before.Content, content)
	case strings.HasPrefix(c.Key, bindingKeys):
		j.binding(c, content)
	case strings.HasPrefix(c.Key, revisions) && existed:
		if !reflect.DeepEqual(before.Content["spec"], content["spec"]) {
			j.fail(c.Revision, "%s: the spec of a revision changes", c.Key)
		}
	}
	if c.Value == nil {
		delete(j.objects, c.Key)
	} else {
		j.objects[c.Key] = Object{c.Revision, content}
	}
	j.limits(c)
}

// deletion: nothing goes without an approval.
func (j *judge) deletion(c hub.Change, before, now map[string]any) {
	begins := c.Value != nil && text(before, "metadata", "deletionTimestamp") == "" && text(now, "metadata", "deletionTimestamp") != ""
	if c.Value != nil && !begins || !slices.ContainsFunc(guarded, func(prefix string) bool { return strings.HasPrefix(c.Key, prefix) }) {
		return
	}
	if text(get(before, "metadata", "annotations"), GivenUp) != "" {
		j.orphaning[text(before, "metadata", "uid")] = true
		return
	}
	if j.approved && addOnOf(before) == j.Removed || slices.ContainsFunc(ownersOf(before), func(uid string) bool { return j.orphaning[uid] }) ||
		slices.ContainsFunc(j.Gone, func(part string) bool { return strings.Contains(c.Key, part) }) {
		return
	}
	j.fail(c.Revision, "%s is deleted", c.Key)
}

// ownersOf are the uids of the owners of an object.
func ownersOf(o map[string]any) []string {
	var uids []string
	for _, reference := range list(o, "metadata", "ownerReferences") {
		uids = append(uids, text(reference, "uid"))
	}
	return uids
}

// addOnOf is the add-on that an object belongs to.
func addOnOf(o map[string]any) string {
	labels := get(o, "metadata", "labels")
	for _, key := range []string{"open-cluster-management.io/addon-name", "addonflow.io/add-on", "addon.open-cluster-management.io/addon-name"} {
		if name := text(labels, key); name != "" {
			return name
		}
	}
	return text(o, "metadata", "name")
}

// handMade: an object that a user made keeps everything but its status.
func (j *judge) handMade(c hub.Change, content map[string]any) {
	if !slices.Contains(j.HandMade, c.Key) {
		return
	}
	if c.Value == nil {
		j.fail(c.Revision, "hand-made %s is deleted", c.Key)
		return
	}
	own := map[string]any{"spec": content["spec"]}
	metadata, _ := content["metadata"].(map[string]any)
	if text(get(metadata, "annotations"), GivenUp) != "" {
		j.HandMade = slices.DeleteFunc(slices.Clone(j.HandMade), func(key string) bool { return key == c.Key })
		return
	}
	kept := maps.Clone(metadata)
	for _, name := range []string{"managedFields", "generation", "resourceVersion"} {
		delete(kept, name)
	}
	own["metadata"] = kept
	written, _ := json.Marshal(own) // it was read from JSON
	if first, known := j.original[c.Key]; known && first != string(written) {
		j.fail(c.Revision, "hand-made %s changes:\n    %s\n    %s", c.Key, first, written)
	}
	j.original[c.Key] = string(written)
}

// rollout: a ledger can be read, and slots are counted.
func (j *judge) rollout(c hub.Change, before, now map[string]any) {
	addOn := text(now, "metadata", "name")
	if addOn == j.Removed && text(get(now, "metadata", "annotations"), "addonflow.io/approve-removal") != "" {
		j.approved = true
	}
	if digest := text(now, "spec", "target", "digest"); digest != text(before, "spec", "target", "digest") {
		j.declared[addOn+"/"+digest] = c.Revision
	}
	records, err := ledger(now)
	if err != nil {
		j.fail(c.Revision, "%s: the ledger cannot be read: %v", addOn, err)
		return
	}
	if !restored(before, now) {
		j.reserved[addOn] = records
	}
	old, err := ledger(before)
	if err != nil {
		return // reported with the version before
	}
	for cluster, r := range records {
		if r.inFlight() && !old[cluster].inFlight() {
			j.account.Reserved++
		}
		if r.revision != old[cluster].revision || r.inFlight() && !old[cluster].inFlight() {
			j.attempts[addOn+"/"+cluster], _ = get(now, "status", "attempt").(float64)
		}
		if of := addOn + "/" + cluster; r.state == "Parked" && j.absent["/"+cluster] >= max(j.written[of], 1) {
			j.parked[of] = true
		}
		// An older status that is written back brings admissions that were judged before.
		if of := addOn + "/" + cluster; r.state == "Admitted" && !slices.Contains(j.admissions[of], r) {
			j.admissions[of] = append(j.admissions[of], r)
			if was := old[cluster]; was.revision != r.revision || was.state != r.state {
				j.admission(c, addOn, cluster, r)
				// The write is refused if it was planned without the annotation.
				if suspended(before) && suspended(now) && !restored(before, now) {
					j.fail(c.Revision, "%s: %s is admitted while the rollout is suspended", addOn, cluster)
				}
			}
		}
	}
	for cluster, r := range old {
		if r.inFlight() && !records[cluster].inFlight() {
			j.account.Released++
		}
	}
}

// admission: content that was taken back is given to no cluster, and content that never succeeded passes the approval of
// its stage first.
func (j *judge) admission(c hub.Change, addOn, cluster string, r record) {
	if j.quarantined(r.revision) {
		j.fail(c.Revision, "%s: %s is admitted to %s, which is quarantined", addOn, cluster, r.revision)
	}
	for _, s := range j.Stages[addOn] {
		if s.Approval == "" || s.Name != r.stage || j.proven(r.revision) {
			continue
		}
		if !j.isApproved(addOn, cluster, r.revision, s) {
			j.fail(c.Revision, "%s: %s is admitted to unproven %s in stage %s, which is not approved", addOn, cluster, r.revision, s.Name)
		}
		j.gated[j.demanded(addOn, cluster, r.revision, s)] = true
	}
}

// suspended reports whether a user suspended a rollout.
func suspended(rollout map[string]any) bool {
	return text(get(rollout, "metadata", "annotations"), "addonflow.io/suspend") == "true"
}

// restored reports whether another writer than an operator stored the status, or removed it. The entry of an earlier one
// stays, with its time and fewer fields; a removal leaves no entry.
func restored(before, now map[string]any) bool {
	if before["status"] != nil && now["status"] == nil {
		return true
	}
	writer := func(m any) string { return text(m, "subresource") + " " + text(m, "manager") + " " + text(m, "time") }
	known := list(before, "metadata", "managedFields")
	return slices.ContainsFunc(list(now, "metadata", "managedFields"), func(m any) bool {
		return text(m, "subresource") == "status" && text(m, "manager") != operator &&
			!slices.ContainsFunc(known, func(was any) bool { return writer(was) == writer(m) })
	})
}

// order: what was ordered stays, and so does the answer.
func (j *judge) order(c hub.Change, before, now map[string]any) {
	if before == nil {
		j.account.Orders++
	} else if !reflect.DeepEqual(before["spec"], now["spec"]) {
		j.fail(c.Revision, "%s: an order changes", c.Key)
	}
	answer := text(now, "status", "state")
	switch text(before, "status", "state") {
	case answer:
	case "":
		j.account.Answered++
	default:
		j.fail(c.Revision, "%s: the answer of an order changes", c.Key)
	}
}

// approval: a decision never changes.
func (j *judge) approval(c hub.Change, before, now map[string]any) {
	if before == nil {
		j.account.Approvals++
		spec := get(now, "spec")
		attempt, _ := get(spec, "attempt").(float64)
		j.decided[c.Key] = decision{
			rolloutUID: text(spec, "rolloutUID"), addOn: text(spec, "rollout"), stage: text(spec, "stage"), gate: text(spec, "gate"),
			digest: text(spec, "digest"), attempt: attempt, says: text(spec, "decision"),
		}
	} else if !reflect.DeepEqual(before["spec"], now["spec"]) {
		j.fail(c.Revision, "%s: an approval changes", c.Key)
	}
}

// binding: an agent gets rights in the namespace of its cluster, and no other agent does.
func (j *judge) binding(c hub.Change, now map[string]any) {
	labels := get(now, "metadata", "labels")
	addOn := text(labels, "open-cluster-management.io/addon-name")
	if text(labels, "addonflow.io/managed-by") == "" || addOn == "" {
		return
	}
	want := "system:open-cluster-management:cluster:" + text(now, "metadata", "namespace") + ":addon:" + addOn
	for _, subject := range list(now, "subjects") {
		if got := text(subject, "kind") + " " + text(subject, "name"); got != "Group "+want {
			j.fail(c.Revision, "%s: grants rights to %s, want Group %s", c.Key, got, want)
		}
	}
}

// decision is what a user decided: says is Approve or Reject, about a gate of a rollout, its content and its attempt.
type decision struct {
	rolloutUID, addOn, stage, gate, digest string
	attempt                                float64
	says                                   string
}

// asked is the decision without what it says.
func (d decision) asked() decision {
	d.says = ""
	return d
}

// demanded is the decision that a stage asks for, in the attempt in which the cluster was admitted.
func (j *judge) demanded(addOn, cluster, digest string, s Stage) decision {
	d := decision{addOn: addOn, stage: s.Name, gate: s.Approval, digest: digest, attempt: j.attempts[addOn+"/"+cluster]}
	for key, o := range j.objects {
		if strings.HasPrefix(key, rolloutKeys) && strings.HasSuffix(key, "/"+addOn) {
			d.rolloutUID = text(o.Content, "metadata", "uid")
		}
	}
	return d
}

// isApproved reports whether a user approved content for a stage, in the attempt in which the
// cluster was admitted, and no user rejected it.
func (j *judge) isApproved(addOn, cluster, digest string, s Stage) bool {
	asked, approved := j.demanded(addOn, cluster, digest, s), false
	for _, d := range j.decided {
		if d.asked() != asked {
			continue
		}
		if d.says != "Approve" {
			return false
		}
		approved = true
	}
	return approved
}

// quarantined reports whether content was taken back.
func (j *judge) quarantined(digest string) bool {
	for key, o := range j.objects {
		if strings.HasPrefix(key, revisions) && text(o.Content, "spec", "digest") == digest {
			return text(get(o.Content, "metadata", "annotations"), "addonflow.io/quarantined") != ""
		}
	}
	return false
}

// records of an add-on's stored ledger, by cluster.
func (j *judge) records(addOn string) map[string]record {
	for key, o := range j.objects {
		if strings.HasPrefix(key, rolloutKeys) && strings.HasSuffix(key, "/"+addOn) {
			records, err := ledger(o.Content)
			if err != nil {
				return nil // reported when it was stored
			}
			return records
		}
	}
	return nil
}

// content is what a work says it has.
func content(work map[string]any) (addOn, cluster, revision, digest string) {
	metadata := get(work, "metadata")
	annotations := get(metadata, "annotations")
	return text(get(metadata, "labels"), "open-cluster-management.io/addon-name"), text(metadata, "namespace"),
		text(annotations, "addonflow.io/revision"), text(annotations, "addonflow.io/digest")
}

// work: content is reserved before it is written, and no stage gets content that the stages
// before it have not proven.
func (j *judge) work(c hub.Change, before, now map[string]any) {
	addOn, cluster, revision, digest := content(now)
	stages := j.Stages[addOn]
	if stages == nil || digest == "" || digest == Edited {
		return
	}
	_, _, _, had := content(before)
	key := addOn + "/" + cluster
	if before != nil && !reflect.DeepEqual(before["status"], now["status"]) {
		j.account.Reports++
	}
	if had != digest {
		r, reserved := j.reserved[addOn][cluster]
		if !reserved || r.revision != revision {
			j.fail(c.Revision, "%s: %s gets %s before it is reserved: %+v", addOn, cluster, revision, r)
		} else if !r.inFlight() && j.latest[key] != digest { // with the latest content it is a repair
			j.fail(c.Revision, "%s: %s gets %s without a slot: %+v", addOn, cluster, revision, r)
		}
		if j.latest[key] != digest {
			j.unproven(c, addOn, cluster, revision, writtenAt(now, ""))
			j.confined(c, addOn, cluster, now)
			j.settled[key], j.parked[key] = false, false
			j.written[key] = c.Revision
		}
		j.latest[key] = digest
	}
	if verified(now, digest) {
		j.settled[key] = true
		if j.verified[key] == nil {
			j.verified[key] = map[string]time.Time{}
		}
		if _, known := j.verified[key][revision]; !known {
			j.verified[key][revision] = writtenAt(now, "status")
		}
	}
}

// unproven: before a cluster gets content that never succeeded here, every cluster of the stages
// before has verified it, and soaked.
func (j *judge) unproven(c hub.Change, addOn, cluster, revision string, at time.Time) {
	if j.proven(revision) {
		return
	}
	for _, s := range j.Stages[addOn] {
		if slices.Contains(s.Clusters, cluster) {
			if s.Approval != "" && !j.isApproved(addOn, cluster, revision, s) {
				j.fail(c.Revision, "%s: %s of stage %s gets unproven %s, which is not approved", addOn, cluster, s.Name, revision)
			}
			return
		}
		j.complete(c, addOn, cluster, revision, s, at)
	}
}

// complete: every cluster of an earlier stage has verified the content and soaked. One that was absent since the content
// was declared may be passed by, if another one of the stage has. A stage whose clusters were all absent, and never had
// a record of the content, is empty: it passes in the first install only.
func (j *judge) complete(c hub.Change, addOn, cluster, revision string, s Stage, at time.Time) {
	proven, empty := 0, !j.succeeded(addOn)
	for _, earlier := range s.Clusters {
		empty = empty && j.reserved[addOn][earlier].revision != revision
		since, ok := j.verified[addOn+"/"+earlier][revision]
		switch {
		case ok:
			proven++
		case !j.wasAbsent(s, earlier, j.declared[addOn+"/"+revision]):
			j.fail(c.Revision, "%s: %s gets unproven %s before %s of stage %s has verified it", addOn, cluster, revision, earlier, s.Name)
			return
		}
		if ok && at.Sub(since) < s.Soak-time.Second { // both are times of the server, rounded down to a second
			j.fail(c.Revision, "%s: %s gets unproven %s %s after %s of stage %s verified it; the soak is %s",
				addOn, cluster, revision, at.Sub(since), earlier, s.Name, s.Soak)
		}
	}
	if proven == 0 && !empty {
		j.fail(c.Revision, "%s: %s gets unproven %s, which no cluster of stage %s has verified", addOn, cluster, revision, s.Name)
	}
}

// presence notes which clusters are not available, and which of them a placement does not select any more.
func (j *judge) presence(c hub.Change, before, now map[string]any) {
	if cluster, of := strings.CutPrefix(c.Key, clusterKeys); of {
		j.isPresent("/"+cluster, c.Revision, available(now), available(before))
	}
	if !strings.HasPrefix(c.Key, decisionKeys) {
		return
	}
	of := text(before, "metadata", "namespace") + "/" + text(get(before, "metadata", "labels"), placementLabel)
	if now != nil {
		of = text(now, "metadata", "namespace") + "/" + text(get(now, "metadata", "labels"), placementLabel)
	}
	selected := func(o map[string]any) map[string]bool {
		names := map[string]bool{}
		for _, d := range list(o, "status", "decisions") {
			names[text(d, "clusterName")] = true
		}
		return names
	}
	was, is := selected(before), selected(now)
	for cluster := range was {
		j.isPresent(of+"/"+cluster, c.Revision, is[cluster], true)
	}
	for cluster := range is {
		j.isPresent(of+"/"+cluster, c.Revision, true, was[cluster])
	}
}

// isPresent notes whether a cluster is present, and was.
func (j *judge) isPresent(key string, revision int64, is, was bool) {
	_, known := j.absent[key]
	switch {
	case was && !is:
		j.absent[key] = forever
		j.account.Moves++
	case is && !was && known:
		j.absent[key] = revision
		j.account.Moves++
	}
}

// forever is the revision until which a cluster is absent that has not returned.
const forever = math.MaxInt64

// available reports whether a ManagedCluster is.
func available(cluster map[string]any) bool {
	return slices.ContainsFunc(list(cluster, "status", "conditions"), func(c any) bool {
		return text(c, "type") == "ManagedClusterConditionAvailable" && text(c, "status") == "True"
	})
}

// wasAbsent reports whether a cluster of a stage was absent at or after a revision.
func (j *judge) wasAbsent(s Stage, cluster string, since int64) bool {
	return slices.ContainsFunc(append([]string{""}, s.Placements...), func(of string) bool { return j.absent[of+"/"+cluster] >= max(since, 1) })
}

// succeeded reports whether a rollout of the add-on ended Succeeded here.
func (j *judge) succeeded(addOn string) bool {
	for key, o := range j.objects {
		if strings.HasPrefix(key, revisions) && addOnOf(o.Content) == addOn && text(get(o.Content, "metadata", "annotations"), "addonflow.io/succeeded-at") != "" {
			return true
		}
	}
	return false
}

// confined: content that fails in the first stage reaches no other.
func (j *judge) confined(c hub.Change, addOn, cluster string, work map[string]any) {
	spec, _ := json.Marshal(work["spec"]) // it was read from JSON
	for _, word := range j.Refused {
		if strings.Contains(string(spec), word) {
			j.fail(c.Revision, "%s: %s gets content of a commit with an error: %s", addOn, cluster, word)
		}
	}
	if slices.Contains(j.Stages[addOn][0].Clusters, cluster) {
		return
	}
	for _, word := range j.Confined {
		if strings.Contains(string(spec), word) {
			j.fail(c.Revision, "%s: %s gets content that failed in the first stage: %s", addOn, cluster, word)
		}
	}
}

// proven reports whether a rollout of the content ended Succeeded here.
func (j *judge) proven(digest string) bool {
	for key, o := range j.objects {
		if strings.HasPrefix(key, revisions) && text(o.Content, "spec", "digest") == digest {
			return text(get(o.Content, "metadata", "annotations"), "addonflow.io/succeeded-at") != ""
		}
	}
	return false
}

// writtenAt is the newest time at which a writer changed an object, by the server's clock.
func writtenAt(o map[string]any, subresource string) time.Time {
	var newest time.Time
	for _, fields := range list(o, "metadata", "managedFields") {
		at, err := time.Parse(time.RFC3339, text(fields, "time"))
		if err == nil && text(fields, "subresource") == subresource && at.After(newest) {
			newest = at
		}
	}
	return newest
}

// verified reports whether the agent's feedback shows that the content runs: every manifest
// with feedback echoes the digest, and all replicas are of it and ready.
func verified(work map[string]any, digest string) bool {
	found := false
	for _, manifest := range list(work, "status", "resourceStatus", "manifests") {
		values := map[string]any{}
		for _, v := range list(manifest, "statusFeedback", "values") {
			value := get(v, "fieldValue")
			values[text(v, "name")] = get(value, strings.ToLower(text(value, "type")))
		}
		if len(values) == 0 {
			continue
		}
		found = true
		if !echoed(values, digest) || !ready(values) {
			return false
		}
	}
	return found
}

func echoed(values map[string]any, digest string) bool {
	for _, v := range values {
		if v == digest {
			return true
		}
	}
	return false
}

// ready reports whether the counts of a Deployment are all those that its spec asks for, and
// the agent has seen its newest generation.
func ready(values map[string]any) bool {
	count := func(name string) float64 {
		n, _ := values["addonflow."+name].(float64)
		return n
	}
	want := count("desired")
	return count("total") == want && count("updated") == want && count("ready") == want && count("available") == want &&
		count("generation") == count("observedGeneration")
}

// limits: no more clusters are in flight than the stage allows, by the ledger and by the works.
func (j *judge) limits(c hub.Change) {
	if !strings.HasPrefix(c.Key, rolloutKeys) && !strings.HasPrefix(c.Key, workKeys) {
		return
	}
	for addOn, stages := range j.Stages {
		records := j.reserved[addOn]
		for _, s := range stages {
			holding, moving := 0, 0
			for cluster, r := range records {
				if j.parked[addOn+"/"+cluster] {
					continue
				}
				if r.inFlight() && (s.Name == "" || r.stage == s.Name) {
					holding++
				}
				if slices.Contains(s.Clusters, cluster) && j.moves(addOn, cluster, r) {
					moving++
				}
			}
			if holding > s.Limit {
				j.fail(c.Revision, "%s: %d clusters of stage %q hold a slot; the limit is %d", addOn, holding, s.Name, s.Limit)
			}
			if moving > s.Limit {
				j.fail(c.Revision, "%s: the works of %d clusters of stage %q are not verified; the limit is %d", addOn, moving, s.Name, s.Limit)
			}
		}
	}
}

// moves reports whether a cluster's work has content that the cluster neither runs nor failed
// with.
func (j *judge) moves(addOn, cluster string, r record) bool {
	for key, o := range j.objects {
		if !strings.HasPrefix(key, workKeys+cluster+"/") {
			continue
		}
		of, _, revision, digest := content(o.Content)
		if of != addOn || digest == "" || j.settled[addOn+"/"+cluster] {
			continue
		}
		return r.revision != revision || r.state != "Failed" && r.state != "TimedOut"
	}
	return false
}
