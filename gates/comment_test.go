package gates

import (
	"strings"
	"testing"
	"unicode"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestApproval_CountsCommentsOnlyWhereTheGateTakesThem: an account of a forge is another approver than the operator,
// which enters its decision, and than a user of the same name.
func TestApproval_CountsCommentsOnlyWhereTheGateTakesThem(t *testing.T) {
	byForge := func(login string, decision v1alpha1.Decision) v1alpha1.AddOnApproval {
		return v1alpha1.AddOnApproval{Spec: v1alpha1.AddOnApprovalSpec{
			Approver: "operator", Decision: decision, Forge: &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: login, CommentID: 1},
		}}
	}
	another, elsewhere := byForge("bob", v1alpha1.Approve), byForge("bob", v1alpha1.Approve)
	another.Spec.Approver, elsewhere.Spec.Forge.Host = "gitops", "never-heard-of.example"
	two := int32(2)
	takes := v1alpha1.ApprovalGate{Approvers: &v1alpha1.Approvers{Users: []string{"alice"}}, Forge: &v1alpha1.ForgeApproval{Users: []string{"bob", "alice"}}, Count: &two}
	not := v1alpha1.ApprovalGate{Count: &two}
	cases := map[string]struct {
		spec      v1alpha1.ApprovalGate
		decisions []v1alpha1.AddOnApproval
		want      string
	}{
		"two accounts":            {takes, []v1alpha1.AddOnApproval{byForge("bob", v1alpha1.Approve), byForge("alice", v1alpha1.Approve)}, "Passed: approved by alice@gitea.example, bob@gitea.example"},
		"one account twice":       {takes, []v1alpha1.AddOnApproval{byForge("bob", v1alpha1.Approve), byForge("bob", v1alpha1.Approve)}, "Waiting: 1 of 2 approvals (bob@gitea.example)"},
		"another account":         {takes, []v1alpha1.AddOnApproval{byForge("mallory", v1alpha1.Reject)}, "Waiting: 0 of 2 approvals; mallory@gitea.example is not an approver"},
		"a rejection":             {takes, []v1alpha1.AddOnApproval{byForge("bob", v1alpha1.Reject)}, "Failed: rejected by bob@gitea.example"},
		"another user entered it": {takes, []v1alpha1.AddOnApproval{another}, "Waiting: 0 of 2 approvals; gitops is not an approver"},
		"of another forge":        {takes, []v1alpha1.AddOnApproval{elsewhere}, "Waiting: 0 of 2 approvals; operator is not an approver"},
		"the gate takes none":     {not, []v1alpha1.AddOnApproval{byForge("bob", v1alpha1.Approve)}, "Waiting: 0 of 2 approvals; bob@gitea.example is not an approver"},
		"it does not any longer":  {not, []v1alpha1.AddOnApproval{byForge("bob", v1alpha1.Reject)}, "Waiting: 0 of 2 approvals; bob@gitea.example is not an approver"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := Approval(c.spec, Entered(c.decisions, "operator", "gitea.example"))
			if got := string(v.State) + ": " + v.Reason; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestComment_IsAboutTheTenDigitsOfOneContent: fewer digits may be those of several contents, and digits of other content
// decide nothing.
func TestComment_IsAboutTheTenDigitsOfOneContent(t *testing.T) {
	subject := Subject{Stage: "canary", Gate: "team", Digest: "v1:sha256:abcdef0123" + strings.Repeat("4", 54)}
	for digits, want := range map[string]bool{
		"abcdef0123": true, "abcdef012": false, "a": false, "abcdef01234": false, subject.Digest: false, strings.TrimPrefix(subject.Digest, "v1:sha256:"): false,
		"ABCDEF0123": false, "abcdef0124": false, "0123444444": false, "abcdef01*3": false, "..........": false, "sha256:abc": false,
	} {
		for _, verb := range []string{"approve", "reject"} {
			c, ok := ParseComment("/addonflow " + verb + " hello canary team " + digits)
			if got := ok && c.Is("hello", subject); got != want {
				t.Errorf("%s %q: %v", verb, digits, got)
			}
		}
	}
}

// FuzzParseComment: a comment that is read as a decision is one line with its five words, and is about no other content.
func FuzzParseComment(f *testing.F) {
	f.Add(ApproveComment("hello", "canary", "team", "sha256:0123456789abcdef"), "hello")
	f.Add("  /addonflow reject hello canary team 0123456789ab\r\nbecause\r\nof it", "")
	f.Add("/addonflow approve a\u00a0b c d e", "b c")
	f.Fuzz(func(t *testing.T, body, addOn string) {
		if c, ok := ParseComment(body); ok {
			if c.Decision != v1alpha1.Approve && c.Decision != v1alpha1.Reject {
				t.Errorf("%q decides %q", body, c.Decision)
			}
			subject := Subject{Stage: c.Stage, Gate: c.Gate, Digest: "sha256:" + c.Digest}
			if hexadecimal := strings.Trim(c.Digest, "0123456789abcdef") == ""; hexadecimal && !c.Is(c.AddOn, subject) || c.Is(c.AddOn+"x", subject) {
				t.Errorf("%q is about something else than %+v", body, c)
			}
		}
		if addOn == "" || strings.ContainsFunc(addOn, unicode.IsSpace) {
			return
		}
		written := ApproveComment(addOn, "canary", "team", "sha256:0123456789abcdef")
		if c, ok := ParseComment(written); !ok || c.AddOn != addOn || c.Stage != "canary" || c.Gate != "team" {
			t.Errorf("%q is read as %+v, %v", written, c, ok)
		}
	})
}
