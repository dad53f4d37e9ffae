package admission_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// order is one of alice.
func order(verb v1alpha1.OrderVerb, change func(*v1alpha1.AddOnOrderSpec)) *v1alpha1.AddOnOrder {
	o := &v1alpha1.AddOnOrder{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "hello-"},
		Spec:       v1alpha1.AddOnOrderSpec{RolloutUID: "1", Rollout: "hello", Verb: verb, Digest: "v1:sha256:" + strings.Repeat("ab", 32), Attempt: 1, Author: "alice"},
	}
	if change != nil {
		change(&o.Spec)
	}
	return o
}

// TestOrders: the API server proves the author of an order, refuses one that makes no sense, and
// takes one answer.
func TestOrders(t *testing.T) {
	w := newWorld(t)
	var role rbacv1.Role
	if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "approver"}, &role); err != nil {
		t.Fatal(err)
	}
	role.Rules[0].Resources = append(role.Rules[0].Resources, "addonorders")
	if err := w.admin.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	alice, _ := w.as(t, "alice")
	o := order(v1alpha1.OrderAbort, nil)
	hubtest.Eventually(t, "alice aborts", func() bool { return alice.Create(t.Context(), o) == nil })
	o.Status = v1alpha1.AddOnOrderStatus{State: v1alpha1.OrderCarriedOut, Message: "m"}
	if err := w.admin.Status().Update(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.Status.State = v1alpha1.OrderRefused
	if err := w.admin.Status().Update(t.Context(), o); err == nil || !strings.Contains(err.Error(), "answered once") {
		t.Errorf("an order is answered twice: %v", err)
	}
	if err := w.admin.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))); err == nil || !strings.Contains(err.Error(), "answered once") {
		t.Errorf("an answer is taken back: %v", err)
	}
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Error(err)
	}
	o.Spec.Reason = "x"
	if err := alice.Update(t.Context(), o); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("an order is changed: %v", err)
	}
	stage := func(s *v1alpha1.AddOnOrderSpec) { s.Arguments = &v1alpha1.OrderArguments{Stage: "canary"} }
	for _, c := range []struct {
		o    *v1alpha1.AddOnOrder
		want string
	}{
		{order(v1alpha1.OrderRetry, nil), ""},
		{order(v1alpha1.OrderRetry, func(s *v1alpha1.AddOnOrderSpec) { s.Arguments = &v1alpha1.OrderArguments{Clusters: []string{"c1"}} }), ""},
		{order(v1alpha1.OrderPromote, stage), ""},
		{order(v1alpha1.OrderPromote, nil), "promote needs arguments.stage"},
		{order(v1alpha1.OrderAbort, stage), "promote needs arguments.stage"},
		{order(v1alpha1.OrderAbort, func(s *v1alpha1.AddOnOrderSpec) { s.Arguments = &v1alpha1.OrderArguments{Clusters: []string{"c1"}} }), "arguments.clusters is for retry"},
		{order(v1alpha1.OrderRollback, nil), "rollback needs a reason"},
		{order(v1alpha1.OrderRollback, func(s *v1alpha1.AddOnOrderSpec) {
			s.Reason, s.Arguments = "bad", &v1alpha1.OrderArguments{To: "9f3c2ab", WithCRDs: true}
		}), ""},
		{order(v1alpha1.OrderUnblock, func(s *v1alpha1.AddOnOrderSpec) { s.Arguments = &v1alpha1.OrderArguments{To: "9f3c2ab"} }), "are for rollback"},
		{order(v1alpha1.OrderAbort, func(s *v1alpha1.AddOnOrderSpec) { s.Author = "bob" }), `spec.author is "bob", but the request is made by "alice"`},
		{order("fly", nil), "spec.verb"},
	} {
		err := alice.Create(t.Context(), c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o.Spec, err, c.want)
		}
	}
}
