package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/prometheus"
)

var _ = Describe("Gates", func() {
	It("halt a canary whose error rate rises under the new content only, roll it back, and keep the content out until it is unblocked", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "measured", all)
		var leaks atomic.Bool
		leaks.Store(true)
		traffic := httptest.NewServer(prometheus.NewTraffic(func(cluster string) float64 {
			if leaks.Load() && s.running(cluster)[cluster] == "v2" {
				return 0.2
			}
			return 0.01
		}, all...))
		DeferCleanup(traffic.Close)
		address := prometheus.Start(GinkgoTB(), strings.TrimPrefix(traffic.URL, "http://"))
		measured := func(onFailure string) string {
			const rate = "sum(rate(http_errors_total{%[1]s}[1s])) / sum(rate(http_requests_total{%[1]s}[1s]))"
			return "  onFailure: " + onFailure + "\n" + s.gated("canary", fmt.Sprintf(`
      during:
      - name: errors
        type: prometheus
        interval: 1s
        failures: 2
        prometheus: {address: %q, query: %q, control: %q, maxRatio: 5}
`, address, fmt.Sprintf(rate, "$moved"), fmt.Sprintf(rate, "$control")), s.stages("3s", "1m", "3", 0))
		}
		first := s.commit("v1", s.stages("0s", "1m", "3", 0))
		s.awaitPhase(first, v1alpha1.PhaseSucceeded)

		By("halting: the other clusters are what the canary is compared with")
		before := s.generations()
		bad := s.commit("v2", measured("Pause"))
		ro := s.awaitPhase(bad, v1alpha1.PhaseFailed)
		Expect(ro.Status.Message).To(And(HavePrefix("halted in canary: prometheus errors failed: "), MatchRegexp(`which is [0-9.]+ times the control's 0\.01, above maxRatio 5`)))
		Expect(moved(before, s.generations())).To(Equal(all[:1]))
		Expect(s.running(all[0])).To(allAt("v2", all[0]), "with Pause the canary keeps it")
		Eventually(s.statusOf).WithArguments(bad).Should(HavePrefix("failure: halted in canary: prometheus errors failed: "))

		By("rolling back, as soon as the policy says so")
		policy := s.commit("v2", measured("Rollback"))
		s.awaitRolledBack(policy)
		Expect(s.running(all...)).To(allAt("v1", all...))
		Expect(said(s.addOn)).To(ContainElement(HavePrefix("rolling back to " + first[:10] + " from " + bad[:10])))
		quarantine := s.quarantine(bad)
		Expect(quarantine.Reason).To(HavePrefix("halted in canary: prometheus errors failed: "))
		Eventually(s.statusOf).WithArguments(policy).Should(HavePrefix("failure: rolled back to " + first[:10]))

		By("refusing the same content from another commit")
		s.awaitPhase(s.commit("v1", measured("Rollback")), v1alpha1.PhaseSucceeded)
		before = s.generations()
		again := s.commit("v2", measured("Rollback"))
		s.awaitRolledBack(again)
		Expect(moved(before, s.generations())).To(BeEmpty())
		Eventually(s.statusOf).WithArguments(again).Should(And(HavePrefix("failure: "), ContainSubstring("prometheus errors failed")))

		By("admitting it again once it is unblocked")
		leaks.Store(false)
		grant(ctx, "commander", "carol")
		_, carol := user("carol")
		Expect(addonflow(ctx, carol, "unblock", s.addOn, "-n", demo.Namespace, "-m", "the database was slow")).To(ContainSubstring("carried out: "))
		Eventually(func() map[string]string { return s.running(all[0]) }).Should(allAt("v2", all[0]))
		newest := s.commit("v2", s.stages("0s", "1m", "3", 0)) // without the gate, which takes up to a minute after the soak
		s.awaitPhase(again, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))

		By("recalling it after it was green")
		addonflow(ctx, carol, "rollback", s.addOn, "-n", demo.Namespace, "--to", first[:7], "-m", "leaks memory after a week")
		s.awaitRolledBack(newest)
		Expect(s.running(all...)).To(allAt("v1", all...))
		Expect(s.rollout().Status.Override).To(And(HaveField("Kind", v1alpha1.OverrideRecall), HaveField("Author", "carol"), HaveField("Reason", ContainSubstring("leaks memory after a week"))))
	})

	It("let a stage start by the approvals of two users whom the API server knows, and by no other", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "agreed", all)
		policy := s.gated("everyone", `
      before:
      - name: qa
        type: approval
        approval:
          approvers: {users: [alice], groups: [qa]}
          count: 2
`, s.stages("0s", "1m", "2", 0))
		grant(ctx, "approver", "alice", "bob", "eve")
		sha := s.commit("v1", policy)
		ro := s.awaitPhase(sha, v1alpha1.PhaseHeld)
		Expect(ro.Status.Message).To(Equal("everyone 0/2, waits for approval qa: 0 of 2 approvals (addonflow approve agreed everyone)"))

		By("forgetting an order once it is answered, though nothing else happens: until then the rollout is shown as pending")
		for _, verb := range []string{"abort", "retry"} {
			addonflow(ctx, world.Kubeconfig, verb, s.addOn, "-n", demo.Namespace, "-m", "a drill")
			Eventually(func() []v1alpha1.GivenOrder { return s.rollout().Status.CarriedOut }).WithTimeout(5 * time.Second).Should(BeEmpty())
		}
		ro = s.rollout()
		approval := func(approver string, groups ...string) *v1alpha1.AddOnApproval {
			return &v1alpha1.AddOnApproval{
				ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, GenerateName: s.addOn + "-"},
				Spec: v1alpha1.AddOnApprovalSpec{
					RolloutUID: ro.UID, Rollout: s.addOn, Stage: "everyone", Gate: "qa", Digest: ro.Status.Target.Digest,
					Attempt: ro.Status.Attempt, Decision: v1alpha1.Approve, Approver: approver, Groups: groups,
				},
			}
		}

		By("refusing a user without the right, a forged name and a forged group")
		for _, forged := range []struct {
			by, says string
			approval *v1alpha1.AddOnApproval
		}{
			{"mallory", "cannot create resource", approval("mallory")},
			{"eve", `spec.approver is "alice", but the request is made by "eve"`, approval("alice")},
			{"eve", `spec.groups has "qa", but user "eve" is not in it`, approval("eve", "qa")},
		} {
			config, _ := user(forged.by)
			c, err := demo.NewClient(config)
			Expect(err).NotTo(HaveOccurred())
			err = c.Create(ctx, forged.approval)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", forged.by, err)
			Expect(err).To(MatchError(ContainSubstring(forged.says)))
		}

		By("counting no user who is not an approver")
		approve := func(name string, groups ...string) string {
			GinkgoHelper()
			_, kubeconfig := user(name, groups...)
			return addonflow(ctx, kubeconfig, "approve", s.addOn, "everyone", "-n", demo.Namespace, "--yes")
		}
		config, _ := user("eve")
		c, err := demo.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Create(ctx, approval("eve"))).To(Succeed())
		Eventually(func() string { return s.rollout().Status.Message }).Should(ContainSubstring("eve is not an approver"))
		Expect(approve("alice")).To(ContainSubstring("gate qa of stage everyone approved by alice"))
		Eventually(func() string { return s.rollout().Status.Message }).Should(ContainSubstring("1 of 2 approvals (alice)"))
		Expect(s.running(all...)).To(Equal(map[string]string{all[0]: "v1", all[1]: "", all[2]: ""}))
		approve("bob", "qa")
		ro = s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		gate := ro.Status.Stages[1].Gates[0]
		Expect(gate.State).To(Equal(v1alpha1.GatePassed))
		Expect(gate.By).To(Equal("alice, bob"))
		Expect(s.running(all...)).To(allAt("v1", all...))
	})

	It("admit no cluster after the window has closed, let the cluster in flight finish, and continue when it is open", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "window", all)
		policy := s.stages("0s", "1m", "1", 0)
		during := func(allow string) string {
			return s.gated("everyone", `
      before:
      - name: office
        type: window
        window: {timeZone: UTC, allow: [`+allow+`]}
`, policy)
		}
		always := during(`{hours: "00:00-24:00"}`)
		s.awaitPhase(s.commit("v1", always), v1alpha1.PhaseSucceeded)
		before, sha := s.wave(always, all, 2)

		By("closing the window in two seconds")
		now := time.Now().UTC()
		begin := now.Truncate(time.Minute)
		s.commit("v2", during(fmt.Sprintf(`{cron: "%d %d * * *", duration: %s}`, begin.Minute(), begin.Hour(), now.Add(2*time.Second).Sub(begin).Round(time.Second))))
		Eventually(func() string { return s.rollout().Status.Message }).Should(ContainSubstring("waits for window office: opens "))
		By("letting the cluster in flight finish")
		release(all...)
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(2), "what is in flight goes on")
		Consistently(func() []string { return moved(before, s.generations()) }, "2s").Should(HaveLen(2), "and no other cluster follows")
		Expect(s.rollout().Status.Phase).To(Equal(v1alpha1.PhaseHeld))

		By("opening the window")
		s.commit("v2", always)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})
})

// gated is a policy with gates in one of its stages.
func (s *scene) gated(stage, gates, policy string) string {
	GinkgoHelper()
	name := "  - name: " + stage + "\n"
	Expect(policy).To(ContainSubstring(name))
	return strings.Replace(policy, name, name+"    gates:"+gates, 1)
}

// awaitRolledBack waits until the fleet is back from the content that a commit declares.
func (s *scene) awaitRolledBack(sha string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ro := s.rollout()
		g.Expect(ro.Status.Phase).To(Equal(v1alpha1.PhaseRolledBack), ro.Status.Message)
		g.Expect(ro.Status.ObservedGeneration).To(Equal(ro.Generation))
	}).Should(Succeed())
	Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("failure: "))
}

// quarantine is that of the content which a commit introduced.
func (s *scene) quarantine(sha string) v1alpha1.Quarantine {
	GinkgoHelper()
	declared := s.rollout().Status.Override.Declared
	Expect(declared.Commit).To(HaveSuffix(sha))
	var revision v1alpha1.AddOnRevision
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: declared.Revision}, &revision)).To(Succeed())
	q, ok := v1alpha1.ReadQuarantine(revision.Annotations)
	Expect(ok).To(BeTrue())
	return q
}

// user is a user of the hub, with the path of a kubeconfig.
func user(name string, groups ...string) (*rest.Config, string) {
	GinkgoHelper()
	config, kubeconfig, err := world.Hub.User(name, groups...)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(world.Dir, name+".kubeconfig")
	Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())
	return config, path
}

// grant gives users a Role of the how-tos until the spec ends.
func grant(ctx context.Context, name string, users ...string) {
	GinkgoHelper()
	var guide []byte
	for _, page := range []string{"approvals", "retry"} {
		text, err := os.ReadFile("../../docs/how-to/" + page + ".md")
		Expect(err).NotTo(HaveOccurred())
		guide = append(guide, text...)
	}
	const begin = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
	var role rbacv1.Role
	for _, block := range strings.Split(string(guide), "```yaml\n"+begin)[1:] {
		text, _, _ := strings.Cut(block, "```")
		role = rbacv1.Role{}
		Expect(yaml.UnmarshalStrict([]byte(begin+text), &role)).To(Succeed())
		if role.Name == name {
			break
		}
	}
	Expect(role.Name).To(Equal(name))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	for _, name := range users {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
	}
	for _, o := range []client.Object{&role, binding} {
		Expect(world.Client.Create(ctx, o)).To(Succeed())
		DeferCleanup(func() { Expect(world.Client.Delete(context.WithoutCancel(ctx), o)).To(Succeed()) })
	}
}

// addonflow runs a command of the user, and returns what it prints.
func addonflow(ctx context.Context, kubeconfig string, args ...string) string {
	GinkgoHelper()
	return exits(ctx, 0, kubeconfig, args...)
}

// exits runs a command of the user that ends with an exit code, and returns what it prints.
func exits(ctx context.Context, code int, kubeconfig string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, options.Binary, args...)
	command.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + kubeconfig})
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	Expect(command.ProcessState.ExitCode()).To(Equal(code), "%v: %s", err, out.String())
	GinkgoWriter.Println(out.String())
	return out.String()
}

// command is exits for a command about the rollout of the scene: verb, and what follows its name.
func (s *scene) command(code int, kubeconfig, verb string, args ...string) string {
	GinkgoHelper()
	return exits(s.ctx, code, kubeconfig, slices.Concat([]string{verb, s.addOn, "-n", demo.Namespace}, args)...)
}
