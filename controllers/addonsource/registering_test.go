package addonsource

import (
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/load"
)

const compiledPackage = `apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata:
  name: hello
spec:
  addOn: hello
  manifests:
    path: m
`

// TestCompileRegistration: a request that every hub refuses is refused offline, in a template
// and in a package, with its line.
func TestCompileRegistration(t *testing.T) {
	role := func(permission string) string {
		return "  - type: KubeClient\n    kubeClient:\n      hubPermissions:\n      - " + permission + "\n"
	}
	cluster := func(name string) string {
		return role("{type: CurrentCluster, currentCluster: {clusterRoleName: '" + name + "'}}")
	}
	in := func(namespace string) string {
		return role("{type: SingleNamespace, singleNamespace: {namespace: " + namespace + ", roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}}")
	}
	subject := func(subject string) string {
		return "  - type: CustomSigner\n    customSigner:\n      signerName: example.com/a\n      signingCA: {name: ca}\n      subject: " + subject + "\n"
	}
	const permission = "spec.registration[0].kubeClient.hubPermissions[0]."
	cases := map[string]struct {
		reason string
		blocks string
		want   problem.Reason
		says   string
	}{
		"OwnRole":       {reason: "the hub says whether it is allowed", blocks: cluster("hello-agent")},
		"ClusterAdmin":  {"is never given", cluster("cluster-admin"), reasonHubPermissionDenied, permission + "currentCluster.clusterRoleName: ClusterRole/cluster-admin is never given"},
		"SystemRole":    {"is Kubernetes' own", cluster("system:node"), reasonHubPermissionDenied, "system:node is never given to an agent: it belongs to Kubernetes"},
		"KubeNamespace": {"is Kubernetes' own", in("kube-system"), reasonHubPermissionDenied, permission + "singleNamespace: a role in namespace kube-system is never given"},
		"NoNamespace":   {"could never be there", in("Team_A"), reasonHubPermissionDenied, "no namespace can have that name"},
		"NoRole":        {"could never be there", cluster("hello/agent"), reasonHubPermissionDenied, permission + `currentCluster.clusterRoleName: "hello/agent" is never given to an agent: no role can have that name`},
		"OwnSubject":    {reason: "names of the user's", blocks: subject("{user: a, groups: [b, 'system:open-cluster-management:addon:hello']}")},
		"SystemUser":    {"another subject", subject("{user: 'system:admin'}"), flaw.ReasonInvalidSigner, `customSigner.subject.user: "system:admin" is never signed`},
		"Masters":       {"may everything", subject("{user: a, groups: [b, 'system:masters']}"), flaw.ReasonInvalidSigner, `customSigner.subject.groups[1]: "system:masters" is never signed`},
		"OtherAddOn":    {"another add-on's agents", subject("{user: a, groups: ['system:open-cluster-management:addon:other']}"), flaw.ReasonInvalidSigner, "customSigner.subject.groups[0]"},
	}
	withoutTemplates := strings.Replace(compiledAddOn, "  supportedConfigs:\n  - group: addon.open-cluster-management.io\n    resource: addontemplates\n    defaultConfig:\n      name: hello\n", "", 1)
	for name, c := range cases {
		for kind, files := range map[string]map[string]string{
			"AddOnTemplate": {"a.yaml": compiledAddOn, "t.yaml": compiledTemplate + "  registration:\n" + c.blocks},
			"AddOnPackage": {
				"a.yaml": withoutTemplates, "t.yaml": compiledPackage + "  registration:\n" + c.blocks,
				"m/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello, namespace: hello}\n",
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				objects, unread := built(t, files)
				_, problems := Compile(objects, load.Lookup{}, CompileOptions{Unread: unread, Options: load.Options{Charts: chart.InProcess{}}})
				if c.want == "" {
					if len(problems) > 0 {
						t.Errorf("%s: %v", c.reason, problems)
					}
					return
				}
				if len(problems) != 1 || problems[0].Reason != c.want || problems[0].Kind != kind || problems[0].Hint == "" ||
					problems[0].Path != "t.yaml" || problems[0].Line == 0 || !strings.Contains(problems[0].String(), c.says) {
					t.Errorf("%s: got %v, want one %s in t.yaml that says %q", c.reason, problems, c.want, c.says)
				}
			})
		}
	}
}
