package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/rights"
)

const registrationText = `  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster: {clusterRoleName: ADDON-reader}
`

// registering is the tree with a template whose agent gets to the hub.
func (s *scene) registering(tag string) map[string]string {
	files := s.tree(tag, "")
	text := strings.ReplaceAll(registrationText, "ADDON", s.addOn)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"], "spec:\n", "spec:\n"+text, 1)
	return files
}

// allowReader makes the role and gives both words of an admin: the label, and the
// operator's right to bind it.
func (s *scene) allowReader() {
	GinkgoHelper()
	name := s.addOn + "-reader"
	role := func(name string, labels map[string]string, rule rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{rule}}
	}
	for _, obj := range []client.Object{
		role(name, map[string]string{registration.AllowLabel: "true"}, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
		}),
		role(name+"-bind", nil, rbacv1.PolicyRule{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{name}, Verbs: []string{"bind"},
		}),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-bind"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-bind"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: rights.User}},
		},
	} {
		Expect(world.Client.Create(s.ctx, obj)).To(Succeed())
	}
	// The hub learns of a grant some time after it was stored.
	Eventually(func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: rights.User, Groups: rights.Groups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterroles", Name: name, Verb: "bind"},
		}}
		err := world.Client.Create(s.ctx, review)
		return review.Status.Allowed, err
	}).Should(BeTrue())
}

// ask has the klusterlet of a cluster ask for its agent's certificate.
func (s *scene) ask(cluster string) string {
	GinkgoHelper()
	config, _, err := world.Hub.User("system:open-cluster-management:"+cluster+":e2e", "system:open-cluster-management:"+cluster, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	klusterlet, err := client.New(config, client.Options{Scheme: world.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	asked := s.addOnOf(cluster).Status.Registrations[0]
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: asked.Subject.User, Organization: asked.Subject.Groups},
		DNSNames: []string{s.addOn + ".addon.open-cluster-management.io"},
	}, key)
	Expect(err).NotTo(HaveOccurred())
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-" + cluster + "-", Labels: map[string]string{
			"open-cluster-management.io/addon-name": s.addOn, "open-cluster-management.io/cluster-name": cluster,
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: asked.SignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
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

// reads lists who has the add-on's role in a cluster's namespace.
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
	It("Row 80: gets its name, its certificate's approval and its role, and loses the role with the content", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "registered", all)
		s.allowReader()
		sha := s.push("v1", s.registering("v1"))
		s.reconcile()
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		for _, cluster := range all {
			subject := registration.DefaultSubject(s.addOn, cluster)
			Expect(s.addOnOf(cluster).Status.Registrations).To(HaveExactElements(HaveField("Subject", subject)))
			Eventually(s.reads).WithArguments(cluster).Should(Equal(subject.Groups[:1]))
			Eventually(func() string {
				c := meta.FindStatusCondition(s.addOnOf(cluster).Status.Conditions, "RegistrationApplied")
				if c == nil {
					return ""
				}
				return c.Reason
			}).Should(Equal("SetPermissionApplied"))
			Eventually(s.approved).WithArguments(s.ask(cluster)).Should(BeTrue())
		}
		s.awaitPhase(s.commit("v2", ""), v1alpha1.PhaseSucceeded)
		for _, cluster := range all {
			Eventually(s.reads).WithArguments(cluster).Should(BeEmpty())
			Expect(s.addOnOf(cluster).Status.Registrations).To(BeEmpty())
		}
	})
})
