package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/show"
)

type decideOptions struct {
	*cli
	decision v1alpha1.Decision
	// verb and done are the words for the decision.
	verb, done string
	gate       string
	comment    string
	yes        bool
	timeout    time.Duration
}

func newApproveCommand(c *cli) *cobra.Command {
	return (&decideOptions{cli: c, decision: v1alpha1.Approve, verb: "approve", done: "approved"}).command(
		"Approve that a stage rolls out the target",
		`The stage continues when as many different approvers have approved as the gate requires.`)
}

func newRejectCommand(c *cli) *cobra.Command {
	return (&decideOptions{cli: c, decision: v1alpha1.Reject, verb: "reject", done: "rejected"}).command(
		"Reject that a stage rolls out the target",
		`One rejection by an approver halts the rollout at the stage.`)
}

func (o *decideOptions) command(short, effect string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   o.verb + " ROLLOUT STAGE",
		Short: short,
		Long: short + `.

Shows the commit, the digest, the clusters, and what the target changes on one cluster of the
stage against what that cluster runs, with the values of Secrets masked. It then asks for
confirmation and creates an AddOnApproval with your own credentials. The API server proves that
its approver is you. The decision is about this digest and this attempt alone.

` + effect + ` To withdraw a decision while the stage
waits, delete the AddOnApproval.`,
		Example: fmt.Sprintf(`  # After a look at what changes
  addonflow %[1]s hello fleet -m "as agreed in the review"
  # One of several gates, without a question, for a script
  addonflow %[1]s hello fleet --gate qa --yes`, o.verb),
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error { return o.decide(cmd.Context(), args[0], args[1]) },
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return o.completeStages(cmd.Context(), args[0])
		}
		return only(o.completeNames(&v1alpha1.AddOnRolloutList{}))(cmd, args, word)
	}
	cmd.Flags().StringVar(&o.gate, "gate", "", "Gate of the stage, if several wait for approvals.")
	cmd.Flags().StringVarP(&o.comment, "message", "m", "", "The reason, stored in the AddOnApproval.")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "How long to wait for the operator's verdict; 0: do not wait.")
	return o.cli.command(cmd)
}

// decide shows the subject of the decision, asks the user, and creates the AddOnApproval.
func (o *decideOptions) decide(ctx context.Context, name, stage string) error {
	if !o.yes && !o.asks() {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot ask for confirmation: standard input is not a terminal; use --yes")}
	}
	hub, r, err := o.rollout(ctx, name)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(r)
	w, err := o.waiting(r, stage)
	if err != nil {
		return err
	}
	decisions, err := decisionsOn(ctx, hub, w.subject)
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := hub.Create(ctx, review); err != nil {
		return hubError("ask the hub for your user name", err)
	}
	user := review.Status.UserInfo
	if !gates.IsApprover(*w.gate.Approval, user.Username, user.Groups) {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: %s is not an approver of gate %s (%s), so the decision would not count",
			o.verb, user.Username, w.gate.Name, approversOf(*w.gate.Approval))}
	}
	if err := o.undecided(decisions, user.Username, w); err != nil {
		return err
	}
	if err := o.present(ctx, hub, r, w); err != nil {
		return err
	}
	if err := o.confirmed(w, user.Username); err != nil {
		return err
	}
	if w, err = o.asShown(ctx, hub, key, w); err != nil {
		return err
	}
	approval := o.approval(r, w, user)
	if err := hub.Create(ctx, approval, client.FieldOwner("kubectl-addonflow")); err != nil {
		return hubError(o.verb+" stage "+stage+" of "+rolloutKey(key), err)
	}
	if _, err := fmt.Fprintf(o.Out, "%s: gate %s of stage %s %s by %s\n", rolloutKey(key), w.gate.Name, stage, o.done, user.Username); err != nil {
		return err
	}
	return o.counted(ctx, hub, key, w)
}

// asShown reads the gate again before the decision is created, because it may have changed before the user answered.
func (o *decideOptions) asShown(ctx context.Context, hub client.Reader, key client.ObjectKey, w waitingGate) (waitingGate, error) {
	var r v1alpha1.AddOnRollout
	if err := hub.Get(ctx, key, &r); err != nil {
		return waitingGate{}, hubError("read "+rolloutKey(key), err)
	}
	if subjectOf(&r, w.stage.Name, w.gate.Name) != w.subject {
		return waitingGate{}, &exitError{code: exitFailed, err: fmt.Errorf(
			"cannot %s: %s has other content or another attempt than was shown; repeat the command", o.verb, rolloutKey(key))}
	}
	w.stage = stageOf(&r, w.stage.Name)
	return w, nil
}

// counted waits until the operator has counted the decision, and prints its verdict. It fails if the decision has no
// effect.
func (o *decideOptions) counted(ctx context.Context, hub client.Reader, key client.ObjectKey, w waitingGate) error {
	if o.timeout == 0 {
		return nil
	}
	stage, before := w.stage, verdictOf(w.stage, w.gate.Name)
	now, replaced := before, false
	var r v1alpha1.AddOnRollout
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, o.timeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, key, &r); err != nil {
			return false, err
		}
		replaced = subjectOf(&r, stage.Name, w.gate.Name) != w.subject
		stage = stageOf(&r, stage.Name)
		now = verdictOf(stage, w.gate.Name)
		used := now.State == v1alpha1.GatePassed && now.EvaluatedAt != nil
		return replaced || o.counts(before, now) || used || now.State == v1alpha1.GateFailed || now.State == v1alpha1.GateError, nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		return &exitError{code: exitTimeout, err: fmt.Errorf("the operator did not count the decision within %s: gate %s is %s; see %s tree %s -n %s",
			o.timeout, w.gate.Name, stateOf(now, stage), o.name, key.Name, key.Namespace)}
	case err != nil:
		return hubError("read "+rolloutKey(key), err)
	case replaced && o.decision == v1alpha1.Reject && r.Status.Override.Returns() && r.Status.Override.Leaves().Digest == w.subject.Digest:
		o.hint("The clusters go back from the rejected content: %s", r.Status.Override.Reason)
		return nil
	case replaced && o.decision == v1alpha1.Reject && slices.ContainsFunc(r.Status.History, func(h v1alpha1.HistoryEntry) bool {
		return h.Target.Digest == w.subject.Digest && h.Attempt == w.subject.Attempt && h.Phase == v1alpha1.PhaseFailed
	}):
		o.hint("The rollout of the rejected content has ended")
		return nil
	case replaced:
		return &exitError{code: exitFailed, err: fmt.Errorf(
			"the decision is stored, and does not count: %s has other content or another attempt now; repeat the command", rolloutKey(key))}
	case now.State == v1alpha1.GateError:
		return &exitError{code: exitFailed, err: fmt.Errorf("the decision is stored, and does not count yet: gate %s is %s", w.gate.Name, stateOf(now, stage))}
	case !o.counts(before, now):
		return &exitError{code: exitFailed, err: fmt.Errorf("the decision is stored, and has no effect: gate %s is %s", w.gate.Name, stateOf(now, stage))}
	}
	o.hint("Gate %s is %s", w.gate.Name, stateOf(now, stage))
	return nil
}

// counts reports whether the operator has counted the user's decision. While the gate still waits, only a change of By,
// which names the approvers, shows this. Reason also changes for decisions that are not counted.
func (o *decideOptions) counts(before, now v1alpha1.GateStatus) bool {
	if o.decision == v1alpha1.Reject {
		return now.State == v1alpha1.GateFailed
	}
	return now.State == v1alpha1.GatePassed || now.State == v1alpha1.GateWaiting && now.By != before.By
}

// waitingGate is an approval gate on which the decision has an effect.
type waitingGate struct {
	gate    v1alpha1.Gate
	stage   v1alpha1.StageStatus
	subject gates.Subject
}

// waiting finds the gate of the decision.
func (o *decideOptions) waiting(r *v1alpha1.AddOnRollout, name string) (waitingGate, error) {
	target := r.Status.Target
	planned := target
	if r.Status.Override != nil {
		planned = &r.Status.Override.Declared
	}
	if target == nil || r.Spec.Target == nil || planned.Digest != r.Spec.Target.Digest {
		return waitingGate{}, &exitError{code: exitTimeout, err: fmt.Errorf(
			"cannot %s: the operator has not planned the newest target of %s yet; repeat the command later", o.verb, rolloutKey(client.ObjectKeyFromObject(r)))}
	}
	at := slices.IndexFunc(r.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.Name == name })
	if at < 0 {
		return waitingGate{}, o.unknownStage(r, name)
	}
	stage := r.Status.Stages[at]
	gate, err := o.gateOf(approvalGates(r, name), stage)
	if err != nil {
		return waitingGate{}, err
	}
	if r.Status.Aborted != nil {
		return waitingGate{}, &exitError{code: exitFailed, err: fmt.Errorf(
			"cannot %s: the rollout was aborted; %s begins another attempt, which needs another decision", o.verb, show.Command(o.name, "retry", r.Name, "-n", r.Namespace))}
	}
	return waitingGate{gate: gate, stage: stage, subject: subjectOf(r, name, gate.Name)}, nil
}

// subjectOf is the present subject of a decision on a gate.
func subjectOf(r *v1alpha1.AddOnRollout, stage, gate string) gates.Subject {
	subject := gates.Subject{Namespace: r.Namespace, RolloutUID: r.UID, Stage: stage, Gate: gate, Attempt: r.Status.Attempt}
	if r.Status.Target != nil {
		subject.Digest = r.Status.Target.Digest
	}
	return subject
}

// stageOf is the status of a stage; if there is none, its phase is empty.
func stageOf(r *v1alpha1.AddOnRollout, name string) v1alpha1.StageStatus {
	at := slices.IndexFunc(r.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.Name == name })
	if at < 0 {
		return v1alpha1.StageStatus{Name: name}
	}
	return r.Status.Stages[at]
}

// unknownStage names the existing stages.
func (o *decideOptions) unknownStage(r *v1alpha1.AddOnRollout, name string) error {
	stages := make([]string, 0, len(r.Status.Stages))
	for _, s := range r.Status.Stages {
		stages = append(stages, s.Name)
	}
	hint := "its stages are " + strings.Join(stages, ", ")
	if near := flaw.Closest(name, stages); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &exitError{code: exitNotFound, err: fmt.Errorf("cannot find stage %q in %s; %s", name, rolloutKey(client.ObjectKeyFromObject(r)), hint)}
}

// approvalGates are the declared approval gates of a stage.
func approvalGates(r *v1alpha1.AddOnRollout, stage string) []v1alpha1.Gate {
	at := slices.IndexFunc(r.Spec.Stages, func(s v1alpha1.Stage) bool { return s.Name == stage })
	if at < 0 || r.Spec.Stages[at].Gates == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Spec.Stages[at].Gates.Before), func(g v1alpha1.Gate) bool { return g.Approval == nil })
}

// gateOf is the gate that waits for the decision. If no gate waits, a rejection is about the gate that was
// approved, as long as the approval has let no cluster be admitted.
func (o *decideOptions) gateOf(declared []v1alpha1.Gate, stage v1alpha1.StageStatus) (v1alpha1.Gate, error) {
	var names, others []string
	var waiting, passed []v1alpha1.Gate
	for _, g := range declared {
		names = append(names, g.Name)
		if o.gate != "" && g.Name != o.gate {
			continue
		}
		switch v := verdictOf(stage, g.Name); {
		case v.State == v1alpha1.GateWaiting:
			waiting = append(waiting, g)
		case v.State == v1alpha1.GatePassed && v.EvaluatedAt == nil && o.decision == v1alpha1.Reject:
			passed = append(passed, g)
		default:
			others = append(others, fmt.Sprintf("gate %s is %s", g.Name, stateOf(v, stage)))
		}
	}
	if len(waiting) == 0 {
		waiting = passed
	}
	switch {
	case len(names) == 0:
		return v1alpha1.Gate{}, &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: stage %s has no approval gate", o.verb, stage.Name)}
	case len(waiting) == 1:
		return waiting[0], nil
	case len(waiting) > 1:
		var several []string
		for _, g := range waiting {
			several = append(several, g.Name)
		}
		return v1alpha1.Gate{}, &exitError{code: exitUsage, err: fmt.Errorf("cannot %s: the decision can be about gates %s of stage %s; choose one with --gate", o.verb, strings.Join(several, ", "), stage.Name)}
	case len(others) == 0:
		return v1alpha1.Gate{}, &exitError{code: exitNotFound, err: fmt.Errorf("cannot find approval gate %q in stage %s; its approval gates are %s", o.gate, stage.Name, strings.Join(names, ", "))}
	}
	return v1alpha1.Gate{}, &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: %s", o.verb, strings.Join(others, "; "))}
}

// verdictOf is the verdict on a gate in before; zero: it was not asked for yet.
func verdictOf(stage v1alpha1.StageStatus, gate string) v1alpha1.GateStatus {
	at := slices.IndexFunc(stage.Gates, func(g v1alpha1.GateStatus) bool { return g.Name == gate && g.When == v1alpha1.GateBefore })
	if at < 0 {
		return v1alpha1.GateStatus{}
	}
	return stage.Gates[at]
}

// stateOf says why a gate does not wait for a decision.
func stateOf(v v1alpha1.GateStatus, stage v1alpha1.StageStatus) string {
	text, reason := string(v.State), v.Reason
	if text == "" {
		text, reason = "not asked yet", "stage "+stage.Name+" is "+stage.Phase
		if stage.Message != "" {
			reason += ", " + stage.Message
		}
	}
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// decisionsOn lists the existing decisions.
func decisionsOn(ctx context.Context, hub client.Reader, subject gates.Subject) ([]v1alpha1.AddOnApproval, error) {
	var list v1alpha1.AddOnApprovalList
	if err := hub.List(ctx, &list, client.InNamespace(subject.Namespace)); err != nil {
		return nil, hubError("list AddOnApprovals", err)
	}
	return subject.Of(list.Items), nil
}

// undecided refuses a decision without effect. A rejection outweighs an approval of the same user, but not the other
// way round.
func (o *decideOptions) undecided(decisions []v1alpha1.AddOnApproval, user string, w waitingGate) error {
	for i := range decisions {
		d := &decisions[i]
		if d.Spec.Approver != user || d.Spec.Decision == v1alpha1.Approve && o.decision == v1alpha1.Reject {
			continue
		}
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: the decision of %s on gate %s is %s already, and the gate is %s; to withdraw it, delete AddOnApproval %s in namespace %s",
			o.verb, user, w.gate.Name, d.Spec.Decision, stateOf(verdictOf(w.stage, w.gate.Name), w.stage), d.Name, d.Namespace)}
	}
	return nil
}

// present shows the subject of the decision.
func (o *decideOptions) present(ctx context.Context, hub client.Client, r *v1alpha1.AddOnRollout, w waitingGate) error {
	n, target := w.stage.Counts, r.Status.Target
	stable := "none: this is a first install"
	if r.Status.Stable != nil {
		stable = cmp.Or(r.Status.Stable.Commit, r.Status.Stable.Revision)
	}
	if r.Status.Override.Waits() {
		o.hint("%s waits until the rollout of the commit below has ended (onNewCommit is Finish); the decision is about the commit below",
			show.ShortCommit(r.Spec.Target.Commit))
	}
	_, err := fmt.Fprintf(o.Out, `rollout   %s, attempt %d
commit    %s
digest    %s
stable    %s
stage     %s: %s, %d at the target, %d in flight, %d failed, %d waiting
gate      %s: %s
`, client.ObjectKeyFromObject(r), r.Status.Attempt, target.Commit, target.Digest, stable,
		w.stage.Name, brief.Count(int(n.Total), "cluster"), n.Updated, n.InFlight, n.Failed, n.Waiting,
		w.gate.Name, stateOf(verdictOf(w.stage, w.gate.Name), w.stage))
	if err != nil {
		return err
	}
	change, err := o.change(ctx, hub, client.ObjectKeyFromObject(r), w.stage.Name)
	switch {
	case errors.Is(err, context.Canceled):
		return hubError("show the change", err)
	case err != nil:
		o.hint("warning: cannot show what changes: %s", err)
		return nil
	case change.Cluster == "":
		_, err = fmt.Fprintf(o.Out, "change    none: every cluster of the stage runs the target\n")
		return err
	}
	diff, err := o.terminal().style.Diff(change.Before, change.After)
	if err != nil {
		return err
	}
	if diff == "" {
		diff = "none\n"
	}
	_, err = fmt.Fprintf(o.Out, "change    on %s, one of %s of the stage that %s at the target:\n\n%s\n", change.Cluster, brief.Count(change.Clusters, "cluster"), notAt(change.Clusters), diff)
	return err
}

// notAt is the verb for a number of clusters.
func notAt(n int) string {
	if n == 1 {
		return "is not"
	}
	return "are not"
}

func approversOf(spec v1alpha1.ApprovalGate) string {
	var parts []string
	if users := spec.Approvers.Users; len(users) > 0 {
		parts = append(parts, "users "+strings.Join(users, ", "))
	}
	if groups := spec.Approvers.Groups; len(groups) > 0 {
		parts = append(parts, "groups "+strings.Join(groups, ", "))
	}
	return strings.Join(parts, "; ")
}

func (o *decideOptions) confirmed(w waitingGate, user string) error {
	if o.yes {
		return nil
	}
	_, _ = fmt.Fprintf(o.ErrOut, "%s gate %s of stage %s as %s? [y/N] ", strings.ToUpper(o.verb[:1])+o.verb[1:], w.gate.Name, w.stage.Name, user)
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot read the answer: %w", err)}
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("not %s: no AddOnApproval was created", o.done)}
}

// approval returns the AddOnApproval of the decision. It is deleted with its rollout. Of the user's groups, it names
// only those that make the user an approver.
func (o *decideOptions) approval(r *v1alpha1.AddOnRollout, w waitingGate, user authenticationv1.UserInfo) *v1alpha1.AddOnApproval {
	return &v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, GenerateName: r.Name + "-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddOnRolloutKind, Name: r.Name, UID: r.UID,
			}},
		},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: r.UID, Rollout: r.Name, Stage: w.stage.Name, Gate: w.gate.Name,
			Digest: w.subject.Digest, Attempt: w.subject.Attempt, Decision: o.decision, Comment: o.comment,
			Approver: user.Username, Groups: gates.GroupsOf(*w.gate.Approval, user.Groups),
		},
	}
}

// completeStages offers the stages of a rollout whose approval gates wait.
func (o *decideOptions) completeStages(ctx context.Context, name string) ([]cobra.Completion, cobra.ShellCompDirective) {
	hub, key, err := o.open(name)
	var r v1alpha1.AddOnRollout
	if err == nil {
		err = hub.Get(ctx, key, &r)
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var stages []cobra.Completion
	for _, s := range r.Status.Stages {
		if slices.ContainsFunc(s.Gates, func(g v1alpha1.GateStatus) bool {
			return g.Type == v1alpha1.GateApproval && g.State == v1alpha1.GateWaiting
		}) {
			stages = append(stages, s.Name)
		}
	}
	return stages, cobra.ShellCompDirectiveNoFileComp
}
