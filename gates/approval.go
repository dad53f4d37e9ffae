package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// maxText limits a name and a comment in a verdict, in characters: every user who may create
// AddOnApprovals writes them, and the verdict is stored in the status of the rollout.
const maxText = 100

// Subject identifies the stage, content and attempt that a decision is about.
type Subject struct {
	Namespace           string
	RolloutUID          types.UID
	Stage, Gate, Digest string
	Attempt             int32
}

// Of selects the decisions on the subject. One that is being deleted is withdrawn.
func (s Subject) Of(decisions []v1alpha1.AddOnApproval) []v1alpha1.AddOnApproval {
	var found []v1alpha1.AddOnApproval
	for i := range decisions {
		d := &decisions[i]
		about := Subject{
			Namespace: d.Namespace, RolloutUID: d.Spec.RolloutUID,
			Stage: d.Spec.Stage, Gate: d.Spec.Gate, Digest: d.Spec.Digest, Attempt: d.Spec.Attempt,
		}
		if about == s && d.DeletionTimestamp == nil {
			found = append(found, *d)
		}
	}
	return found
}

// Entered decides which decisions made by accounts are valid. A decision of an account counts as such only if the
// operator entered it, for the forge of the source. If another user entered it in the name of an account, it is a
// decision of that user.
func Entered(decisions []v1alpha1.AddOnApproval, operator, host string) []v1alpha1.AddOnApproval {
	all := slices.Clone(decisions)
	for i := range all {
		if by := all[i].Spec.Forge; by != nil && (all[i].Spec.Approver != operator || by.Host != host || host == "") {
			all[i].Spec.Forge = nil
		}
	}
	return all
}

// Approval counts the decisions on one Subject. Each user counts once. If an approver rejected, the verdict is a
// rejection, even if the same or another approver approved.
func Approval(spec v1alpha1.ApprovalGate, decisions []v1alpha1.AddOnApproval) Verdict {
	var approved, rejected, because, strangers []string
	for _, v := range votersOf(decisions) {
		name := v[0].By()
		switch rejections := v.rejections(); {
		case !v.approver(spec):
			strangers = append(strangers, name)
		case len(rejections) > 0:
			rejected = append(rejected, name)
			because = append(because, commentsOf(rejections)...)
		default:
			approved = append(approved, name)
		}
	}
	verdict := Verdict{State: v1alpha1.GateWaiting, By: listed(approved)}
	switch wanted := Wanted(spec); {
	case len(rejected) > 0:
		slices.Sort(because)
		verdict = Verdict{State: v1alpha1.GateFailed, By: listed(rejected), Reason: "rejected by " + listed(rejected)}
		if len(because) > 0 {
			verdict.Reason += ": " + because[0]
		}
	case len(approved) >= wanted:
		verdict.State, verdict.Reason = v1alpha1.GatePassed, "approved by "+verdict.By
	default:
		verdict.Reason = fmt.Sprintf("%d of %d approvals", len(approved), wanted)
		if verdict.By != "" {
			verdict.Reason += " (" + verdict.By + ")"
		}
	}
	switch len(strangers) {
	case 0:
	case 1:
		verdict.Reason += "; " + listed(strangers) + " is not an approver"
	default:
		verdict.Reason += "; " + listed(strangers) + " are not approvers"
	}
	return verdict
}

// Wanted is how many approvers must approve.
func Wanted(spec v1alpha1.ApprovalGate) int {
	if spec.Count == nil {
		return 1
	}
	return int(*spec.Count)
}

// IsApprover reports whether the decisions of a user with these groups count.
func IsApprover(spec v1alpha1.ApprovalGate, user string, groups []string) bool {
	return spec.Approvers == nil || slices.Contains(spec.Approvers.Users, user) || len(GroupsOf(spec, groups)) > 0
}

// counts reports whether a decision is made by an approver. A decision from a comment needs no check of the account's
// permission: the operator created it only after that check; see Entered.
func counts(spec v1alpha1.ApprovalGate, d *v1alpha1.AddOnApprovalSpec) bool {
	if d.Forge != nil {
		return spec.Forge != nil && IsForgeApprover(*spec.Forge, d.Forge.Login)
	}
	return IsApprover(spec, d.Approver, d.Groups)
}

// IsForgeApprover reports whether the comments of an account count, if it has the permission. The
// case of a login does not count.
func IsForgeApprover(spec v1alpha1.ForgeApproval, login string) bool {
	return login != "" && (len(spec.Users) == 0 || slices.ContainsFunc(spec.Users, func(u string) bool { return strings.EqualFold(u, login) }))
}

// GroupsOf are those of a user's groups that make the user an approver.
func GroupsOf(spec v1alpha1.ApprovalGate, groups []string) []string {
	if spec.Approvers == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(spec.Approvers.Groups), func(g string) bool { return !slices.Contains(groups, g) })
}

// voter has all decisions of one user of the hub, or of one account of a forge.
type voter []*v1alpha1.AddOnApprovalSpec

// votersOf groups decisions by user, in the order of the names. Decisions with the ID of an account come first, so that
// a decision without an ID joins an account with its login.
func votersOf(decisions []v1alpha1.AddOnApproval) []voter {
	var all []voter
	sorted := slices.SortedFunc(slices.Values(specsOf(decisions)), func(a, b *v1alpha1.AddOnApprovalSpec) int {
		return cmp.Or(-cmp.Compare(accountOf(a), accountOf(b)), cmp.Compare(a.By(), b.By()))
	})
	for _, d := range sorted {
		i := slices.IndexFunc(all, func(v voter) bool {
			return slices.ContainsFunc(v, func(other *v1alpha1.AddOnApprovalSpec) bool { return sameUser(d, other) })
		})
		if i < 0 {
			all, i = append(all, nil), len(all)
		}
		all[i] = append(all[i], d)
	}
	slices.SortStableFunc(all, func(a, b voter) int { return cmp.Compare(a[0].By(), b[0].By()) })
	return all
}

func specsOf(decisions []v1alpha1.AddOnApproval) []*v1alpha1.AddOnApprovalSpec {
	specs := make([]*v1alpha1.AddOnApprovalSpec, 0, len(decisions))
	for i := range decisions {
		specs = append(specs, &decisions[i].Spec)
	}
	return specs
}

// accountOf is the ID of the account that decided; 0: the decision has none.
func accountOf(d *v1alpha1.AddOnApprovalSpec) int64 {
	if d.Forge == nil {
		return 0
	}
	return d.Forge.AccountID
}

// sameUser reports whether two decisions are of one user. An account keeps its ID under a new login. A decision without
// an ID was entered by an earlier version, and has only the login. A user of the hub may have a name such as login@host.
func sameUser(a, b *v1alpha1.AddOnApprovalSpec) bool {
	switch {
	case a.Forge == nil || b.Forge == nil:
		return a.Forge == b.Forge && a.Approver == b.Approver
	case a.Forge.AccountID != 0 && b.Forge.AccountID != 0:
		return a.Forge.AccountID == b.Forge.AccountID
	default:
		return strings.EqualFold(a.Forge.Login, b.Forge.Login)
	}
}

// approver reports whether the decisions of the user count. A group that one decision proves holds for all of them.
func (v voter) approver(spec v1alpha1.ApprovalGate) bool {
	return slices.ContainsFunc(v, func(d *v1alpha1.AddOnApprovalSpec) bool { return counts(spec, d) })
}

func (v voter) rejections() []*v1alpha1.AddOnApprovalSpec {
	return slices.DeleteFunc(slices.Clone(v), func(d *v1alpha1.AddOnApprovalSpec) bool { return d.Decision != v1alpha1.Reject })
}

func commentsOf(decisions []*v1alpha1.AddOnApprovalSpec) []string {
	var comments []string
	for _, d := range decisions {
		if comment := brief.Line(d.Comment, maxText); comment != "" {
			comments = append(comments, comment)
		}
	}
	return comments
}

// listed shows the first names, each in at most maxText characters.
func listed(names []string) string {
	lines := make([]string, 0, len(names))
	for _, name := range names {
		lines = append(lines, brief.Line(name, maxText))
	}
	return brief.Names(lines)
}
