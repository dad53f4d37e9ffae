package agents_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/sample"
)

// patience is generous, because the machine may be busy.
const patience = "120s"

// world is the environment of one spec: an add-on of ours and clusters that have it.
type world struct {
	addOn string
	ctx   context.Context //nolint:containedctx // a world lives as long as its spec
}

var worlds int

// newWorld declares an add-on and installs it on two clusters, which are accepted.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	worlds++
	w := &world{addOn: fmt.Sprintf("hello-%d", worlds), ctx: ctx}
	w.create(&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.addOn}})
	for _, letter := range []string{"a", "b"} {
		w.join(w.cluster(letter))
	}
	return w
}

// cluster names a cluster of the world.
func (w *world) cluster(letter string) string { return w.addOn + "-" + letter }

func (w *world) key(letter string) agents.Key {
	return agents.Key{Cluster: w.cluster(letter), AddOn: w.addOn}
}

func (w *world) create(obj client.Object) {
	GinkgoHelper()
	Expect(admin.Create(w.ctx, obj)).To(Succeed())
}

// join makes an accepted cluster with the add-on.
func (w *world) join(name string) {
	GinkgoHelper()
	w.create(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.create(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: w.addOn}})
}

// kubeClient is a registration block with permissions.
func kubeClient(permissions ...addonv1alpha1.HubPermissionConfig) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{
		Type:       addonv1alpha1.RegistrationTypeKubeClient,
		KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions},
	}
}

func current(role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
		CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: role},
	}
}

func single(namespace, role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type: addonv1alpha1.HubPermissionsBindingSingleNamespace,
		SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
			Namespace: namespace, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		},
	}
}

// customSigner is a registration block for a user-defined signer.
func customSigner(signer, namespace, secret string) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{
		Type: addonv1alpha1.RegistrationTypeCustomSigner,
		CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
			SignerName: signer, SigningCA: addonv1alpha1.SigningCARef{Namespace: namespace, Name: secret},
		},
	}
}

// declare declares what the template applied on a cluster requests.
func (w *world) declare(letter string, blocks ...addonv1alpha1.RegistrationSpec) {
	book.Declare(w.key(letter), blocks)
}

// klusterlet returns a client with the certificate of a cluster's agent, which may request
// certificates as OCM allows it.
func (w *world) klusterlet(cluster string) client.Client {
	GinkgoHelper()
	return w.user("system:open-cluster-management:"+cluster+":9bkfw", "system:open-cluster-management:"+cluster, "system:open-cluster-management:managed-clusters")
}

// user returns a client of a user who may request certificates.
func (w *world) user(name string, groups ...string) client.Client {
	GinkgoHelper()
	config, _, err := theHub.User(name, groups...)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	worlds++
	role := fmt.Sprintf("asks-%d", worlds)
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"},
	}}})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	return c
}

// ask creates the request that a klusterlet makes for the add-on's agent, with the client c,
// and returns its name.
func (w *world) ask(c client.Client, letter, signer string) string {
	GinkgoHelper()
	cluster := w.cluster(letter)
	csr, err := sample.Request(w.addOn, cluster, addonv1alpha1.RegistrationConfig{
		SignerName: signer, Subject: registration.DefaultSubject(w.addOn, cluster),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(w.ctx, csr)).To(Succeed())
	return csr.Name
}

// approval returns the reason a request was approved with, "" while it is pending.
func (w *world) approval(name string) func() (string, error) {
	return func() (string, error) {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := admin.Get(w.ctx, client.ObjectKey{Name: name}, csr); err != nil {
			return "", err
		}
		i := slices.IndexFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
		if i < 0 {
			return "", nil
		}
		return csr.Status.Conditions[i].Reason, nil
	}
}

// certificate returns the issued certificate, nil while there is none.
func (w *world) certificate(name string) func() (*x509.Certificate, error) {
	return func() (*x509.Certificate, error) {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := admin.Get(w.ctx, client.ObjectKey{Name: name}, csr); err != nil {
			return nil, err
		}
		block, _ := pem.Decode(csr.Status.Certificate)
		if block == nil {
			return nil, nil
		}
		return x509.ParseCertificate(block.Bytes)
	}
}

// newCA creates a signing CA and its Secret, or replaces its content.
func (w *world) newCA(namespace, name string) *x509.Certificate {
	GinkgoHelper()
	secret, ca, err := sample.CA(namespace, name)
	Expect(err).NotTo(HaveOccurred())
	if err := admin.Create(w.ctx, secret); err != nil {
		Expect(admin.Update(w.ctx, secret)).To(Succeed())
	}
	return ca
}

// clusterRole makes a role that reads ConfigMaps, with labels.
func (w *world) clusterRole(name string, labels map[string]string) {
	GinkgoHelper()
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: readsConfigMaps()})
}

func readsConfigMaps() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}
}

// subjects returns the names that a role is bound to in a namespace, "" for none.
func (w *world) subjects(namespace, role string) func() (string, error) {
	return func() (string, error) {
		var list rbacv1.RoleBindingList
		if err := admin.List(w.ctx, &list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		out := ""
		for _, b := range list.Items {
			if b.RoleRef.Name != role {
				continue
			}
			for _, s := range b.Subjects {
				out += s.Kind + " " + s.Name + "\n"
			}
		}
		return out, nil
	}
}

// group is the subject line of the add-on's agent on a cluster.
func (w *world) group(letter string) string {
	return "Group system:open-cluster-management:cluster:" + w.cluster(letter) + ":addon:" + w.addOn + "\n"
}

// said collects the events so far that contain a text.
func said(text string) func() int {
	seen := 0
	return func() int {
		for {
			select {
			case e := <-events.Events:
				if ok, _ := ContainSubstring(text).Match(e); ok {
					seen++
				}
			default:
				return seen
			}
		}
	}
}
