package manifests_test

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/manifests"
)

const systemNamespace = "addonflow-system"

// object is one object of a directory of manifests.
type object struct {
	kind, namespace, name string
	text                  []byte
}

// install builds manifests/prerequisites and manifests/install as kubectl apply -k does.
func install(t *testing.T) []object {
	t.Helper()
	return append(built(t, "prerequisites"), built(t, "install")...)
}

// built builds a directory of manifests as kubectl apply -k does.
func built(t *testing.T, dir string) []object {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("cannot build manifests/%s: %v", dir, err)
	}
	objects := make([]object, 0, built.Size())
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object{kind: r.GetKind(), namespace: r.GetNamespace(), name: r.GetName(), text: text})
	}
	return objects
}

// allOf decodes the objects of a kind, strictly.
func allOf[T any](t *testing.T, kind string) []T {
	t.Helper()
	var found []T
	for _, o := range install(t) {
		if o.kind != kind {
			continue
		}
		var value T
		if err := yaml.UnmarshalStrict(o.text, &value); err != nil {
			t.Fatalf("%s %s: %v", o.kind, o.name, err)
		}
		found = append(found, value)
	}
	return found
}

// theOnly decodes the one object of a kind.
func theOnly[T any](t *testing.T, kind string) T {
	t.Helper()
	found := allOf[T](t, kind)
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want one", len(found), kind)
	}
	return found[0]
}

func TestInstallHasTheExpectedObjects(t *testing.T) {
	var got []string
	for _, o := range install(t) {
		got = append(got, strings.TrimPrefix(o.kind+" "+o.namespace+"/"+o.name, "/"))
	}
	slices.Sort(got)
	want := []string{
		"ClusterRole /addonflow",
		"ClusterRole /addonflow-approve",
		"ClusterRole /addonflow-approve-own",
		"ClusterRole /addonflow-base",
		"ClusterRole /addonflow-edit",
		"ClusterRole /addonflow-edit-own",
		"ClusterRole /addonflow-secrets",
		"ClusterRole /addonflow-view",
		"ClusterRoleBinding /addonflow",
		"CustomResourceDefinition /addonapprovals.addonflow.io",
		"CustomResourceDefinition /addonhubconfigs.addon.open-cluster-management.io",
		"CustomResourceDefinition /addonorders.addonflow.io",
		"CustomResourceDefinition /addonrevisions.addonflow.io",
		"CustomResourceDefinition /addonrollouts.addonflow.io",
		"CustomResourceDefinition /addonsources.addonflow.io",
		"Deployment addonflow-system/addonflow",
		"Namespace /addonflow-system",
		"NetworkPolicy addonflow-system/addonflow",
		"PodDisruptionBudget addonflow-system/addonflow",
		"Role addonflow-system/addonflow-leader-election",
		"RoleBinding addonflow-system/addonflow-leader-election",
		"Service addonflow-system/addonflow-metrics",
		"Service addonflow-system/addonflow-pages",
		"Service addonflow-system/addonflow-webhook",
		"ServiceAccount addonflow-system/addonflow",
		"ValidatingAdmissionPolicy /addonflow-approvals",
		"ValidatingAdmissionPolicyBinding /addonflow-approvals",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifests/prerequisites and manifests/install (-want +got):\n%s", diff)
	}
}

// TestDeletingTheInstallationKeepsCRDsAndNamespace: the CRDs and the namespace hold the sources
// and rollouts, and deleting those would remove add-ons from the fleet.
func TestDeletingTheInstallationKeepsCRDsAndNamespace(t *testing.T) {
	for _, dir := range []string{"install", "replace"} {
		for _, o := range built(t, dir) {
			if o.kind == "CustomResourceDefinition" || o.kind == "Namespace" {
				t.Errorf("kubectl delete -k manifests/%s deletes %s %s", dir, o.kind, o.name)
			}
		}
	}
	for _, o := range built(t, "prerequisites") {
		if o.kind != "CustomResourceDefinition" && o.kind != "Namespace" {
			t.Errorf("%s %s stays when AddonFlow is uninstalled", o.kind, o.name)
		}
	}
}

// TestEmbeddedCRDsAreInstalled: tests and the demo install the same CRDs as users.
func TestEmbeddedCRDsAreInstalled(t *testing.T) {
	files, err := fs.Glob(manifests.CRDs, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, crd := range allOf[apiextensionsv1.CustomResourceDefinition](t, "CustomResourceDefinition") {
		installed[crd.Name] = crd.Spec
	}
	if len(files) != len(installed) {
		t.Errorf("%d files are embedded, %d CRDs installed", len(files), len(installed))
	}
	for _, file := range files {
		text, err := manifests.CRDs.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var embedded apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &embedded); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(embedded.Spec, installed[embedded.Name]); diff != "" {
			t.Errorf("%s is not what is installed (-embedded +installed):\n%s", file, diff)
		}
	}
}

func TestNamespaceEnforcesRestricted(t *testing.T) {
	namespace := theOnly[corev1.Namespace](t, "Namespace")
	if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("pod security of %s: %q, want restricted", namespace.Name, got)
	}
}

// TestPodIsRestricted checks the restricted pod security standard, because no test server here
// runs its admission.
func TestPodIsRestricted(t *testing.T) {
	pod := theOnly[appsv1.Deployment](t, "Deployment").Spec.Template.Spec
	security := pod.SecurityContext
	if security == nil || security.SeccompProfile == nil || security.RunAsNonRoot == nil || security.RunAsUser == nil {
		t.Fatal("the pod's security context is not complete")
	}
	for complaint, ok := range map[string]bool{
		"the pod shares a namespace of its host":                   !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"the pod mounts volumes; the operator keeps nothing there": len(pod.Volumes) == 0,
		"the seccomp profile is not RuntimeDefault":                security.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"the pod may run as root":                                  *security.RunAsNonRoot && *security.RunAsUser != 0,
		"there are other containers to look at":                    len(pod.Containers) == 1 && len(pod.InitContainers) == 0,
	} {
		if !ok {
			t.Error(complaint)
		}
	}
	restrictedContainer(t, pod.Containers[0])
}

func restrictedContainer(t *testing.T, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.AllowPrivilegeEscalation == nil || s.Capabilities == nil || s.ReadOnlyRootFilesystem == nil {
		t.Fatalf("the security context of container %s is not complete", c.Name)
	}
	for complaint, ok := range map[string]bool{
		"privileges can be escalated":         !*s.AllowPrivilegeEscalation,
		"the container overrides its pod":     s.Privileged == nil && s.RunAsUser == nil && s.RunAsNonRoot == nil && s.SeccompProfile == nil,
		"capabilities are left":               slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(s.Capabilities.Add) == 0,
		"the root file system can be written": *s.ReadOnlyRootFilesystem,
		"the container takes a port of its host": !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.HostPort != 0
		}),
	} {
		if !ok {
			t.Error(complaint)
		}
	}
}

func TestDeployment(t *testing.T) {
	deployment := theOnly[appsv1.Deployment](t, "Deployment")
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("the selector asks for %s=%s, which the pods do not have", key, value)
		}
	}
	pod := deployment.Spec.Template.Spec
	if got := theOnly[corev1.ServiceAccount](t, "ServiceAccount").Name; pod.ServiceAccountName != got {
		t.Errorf("the pod runs as %q, not as %q", pod.ServiceAccountName, got)
	}
	operator := pod.Containers[0]
	if want := []string{"controller", "--enable-leader-election", "--dashboard-addr=:8081"}; !slices.Equal(operator.Args, want) {
		t.Errorf("args %v, want %v", operator.Args, want)
	}
	if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 {
		t.Error("one replica: a standby is what leader election is for")
	}
	if operator.Resources.Requests.Cpu().IsZero() || operator.Resources.Requests.Memory().IsZero() || operator.Resources.Limits.Memory().IsZero() {
		t.Error("requests, or the limit of memory, are missing")
	}
	// The Lease is in the operator's own namespace, which the operator reads from here.
	env := operator.Env[slices.IndexFunc(operator.Env, func(e corev1.EnvVar) bool { return e.Name == "RUNTIME_NAMESPACE" })]
	if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil || env.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
		t.Error("RUNTIME_NAMESPACE is not the pod's namespace")
	}
}

// TestMemoryOfOperatorAndChildren: the operator's GOMEMLIMIT and the limit of its child
// together are at most 85 % of the container's memory, with each way to install.
func TestMemoryOfOperatorAndChildren(t *testing.T) {
	objects, err := charted(t, systemNamespace, "")
	if err != nil {
		t.Fatal(err)
	}
	for how, deployment := range map[string]appsv1.Deployment{
		"kubectl": theOnly[appsv1.Deployment](t, "Deployment"),
		"helm":    decode[appsv1.Deployment](t, objects["Deployment "+systemNamespace+"/addonflow"]),
	} {
		operator := deployment.Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(operator.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Errorf("%s: GOMEMLIMIT is not set", how)
			continue
		}
		mebibytes, err := strconv.ParseInt(strings.TrimSuffix(operator.Env[i].Value, "MiB"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		both, limit := mebibytes<<20+renderworker.DefaultLimits().Memory, operator.Resources.Limits.Memory().Value()
		if both > limit/100*85 {
			t.Errorf("%s: operator and child may take %d of %d bytes", how, both, limit)
		}
	}
}

// TestPortsAndProbes: the ports are the operator's defaults.
func TestPortsAndProbes(t *testing.T) {
	deployment := theOnly[appsv1.Deployment](t, "Deployment")
	operator := deployment.Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range operator.Ports {
		ports[port.Name] = port.ContainerPort
	}
	if want := map[string]int32{"http-prom": port(t, "metrics-addr"), "healthz": port(t, "health-addr"), "http-pages": 8081, "webhook": port(t, "webhook-addr")}; !cmp.Equal(ports, want) {
		t.Errorf("ports (-want +got):\n%s", cmp.Diff(want, ports))
	}
	for path, probe := range map[string]*corev1.Probe{"/readyz": operator.ReadinessProbe, "/healthz": operator.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "healthz" {
			t.Errorf("no probe of %s at port healthz: %v", path, probe)
		}
	}
	if want := fmt.Sprintf("--dashboard-addr=:%d", ports["http-pages"]); !slices.Contains(operator.Args, want) {
		t.Errorf("the pages are not served at their port: %v", operator.Args)
	}
	for _, service := range allOf[corev1.Service](t, "Service") {
		for key, value := range service.Spec.Selector {
			if deployment.Spec.Template.Labels[key] != value {
				t.Errorf("service %s asks for %s=%s, which the pods do not have", service.Name, key, value)
			}
		}
		if target := service.Spec.Ports[0].TargetPort.StrVal; ports[target] == 0 {
			t.Errorf("service %s leads to port %q, which the pods do not have", service.Name, target)
		}
	}
}

// port returns the default of an address flag of `addonflow controller`.
func port(t *testing.T, flag string) int32 {
	t.Helper()
	source, err := os.ReadFile("../cmd/addonflow/controller.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"` + flag + `", ":([0-9]+)"`).FindSubmatch(source)
	if found == nil {
		t.Fatalf("cmd/addonflow has no flag %s with a default address", flag)
	}
	var value int32
	if err := yaml.Unmarshal(found[1], &value); err != nil {
		t.Fatal(err)
	}
	return value
}
