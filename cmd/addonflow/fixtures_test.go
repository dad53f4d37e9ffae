package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/rollout"
)

// stage is a command line in front of a hub that lives in memory.
type stage struct {
	cli *cli
	hub client.WithWatch
	out bytes.Buffer
	err bytes.Buffer
}

// newStage returns a stage with the given objects on the hub.
func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	return newStageWith(t, interceptor.Funcs{}, objects...)
}

// newStageWith is newStage with calls that observe and change the requests of the commands.
func newStageWith(t *testing.T, between interceptor.Funcs, objects ...client.Object) *stage {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	name := func(o client.Object) []string { return []string{o.GetName()} }
	s := &stage{}
	s.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AddOnSource{}, &v1alpha1.AddOnRollout{}).
		WithIndex(&v1alpha1.AddOnSource{}, "metadata.name", name).
		WithIndex(&v1alpha1.AddOnRollout{}, "metadata.name", name).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, "metadata.name", name).
		WithInterceptorFuncs(between).Build()
	charts := renderworker.NewPool(renderworker.Options{})
	t.Cleanup(charts.Close)
	s.cli = &cli{
		charts:    charts,
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &s.out, ErrOut: &s.err},
		flags:     genericclioptions.NewConfigFlags(true),
		name:      programName,
		connect:   func() (client.WithWatch, error) { return s.hub, nil },
		explain:   explained,
		change:    changed,
		changeOn:  changed,
		now:       at,
		terminal:  func() terminal { return terminal{} },
		asks:      func() bool { return true },
	}
	// A kubeconfig of the developer's own must not decide a test.
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	return s
}

// explained is a plan with one cluster that waits.
func explained(context.Context, client.Client, types.NamespacedName) (rollout.Plan, error) {
	return rollout.Plan{Clusters: []rollout.ClusterPlan{
		{Name: "eu-01", Stage: "canary", State: rollout.Done, Revision: digest},
		{Name: "us-01", Stage: "everyone", State: rollout.Waiting, Revision: digest, Reason: "stage canary is not complete"},
	}}, nil
}

// changed is a change of one object on us-01.
func changed(ctx context.Context, hub client.Client, key types.NamespacedName, cluster string) (addonrollout.Change, error) {
	if cluster == "nosuch" {
		return addonrollout.Change{}, addonrollout.ErrNoSuchCluster
	}
	r := &v1alpha1.AddOnRollout{}
	if err := hub.Get(ctx, key, r); err != nil {
		return addonrollout.Change{}, err
	}
	to := r.Spec.Target
	if r.Status.Override != nil {
		to = r.Status.Target
	}
	if cluster == "us-02" { // it ran the target before
		return addonrollout.Change{Cluster: cluster, Clusters: 1, From: to, To: *to}, nil
	}
	object := func(tag string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello"}, "data": map[string]any{"tag": tag},
		}}}
	}
	from := &v1alpha1.Target{Commit: "main@sha1:" + strings.Repeat("0", 40)}
	return addonrollout.Change{Cluster: "us-01", Clusters: 2, From: from, To: *to, Before: object("v1"), After: object("v2")}, nil
}

// run runs a command line and returns its exit code.
func (s *stage) run(ctx context.Context, args ...string) int {
	cmd := rootOf(s.cli) //nolint:contextcheck // commands get theirs from ExecuteContext
	cmd.SetArgs(args)
	cmd.SetOut(&s.out)
	cmd.SetErr(&s.err)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	s.err.WriteString(err.Error() + "\n")
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return exitUsage
}

// rootOf is the command tree without the operator.
func rootOf(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "addonflow", SilenceUsage: true, SilenceErrors: true}
	c.addTo(cmd)
	cmd.SetFlagErrorFunc(wrongFlag)
	return cmd
}

const (
	digest = "v1:sha256:2222222222222222222222222222222222222222222222222222222222222222"
	commit = "main@sha1:2222222222222222222222222222222222222222"
)

// at is the time of every test.
func at() time.Time { return time.Date(2026, time.March, 4, 14, 30, 0, 0, time.UTC) }

// hello is a rollout in a phase.
func hello(phase v1alpha1.Phase) *v1alpha1.AddOnRollout {
	target := &v1alpha1.Target{Source: "fleet", Revision: "hello-2222222222", Digest: digest, Commit: commit}
	return &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "hello", Generation: 1, CreationTimestamp: metav1.NewTime(at().Add(-time.Hour)),
			Labels: map[string]string{v1alpha1.AddOnLabel: "hello"},
		},
		Spec: v1alpha1.AddOnRolloutSpec{Target: target},
		Status: v1alpha1.AddOnRolloutStatus{
			ObservedGeneration: 1, Phase: phase, Target: target, Message: "as it is",
			Counts:    v1alpha1.Counts{Total: 2, Updated: 1},
			ParkAfter: &metav1.Duration{Duration: time.Minute}, RemovalGracePeriod: &metav1.Duration{Duration: time.Minute},
			Stages: []v1alpha1.StageStatus{{Name: "canary", Phase: "Complete", Counts: v1alpha1.Counts{Total: 1, Updated: 1}}},
		},
	}
}

// fleetSource is a source that is ready, or not.
func fleetSource(ready metav1.ConditionStatus, message string) *v1alpha1.AddOnSource {
	return &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet", Generation: 1, CreationTimestamp: metav1.NewTime(at().Add(-time.Hour))},
		Spec:       v1alpha1.AddOnSourceSpec{URL: "https://git.example.com/fleet.git"},
		Status: v1alpha1.AddOnSourceStatus{
			ObservedGeneration: 1, LastAttemptedRevision: commit, LastAppliedRevision: commit,
			Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: ready, Message: message, Reason: "Tested"}},
		},
	}
}

// proposed is a rollout that went back, and a pull request that makes Git agree.
func proposed() *v1alpha1.AddOnRollout {
	r := hello(v1alpha1.PhaseRolledBack)
	r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *r.Spec.Target, Proposed: "https://gitea.example/team/fleet/pulls/12"}
	return r
}

// withdrawn is a rollout that went back from what Git declares to the content of an older commit.
func withdrawn() *v1alpha1.AddOnRollout {
	r := hello(v1alpha1.PhaseRolledBack)
	r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *r.Spec.Target, Reason: "halted in canary"}
	r.Status.Target = &v1alpha1.Target{Source: "fleet", Digest: "v1:sha256:11", Commit: strings.ReplaceAll(commit, "2", "1")}
	r.Status.Stable = &v1alpha1.Target{Source: "fleet", Digest: "v1:sha256:00", Commit: strings.ReplaceAll(commit, "2", "0")}
	return r
}
