package hub_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// TestHubOfOCM13 writes one version and reads the other, in both directions.
func TestHubOfOCM13(t *testing.T) {
	h := hubtest.Start(t, hub.Options{Release: hub.OCM13, Namespaces: []string{"cluster1"}})
	scheme := hub.NewScheme()
	if err := addonv1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(h.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Serves", func(t *testing.T) { servesBeta(t, h) })
	t.Run("ReadsAlphaAsBeta", func(t *testing.T) { readsAlphaAsBeta(t, c) })
	t.Run("ReadsBetaAsAlpha", func(t *testing.T) { readsBetaAsAlpha(t, c) })
}

// servesBeta: AddOnTemplates have no v1beta1 in any release of OCM.
func servesBeta(t *testing.T, h *hub.Hub) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion(addonv1beta1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"clustermanagementaddons": true, "managedclusteraddons": true, "addondeploymentconfigs": true, "addontemplates": false,
	} {
		if got := servesResource(list, name); got != want {
			t.Errorf("v1beta1 serves %s: %t", name, got)
		}
	}
}

func readsAlphaAsBeta(t *testing.T, c client.Client) {
	t.Helper()
	kind := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}
	addOn := newAddOn("alpha")
	addOn.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: kind, DefaultConfig: &addonv1alpha1.ConfigReferent{Name: "alpha"}}}
	create(t, c, addOn)
	var beta addonv1beta1.ClusterManagementAddOn
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(addOn), &beta); err != nil {
		t.Fatal(err)
	}
	if d := beta.Spec.DefaultConfigs; len(d) != 1 || d[0].Resource != "addontemplates" || d[0].Name != "alpha" || beta.UID != addOn.UID {
		t.Errorf("in v1beta1 it is %+v", beta.Spec)
	}
	installed := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "alpha"},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "agents"},
	}
	create(t, c, installed)
	var betaInstalled addonv1beta1.ManagedClusterAddOn
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(installed), &betaInstalled); err != nil {
		t.Fatal(err)
	}
	if got := betaInstalled.Annotations["addon.open-cluster-management.io/v1alpha1-install-namespace"]; got != "agents" {
		t.Errorf("the namespace is %q", got)
	}
}

func readsBetaAsAlpha(t *testing.T, c client.Client) {
	t.Helper()
	installed := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "beta"}}
	create(t, c, installed)
	installed.Status.Registrations = []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{
			Driver:  "token",
			Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: "agent"}},
		},
	}}
	if err := c.Status().Update(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	var alpha addonv1alpha1.ManagedClusterAddOn
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(installed), &alpha); err != nil {
		t.Fatal(err)
	}
	if alpha.Status.KubeClientDriver != "token" || len(alpha.Status.Registrations) != 1 || alpha.Status.Registrations[0].Subject.User != "agent" {
		t.Errorf("in v1alpha1 it is %+v", alpha.Status)
	}
}
