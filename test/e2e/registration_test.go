package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/rights"
	"github.com/addonflow/addonflow/test/sample"
)

const registrationText = `  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster: {clusterRoleName: ADDON-reader}
`

// registering is the tree with a template whose agent registers with the hub.
func (s *scene) registering(tag string) map[string]string {
	files := s.tree(tag, "")
	text := strings.ReplaceAll(registrationText, "ADDON", s.addOn)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"], "spec:\n", "spec:\n"+text, 1)
	return files
}

// allowReader creates the role and grants both permissions of an admin: the label, and the
// operator's right to bind it.
func (s *scene) allowReader() {
	GinkgoHelper()
	name := s.addOn + "-reader"
	Expect(world.Client.Create(s.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{registration.AllowLabel: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	})).To(Succeed())
	Expect(rights.Grant(s.ctx, world.Client, name+"-bind", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{name}, Verbs: []string{"bind"},
	})).To(Succeed())
}

// ask makes the klusterlet of a cluster request its agent's certificate.
func (s *scene) ask(cluster string) string {
	GinkgoHelper()
	config, _, err := world.Hub.User("system:open-cluster-management:"+cluster+":e2e", "system:open-cluster-management:"+cluster, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	klusterlet, err := client.New(config, client.Options{Scheme: world.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	csr, err := sample.Request(s.addOn, cluster, s.addOnOf(cluster).Status.Registrations[0])
	Expect(err).NotTo(HaveOccurred())
	Expect(klusterlet.Create(s.ctx, csr)).To(Succeed())
	return csr.Name
}

// approved reports whether a request was approved.
func (s *scene) approved(name string) bool {
	var csr certificatesv1.CertificateSigningRequest
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Name: name}, &csr)).To(Succeed())
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}

// reads lists the subjects of the add-on's role in a cluster's namespace.
func (s *scene) reads(cluster string) []string {
	var list rbacv1.RoleBindingList
	Expect(world.Client.List(s.ctx, &list, client.InNamespace(cluster))).To(Succeed())
	var names []string
	for _, b := range list.Items {
		for _, subject := range b.Subjects {
			if b.RoleRef.Name == s.addOn+"-reader" {
				names = append(names, subject.Name)
			}
		}
	}
	return names
}

var _ = Describe("An agent that registers", func() {
	It("gets its name, its certificate's approval and its role, and loses the role with the content", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "registered", all)
		s.allowReader()
		s.deliver("v1", s.registering("v1"))
		for _, cluster := range all {
			subject := registration.DefaultSubject(s.addOn, cluster)
			Expect(s.addOnOf(cluster).Status.Registrations).To(HaveExactElements(HaveField("Subject", subject)))
			Eventually(s.reads).WithArguments(cluster).Should(Equal(subject.Groups[:1]))
			Eventually(s.addOnCondition).WithArguments(cluster, "RegistrationApplied").Should(
				Equal("True SetPermissionApplied: Registration of the addon agent is configured"))
			Eventually(s.approved).WithArguments(s.ask(cluster)).Should(BeTrue())
		}
		s.awaitPhase(s.commit("v2", ""), v1alpha1.PhaseSucceeded)
		for _, cluster := range all {
			Eventually(s.reads).WithArguments(cluster).Should(BeEmpty())
			Expect(s.addOnOf(cluster).Status.Registrations).To(BeEmpty())
		}
	})
})
