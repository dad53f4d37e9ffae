package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

func TestRegistrations(t *testing.T) {
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
	cases := map[string]struct {
		reason string
		specs  []addonv1alpha1.RegistrationSpec
		found  []addonv1alpha1.RegistrationConfig
		driver string
		want   []addonv1alpha1.RegistrationConfig
		fails  bool
	}{
		"None":       {reason: "a template without registration asks for no credentials"},
		"KubeClient": {reason: "the hub's own client signer, with OCM's subject", specs: []addonv1alpha1.RegistrationSpec{kube}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client", Subject: ours}}},
		"Custom":     {reason: "a signer of the user's, with OCM's subject", specs: []addonv1alpha1.RegistrationSpec{signer(nil)}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: ours}}},
		"OwnSubject": {reason: "a subject the template names is taken", specs: []addonv1alpha1.RegistrationSpec{signer(&own)}, want: []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/signer", Subject: own}}},
		"Token":      {reason: "what a token-based agent wrote of itself is kept", specs: []addonv1alpha1.RegistrationSpec{kube}, found: []addonv1alpha1.RegistrationConfig{byToken}, want: []addonv1alpha1.RegistrationConfig{byToken}},
		"NoSection":  {reason: "a CustomSigner without its section names no signer", specs: []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeCustomSigner}}, fails: true},
		"Unknown":    {reason: "another type is not guessed at", specs: []addonv1alpha1.RegistrationSpec{{Type: "Other"}}, fails: true},
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
