package addonrollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// TestExplainNamesMissingRevisions: the missing revision is named for every cluster that it holds,
// and the other clusters are still explained.
func TestExplainNamesMissingRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		target  bool
		c1, c2  string // what is said of them
		stateC1 rollout.State
	}{
		"Target": {"clusters with the content keep it, waiting clusters are not moved", true, "", "revision %s is missing: no cluster is admitted", rollout.Updating},
		"Old":    {"a cluster that waits at a missing revision is not repaired", false, "", "keeps its content: revision is missing: %s", rollout.Updating},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			first := s.target("v1")
			s.settle()
			second := s.target("v2")
			s.turns(2) // c1 is in flight
			gone := s.revision(first)
			if c.target {
				gone = s.revision(second)
			}
			s.delete(gone)
			plan, err := s.explained()
			missing, ok := errors.AsType[*MissingError](err)
			if !ok || missing.Target != c.target || !slices.Equal(missing.Details, []string{"revision is missing: " + gone.Name}) {
				t.Fatalf("%s: got %+v, error %v", c.reason, missing, err)
			}
			for cluster, want := range map[string]string{"c1": c.c1, "c2": c.c2} {
				p, _ := plan.Why(cluster)
				want = strings.ReplaceAll(want, "%s", gone.Name)
				if !strings.HasSuffix(p.Reason, want) || want == "" && strings.Contains(p.Reason, "missing") {
					t.Errorf("%s: %s is said to be %s: %q, want %q", c.reason, cluster, p.State, p.Reason, want)
				}
			}
			if p, _ := plan.Why("c1"); p.State != c.stateC1 || p.Stage != "everyone" {
				t.Errorf("c1 is still explained: got %+v", p)
			}
		})
	}
}

// TestExplainSaysThatTheHubRefusesTheWorksOfACluster: also of a cluster that was verified and is only repaired,
// and once of one in flight, whose record has the refusal.
func TestExplainSaysThatTheHubRefusesTheWorksOfACluster(t *testing.T) {
	frozen := false
	s := newScene(t, frozenWorks(&frozen), "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	work := s.works()["c2"]
	work.Spec.Workload.Manifests = nil
	s.update(work)
	frozen = true
	for _, refused := range []string{"c2", "c1"} {
		s.slow(2)
		for _, cluster := range []string{"c1", "c2"} {
			c, _ := s.plan().Why(cluster)
			want := 0
			if cluster == "c2" || cluster == refused {
				want = 1
			}
			if got := strings.Count(c.Reason, "cannot update work addon-hello-deploy-0: "); got != want {
				t.Errorf("%s is %s: %q says the refusal %d times, want %d", cluster, c.State, c.Reason, got, want)
			}
		}
		s.target("v2")
	}
}

// TestExplainNamesClustersThatLeft: a cluster that left in flight holds its stage and is explained
// until the target changes.
func TestExplainNamesClustersThatLeft(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2) // c1 is in flight
	if p, _ := s.plan().Why("c1"); p.State != rollout.Updating {
		t.Fatalf("c1 is %s: %s", p.State, p.Reason)
	}
	s.selects("c2", "c3")
	s.delete(s.works()["c1"])
	s.delete(s.addOn("c1"))
	s.turn()
	p, found := s.plan().Why("c1")
	want := "it left the add-on; its stage counts it until it is selected again or new content is committed"
	if !found || p.State != rollout.Left || p.Stage != "everyone" || p.Reason != want {
		t.Errorf("got %t, %+v", found, p)
	}
	if got := s.plan().Clusters; !slices.IsSortedFunc(got, func(a, b rollout.ClusterPlan) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("they are in order: %+v", got)
	}
	s.target("v3")
	s.turn()
	if p, found := s.plan().Why("c1"); found {
		t.Errorf("it does not hold back other content: %+v", p)
	}
}

// A cluster that failed and whose ManagedCluster is gone still counts as a failure, and is explained
// as one.
func TestExplain_SaysThatAGoneClusterFailed(t *testing.T) {
	s, _, _ := stopped(t)
	s.delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
	s.turn()
	want := "it failed before it left; its stage counts it until it is selected again or new content is committed"
	if p, _ := s.plan().Why("c1"); p.State != rollout.LeftFailed || p.Stage != "everyone" || p.Reason != want {
		t.Errorf("got %+v", p)
	}
}

// TestExplainSaysThatTheHubRefusesTheInstallation: also of a cluster that waits for a slot.
func TestExplainSaysThatTheHubRefusesTheInstallation(t *testing.T) {
	s := newScene(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, addOn := o.(*addonv1alpha1.ManagedClusterAddOn); addOn && o.GetNamespace() == "c2" {
			return denied()
		}
		return c.Create(ctx, o, opts...)
	}}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.turns(3)
	for cluster, want := range map[string]bool{"c1": false, "c2": true} {
		c, _ := s.plan().Why(cluster)
		if got := strings.Contains(c.Reason, "cannot install: "); got != want {
			t.Errorf("%s is %s: %s", cluster, c.State, c.Reason)
		}
	}
}

// counted is an engine that counts the renderings.
type counted struct {
	chart.InProcess
	renderings int
}

func (c *counted) For(string) chart.Engine { return c }

func (c *counted) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	c.renderings++
	return c.InProcess.Render(s, in)
}

// TestOperatorsInspector_RendersNoClusterAgain: the first viewer of a page does not wait until the fleet is rendered again.
// A revision that was deleted since is missing, as in a turn.
func TestOperatorsInspector_RendersNoClusterAgain(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	engine := &counted{}
	s.reconciler.Charts, s.reconciler.renderers.charts = engine, engine
	digest := s.targetOf(packaged("a"), "v1")
	s.turns(6)
	engine.renderings = 0
	const inFlight = 3 // their works are compared with another rendering
	if _, err := s.reconciler.Inspector(s.hub, s.key).Inspect(t.Context()); err != nil || engine.renderings != inFlight {
		t.Errorf("%d renderings, %v; want %d", engine.renderings, err, inFlight)
	}
	if kept := len(s.reconciler.renderers.kept); kept != 1 {
		t.Errorf("%d renderers are left for the next turn, want 1", kept)
	}
	if err := s.hub.Delete(t.Context(), s.revision(digest)); err != nil {
		t.Fatal(err)
	}
	_, err := s.reconciler.Inspector(s.hub, s.key).Inspect(t.Context())
	if missing, ok := errors.AsType[*MissingError](err); !ok || !missing.Target {
		t.Errorf("after the revision was deleted: %v", err)
	}
}

// TestInspectRendersWhatChanged: a second look renders no cluster, and a third one the cluster whose values
// changed. A look at what changes there, without the bounds of the tenant, costs the next plan nothing.
func TestInspectRendersWhatChanged(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.targetOf(packaged("a"), "v1")
	s.turns(6)
	ro := s.rollout()
	ro.Status.TargetBounds = &v1alpha1.TargetBounds{Namespaces: []string{"agents"}}
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	engine := &counted{}
	inspector := NewInspector(s.hub, s.key, engine)
	for _, c := range []struct {
		look string
		do   func()
		want int
	}{
		{"the first look", func() {}, 6}, // the works of a cluster in flight are compared with another rendering
		{"the second look", func() {}, 0},
		{"the look after the values of c2 changed", func() {
			c2 := s.addOn("c2")
			c2.Annotations = map[string]string{"addon.open-cluster-management.io/values": "{}"}
			s.update(c2)
		}, 1},
	} {
		c.do()
		engine.renderings = 0
		i, err := inspector.Inspect(t.Context())
		if err != nil || engine.renderings != c.want {
			t.Errorf("%s renders %d clusters, %v; want %d", c.look, engine.renderings, err, c.want)
		}
		if change, err := i.Change(t.Context(), *ro.Spec.Target); err != nil || len(change.After) != 1 {
			t.Errorf("%s: what changes is %+v, %v", c.look, change, err)
		}
	}
}
