package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/sample"
)

// admin is the user that approves and orders.
const admin = "admin"

// rollout waits until alpha's rollout, as it is stored, satisfies the condition.
func (w *workload) rollout(ctx context.Context, satisfied func(*v1alpha1.AddOnRollout) bool) (*v1alpha1.AddOnRollout, error) {
	found := &v1alpha1.AddOnRollout{}
	err := w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
		*found = v1alpha1.AddOnRollout{}
		content := objects[rolloutKey(alpha)].Content
		return content != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(content, found) == nil && satisfied(found)
	})
	return found, err
}

// targets reports whether a rollout plans with a commit.
func targets(r *v1alpha1.AddOnRollout, sha string) bool {
	return r.Status.Target != nil && strings.HasSuffix(r.Status.Target.Commit, sha)
}

// approvalState is that of the approval before the second stage.
func approvalState(r *v1alpha1.AddOnRollout) v1alpha1.GateState { return gateState(r, approvalOf) }

// gateState is that of a gate before the second stage; "" before it is evaluated.
func gateState(r *v1alpha1.AddOnRollout, gate string) v1alpha1.GateState {
	for _, s := range r.Status.Stages {
		for _, g := range s.Gates {
			if s.Name == earlyStage && g.Name == gate {
				return g.State
			}
		}
	}
	return ""
}

// awaitGate waits until a commit waits for its approval.
func (w *workload) awaitGate(ctx context.Context, sha string) (*v1alpha1.AddOnRollout, error) {
	r, err := w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool {
		return targets(r, sha) && r.Status.Phase == v1alpha1.PhaseHeld && approvalState(r) == v1alpha1.GateWaiting
	})
	if err != nil {
		return nil, fmt.Errorf("%s does not wait for its approval: %w", sha[:7], err)
	}
	return r, nil
}

// awaitSoak waits until the canary soaks with a commit.
func (w *workload) awaitSoak(ctx context.Context, sha string) error {
	_, err := w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool {
		return targets(r, sha) && len(r.Status.Stages) > 0 && r.Status.Stages[0].SoakingUntil != nil
	})
	if err != nil {
		return fmt.Errorf("%s does not soak: %w", sha[:7], err)
	}
	return nil
}

// approve lets a commit pass the gate before the second stage, until it has succeeded.
func (w *workload) approve(ctx context.Context, sha string) error {
	return w.approveUntil(ctx, sha, func(r *v1alpha1.AddOnRollout) bool { return r.Status.Phase == v1alpha1.PhaseSucceeded })
}

// approveUntil approves a commit in every attempt, until its rollout satisfies the condition: a status that is written
// back may begin another attempt.
func (w *workload) approveUntil(ctx context.Context, sha string, satisfied func(*v1alpha1.AddOnRollout) bool) error {
	approved := int32(0)
	for {
		r, err := w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool {
			waits := approvalState(r) == v1alpha1.GateWaiting && max(r.Status.Attempt, 1) != approved
			return targets(r, sha) && (waits || satisfied(r))
		})
		if err != nil {
			return fmt.Errorf("%s is not approved: %w", sha[:7], err)
		}
		if satisfied(r) {
			return nil
		}
		if w.point.atGate != nil && w.disturbedAt != sha {
			w.disturbedAt = sha
			if err := w.point.atGate(ctx, w); err != nil {
				return err
			}
			continue
		}
		approved = max(r.Status.Attempt, 1)
		if err := w.awaitProof(ctx); err != nil {
			return err
		}
		approval := &v1alpha1.AddOnApproval{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: fmt.Sprintf("%s-commit-%d-attempt-%d", alpha, slices.Index(w.shas, sha), approved)},
			Spec: v1alpha1.AddOnApprovalSpec{
				RolloutUID: r.UID, Rollout: r.Name, Stage: earlyStage, Gate: approvalOf, Digest: r.Status.Target.Digest,
				Attempt: approved, Decision: v1alpha1.Approve, Approver: admin, Comment: "as agreed",
			},
		}
		if err := w.create(ctx, w.Client, approval); err != nil {
			return err
		}
	}
}

// awaitProof waits until the authors of new decisions are proven: a few seconds after the admission policy was installed
// or changed. Older decisions do not count.
func (w *workload) awaitProof(ctx context.Context) error {
	for {
		left := time.Second
		policy, binding, err := admission.Read(ctx, w.Client)
		if err == nil {
			since, differs := admission.Since(policy, binding)
			left = time.Until(since.Add(time.Second)) // times of objects are whole seconds
			if differs != nil || left <= 0 {
				return nil //nolint:nilerr // the policy of another operator is not waited for
			}
		}
		if err := errors.Join(pause(ctx, left), err); ctx.Err() != nil {
			return fmt.Errorf("authors are not proven: %w", err)
		}
	}
}

// order repeats an order until it is carried out: because of a fault, the operator may refuse it at first.
func (w *workload) order(ctx context.Context, verb v1alpha1.OrderVerb, arguments *v1alpha1.OrderArguments) error {
	for n := 1; ; n++ {
		r, err := w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool { return r.Spec.Target != nil && r.Status.Target != nil })
		if err != nil {
			return fmt.Errorf("there is nothing to %s: %w", verb, err)
		}
		digest := r.Status.Target.Digest
		if verb == v1alpha1.OrderUnblock {
			digest = r.Spec.Target.Digest
		}
		order := &v1alpha1.AddOnOrder{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%s-%d", alpha, verb, n)},
			Spec: v1alpha1.AddOnOrderSpec{
				RolloutUID: r.UID, Rollout: r.Name, Verb: verb, Digest: digest, Attempt: max(r.Status.Attempt, 1),
				Arguments: arguments, Author: admin, Reason: "as agreed",
			},
		}
		if err := w.create(ctx, w.Client, order); err != nil {
			return err
		}
		answer := ""
		err = w.history.Await(ctx, func(objects map[string]oracle.Object) bool {
			status, _ := objects[orderKey(order.Name)].Content["status"].(map[string]any)
			answer, _ = status["state"].(string)
			return answer != ""
		})
		if err != nil {
			return fmt.Errorf("order %s has no answer: %w", order.Name, err)
		}
		if answer == string(v1alpha1.OrderCarriedOut) {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("order %s is refused: %w", order.Name, err)
		}
	}
}

func orderKey(name string) string {
	return "/registry/addonflow.io/addonorders/" + demo.Namespace + "/" + name
}

// register makes the klusterlet of every cluster request a certificate for beta's agent, and
// waits until each is approved.
func (w *workload) register(ctx context.Context) error {
	for _, cluster := range clusterNames() {
		csr, err := sample.Request(beta, cluster, addonv1alpha1.RegistrationConfig{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Subject: registration.DefaultSubject(beta, cluster),
		})
		if err != nil {
			return err
		}
		csr.Name, csr.GenerateName = "addon-"+cluster+"-"+beta, ""
		if err := w.create(ctx, w.klusterlets[cluster], csr); err != nil {
			return err
		}
	}
	for {
		seen, approved, err := w.requests(ctx)
		if err == nil && approved == seen {
			return nil
		}
		if cause := pause(ctx, 100*time.Millisecond); cause != nil {
			return errors.Join(fmt.Errorf("%d of %d certificates are approved: %w", approved, seen, cause), err)
		}
	}
}

// requests counts those of agents, and how many of them are approved.
func (w *workload) requests(ctx context.Context) (seen, approved int, err error) {
	var list certificatesv1.CertificateSigningRequestList
	if err := w.Client.List(ctx, &list); err != nil {
		return 0, 0, err
	}
	for i := range list.Items {
		if list.Items[i].Labels[addonv1alpha1.AddonLabelKey] != beta {
			continue
		}
		seen++
		if slices.ContainsFunc(list.Items[i].Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		}) {
			approved++
		}
	}
	return seen, approved, nil
}

// addKlusterlets gives every cluster the identity with which it requests certificates.
func (w *workload) addKlusterlets() error {
	w.klusterlets = map[string]client.Client{}
	for _, cluster := range clusterNames() {
		group := "system:open-cluster-management:" + cluster
		config, _, err := w.Hub.User(group+":klusterlet", group, "system:masters")
		if err != nil {
			return err
		}
		if w.klusterlets[cluster], err = client.New(config, client.Options{Scheme: w.Client.Scheme(), Mapper: w.Client.RESTMapper()}); err != nil {
			return err
		}
	}
	return nil
}
