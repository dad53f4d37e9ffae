package admission_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
	"github.com/addonflow/addonflow/test/rights"
)

// approval is one of gate qa.
func approval(approver string, groups ...string) *v1alpha1.AddOnApproval {
	return &v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "hello-fleet-"},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: "1", Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: "v1:sha256:" + strings.Repeat("ab", 32),
			Attempt: 1, Decision: v1alpha1.Approve, Approver: approver, Groups: groups,
		},
	}
}

// world is a hub with the policy. Its users are in group qa; of them, alice and bob may do
// everything with AddOnApprovals.
type world struct {
	*hub.Hub
	admin, operator client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	crds, err := manifests.CRDFiles()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Hub: hubtest.Start(t, hub.Options{CRDYAML: crds, Output: t.Output()})}
	w.admin = connect(t, w.Config())
	if err := rights.InstallPolicy(t.Context(), w.admin); err != nil {
		t.Fatal(err)
	}
	if _, err := rights.Install(t.Context(), w.admin); err != nil {
		t.Fatal(err)
	}
	config, _, err := w.User(rights.User, rights.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	w.operator = connect(t, config)
	for _, o := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "approver"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addonapprovals"},
				Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "approver"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "approver"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
		},
	} {
		if err := w.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// as returns a client and the configuration of a user in group qa.
func (w *world) as(t *testing.T, user string) (client.Client, *rest.Config) {
	t.Helper()
	config, _, err := w.User(user, "qa")
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, config), config
}

func connect(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := hub.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused expects a 403 with a text.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want Forbidden with %q", err, text)
	}
}

func TestTheAPIServerProvesTheApprover(t *testing.T) {
	w := newWorld(t)
	alice, config := w.as(t, "alice")
	var review authenticationv1.SelfSubjectReview
	if err := alice.Create(t.Context(), &review); err != nil {
		t.Fatal(err)
	}
	given := approval(review.Status.UserInfo.Username, review.Status.UserInfo.Groups...)
	hubtest.Eventually(t, "alice approves as alice", func() bool { return alice.Create(t.Context(), given) == nil })
	without := approval("alice")
	if err := alice.Create(t.Context(), without); err != nil {
		t.Errorf("alice approves without groups: %v", err)
	}
	refused(t, alice.Create(t.Context(), approval("bob")), `spec.approver is "bob", but the request is made by "alice"`)
	refused(t, alice.Create(t.Context(), approval("alice", "qa", "ops", "admins")), `spec.groups has "ops", "admins", but user "alice" is not in it`)
	refused(t, w.admin.Create(t.Context(), approval("alice")), `spec.approver is "alice", but the request is made by`)
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "bob", Groups: []string{"qa"}}
	// Its mapper is the admin's: discovery would be refused before the request is made.
	posing, err := client.New(impersonating, client.Options{Scheme: w.admin.Scheme(), Mapper: w.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, posing.Create(t.Context(), approval("bob")), "cannot impersonate")
	carol, _ := w.as(t, "carol")
	refused(t, carol.Create(t.Context(), approval("carol")), `User "carol" cannot create resource "addonapprovals"`)

	changed := given.DeepCopy()
	changed.Spec.Decision = v1alpha1.Reject
	if err := alice.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "an AddOnApproval is immutable") {
		t.Errorf("alice changes a decision: %v", err)
	}
	bob, _ := w.as(t, "bob")
	taken := given.DeepCopy()
	taken.Spec.Approver = "bob"
	if err := bob.Update(t.Context(), taken); err == nil || !strings.Contains(err.Error(), "an AddOnApproval is immutable") {
		t.Errorf("bob takes a decision over: %v", err)
	}
	marked := given.DeepCopy()
	marked.Annotations = map[string]string{"a": "b"}
	if err := bob.Update(t.Context(), marked); err != nil {
		t.Errorf("an annotation is refused: %v", err)
	}
	if err := alice.Delete(t.Context(), given); err != nil {
		t.Errorf("alice withdraws: %v", err)
	}

	w.operatorReadsThePolicyAlone(t)
	w.onlyTheOperatorEntersComments(t, alice)
	w.comparesWithWhatIsShipped(t)
}

// operatorReadsThePolicyAlone: the operator lists and watches the policy and the binding with its
// shipped rights, and no other.
func (w *world) operatorReadsThePolicyAlone(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
	} {
		if err := w.operator.List(t.Context(), list, client.MatchingFieldsSelector{Selector: admission.Selector()}); err != nil {
			t.Errorf("the operator lists: %v", err)
		}
		refused(t, w.operator.List(t.Context(), list), "cannot list resource")
	}
}

// onlyTheOperatorEntersComments: a decision that names an account of a forge is refused from users, also those who
// may do everything, and from service accounts that may create AddOnApprovals.
func (w *world) onlyTheOperatorEntersComments(t *testing.T, alice client.Client) {
	t.Helper()
	commented := func(approver string) *v1alpha1.AddOnApproval {
		a := approval(approver)
		a.Spec.Forge = &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: "bob", AccountID: 3, CommentID: 7}
		return a
	}
	const other = "system:serviceaccount:default:other"
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "other"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "approver"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "other"}},
	}
	if err := w.admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	account, _ := w.as(t, other)
	hubtest.Eventually(t, "another account approves as itself", func() bool { return account.Create(t.Context(), approval(other)) == nil })
	var review authenticationv1.SelfSubjectReview
	if err := w.admin.Create(t.Context(), &review); err != nil {
		t.Fatal(err)
	}
	for user, c := range map[string]client.Client{"alice": alice, other: account, review.Status.UserInfo.Username: w.admin} {
		refused(t, c.Create(t.Context(), commented(user)), "only the operator enters decisions that were made on a forge")
	}
	if err := w.operator.Create(t.Context(), commented(rights.User)); err != nil {
		t.Errorf("the operator enters a comment: %v", err)
	}
	refused(t, w.operator.Create(t.Context(), commented("alice")), `spec.approver is "alice", but the request is made by`)
}

// read returns what the hub has, as the operator reads it.
func (w *world) read(t *testing.T) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	policy, binding, err := admission.Read(t.Context(), w.operator)
	if err != nil {
		t.Fatal(err)
	}
	return policy, binding
}

// since is the time after which authors are proven.
func (w *world) since(t *testing.T) time.Time {
	t.Helper()
	since, err := admission.Since(w.read(t))
	if err != nil {
		t.Fatal(err)
	}
	return since
}

// comparesWithWhatIsShipped uses the hub of the caller, because the API server fills in defaults.
func (w *world) comparesWithWhatIsShipped(t *testing.T) {
	t.Helper()
	if err := admission.Matches(w.read(t)); err != nil {
		t.Errorf("as installed: %v", err)
	}
	policy, binding := w.read(t)
	installed := w.since(t)
	for _, c := range []struct {
		what   string
		change func(context.Context) error
		want   string
	}{
		{"a label of another tool", func(ctx context.Context) error {
			policy.Labels = map[string]string{"a": "b"} // as an upgrade by Helm
			err := w.admin.Update(ctx, policy)
			if again := w.since(t); !again.Equal(installed) { //nolint:contextcheck // the context of the test
				t.Errorf("a label changes since when authors are proven: %s, before %s", again, installed)
			}
			return err
		}, ""},
		{"a condition that is removed again", func(ctx context.Context) error {
			kept := policy.DeepCopy()
			policy.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
			if err := w.admin.Update(ctx, policy); err != nil {
				return err
			}
			policy.Spec.MatchConditions = nil
			if err := w.admin.Update(ctx, policy, client.FieldOwner("other")); err != nil {
				return err
			}
			_, err := admission.Since(w.read(t)) //nolint:contextcheck // the context of the test
			if want := "ValidatingAdmissionPolicy addonflow-approvals was changed after it was created, so approvers are not proven; delete it, and apply manifests/install"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if err := w.admin.Delete(ctx, policy); err != nil {
				return err
			}
			policy.ObjectMeta = metav1.ObjectMeta{Name: kept.Name}
			if err := w.admin.Create(ctx, policy); err != nil {
				return err
			}
			w.since(t) //nolint:contextcheck // the context of the test
			return nil
		}, ""},
		{"binding to Audit", func(ctx context.Context) error {
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
			return w.admin.Update(ctx, binding)
		}, "ValidatingAdmissionPolicyBinding addonflow-approvals differs from the one of this operator in validationActions"},
		{"binding to a namespace", func(ctx context.Context) error {
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
			binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
			return w.admin.Update(ctx, binding)
		}, "in matchResources"},
		{"no binding", func(ctx context.Context) error { return w.admin.Delete(ctx, binding) }, "ValidatingAdmissionPolicyBinding addonflow-approvals is missing"},
		{"policy that fails open", func(ctx context.Context) error {
			policy.Spec.FailurePolicy = new(admissionregistrationv1.Ignore)
			return w.admin.Update(ctx, policy)
		}, "is missing"},
		{"no policy", func(ctx context.Context) error { return w.admin.Delete(ctx, policy) }, "ValidatingAdmissionPolicy addonflow-approvals is missing"},
	} {
		if err := c.change(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		err := admission.Matches(w.read(t))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// TestAPolicyThatFailsOpenDiffers: a changed field of the policy is named.
func TestAPolicyThatFailsOpenDiffers(t *testing.T) {
	policy, binding := shipped(t)
	policy.Spec.FailurePolicy, policy.Spec.Validations = new(admissionregistrationv1.Ignore), policy.Spec.Validations[1:]
	want := "ValidatingAdmissionPolicy addonflow-approvals differs from the one of this operator in failurePolicy, validations, so approvers are not proven; delete it, and apply manifests/install, or upgrade the Helm release"
	if err := admission.Matches(policy, binding); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAuthorsAreProvenSinceTheCreation of the policy and the binding: while one of them is missing or differs, any author
// can be written into an AddOnApproval.
func TestAuthorsAreProvenSinceTheCreation(t *testing.T) {
	policy, binding := shipped(t)
	created := time.Date(2026, time.March, 4, 14, 0, 0, 0, time.UTC)
	policy.CreationTimestamp, binding.CreationTimestamp = metav1.NewTime(created), metav1.NewTime(created.Add(time.Minute))
	if since, err := admission.Since(policy, binding); err != nil || !since.Equal(created.Add(time.Minute+5*time.Second)) {
		t.Errorf("got %s, %v", since, err)
	}
	if _, err := admission.Since(policy, nil); err == nil {
		t.Error("authors are proven without a binding")
	}
	policy.Generation, binding.Generation = 2, 2
	for range 20 { // a verdict that changes from turn to turn would be written again and again
		if _, err := admission.Since(policy, binding); err == nil || !strings.HasPrefix(err.Error(), "ValidatingAdmissionPolicy addonflow-approvals was changed") {
			t.Fatalf("both were changed, and the error is %v", err)
		}
	}
}

// TestAChangedSpecHasAnotherName: an upgrade that changes a spec in place would leave authors unproven.
func TestAChangedSpecHasAnotherName(t *testing.T) {
	policy, binding := shipped(t)
	specs, err := json.Marshal([]any{policy.Spec, binding.Spec})
	if err != nil {
		t.Fatal(err)
	}
	const name, digest = "addonflow-approvals", "9638829249cea7878752ca1954e8cb0828a7a2f19a375516ad20e4f745ebeb07"
	if got := fmt.Sprintf("%x", sha256.Sum256(specs)); got != digest || admission.Name != name {
		t.Errorf("the specs of %s have digest %s: with other specs, give the policy and the binding another name, and change both here", admission.Name, got)
	}
}

func shipped(t *testing.T) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	policy, err := admission.Policy()
	if err != nil {
		t.Fatal(err)
	}
	binding, err := admission.Binding()
	if err != nil {
		t.Fatal(err)
	}
	return policy, binding
}
