package admission_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// revision is one of hello.
func revision(name string) *v1alpha1.AddOnRevision {
	return &v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "hello-" + name},
		Spec:       v1alpha1.AddOnRevisionSpec{AddOn: "hello", Digest: "v1:sha256:" + strings.Repeat("ab", 32), Body: []byte("x")},
	}
}

// TestTheOperatorAloneWritesRevisions: with the policy of manifests/tenants, a user with every right to
// AddOnRevisions writes none, and an admin restores them from a backup.
func TestTheOperatorAloneWritesRevisions(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("../tenants/revisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := w.admin.Create(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tenant"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addonrevisions"}, Verbs: []string{"*"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addonrollouts"}, Verbs: []string{"patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
		},
	} {
		if err := w.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	alice, _ := w.as(t, "alice")
	hubtest.Eventually(t, "the policy is in effect", func() bool {
		err := alice.Create(t.Context(), revision("of-alice"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), `user "alice" may not update addonrollouts/status`)
	})

	written := revision("of-the-operator")
	if err := w.operator.Create(t.Context(), written); err != nil {
		t.Fatalf("the operator: %v", err)
	}
	mark := func(by client.Client, at string) error {
		before := written.DeepCopy()
		before.Annotations = nil
		after := before.DeepCopy()
		after.Annotations = map[string]string{v1alpha1.SucceededAtAnnotation: at}
		return by.Patch(t.Context(), after, client.MergeFrom(before))
	}
	if err := mark(w.operator, "2026-01-01T00:00:00Z"); err != nil {
		t.Errorf("the operator: %v", err)
	}
	refused(t, mark(alice, "2026-01-02T00:00:00Z"), `user "alice" may not update`)
	if err := w.admin.Create(t.Context(), revision("restored")); err != nil {
		t.Errorf("an admin: %v", err)
	}
}
