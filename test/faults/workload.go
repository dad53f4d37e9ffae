package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/sample"
)

// The add-ons of the reference workload. alpha is staged, upgraded, broken, reverted, upgraded
// again and removed; beta comes along and stays.
const (
	alpha = "alpha"
	beta  = "beta"
	// statusContext is the source's, and the beginning of those of its add-ons.
	statusContext = "addonflow/" + demo.SourceName
	// soak of alpha's canary.
	soak = 2 * time.Second
	// stepWithin bounds one step, faults included.
	stepWithin = 2 * time.Minute
)

// policies are the paces of the add-ons, as they are committed.
var policies = map[string]string{
	alpha: `  stages:
  - name: canary
    placement: {namespace: default, name: canary}
    maxConcurrency: 1
    minSuccessTime: 2s
    progressDeadline: 1m
  - name: early
    placement: {namespace: default, name: early}
    maxConcurrency: 1
    progressDeadline: 1m
  - name: rest
    placement: {namespace: default, name: all}
    maxConcurrency: 2
    progressDeadline: 1m
`,
	beta: `  strategy:
    type: Progressive
    progressive: {maxConcurrency: 3, progressDeadline: 1m}
`,
}

// expectations are what the oracle holds the operators to.
func expectations() oracle.Expectations {
	names := clusterNames()
	return oracle.Expectations{
		Stages: map[string][]oracle.Stage{
			alpha: {
				{Name: "canary", Clusters: names[:1], Limit: 1, Soak: soak},
				{Name: "early", Clusters: names[1:3], Limit: 1},
				{Name: "rest", Clusters: names[3:], Limit: 2},
			},
			beta: {{Name: "", Clusters: names, Limit: 3}},
		},
		HandMade: []string{
			addOnKey(names[clusters-1], alpha),
			addOnKey(names[1], "foreign"),
			"/registry/work.open-cluster-management.io/manifestworks/" + names[2] + "/foreign",
		},
		Removed: alpha,
	}
}

func addOnKey(cluster, addOn string) string {
	return "/registry/addon.open-cluster-management.io/managedclusteraddons/" + cluster + "/" + addOn
}

// workload is the reference workload in one world.
type workload struct {
	*world
	// shas are the commits that were pushed, oldest first.
	shas []string
	// standing are the hub's objects at rest: before the removal, and at the end.
	standing []map[string]string
	// expected is the undisturbed run; nil in that run.
	expected *reference
	// background are the disturbances under way; disturbed is what went wrong with them.
	background sync.WaitGroup
	noting     sync.Mutex
	disturbed  error
	// strokes counts what disturbances did.
	strokes int
	// disturb is started in the background when a step begins.
	disturb disturbance
}

// step is one step of the story.
type step struct {
	name string
	run  func(context.Context) error
}

// steps of the reference workload. An approval between canary and early, an automatic rollback
// and a recall come here, after "canary upgrade" and after "halt".
func (w *workload) steps() []step {
	var upgraded, broken string
	return []step{
		{"begin", func(ctx context.Context) error { return w.reported(ctx, w.shas[0]) }},
		{"install", func(ctx context.Context) error {
			sha, err := w.commit(ctx, "v1", map[string]string{alpha: "v1", beta: "v1"})
			return errors.Join(err, w.await(ctx, sha, v1alpha1.PhaseSucceeded, alpha, beta))
		}},
		{"canary upgrade", func(ctx context.Context) (err error) {
			upgraded, err = w.commit(ctx, "v2", map[string]string{alpha: "v2"})
			return errors.Join(err, w.await(ctx, upgraded, v1alpha1.PhaseSucceeded, alpha))
		}},
		{"halt", func(ctx context.Context) (err error) {
			broken, err = w.commit(ctx, "broken", map[string]string{alpha: "never-starts"})
			return errors.Join(err, w.await(ctx, broken, v1alpha1.PhaseFailed, alpha))
		}},
		{"revert", func(ctx context.Context) error {
			sha, err := w.Repo.Revert(broken)
			if err != nil {
				return err
			}
			w.shas = append(w.shas, sha)
			return errors.Join(w.reconcile(ctx), w.await(ctx, sha, v1alpha1.PhaseSucceeded, alpha))
		}},
		{"good upgrade", func(ctx context.Context) error {
			sha, err := w.commit(ctx, "v3", map[string]string{alpha: "v3", beta: "v2"})
			err = errors.Join(err, w.await(ctx, sha, v1alpha1.PhaseSucceeded, alpha, beta))
			return errors.Join(err, w.stand(ctx))
		}},
		{"removal", w.remove},
	}
}

// prepare places the clusters, puts foreign objects beside the operator's, and declares the
// source. The operators start afterwards.
func (w *workload) prepare(ctx context.Context) error {
	names := clusterNames()
	for name, members := range map[string][]string{"early": names[1:3], "install": names[:clusters-1]} {
		if err := w.Fleet.Place(ctx, fleet.Placement{Namespace: demo.Namespace, Name: name, Clusters: members}); err != nil {
			return err
		}
	}
	sha, err := w.Repo.Commit("begin", map[string]string{"addons/README.md": "nothing yet"})
	if err != nil {
		return err
	}
	w.shas = append(w.shas, sha)
	source, err := w.Source()
	if err != nil {
		return err
	}
	source.Spec.Interval = metav1.Duration{Duration: 10 * time.Second}
	source.Spec.CommitStatus.Address = w.forge.URL() + "/" + demo.ForgeRepository
	foreign := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: names[2], Name: "foreign"}}
	foreign.Spec.Workload.Manifests = []workv1.Manifest{{}}
	foreign.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foreign","namespace":"default"}}`)
	for _, o := range []client.Object{
		w.ForgeSecret(), source, foreign,
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: names[clusters-1], Name: alpha}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: names[1], Name: "foreign"}},
	} {
		if err := w.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// run walks through the steps, each within its time.
func (w *workload) run(ctx context.Context) error {
	for _, s := range w.steps() {
		within, cancel := context.WithTimeoutCause(ctx, stepWithin, fmt.Errorf("not done within %s", stepWithin))
		if w.disturb != nil {
			w.background.Go(func() { w.note(w.disturb(within, w, s.name)) })
		}
		err := s.run(within)
		w.background.Wait()
		cancel()
		if err := errors.Join(err, w.disturbed); err != nil {
			return fmt.Errorf("step %q: %w", s.name, err)
		}
	}
	return w.stand(ctx)
}

// stroke counts one disturbance.
func (w *workload) stroke() {
	w.noting.Lock()
	defer w.noting.Unlock()
	w.strokes++
}

// note keeps the error of a disturbance.
func (w *workload) note(err error) {
	w.noting.Lock()
	defer w.noting.Unlock()
	w.disturbed = errors.Join(w.disturbed, err)
}

// commit writes add-ons at tags, and requests a look at Git.
func (w *workload) commit(ctx context.Context, message string, tags map[string]string) (string, error) {
	files := map[string]string{}
	for addOn, tag := range tags {
		placement := "install"
		if addOn == beta {
			placement = "all"
		}
		maps.Copy(files, map[string]string{
			"addons/" + addOn + "/template.yaml": sample.Template(addOn, tag),
			"addons/" + addOn + "/addon.yaml":    sample.AddOn(addOn, placement),
			"addons/" + addOn + "/rollout.yaml":  sample.Rollout(addOn, policies[addOn]),
		})
	}
	sha, err := w.Repo.Commit(message, files)
	if err != nil {
		return "", err
	}
	w.shas = append(w.shas, sha)
	return sha, w.reconcile(ctx)
}

// reconcile requests a look at Git.
func (w *workload) reconcile(ctx context.Context) error {
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.SourceName}}
	return w.annotate(ctx, source, "reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
}

// annotate asks until the hub accepts it: a hub may be down.
func (w *workload) annotate(ctx context.Context, o client.Object, key, value string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	for {
		err := w.Client.Patch(ctx, o, patch)
		if err == nil {
			return nil
		}
		if cause := pause(ctx, 200*time.Millisecond); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// await waits until the add-ons are in the phase with the commit, and the forge has a final
// status of the source and of each add-on.
func (w *workload) await(ctx context.Context, sha string, phase v1alpha1.Phase, addOns ...string) error {
	if sha == "" {
		return errors.New("there is no commit")
	}
	for _, addOn := range addOns {
		err := w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
			status, _ := objects[rolloutKey(addOn)].Content["status"].(map[string]any)
			commit, _, _ := unstructured.NestedString(status, "target", "commit")
			return strings.HasSuffix(commit, sha) && status["phase"] == string(phase)
		})
		if err != nil {
			return fmt.Errorf("%s is not %s with %s: %w", addOn, phase, sha[:7], err)
		}
	}
	return w.reported(ctx, sha, addOns...)
}

func rolloutKey(addOn string) string {
	return "/registry/addonflow.io/addonrollouts/" + demo.Namespace + "/" + addOn
}

// reported waits until the statuses of the commit are final: the source's, and those of add-ons.
func (w *workload) reported(ctx context.Context, sha string, addOns ...string) error {
	contexts := []string{statusContext}
	for _, addOn := range addOns {
		contexts = append(contexts, statusContext+"/"+addOn)
	}
	for {
		latest := oracle.Latest(w.Forge.Log(), sha)
		open := slices.DeleteFunc(slices.Clone(contexts), func(name string) bool {
			return latest[name].State != "" && latest[name].State != "pending"
		})
		if len(open) == 0 {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s has no final status of %s: %w", open, sha[:7], err)
		}
	}
}

// remove takes alpha out of Git, and approves it.
func (w *workload) remove(ctx context.Context) error {
	sha, err := w.Repo.Remove("remove alpha", "addons/"+alpha)
	if err != nil {
		return err
	}
	w.shas = append(w.shas, sha)
	rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: alpha}}
	if err := errors.Join(w.reconcile(ctx), w.annotate(ctx, rollout, v1alpha1.ApproveRemovalAnnotation, sha)); err != nil {
		return err
	}
	names := clusterNames()
	err = w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
		return !slices.ContainsFunc(names[:clusters-1], func(name string) bool { return objects[addOnKey(name, alpha)].Content != nil })
	})
	if err != nil {
		return fmt.Errorf("%s stays installed: %w", alpha, err)
	}
	// The owner of the hand-made add-on removes it, and says so first.
	owned := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: names[clusters-1], Name: alpha}}
	if err := w.annotate(ctx, owned, oracle.GivenUp, "true"); err != nil {
		return err
	}
	if err := w.Client.Delete(ctx, owned); err != nil {
		return err
	}
	err = w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
		_, declared := objects["/registry/addon.open-cluster-management.io/clustermanagementaddons/"+alpha]
		status, _ := objects[rolloutKey(alpha)].Content["status"].(map[string]any)
		return !declared && status["phase"] == string(v1alpha1.PhaseRemoved)
	})
	if err != nil {
		return fmt.Errorf("%s is not removed: %w", alpha, err)
	}
	return w.reported(ctx, sha, alpha)
}

// convergeWithin bounds how long after the last step the hub may differ from the undisturbed run:
// retries back off, and a status whose answer was lost is looked up after a while.
const convergeWithin = 45 * time.Second

// stand waits until the hub and the forge show what they show in the undisturbed run, or for as
// long as that may take, and then for rest. It notes what the hub has then.
func (w *workload) stand(ctx context.Context) error {
	for begun := time.Now(); w.expected != nil && time.Since(begun) < convergeWithin; {
		i := len(w.standing)
		if len(oracle.Differences(w.expected.Standing[i], w.state())) == 0 && len(w.missing(i)) == 0 {
			break
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	if err := w.rest(ctx); err != nil {
		return err
	}
	revision, err := w.Hub.Revision(ctx)
	if err != nil {
		return err
	}
	if err := w.history.CatchUp(ctx, revision); err != nil {
		return err
	}
	w.standing = append(w.standing, w.state())
	return nil
}

// state is what the hub has now.
func (w *workload) state() map[string]string { return oracle.EndState(w.history.Objects(), w.names()) }

// missing are the statuses that are not, at last, those of the undisturbed run: at the first
// stand without those of the last commit, which comes after it.
func (w *workload) missing(stand int) []string {
	var missing []string
	seen := oracle.Reported(w.Forge.Log(), w.shas)
	for key, want := range w.expected.Reported {
		if stand == 0 && strings.HasPrefix(key, fmt.Sprintf("commit %d ", len(w.shas))) {
			continue
		}
		last := seen[key]
		if len(last) == 0 || last[len(last)-1] != want[len(want)-1] {
			missing = append(missing, fmt.Sprintf("%s says %q at last, in the undisturbed run %q", key, last, want))
		}
	}
	slices.Sort(missing)
	return missing
}

// names are what differs from run to run and says the same.
func (w *workload) names() *strings.Replacer {
	var pairs []string
	for i, sha := range w.shas {
		pairs = append(pairs, sha, fmt.Sprintf("<commit %d>", i), sha[:7], fmt.Sprintf("<commit %d>", i))
	}
	return strings.NewReplacer(append(pairs, w.Repo.URL(), "<git>", w.forge.URL(), "<forge>", w.Forge.URL(), "<forge>")...)
}
