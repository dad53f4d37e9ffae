package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// said is a decision of a user, who is in groups.
func said(decision v1alpha1.Decision, user string, groups ...string) v1alpha1.AddOnApproval {
	return v1alpha1.AddOnApproval{Spec: v1alpha1.AddOnApprovalSpec{Decision: decision, Approver: user, Groups: groups}}
}

func approved(user string, groups ...string) v1alpha1.AddOnApproval {
	return said(v1alpha1.Approve, user, groups...)
}

func rejected(comment, user string, groups ...string) v1alpha1.AddOnApproval {
	d := said(v1alpha1.Reject, user, groups...)
	d.Spec.Comment = comment
	return d
}

func TestApproval(t *testing.T) {
	open := v1alpha1.ApprovalGate{}
	two := v1alpha1.ApprovalGate{Count: new(int32(2)), Approvers: &v1alpha1.Approvers{Users: []string{"alice", "bob"}, Groups: []string{"qa"}}}
	var crowd []v1alpha1.AddOnApproval
	for i := range 12 {
		crowd = append(crowd, approved(fmt.Sprintf("u%02d", i)))
	}
	for name, c := range map[string]struct {
		spec      v1alpha1.ApprovalGate
		decisions []v1alpha1.AddOnApproval
		want      Verdict
	}{
		"Undecided":                {two, nil, Verdict{v1alpha1.GateWaiting, "0 of 2 approvals", ""}},
		"OneOfTwo":                 {two, []v1alpha1.AddOnApproval{approved("alice")}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (alice)", "alice"}},
		"AUserCountsOnce":          {two, []v1alpha1.AddOnApproval{approved("alice"), approved("alice")}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (alice)", "alice"}},
		"TwoInOrderOfName":         {two, []v1alpha1.AddOnApproval{approved("bob"), approved("alice")}, Verdict{v1alpha1.GatePassed, "approved by alice, bob", "alice, bob"}},
		"UserAndGroup":             {two, []v1alpha1.AddOnApproval{approved("zoe", "qa"), approved("alice", "qa")}, Verdict{v1alpha1.GatePassed, "approved by alice, zoe", "alice, zoe"}},
		"NotAnApprover":            {two, []v1alpha1.AddOnApproval{approved("mallory", "dev"), approved("alice")}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (alice); mallory is not an approver", "alice"}},
		"NoApproversAtAll":         {two, []v1alpha1.AddOnApproval{approved("oscar"), rejected("no", "mallory")}, Verdict{v1alpha1.GateWaiting, "0 of 2 approvals; mallory, oscar are not approvers", ""}},
		"OneRejectOutweighsEnough": {two, []v1alpha1.AddOnApproval{approved("alice"), approved("bob"), rejected("slow  on\narm", "zoe", "qa")}, Verdict{v1alpha1.GateFailed, "rejected by zoe: slow on arm", "zoe"}},
		"ApprovedThenRejected":     {two, []v1alpha1.AddOnApproval{rejected("", "alice"), approved("alice"), approved("bob")}, Verdict{v1alpha1.GateFailed, "rejected by alice", "alice"}},
		"RejectOfAProvenMember":    {two, []v1alpha1.AddOnApproval{approved("zoe", "qa"), rejected("", "zoe")}, Verdict{v1alpha1.GateFailed, "rejected by zoe", "zoe"}},
		"WithoutApprovers":         {open, []v1alpha1.AddOnApproval{approved("zoe")}, Verdict{v1alpha1.GatePassed, "approved by zoe", "zoe"}},
		"LongTextIsCut":            {open, []v1alpha1.AddOnApproval{rejected(strings.Repeat("é", 200), "zoe")}, Verdict{v1alpha1.GateFailed, "rejected by zoe: " + strings.Repeat("é", 99) + "…", "zoe"}},
		"ManyNamesAreCounted":      {open, crowd, Verdict{v1alpha1.GatePassed, "approved by u00, u01, u02 and 9 more", "u00, u01, u02 and 9 more"}},
		"GroupInAnotherCase":       {two, []v1alpha1.AddOnApproval{approved("zoe", "QA")}, Verdict{v1alpha1.GateWaiting, "0 of 2 approvals; zoe is not an approver", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Approval(c.spec, c.decisions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApproval_UserOfTheHubIsNoAccountOfAForge: their names may be equal.
func TestApproval_UserOfTheHubIsNoAccountOfAForge(t *testing.T) {
	spec := v1alpha1.ApprovalGate{Approvers: &v1alpha1.Approvers{Users: []string{"alice"}}, Forge: &v1alpha1.ForgeApproval{}}
	account := approved("operator")
	account.Spec.Forge = &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: "ana"}
	got := Approval(spec, []v1alpha1.AddOnApproval{account, rejected("no", "ana@gitea.example")})
	want := Verdict{v1alpha1.GatePassed, "approved by ana@gitea.example; ana@gitea.example is not an approver", "ana@gitea.example"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestApproval_AnAccountThatChangesItsLoginCountsOnce: bob changes the login to robert after the first decision. In the
// other cases, bob and robert are two accounts, or bob's decision was entered by a version that stored no ID.
func TestApproval_AnAccountThatChangesItsLoginCountsOnce(t *testing.T) {
	spec := v1alpha1.ApprovalGate{Count: new(int32(2)), Forge: &v1alpha1.ForgeApproval{}}
	by := func(login string, id int64) v1alpha1.AddOnApproval {
		d := approved("operator")
		d.Spec.Forge = &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: login, AccountID: id}
		return d
	}
	for name, c := range map[string]struct {
		decisions []v1alpha1.AddOnApproval
		want      Verdict
	}{
		"OneAccount":        {[]v1alpha1.AddOnApproval{by("bob", 7), by("robert", 7)}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (bob@gitea.example)", "bob@gitea.example"}},
		"TwoAccounts":       {[]v1alpha1.AddOnApproval{by("bob", 7), by("robert", 8)}, Verdict{v1alpha1.GatePassed, "approved by bob@gitea.example, robert@gitea.example", "bob@gitea.example, robert@gitea.example"}},
		"AfterAnUpgrade":    {[]v1alpha1.AddOnApproval{by("Bob", 0), by("bob", 7), by("robert", 7)}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (bob@gitea.example)", "bob@gitea.example"}},
		"TakenOverLogin":    {[]v1alpha1.AddOnApproval{by("bob", 7), by("bob", 8)}, Verdict{v1alpha1.GatePassed, "approved by bob@gitea.example, bob@gitea.example", "bob@gitea.example, bob@gitea.example"}},
		"NeitherWithAnID":   {[]v1alpha1.AddOnApproval{by("bob", 0), by("bob", 0)}, Verdict{v1alpha1.GateWaiting, "1 of 2 approvals (bob@gitea.example)", "bob@gitea.example"}},
		"UserAndAccountTwo": {[]v1alpha1.AddOnApproval{approved("zoe"), by("zoe", 7)}, Verdict{v1alpha1.GatePassed, "approved by zoe, zoe@gitea.example", "zoe, zoe@gitea.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Approval(spec, c.decisions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecisionsOnSomethingElse: each part of the subject matters, and a withdrawn decision does
// not count.
func TestDecisionsOnSomethingElse(t *testing.T) {
	subject := Subject{Namespace: "team", RolloutUID: "1", Stage: "fleet", Gate: "qa", Digest: "d", Attempt: 1}
	decision := func(change func(*v1alpha1.AddOnApproval)) v1alpha1.AddOnApproval {
		d := v1alpha1.AddOnApproval{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"},
			Spec:       v1alpha1.AddOnApprovalSpec{RolloutUID: "1", Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: "d", Attempt: 1},
		}
		change(&d)
		return d
	}
	mine := decision(func(*v1alpha1.AddOnApproval) {})
	all := []v1alpha1.AddOnApproval{
		decision(func(d *v1alpha1.AddOnApproval) { d.Namespace = "other" }),
		decision(func(d *v1alpha1.AddOnApproval) { d.Spec.RolloutUID = "2" }),
		decision(func(d *v1alpha1.AddOnApproval) { d.Spec.Stage = "canary" }),
		decision(func(d *v1alpha1.AddOnApproval) { d.Spec.Gate = "ops" }),
		decision(func(d *v1alpha1.AddOnApproval) { d.Spec.Digest = "e" }),
		decision(func(d *v1alpha1.AddOnApproval) { d.Spec.Attempt = 2 }),
		decision(func(d *v1alpha1.AddOnApproval) { d.DeletionTimestamp = new(metav1.Now()) }),
		mine,
	}
	if diff := cmp.Diff([]v1alpha1.AddOnApproval{mine}, subject.Of(all)); diff != "" {
		t.Error(diff)
	}
}
