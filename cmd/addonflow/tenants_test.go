package main

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/controllers/tenancy"
)

// TestTenants_AreReadAtTheStart: the operator does not start with a policy of tenants that cannot be
// used, and reads a good one again for each decision.
func TestTenants_AreReadAtTheStart(t *testing.T) {
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "addonflow-system", Name: "tenants"}, Data: map[string]string{"team-a": "addOns: []\n"}}
	hub := fake.NewClientBuilder().WithObjects(policy).Build()
	o := &controllerOptions{}
	if o.parseTenants() != nil || o.checkTenants(t.Context(), hub) != nil || o.readTenants(hub) != nil {
		t.Error("without the flag there are tenants")
	}
	o.tenants = "tenants"
	if o.parseTenants() == nil {
		t.Error("a ConfigMap without a namespace is accepted")
	}
	o.tenants = "addonflow-system/none"
	if err := o.parseTenants(); err != nil || o.checkTenants(t.Context(), hub) == nil {
		t.Errorf("a ConfigMap that does not exist is accepted: %v", err)
	}
	o.tenants = "addonflow-system/tenants"
	if err := o.parseTenants(); err != nil || !errors.Is(o.checkTenants(t.Context(), hub), tenancy.ErrInvalid) {
		t.Errorf("a policy that is wrong is accepted: %v", err)
	}
	policy.Data["team-a"] = "addOns: [hello]\n"
	if err := hub.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if read, err := o.readTenants(hub)(t.Context()); err != nil || !read["team-a"].MayDeclare("hello") {
		t.Errorf("got %v, %v", read, err)
	}
}
