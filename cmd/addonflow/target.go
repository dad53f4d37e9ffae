package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// target is a kind that people suspend, resume and reconcile by annotation.
type target struct {
	kind   string // as in `suspend KIND NAME`
	list   client.ObjectList
	create func() client.Object
	// declared reports whether spec suspends the object.
	declared func(client.Object) bool
	// suspended reports whether an annotation does, which resuming takes away.
	suspended func(client.Object) bool
	// handled is the value of the reconcile request that was last worked on.
	handled func(client.Object) string
	// outcome is how the object stands, as far as a script needs to know.
	outcome func(client.Object) show.Outcome
	// conditions of the object.
	conditions func(client.Object) []metav1.Condition
	// example is the name of one in examples.
	example string
	// fix is advice after a failure; program is the name by which the user called this program.
	// look is advice for an object that waits and is not suspended.
	fix, look func(program string, key types.NamespacedName) string
	// resumes is what resume cancels besides a suspend.
	resumes string
	// undo is advice for a declared suspend.
	undo string
}

// sourceTarget is AddOnSource.
func sourceTarget() target {
	return target{
		kind: "source", example: "fleet", fix: fixSource, list: &v1alpha1.AddOnSourceList{},
		create:     func() client.Object { return &v1alpha1.AddOnSource{} },
		declared:   onKind(func(s *v1alpha1.AddOnSource) bool { return s.Spec.Suspend }),
		suspended:  onKind(func(s *v1alpha1.AddOnSource) bool { return v1alpha1.SuspendedByAnnotation(s.Annotations) }),
		handled:    onKind(func(s *v1alpha1.AddOnSource) string { return s.Status.GetLastHandledReconcileRequest() }),
		conditions: onKind(func(s *v1alpha1.AddOnSource) []metav1.Condition { return s.Status.Conditions }),
		outcome:    onKind(show.SourceOutcome),
		undo:       "spec.suspend of the AddOnSource says true: set it to false where the source is declared",
	}
}

// rolloutTarget is AddOnRollout.
func rolloutTarget() target {
	return target{
		kind: "rollout", example: "hello", fix: fixRollout, look: lookAtRollout, list: &v1alpha1.AddOnRolloutList{},
		create:   func() client.Object { return &v1alpha1.AddOnRollout{} },
		declared: onKind(func(r *v1alpha1.AddOnRollout) bool { return r.Spec.Suspend }),
		suspended: onKind(func(r *v1alpha1.AddOnRollout) bool {
			return v1alpha1.SuspendedByAnnotation(r.Annotations) || r.ReleaseRequested()
		}),
		handled:    onKind(func(r *v1alpha1.AddOnRollout) string { return r.Status.GetLastHandledReconcileRequest() }),
		conditions: onKind(func(r *v1alpha1.AddOnRollout) []metav1.Condition { return r.Status.Conditions }),
		outcome:    onKind(show.OutcomeOf),
		resumes:    "\nA release that was requested and is not complete is cancelled as well: the annotation\n" + v1alpha1.ReleaseAnnotation + " is removed.",
		undo:       "the add-on's AddOnRollout in Git says suspend: true: change it there and push",
	}
}

// fixSource is advice after a source failed.
func fixSource(program string, _ types.NamespacedName) string {
	return "fix the errors above; " + program + " lint PATH checks a directory before the next commit"
}

// fixRollout is advice after a rollout failed.
func fixRollout(program string, key types.NamespacedName) string {
	return fmt.Sprintf("%s tree %s -n %s, then fix it in Git or revert the commit", program, key.Name, key.Namespace)
}

// unlikeGit is how to make Git and a fleet that was rolled back agree again.
func unlikeGit(program string, r *v1alpha1.AddOnRollout) string {
	sha := v1alpha1.CommitOf(r.Status.Override.Leaves().Commit)
	if r.Status.Override.Kind == v1alpha1.OverrideBlocked {
		return "push other content, or take the entry out of spec.blocked of " + r.Name
	}
	return fmt.Sprintf("git revert %s, or push other content; %s history %s -n %s says what failed", sha, program, r.Name, r.Namespace)
}

// aborted reports whether an order ended the rollout.
func aborted(object client.Object) bool {
	r, ok := object.(*v1alpha1.AddOnRollout)
	return ok && r.Status.Aborted != nil
}

// lookAtRollout says what holds a rollout that is not suspended: its strategy, say.
func lookAtRollout(program string, key types.NamespacedName) string {
	return fmt.Sprintf("%s tree %s -n %s says what holds it", program, key.Name, key.Namespace)
}

// next is advice about an outcome; "": none. It advises resume only if an annotation suspends the
// object.
func (t target) next(program string, object client.Object, outcome show.Outcome) string {
	key := client.ObjectKeyFromObject(object)
	if r, ok := object.(*v1alpha1.AddOnRollout); ok && r.Status.Override.Returns() && !r.Status.Override.Waits() {
		return unlikeGit(program, r)
	}
	switch {
	case outcome == show.Failed && aborted(object):
		return fmt.Sprintf("%s retry %s -n %s to continue, or push other content", program, key.Name, key.Namespace)
	case outcome == show.Failed:
		return t.fix(program, key)
	case outcome != show.Waiting:
		return ""
	case t.declared(object):
		return t.undo
	case t.suspended(object):
		return fmt.Sprintf("%s resume %s %s -n %s", program, t.kind, key.Name, key.Namespace)
	case t.look != nil:
		return t.look(program, key)
	}
	return ""
}

// hintNext says what a person can do about an outcome, if there is something.
func (c *cli) hintNext(t target, object client.Object, outcome show.Outcome) {
	if next := t.next(c.name, object, outcome); next != "" {
		c.hint("Next: %s", next)
	}
}

// onKind reads a value of one kind; of another, its zero.
func onKind[K, T any](read func(*K) T) func(client.Object) T {
	return func(o client.Object) T {
		if value, ok := any(o).(*K); ok {
			return read(value)
		}
		var none T
		return none
	}
}

// eachTarget adds a subcommand per kind to cmd.
func (c *cli) eachTarget(cmd *cobra.Command, add func(target) *cobra.Command) *cobra.Command {
	cmd.Args = takesKind
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, t := range []target{sourceTarget(), rolloutTarget()} {
		sub := add(t)
		sub.Use = t.kind + " NAME"
		sub.Aliases = []string{t.kind + "s"}
		sub.Args = takes
		sub.ValidArgsFunction = only(c.completeNames(t.list))
		cmd.AddCommand(c.command(sub))
	}
	return cmd
}

// newSuspendCommand is `suspend`.
func newSuspendCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suspend",
		Short: "Stop a source from being read, or a rollout from admitting clusters",
	}
	return c.eachTarget(cmd, func(t target) *cobra.Command {
		return &cobra.Command{
			Short: "Suspend a " + t.kind + " with the annotation " + v1alpha1.SuspendAnnotation,
			Example: fmt.Sprintf(`  # Until resumed; what runs goes on
  addonflow suspend %[1]s %[3]s
  # The same with kubectl
  kubectl annotate addon%[1]s %[3]s %[2]s=true`, t.kind, v1alpha1.SuspendAnnotation, t.example),
			RunE: func(cmd *cobra.Command, args []string) error { return c.suspend(cmd.Context(), t, args[0]) },
		}
	})
}

// suspend sets the annotation.
func (c *cli) suspend(ctx context.Context, t target, name string) error {
	hub, key, err := c.open(name)
	if err != nil {
		return err
	}
	if _, err := annotate(ctx, hub, t, key, map[string]string{v1alpha1.SuspendAnnotation: "true"}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s %s suspended\n", t.kind, key)
	c.hint("Next: %s resume %s %s -n %s", c.name, t.kind, name, key.Namespace)
	return err
}

// newResumeCommand is `resume`.
func newResumeCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "resume", Short: "Resume a suspended source or rollout"}
	return c.eachTarget(cmd, func(t target) *cobra.Command {
		return &cobra.Command{
			Short: "Resume a " + t.kind + " by taking the annotation " + v1alpha1.SuspendAnnotation + " away",
			Long: "Resume a " + t.kind + " by taking the annotation " + v1alpha1.SuspendAnnotation + " away." + t.resumes + "\n\n" +
				"A suspend that spec declares wins: then the " + t.kind + " stays suspended, and the\nexit code is 4.",
			Example: fmt.Sprintf(`  # After a suspend on the command line
  addonflow resume %[1]s %[3]s
  # The same with kubectl
  kubectl annotate addon%[1]s %[3]s %[2]s-`, t.kind, v1alpha1.SuspendAnnotation, t.example),
			RunE: func(cmd *cobra.Command, args []string) error { return c.resume(cmd.Context(), t, args[0]) },
		}
	})
}

// resume removes the annotation; a declared suspend is stronger.
func (c *cli) resume(ctx context.Context, t target, name string) error {
	hub, key, err := c.open(name)
	if err != nil {
		return err
	}
	object, err := annotate(ctx, hub, t, key, map[string]string{v1alpha1.SuspendAnnotation: "", v1alpha1.ReleaseAnnotation: ""})
	if err != nil {
		return err
	}
	if t.declared(object) {
		return &exitError{code: exitSuspended, err: fmt.Errorf("%s %s stays suspended: %s", t.kind, key, t.undo)}
	}
	_, err = fmt.Fprintf(c.Out, "%s %s resumed\n", t.kind, key)
	return err
}

// annotate sets annotations, or takes those with an empty value away, and returns the
// object as it stands then. Other writers' fields are not touched.
func annotate(ctx context.Context, hub client.Client, t target, key types.NamespacedName, wanted map[string]string) (client.Object, error) {
	object := t.create()
	if err := hub.Get(ctx, key, object); err != nil {
		return nil, hubError("read "+t.kind+" "+key.String(), err)
	}
	base, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("cannot copy a %T", object)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for annotation, value := range wanted {
		annotations[annotation] = value
		if value == "" {
			delete(annotations, annotation)
		}
	}
	object.SetAnnotations(annotations)
	if err := hub.Patch(ctx, object, client.MergeFrom(base), client.FieldOwner("kubectl-addonflow")); err != nil {
		return nil, hubError("annotate "+t.kind+" "+key.String(), err)
	}
	return object, nil
}

// readyMessage is the Ready condition of an object in words.
func readyMessage(conditions []metav1.Condition) string {
	if ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition); ready != nil {
		return strings.TrimSpace(ready.Message)
	}
	return "nothing reported yet"
}

// rolloutKey is a rollout's name in words.
func rolloutKey(key types.NamespacedName) string { return "rollout " + key.String() }
