package load

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/rendertest"
)

// TestPackageTakesVariables: packages map the same variables to values that templates name in
// braces: values of a configuration of any kind, labels and claims of the cluster. The
// annotation of the ManagedClusterAddOn overrides all of them.
func TestPackageTakesVariables(t *testing.T) {
	commit := packagedHello().
		edited(t, addOnFile, "  installStrategy:", "  - {resource: configmaps, defaultConfig: {namespace: hello, name: settings}}\n  installStrategy:").
		edited(t, packageFile, "metadata: {name: hello}", "metadata:\n  name: hello\n  annotations:\n    addonflow.io/config-variables: |\n      LEVEL=configmaps{.data.level}\n      plain=configmaps{.data.plain}").
		edited(t, packageFile, "  registration:", "  - {name: LEVEL, value: log.level, type: integer}\n"+
			"  - {name: CLUSTER_LABEL_region, value: where.region}\n  - {name: CLUSTER_CLAIM_id_k8s_io, value: where.id, type: integer}\n  registration:").
		edited(t, "hello/chart/values.yaml", "greeting:", "where: {region: unknown, id: 0}\nlog: {level: 0}\nplain: none\ngreeting:").
		edited(t, "hello/chart/templates/settings.yaml", "{{ quote .Values.greeting }}",
			`{{ printf "%s %v %v %s" .Values.where.region .Values.where.id .Values.log.level .Values.plain | quote }}`).
		with("hello/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\ndata: {level: \"3\", plain: text}\n")
	content := loadPackaged(t, commit).Content
	region := map[string]string{"region": "eu", "other": "x"}
	claims := []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "4711"}}
	for name, c := range map[string]struct {
		reason  string
		cluster render.Cluster
		want    string
	}{
		"given":     {"mapped to values, in their types", render.Cluster{Labels: region, Claims: claims}, "eu 4711 3 text"},
		"missing":   {"the chart has values of its own", render.Cluster{}, "unknown 0 3 text"},
		"annotated": {"the annotation is for one cluster, and goes over what all have", render.Cluster{Labels: region, Claims: claims, Values: `{"where": {"region": "here"}, "log": {"level": 9}}`}, "here 4711 9 text"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cluster.Name = "cluster1"
			if got := rendertest.At(packagedObjects(t, content, c.cluster)[1].Object, "data", "greeting"); got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
	r := newRenderer(t, content)
	everyone := []v1alpha1.PlacementReference{{Namespace: "hello", Name: "everyone"}}
	_, err := r.Render(render.Cluster{Name: "cluster1", Placements: everyone, Claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}})
	if err == nil || !strings.Contains(err.Error(), `CLUSTER_CLAIM_id_k8s_io: "x" is not a valid integer`) {
		t.Errorf("a claim of another type: %v", err)
	}
	same, other := render.Cluster{Name: "a", Placements: everyone, Labels: region}, render.Cluster{Name: "a", Placements: everyone, Labels: map[string]string{"region": "eu", "other": "y"}}
	one, _ := r.Inputs(same)
	two, _ := r.Inputs(other)
	if one.Key != two.Key {
		t.Error("a label that is not mapped distinguishes clusters")
	}
	other.Labels = map[string]string{"region": "us"}
	if two, _ = r.Inputs(other); one.Key == two.Key {
		t.Error("a label that is a value does not distinguish clusters")
	}
}

// TestPackageFindingsHaveAPlace: a finding in a package has file, line and field, in lint and
// for one cluster alike.
func TestPackageFindingsHaveAPlace(t *testing.T) {
	commit := packagedHello().edited(t, "hello/chart/templates/settings.yaml", "\ndata:", "\ndata: # {{ if eq .Values.greeting \"bad\" }}{{ fail \"too bad\" }}{{ end }}\n ")
	addOn := loadPackaged(t, commit)
	everyone := []v1alpha1.PlacementReference{{Namespace: "hello", Name: "everyone"}}
	_, err := newRenderer(t, addOn.Content).Render(render.Cluster{Name: "cluster1", Placements: everyone, Values: `{"greeting": "bad"}`})
	const want = "hello/chart/templates/settings.yaml:4: AddOnPackage/hello: spec.helm.path: too bad"
	if found := addOn.Place(err); len(found) != 1 || found[0].String() != want {
		t.Errorf("got %v, want %s", found, want)
	}
	refused := packagedHello().edited(t, "hello/chart/templates/settings.yaml", "\ndata:", "\ndata: # {{ fail \"too bad\" }}\n ")
	if _, problems := Load(refused.packageObjects(t), nil, Options{Charts: chart.InProcess{}}); len(problems) != 1 || problems[0].String() != want {
		t.Errorf("got %v, want %s", problems, want)
	}
}

// TestPackageKubeVersions: a chart is checked with a version that it allows, or with the given
// ones.
func TestPackageKubeVersions(t *testing.T) {
	newer := packagedHello().edited(t, "hello/chart/Chart.yaml", "version: 0.1.0", "version: 0.1.0\nkubeVersion: '>=1.34.0'")
	older := packagedHello().edited(t, "hello/chart/Chart.yaml", "version: 0.1.0", "version: 0.1.0\nkubeVersion: '<1.30.0'")
	branch := packagedHello().edited(t, "hello/chart/templates/settings.yaml", "\ndata:",
		"\ndata: # {{ if semverCompare \"<1.29-0\" .Capabilities.KubeVersion.Version }}{{ fail \"too old\" }}{{ end }}\n ")
	for name, c := range map[string]struct {
		commit   tree
		versions []string
		want     string
	}{
		"newer":          {newer, nil, ""},
		"older":          {older, nil, ""},
		"never":          {packagedHello().edited(t, "hello/chart/Chart.yaml", "version: 0.1.0", "version: 0.1.0\nkubeVersion: '>=9.0.0'"), nil, "needs Kubernetes >=9.0.0, and the cluster has v1.33.0"},
		"branch":         {branch, nil, ""},
		"branch, asked":  {branch, []string{"v1.33.0", "v1.28.3"}, "with Kubernetes v1.28.3: too old"},
		"named, refused": {newer, []string{"v1.33.0"}, "needs Kubernetes >=1.34.0, and the cluster has v1.33.0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(c.commit.packageObjects(t), nil, Options{KubeVersions: c.versions, Charts: chart.InProcess{}})
			switch {
			case c.want == "" && len(problems) > 0:
				t.Errorf("got %v", problems)
			case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, c.want)):
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}
