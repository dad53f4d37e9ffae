package addonsource

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	foreignAddOn = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: hello},
		spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello}}, {group: addon.open-cluster-management.io, resource: addondeploymentconfigs}],
		installStrategy: {type: Placements, placements: [{namespace: default, name: all}]}}}`
	fencedAddOn = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn,
		metadata: {name: hello, annotations: {addon.open-cluster-management.io/lifecycle: addonflow}},
		spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates}], installStrategy: {type: Manual}}}`
	placingAddOn = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn,
		metadata: {name: hello, annotations: {addon.open-cluster-management.io/lifecycle: addonflow}},
		spec: {installStrategy: {type: Placements, placements: []}}}`
	strippedAddOn = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn,
		metadata: {name: hello, annotations: {addon.open-cluster-management.io/lifecycle: addonflow}},
		spec: {installStrategy: {type: Manual}}}`
	claimedAddOn = `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn,
		metadata: {name: hello, annotations: {addon.open-cluster-management.io/lifecycle: addonflow, addonflow.io/source: team/fleet}},
		spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addontemplates}], installStrategy: {type: Manual}}}`
)

func TestNextTakeOver(t *testing.T) {
	hashed := installation{total: 1, hashed: []addonv1alpha1.ManagedClusterAddOn{{}}}
	cases := map[string]struct {
		reason    string
		live      string
		in        planInput
		installed installation
		want      takeOverStep
	}{
		"Absent":       {"it does not exist", "", planInput{mode: Coexist}, installation{}, takenOver},
		"AbsentHashed": {"OCM's template manager outlives the object", "", planInput{mode: Coexist}, hashed, clearHashes},
		"Foreign":      {"the annotation comes first", foreignAddOn, planInput{mode: Coexist}, hashed, fenceOff},
		"Fenced":       {"then the templates", fencedAddOn, planInput{mode: Coexist}, hashed, stripTemplates},
		"Placing":      {"and the placements", placingAddOn, planInput{mode: Coexist}, hashed, stripTemplates},
		"Stripped":     {"then the hashes", strippedAddOn, planInput{mode: Coexist}, hashed, clearHashes},
		"Cleared":      {"read back, nothing is left", strippedAddOn, planInput{mode: Coexist}, installation{total: 1}, takenOver},
		"Claimed":      {"a foreign entry in ours is a conflict, not a take-over", claimedAddOn, planInput{mode: Coexist}, hashed, takenOver},
		"Forced":       {"until the user forces it", claimedAddOn, planInput{mode: Coexist, forced: true}, hashed, stripTemplates},
		"Replace":      {"OCM's addon-manager does not run", foreignAddOn, planInput{mode: Replace}, hashed, takenOver},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var live *unstructured.Unstructured
			if c.live != "" {
				live = parse(t, c.live)
			}
			c.in.source = "team/fleet"
			if got := nextTakeOver(live, c.in, c.installed); got != c.want {
				t.Errorf("%s: got step %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

// TestStripRemovesTemplatesPlacementsAndOtherManagersOnly: templates, placements and other managers are removed, and nothing else.
func TestStripRemovesTemplatesPlacementsAndOtherManagersOnly(t *testing.T) {
	live := parse(t, foreignAddOn)
	live.SetAnnotations(map[string]string{v1alpha1.SourceAnnotation: "team/fleet"})
	live.SetResourceVersion("7")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:addOnMeta":{"f:displayName":{}}}}`)},
		{Manager: "addon-manager", Operation: "Update", Subresource: "status"},
	})
	before := live.DeepCopy()
	got, err := stripped(live)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
	if listsTemplates(got) || installsByPlacements(got) {
		t.Errorf("templates or placements are left: %v", got.Object["spec"])
	}
	if claimed(got, "team/fleet") {
		t.Error("still claimed: the hashes would not be cleared")
	}
	if len(supportedConfigs(got)) != 1 || got.GetResourceVersion() != "7" {
		t.Errorf("other configurations or the precondition are lost: %v", got.Object)
	}
	entries := got.GetManagedFields()
	if len(entries) != 2 || entries[0].Manager != "addon-manager" || entries[1].Manager != v1alpha1.FieldManager {
		t.Errorf("managers %v, want the status writer and AddonFlow", entries)
	}
}

func TestOwnedFields(t *testing.T) {
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		operation := metav1.ManagedFieldsOperationUpdate
		if manager == v1alpha1.FieldManager {
			operation = metav1.ManagedFieldsOperationApply
		}
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	status := metav1.ManagedFieldsEntry{Manager: "addon-manager", Operation: "Update", Subresource: "status"}
	const everything = `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:limits":{".":{},"f:cpu":{}}},"f:status":{"f:seen":{}}}`
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		claimed bool
		want    []metav1.ManagedFieldsEntry // nil: as they were
	}{
		"OfAClaimedObjectTheContentIsTaken": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", "v1", everything), status},
			true,
			[]metav1.ManagedFieldsEntry{
				status,
				entry("kubectl", "v1", `{"f:metadata":{"f:labels":{"f:team":{}}},"f:status":{"f:seen":{}}}`),
				entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:limits":{".":{},"f:cpu":{}}}}`),
			},
		},
		"TwoManagersAreJoined": {
			[]metav1.ManagedFieldsEntry{entry("argocd", "v1", `{"f:spec":{"f:a":{}}}`), entry("helm", "v1", `{"f:spec":{"f:b":{}}}`)},
			true,
			[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:a":{},"f:b":{}}}`)},
		},
		"FieldsThatWereAppliedInAnotherVersionAreTaken": {
			[]metav1.ManagedFieldsEntry{entry("helm", "v2", `{"f:spec":{"f:a":{},"f:b":{}}}`), entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:a":{}}}`)},
			false,
			[]metav1.ManagedFieldsEntry{entry("helm", "v2", `{"f:spec":{"f:b":{}}}`), entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:a":{}}}`)},
		},
		"OfAnOwnedObjectTheAppliedFieldsAndTheirParentsAreTaken": {
			[]metav1.ManagedFieldsEntry{
				entry("kubectl", "v1", `{"f:spec":{"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}`),
				entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:limits":{"f:cpu":{}}}}`),
			},
			false,
			[]metav1.ManagedFieldsEntry{
				entry("kubectl", "v1", `{"f:spec":{"f:limits":{"f:memory":{}}}}`),
				entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:limits":{"f:cpu":{}}}}`),
			},
		},
		"WhatOthersAddedToAnOwnedObjectIsTheirs": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", "v1", `{"f:spec":{"f:memory":{}}}`), entry(v1alpha1.FieldManager, "v1", `{"f:spec":{"f:cpu":{}}}`)}, false, nil,
		},
		"WithoutOtherManagersNothingChanges": {
			[]metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, "v1", everything), status}, true, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := ownedFields(c.entries, c.claimed)
			if err != nil {
				t.Fatal(err)
			}
			if changed != (c.want != nil) {
				t.Errorf("changed %v", changed)
			}
			if diff := cmp.Diff(c.want, got); changed && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, again, err := ownedFields(got, c.claimed); again || err != nil {
				t.Errorf("taken twice: %v, %v", again, err)
			}
		})
	}
}

func TestWithoutTemplateHash(t *testing.T) {
	template := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: templatesResource}
	other := addonv1alpha1.ConfigReference{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
		DesiredConfig:       &addonv1alpha1.ConfigSpecHash{SpecHash: "kept"},
	}
	hash := func(s string) *addonv1alpha1.ConfigSpecHash {
		return &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}, SpecHash: s}
	}
	reference := func(desired, applied *addonv1alpha1.ConfigSpecHash) addonv1alpha1.ConfigReference {
		return addonv1alpha1.ConfigReference{ConfigGroupResource: template, DesiredConfig: desired, LastAppliedConfig: applied}
	}
	named := []addonv1alpha1.AddOnConfig{{ConfigGroupResource: template}}
	cases := map[string]struct {
		reason  string
		configs []addonv1alpha1.AddOnConfig
		in      []addonv1alpha1.ConfigReference
		want    []addonv1alpha1.ConfigReference
		changed bool
	}{
		"None":     {"nothing to clear", nil, []addonv1alpha1.ConfigReference{other}, []addonv1alpha1.ConfigReference{other}, false},
		"Both":     {"both sides are emptied, the name stays", nil, []addonv1alpha1.ConfigReference{other, reference(hash("a"), hash("b"))}, []addonv1alpha1.ConfigReference{other, reference(hash(""), hash(""))}, true},
		"Applied":  {"also the applied side alone", nil, []addonv1alpha1.ConfigReference{reference(nil, hash("b"))}, []addonv1alpha1.ConfigReference{reference(nil, hash(""))}, true},
		"Named":    {"OCM would fill the hash of a template that spec.configs names", named, []addonv1alpha1.ConfigReference{other, reference(hash("a"), nil)}, []addonv1alpha1.ConfigReference{other}, true},
		"Finished": {"once is enough", nil, []addonv1alpha1.ConfigReference{reference(hash(""), hash(""))}, []addonv1alpha1.ConfigReference{reference(hash(""), hash(""))}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mca := &addonv1alpha1.ManagedClusterAddOn{}
			mca.Spec.Configs, mca.Status.ConfigReferences = c.configs, c.in
			before := mca.DeepCopy()
			got, changed := withoutTemplateHash(mca)
			if changed != c.changed {
				t.Errorf("%s: changed %t, want %t", c.reason, changed, c.changed)
			}
			if diff := cmp.Diff(c.want, got.Status.ConfigReferences); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(before, mca); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

func TestLiveForm(t *testing.T) {
	declared := parse(t, foreignAddOn)
	before := declared.DeepCopy()
	fenced := liveForm(declared, "team/fleet", Coexist)
	if listsTemplates(fenced) || installsByPlacements(fenced) || !claimed(fenced, "team/fleet") || !ours(fenced, "team/fleet") {
		t.Errorf("coexist: not fenced or not marked: %v", fenced.Object)
	}
	whole := liveForm(declared, "team/fleet", Replace)
	if !listsTemplates(whole) || !installsByPlacements(whole) || whole.GetAnnotations()[v1alpha1.LifecycleAnnotation] != "" {
		t.Errorf("replace: not as declared: %v", whole.Object)
	}
	if diff := cmp.Diff(before, declared); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
}

// TestFencedAt_KeepsItsTimeUntilTheFenceIsDown: the annotation keeps the time at which OCM's addon-manager was fenced off
// until the fence was down again.
func TestFencedAt_KeepsItsTimeUntilTheFenceIsDown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := parse(t, claimedAddOn)
	since.SetAnnotations(with(since.GetAnnotations(), v1alpha1.FencedAtAnnotation, "2025-12-31T00:00:00Z"))
	down := since.DeepCopy()
	down.SetAnnotations(without(since.GetAnnotations(), v1alpha1.LifecycleAnnotation))
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		want   string
	}{
		"Absent":  {"OCM's addon-manager could not act on it", nil, ""},
		"Foreign": {"OCM ran it", parse(t, foreignAddOn), "2026-01-02T03:04:05Z"},
		"Claimed": {"the fence was never down", parse(t, claimedAddOn), ""},
		"Since":   {"the time stays", since, "2025-12-31T00:00:00Z"},
		"Down":    {"the fence is put up again", down, "2026-01-02T03:04:05Z"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			desired := liveForm(parse(t, foreignAddOn), "team/fleet", Coexist)
			markFenced(desired, c.live, "team/fleet", now)
			if got := desired.GetAnnotations()[v1alpha1.FencedAtAnnotation]; got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// without returns a copy of a map without an entry.
func without(m map[string]string, key string) map[string]string {
	out := maps.Clone(m)
	delete(out, key)
	return out
}
