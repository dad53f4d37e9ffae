package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// target is a kind that users suspend, resume and reconcile by annotation.
type target struct {
	kind   string // in `suspend KIND NAME`
	list   client.ObjectList
	create func() client.Object
	// declared reports whether the spec suspends the object.
	declared func(client.Object) bool
	// handled is the value of the last reconcile request that was carried out.
	handled func(client.Object) string
	// outcome is the outcome of the object for a script.
	outcome func(client.Object) show.Outcome
	// conditions of the object.
	conditions func(client.Object) []metav1.Condition
	example    string
	// advice lists the actions that a user can take for an object that failed or waits, the most useful first.
	// program is the name by which the user called this program.
	advice func(program string, object client.Object) []show.Advice
	// resumes names what resume ends besides a suspend.
	resumes string
	// differs is the text that reconcile --wait adds to the outcome.
	differs string
}

func sourceTarget() target {
	return target{
		kind: "source", example: "fleet", list: &v1alpha1.AddOnSourceList{},
		create:     func() client.Object { return &v1alpha1.AddOnSource{} },
		declared:   onKind(func(s *v1alpha1.AddOnSource) bool { return s.Spec.Suspend }),
		handled:    onKind(func(s *v1alpha1.AddOnSource) string { return s.Status.GetLastHandledReconcileRequest() }),
		conditions: onKind(func(s *v1alpha1.AddOnSource) []metav1.Condition { return s.Status.Conditions }),
		outcome:    onKind(show.SourceOutcome),
		advice: func(program string, object client.Object) []show.Advice {
			return onKind(func(s *v1alpha1.AddOnSource) []show.Advice { return show.NextOfSource(program, s) })(object)
		},
		differs: " If the commit\nis applied, but clusters were rolled back from content that it declares, the exit code is 4.\n\n" +
			"The outcome of a source is that of its commit: applied or refused. The rollouts and removals\n" +
			"that the commit starts take longer: wait for them with reconcile rollout. A released add-on\n" +
			"is handed over when its AddOnRollout is gone: kubectl wait --for=delete addonrollout NAME.",
	}
}

func rolloutTarget() target {
	return target{
		kind: "rollout", example: "hello", list: &v1alpha1.AddOnRolloutList{},
		create:     func() client.Object { return &v1alpha1.AddOnRollout{} },
		declared:   onKind(func(r *v1alpha1.AddOnRollout) bool { return r.Spec.Suspend }),
		handled:    onKind(func(r *v1alpha1.AddOnRollout) string { return r.Status.GetLastHandledReconcileRequest() }),
		conditions: onKind(func(r *v1alpha1.AddOnRollout) []metav1.Condition { return r.Status.Conditions }),
		outcome:    onKind(show.OutcomeOf),
		advice: func(program string, object client.Object) []show.Advice {
			return onKind(func(r *v1alpha1.AddOnRollout) []show.Advice { return show.Next(program, r) })(object)
		},
		resumes: "\nA release that was requested and is not complete is cancelled as well: the annotation\n" + v1alpha1.ReleaseAnnotation + " is removed.",
	}
}

// hintNext prints the actions that a user can take for an object that failed or waits, or whose clusters differ from
// Git.
func (c *cli) hintNext(t target, object client.Object, outcome show.Outcome) {
	r, ok := object.(*v1alpha1.AddOnRollout)
	differs := ok && r.Status.Override.Returns()
	if outcome != show.Failed && outcome != show.Waiting && !differs {
		return
	}
	c.hintAll(t.advice(c.name, object))
}

// hintAll prints actions, the most useful first.
func (c *cli) hintAll(advice []show.Advice) {
	first := "Next"
	for _, a := range advice {
		c.hint("%s: %s", first, a.Text)
		if a.Command != "" {
			c.hint("  %s", a.Command)
		}
		first = "Or"
	}
}

// onKind reads a value of one kind. For another kind it returns zero.
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

func newResumeCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "resume", Short: "Resume a suspended source or rollout"}
	return c.eachTarget(cmd, func(t target) *cobra.Command {
		return &cobra.Command{
			Short: "Resume a " + t.kind + " by removing the annotation " + v1alpha1.SuspendAnnotation,
			Long: "Resume a " + t.kind + " by removing the annotation " + v1alpha1.SuspendAnnotation + "." + t.resumes + "\n\n" +
				"A suspend that spec declares wins: then the " + t.kind + " stays suspended, and the\nexit code is 4.",
			Example: fmt.Sprintf(`  # After a suspend on the command line
  addonflow resume %[1]s %[3]s
  # The same with kubectl
  kubectl annotate addon%[1]s %[3]s %[2]s-`, t.kind, v1alpha1.SuspendAnnotation, t.example),
			RunE: func(cmd *cobra.Command, args []string) error { return c.resume(cmd.Context(), t, args[0]) },
		}
	})
}

// resume removes the annotation. A suspend in the spec stays.
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
		c.hintNext(t, object, show.Waiting)
		return &exitError{code: exitSuspended, err: fmt.Errorf("%s %s stays suspended: its spec says suspend: true", t.kind, key)}
	}
	_, err = fmt.Fprintf(c.Out, "%s %s resumed\n", t.kind, key)
	return err
}

// annotate sets annotations, or removes those with an empty value, and returns the updated object. It does not change
// fields of other writers.
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

// readyMessage is the text of the Ready condition of an object.
func readyMessage(conditions []metav1.Condition) string {
	if ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition); ready != nil {
		return show.Lines(ready.Message)
	}
	return "nothing reported yet"
}

func rolloutKey(key types.NamespacedName) string { return "rollout " + key.String() }
