package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/sample"
)

// The add-ons of the reference workload. alpha is staged, and goes through everything that can
// happen to a rollout; beta comes along, has agents that register, and stays.
const (
	alpha = "alpha"
	beta  = "beta"
	// neverStarts and degrades are contents that fail: the pods of the first do not start, and the
	// measurement of the second is bad. stopped is held by a window, and aborted; refused is of a commit with an error.
	neverStarts = "never-starts"
	degrades    = "degrades"
	stopped     = "stopped"
	refused     = "refused"
	// statusContext is the source's, and the beginning of those of its add-ons.
	statusContext = "addonflow/" + demo.SourceName
	// soak of alpha's canary.
	soak = 2 * time.Second
	// stepWithin bounds one step, faults included.
	stepWithin = 2 * time.Minute
)

// The gates of alpha, before the stage after the canary: an approval, a webhook, a window and a measurement.
// Content that rolls back has the measurement in the canary, while it soaks.
const (
	canaryStage = "canary"
	earlyStage  = "early"
	approvalOf  = "qa"
	windowOf    = "hours"
)

// pace of alpha, as it is committed.
const pace = `  onFailure: FAILURE
  stages:
  - name: canary
    placement: {namespace: default, name: canary}
    maxConcurrency: 1
    minSuccessTime: SOAK
    progressDeadline: 1m
DURING
  - name: early
    placement: {namespace: default, name: early}
    maxConcurrency: 1
    progressDeadline: 1m
    gates:
      before:
      - name: qa
        type: approval
        approval: {}
      - name: board
        type: webhook
        interval: 1s
        webhook: {url: "WEBHOOK/board?key=PLANTED", secretRef: {name: board}}
      - name: hours
        type: window
        window: {timeZone: UTC, HOURS: [{cron: "0 0 1 MONTH *", duration: 1h}]}
MEASURED
  - name: rest
    placement: {namespace: default, name: all}
    maxConcurrency: 2
    progressDeadline: 1m
`

// measured is the gate with a measurement.
const measured = `      - name: errors
        type: prometheus
        interval: 1s
        prometheus: {address: "PROMETHEUS", query: "errors{$moved}", max: 0.5}`

// betaPace is beta's.
const betaPace = `  strategy:
    type: Progressive
    progressive: {maxConcurrency: 3, progressDeadline: 1m}
`

// betaReader is the role of beta's agents.
const betaReader = "beta-reader"

// betaRegistration makes beta's agents register with the hub.
const betaRegistration = `spec:
  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster: {clusterRoleName: ` + betaReader + `}
`

// content of a commit: the image tag of each add-on, and the values of alpha's pace that vary.
type content struct {
	tags    map[string]string
	failure v1alpha1.FailureAction
	soak    time.Duration
	// closed: the window of the second stage is closed for weeks.
	closed bool
}

// expectations are what the oracle holds the operators to.
func expectations(p point) oracle.Expectations {
	names := clusterNames()
	return oracle.Expectations{
		Stages: map[string][]oracle.Stage{
			alpha: {
				{Name: canaryStage, Clusters: names[:1], Placements: placed("canary"), Limit: 1, Soak: soak},
				{Name: earlyStage, Clusters: names[1:3], Placements: placed("early"), Limit: 1, Approval: approvalOf},
				{Name: "rest", Clusters: names[3:], Placements: placed("all"), Limit: 2},
			},
			beta: {{Name: "", Clusters: names, Limit: 3}},
		},
		HandMade: []string{
			addOnKey(names[clusters-1], alpha),
			addOnKey(names[1], "foreign"),
			"/registry/work.open-cluster-management.io/manifestworks/" + names[2] + "/foreign",
		},
		Confined: []string{":" + neverStarts, ":" + degrades, ":" + stopped},
		Refused:  []string{":" + refused},
		Removed:  alpha,
		Gone:     p.gone,
	}
}

func addOnKey(cluster, addOn string) string {
	return "/registry/addon.open-cluster-management.io/managedclusteraddons/" + cluster + "/" + addOn
}

// placed are the keys of the placements that select the clusters of one of alpha's stages.
func placed(stage string) []string {
	return []string{demo.Namespace + "/" + stage, demo.Namespace + "/install"}
}

// workload is the reference workload in one world.
type workload struct {
	*world
	// shas are the commits that were pushed, oldest first.
	shas []string
	// standing are the hub's objects at rest: before the removal, and at the end.
	standing []map[string]string
	// klusterlets are the clients of the clusters.
	klusterlets map[string]client.Client
	// timings are how long the steps took.
	timings []string
	// expected is the undisturbed run; nil in that run.
	expected *reference
	// background waits for the disturbances that are running; disturbed has their errors.
	background sync.WaitGroup
	noting     sync.Mutex
	disturbed  error
	// strokes counts what disturbances did, and undo the writes that undo changes by hand, by kind.
	strokes int
	undo    map[string]int
	// point is what goes wrong. Its disturbance is started in the background when a step begins. disturbedAt is the
	// commit at whose gate a disturbance was last.
	point       point
	disturbedAt string
}

// step is one step of the story.
type step struct {
	name string
	run  func(context.Context) error
}

// steps of the reference workload.
func (w *workload) steps() []step {
	succeeds := func(c content) func(context.Context) error {
		return func(ctx context.Context) error { return w.succeed(ctx, c) }
	}
	tag := func(of string) map[string]string { return map[string]string{alpha: of} }
	var broken string
	return []step{
		{"begin", func(ctx context.Context) error { return w.reported(ctx, w.shas[0]) }},
		{"install", func(ctx context.Context) error {
			return errors.Join(w.succeed(ctx, content{tags: map[string]string{alpha: "v1", beta: "v1"}}), w.register(ctx))
		}},
		{upgradeStep, func(ctx context.Context) error {
			sha, err := w.commit(ctx, content{tags: tag("v2")})
			if err != nil {
				return err
			}
			if err := w.suspend(ctx, sha); err != nil {
				return err
			}
			return errors.Join(w.approve(ctx, sha), w.await(ctx, sha, v1alpha1.PhaseSucceeded, alpha))
		}},
		{"halt", func(ctx context.Context) (err error) {
			if broken, err = w.commit(ctx, content{tags: tag(neverStarts)}); err != nil {
				return err
			}
			return w.await(ctx, broken, v1alpha1.PhaseFailed, alpha)
		}},
		{revertStep, func(ctx context.Context) error {
			sha, err := w.Repo.Revert(broken)
			if err != nil {
				return err
			}
			w.shas = append(w.shas, sha)
			return errors.Join(w.reconcile(ctx), w.await(ctx, sha, v1alpha1.PhaseSucceeded, alpha))
		}},
		{"rollback", func(ctx context.Context) error {
			// The canary soaks when the measurement turns bad, however late that is.
			sha, err := w.commit(ctx, content{tags: tag(degrades), failure: v1alpha1.OnFailureRollback, soak: time.Hour})
			return errors.Join(err, w.await(ctx, sha, v1alpha1.PhaseRolledBack, alpha))
		}},
		{"abort", func(ctx context.Context) error {
			sha, err := w.commit(ctx, content{tags: tag(stopped), soak: time.Hour, closed: true})
			if err != nil {
				return err
			}
			if err := w.awaitSoak(ctx, sha); err != nil {
				return err
			}
			if err := w.order(ctx, v1alpha1.OrderPromote, &v1alpha1.OrderArguments{Stage: canaryStage}); err != nil {
				return err
			}
			if len(w.point.forgets) > 0 {
				w.disturbedAt = sha // a lost status takes the promotion with it, and the canary soaks for its hour again
			}
			// The window is closed: the approval alone lets no cluster pass.
			err = w.approveUntil(ctx, sha, func(r *v1alpha1.AddOnRollout) bool {
				return approvalState(r) == v1alpha1.GatePassed && gateState(r, windowOf) == v1alpha1.GateWaiting
			})
			if err != nil {
				return err
			}
			return errors.Join(w.order(ctx, v1alpha1.OrderAbort, nil), w.await(ctx, sha, v1alpha1.PhaseFailed, alpha))
		}},
		{"good upgrade", succeeds(content{tags: map[string]string{alpha: "v4", beta: "v2"}})},
		{"recall", func(ctx context.Context) error {
			err := w.order(ctx, v1alpha1.OrderRollback, nil)
			return errors.Join(err, w.await(ctx, w.shas[len(w.shas)-1], v1alpha1.PhaseRolledBack, alpha))
		}},
		{"unblock", func(ctx context.Context) error {
			err := w.order(ctx, v1alpha1.OrderUnblock, nil)
			return errors.Join(err, w.await(ctx, w.shas[len(w.shas)-1], v1alpha1.PhaseSucceeded, alpha), w.stand(ctx))
		}},
		{"refused commit", w.refuse},
		{"removal", w.remove},
	}
}

// Steps that faults know: in the revert, content that is broken still runs.
const (
	upgradeStep = "canary upgrade"
	revertStep  = "revert"
)

// succeed commits content, approves it, and waits until it runs everywhere.
func (w *workload) succeed(ctx context.Context, c content) error {
	sha, err := w.commit(ctx, c)
	if err != nil {
		return err
	}
	if err := w.approve(ctx, sha); err != nil {
		return err
	}
	return w.await(ctx, sha, v1alpha1.PhaseSucceeded, slices.Collect(maps.Keys(c.tags))...)
}

// prepare places the clusters, puts foreign objects beside the operator's, and declares the
// source. The operators start afterwards.
func (w *workload) prepare(ctx context.Context) error {
	names := clusterNames()
	if err := w.addKlusterlets(); err != nil {
		return err
	}
	if err := w.placeWithout(ctx, ""); err != nil {
		return err
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
	board := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: demo.Namespace, Name: "board",
			Annotations: map[string]string{v1alpha1.GateHostAnnotation: strings.TrimPrefix(w.webhook.URL(), "http://")},
		},
		StringData: map[string]string{"key": signingKey},
	}
	reader := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: betaReader, Labels: map[string]string{registration.AllowLabel: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	foreign := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: names[2], Name: "foreign"}}
	foreign.Spec.Workload.Manifests = []workv1.Manifest{{}}
	foreign.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foreign","namespace":"default"}}`)
	for _, o := range []client.Object{
		w.ForgeSecret(), board, reader, source, foreign,
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: names[clusters-1], Name: alpha}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: names[1], Name: "foreign"}},
	} {
		if err := w.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	return rights.Grant(ctx, w.Client, "beta-reader-bind", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{reader.Name}, Verbs: []string{"bind"},
	})
}

// run walks through the steps, each within its time.
func (w *workload) run(ctx context.Context) error {
	for _, s := range w.steps() {
		within, cancel := context.WithTimeoutCause(ctx, stepWithin, fmt.Errorf("not done within %s", stepWithin))
		if w.point.disturb != nil {
			w.background.Go(func() { w.note(w.point.disturb(within, w, s.name)) })
		}
		begun := time.Now()
		err := s.run(within)
		w.background.Wait()
		w.timings = append(w.timings, fmt.Sprintf("%s %.1f", s.name, time.Since(begun).Seconds()))
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

// edited counts the writes that undo a change by hand, by kind.
func (w *workload) edited(undo map[string]int) {
	w.noting.Lock()
	defer w.noting.Unlock()
	if w.undo == nil {
		w.undo = map[string]int{}
	}
	for kind, n := range undo {
		w.undo[kind] += n
	}
}

// note keeps the error of a disturbance.
func (w *workload) note(err error) {
	w.noting.Lock()
	defer w.noting.Unlock()
	w.disturbed = errors.Join(w.disturbed, err)
}

// commit writes add-ons at tags, and requests a look at Git.
func (w *workload) commit(ctx context.Context, c content) (string, error) {
	files := map[string]string{}
	for addOn, tag := range c.tags {
		template, placement, policy := sample.Template(addOn, tag), "install", w.pace(c)
		if addOn == beta {
			template, placement, policy = strings.Replace(template, "spec:\n", betaRegistration, 1), "all", betaPace
		}
		maps.Copy(files, map[string]string{
			"addons/" + addOn + "/template.yaml": template,
			"addons/" + addOn + "/addon.yaml":    sample.AddOn(addOn, placement),
			"addons/" + addOn + "/rollout.yaml":  sample.Rollout(addOn, policy),
		})
	}
	sha, err := w.Repo.Commit(fmt.Sprint(c.tags), files)
	if err != nil {
		return "", err
	}
	w.shas = append(w.shas, sha)
	return sha, w.reconcile(ctx)
}

// pace is alpha's in a commit.
func (w *workload) pace(c content) string {
	failure, soak := cmp.Or(c.failure, v1alpha1.OnFailurePause), cmp.Or(c.soak, soak)
	during, before := "", measured
	if failure == v1alpha1.OnFailureRollback {
		during, before = "    gates:\n      during:\n"+measured, ""
	}
	hours := "exclude"
	if c.closed {
		hours = "allow"
	}
	text := strings.NewReplacer("DURING\n", during+"\n", "MEASURED\n", before+"\n").Replace(pace)
	return strings.NewReplacer(
		"HOURS", hours, "MONTH", farMonth(), "FAILURE", string(failure), "SOAK", soak.String(), "PROMETHEUS", w.prometheus.URL(), "WEBHOOK", w.webhook.URL(),
		"PLANTED", planted,
	).Replace(text)
}

// farMonth is a month that does not begin within weeks, whatever the clocks of a run do.
func farMonth() string {
	if now := time.Now().UTC().Month(); now == time.December || now == time.January {
		return "7"
	}
	return "1"
}

// reconcile requests a look at Git.
func (w *workload) reconcile(ctx context.Context) error {
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: demo.SourceName}}
	return w.annotate(ctx, source, "reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
}

// annotate asks until the hub accepts it: a hub may be down.
func (w *workload) annotate(ctx context.Context, o client.Object, key, value string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	return insist(ctx, func() error { return w.Client.Patch(ctx, o, patch) })
}

// insist repeats a request until the hub accepts it: a hub may be down.
func insist(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if cause := pause(ctx, 200*time.Millisecond); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// create does so with a new object. One that exists was created by a request whose answer was
// lost.
func (w *workload) create(ctx context.Context, by client.Client, o client.Object) error {
	return insist(ctx, func() error {
		o.SetResourceVersion("")
		err := by.Create(ctx, o)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// await waits until the add-ons are in the phase with the commit, and the forge has a final
// status of the source and of each add-on.
func (w *workload) await(ctx context.Context, sha string, phase v1alpha1.Phase, addOns ...string) error {
	if sha == "" {
		return errors.New("there is no commit")
	}
	for _, addOn := range addOns {
		err := w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
			rollout := objects[rolloutKey(addOn)].Content
			declared, _, _ := unstructured.NestedString(rollout, "spec", "target", "commit")
			planned, _, _ := unstructured.NestedString(rollout, "status", "target", "commit")
			// What is rolled back is declared, and the target is other content.
			ends := strings.HasSuffix(planned, sha) || phase == v1alpha1.PhaseRolledBack && strings.HasSuffix(declared, sha)
			reached, _, _ := unstructured.NestedString(rollout, "status", "phase")
			return ends && reached == string(phase)
		})
		if err != nil {
			return fmt.Errorf("%s is not %s with %s: %w", addOn, phase, sha[:7], err)
		}
	}
	if phase == v1alpha1.PhaseRolledBack {
		return w.reportedAs(ctx, sha, "rolled back", addOns...)
	}
	return w.reported(ctx, sha, addOns...)
}

func rolloutKey(addOn string) string {
	return "/registry/addonflow.io/addonrollouts/" + demo.Namespace + "/" + addOn
}

// reported waits until the statuses of the commit are final: the source's, and those of add-ons.
func (w *workload) reported(ctx context.Context, sha string, addOns ...string) error {
	return w.reportedAs(ctx, sha, "", addOns...)
}

// reportedAs is reported of statuses with words in their text: a rollback is a failure from its
// beginning, and the next commit ends what is posted about it.
func (w *workload) reportedAs(ctx context.Context, sha, words string, addOns ...string) error {
	contexts := []string{statusContext}
	for _, addOn := range addOns {
		contexts = append(contexts, statusContext+"/"+addOn)
	}
	for {
		latest := oracle.Latest(w.Forge.Log(), sha)
		open := slices.DeleteFunc(slices.Clone(contexts), func(name string) bool {
			return latest[name].State != "" && latest[name].State != "pending" && strings.Contains(latest[name].Description, words)
		})
		if len(open) == 0 {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s has no final status of %s: %w", open, sha[:7], err)
		}
	}
}

// suspend suspends alpha's rollout when a commit waits for its approval. The approval counts meanwhile, and no cluster
// is admitted until it is resumed.
func (w *workload) suspend(ctx context.Context, sha string) error {
	if _, err := w.awaitGate(ctx, sha); err != nil {
		return err
	}
	rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: alpha}}
	if err := w.annotate(ctx, rollout, v1alpha1.SuspendAnnotation, "true"); err != nil {
		return err
	}
	err := w.approveUntil(ctx, sha, func(r *v1alpha1.AddOnRollout) bool {
		return r.Status.Phase == v1alpha1.PhaseSuspended && approvalState(r) == v1alpha1.GatePassed
	})
	return errors.Join(err, w.annotate(ctx, rollout, v1alpha1.SuspendAnnotation, "false"))
}

// refuse commits a pace that is an error: the commit says so, and everything keeps running.
func (w *workload) refuse(ctx context.Context) error {
	sha, err := w.Repo.Commit(refused, map[string]string{
		"addons/" + alpha + "/template.yaml": sample.Template(alpha, refused),
		"addons/" + alpha + "/rollout.yaml":  sample.Rollout(alpha, "  maxFailures: -1\n"),
	})
	if err != nil {
		return err
	}
	w.shas = append(w.shas, sha)
	if err := errors.Join(w.reconcile(ctx), w.reported(ctx, sha)); err != nil {
		return err
	}
	if s := oracle.Latest(w.Forge.Log(), sha)[statusContext]; s.State != "error" && s.State != failure {
		return fmt.Errorf("the commit with an error is %s: %s", s.State, s.Description)
	}
	return nil
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
	if err := insist(ctx, func() error { return client.IgnoreNotFound(w.Client.Delete(ctx, owned)) }); err != nil {
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
// long as that may take, and then for rest. It notes the state of the hub at that time.
func (w *workload) stand(ctx context.Context) error {
	for begun := time.Now(); w.expected != nil && time.Since(begun) < convergeWithin; {
		i := len(w.standing)
		if len(w.differences(i, w.state())) == 0 && len(w.missing()) == 0 {
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

// differences are those between what the hub has at a stand and the undisturbed run.
func (w *workload) differences(stand int, state map[string]string) []string {
	expected, state := w.expected.Standing[stand], unedited(state)
	for _, mask := range []struct {
		when bool
		of   func(map[string]string) map[string]string
	}{
		{w.point.shrinks, ofAnyFleet},
		{w.point.leaves, ofAnyCanary},
		{w.point.restores, fromAnyMoment},
		{slices.Contains(w.point.forgets, alpha), func(state map[string]string) map[string]string { return ofAnyPast(state, alpha) }},
		{slices.Contains(w.point.forgets, beta), func(state map[string]string) map[string]string { return ofAnyPast(state, beta) }},
		{w.point.prunes, ofTheTarget},
		{w.point.flaps, ofAnyReport},
		{w.point.upgraded || w.point.rolledBack, ofAnyVersion},
		{w.point.rolledBack, ofTheOlderOperator},
	} {
		if mask.when {
			expected, state = mask.of(expected), mask.of(state)
		}
	}
	return oracle.Differences(expected, state)
}

// ofTheOlderOperator removes from a state what an older operator deletes or leaves stale: the policyCommit and the
// condition Overridden.
func ofTheOlderOperator(state map[string]string) map[string]string {
	plain := maps.Clone(state)
	maps.DeleteFunc(plain, func(path, _ string) bool {
		return strings.HasSuffix(path, " policyCommit") || strings.Contains(path, " status conditions ["+v1alpha1.OverriddenCondition+"] ")
	})
	return plain
}

// ofTheTarget is a state without beta's past revisions: the content of those that are no target is kept nowhere else.
func ofTheTarget(state map[string]string) map[string]string {
	plain, target := maps.Clone(state), state[rolloutKey(beta)+" spec target revision"]
	maps.DeleteFunc(plain, func(path, _ string) bool {
		name, of := strings.CutPrefix(path, "/registry/addonflow.io/addonrevisions/"+demo.Namespace+"/")
		return of && strings.HasPrefix(name, beta+"-") && !strings.HasPrefix(name, target+" ")
	})
	return plain
}

// ofAnyReport is a state without what the last report of an agent that flaps decides: whether its cluster soaks or
// is in flight when the rollout fails.
func ofAnyReport(state map[string]string) map[string]string {
	plain := map[string]string{}
	for path, value := range state {
		plain[path] = strings.ReplaceAll(value, soaks, moves)
	}
	return plain
}

// soaks and moves are what a rollout says of the one cluster of the canary.
const soaks, moves = "soaking until <time>", "1 in flight"

// ofAnyVersion is a state without what the version before did not store, or stored in other words: the attempts of
// past rollouts, which the current one follows, and why they ended; of the content that the source applied, author and
// subject; and the message with which the source is Ready.
func ofAnyVersion(state map[string]string) map[string]string {
	plain := maps.Clone(state)
	maps.DeleteFunc(plain, func(path, _ string) bool {
		past := strings.Contains(path, " status history [") && strings.HasSuffix(path, " reason")
		said := strings.Contains(path, " status addOns [") && (strings.HasSuffix(path, " author") || strings.HasSuffix(path, " subject"))
		return said || strings.HasSuffix(path, " status conditions [Ready] message") || strings.HasPrefix(path, rolloutKey("")) && (past || strings.HasSuffix(path, " attempt"))
	})
	return plain
}

// unedited is a state without what a hand edit leaves by right: a field of an owner that no commit declares;
// among the commits of a revision, the one that a rollout had in its target for a moment; and that the newest
// content was an installation on the cluster whose ManagedClusterAddOn was deleted.
func unedited(state map[string]string) map[string]string {
	plain := map[string]string{}
	for path, value := range state {
		if !strings.HasSuffix(path, " spec addOnMeta displayName") {
			value = strings.ReplaceAll(value, noCommit+" ", "")
			if strings.HasPrefix(path, "/registry/addon.open-cluster-management.io/managedclusteraddons/"+clusterNames()[0]+"/"+beta+" status conditions [Progressing]") {
				value = strings.NewReplacer("InstallSucceed", "UpgradeSucceed", "install completed", "upgrade completed").Replace(value)
			}
			plain[path] = value
		}
	}
	return plain
}

// removalContext ends the index of the status of a removal.
const removalContext = "/removal_guard]"

// numbers of clusters, and their names' ends.
var numbers = regexp.MustCompile(`\d+`)

// ofAnyFleet is a state without what depends on how many clusters there were while a rollout ran:
// numbers in the texts of past rollouts, their counts, and the context of a removal that a grace
// period held until the cluster was back. A cluster that joined at the stable revision has no
// record, where another has one that is Done.
func ofAnyFleet(state map[string]string) map[string]string {
	plain := map[string]string{}
	for path, value := range state {
		switch {
		case strings.Contains(path, " history ") && strings.Contains(path, " counts "),
			strings.Contains(path, " commitStatuses ") && (strings.HasSuffix(path, " progress") || strings.Contains(path, removalContext)),
			strings.Contains(path, " record of ") && strings.HasSuffix(value, " "+string(v1alpha1.ClusterDone)+"}"):
			continue
		case strings.Contains(path, " history ") && strings.HasSuffix(path, " reason"),
			strings.Contains(path, " commitStatuses ") && strings.HasSuffix(path, " description"),
			strings.HasSuffix(path, v1alpha1.QuarantinedAnnotation):
			value = sized(value)
		}
		plain[path] = value
	}
	return plain
}

// ofAnyCanary is a state without what past rollouts say of stages whose clusters left, and why content was quarantined:
// a canary that leaves in flight is a failure as well, and a stage that no cluster entered has no status.
// Content that had succeeded passes a canary without a cluster.
func ofAnyCanary(state map[string]string) map[string]string {
	plain := maps.Clone(state)
	for path := range state {
		past := strings.Contains(path, " status history [")
		switch {
		case past && (strings.Contains(path, " stages [") || strings.HasSuffix(path, " reason")):
			delete(plain, path)
		case strings.HasSuffix(path, v1alpha1.QuarantinedAnnotation):
			plain[path] = "quarantined"
		case strings.HasSuffix(path, " description"):
			if _, status, of := strings.Cut(path, " commitStatuses [<"); of && strings.Contains(status, "> "+canaryContext+"] ") {
				commit, _, _ := strings.Cut(status, ">")
				if passesEmpty(commit) {
					plain[path] = strings.ReplaceAll(plain[path], passedEmpty, "#/#")
				}
			}
		}
	}
	return plain
}

// fromAnyMoment returns a state without the fields that differ if an older status was restored. That status has the past
// rollouts as they were then. A rollout that it does not have begins again, as another attempt.
func fromAnyMoment(state map[string]string) map[string]string {
	plain := ofAnyPast(ofAnyPast(state, alpha), beta)
	maps.DeleteFunc(plain, func(path, _ string) bool {
		past := strings.Contains(path, " status history [") && !strings.Contains(path, " status history [0]")
		return strings.HasPrefix(path, rolloutKey("")) && (past || strings.HasSuffix(path, " attempt"))
	})
	return plain
}

// ofAnyPast returns a state without the fields that are lost with the status of an add-on's rollout: past rollouts,
// whether the current one was a revert, and whether a cluster with the content was moved to it.
func ofAnyPast(state map[string]string, addOn string) map[string]string {
	plain := map[string]string{}
	for path, value := range state {
		rest, of := strings.CutPrefix(path, rolloutKey(addOn))
		switch {
		case of && (strings.HasPrefix(rest, " status history ") || rest == " status reverting"),
			of && strings.HasPrefix(rest, " record of ") && strings.HasSuffix(value, " "+string(v1alpha1.ClusterDone)+"}"):
			continue
		case of && strings.HasPrefix(rest, " status stages ") && value == rollout.StageNothingToDo:
			value = rollout.StageComplete
		case of && strings.HasPrefix(rest, " status commitStatuses ") && strings.HasSuffix(rest, " description"):
			value = stageDone.ReplaceAllString(value, rollout.StageComplete)
		}
		plain[path] = value
	}
	return plain
}

// stageDone is what the context of a stage says that ended: whether it moved its clusters, or they had its content already.
var stageDone = regexp.MustCompile(`^([\d#]+/[\d#]+|nothing to change)$`)

// partly is what the source says of add-ons of which a cluster was away when they succeeded.
var partly = regexp.MustCompile(`(; \w+ #/# updated)+(; # add-ons? up to date)?$`)

// sized is a text without numbers. After how many clusters are updated it says of the others where they are.
func sized(text string) string {
	text = numbers.ReplaceAllString(text, "#")
	if strings.HasPrefix(text, "#/#") {
		text, _, _ = strings.Cut(text, ",")
	}
	text = partly.ReplaceAllString(text, "; # add-ons up to date")
	const updated = "#/# updated"
	if before, _, found := strings.Cut(text, updated+","); found {
		text = before + updated
	}
	return text
}

// says is the part of a status that is equal in every run. The source says of a commit that failed, beside which
// add-on did and how, how far the others were at that moment; the status of the add-on itself is
// compared as a whole. If the fleet shrinks, the source may name a removal that waited, too. If a status is
// written back, a past rollout failed somewhere else.
func (w *workload) says(key, status string) string {
	state, text, found := strings.Cut(status, ": ")
	if !found {
		return status
	}
	if w.point.upgraded || w.point.rolledBack || state == failure && (w.point.restores || w.point.leaves) {
		return state // the version before has other words
	}
	if state == failure && strings.HasSuffix(key, " "+statusContext) {
		if w.point.shrinks {
			return state
		}
		text, _, _ = strings.Cut(text, ";")
		text, _, _ = strings.Cut(text, " (")
	}
	if w.point.flaps {
		text = strings.ReplaceAll(text, soaks, moves)
	}
	if w.point.shrinks {
		text = sized(text)
	}
	if w.point.restores {
		text = stageDone.ReplaceAllString(strings.ReplaceAll(text, " to "+revertedBy, " to "+revertedTo), rollout.StageComplete)
	}
	return state + ": " + text
}

// revertedTo and revertedBy are two commits with the same content: an upgrade, and the revert of what
// came after it. An older status names the first.
const revertedTo, revertedBy = "<commit 2>", "<commit 4>"

// passesEmpty reports whether a canary without a cluster passes with the commit: the first install, the revert, and the
// commit whose content had succeeded before it was recalled and unblocked. passedEmpty is what the canary's status says then.
func passesEmpty(commit string) bool {
	return slices.Contains([]string{"commit 1", "commit 4", "commit 7"}, commit)
}

const canaryContext, passedEmpty = statusContext + "/" + alpha + "/" + canaryStage, "no cluster in this stage"

// failure is the state of a status.
const failure = "failure"

// missing are the statuses that are not, at last, those of the undisturbed run: at the first
// stand without those of the commits that come after it. A status that is written back
// says that a rollout runs which has ended; the next commit then supersedes it. A status that was forged says that
// a rollout failed, and a commit that is replaced before the operator has put it right keeps that. On a refused commit,
// the rollout of an older commit says so only if it looks before it has ended, or after its removal has begun: the context
// of the source says it in each case.
func (w *workload) missing() []string {
	var missing []string
	seen := oracle.Reported(w.Forge.Log(), w.shas, w.names())
	for key, want := range w.expected.Reported {
		var commit int
		if _, err := fmt.Sscanf(key, "commit %d ", &commit); err != nil || commit >= len(w.shas) {
			continue
		}
		last := seen[key]
		n := len(last)
		if w.point.restores && n > 0 && strings.HasPrefix(last[n-1], "error: superseded by ") &&
			!strings.HasPrefix(key, fmt.Sprintf("commit %d ", len(w.shas)-1)) {
			continue
		}
		if w.point.forges && n > 0 && strings.HasSuffix(key, " "+statusContext) && strings.HasPrefix(last[n-1], failure+": "+beta+": ") {
			continue
		}
		if commit, canary := strings.CutSuffix(key, " "+canaryContext); canary && w.point.leaves && n > 0 &&
			passesEmpty(commit) && last[n-1] == "success: "+passedEmpty {
			continue
		}
		if n == 0 && strings.HasPrefix(want[len(want)-1], failure+": not applied: the commit is refused") {
			continue
		}
		if n == 0 || w.says(key, last[n-1]) != w.says(key, want[len(want)-1]) {
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
		for _, digits := range []int{len(sha), 10, 7} {
			pairs = append(pairs, sha[:digits], fmt.Sprintf("<commit %d>", i))
		}
	}
	return strings.NewReplacer(append(pairs, w.Repo.URL(), "<git>", w.forge.URL(), "<forge>", w.Forge.URL(), "<forge>",
		w.prometheus.URL(), "<prometheus>", w.webhook.URL(), "<webhook>")...)
}
