package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render/chart"
)

// charted is an add-on with a chart of one template, and values that it may read.
func charted(text string) Content {
	files := []PackageFile{
		{Path: "Chart.yaml", Text: "apiVersion: v2\nname: hello-chart\nversion: 0.1.0\n"},
		{Path: "templates/settings.yaml", Text: text},
		{Path: "values.yaml", Text: "logLevel: 0\n"},
	}
	return Content{AddOn: "hello", Package: &Package{Name: "hello", Engine: chart.HelmChart, Files: files}}
}

// TestPackageDigestIsOfWhatTheClusterGets: equal digests mean equal objects, whatever the
// cluster's name.
func TestPackageDigestIsOfWhatTheClusterGets(t *testing.T) {
	const named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\ndata: {cluster: a-{{ .Values.clusterName }}, level: \"{{ .Values.logLevel }}\"}\n"
	edited := func(from, to string) string { return strings.Replace(named, from, to, 1) }
	byVersion := edited("{{ .Values.logLevel }}", "{{ .Capabilities.KubeVersion.Minor }}")
	cases := map[string]struct {
		chart string
		a, b  Cluster
		equal bool
	}{
		"EqualInputs":        {named, Cluster{Name: "a1"}, Cluster{Name: "b1"}, false},
		"OtherVersionUnread": {named, Cluster{Name: "a1", KubeVersion: "v1.32.0"}, Cluster{Name: "b1", KubeVersion: "v1.33.0"}, false},
		"OtherVersionRead": {
			byVersion,
			Cluster{Name: "a1", KubeVersion: "v1.32.0"},
			Cluster{Name: "b1", KubeVersion: "v1.33.0"},
			false,
		},
		"SameVersionRead": {
			byVersion,
			Cluster{Name: "a1", KubeVersion: "v1.33.0"},
			Cluster{Name: "b1", KubeVersion: "v1.33.0"},
			false,
		},
		"OtherValues": {named, Cluster{Name: "a1", Values: `{"logLevel":9}`}, Cluster{Name: "b1"}, false},
		"DecidedByName": {
			edited("a-{{ .Values.clusterName }}", "{{ sha256sum .Values.clusterName }}"),
			Cluster{Name: "a1"},
			Cluster{Name: "b1"},
			false,
		},
		"NameOfDigits": {named, Cluster{Name: "a1"}, Cluster{Name: "123"}, false},
		"NoNameInIt": {
			edited("a-{{ .Values.clusterName }}", "all"),
			Cluster{Name: "a1"},
			Cluster{Name: "123"},
			true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRenderer(t, charted(c.chart))
			render := func(cluster Cluster) Rendered {
				rendered, err := r.Render(cluster)
				if err != nil {
					t.Fatal(err)
				}
				if digest, err := r.Digest(cluster); err != nil || digest != rendered.Digest {
					t.Errorf("Digest says %s, %v; want %s", digest, err, rendered.Digest)
				}
				return rendered
			}
			a, b := render(c.a), render(c.b)
			if got := a.Digest == b.Digest; got != c.equal {
				t.Errorf("the digests are equal: %v, want %v", got, c.equal)
			}
		})
	}
}

// TestBuiltInValuesAreThoseGiven: every cluster gets the values that loading refuses in a
// package, because they would be replaced on every cluster.
func TestBuiltInValuesAreThoseGiven(t *testing.T) {
	for _, registration := range [][]addonv1alpha1.RegistrationSpec{nil, {{}}} {
		b := builder{template: &parsedTemplate{registration: registration, registers: len(registration) > 0}, agent: &agentConfig{}}
		given := slices.Sorted(maps.Keys(b.builtIns("")))
		if diff := cmp.Diff(slices.Sorted(slices.Values(BuiltInValues(registration))), given); diff != "" {
			t.Errorf("built-in values (-refused +given):\n%s", diff)
		}
	}
}

// flaky is an engine that is interrupted left times.
type flaky struct {
	chart.InProcess
	left int
}

func (f *flaky) interrupted() error {
	if f.left--; f.left >= 0 {
		return fmt.Errorf("%w: killed", chart.ErrInterrupted)
	}
	return nil
}

func (f *flaky) Admits(s *chart.Source, versions []string) (string, error) {
	if err := f.interrupted(); err != nil {
		return "", err
	}
	return f.InProcess.Admits(s, versions)
}

func (f *flaky) Verify(s *chart.Source, in chart.Input) error {
	if err := f.interrupted(); err != nil {
		return err
	}
	return f.InProcess.Verify(s, in)
}

func (f *flaky) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	if err := f.interrupted(); err != nil {
		return nil, err
	}
	return f.InProcess.Render(s, in)
}

// refusing is an engine that refuses every chart, and counts how often it was asked.
type refusing struct {
	chart.InProcess
	renderings int
}

func (e *refusing) Render(*chart.Source, chart.Input) ([]chart.Manifest, error) {
	e.renderings++
	return nil, &chart.Error{Message: "it used 10s of CPU time"}
}

// TestRefusedPackageIsRenderedOnce: content that reaches a limit for a cluster uses all of the limit each time it is
// rendered. So the error is cached until an input of the cluster changes.
func TestRefusedPackageIsRenderedOnce(t *testing.T) {
	engine := &refusing{}
	r, err := NewRenderer(charted("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\n"), engine)
	if err != nil {
		t.Fatal(err)
	}
	for i, version := range []string{"v1.33.0", "v1.34.0"} {
		c := Cluster{Name: "c1", KubeVersion: version}
		for range 3 {
			_, of := r.Render(c)
			for _, err := range []error{of, r.Refuses(c)} {
				if invalid, ok := errors.AsType[*InvalidError](err); !ok || invalid.Findings[0].Message != "it used 10s of CPU time" {
					t.Errorf("got %v", err)
				}
			}
		}
		if engine.renderings != i+1 {
			t.Errorf("%d renderings with %d versions of Kubernetes", engine.renderings, i+1)
		}
	}
}

// TestInterruptedPackageIsNotBlamed: an interruption is not a finding and is not cached.
func TestInterruptedPackageIsNotBlamed(t *testing.T) {
	content := charted("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\n")
	engine := &flaky{}
	r, err := NewRenderer(content, engine)
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Name: "c1", KubeVersion: "v1.33.0"}
	for name, ask := range map[string]func() error{
		"Render":  func() error { _, err := r.Render(c); return err },
		"Digest":  func() error { _, err := r.Digest(c); return err },
		"Refuses": func() error { return r.Refuses(c) },
		"Hosts":   func() error { _, err := r.Hosts(c); return err },
	} {
		clear(r.outlines)
		before, _ := r.Interruptions()
		engine.left = 1
		if err := ask(); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: %v", name, err)
		}
		if n, last := r.Interruptions(); n != before+1 || !errors.Is(last, ErrInterrupted) {
			t.Errorf("%s: %d interruptions, %v", name, n-before, last)
		}
		if err := ask(); err != nil {
			t.Errorf("%s, the next time: %v", name, err)
		}
	}
	before, _ := r.Interruptions()
	engine.left = 1
	if found := r.Check(); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
	if n, _ := r.Interruptions(); n == before {
		t.Error("Check does not report an interruption")
	}
	if found := r.Check(); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
}
