//go:build gitea

package gitea

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/test/demo"
)

// collaborator gives a user a permission in the repository.
func (s *scene) collaborator(user *API, permission string) {
	GinkgoHelper()
	Expect(ana.Do(s.ctx, http.MethodPut, "repos/"+s.repository+"/collaborators/"+user.User, map[string]any{"permission": permission}, nil)).To(Succeed())
}

// say writes a comment on a pull request.
func (s *scene) say(user *API, number int, text string) comment {
	GinkgoHelper()
	var written comment
	Expect(user.Do(s.ctx, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/comments", s.repository, number), map[string]string{"body": text}, &written)).To(Succeed())
	return written
}

// approvals are those of the rollout.
func (s *scene) approvals() []v1alpha1.AddOnApproval {
	GinkgoHelper()
	var list v1alpha1.AddOnApprovalList
	Expect(world.Client.List(s.ctx, &list, client.InNamespace(demo.Namespace))).To(Succeed())
	var own []v1alpha1.AddOnApproval
	for _, a := range list.Items {
		if a.Spec.Rollout == s.addOn {
			own = append(own, a)
		}
	}
	return own
}

var _ = Describe("A gate that takes comments", func() {
	It("passes by a comment of an account with the permission, and by no edited one, no review, none of the author and none on the hub", func(ctx SpecContext) {
		bob, carol := newUser(ctx, "bob"), newUser(ctx, "carol")
		s := newScene(ctx, "commented")
		s.setToken(s.token("commented-comments", "write:repository", "read:issue"))
		s.collaborator(robot, "admin")
		s.collaborator(bob, "write")
		s.collaborator(carol, "admin")
		s.atV1()
		gated := strings.Replace(s.stages(), "    maxConcurrency: 2\n", `    maxConcurrency: 2
    gates:
      before:
      - name: qa
        type: approval
        approval:
          approvers: {users: [another-user]}
          forge: {permission: maintain, notAuthor: true}
`, 1)
		_, err := s.clone.Git(ctx, "checkout", "--quiet", "-b", "change")
		Expect(err).NotTo(HaveOccurred())
		head := s.pushTag("v2", gated)
		number, err := carol.OpenPull(ctx, s.repository, "v2", "change", "main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return ana.Merge(ctx, s.repository, number, "merge", head) }).Should(Succeed())
		Eventually(func() string { return s.rollout().Status.Message }).Should(ContainSubstring("0 of 1 approvals"))
		line := gates.ApproveComment(s.addOn, "everyone", "qa", s.rollout().Status.Target.Digest)
		status := exec.CommandContext(ctx, options.Binary, "status", s.addOn, "-n", demo.Namespace)
		status.Env = append(os.Environ(), "KUBECONFIG="+world.Kubeconfig)
		printed, _ := status.CombinedOutput() // it exits with the state of the rollout
		Expect(string(printed)).To(ContainSubstring(line))

		By("hearing nothing that does not count")
		s.say(carol, number, line)
		edited := s.say(bob, number, "looks good")
		Expect(bob.Do(ctx, http.MethodPost, fmt.Sprintf("repos/%s/pulls/%d/reviews", s.repository, number), map[string]string{"event": "COMMENT", "body": line}, nil)).To(Succeed())
		Eventually(func() bool { // Gitea's times are in seconds
			Expect(bob.Do(ctx, http.MethodPatch, fmt.Sprintf("repos/%s/issues/comments/%d", s.repository, edited.ID), map[string]string{"body": "looks good, too"}, nil)).To(Succeed())
			Expect(bob.Do(ctx, http.MethodPatch, fmt.Sprintf("repos/%s/issues/comments/%d", s.repository, edited.ID), map[string]string{"body": line}, &edited)).To(Succeed())
			return edited.Updated.After(edited.Created)
		}).Should(BeTrue())
		Expect(s.comments(number)).To(ContainElement(And(HaveField("ID", edited.ID), HaveField("Body", line))))
		by := s.say(bob, number, line+"\nseen on staging")
		Consistently(s.approvals, "30s", "1s").Should(BeEmpty(), "bob may only write")
		Expect(s.wrote("v2")).To(Equal(1))

		By("reading the permission again")
		s.collaborator(bob, "admin")
		Eventually(s.running).Should(allAt("v2"))
		Expect(s.approvals()).To(HaveLen(1))
		Expect(s.approvals()[0].Spec).To(And(
			HaveField("Forge", And(
				HaveField("Host", strings.TrimPrefix(forge.URL(), "https://")), HaveField("Login", "bob"),
				HaveField("AccountID", BeNumerically(">", 0)), HaveField("CommentID", by.ID))),
			HaveField("Approver", HavePrefix("system:serviceaccount:")), HaveField("Comment", "seen on staging"), HaveField("Decision", v1alpha1.Approve)))
		s.awaitSuccess(merged(ctx, s))

		By("refusing a comment that an administrator of the hub makes up")
		forged := &v1alpha1.AddOnApproval{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "forged"}, Spec: s.approvals()[0].Spec}
		forged.Spec.Approver = "admin"
		Expect(apierrors.IsForbidden(world.Client.Create(ctx, forged))).To(BeTrue())
	})
})

// newUser creates a user of the forge.
func newUser(ctx context.Context, name string) *API {
	GinkgoHelper()
	user, err := forge.CreateUser(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return user
}

// merged is the head of main at Gitea.
func merged(ctx context.Context, s *scene) string {
	GinkgoHelper()
	head, err := ana.Head(ctx, s.repository, "main")
	Expect(err).NotTo(HaveOccurred())
	return head
}
