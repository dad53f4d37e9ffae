package addonsource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

const (
	oldDigest = "v1:sha256:1111111111111111111111111111111111111111111111111111111111111111"
	newDigest = "v1:sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// fleetInput is the input for a commit with the given add-ons and objects.
func fleetInput(addOns []load.AddOn, objects ...*unstructured.Unstructured) planInput {
	return planInput{
		source: "team/fleet", namespace: "team", head: "main@sha1:bbb", commitSHA: "bbb", mode: Coexist,
		commit: load.Commit{AddOns: addOns, Objects: objects}, seen: newObservation(),
		written: func(objectKey) written { return written{} },
	}
}

// stored returns an object as this source applied it.
func stored(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	return liveForm(parse(t, manifest), "team/fleet", Coexist)
}

func ownRollout(spec v1alpha1.AddOnRolloutSpec) *v1alpha1.AddOnRollout {
	return &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello", Annotations: map[string]string{v1alpha1.SourceAnnotation: "team/fleet"}},
		Spec:       spec,
	}
}

func TestTargetOf(t *testing.T) {
	running := v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Digest: oldDigest, Commit: "main@sha1:aaa"}}
	leavingSpec := running
	leavingSpec.Removal = &v1alpha1.Removal{Commit: "ccc"}
	edited := v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Digest: oldDigest, Commit: "main@sha1:fff"}}
	status := func(commit string) []v1alpha1.SourcedAddOn {
		return []v1alpha1.SourcedAddOn{{Name: "hello", Digest: oldDigest, Commit: commit}}
	}
	cases := map[string]struct {
		reason    string
		digest    string
		rollout   *v1alpha1.AddOnRollout
		status    []v1alpha1.SourcedAddOn
		restoring bool
		want      string
	}{
		"First": {"the head brings it", oldDigest, nil, nil, false, "main@sha1:bbb"},
		"EditedBeforeTheHead": {
			"a later commit does not keep a commit that was written by hand", oldDigest, ownRollout(edited), status("main@sha1:aaa"), false, "main@sha1:aaa",
		},
		"EditedWithoutStatus": {"the revision has the commit, too", oldDigest, ownRollout(edited), nil, false, "main@sha1:aaa"},
		"Equal":               {"equal content keeps its commit", oldDigest, ownRollout(running), status("main@sha1:ccc"), false, "main@sha1:aaa"},
		"Changed":             {"new content has the head", newDigest, ownRollout(running), nil, false, "main@sha1:bbb"},
		"Deleted":             {"the status remembers a deleted rollout", oldDigest, nil, status("main@sha1:aaa"), false, "main@sha1:aaa"},
		"Edited":              {"the status remembers the commit that was changed by hand", oldDigest, ownRollout(running), status("main@sha1:ccc"), true, "main@sha1:ccc"},
		"Lost":                {"without a status the rollout has the commit", oldDigest, ownRollout(running), nil, true, "main@sha1:aaa"},
		"Back":                {"an add-on that comes back is brought anew", oldDigest, ownRollout(leavingSpec), nil, false, "main@sha1:bbb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetInput(nil)
			in.addOns, in.restoring = c.status, c.restoring
			in.seen.introduced = map[string][]string{render.RevisionName("hello", oldDigest): {"main@sha1:aaa"}}
			if c.rollout != nil {
				in.seen.rollouts["hello"] = c.rollout
			}
			got := targetOf(load.AddOn{Name: "hello", Digest: c.digest}, in)
			want := v1alpha1.Target{Source: "fleet", Revision: render.RevisionName("hello", c.digest), Digest: c.digest, Commit: c.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestAuthorOfContent_IsThatOfTheCommitThatIntroducedIt: the author of content stays that of the commit that introduced it.
func TestAuthorOfContent_IsThatOfTheCommitThatIntroducedIt(t *testing.T) {
	in := fleetInput(nil)
	in.author, in.subject = "Bob", "hello: v2"
	in.addOns = []v1alpha1.SourcedAddOn{{Name: "hello", Commit: "main@sha1:aaa", Author: "Ana", Subject: "hello: v1"}}
	for commit, want := range map[string][2]string{
		in.head:         {"Bob", "hello: v2"},
		"main@sha1:aaa": {"Ana", "hello: v1"},
		"main@sha1:ccc": {},
	} {
		if author, subject := saidOf(commit, in); author != want[0] || subject != want[1] {
			t.Errorf("%s: %q by %q, want %q", commit, subject, author, want)
		}
	}
}

const (
	placement = `{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {namespace: team, name: all}, spec: {}}`
	namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`
)

func TestPruning(t *testing.T) {
	foreign := stored(t, placement)
	foreign.SetAnnotations(map[string]string{v1alpha1.SourceAnnotation: "other/source"})
	unlabelled := stored(t, placement)
	unlabelled.SetLabels(nil)
	cases := map[string]struct {
		reason   string
		live     *unstructured.Unstructured
		declared bool
		approved approval
		leaving  *unstructured.Unstructured
		pruned   int
		kept     int
		left     int
	}{
		"Declared":    {"what is declared stays", stored(t, placement), true, approvedByPrune, nil, 0, 0, 1},
		"Approved":    {"what left goes", stored(t, placement), false, approvedByPrune, nil, 1, 0, 0},
		"NotApproved": {"without approval it is kept and reported", stored(t, placement), false, notApproved, nil, 0, 1, 1},
		"Foreign":     {"what another source marked is not ours to delete", foreign, false, approvedByPrune, nil, 0, 0, 0},
		"Unlabelled":  {"both marks are needed", unlabelled, false, approvedByPrune, nil, 0, 0, 0},
		"Namespace":   {"a Namespace holds more than its declaration", stored(t, namespace), false, approvedByPrune, nil, 0, 1, 1},
		"Removing":    {"nothing goes while an add-on is being removed", stored(t, placement), false, approvedByPrune, stored(t, strippedAddOn), 0, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetInput(nil)
			in.approved = c.approved
			if c.declared {
				in.commit.Objects = []*unstructured.Unstructured{parse(t, placement)}
			}
			in.inventory = []v1alpha1.ObjectReference{referenceTo(c.live)}
			in.seen.live[keyOf(c.live)] = c.live
			if c.leaving != nil {
				in.seen.live[keyOf(c.leaving)] = c.leaving
				in.seen.rollouts["hello"] = ownRollout(v1alpha1.AddOnRolloutSpec{})
			}
			got, err := newPlan(in)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.pruned) != c.pruned || len(got.kept) != c.kept || len(got.inventory) != c.left {
				t.Errorf("%s: pruned %d, kept %d, inventory %d, want %d, %d, %d",
					c.reason, len(got.pruned), len(got.kept), len(got.inventory), c.pruned, c.kept, c.left)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	theirs := stored(t, strippedAddOn)
	theirs.SetAnnotations(with(theirs.GetAnnotations(), v1alpha1.SourceAnnotation, "other/source"))
	again := owning(parse(t, claimedAddOn), "gitops", `{"f:spec":{"f:supportedConfigs":{"k:{\"group\":\"addon.open-cluster-management.io\",\"resource\":\"addontemplates\"}":{".":{}}}}}`)
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		change func(*planInput)
		want   string
	}{
		"Free":      {"it has no owner", nil, func(*planInput) {}, ""},
		"Ours":      {"we have it", stored(t, strippedAddOn), func(*planInput) {}, ""},
		"Theirs":    {"the first owner wins", theirs, func(in *planInput) { in.seen.sources["other/source"] = true }, "source other/source"},
		"Orphaned":  {"a deleted source owns nothing", theirs, func(in *planInput) { in.seen.sources["other/source"] = false }, ""},
		"Templates": {"a foreign writer is named", again, func(*planInput) {}, "field manager gitops"},
		"Forced":    {"the user decided", again, func(in *planInput) { in.forced = true }, ""},
		"Replace":   {"templates are what is declared", again, func(in *planInput) { in.mode = Replace }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetInput(nil, parse(t, foreignAddOn))
			in.seen.live[addOnKey("hello")] = c.live
			c.change(&in)
			got, err := newPlan(in)
			if err != nil {
				t.Fatal(err)
			}
			owner := ""
			if len(got.conflicts) > 0 {
				owner = got.conflicts[0].owner
			}
			if owner != c.want {
				t.Errorf("%s: owner %q, want %q", c.reason, owner, c.want)
			}
		})
	}
}

func TestLeavingDone(t *testing.T) {
	asked := v1alpha1.AddOnRolloutSpec{Removal: &v1alpha1.Removal{Commit: "ccc"}}
	rollout := func(phase v1alpha1.Phase, observed int64, spec v1alpha1.AddOnRolloutSpec) *v1alpha1.AddOnRollout {
		r := ownRollout(spec)
		r.Generation, r.Status.Phase, r.Status.ObservedGeneration = 2, phase, observed
		return r
	}
	cases := map[string]struct {
		reason string
		in     leaving
		want   bool
	}{
		"Through":  {"removed from the last cluster", leaving{rollout: rollout(v1alpha1.PhaseRemoved, 2, asked)}, true},
		"Running":  {"not removed yet", leaving{rollout: rollout(v1alpha1.PhaseRemoving, 2, asked)}, false},
		"Old":      {"a verdict about an older spec", leaving{rollout: rollout(v1alpha1.PhaseRemoved, 1, asked)}, false},
		"NotAsked": {"it was not requested", leaving{rollout: rollout(v1alpha1.PhaseRemoved, 2, v1alpha1.AddOnRolloutSpec{})}, false},
		"HandMade": {"hand-made ones remain", leaving{rollout: rollout(v1alpha1.PhaseRemoved, 2, asked), installation: installation{total: 1, handMade: []string{"c1"}}}, false},
		"Deleted":  {"the rollout is gone already", leaving{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.in.done(); got != c.want {
				t.Errorf("%s: got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

// TestRemovalKeepsItsCommit: an approval stays valid when later commits arrive.
func TestRemovalKeepsItsCommit(t *testing.T) {
	first := removalOf(v1alpha1.AddOnRolloutSpec{}, planInput{commitSHA: "aaa"})
	if first.Commit != "aaa" || first.Approved {
		t.Errorf("got %+v", first)
	}
	second := removalOf(v1alpha1.AddOnRolloutSpec{Removal: &first}, planInput{commitSHA: "bbb", approved: approvedByPrune})
	if second.Commit != "aaa" || !second.Approved {
		t.Errorf("got %+v, want the first commit, approved", second)
	}
}

// TestPlanIsPure plans twice from the same input.
func TestPlanIsPure(t *testing.T) {
	in := fleetInput([]load.AddOn{{Name: "hello", Digest: newDigest}}, parse(t, namespace), parse(t, placement), parse(t, foreignAddOn))
	in.inventory = []v1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "team", Name: "old"}}
	first, err := newPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	compare := cmp.AllowUnexported(plan{}, revision{}, change{}, takeOver{}, leaving{}, installation{}, conflict{})
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Position" }, cmp.Ignore())
	if diff := cmp.Diff(first, second, compare, ignore); diff != "" {
		t.Errorf("two plans from one input:\n%s", diff)
	}
	if len(first.namespaces) != 1 || len(first.objects) != 1 || len(first.addOnObjects) != 1 || len(first.rollouts) != 1 || len(first.revisions) != 1 {
		t.Errorf("planned %d namespaces, %d objects, %d add-ons, %d rollouts, %d revisions, want one each",
			len(first.namespaces), len(first.objects), len(first.addOnObjects), len(first.rollouts), len(first.revisions))
	}
}

// TestInventoryOfAnUnservedKindIsKept: objects of a kind that the hub does not serve for a
// moment are pruned when it serves the kind again.
func TestInventoryOfAnUnservedKindIsKept(t *testing.T) {
	live := stored(t, placement)
	in := fleetInput(nil)
	in.approved = approvedByPrune
	in.inventory = []v1alpha1.ObjectReference{referenceTo(live)}
	in.seen.unserved[keyOf(live)] = true
	got, err := newPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	want := "left Git; checked again once the hub serves their kinds: Placement/team/all"
	if notes := got.notes(); len(got.inventory) != 1 || len(notes) != 1 || notes[0] != want {
		t.Errorf("inventory %v, notes %q, want %q", got.inventory, notes, want)
	}
	in.seen.unserved, in.inventory = nil, got.inventory
	in.seen.live[keyOf(live)] = live
	if got, err = newPlan(in); err != nil || len(got.pruned) != 1 || len(got.inventory) != 0 {
		t.Errorf("served again: pruned %v, inventory %v, error %v", got.pruned, got.inventory, err)
	}
}

// TestDependenciesGetTheirTargetFirst: an add-on whose target is written before that of its
// dependency would be installed beside the dependency's earlier content.
func TestDependenciesGetTheirTargetFirst(t *testing.T) {
	on := func(name string, needs ...string) load.AddOn {
		spec := &v1alpha1.AddOnRolloutSpec{}
		for _, n := range needs {
			spec.DependsOn = append(spec.DependsOn, v1alpha1.Dependency{AddOn: n})
		}
		return load.AddOn{Name: name, Digest: newDigest, Rollout: spec}
	}
	todo, err := newPlan(fleetInput([]load.AddOn{on("agent", "mesh", "elsewhere"), on("hello"), on("mesh", "zone"), on("zone")}))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range todo.rollouts {
		order = append(order, c.desired.GetName())
	}
	if want := []string{"hello", "zone", "mesh", "agent"}; !slices.Equal(order, want) {
		t.Errorf("written in the order %v, want %v", order, want)
	}
}

// With --default-canary, the rollout of an add-on without a declared pace says so.
func TestDefaultCanary_IsForAddOnsWithoutAPace(t *testing.T) {
	at := func(string, string) (string, int) { return "addons/addon.yaml", 1 }
	staged := load.AddOn{Name: "staged", Digest: newDigest, Position: at, Rollout: &v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary"}}}}
	in := fleetInput([]load.AddOn{{Name: "paced", Digest: newDigest, Position: at, Paced: true}, {Name: "plain", Digest: newDigest, Rollout: &v1alpha1.AddOnRolloutSpec{}}, staged})
	for _, in.defaultCanary = range []bool{false, true} {
		todo, err := newPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range todo.rollouts {
			got, _, err := unstructured.NestedBool(c.desired.Object, "spec", "install", "defaultCanary")
			if want := in.defaultCanary && c.desired.GetName() == "plain"; err != nil || got != want {
				t.Errorf("%s with the flag %t: got %t, %v", c.desired.GetName(), in.defaultCanary, got, err)
			}
		}
	}
}

// TestRolloutNamesTheLastCommitOfWhatItReplaces: a commit that changes no content of the add-on may change its placements
// or its pace. To go back to the content is to go back to the last commit that had it, and not to the first.
func TestRolloutNamesTheLastCommitOfWhatItReplaces(t *testing.T) {
	before := ownRollout(v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Revision: "hello-old", Digest: oldDigest, Commit: "main@sha1:aaa"}})
	before.Annotations[v1alpha1.LastCommitsAnnotation] = "hello-older=main@sha1:111 hello-old=main@sha1:222"
	sourced := v1alpha1.SourcedAddOn{Name: "hello", Digest: oldDigest, Commit: "main@sha1:aaa"}
	for name, c := range map[string]struct {
		digest  string
		status  []v1alpha1.SourcedAddOn
		applied string
		want    string
	}{
		"OtherContent": {newDigest, []v1alpha1.SourcedAddOn{sourced}, "main@sha1:bbb", "hello-old=main@sha1:bbb hello-older=main@sha1:111"},
		"SameContent":  {oldDigest, []v1alpha1.SourcedAddOn{sourced}, "main@sha1:bbb", "hello-older=main@sha1:111 hello-old=main@sha1:222"},
		"StatusIsLost": {newDigest, nil, "", "hello-old=main@sha1:aaa hello-older=main@sha1:111"},
		"StatusIsOlderThanTheTarget": {
			newDigest,
			[]v1alpha1.SourcedAddOn{{Name: "hello", Digest: "sha256:older", Commit: "main@sha1:111"}},
			"main@sha1:111",
			"hello-old=main@sha1:aaa hello-older=main@sha1:111",
		},
		"StatusIsOfTheSameContentEarlier": {
			newDigest,
			[]v1alpha1.SourcedAddOn{{Name: "hello", Digest: oldDigest, Commit: "main@sha1:000"}},
			"main@sha1:000",
			"hello-old=main@sha1:aaa hello-older=main@sha1:111",
		},
	} {
		in := fleetInput([]load.AddOn{{Name: "hello", Digest: c.digest}})
		in.seen.rollouts["hello"], in.addOns, in.applied = before, c.status, c.applied
		if got := lastCommits(in.commit.AddOns[0], in); got != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := v1alpha1.LastCommit(before.Annotations, *before.Spec.Target); got != "main@sha1:222" {
		t.Errorf("got %s", got)
	}
	if got := v1alpha1.LastCommit(nil, *before.Spec.Target); got != "main@sha1:aaa" {
		t.Errorf("nothing is known but the commit that introduced the content: got %s", got)
	}
}

// TestRolloutNamesWhereItsPaceIsDeclared: a rollout that judges its pace can name file and line at once.
func TestRolloutNamesWhereItsPaceIsDeclared(t *testing.T) {
	at := func(kind, _ string) (string, int) { return "addons/" + kind + ".yaml", 7 }
	staged := &v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{{Name: "canary"}}}
	todo, err := newPlan(fleetInput([]load.AddOn{
		{Name: "paced", Digest: newDigest, Position: at, Paced: true},
		{Name: "plain", Digest: newDigest, Position: at},
		{Name: "staged", Digest: newDigest, Position: at, Rollout: staged},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range todo.rollouts {
		a := c.desired.GetAnnotations()
		got[c.desired.GetName()] = a[v1alpha1.PacePlaceAnnotation] + " " + a[v1alpha1.PaceObjectAnnotation]
	}
	want := map[string]string{
		"paced":  "addons/ClusterManagementAddOn.yaml:7 ClusterManagementAddOn/paced: spec.installStrategy.placements",
		"plain":  " ",
		"staged": "addons/AddOnRollout.yaml:7 AddOnRollout/staged: spec.stages",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
