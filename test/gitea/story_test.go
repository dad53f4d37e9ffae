//go:build gitea

package gitea

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var _ = Describe("A push over HTTPS", func() {
	It("reaches the fleet by its webhook, is red when it is refused or rolled back, and says so at every step", func(ctx SpecContext) {
		all := clusters(fleetSize)
		s := newScene(ctx, "hello")
		hold(all...)

		By("showing the canary that has not started")
		begun := time.Now()
		first := s.pushTag("v1", s.stages())
		Eventually(s.wrote, "20s", "20ms").WithArguments("v1").Should(Equal(1))
		AddReportEntry("push to first ManifestWork", time.Since(begun).Round(10*time.Millisecond).String())
		Eventually(s.shows).WithArguments(first).Should(HavePrefix("pending: "))
		Eventually(s.shows).WithArguments(first, "hello").Should(HavePrefix("pending: "))
		Eventually(s.shows).WithArguments(first, "hello", "canary").Should(HavePrefix("pending: "))
		Expect(ana.Combined(ctx, s.repository, first)).To(Equal("pending"))
		release(all[0])
		By("showing the canary that has succeeded, while the others have not started")
		Eventually(s.shows).WithArguments(first, "hello", "canary").Should(HavePrefix("success: "))
		Eventually(s.shows).WithArguments(first, "hello", "everyone").Should(HavePrefix("pending: "))
		Expect(s.shows(first)).To(HavePrefix("pending: "))
		release(all...)
		By("showing the end")
		s.awaitSuccess(first)
		for _, context := range [][]string{nil, {"hello"}, {"hello", "canary"}, {"hello", "everyone"}} {
			Eventually(func() string { return s.shows(first, context...) }).Should(HavePrefix("success: "))
		}
		Expect(s.shows(first, "hello")).To(Equal("success: 4/4 updated"))
		Expect(ana.Combined(ctx, s.repository, first)).To(Equal("success"))
		Expect(s.running()).To(allAt("v1"))

		By("refusing a commit whole")
		broken := s.sealed("v2", s.stages())
		broken["addons/template.yaml"] = strings.Replace(broken["addons/template.yaml"], "{{CLUSTER_NAME}}", "{{CLUSTERNAME}}", 1)
		bad := s.push("broken", broken)
		Eventually(s.shows).WithArguments(bad).Should(And(HavePrefix("failure: "), ContainSubstring("CLUSTERNAME"), ContainSubstring("addons/template.yaml:24")))
		Expect(ana.Combined(ctx, s.repository, bad)).To(Equal("failure"))
		Expect(s.running()).To(allAt("v1"))

		By("rolling back by itself from a canary that never starts")
		failing := s.pushTag("never-starts", "  onFailure: Rollback\n"+s.stages())
		Eventually(func() v1alpha1.Phase { return s.rollout().Status.Phase }).Should(Equal(v1alpha1.PhaseRolledBack))
		Eventually(s.shows).WithArguments(failing).Should(And(HavePrefix("failure: "), ContainSubstring("rolled back to "+first[:10])))
		Eventually(s.shows).WithArguments(failing, "hello").Should(HavePrefix("failure: rolled back to " + first[:10]))
		Expect(s.running()).To(allAt("v1"))
		Expect(s.wrote("never-starts")).To(BeZero())

		By("reverting it in Git")
		_, err := s.clone.Git(ctx, "revert", "--no-edit", failing)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "revert", "--no-edit", bad)
		Expect(err).NotTo(HaveOccurred())
		reverted := s.push("reverted", nil)
		Eventually(s.shows).WithArguments(reverted).Should(HavePrefix("success: "))

		By("reading that no status was written twice, and all by the operator's user")
		for _, sha := range []string{first, bad, failing, reverted} {
			statuses, err := ana.Statuses(ctx, s.repository, sha)
			Expect(err).NotTo(HaveOccurred())
			last := map[string]string{}
			for _, status := range statuses {
				Expect(status.Creator.Login).To(Equal(robot.User))
				Expect(status.String()).NotTo(Equal(last[status.Context]), status.Context)
				last[status.Context] = status.String()
			}
		}
	})

	It("is refused when it is not fast-forward, and is looked for again where the branch is restored", func(ctx SpecContext) {
		s := newScene(ctx, "forced")
		s.atV1()
		head, err := ana.Head(ctx, s.repository, "main")
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "commit", "--quiet", "--amend", "-m", "another history")
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "push", "--quiet", "--force", "origin", "HEAD")
		Expect(err).NotTo(HaveOccurred())
		amended, err := ana.Head(ctx, s.repository, "main")
		Expect(err).NotTo(HaveOccurred())
		Expect(amended).NotTo(Equal(head))
		Eventually(s.shows).WithArguments(amended).Should(HavePrefix("failure: "))
		GinkgoWriter.Println(s.shows(amended))
		Expect(s.running()).To(allAt("v1"))

		_, err = s.clone.Git(ctx, "push", "--quiet", "--force", "origin", head+":main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string { return s.sourceCondition("Ready") }).Should(HavePrefix("True "))
	})
})

var _ = Describe("A protected branch that requires addonflow/<source>", func() {
	It("takes no pull request whose head is refused, moving or without the check, and takes one that the fleet runs", func(ctx SpecContext) {
		all := clusters(fleetSize)
		s := newScene(ctx, "required", func(_ *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
			source.Spec.Reference.Branch = "staging"
		})
		Expect(ana.Do(ctx, http.MethodPost, "repos/"+s.repository+"/branch_protections", map[string]any{
			"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"addonflow/required"}, "block_admin_merge_override": true,
		}, nil)).To(Succeed())
		_, err := s.clone.Git(ctx, "checkout", "--quiet", "-b", "staging")
		Expect(err).NotTo(HaveOccurred())
		s.atV1()
		By("refusing a push past the check")
		_, err = s.clone.Git(ctx, "push", "--quiet", "origin", "HEAD:main")
		Expect(err).To(MatchError(ContainSubstring("protected branch main")))

		broken := s.tree("v2", s.stages())
		broken["addons/template.yaml"] = strings.Replace(broken["addons/template.yaml"], "{{CLUSTER_NAME}}", "{{CLUSTERNAME}}", 1)
		bad := s.push("broken", broken)
		Eventually(s.shows).WithArguments(bad).Should(HavePrefix("failure: "))
		number, err := ana.OpenPull(ctx, s.repository, "what the fleet runs", "staging", "main")
		Expect(err).NotTo(HaveOccurred())
		unmergeable := func(head string) {
			GinkgoHelper()
			var message string
			Eventually(func() string {
				_, message = refused(ana.Merge(ctx, s.repository, number, "merge", head))
				return message
			}).ShouldNot(ContainSubstring("try again later"), "Gitea checks a new pull request in the background")
			Expect(message).To(ContainSubstring("status checks"))
		}
		By("not merging the refused head")
		unmergeable(bad)

		By("not merging while the canary moves")
		hold(all...)
		good := s.push("mended", s.tree("v2", s.stages()))
		Eventually(s.shows).WithArguments(good).Should(HavePrefix("pending: "))
		unmergeable(good)
		release(all...)

		By("merging what every cluster runs")
		Eventually(s.shows).WithArguments(good).Should(HavePrefix("success: "))
		Expect(ana.Merge(ctx, s.repository, number, "merge", good)).To(Succeed())
		Expect(s.running()).To(allAt("v2"))

		By("not merging a branch that no source reads: its check never comes")
		_, err = s.clone.Git(ctx, "checkout", "--quiet", "-b", "aside")
		Expect(err).NotTo(HaveOccurred())
		aside := s.push("aside", map[string]string{"README.md": "aside\n"})
		number, err = ana.OpenPull(ctx, s.repository, "aside", "aside", "main")
		Expect(err).NotTo(HaveOccurred())
		unmergeable(aside)
		Expect(s.statuses(aside)).To(BeEmpty())
	})
})

var _ = Describe("A push over SSH", func() {
	It("is read with a deploy key that may not write, from the host that known_hosts names", func(ctx SpecContext) {
		s := newScene(ctx, "secured", func(s *scene, source *v1alpha1.AddOnSource, access *corev1.Secret) {
			key := newKey("deploy")
			Expect(ana.Do(ctx, http.MethodPost, "repos/"+s.repository+"/keys", map[string]any{"title": "operator", "key": public(key), "read_only": true}, nil)).To(Succeed())
			identity, err := os.ReadFile(key)
			Expect(err).NotTo(HaveOccurred())
			known, err := forge.KnownHosts()
			Expect(err).NotTo(HaveOccurred())
			source.Spec.URL = forge.SSHURL(s.repository)
			access.StringData = map[string]string{"identity": string(identity), "known_hosts": known}
		})
		key := newKey("ana")
		Expect(ana.Do(ctx, http.MethodPost, "user/keys", map[string]any{"title": "laptop", "key": public(key)}, nil)).To(Succeed())
		var err error
		s.clone, err = forge.NewSSHClone(ctx, filepath.Join(world.Dir, "clones", "secured-ssh"), s.repository, key)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "pull", "--quiet", "origin", "main")
		Expect(err).NotTo(HaveOccurred())

		s.atV1()
		Expect(s.running()).To(allAt("v1"))
		sha := s.pushTag("v2", s.stages())
		s.awaitSuccess(sha)
		Eventually(s.shows).WithArguments(sha).Should(HavePrefix("success: "))
	})
})

var _ = Describe("A source with verify", func() {
	It("rolls out what a known key signed, and refuses an unsigned commit, one of another key and one that Gitea merged", func(ctx SpecContext) {
		mine, theirs := newKey("signer"), newKey("stranger")
		s := newScene(ctx, "verified", func(s *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
			Expect(world.Client.Create(ctx, s.secret("verified-keys", map[string]string{"ana.sshpub": public(mine)}))).To(Succeed())
			source.Spec.Verify = &v1alpha1.VerifySpec{Mode: v1alpha1.VerifyHEAD, SecretRef: meta.LocalObjectReference{Name: "verified-keys"}}
		})
		s.clone.SignWith(mine)
		s.atV1()
		for tag, key := range map[string]string{"unsigned": "", "stranger": theirs} {
			s.clone.SignWith(key)
			sha := s.pushTag(tag, s.stages())
			Eventually(s.shows).WithArguments(sha).Should(HavePrefix("failure: "), tag)
			GinkgoWriter.Println(s.shows(sha))
		}
		By("merging a signed commit at Gitea, whose merge commit is not signed")
		s.clone.SignWith(mine)
		_, err := s.clone.Git(ctx, "checkout", "--quiet", "-b", "change")
		Expect(err).NotTo(HaveOccurred())
		signed := s.pushTag("v2", s.stages())
		number, err := ana.OpenPull(ctx, s.repository, "v2", "change", "main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return ana.Merge(ctx, s.repository, number, "merge", signed) }).Should(Succeed())
		merged, err := ana.Head(ctx, s.repository, "main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.shows).WithArguments(merged).Should(HavePrefix("failure: "))
		GinkgoWriter.Println(s.shows(merged))
		Expect(s.running()).To(allAt("v1"))

		By("signing on top of it")
		_, err = s.clone.Git(ctx, "checkout", "--quiet", "main")
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "pull", "--quiet", "--ff-only", "origin", "main")
		Expect(err).NotTo(HaveOccurred())
		sha := s.push("I vouch for this", nil)
		s.awaitSuccess(sha)
		Eventually(s.shows).WithArguments(sha).Should(HavePrefix("success: "))
		Expect(s.running()).To(allAt("v2"))
	})
})

var _ = Describe("A token for statuses", func() {
	It("that is revoked is named in a condition and delays no rollout; with the next one every status follows", func(ctx SpecContext) {
		all := clusters(fleetSize)
		s := newScene(ctx, "revoked")
		s.atV1()
		Expect(robot.RevokeToken(ctx, "revoked-status")).To(Succeed())

		hold(all...)
		sha := s.push("v2", s.sealed("v2", s.stages()))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusDeniedCondition).Should(And(
			HavePrefix("True TokenRefused: "), ContainSubstring("/revoked-forge has the token, and it needs write:repository")))
		Eventually(s.rolloutCondition).WithArguments(v1alpha1.CommitStatusDeniedCondition).Should(HavePrefix("True TokenRefused: "))
		GinkgoWriter.Println(s.sourceCondition(v1alpha1.CommitStatusDeniedCondition))
		release(all...)
		s.awaitSuccess(sha)
		Expect(s.running()).To(allAt("v2"))
		Expect(s.statuses(sha)).To(BeEmpty())

		By("naming the permission that a token with too little scope lacks")
		s.setToken(s.token("revoked-too-little", "read:repository"))
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusDeniedCondition).Should(And(
			HavePrefix("True PermissionMissing: "), ContainSubstring("it needs write:repository")))
		GinkgoWriter.Println(s.sourceCondition(v1alpha1.CommitStatusDeniedCondition))

		By("delivering what was kept")
		s.setToken(s.token("revoked-again", "write:repository"))
		for _, context := range [][]string{nil, {"revoked"}, {"revoked", "canary"}, {"revoked", "everyone"}} {
			Eventually(func() string { return s.shows(sha, context...) }).Should(HavePrefix("success: "))
		}
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusDeniedCondition).Should(BeEmpty())
		Eventually(s.rolloutCondition).WithArguments(v1alpha1.CommitStatusDeniedCondition).Should(BeEmpty())
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusReportedCondition).Should(HavePrefix("True "))
	})

	It("passes the check of the command line", func(ctx SpecContext) {
		s := newScene(ctx, "checked")
		_, err := s.clone.Git(ctx, "checkout", "--quiet", "--orphan", "addonflow-check")
		Expect(err).NotTo(HaveOccurred())
		sha := s.push("check the forge", nil)
		printed := addonflow(ctx, "check", "forge", "checked", "-n", "default", "--commit", sha)
		Expect(printed).To(And(ContainSubstring("✔ "), Not(ContainSubstring("✗"))))
		Expect(ana.Combined(ctx, s.repository, sha)).To(Equal("success"))
	})
})

var _ = Describe("Gitea stopped in the middle of a rollout", func() {
	It("delays no cluster, and shows every verdict when it is back", func(ctx SpecContext) {
		all := clusters(fleetSize)
		s := newScene(ctx, "outage")
		s.atV1()
		hold(all...)
		sha := s.pushTag("v2", s.stages())
		Eventually(s.shows).WithArguments(sha, "outage", "canary").Should(HavePrefix("pending: "))

		begun := time.Now()
		Expect(forge.Stop()).To(Succeed())
		AddReportEntry("Gitea stopped after", time.Since(begun).Round(100*time.Millisecond).String())
		release(all...)
		begun = time.Now()
		s.awaitSuccess(sha)
		AddReportEntry("the rollout ended without Gitea after", time.Since(begun).Round(100*time.Millisecond).String())
		Expect(s.running()).To(allAt("v2"))
		Eventually(s.rolloutCondition).WithArguments(v1alpha1.CommitStatusReportedCondition).Should(HavePrefix("False "))
		GinkgoWriter.Println(s.rolloutCondition(v1alpha1.CommitStatusReportedCondition))
		Expect(s.rolloutCondition(v1alpha1.CommitStatusDeniedCondition)).To(BeEmpty(), "a forge that is down denies nothing")

		begun = time.Now()
		Expect(forge.Resume(ctx)).To(Succeed())
		for _, context := range [][]string{nil, {"outage"}, {"outage", "canary"}, {"outage", "everyone"}} {
			Eventually(func() string { return s.shows(sha, context...) }, "6m").Should(HavePrefix("success: "))
		}
		AddReportEntry("every verdict was shown after", time.Since(begun).Round(100*time.Millisecond).String())
		By("hearing of the next push")
		next := s.pushTag("v3", s.stages())
		s.awaitSuccess(next)
		Eventually(s.shows).WithArguments(next).Should(HavePrefix("success: "))
	})
})

var _ = Describe("A reference", func() {
	It("may be a range of tags, the head of a pull request, or a commit that is no head", func(ctx SpecContext) {
		s := newScene(ctx, "referred", func(_ *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
			source.Spec.Reference = &v1alpha1.GitReference{SemVer: ">=1.0.0"}
		})
		follow := func(reference string) {
			GinkgoHelper()
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"ref":`+reference+`}}`))
			Expect(world.Client.Patch(ctx, s.source(), patch)).To(Succeed())
		}
		rolledOut := func(sha, tag string) {
			GinkgoHelper()
			s.awaitSuccess(sha)
			Eventually(s.shows).WithArguments(sha).Should(HavePrefix("success: "))
			Expect(s.running()).To(allAt(tag))
		}
		first := s.pushTag("v1", s.stages())
		_, err := s.clone.Git(ctx, "tag", "--annotate", "--message", "the first", "v1.0.0")
		Expect(err).NotTo(HaveOccurred())
		_, err = s.clone.Git(ctx, "push", "--quiet", "origin", "v1.0.0")
		Expect(err).NotTo(HaveOccurred())
		rolledOut(first, "v1")

		_, err = s.clone.Git(ctx, "checkout", "--quiet", "-b", "change")
		Expect(err).NotTo(HaveOccurred())
		second := s.pushTag("v2", s.stages())
		number, err := ana.OpenPull(ctx, s.repository, "v2", "change", "main")
		Expect(err).NotTo(HaveOccurred())
		follow(fmt.Sprintf(`{"semver":null,"name":"refs/pull/%d/head"}`, number))
		rolledOut(second, "v2")
		third := s.pushTag("v3", s.stages())
		rolledOut(third, "v3")

		follow(fmt.Sprintf(`{"name":null,"commit":%q}`, second))
		rolledOut(second, "v2")
	})
})

var _ = Describe("A repository that was renamed", func() {
	It("is read where its host redirects to, and named in a condition until statuses have its new address", func(ctx SpecContext) {
		s := newScene(ctx, "renamed")
		s.atV1()
		Expect(ana.Do(ctx, http.MethodPatch, "repos/"+s.repository, map[string]any{"name": "renamed-since"}, nil)).To(Succeed())
		s.repository += "-since"
		sha := s.pushTag("v2", s.stages())
		s.awaitSuccess(sha)
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusReportedCondition).Should(And(
			HavePrefix("False DeliveryFailed: "), ContainSubstring("says that the repository has moved (301), the address must be changed")))
		Expect(s.statuses(sha)).To(BeEmpty(), "a redirected POST proves nothing")

		patch := fmt.Sprintf(`{"spec":{"commitStatus":{"address":%q}}}`, forge.URL()+"/"+s.repository)
		Expect(world.Client.Patch(ctx, s.source(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		for _, context := range [][]string{nil, {"renamed"}, {"renamed", "canary"}, {"renamed", "everyone"}} {
			Eventually(func() string { return s.shows(sha, context...) }).Should(HavePrefix("success: "))
		}
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusReportedCondition).Should(HavePrefix("True "))
	})
})

var _ = Describe("A webhook", func() {
	It("is refused as a form, whose signature is not that of its body, and is heard as JSON", func(ctx SpecContext) {
		s := newScene(ctx, "heard")
		s.atV1()
		var all []struct {
			ID int `json:"id"`
		}
		Expect(ana.Do(ctx, http.MethodGet, "repos/"+s.repository+"/hooks", nil, &all)).To(Succeed())
		Expect(all).To(HaveLen(1))
		send := func(contentType string) {
			GinkgoHelper()
			Expect(ana.Do(ctx, http.MethodPatch, fmt.Sprintf("repos/%s/hooks/%d", s.repository, all[0].ID),
				map[string]any{"config": map[string]string{"content_type": contentType}}, nil)).To(Succeed())
		}
		send("form")
		s.pushTag("v2", s.stages())
		Eventually(operatorLog).Should(MatchRegexp(`A webhook is refused: its signature or token is wrong.*"heard"`))
		Consistently(s.wrote, "2s").WithArguments("v2").Should(BeZero())
		send("json")
		sha := s.pushTag("v3", s.stages())
		s.awaitSuccess(sha)
	})
})

var _ = Describe("An address of statuses", func() {
	It("that is another repository is named in a condition; every status is at the right one once it is corrected", func(ctx SpecContext) {
		const other = team + "/not-misplaced"
		Expect(ana.Do(ctx, http.MethodPost, "orgs/"+team+"/repos", map[string]any{"name": "not-misplaced", "private": true, "auto_init": true}, nil)).To(Succeed())
		Expect(ana.Do(ctx, http.MethodPut, "repos/"+other+"/collaborators/"+robot.User, map[string]any{"permission": "write"}, nil)).To(Succeed())
		s := newScene(ctx, "misplaced", func(_ *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
			source.Spec.CommitStatus.Address = forge.URL() + "/" + other
		})
		sha := s.pushTag("v1", s.stages())
		s.awaitSuccess(sha)
		Eventually(s.sourceCondition).WithArguments(v1alpha1.CommitStatusReportedCondition).Should(And(
			HavePrefix("False DeliveryFailed: "), ContainSubstring("does not know the repository or the commit")), "Gitea itself calls it an internal error")

		patch := fmt.Sprintf(`{"spec":{"commitStatus":{"address":%q}}}`, forge.URL()+"/"+s.repository)
		Expect(world.Client.Patch(ctx, s.source(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		Eventually(s.shows).WithArguments(sha).Should(HavePrefix("success: "))
		Eventually(s.shows).WithArguments(sha, "misplaced").Should(HavePrefix("success: "))
	})
})

// newKey makes an SSH key, and returns the path of its private half.
func newKey(name string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name+"@example.com", "-f", path).CombinedOutput() //nolint:noctx // at once
	Expect(err).NotTo(HaveOccurred(), string(out))
	return path
}

// public is the public half of a key.
func public(key string) string {
	GinkgoHelper()
	text, err := os.ReadFile(key + ".pub")
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(text))
}
