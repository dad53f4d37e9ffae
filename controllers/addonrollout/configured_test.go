package addonrollout

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// tally counts the writes of one operator: statuses of ManagedClusterAddOns by cluster, and
// how many of them at once; works.
type tally struct {
	mu        sync.Mutex
	statuses  map[string]int
	works     int
	now, most int
}

func (c *tally) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses, c.works, c.most = map[string]int{}, 0, 0
}

func (c *tally) calls() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, hub client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			c.mu.Lock()
			if c.statuses == nil {
				c.statuses = map[string]int{}
			}
			c.statuses[o.GetNamespace()]++
			c.now++
			c.most = max(c.most, c.now)
			c.mu.Unlock()
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // long enough for others to begin
			c.mu.Lock()
			c.now--
			c.mu.Unlock()
			return hub.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Update: func(ctx context.Context, hub client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if _, is := o.(*workv1.ManifestWork); is {
				c.mu.Lock()
				c.works++
				c.mu.Unlock()
			}
			return hub.Update(ctx, o, opts...)
		},
	}
}

// unusedConfig gives content a configuration that no manifest reads, as the default or by
// the placement team/all.
func unusedConfig(name, hash string, byPlacement bool) render.Content {
	reference := render.ConfigReference{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs", Namespace: "team", Name: name}
	c := contentAt("v1")
	c.Supported = []addonv1alpha1.ConfigGroupResource{{Group: reference.Group, Resource: reference.Resource}}
	c.Configs = []render.Config{{
		ConfigReference: reference, APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnDeploymentConfig", SpecHash: hash,
		Body: map[string]any{"spec": map[string]any{
			"agentInstallNamespace": "agents", "customizedVariables": []any{map[string]any{"name": "UNUSED", "value": hash}},
		}},
	}}
	if byPlacement {
		c.Placements = []render.PlacementConfigs{{
			PlacementReference: v1alpha1.PlacementReference{Namespace: "team", Name: "all"}, Configs: []render.ConfigReference{reference},
		}}
	} else {
		c.Defaults = append([]render.ConfigReference{reference}, c.Defaults...)
	}
	return c
}

// A configuration that changes no rendered object costs one write of the add-on's status per cluster.
// Few clusters are written at a time, and no cluster is moved.
func TestConfigurationWithoutEffectCostsOneStatusWritePerCluster(t *testing.T) {
	var names []string
	for i := range 24 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	for name, c := range map[string]struct {
		first, second render.Content
		config, hash  string
	}{
		"changed in place":                   {unusedConfig("config", "one", false), unusedConfig("config", "two", false), "config", "two"},
		"another one, as the default":        {unusedConfig("config", "one", false), unusedConfig("other", "two", false), "other", "two"},
		"another one, by the placement":      {unusedConfig("config", "one", true), unusedConfig("other", "two", true), "other", "two"},
		"of the placement, changed in place": {unusedConfig("config", "one", true), unusedConfig("config", "two", true), "config", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			count := &tally{}
			s := newScene(t, count.calls(), names...)
			s.targetOf(c.first, "v1")
			s.settle()
			s.expectConfig(names, "config", "one")
			count.reset()
			s.targetOf(c.second, "v2")
			s.turns(6)
			s.expectConfig(names, c.config, c.hash)
			count.expectOneStatusEach(t, names)
			if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || got.Counts.InFlight != 0 {
				t.Errorf("the rollout is %s: %s", got.Phase, got.Message)
			}
			if got := apimeta.FindStatusCondition(s.addOn("c00").Status.Conditions, "Progressing"); got == nil || got.Reason != v1alpha1.InstallSucceed {
				t.Errorf("nothing was upgraded, and Progressing says %+v", got)
			}
			count.reset()
			s.restart()
			s.turns(3)
			if len(count.statuses) > 0 || count.works > 0 {
				t.Errorf("at rest: %d statuses and %d works were written", len(count.statuses), count.works)
			}
		})
	}
}

// A configuration that a ManagedClusterAddOn names is read on the hub: no commit changes it.
func TestOwnConfigurationWithoutEffectCostsOneStatusWrite(t *testing.T) {
	count := &tally{}
	s := newScene(t, count.calls(), "c1", "c2")
	content, adc := greetingAt(t, "v1", "one")
	content.Templates = contentAt("v1").Templates // it reads no variable
	s.create(adc)
	s.targetOf(content, "v1")
	s.settle()
	s.names("c1")
	s.settle()
	was := s.addOn("c1").Status.ConfigReferences[0].DesiredConfig.SpecHash
	count.reset()
	adc.Spec.CustomizedVariables[0].Value = "two"
	s.update(adc)
	s.turns(6)
	reference := s.addOn("c1").Status.ConfigReferences[0]
	if reference.DesiredConfig.SpecHash == was || *reference.LastAppliedConfig != *reference.DesiredConfig {
		t.Errorf("the status says %+v, and the hash was %s", reference, was)
	}
	count.expectOneStatusEach(t, []string{"c1"})
}

// A cluster whose agent is not healthy runs the same content as before: its status shows no upgrade.
func TestConfigurationWithoutEffectIsNoUpgradeOfAnIllCluster(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.targetOf(unusedConfig("config", "one", false), "v1")
	s.settle()
	ill := s.works()["c1"]
	values := ill.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
	for i := range values {
		if values[i].Name == "addonflow.ready" || values[i].Name == "addonflow.available" {
			values[i].Value.Integer = new(int64(0))
		}
	}
	if err := s.hub.Status().Update(t.Context(), ill); err != nil {
		t.Fatal(err)
	}
	s.turns(3)
	s.targetOf(unusedConfig("config", "two", false), "v2")
	s.turns(6)
	s.expectConfig([]string{"c1"}, "config", "two")
	if got := apimeta.FindStatusCondition(s.addOn("c1").Status.Conditions, "Progressing"); got == nil || got.Reason != v1alpha1.InstallSucceed {
		t.Errorf("nothing is upgraded, and Progressing says %+v", got)
	}
}

// expectConfig checks the AddOnDeploymentConfig in the statuses of the add-ons.
func (s *scene) expectConfig(clusters []string, name, hash string) {
	s.t.Helper()
	for _, cluster := range clusters {
		found := false
		for _, r := range s.addOn(cluster).Status.ConfigReferences {
			if r.Resource != "addondeploymentconfigs" {
				continue
			}
			found = true
			if d := r.DesiredConfig; d == nil || d.Name != name || d.SpecHash != hash || r.LastAppliedConfig == nil || *r.LastAppliedConfig != *d {
				s.t.Errorf("%s: want %s at %s on both sides, got %+v and %+v", cluster, name, hash, r.DesiredConfig, r.LastAppliedConfig)
			}
		}
		if !found {
			s.t.Errorf("%s: its status names no AddOnDeploymentConfig", cluster)
		}
	}
}

func (c *tally) expectOneStatusEach(t *testing.T, clusters []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range clusters {
		if c.statuses[name] != 1 {
			t.Errorf("%s: %d writes of its add-on's status", name, c.statuses[name])
		}
	}
	if len(c.statuses) != len(clusters) || c.works > 0 || c.most > configuredAtOnce {
		t.Errorf("%d clusters, %d works, %d statuses at once", len(c.statuses), c.works, c.most)
	}
}
