package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/forge"
)

const (
	// Names of the two gates.
	approvalGate = "qa"
	errorsGate   = "errors"
	// approver may approve; impostor has the same rights and tries it in the approver's name.
	approver = "alice"
	impostor = "mallory"
	// telemetryKey signs the questions of the gate, telemetrySecret has it on the hub.
	telemetryKey    = "demo-key"
	telemetrySecret = "telemetry"
	// trafficEvery is the time between two rounds of traffic, and measuredSoak the soak that is
	// measured. No speed changes them: a gate is evaluated once a second at most.
	trafficEvery = 100 * time.Millisecond
	measuredSoak = 6 * time.Second
)

// approve is step 6.
func (s *show) approve(ctx context.Context) (string, error) {
	if err := s.admitUsers(ctx); err != nil {
		return "", err
	}
	before, err := s.world.Generations(ctx)
	if err != nil {
		return "", err
	}
	mark := s.recorder.Mark()
	files, err := approvedTree("v4", s.soak())
	if err != nil {
		return "", err
	}
	s.shown(files)
	sha, err := s.commit(ctx, "v4", "hello v4: after the canary, ask "+approver, files, exitSucceeded)
	if err != nil {
		return "", err
	}
	if err := s.run(ctx, exitWaiting, "status", AddOn, "--watch"); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"tree", AddOn}, {"why", AddOn, s.others()[0]}} {
		if err := s.run(ctx, exitSucceeded, args...); err != nil {
			return "", err
		}
	}
	if err := s.waits(ctx, sha, before); err != nil {
		return "", err
	}
	if err := s.runAs(ctx, approver, exitSucceeded, "approve", AddOn, lastStage, "-m", "seen on the canary", "--yes"); err != nil {
		return "", err
	}
	if _, err := s.recorder.Await(ctx, mark, sees(lastStage, approvalGate, v1alpha1.GatePassed)); err != nil {
		return "", err
	}
	if err := s.lookOn(ctx, exitSucceeded); err != nil {
		return "", err
	}
	if err := s.green(ctx, sha, "v4"); err != nil {
		return "", err
	}
	if err := s.approved(ctx, mark); err != nil {
		return "", err
	}
	return fmt.Sprintf("main@%.7s  canary → approved by %s → %d/%d   commit status: success", sha, approver, len(s.clusters), len(s.clusters)), nil
}

// rollBack is step 7.
func (s *show) rollBack(ctx context.Context) (string, error) {
	before, err := s.world.Generations(ctx)
	if err != nil {
		return "", err
	}
	stable, err := s.rollout(ctx)
	if err != nil {
		return "", err
	}
	service, err := s.startTelemetry(ctx)
	if err != nil {
		return "", err
	}
	mark := s.recorder.Mark()
	files, err := measuredTree("v5"+leakyTag, service)
	if err != nil {
		return "", err
	}
	s.shown(files)
	sha, err := s.commit(ctx, "v5", "hello v5: measure the canary, roll back by itself", files, exitSucceeded)
	if err != nil {
		return "", err
	}
	if err := s.lookOn(ctx, exitWaiting); err != nil {
		return "", err
	}
	if err := s.wentBack(ctx, mark, sha, stable.Status.Target.Digest); err != nil {
		return "", err
	}
	untouched, err := s.untouchedBut(ctx, before, s.canaries)
	if err != nil {
		return "", err
	}
	if err := s.runs("v4", s.clusters...); err != nil {
		return "", err
	}
	s.checked("works: every cluster runs %s; those of %d clusters as they were", Image("v4"), untouched)
	return fmt.Sprintf("main@%.7s  failed its measurement, %d clusters rolled back, %d untouched   commit status: failure", sha, len(s.canaries), untouched), nil
}

// shown prints how fast a commit is rolled out.
func (s *show) shown(files map[string]string) {
	s.typed("cat %s", rolloutFile)
	_, spec, _ := strings.Cut(files[rolloutFile], "\nspec:\n")
	for line := range strings.Lines("spec:\n" + spec) {
		s.said("%s", strings.TrimSuffix(line, "\n"))
	}
}

// startTelemetry starts the service that measures, with its key in a Secret that names the
// service's host. It returns the address for gates.
func (s *show) startTelemetry(ctx context.Context) (string, error) {
	s.telemetry = newTelemetry(s.clusters, telemetryKey, s.world.readyImage)
	host, stop, err := s.telemetry.start(trafficEvery) //nolint:contextcheck // it runs until the world stops
	if err != nil {
		return "", err
	}
	s.world.finally(stop)
	s.said("The measurement is a small web service of this demo, not a Prometheus. Its requests are")
	s.said("simulated; the image that serves them is read from the simulated clusters.")
	address := url.URL{Scheme: "http", Host: host, Path: "/gate"}
	return address.String(), s.world.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: telemetrySecret, Annotations: map[string]string{v1alpha1.GateHostAnnotation: host}},
		StringData: map[string]string{"key": telemetryKey},
	})
}

// admitUsers gives the approver and the impostor the rights that the user guide names for
// approvals, and the right to see what the commands show.
func (s *show) admitUsers(ctx context.Context) error {
	looks := []string{"get", "list"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: approver}, {Kind: rbacv1.UserKind, Name: impostor}}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: "approver"}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addonapprovals"}, Verbs: []string{"get", "list", "create", "delete"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-reader"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group, "addon.open-cluster-management.io", "cluster.open-cluster-management.io", "work.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: looks},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleet-reader"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-reader"}},
	} {
		if err := s.world.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("cannot let %s approve: %w", approver, err)
		}
	}
	_, kubeconfig, err := s.world.Hub.User(approver)
	if err != nil {
		return err
	}
	return os.WriteFile(s.kubeconfig(approver), kubeconfig, 0o600)
}

// kubeconfig is the path of a user's.
func (s *show) kubeconfig(user string) string { return filepath.Join(s.world.Dir, user+".kubeconfig") }

// waits checks that the stage after the canary waits for its approval, in the API, on the fleet and
// at the forge, and that no other user can give it.
func (s *show) waits(ctx context.Context, sha string, before map[types.NamespacedName]int64) error {
	r, err := s.rollout(ctx)
	if err != nil {
		return err
	}
	waiting := gateOf(r.Status, lastStage, approvalGate)
	if r.Status.Phase != v1alpha1.PhaseHeld || waiting.State != v1alpha1.GateWaiting {
		return fmt.Errorf("the rollout is %s and gate %s %q; not Held and Waiting", r.Status.Phase, approvalGate, waiting.State)
	}
	s.checked("API: AddOnRollout %s Held; gate %s of %s Waiting: %s", AddOn, approvalGate, lastStage, waiting.Reason)
	untouched, err := s.untouchedBut(ctx, before, s.canaries)
	if err != nil {
		return err
	}
	s.checked("works: those of %d clusters as they were", untouched)
	if err := s.refusesForgery(ctx, r); err != nil {
		return err
	}
	s.said("A hold is at the forge 30 seconds after the status before it, at the latest.")
	return s.awaitStatus(ctx, sha, "pending", "waits for approval "+approvalGate, stageContext(lastStage), addOnContext(), sourceContext())
}

// refusesForgery checks that the API server admits no approval in the name of another user.
func (s *show) refusesForgery(ctx context.Context, r *v1alpha1.AddOnRollout) error {
	config, _, err := s.world.Hub.User(impostor)
	if err != nil {
		return err
	}
	c, err := NewClient(config)
	if err != nil {
		return err
	}
	err = c.Create(ctx, &v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, GenerateName: AddOn + "-"},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: r.UID, Rollout: AddOn, Stage: lastStage, Gate: approvalGate, Digest: r.Status.Target.Digest,
			Attempt: r.Status.Attempt, Decision: v1alpha1.Approve, Approver: approver,
		},
	})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return fmt.Errorf("the API server did not refuse an approval by %s in the name of %s: %w", impostor, approver, err)
	}
	s.checked("API: an AddOnApproval by %s in the name of %s is refused", impostor, approver)
	return nil
}

// awaitStatus waits until the forge has shown a status with a text in every context.
func (s *show) awaitStatus(ctx context.Context, sha, state, text string, contexts ...string) error {
	for _, name := range contexts {
		if err := s.world.Forge.WaitFor(ctx, func(log []forge.Entry) bool {
			return slices.ContainsFunc(log, func(e forge.Entry) bool {
				return e.SHA == sha && e.Context == name && e.State == state && strings.Contains(e.Description, text)
			})
		}); err != nil {
			return fmt.Errorf("the forge does not show %q for %s on %.7s: %w", text, name, sha, err)
		}
		entry, _ := s.world.Forge.Latest(sha, name)
		s.checked("forge: %.7s %s %s: %s", sha, name, entry.State, entry.Description)
	}
	return nil
}

// approved checks that the clusters after the canary moved by the approval of its author, and in
// waves.
func (s *show) approved(ctx context.Context, mark Mark) error {
	r, err := s.rollout(ctx)
	if err != nil {
		return err
	}
	gate := gateOf(r.Status, lastStage, approvalGate)
	if gate.State != v1alpha1.GatePassed || gate.By != approver {
		return fmt.Errorf("gate %s is %s by %q, not Passed by %s", approvalGate, gate.State, gate.By, approver)
	}
	var given v1alpha1.AddOnApprovalList
	if err := s.world.Client.List(ctx, &given, client.InNamespace(Namespace)); err != nil {
		return err
	}
	if n := len(given.Items); n != 1 || given.Items[0].Spec.Approver != approver || given.Items[0].Spec.Digest != r.Status.Target.Digest {
		return fmt.Errorf("%d AddOnApprovals are stored, not one by %s for the digest", n, approver)
	}
	s.checked("API: gate %s of %s Passed: %s", approvalGate, lastStage, gate.Reason)
	want := s.waves(r.Status.Target.Digest)
	recording, err := s.recorder.Await(ctx, mark, want.finished)
	if err != nil {
		return err
	}
	return want.check(recording)
}

// wentBack checks that the measurement failed, and what followed: halt, quarantine, rollback.
func (s *show) wentBack(ctx context.Context, mark Mark, sha, stable string) error {
	recording, err := s.recorder.Await(ctx, mark, isIn(v1alpha1.PhaseRolledBack))
	if err != nil {
		return err
	}
	halted, err := inOrder(recording)
	if err != nil {
		return err
	}
	r, err := s.rollout(ctx)
	if err != nil {
		return err
	}
	switch o := r.Status.Override; {
	case r.Status.Phase != v1alpha1.PhaseRolledBack || r.Status.Target.Digest != stable:
		return fmt.Errorf("the rollout is %s at %s, not RolledBack to %s", r.Status.Phase, r.Status.Target.Digest, stable)
	case o == nil || !strings.HasSuffix(o.Declared.Commit, sha):
		return fmt.Errorf("the override is %+v, not that Git declares %s", o, sha)
	case s.telemetry.answered(o.Declared.Commit, v1alpha1.GateFailed) == 0:
		return errors.New("the telemetry failed no signed question about the commit")
	}
	s.checked("API: gate %s of %s Passed, then Failed: %s", errorsGate, firstStage, gateOf(halted, firstStage, errorsGate).Reason)
	s.checked("API: AddOnRollout %s RollingBack, RolledBack", AddOn)
	if err := s.quarantined(ctx, r.Status.Override.Declared); err != nil {
		return err
	}
	for _, change := range recording.Works {
		if change.Revision == r.Status.Override.Declared.Digest && !slices.Contains(s.canaries, change.Cluster) {
			return fmt.Errorf("cluster %s got content that the canary did not pass", change.Cluster)
		}
	}
	return s.posted(ctx, sha, stateFailure, sourceContext(), addOnContext(), stageContext(firstStage))
}

// quarantined checks that the AddOnRevision of a target is.
func (s *show) quarantined(ctx context.Context, target v1alpha1.Target) error {
	var revision v1alpha1.AddOnRevision
	if err := s.world.Client.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: target.Revision}, &revision); err != nil {
		return err
	}
	quarantine, ok := v1alpha1.ReadQuarantine(revision.Annotations)
	if !ok || !strings.Contains(quarantine.Reason, errorsGate) {
		return fmt.Errorf("AddOnRevision %s is not quarantined for gate %s: %v", revision.Name, errorsGate, revision.Annotations)
	}
	s.checked("API: AddOnRevision %s quarantined: %s", revision.Name, quarantine.Reason)
	return nil
}

// inOrder expects that the measurement passed before it failed, and that the phases were RollingBack and then
// RolledBack, and never Failed. It returns the status with the failed measurement.
func inOrder(r Recording) (failed v1alpha1.AddOnRolloutStatus, err error) {
	rest := r.Statuses
	if isIn(v1alpha1.PhaseFailed)(r) {
		return failed, errors.New("the rollout was Failed, although it rolls back by itself")
	}
	for i, phase := range []v1alpha1.Phase{v1alpha1.PhaseRollingBack, v1alpha1.PhaseRolledBack} {
		at := slices.IndexFunc(rest, func(s v1alpha1.AddOnRolloutStatus) bool { return s.Phase == phase })
		if at < 0 {
			return failed, fmt.Errorf("the rollout was never %s after what came before", phase)
		}
		if i == 0 {
			failed = rest[at]
		}
		rest = rest[at:]
	}
	switch state := gateOf(failed, firstStage, errorsGate).State; {
	case state != v1alpha1.GateFailed:
		return failed, fmt.Errorf("gate %s was %q when the rollout failed, not Failed", errorsGate, state)
	case !sees(firstStage, errorsGate, v1alpha1.GatePassed)(r):
		return failed, fmt.Errorf("gate %s failed at once: it never Passed", errorsGate)
	}
	return failed, nil
}

// isIn accepts a recording in which the rollout was in a phase.
func isIn(phase v1alpha1.Phase) func(Recording) bool {
	return func(r Recording) bool {
		return slices.ContainsFunc(r.Statuses, func(s v1alpha1.AddOnRolloutStatus) bool { return s.Phase == phase })
	}
}

// sees accepts a recording in which a gate had a verdict.
func sees(stage, gate string, state v1alpha1.GateState) func(Recording) bool {
	return func(r Recording) bool {
		return slices.ContainsFunc(r.Statuses, func(s v1alpha1.AddOnRolloutStatus) bool { return gateOf(s, stage, gate).State == state })
	}
}

// gateOf is the verdict on a gate; zero if there is none.
func gateOf(s v1alpha1.AddOnRolloutStatus, stage, gate string) v1alpha1.GateStatus {
	for _, st := range s.Stages {
		for _, g := range st.Gates {
			if st.Name == stage && g.Name == gate {
				return g
			}
		}
	}
	return v1alpha1.GateStatus{}
}
