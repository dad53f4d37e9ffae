package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var _ = Describe("A commit during a rollout", func() {
	It("waits with onNewCommit Finish until an approver rejected the promoted canary; with Supersede, it replaces the content at once", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "finished", all)
		grant(ctx, "commander", "carol")
		grant(ctx, "approver", "alice")
		_, carol := user("carol")
		_, alice := user("alice")
		message := func() string { return s.rollout().Status.Message }
		policy := func(onNewCommit string) string {
			return "  onNewCommit: " + onNewCommit + "\n" + s.gated("everyone", `
      before:
      - name: qa
        type: approval
        approval: {approvers: {users: [alice]}}
`, s.stages("1h", "2h", "2", 0))
		}
		s.atV1("0s", "1m", "3", 0)
		before := s.generations()
		second := s.commit("v2", policy("Finish"))
		Eventually(message).Should(HavePrefix("canary 0/1, soaking until "))
		third := s.commit("v3", policy("Finish"))
		Eventually(s.statusOf).WithArguments(third).Should(Equal("pending: waits until the rollout of " + second[:10] + " has ended"))
		Expect(s.command(3, carol, "status")).To(ContainSubstring("Pending: main@" + third[:7] + " waits for main@" + second[:7] + " (onNewCommit is Finish)"))

		By("promoting the canary that soaks for an hour")
		Expect(s.command(0, carol, "promote", "canary", "-m", "dashboards are fine")).To(ContainSubstring("carried out: ended the soak of 1 cluster"))
		Eventually(message).Should(ContainSubstring("everyone 0/2, waits for approval qa: 0 of 1 approvals"))
		Expect(s.command(1, carol, "promote", "canary")).To(ContainSubstring("refused: no cluster is soaking in stage canary"))
		Expect(s.rollout().Status.Journal).To(ContainElement(HaveField("Reason", "promote by carol: dashboards are fine; ended the soak of 1 cluster")))
		Expect(moved(before, s.generations())).To(Equal(all[:1]), "the approval is not given")

		By("rejecting what runs, not what waits")
		Expect(s.command(0, alice, "reject", "everyone", "--yes", "-m", "slow on arm64")).To(And(
			ContainSubstring(second), ContainSubstring("gate qa of stage everyone rejected by alice")))
		const rejected = "failure: halted in everyone: approval qa: rejected by alice: slow on arm64"
		Eventually(s.statusOf).WithArguments(second).Should(HavePrefix(rejected))
		Eventually(func() map[string]string { return s.running(all...) }).Should(Equal(map[string]string{all[0]: "v3", all[1]: "v1", all[2]: "v1"}))

		By("superseding the content that waited")
		fourth := s.commit("v4", policy("Supersede"))
		Eventually(s.statusOf).WithArguments(third).Should(HavePrefix("error: superseded by " + fourth[:7]))
		Eventually(func() map[string]string { return s.running(all[0]) }).Should(allAt("v4", all[0]))
		Eventually(message).Should(HavePrefix("canary 0/1, soaking until "))
		s.command(0, carol, "promote", "canary")
		Eventually(message).Should(ContainSubstring("waits for approval qa"))
		Expect(s.command(0, alice, "approve", "everyone", "--yes")).To(ContainSubstring("gate qa of stage everyone approved by alice"))
		s.awaitPhase(fourth, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v4", all...))
		for _, name := range all[1:] {
			Expect(s.generations()[name]).To(Equal(before[name]+1), "never sent v2 or v3: "+name)
		}
		Expect(s.statusOf(second)).To(HavePrefix(rejected), "an older commit keeps its verdict")
	})
})
