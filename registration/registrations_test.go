package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestRegistrationsAreComputed(t *testing.T) {
	kube := addonv1alpha1.RegistrationSpec{Type: addonv1alpha1.RegistrationTypeKubeClient}
	signer := func(s *addonv1alpha1.Subject) addonv1alpha1.RegistrationSpec {
		return addonv1alpha1.RegistrationSpec{
			Type:         addonv1alpha1.RegistrationTypeCustomSigner,
			CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{SignerName: "example.com/signer", Subject: s},
		}
	}
	own := addonv1alpha1.Subject{User: "agent", Groups: []string{"agents"}}
	byToken := addonv1alpha1.RegistrationConfig{
		SignerName: "kubernetes.io/kube-apiserver-client",
		Subject:    addonv1alpha1.Subject{User: "system:serviceaccount:c1:hello-agent"},
	}
	ours := addonv1alpha1.Subject{
		User: "system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent",
		Groups: []string{
			"system:open-cluster-management:cluster:c1:addon:hello",
			"system:open-cluster-management:addon:hello",
		},
	}
	known := func(user string, groups ...string) []addonv1alpha1.RegistrationConfig {
		return []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: addonv1alpha1.Subject{User: user, Groups: groups}}}
	}
	withEverybody := append(append([]string{}, ours.Groups...), "system:authenticated")
	cases := map[string]struct {
		reason string
		specs  []addonv1alpha1.RegistrationSpec
		found  []addonv1alpha1.RegistrationConfig
		driver string
		want   []addonv1alpha1.RegistrationConfig
		fails  bool
	}{
		"None":          {reason: "a template without registration asks for no credentials"},
		"KubeClient":    {reason: "the hub's own client signer, with OCM's subject", specs: []addonv1alpha1.RegistrationSpec{kube}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"Custom":        {reason: "a signer of the user's, with OCM's subject", specs: []addonv1alpha1.RegistrationSpec{signer(nil)}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: ours}}},
		"OwnSubject":    {reason: "a subject the template names is taken", specs: []addonv1alpha1.RegistrationSpec{signer(&own)}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: own}}},
		"Token":         {reason: "what a token-based agent wrote of itself is kept", specs: []addonv1alpha1.RegistrationSpec{kube}, found: []addonv1alpha1.RegistrationConfig{byToken}, want: []addonv1alpha1.RegistrationConfig{byToken}},
		"TokenDriver":   {reason: "its driver says so too", specs: []addonv1alpha1.RegistrationSpec{kube}, driver: "token", found: []addonv1alpha1.RegistrationConfig{byToken}, want: []addonv1alpha1.RegistrationConfig{byToken}},
		"BackToCSR":     {reason: "an agent that asks for certificates again is not an account", specs: []addonv1alpha1.RegistrationSpec{kube}, driver: "csr", found: []addonv1alpha1.RegistrationConfig{byToken}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"OtherToken":    {reason: "another account is not its own", specs: []addonv1alpha1.RegistrationSpec{kube}, found: known("system:serviceaccount:c2:hello-agent"), want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"TokenOfMaster": {reason: "nor may it add a group", specs: []addonv1alpha1.RegistrationSpec{kube}, found: known(byToken.Subject.User, "system:masters"), want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"ByOCM12":       {reason: "OCM before 1.3 lists a group more; taking it away would cost the agent its credentials", specs: []addonv1alpha1.RegistrationSpec{kube}, found: known(ours.User, withEverybody...), want: known(ours.User, withEverybody...)},
		"HostileGroup":  {reason: "a status is written by its agent", specs: []addonv1alpha1.RegistrationSpec{kube}, found: known(ours.User, append([]string{"system:masters"}, ours.Groups...)...), want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"HostileUser":   {reason: "its user as well", specs: []addonv1alpha1.RegistrationSpec{kube}, found: known("kubernetes-admin", ours.Groups...), want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"HostileSigner": {reason: "a signer that the template does not name goes", specs: []addonv1alpha1.RegistrationSpec{kube}, found: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: own}}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"NoUser":        {reason: "a klusterlet would make a user up", specs: []addonv1alpha1.RegistrationSpec{signer(&addonv1alpha1.Subject{Groups: []string{"agents"}})}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: addonv1alpha1.Subject{User: ours.User, Groups: []string{"agents"}}}}},
		"NoSection":     {reason: "a CustomSigner without its section names no signer", specs: []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeCustomSigner}}, fails: true},
		"Unknown":       {reason: "another type is not guessed at", specs: []addonv1alpha1.RegistrationSpec{{Type: "Other"}}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Registrations(tc.specs, "hello", "c1", Found{Registrations: tc.found, Driver: tc.driver})
			if (err != nil) != tc.fails {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRegistrationsInBothAPIVersions: registrations written in v1alpha1 are the same in v1beta1,
// which a hub with OCM's conversion serves.
func TestRegistrationsInBothAPIVersions(t *testing.T) {
	specs := []addonv1alpha1.RegistrationSpec{
		{Type: addonv1alpha1.RegistrationTypeKubeClient},
		{Type: addonv1alpha1.RegistrationTypeCustomSigner, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
			SignerName: "example.com/signer", Subject: &addonv1alpha1.Subject{User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"o"}},
		}},
	}
	written, err := Registrations(specs, "hello", "c1", Found{Driver: "token"})
	if err != nil {
		t.Fatal(err)
	}
	stored := &addonv1alpha1.ManagedClusterAddOn{Status: addonv1alpha1.ManagedClusterAddOnStatus{Registrations: written, KubeClientDriver: "token"}}
	var served addonv1beta1.ManagedClusterAddOn
	if err := addonv1beta1.Convert_v1alpha1_ManagedClusterAddOn_To_v1beta1_ManagedClusterAddOn(stored, &served, nil); err != nil {
		t.Fatal(err)
	}
	want := []addonv1beta1.RegistrationConfig{
		{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "token", Subject: addonv1beta1.KubeClientSubject{
			BaseSubject: addonv1beta1.BaseSubject{User: written[0].Subject.User, Groups: written[0].Subject.Groups},
		}}},
		{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "example.com/signer", Subject: addonv1beta1.Subject{
			BaseSubject: addonv1beta1.BaseSubject{User: "u", Groups: []string{"g"}}, OrganizationUnits: []string{"o"},
		}}},
	}
	if diff := cmp.Diff(want, served.Status.Registrations); diff != "" {
		t.Errorf("-want +served\n%s", diff)
	}
	var back addonv1alpha1.ManagedClusterAddOn
	if err := addonv1beta1.Convert_v1beta1_ManagedClusterAddOn_To_v1alpha1_ManagedClusterAddOn(&served, &back, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored.Status.Registrations, back.Status.Registrations); diff != "" {
		t.Errorf("there and back: -written +read\n%s", diff)
	}
}
