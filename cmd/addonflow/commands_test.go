package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

// revision is an AddOnRevision of hello.
func revision() *v1alpha1.AddOnRevision {
	return &v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello-2222222222", CreationTimestamp: metav1.NewTime(at())},
		Spec:       v1alpha1.AddOnRevisionSpec{AddOn: "hello", Digest: digest},
	}
}

// threeEvents are those of a rollout, a source and a Pod.
func threeEvents() []client.Object {
	event := func(name, version, kind, of, level, reason, message string, seen time.Time) client.Object {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
			InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: "default", Name: of},
			Type:           level, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(seen),
		}
	}
	ours := v1alpha1.GroupVersion.String()
	return []client.Object{
		event("a", ours, v1alpha1.AddOnSourceKind, "fleet", corev1.EventTypeWarning, v1alpha1.FetchFailedReason, "cannot read", at()),
		event("b", ours, v1alpha1.AddOnRolloutKind, "hello", corev1.EventTypeNormal, v1alpha1.RolloutProgressingReason, "Canary begins", at().Add(-time.Hour)),
		event("c", "v1", "Pod", "hello", corev1.EventTypeNormal, "Pulled", "an image", at()),
	}
}

func TestReadingCommands(t *testing.T) {
	for name, c := range map[string]struct {
		args     string
		objects  []client.Object
		code     int
		out, err string
	}{
		"Rollouts": {
			args: "get rollouts", objects: []client.Object{hello(v1alpha1.PhaseProgressing)},
			out: "NAME    READY     SUSPENDED   PHASE         REVISION       UPDATED   FAILED   STAGE   AGE\n" +
				"hello   Unknown   False       Progressing   main@2222222   1/2       0        1/1     60m\n",
		},
		"AllNamespaces": {
			args: "get rollout -A --no-headers", objects: []client.Object{hello(v1alpha1.PhaseSucceeded)},
			out: "default   hello   Unknown   False   Succeeded   main@2222222   1/2   0     1/1   60m\n",
		},
		"Name":             {args: "get rollouts -o name", objects: []client.Object{hello("")}, out: "addonrollout.addonflow.io/hello\n"},
		"JSONPathOfOne":    {args: "get rollouts hello -o jsonpath={.status.phase}", objects: []client.Object{hello(v1alpha1.PhaseHeld)}, out: "Held"},
		"Selector":         {args: "get rollouts -o name -l addonflow.io/add-on=other", objects: []client.Object{hello("")}, err: "No rollouts found.\n"},
		"OtherNamespace":   {args: "get rollouts -n other", objects: []client.Object{hello("")}, err: "No rollouts found.\n"},
		"WrongSelector":    {args: "get rollouts -l a=b=c", code: exitUsage, err: "cannot read the selector"},
		"WrongFormat":      {args: "get rollouts -o fancy", code: exitUsage, err: `cannot print as "fancy": one of wide, custom-columns, custom-columns-file, json`},
		"NotFound":         {args: "get rollouts absent", objects: []client.Object{hello("")}, code: exitNotFound, err: "cannot find rollouts absent; use -n NAMESPACE for another namespace\n"},
		"Sources":          {args: "get sources --no-headers", objects: []client.Object{fleetSource("True", "applied")}, out: "fleet   True   False   main@2222222   0     60m   applied\n"},
		"Revisions":        {args: "get revisions --no-headers", objects: []client.Object{revision()}, out: "hello-2222222222   hello   –     –     0s\n"},
		"Clusters":         {args: "get clusters --no-headers", objects: []client.Object{hello("")}, out: "eu-01   hello   canary     Done      hello-2222222222   –\nus-01   hello   everyone   Waiting   hello-2222222222   stage canary is not complete\n"},
		"ClustersName":     {args: "get clusters hello -o name", objects: []client.Object{hello("")}, out: "managedcluster.cluster.open-cluster-management.io/eu-01\nmanagedcluster.cluster.open-cluster-management.io/us-01\n"},
		"ClustersNotFound": {args: "get clusters absent", code: exitNotFound, err: "cannot find clusters of rollouts absent; use -n NAMESPACE for another namespace\n"},
		"ClustersFormat":   {args: "get clusters -o fancy", code: exitUsage, err: `cannot print as "fancy": one of wide, custom-columns, custom-columns-file, json`},
		"ClustersJSONPath": {args: `get clusters -o jsonpath={range.items[?(@.state=="Waiting")]}{.metadata.name}:{.stage}{end}`, objects: []client.Object{hello("")}, out: "us-01:everyone"},
		"ClustersColumns":  {args: `get clusters hello -o go-template={{range.items}}{{.rollout}}/{{.metadata.name}};{{end}}`, objects: []client.Object{hello("")}, out: "hello/eu-01;hello/us-01;"},
		"ClustersUnseen":   {args: "get clusters --no-headers", objects: []client.Object{unseen()}, out: "eu-01   hello   canary     Done      hello-2222222222   –\nus-01   hello   everyone   Waiting   hello-2222222222   stage canary is not complete\n", err: "no operator has planned rollout default/hello yet; its times assume --park-after=10m0s and --removal-grace-period=5m0s"},
		"Why":              {args: "why hello us-01", objects: []client.Object{hello("")}, out: "us-01: Waiting in stage everyone at hello-2222222222: stage canary is not complete\n"},
		"WhyProposed":      {args: "why hello us-01", objects: []client.Object{proposed()}, out: "us-01: Waiting in stage everyone at hello-2222222222: stage canary is not complete\n", err: "this pull request makes Git agree:\n  https://gitea.example/team/fleet/pulls/12\n"},
		"TreeProposed": {args: "tree hello", objects: []client.Object{proposed()}, out: "Rollout   default/hello   ✗ RolledBack   stage 1/1\nCommit    main@2222222   stable –\nMessage   as it is\nProposed  https://gitea.example/team/fleet/pulls/12\n\n" +
			"NAME          STATUS       CLUSTERS   PROGRESS\n✗ hello       RolledBack   1/2        ██████████░░░░░░░░░░\n└─ ✔ canary   Complete     1/1        ████████████████████\n"},
		"WhyStranger":    {args: "why hello xx-01", objects: []client.Object{hello("")}, code: exitNotFound, err: `cannot find cluster "xx-01"`},
		"WhyNotFound":    {args: "why absent us-01", code: exitNotFound, err: "not found; use -n NAMESPACE for another namespace"},
		"Tree":           {args: "tree hello", objects: []client.Object{hello(v1alpha1.PhaseSucceeded)}, out: show.Style{}.Tree(hello(v1alpha1.PhaseSucceeded), at())},
		"TreeNotFound":   {args: "tree absent", code: exitNotFound, err: "cannot read rollout default/absent"},
		"Columns":        {args: "get rollouts -o custom-columns=NAME:.metadata.name,PHASE:.status.phase", objects: []client.Object{hello(v1alpha1.PhaseHeld)}, out: "NAME    PHASE\nhello   Held\n"},
		"ClustersCustom": {args: "get clusters hello -o custom-columns=C:.metadata.name --no-headers", objects: []client.Object{hello("")}, out: "eu-01\nus-01\n"},
		"NoColumns":      {args: "get rollouts -o custom-columns", code: exitUsage, err: "custom-columns format specified but no custom columns given"},
		"Diff": {
			args: "diff hello", objects: []client.Object{hello("")}, err: "From main@0000000 to main@2222222 on us-01:\n",
			out: "--- v1 ConfigMap hello\n+++ v1 ConfigMap hello\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  tag: v1\n+  tag: v2\n kind: ConfigMap\n metadata:\n   name: hello\n",
		},
		"DiffWithdrawn": {
			args: "diff hello", objects: []client.Object{withdrawn()},
			err: "From main@0000000 to main@1111111 on us-01:\nGit declares main@2222222, which is quarantined or blocked (halted in canary). What ends that: addonflow status hello -n default\n",
			out: "--- v1 ConfigMap hello\n+++ v1 ConfigMap hello\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  tag: v1\n+  tag: v2\n kind: ConfigMap\n metadata:\n   name: hello\n",
		},
		"DiffOfTheSame": {args: "diff hello us-02", objects: []client.Object{hello("")}, err: "This rollout does not change us-02, which ran the content of main@2222222 before.\n"},
		"WhyWithdrawn": {
			args: "why hello eu-01", objects: []client.Object{withdrawn()}, out: "eu-01: Done in stage canary at hello-2222222222\n",
			err: "Git declares main@2222222, which is quarantined or blocked (halted in canary). What ends that: addonflow status hello -n default\n",
		},
		"DiffNoSuchCluster": {args: "diff hello nosuch", objects: []client.Object{hello("")}, code: exitNotFound, err: `cannot find cluster "nosuch" in rollout default/hello`},
		"DiffNotFound":      {args: "diff absent", code: exitNotFound, err: "cannot read rollout default/absent"},
		"DiffArguments":     {args: "diff", code: exitUsage, err: "accepts between 1 and 2 arg(s), received 0"},
		"Events":            {args: "events --no-headers", objects: threeEvents(), out: "60m   Normal    RolloutProgressing   addonrollout/hello   Canary begins\n0s    Warning   FetchFailed          addonsource/fleet    cannot read\n"},
		"EventsOfOne":       {args: "events hello -o custom-columns=R:.reason --no-headers", objects: threeEvents(), out: "RolloutProgressing\n"},
		"EventsOfAbsent":    {args: "events absent", objects: threeEvents(), err: "No events found.\n"},
		"TooFewArguments":   {args: "tree", code: exitUsage, err: `cannot run "addonflow tree" with 0 arguments: it takes ROLLOUT; see addonflow tree --help`},
		"TooManyArguments":  {args: "why hello us-01 us-02", code: exitUsage, err: "with 3 arguments: it takes ROLLOUT and CLUSTER; see addonflow why --help"},
		"ArgumentsOfKind":   {args: "suspend source", code: exitUsage, err: `cannot run "addonflow suspend source" with 0 arguments: it takes NAME`},
		"UnknownFlag":       {args: "tree hello --colour", code: exitUsage, err: "unknown flag: --colour; see addonflow tree --help"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.objects...)
			if code := s.run(t.Context(), strings.Fields(c.args)...); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, s.err.String())
			}
			if diff := cmp.Diff(c.out, s.out.String()); diff != "" {
				t.Errorf("stdout:\n%s", diff)
			}
			if got := s.err.String(); !strings.Contains(got, c.err) || c.err == "" && got != "" {
				t.Errorf("stderr %q, want %q", got, c.err)
			}
		})
	}
}

// TestMissingRevisionIsExplained: a warning names the missing revision and the fix; the rest of the output does not
// change.
func TestMissingRevisionIsExplained(t *testing.T) {
	for name, target := range map[string]bool{"Target": true, "Old": false} {
		for args, want := range map[string]string{
			"why hello us-01":           "us-01: Waiting in stage everyone at hello-2222222222: stage canary is not complete\n",
			"get clusters --no-headers": "eu-01   hello   canary     Done      hello-2222222222   –\nus-01   hello   everyone   Waiting   hello-2222222222   stage canary is not complete\n",
		} {
			t.Run(name+"/"+args, func(t *testing.T) {
				s := newStage(t, hello(""))
				s.cli.explain = func(ctx context.Context, c client.Client, key types.NamespacedName) (rollout.Plan, error) {
					plan, _ := explained(ctx, c, key)
					return plan, &addonrollout.MissingError{Target: target, Details: []string{"revision is missing: hello-2222222222"}}
				}
				if code := s.run(t.Context(), strings.Fields(args)...); code != 0 {
					t.Errorf("exit code %d; %s", code, s.err.String())
				}
				if diff := cmp.Diff(want, s.out.String()); diff != "" {
					t.Errorf("everything else is still shown:\n%s", diff)
				}
				said := s.err.String()
				if !strings.Contains(said, "warning: rollout default/hello: revision is missing: hello-2222222222") {
					t.Errorf("stderr does not name it: %q", said)
				}
				if got := strings.Contains(said, "Next: addonflow reconcile source fleet -n default"); got != target {
					t.Errorf("stderr %q", said)
				}
			})
		}
	}
}

// TestOneRolloutDoesNotHideTheOthers: what cannot be planned is an error at the end.
func TestOneRolloutDoesNotHideTheOthers(t *testing.T) {
	other := hello("")
	other.Name = "alpha"
	s := newStage(t, other, hello(""))
	s.cli.explain = func(ctx context.Context, c client.Client, key types.NamespacedName) (rollout.Plan, error) {
		if key.Name == "alpha" {
			return rollout.Plan{}, errors.New("two owners")
		}
		return explained(ctx, c, key)
	}
	if code := s.run(t.Context(), "get", "clusters", "--no-headers"); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if strings.Count(s.out.String(), "hello-2222222222") != 2 || !strings.Contains(s.err.String(), "cannot plan rollout default/alpha: two owners") {
		t.Errorf("stdout %q, stderr %q", s.out.String(), s.err.String())
	}
}

func TestStatusExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		phase v1alpha1.Phase
		args  []string
		want  int
	}{
		"Succeeded":          {v1alpha1.PhaseSucceeded, nil, 0},
		"SucceededWatched":   {v1alpha1.PhaseSucceeded, []string{"--watch"}, 0},
		"Failed":             {v1alpha1.PhaseFailed, nil, exitFailed},
		"FailedWatched":      {v1alpha1.PhaseFailed, []string{"--watch"}, exitFailed},
		"Suspended":          {v1alpha1.PhaseSuspended, []string{"--watch"}, exitSuspended},
		"Held":               {v1alpha1.PhaseHeld, nil, exitSuspended},
		"Progressing":        {v1alpha1.PhaseProgressing, nil, exitTimeout},
		"ProgressingWatched": {v1alpha1.PhaseProgressing, []string{"--watch", "--timeout", "1ms"}, exitTimeout},
		"TimeoutAlone":       {v1alpha1.PhaseProgressing, []string{"--timeout", "1s"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, hello(c.phase))
			if got := s.run(t.Context(), append([]string{"status", "hello"}, c.args...)...); got != c.want {
				t.Errorf("exit code %d, want %d; %s", got, c.want, s.err.String())
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	down := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
	}
	for _, args := range []string{
		"get sources", "get rollouts -w", "get clusters", "tree hello", "tree hello -w", "status hello", "status hello -w",
		"why hello eu-01", "suspend rollout hello", "resume source fleet", "reconcile source fleet",
	} {
		t.Run(args, func(t *testing.T) {
			s := newStageWith(t, down)
			if code := s.run(t.Context(), strings.Fields(args)...); code != exitUnreachable {
				t.Errorf("exit code %d, want %d", code, exitUnreachable)
			}
			if s.out.Len() > 0 || !strings.Contains(s.err.String(), "connection refused") {
				t.Errorf("stdout %q, stderr %q", s.out.String(), s.err.String())
			}
		})
	}
}

func TestClustersJSON(t *testing.T) {
	s := newStage(t, hello(""))
	if code := s.run(t.Context(), "get", "clusters", "-o", "json"); code != 0 {
		t.Fatal(s.err.String())
	}
	want := `{
    "apiVersion": "v1",
    "items": [
        {
            "apiVersion": "addonflow.io/v1alpha1",
            "kind": "RolloutCluster",
            "metadata": {
                "name": "eu-01",
                "namespace": "default"
            },
            "revision": "hello-2222222222",
            "rollout": "hello",
            "stage": "canary",
            "state": "Done"
        },
        {
            "apiVersion": "addonflow.io/v1alpha1",
            "kind": "RolloutCluster",
            "metadata": {
                "name": "us-01",
                "namespace": "default"
            },
            "reason": "stage canary is not complete",
            "revision": "hello-2222222222",
            "rollout": "hello",
            "stage": "everyone",
            "state": "Waiting"
        }
    ],
    "kind": "List",
    "metadata": {
        "resourceVersion": ""
    }
}
`
	if diff := cmp.Diff(want, s.out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestListsAreListsInEveryFormat: get prints a list object in every format, also if the list is empty.
func TestListsAreListsInEveryFormat(t *testing.T) {
	for args, want := range map[string]string{
		"get sources -o json":           `"kind": "AddOnSourceList"`,
		"get rollouts -o yaml":          "kind: AddOnRolloutList",
		"get revisions -o json":         `"kind": "AddOnRevisionList"`,
		"get clusters -o yaml":          "kind: List",
		"get clusters hello -o json":    `"kind": "List"`,
		"get rollouts -n other -o json": `"items": []`,
		"get clusters -n other -o json": `"items": []`,
	} {
		t.Run(args, func(t *testing.T) {
			s := newStage(t, hello(""), fleetSource("True", "applied"), revision())
			if code := s.run(t.Context(), strings.Fields(args)...); code != 0 || !strings.Contains(s.out.String(), want) {
				t.Errorf("exit code %d, %q does not hold %q", code, s.out.String(), want)
			}
		})
	}
}

// unseen is a rollout that no operator has planned.
func unseen() *v1alpha1.AddOnRollout {
	r := hello("")
	r.Status.ParkAfter, r.Status.RemovalGracePeriod = nil, nil
	return r
}

// TestStatusAndReconcileReportTheSameOutcome compares both commands for every state of a rollout.
func TestStatusAndReconcileReportTheSameOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		phase     v1alpha1.Phase
		suspended bool
		condition string
		want      int
	}{
		"Succeeded":          {"done", v1alpha1.PhaseSucceeded, false, "", 0},
		"SucceededSuspended": {"a suspended rollout that is done is done", v1alpha1.PhaseSucceeded, true, "", 0},
		"Failed":             {"stopped", v1alpha1.PhaseFailed, false, meta.StalledCondition, exitFailed},
		"FailedSuspended":    {"resuming it would not help", v1alpha1.PhaseFailed, true, meta.StalledCondition, exitFailed},
		"Held":               {"green for the commit, but not where the target is to go", v1alpha1.PhaseHeld, false, "", exitSuspended},
		"HeldSuspended":      {"waits for two decisions", v1alpha1.PhaseHeld, true, "", exitSuspended},
		"Suspended":          {"half-way", v1alpha1.PhaseSuspended, true, "", exitSuspended},
		"Stalled":            {"only a change helps", v1alpha1.PhaseProgressing, false, meta.StalledCondition, exitFailed},
		"Progressing":        {"moves by itself", v1alpha1.PhaseProgressing, false, meta.ReconcilingCondition, exitTimeout},
		"Removed":            {"removed as asked", v1alpha1.PhaseRemoved, false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := hello(c.phase)
			r.Spec.Suspend = c.suspended
			r.Status.SetLastHandledReconcileRequest("2026-03-04T14:30:00Z")
			ready := metav1.ConditionUnknown
			if c.want == 0 || c.phase == v1alpha1.PhaseHeld {
				ready = metav1.ConditionTrue
			}
			r.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: ready, Reason: "Tested"}}
			if c.condition != "" {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: c.condition, Status: metav1.ConditionTrue, Reason: "Tested"})
			}
			for _, args := range []string{"status hello", "status hello --watch --timeout 1ms", "reconcile rollout hello --wait --timeout 1ms"} {
				s := newStage(t, r.DeepCopy())
				if code := s.run(t.Context(), strings.Fields(args)...); code != c.want {
					t.Errorf("%s: %s: exit code %d, want %d; %s", c.reason, args, code, c.want, s.err.String())
				}
			}
		})
	}
}

// TestHelpOfACommandHasItsOwnFlags: kubectl's are the same for all commands, and are listed once.
func TestHelpOfACommandHasItsOwnFlags(t *testing.T) {
	s := newStage(t)
	root := newRootCommand()
	root.SetOut(&s.out)
	root.SetArgs([]string{"rollback", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"--with-crds": true, "--namespace": true, "addonflow options": true, "--kubeconfig": false, "--as-group": false} {
		if got := strings.Contains(s.out.String(), text); got != want {
			t.Errorf("the help of rollback has %s: %t, want %t\n%s", text, got, want, s.out.String())
		}
	}
	s.out.Reset()
	if code := s.run(t.Context(), "options"); code != 0 || !strings.Contains(s.out.String(), "--kubeconfig") || !strings.Contains(s.out.String(), "--as-group") {
		t.Errorf("exit code %d; options prints\n%s", code, s.out.String())
	}
}

// TestHelpGroupsCommandsByPurpose: every command is in a group, but for those about the program itself.
func TestHelpGroupsCommandsByPurpose(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		alone := slices.Contains([]string{"completion", "help", "options", "version"}, cmd.Name()) || cmd.Hidden
		if (cmd.GroupID == "") != alone {
			t.Errorf("%s is in the group %q", cmd.Name(), cmd.GroupID)
		}
	}
}

func TestHelp(t *testing.T) {
	s := newStage(t)
	for _, cmd := range rootOf(s.cli).Commands() {
		if cmd.Name() == "controller" {
			continue // it is run by a Deployment, not by a person
		}
		leaves := cmd.Commands()
		if len(leaves) == 0 {
			leaves = append(leaves, cmd)
		}
		for _, leaf := range leaves {
			if leaf.Example == "" || !strings.Contains(leaf.Long, "Exit codes:") {
				t.Errorf("%s has no example or does not say its exit codes", leaf.CommandPath())
			}
		}
	}
}
