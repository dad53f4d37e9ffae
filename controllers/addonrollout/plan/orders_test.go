package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// TestRollback_NamesContentByTheFirstDigits: of its commit or its digest. Of a commit that introduced several contents it
// is the newest, and digits of several commits or digests name none.
func TestRollback_NamesContentByTheFirstDigits(t *testing.T) {
	digest := func(digits string) string { return "v1:sha256:" + (digits + strings.Repeat("0", 64))[:64] }
	commit := func(digits string) string { return "main@sha1:" + (digits + strings.Repeat("e", 40))[:40] }
	o := &Observation{Rollout: &v1alpha1.AddOnRollout{}}
	o.Rollout.Spec.Target = &v1alpha1.Target{Digest: digest("a1"), Commit: commit("1111111a")}
	for _, h := range []v1alpha1.Target{
		{Digest: digest("aaaaaaa1"), Commit: commit("2222222a")},
		{Digest: digest("aaaaaaa2"), Commit: commit("2222222a")},
		{Digest: digest("a4"), Commit: commit("1111111b")},
	} {
		o.Rollout.Status.History = append(o.Rollout.Status.History, v1alpha1.HistoryEntry{Target: h})
	}
	for digits, want := range map[string][]string{
		"1111111a": {digest("a1")},
		"1111111":  {digest("a1"), digest("a4")},
		"2222222":  {digest("aaaaaaa1")},
		"aaaaaaa2": {digest("aaaaaaa2")},
		"aaaaaaa":  {digest("aaaaaaa1"), digest("aaaaaaa2")},
		"3333333":  nil,
	} {
		if got := o.named(digits); !slices.Equal(got, want) {
			t.Errorf("%s means %q, want %q", digits, got, want)
		}
		single := ""
		if len(want) == 1 {
			single = want[0]
		}
		if got := o.digestOf(&v1alpha1.OrderArguments{To: digits}); got != single {
			t.Errorf("a rollback to %s returns to %q, want %q", digits, got, single)
		}
	}
}

// TestAbort_IsRefusedWhileTheAddOnIsRemoved: also while a hold or an approval keeps the removal from beginning.
func TestAbort_IsRefusedWhileTheAddOnIsRemoved(t *testing.T) {
	o := &Observation{Rollout: &v1alpha1.AddOnRollout{}}
	for _, removal := range []*v1alpha1.Removal{nil, {Commit: "ccc"}} {
		o.Rollout.Spec.Removal = removal
		next := v1alpha1.AddOnRolloutStatus{Phase: v1alpha1.PhaseHeld}
		if _, refused := o.answer(rollout.Order{Verb: v1alpha1.OrderAbort}, &next); (refused != "") != (removal != nil) {
			t.Errorf("removal %v: refused %q", removal, refused)
		}
	}
}
