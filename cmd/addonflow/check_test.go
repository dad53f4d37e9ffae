package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/manifests/admission"
	"github.com/addonflow/addonflow/test/forge"
)

func TestCheckForge(t *testing.T) {
	const sha = "2222222222222222222222222222222222222222"
	f := forge.New("team/fleet")
	f.RequireToken("right")
	if _, err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for name, c := range map[string]struct {
		token string
		code  int
		want  []string
	}{
		"Works":      {"right", 0, []string{"✔ the first pending status\n", "✔ a success with the longest text, in the longest context\n", "delete its branch"}},
		"WrongToken": {"wrong", exitFailed, []string{"✗ a context without a status: ", "does not accept the token (401)", "Next: the token needs write:repository"}},
		"NoToken":    {"", exitFailed, []string{`spec.commitStatus.secretRef of AddOnSource fleet: Secret default/forge has no key "token"`}},
	} {
		t.Run(name, func(t *testing.T) {
			source := fleetSource("True", "applied")
			source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: f.Address("team/fleet"), SecretRef: &meta.LocalObjectReference{Name: "forge"}}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forge"}, Data: map[string][]byte{"token": []byte(c.token)}}
			s := newStage(t, source, secret)
			code := s.run(t.Context(), "check", "forge", "fleet", "--commit", sha)
			said := s.out.String() + s.err.String()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("said %q, want %q", said, want)
				}
			}
		})
	}
}

// TestCheckForge_WantsAFullSHA: a forge does not complete the first digits of a commit, and would be blamed.
func TestCheckForge_WantsAFullSHA(t *testing.T) {
	s := newStage(t)
	if code := s.run(t.Context(), "check", "forge", "fleet", "--commit", "2222222"); code != exitUsage || !strings.Contains(s.err.String(), `--commit "2222222" is not the full sha of a commit`) {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

// servesAll is a hub that serves every kind that AddonFlow knows.
type servesAll struct{ client.WithWatch }

// RESTMapper implements client.Client.
func (s servesAll) RESTMapper() apimeta.RESTMapper {
	return testrestmapper.TestOnlyStaticRESTMapper(s.Scheme())
}

// TestCheckHub: before an installation the rights of the user count, after it what is installed.
func TestCheckHub(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-01"}, Status: clusterv1.ManagedClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}},
	}}
	policy, err := admission.Policy()
	if err != nil {
		t.Fatal(err)
	}
	binding, err := admission.Binding()
	if err != nil {
		t.Fatal(err)
	}
	seconds, holder := int32(35), "addonflow-0"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "addonflow-system", Name: leaseName("")}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: at()},
	}}
	down := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-07"}}
	all := []client.Object{cluster, policy, binding, lease}
	for name, c := range map[string]struct {
		args    string
		objects []client.Object
		allowed bool
		code    int
		want    string
	}{
		"MayBeInstalled": {"check --pre", all[:1], true, 0, "✔ your rights to install\nNext: kubectl apply -k manifests/prerequisites"},
		"NoRights":       {"check --pre", all[:1], false, exitFailed, "✗ your rights to install: you may not create customresourcedefinitions, namespaces, "},
		"NoClusters":     {"check --pre", nil, true, exitFailed, "✗ clusters that have joined: the hub has no ManagedCluster; run clusteradm join"},
		"NoneAvailable":  {"check --pre", []client.Object{down}, true, exitFailed, "✗ clusters that have joined: none of 1 ManagedCluster is available; check that the klusterlets run"},
		"Installed":      {"check", all, true, 0, "✔ the policy that proves the authors of approvals\n✔ a leading operator\n"},
		"NoPolicy":       {"check", []client.Object{cluster, lease}, true, exitFailed, "ValidatingAdmissionPolicy addonflow-approvals is missing"},
		"NoOperator":     {"check", all[:3], true, exitFailed, "✗ a leading operator: no operator holds a Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStageWith(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
					review.Status.Allowed = c.allowed
				}
				return nil
			}}, c.objects...)
			s.hub = servesAll{s.hub}
			code := s.run(t.Context(), strings.Fields(c.args)...)
			if said := s.out.String() + s.err.String(); code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, %q, want %d, %q", code, said, c.code, c.want)
			}
		})
	}
}

// TestCheckHub_NamesTheKindsThatAreMissing: as on a cluster without OCM.
func TestCheckHub_NamesTheKindsThatAreMissing(t *testing.T) {
	s := newStage(t)
	bare := fake.NewClientBuilder().WithScheme(s.hub.Scheme()).WithRESTMapper(apimeta.NewDefaultRESTMapper(nil)).Build()
	s.cli.connect = func() (client.WithWatch, error) { return bare, nil }
	code := s.run(t.Context(), "check")
	for _, want := range []string{
		"✗ OCM's cluster manager: the hub does not serve ManagedCluster cluster.open-cluster-management.io/v1, ", "clusteradm init",
		"✗ AddonFlow's kinds: the hub does not serve AddOnSource addonflow.io/v1alpha1, ", "manifests/prerequisites",
	} {
		if code != exitFailed || !strings.Contains(s.out.String(), want) {
			t.Errorf("exit code %d, %q, want %q", code, s.out.String(), want)
		}
	}
}

// TestCheckHub_HubThatGivesNoAnswer: no check has failed, and a script must not take the exit code for that of a hub that
// lacks something.
func TestCheckHub_HubThatGivesNoAnswer(t *testing.T) {
	for name, none := range map[string]error{
		"NotReached": &url.Error{Op: "Get", URL: "https://hub.example.com", Err: errors.New("connection refused")},
		"LoginEnded": apierrors.NewUnauthorized("the token has expired"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStageWith(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return none }})
			s.hub = servesAll{s.hub}
			if code := s.run(t.Context(), "check"); code != exitUnreachable || !strings.Contains(s.err.String(), "cannot check the hub: ") {
				t.Errorf("exit code %d, want %d: %s%s", code, exitUnreachable, s.out.String(), s.err.String())
			}
		})
	}
}
