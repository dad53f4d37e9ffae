//go:build gitea

package gitea

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// comment is a comment on a pull request as Gitea's API shows it.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

// comments are those of a pull request, oldest first.
func (s *scene) comments(number int) []comment {
	var all []comment
	if err := ana.Do(s.ctx, http.MethodGet, fmt.Sprintf("repos/%s/issues/%d/comments", s.repository, number), nil, &all); err != nil {
		return nil // while Gitea does not answer
	}
	return all
}

// planned is the newest status of the plan of a commit.
func (s *scene) planned(sha string) string {
	statuses, err := ana.Statuses(s.ctx, s.repository, sha)
	if err != nil {
		return ""
	}
	newest := ""
	for _, status := range statuses {
		if status.Context == "addonflow-plan/"+s.addOn {
			newest = status.String()
		}
	}
	return newest
}

var _ = Describe("A pull request", func() {
	It("has its plan as one status and one comment, which is changed in place, and moves nothing", func(ctx SpecContext) {
		s := newScene(ctx, "planned", func(_ *scene, source *v1alpha1.AddOnSource, _ *corev1.Secret) {
			source.Spec.Interval = metav1.Duration{Duration: 10 * time.Second}
			source.Spec.PullRequests = &v1alpha1.PullRequestsSpec{Enabled: true}
		})
		s.setToken(s.token("planned-plans", "write:repository", "write:issue", "read:user"))
		s.atV1()
		_, err := s.clone.Git(ctx, "checkout", "--quiet", "-b", "change")
		Expect(err).NotTo(HaveOccurred())
		sha := s.pushTag("v2", s.stages())
		number, err := ana.OpenPull(ctx, s.repository, "v2", "change", "main")
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.planned).WithArguments(sha).Should(Equal("success: 1 add-on: planned; 4 cluster changes"))
		Eventually(s.comments).WithArguments(number).Should(HaveLen(1))
		plan := s.comments(number)[0]
		GinkgoWriter.Println(plan.Body)
		Expect(plan.User.Login).To(Equal(robot.User))
		Expect(plan.Body).To(And(HavePrefix("<!-- addonflow-plan/planned -->\n"), ContainSubstring("`canary`"), ContainSubstring("`everyone`"),
			ContainSubstring("example.com/planned:v2"),
			ContainSubstring(", the median of 4 clusters before, without the waits"), Not(ContainSubstring(clusters(1)[0]))))

		By("saying why the next commit would be refused, in the same comment")
		broken := s.tree("v2", s.stages())
		broken["addons/template.yaml"] = strings.Replace(broken["addons/template.yaml"], "{{CLUSTER_NAME}}", "{{CLUSTERNAME}}", 1)
		bad := s.push("broken", broken)
		Eventually(s.planned).WithArguments(bad).Should(And(
			HavePrefix("failure: would be refused: "), ContainSubstring("no value for CLUSTERNAME")))
		Eventually(s.comments).WithArguments(number).Should(ConsistOf(And(
			HaveField("ID", plan.ID), HaveField("Body", ContainSubstring("**Would be refused.**")))))

		By("naming a conflict with what was merged meanwhile")
		_, err = s.clone.Git(ctx, "checkout", "--quiet", "main")
		Expect(err).NotTo(HaveOccurred())
		s.awaitSuccess(s.pushTag("v3", s.stages()))
		Eventually(s.comments).WithArguments(number).Should(ConsistOf(HaveField("Body", ContainSubstring("conflict: both sides changed it"))))
		Expect(s.planned(bad)).To(HavePrefix("failure: would be refused: "))
		Expect(s.running()).To(allAt("v3"))
		Expect(s.wrote("v2")).To(BeZero())
		Expect(s.comments(number)).To(HaveLen(1))
	})
})
