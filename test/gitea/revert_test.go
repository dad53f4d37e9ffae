//go:build gitea

package gitea

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// pull is a pull request as Gitea's API shows it.
type pull struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	User   struct {
		Login string `json:"login"`
	} `json:"user"`
	Head struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	} `json:"head"`
}

// pulls are all pull requests of the repository, whatever their state.
func (s *scene) pulls() []pull {
	var all []pull
	if err := ana.Do(s.ctx, http.MethodGet, "repos/"+s.repository+"/pulls?state=all&limit=50", nil, &all); err != nil {
		return nil // while Gitea does not answer
	}
	return all
}

// changed are the files that a pull request changes.
func (s *scene) changed(number int) []string {
	GinkgoHelper()
	var files []struct {
		Name   string `json:"filename"`
		Status string `json:"status"`
	}
	Expect(ana.Do(s.ctx, http.MethodGet, fmt.Sprintf("repos/%s/pulls/%d/files", s.repository, number), nil, &files)).To(Succeed())
	var out []string
	for _, f := range files {
		out = append(out, f.Status+" "+f.Name)
	}
	return out
}

// reverts makes a source propose what was rolled back.
func reverts(_ *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
	source.Spec.CommitStatus.RevertPullRequest = true
}

// lookAgain makes the operator look at the source now.
func (s *scene) lookAgain(ctx context.Context) {
	GinkgoHelper()
	addonflow(ctx, "reconcile", "source", s.addOn, "-n", "default")
}

var _ = Describe("A revert pull request", func() {
	It("restores the files after an automatic rollback, moves nothing when it is merged, and is proposed once", func(ctx SpecContext) {
		s := newScene(ctx, "reverting", reverts)
		s.atV1()
		stable := s.rollout().Status.Target.Digest
		Expect(s.sourceCondition(v1alpha1.RevertProposedCondition)).To(BeEmpty())

		bad := s.pushTag("never-starts", "  onFailure: Rollback\n"+s.stages())
		Eventually(func() v1alpha1.Phase { return s.rollout().Status.Phase }).Should(Equal(v1alpha1.PhaseRolledBack))
		Eventually(s.pulls).Should(HaveLen(1))
		proposed := s.pulls()[0]
		GinkgoWriter.Println(proposed.Title + "\n" + proposed.Body)
		Expect(proposed.User.Login).To(Equal(robot.User))
		Expect(proposed.State).To(Equal("open"), "the operator merges nothing")
		Expect(proposed.Head.Ref).To(HavePrefix("addonflow/revert-reverting-"))
		Expect(proposed.Body).To(ContainSubstring(bad[:10]))
		By("leaving the policy as it is")
		Expect(s.changed(proposed.Number)).To(Equal([]string{"changed addons/template.yaml"}))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.RevertProposedCondition).Should(And(
			HavePrefix("True Proposed: "), ContainSubstring(fmt.Sprintf("/team/reverting/pulls/%d", proposed.Number))))
		Eventually(s.shows).WithArguments(bad).Should(ContainSubstring("(pull request %d makes Git agree)", proposed.Number))
		Expect(s.rollout().Status.Override.Proposed).To(HaveSuffix("/team/reverting/pulls/%d", proposed.Number))

		By("finding it again with a new operator")
		world.Operator.Kill()
		Expect(world.StartOperator(options)).To(Succeed())
		s.lookAgain(ctx)
		Consistently(s.pulls, "5s", "1s").Should(HaveLen(1))

		By("merging it")
		Eventually(func() error {
			return ana.Merge(ctx, s.repository, proposed.Number, "merge", proposed.Head.SHA)
		}).Should(Succeed())
		merged, err := ana.Head(ctx, s.repository, "main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.shows).WithArguments(merged).Should(HavePrefix("success: "))
		Expect(s.rollout().Status.Target.Digest).To(Equal(stable))
		Expect(s.rollout().Spec.OnFailure).To(Equal(v1alpha1.OnFailureRollback))
		Expect(s.running()).To(allAt("v1"))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.RevertProposedCondition).Should(BeEmpty())
		Expect(s.pulls()).To(HaveLen(1))
	})

	It("is not opened by a token that may not, which a condition names with the permission, and follows a recall when it may", func(ctx SpecContext) {
		s := newScene(ctx, "recalling", reverts)
		s.atV1()
		s.awaitSuccess(s.pushTag("v2", s.stages()))
		s.setToken(s.token("recalling-reads-only", "read:repository"))
		addonflow(ctx, "rollback", "recalling", "-n", "default", "-m", "leaks memory")
		Eventually(func() v1alpha1.Phase { return s.rollout().Status.Phase }).Should(Equal(v1alpha1.PhaseRolledBack))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.RevertProposedCondition).Should(And(
			HavePrefix("False PermissionMissing: recalling: "), ContainSubstring("it needs write:repository")))
		GinkgoWriter.Println(s.sourceCondition(v1alpha1.RevertProposedCondition))
		Expect(s.pulls()).To(BeEmpty())
		Expect(s.running()).To(allAt("v1"), "no rollout waits for a forge")

		s.setToken(s.token("recalling-writes", "write:repository"))
		s.lookAgain(ctx)
		Eventually(s.pulls).Should(HaveLen(1))
		Expect(s.pulls()[0].Body).To(And(ContainSubstring("leaks memory"), ContainSubstring("rolled back by")))

		By("closing it: it is not opened again")
		Expect(ana.Do(ctx, http.MethodPatch, fmt.Sprintf("repos/%s/pulls/%d", s.repository, s.pulls()[0].Number), map[string]string{"state": "closed"}, nil)).To(Succeed())
		world.Operator.Kill()
		Expect(world.StartOperator(options)).To(Succeed())
		s.lookAgain(ctx)
		Consistently(s.pulls, "5s", "1s").Should(HaveLen(1))
		Expect(s.pulls()[0].State).To(Equal("closed"))
	})

	It("is not opened where restoring would change another add-on, too", func(ctx SpecContext) {
		s := newScene(ctx, "entangled", reverts)
		s.atV1()
		entangled := s.tree("never-starts", "  onFailure: Rollback\n"+s.stages())
		entangled["addons/template.yaml"] += "\n---\n" + `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: entangled-more, namespace: default}
spec: {numberOfClusters: 1}
`
		s.push("entangled", entangled)
		Eventually(func() v1alpha1.Phase { return s.rollout().Status.Phase }).Should(Equal(v1alpha1.PhaseRolledBack))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.RevertProposedCondition).Should(And(
			HavePrefix("False NotRevertible: "), ContainSubstring("it would change other objects on the hub, too")))
		Expect(s.pulls()).To(BeEmpty())
		Expect(s.rollout().Status.Message).To(ContainSubstring(" PATH ':!*addonrollout.*')"))
	})
})
