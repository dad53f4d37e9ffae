package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	"github.com/addonflow/addonflow/show"
)

type orderOptions struct {
	*cli
	verb     v1alpha1.OrderVerb
	reason   string
	to       string
	withCRDs bool
	timeout  time.Duration
}

func newRetryCommand(c *cli) *cobra.Command {
	o := &orderOptions{cli: c, verb: v1alpha1.OrderRetry}
	cmd := o.command("retry ROLLOUT [CLUSTER...]", "Give clusters that failed another attempt with the same content",
		`Without CLUSTER, every cluster that failed. Gates need new verdicts in the new attempt.`, `  # After the registry is back
  addonflow retry hello -m "registry is back"
  # One cluster
  addonflow retry hello eu-west-7`)
	cmd.Args = atLeastARollout
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var arguments *v1alpha1.OrderArguments
		if len(args) > 1 {
			arguments = &v1alpha1.OrderArguments{Clusters: args[1:]}
		}
		return o.give(cmd.Context(), args[0], arguments)
	}
	return c.command(cmd)
}

func newPromoteCommand(c *cli) *cobra.Command {
	o := &orderOptions{cli: c, verb: v1alpha1.OrderPromote}
	cmd := o.command("promote ROLLOUT STAGE", "End the soak of a stage",
		`The clusters that are soaking in the stage now are done. Others soak as declared.`, `  # The canary has been looked at
  addonflow promote hello canary -m "dashboards are fine"`)
	cmd.Args = takes
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.give(cmd.Context(), args[0], &v1alpha1.OrderArguments{Stage: args[1]})
	}
	return c.command(cmd)
}

func newAbortCommand(c *cli) *cobra.Command {
	o := &orderOptions{cli: c, verb: v1alpha1.OrderAbort}
	cmd := o.command("abort ROLLOUT", "End a rollout as Failed",
		`Clusters keep what they run, also with onFailure: Rollback. To continue, retry, or push other content.`, `  # No further cluster gets this content
  addonflow abort hello -m "wrong region"`)
	cmd.Args = takes
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.give(cmd.Context(), args[0], nil) }
	return c.command(cmd)
}

func newRollbackCommand(c *cli) *cobra.Command {
	o := &orderOptions{cli: c, verb: v1alpha1.OrderRollback}
	cmd := o.command("rollback ROLLOUT", "Roll content back, also content that was green",
		`Quarantines the content that is rolled out, and moves its clusters to the newest content that
succeeded before, or to that of --to. Until it is unblocked, no commit can roll the content out
again. The fleet then differs from Git: revert the commit, or push other content.`, `  # It leaks memory after a week
  addonflow rollback hello -m "leaks memory"
  # To the content of a commit
  addonflow rollback hello --to 9f3c2ab -m "leaks memory since 1.4"`)
	cmd.Args = takes
	cmd.Flags().StringVar(&o.to, "to", "", "The content to return to: its commit or digest, or at least seven digits that one of them begins with.")
	cmd.Flags().BoolVar(&o.withCRDs, "with-crds", false, "Permit that CustomResourceDefinitions are changed. None is ever removed.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(o.reason) == "" {
			return &exitError{code: exitUsage, err: errors.New("cannot roll back without a reason; say it with -m")}
		}
		var arguments *v1alpha1.OrderArguments
		if o.to != "" || o.withCRDs {
			arguments = &v1alpha1.OrderArguments{To: o.destination(), WithCRDs: o.withCRDs}
		}
		return o.give(cmd.Context(), args[0], arguments)
	}
	return c.command(cmd)
}

func newUnblockCommand(c *cli) *cobra.Command {
	o := &orderOptions{cli: c, verb: v1alpha1.OrderUnblock}
	cmd := o.command("unblock ROLLOUT [DIGEST]", "End the quarantine of content",
		`Without DIGEST, of the content that Git declares. The first digits of a digest are enough.`, `  # The failure was elsewhere
  addonflow unblock hello -m "the registry was down"`)
	cmd.Args = atLeastARollout
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			o.to = args[1]
		}
		return o.give(cmd.Context(), args[0], nil)
	}
	return c.command(cmd)
}

// atLeastARollout requires the name of a rollout; further arguments are optional.
func atLeastARollout(cmd *cobra.Command, args []string) error {
	most := len(strings.Fields(cmd.Use)) - 1
	if len(args) > 0 && (len(args) <= most || strings.HasSuffix(cmd.Use, "...]")) {
		return nil
	}
	return fmt.Errorf("cannot run %q with %s: it takes %s; see %s --help",
		cmd.CommandPath(), brief.Count(len(args), "argument"), strings.Join(strings.Fields(cmd.Use)[1:], " "), cmd.CommandPath())
}

// command returns the common part of the commands.
func (o *orderOptions) command(use, short, effect, examples string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: examples,
		Long: short + `.

` + effect + `

Creates an AddOnOrder with your own credentials. The API server proves that its author is you. The
operator carries it out once, or refuses it, and says so in its status and in the rollout's journal.`,
		ValidArgsFunction: only(o.completeNames(&v1alpha1.AddOnRolloutList{})),
	}
	cmd.Flags().StringVarP(&o.reason, "message", "m", "", "The reason, stored in the AddOnOrder and the journal.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "How long to wait for the operator's answer; 0: do not wait.")
	return cmd
}

// give creates the order and waits for the answer.
func (o *orderOptions) give(ctx context.Context, name string, arguments *v1alpha1.OrderArguments) error {
	hub, r, err := o.rollout(ctx, name)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(r)
	digest, err := o.subject(ctx, hub, r)
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := hub.Create(ctx, review); err != nil {
		return hubError("ask the hub for your user name", err)
	}
	order := &v1alpha1.AddOnOrder{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: r.Name + "-" + string(o.verb) + "-"},
		Spec: v1alpha1.AddOnOrderSpec{
			RolloutUID: r.UID, Rollout: r.Name, Verb: o.verb, Digest: digest, Attempt: max(r.Status.Attempt, 1),
			Arguments: arguments, Author: review.Status.UserInfo.Username, Reason: o.reason,
		},
	}
	if err := hub.Create(ctx, order, client.FieldOwner("kubectl-addonflow")); err != nil {
		return hubError(string(o.verb)+" "+rolloutKey(key), err)
	}
	if _, err := fmt.Fprintf(o.Out, "%s: %s ordered by %s (AddOnOrder %s)\n", rolloutKey(key), o.verb, order.Spec.Author, order.Name); err != nil {
		return err
	}
	return o.answer(ctx, hub, r, order)
}

// subject is the digest of the content that the order is about.
func (o *orderOptions) subject(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout) (string, error) {
	switch {
	case r.Spec.Target == nil || r.Status.Target == nil:
		return "", &exitError{code: exitTimeout, err: fmt.Errorf("cannot %s: the operator has not planned %s yet; repeat the command later", o.verb, r.Name)}
	case o.verb != v1alpha1.OrderUnblock:
		return r.Status.Target.Digest, nil
	case o.to != "":
		return o.named(ctx, hub, r)
	}
	return r.Spec.Target.Digest, nil
}

// destination is the --to of an order. Of an incomplete digest it returns only the digits, like those of a commit:
// the operator finds the content, and the user needs no right to list contents.
func (o *orderOptions) destination() string {
	if digits := o.to[strings.LastIndex(o.to, ":")+1:]; len(digits) < 64 {
		return digits
	}
	return o.to
}

// wholeDigest matches a complete digest.
var wholeDigest = regexp.MustCompile(`^v[0-9]+:sha256:[0-9a-f]{64}$`)

// named is the digest that the user named by its first digits, which is the form in which digests are shown. A
// complete digest needs no right to list contents.
func (o *orderOptions) named(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout) (string, error) {
	if wholeDigest.MatchString(o.to) {
		return o.to, nil
	}
	var list v1alpha1.AddOnRevisionList
	if err := hub.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return "", hubError("list AddOnRevisions", err)
	}
	known := map[string]bool{}
	add := func(digest string) {
		if strings.HasPrefix(digest, o.to) || strings.HasPrefix(digest[strings.LastIndex(digest, ":")+1:], o.to) {
			known[digest] = true
		}
	}
	for i := range list.Items {
		if list.Items[i].Spec.AddOn == r.Name {
			add(list.Items[i].Spec.Digest)
		}
	}
	add(r.Spec.Target.Digest)
	for _, entry := range r.Status.History {
		add(entry.Target.Digest) // its revision may be deleted
	}
	switch found := slices.Sorted(maps.Keys(known)); len(found) {
	case 0:
		return "", &exitError{code: exitNotFound, err: fmt.Errorf("cannot %s: no content of %s has a digest that begins with %q; see %s history %s -n %s",
			o.verb, r.Name, o.to, o.name, r.Name, r.Namespace)}
	case 1:
		return found[0], nil
	default:
		return "", &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: several digests begin with %q: %s", o.verb, o.to, strings.Join(found, ", "))}
	}
}

// answer waits for the operator's answer and prints it. While the rollout is suspended, the order moves no cluster.
func (o *orderOptions) answer(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout, order *v1alpha1.AddOnOrder) error {
	if o.timeout == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(order)
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, o.timeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, key, order); err != nil {
			return false, err
		}
		return order.Status.State != "", nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		return &exitError{code: exitTimeout, err: fmt.Errorf("no answer within %s; see AddOnOrder %s in namespace %s", o.timeout, key.Name, key.Namespace)}
	case err != nil:
		return hubError("read AddOnOrder "+key.String(), err)
	case order.Status.State == v1alpha1.OrderRefused:
		return &exitError{code: exitFailed, err: fmt.Errorf("refused: %s", order.Status.Message)}
	}
	if _, err = fmt.Fprintf(o.Out, "carried out: %s\n", order.Status.Message); err != nil || o.verb == v1alpha1.OrderAbort {
		return err
	}
	o.hintAll(show.Resume(o.name, r))
	return nil
}
