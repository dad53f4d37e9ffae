package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

var _ = Describe("The page behind a commit status", func() {
	It("shows why the canary failed, what changes and what to do, to a user who may get these objects and to no other", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "shown", all)
		policy := s.atV1("1s", "30m", "2", 0)
		sha := s.commit("never-starts", policy)
		s.awaitPhase(sha, v1alpha1.PhaseFailed)
		Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("failure: "))
		status, found := world.Forge.Latest(sha, s.context())
		Expect(found).To(BeTrue())
		Expect(status.TargetURL).To(Equal(ingress.URL + "/rollouts/" + demo.Namespace + "/shown/" + sha))

		code, text := newBrowser().open(ctx, status.TargetURL)
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(And(ContainSubstring("Log in"), Not(ContainSubstring("ProgressDeadlineExceeded"))))

		engineer := newBrowser()
		engineer.login(ctx, account(ctx, "engineer", []rbacv1.PolicyRule{
			{APIGroups: []string{"addonflow.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
			{APIGroups: []string{"addon.open-cluster-management.io", "work.open-cluster-management.io", "cluster.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
		}))
		code, text = engineer.open(ctx, status.TargetURL)
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(And(
			ContainSubstring("by Ana Example"), ContainSubstring("Why clusters failed"), ContainSubstring(all[0]), ContainSubstring("ProgressDeadlineExceeded"),
			ContainSubstring("git restore -SWs "),
			ContainSubstring("What changes"), ContainSubstring(":never-starts"), ContainSubstring(":v1"),
		))
		code, text = engineer.open(ctx, ingress.URL+"/clusters/"+all[0])
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring("ProgressDeadlineExceeded"))

		reader := newBrowser()
		reader.login(ctx, account(ctx, "reader", []rbacv1.PolicyRule{
			{APIGroups: []string{"addonflow.io"}, Resources: []string{"addonrollouts"}, ResourceNames: []string{"other"}, Verbs: []string{"get"}},
		}))
		code, text = reader.open(ctx, status.TargetURL)
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(text).NotTo(ContainSubstring("ProgressDeadlineExceeded"))
	})
})

// account creates a ServiceAccount with rights on the whole hub, and returns a token of it.
func account(ctx context.Context, name string, rules []rbacv1.PolicyRule) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: name}}
	Expect(world.Client.Create(ctx, account)).To(Succeed())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	Expect(world.Client.Create(ctx, role)).To(Succeed())
	Expect(world.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: demo.Namespace, Name: name}},
	})).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(world.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// browser opens pages, follows where they lead, and keeps cookies.
type browser struct{ client http.Client }

func newBrowser() *browser {
	GinkgoHelper()
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	return &browser{http.Client{Jar: jar, Transport: ingress.Client().Transport}}
}

// open returns the code and the text of a page.
func (b *browser) open(ctx context.Context, address string) (code int, text string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	return b.read(b.client.Do(r))
}

// login sends a token as the form of the login does.
func (b *browser) login(ctx context.Context, token string) {
	GinkgoHelper()
	form := strings.NewReader(url.Values{"token": {token}}.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, ingress.URL+"/login", form)
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	code, text := b.read(b.client.Do(r))
	Expect(code).To(Equal(http.StatusOK), text)
}

func (b *browser) read(answer *http.Response, err error) (code int, text string) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode, string(body)
}
