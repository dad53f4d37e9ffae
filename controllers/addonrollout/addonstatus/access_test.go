package addonstatus

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/registration"
)

// TestRegistrationAppliedInOCMsWords: the condition is not written while roles are being bound, so
// that a move costs two writes.
func TestRegistrationAppliedInOCMsWords(t *testing.T) {
	registered := Access{Registrations: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client"}}}
	with := func(o registration.Outcome) Access {
		return Access{Registrations: registered.Registrations, Permissions: o}
	}
	const configured = "Registration of the addon agent is configured"
	cases := map[string]struct {
		reason string
		access Access
		want   string
	}{
		"Nil":     {"a template without registration", Access{}, "True SetPermissionApplied " + configured},
		"Applied": {"all roles are bound, or none is asked for", with(registration.Outcome{State: registration.Applied}), "True SetPermissionApplied " + configured},
		"Failed":  {"a role was refused", with(registration.Outcome{State: registration.Failed, Message: "no"}), "False SetPermissionFailed Failed to set permission for hub agent: no"},
		"Pending": {"not known yet", registered, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range tc.access.conditions() {
				got = append(got, string(c.Status)+" "+c.Reason+" "+c.Message)
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPermissionsCostNoWrite: if permissions are bound between the two writes of a move, the second
// write reports them.
func TestPermissionsCostNoWrite(t *testing.T) {
	v1 := contentOf("t1")
	pending := Access{Registrations: []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client"}}}
	bound := pending
	bound.Permissions = registration.Outcome{State: registration.Applied}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	moves := []Move{
		{Rendered: v1, Access: pending},
		{Rendered: v1, Access: bound},
		{Rendered: v1, Access: bound, State: Done, Available: healthy},
		{Rendered: v1, Access: bound, State: Done, Available: healthy},
	}
	if got := written(t, addOn, moves...); got != 2 {
		t.Errorf("a move is two writes, got %d", got)
	}
	if !meta.IsStatusConditionTrue(addOn.Status.Conditions, registrationApplied) {
		t.Errorf("not said: %+v", addOn.Status.Conditions)
	}
	refused := bound
	refused.Permissions = registration.Outcome{State: registration.Failed, Message: "withdrawn"}
	written(t, addOn, Move{Rendered: v1, Access: refused, State: Done, Available: healthy})
	if c := meta.FindStatusCondition(addOn.Status.Conditions, registrationApplied); c.Status != metav1.ConditionFalse {
		t.Errorf("a refusal at rest is not said: %+v", c)
	}
}
