package rollout_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

var update = flag.Bool("update", false, "write the golden transcripts anew; commit the difference only if you understand it")

type event = rollouttest.Event

// at is an event; the text stands in the transcript.
func at(after time.Duration, what string, do func(*rollouttest.Fleet)) event {
	return event{At: after, What: what, Do: do}
}

// scenarios are rollouts from beginning to end; each is built again for every run.
func scenarios() map[string]func() rollouttest.Scenario {
	return map[string]func() rollouttest.Scenario{
		"canary-then-everyone": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 10), Until: day, Events: []event{at(0, "commit v2", commit("v2"))}}
		},
		"canary-fails-and-revert": func() rollouttest.Scenario {
			f := staged("v1", 10)
			bad := rollouttest.Behaviour{Ending: rollouttest.Fails, After: 2 * time.Minute}
			take(bad, "v2", "cluster-01", "cluster-02")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2, which fails everywhere", commit("v2")),
				at(20*time.Minute, "git revert to v1", commit("v1")),
			}}
		},
		"rollback-of-a-failure-behind-the-canary": func() rollouttest.Scenario {
			f := staged("v1", 8)
			f.Policy.Spec.Stages[0].MaxConcurrency = new(number(1))
			f.Policy.Spec.Stages[1].MaxConcurrency = new(number(2))
			take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}, "v2", "cluster-03", "cluster-04")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2, which fails on cluster-03 and 04", commit("v2")),
				at(2*time.Hour, "the operator rolls back to v1; cluster-01 is stuck there", func(f *rollouttest.Fleet) {
					take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v1", "cluster-01")(f)
					f.RollBack("v1")
				}),
			}}
		},
		"revert-from-behind-a-lost-canary": func() rollouttest.Scenario {
			f := staged("v1", 8)
			f.Policy.Placements[0] = placement("canary", "cluster-01")
			take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", "cluster-04", "cluster-05")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(15*time.Minute, "cluster-01 is lost", lose("cluster-01")),
				at(20*time.Minute, "git revert to v1", commit("v1")),
			}}
		},
		"first-install": func() rollouttest.Scenario {
			f := staged("", 6)
			f.Clusters["cluster-06"].Installed = rollout.HandMade
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v1", commit("v1"))}}
		},
		"deadline-and-recovery": func() rollouttest.Scenario {
			f := staged("v1", 6)
			take(rollouttest.Behaviour{After: 45 * time.Minute}, "v2", "cluster-01")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2, slow on cluster-01", commit("v2"))}}
		},
		"lost-parked-returned": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 6), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(30*time.Second, "cluster-01 is lost", lose("cluster-01")),
				at(3*time.Hour, "cluster-01 returns", restore("cluster-01")),
			}}
		},
		"held-by-its-managedcluster": func() rollouttest.Scenario {
			hold := func(name string, until time.Duration) func(*rollouttest.Fleet) {
				return func(f *rollouttest.Fleet) {
					f.Clusters[name].Held, f.Clusters[name].HeldUntil = true, rollouttest.Epoch().Add(until)
				}
			}
			f := staged("v1", 6)
			hold("cluster-01", 2*time.Hour)(f)
			take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}, "v3", "cluster-03")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2; cluster-01 is held for two hours", commit("v2")),
				at(3*time.Hour, "commit v3, which fails on cluster-03", commit("v3")),
				at(3*time.Hour+24*time.Minute, "cluster-02 is held until 17:00", hold("cluster-02", 5*time.Hour)),
				at(4*time.Hour, "git revert to v2", commit("v2")),
			}}
		},
		"lost-in-its-soak": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 4), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "cluster-01 is lost", lose("cluster-01")),
				at(20*time.Minute, "cluster-01 returns", restore("cluster-01")),
			}}
		},
		"revert-with-a-canary-lost-in-flight": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 4), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(13*time.Minute, "cluster-02 is lost", lose("cluster-02")),
				at(14*time.Minute, "git revert to v1", commit("v1")),
			}}
		},
		"edited-on-the-hub-during-a-revert": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 8), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(25*time.Minute, "git revert to v1", commit("v1")),
				at(26*time.Minute+30*time.Second, "a hub configuration of cluster-01, which moved back, and of cluster-08, which did not", func(f *rollouttest.Fleet) {
					f.Clusters["cluster-01"].Edited, f.Clusters["cluster-08"].Edited = true, true
				}),
			}}
		},
		"flapping-health-restarts-the-soak": func() rollouttest.Scenario {
			f := staged("v1", 4)
			take(rollouttest.Behaviour{After: time.Minute, IllFrom: 5 * time.Minute, IllUntil: 6 * time.Minute}, "v2", "cluster-01")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2", commit("v2"))}}
		},
		"new-commit-supersedes": func() rollouttest.Scenario {
			f := staged("v1", 8)
			take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", "cluster-01")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2, stuck on cluster-01", commit("v2")),
				at(10*time.Minute, "commit v3", commit("v3")),
			}}
		},
		"joiner-and-leaver": func() rollouttest.Scenario {
			f := staged("v1", 8)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "cluster-09 joins", func(f *rollouttest.Fleet) {
					f.Join("cluster-09")
					f.Policy.Placements[1] = placement("all", rollouttest.Names(9)...)
				}),
				at(6*time.Minute, "cluster-08 leaves", func(f *rollouttest.Fleet) {
					f.Policy.Placements[1] = placement("all", append(rollouttest.Names(7), "cluster-09")...)
				}),
			}}
		},
		"placement-deleted-and-restored": func() rollouttest.Scenario {
			f := staged("v1", 6)
			whole := f.Policy.Placements[1]
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "Placement all is deleted", func(f *rollouttest.Fleet) { f.Policy.Placements = f.Policy.Placements[:1] }),
				at(time.Hour, "commit v2", commit("v2")),
				at(2*time.Hour, "Placement all is restored", func(f *rollouttest.Fleet) {
					f.Policy.Placements = append(f.Policy.Placements[:1:1], whole)
				}),
			}}
		},
		"placement-shrinks": func() rollouttest.Scenario {
			f := staged("v1", 40)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "Placement all loses 5 of 40", func(f *rollouttest.Fleet) {
					f.Policy.Placements[1] = placement("all", rollouttest.Names(35)...)
				}),
			}}
		},
		"placement-flaps": func() rollouttest.Scenario {
			f := staged("v1", 6)
			all, few := placement("all", rollouttest.Names(6)...), placement("all", rollouttest.Names(5)...)
			flap := func(pl rollout.Placement) func(*rollouttest.Fleet) {
				return func(f *rollouttest.Fleet) { f.Policy.Placements[1] = pl }
			}
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "Placement all loses cluster-06", flap(few)),
				at(4*time.Minute, "and has it again", flap(all)),
				at(8*time.Minute, "and loses it", flap(few)),
				at(12*time.Minute, "and has it again", flap(all)),
			}}
		},
		"removed-from-git": func() rollouttest.Scenario {
			f := staged("v1", 5)
			f.Clusters["cluster-05"].Installed = rollout.HandMade
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "the add-on leaves Git", func(f *rollouttest.Fleet) { f.Policy.Spec.Removal = &v1alpha1.Removal{Commit: "abc"} }),
				at(time.Hour, "prune: true", func(f *rollouttest.Fleet) {
					f.Policy.Spec.Removal = &v1alpha1.Removal{Commit: "abc", Approved: true}
				}),
				at(70*time.Minute, "approve-removal: abc", func(f *rollouttest.Fleet) { f.Policy.ApprovedRemoval = "abc" }),
				at(2*time.Hour, "the hand-made one is deleted by its owner", func(f *rollouttest.Fleet) {
					f.Clusters["cluster-05"].Installed = rollout.NotInstalled
				}),
			}}
		},
		"suspended-in-the-middle": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 6), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(15*time.Minute, "suspend", func(f *rollouttest.Fleet) { f.Policy.Suspended = true }),
				at(time.Hour, "resume", func(f *rollouttest.Fleet) { f.Policy.Suspended = false }),
			}}
		},
		"all-with-a-failure": func() rollouttest.Scenario {
			f := paced(6, clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"}},
			})
			take(rollouttest.Behaviour{Ending: rollouttest.Silent}, "v2", "cluster-03")(f)
			f.Lose("cluster-05")
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2, silent on cluster-03; cluster-05 is away", commit("v2")),
				at(time.Hour, "cluster-05 returns", restore("cluster-05")),
				at(2*time.Hour, "commit v3", commit("v3")),
			}}
		},
		"progressive-with-a-mandatory-group": func() rollouttest.Scenario {
			names := rollouttest.Names(8)
			f := paced(8, progressive(clusterv1alpha1.RolloutProgressive{
				RolloutConfig: clusterv1alpha1.RolloutConfig{
					MinSuccessTime: metav1.Duration{Duration: 5 * time.Minute}, ProgressDeadline: "10m", MaxFailures: percent("20%"),
				},
				MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"}),
				MaxConcurrency:          number(2),
			}), group(0, "canary", names[:2]...), group(1, "", names[2:]...))
			take(rollouttest.Behaviour{Ending: rollouttest.Silent}, "v2", "cluster-04")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2, silent on cluster-04", commit("v2"))}}
		},
		"group-by-group": func() rollouttest.Scenario {
			names := rollouttest.Names(7)
			f := paced(7, perGroup(clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
			}), group(0, "", names[:2]...), group(2, "", names[2:4]...), group(5, "", names[4:6]...))
			f.Clusters["cluster-07"].Installed = rollout.HandMade
			f.Policy.Spec.Strategy = &v1alpha1.RolloutStrategy{
				Type: v1alpha1.StrategyProgressivePerGroup,
				ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
					RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
				},
			}
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2", commit("v2"))}}
		},
		"share-held-by-strategy": func() rollouttest.Scenario {
			f := paced(40, clusterv1alpha1.RolloutStrategy{})
			ru := &v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("all"), MaxConcurrentlyUpdating: new(percent("30%"))}
			f.Policy.Spec.Strategy = &v1alpha1.RolloutStrategy{
				Type: v1alpha1.StrategyRollingUpdateWithPlacement, RollingUpdateWithPlacement: ru,
			}
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(time.Hour, "git revert to v1", commit("v1")),
			}}
		},
		"stage-held-at-zero": func() rollouttest.Scenario {
			f := staged("v1", 4)
			stages := canaryFirst()
			stages[1].MaxConcurrency = new(number(0))
			f.Policy.Spec.Stages = stages
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(time.Hour, "maxConcurrency of everyone: 100%", func(f *rollouttest.Fleet) {
					f.Policy.Spec.Stages = canaryFirst()
					f.Policy.Spec.Stages[1].MaxConcurrency = new(percent("100%"))
				}),
			}}
		},
		"status-lost": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: staged("v1", 6), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "the status is emptied", (*rollouttest.Fleet).LoseStatus),
			}}
		},
		"unchanged-clusters-take-no-part": func() rollouttest.Scenario {
			f := staged("v1", 6)
			for _, name := range []string{"cluster-01", "cluster-02", "cluster-05"} {
				f.Clusters[name].Alike["v2"] = "v1"
			}
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2, which changes nothing on cluster-01, 02 and 05", commit("v2"))}}
		},
		"per-placement-in-parallel": func() rollouttest.Scenario {
			names := rollouttest.Names(6)
			f := rollouttest.NewFleet("v1", names...)
			f.Policy.Spec.Install = installedBy("edge", "core")
			f.Policy.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)})
			f.Policy.Placements = []rollout.Placement{placement("edge", names[:4]...), placement("core", names[3:]...)}
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2", commit("v2"))}}
		},
		"canary-placement-empties-in-the-soak": func() rollouttest.Scenario {
			f := staged("v1", 6)
			f.Policy.Spec.Stages[0].MaxConcurrency = new(number(2))
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(2*time.Minute, "Placement canary selects no cluster", func(f *rollouttest.Fleet) {
					f.Policy.Placements = []rollout.Placement{placement("canary"), f.Policy.Placements[1]}
				}),
			}}
		},
		"canaries-leave-in-the-soak": func() rollouttest.Scenario {
			f := staged("v1", 6)
			f.Policy.Spec.Stages[0].MaxConcurrency = new(number(2))
			f.Policy.Spec.Stages[0].MinSuccessTime = metav1.Duration{Duration: time.Hour} // longer than their removal takes
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(2*time.Minute, "Placement canary selects no cluster", func(f *rollouttest.Fleet) {
					f.Policy.Placements = []rollout.Placement{placement("canary"), f.Policy.Placements[1]}
				}),
				at(2*time.Minute+time.Second, "Placement all drops the canaries", func(f *rollouttest.Fleet) {
					f.Policy.Placements = []rollout.Placement{placement("canary"), placement("all", rollouttest.Names(6)[2:]...)}
				}),
			}}
		},
		"unknown-mandatory-group-in-the-soak": func() rollouttest.Scenario {
			f := staged("v1", 6)
			stages := f.Policy.Spec.Stages
			stages[0].MaxConcurrency = new(number(2))
			take(rollouttest.Behaviour{After: time.Minute, IllFrom: 7 * time.Minute, IllUntil: 8 * time.Minute}, "v2", "cluster-02")(f)
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "a strategy with a wrong group instead of the stages", func(f *rollouttest.Fleet) {
					f.Policy.Spec.Stages, f.Policy.Spec.Strategy = nil, &v1alpha1.RolloutStrategy{
						Type: v1alpha1.StrategyProgressive,
						Progressive: &clusterv1alpha1.RolloutProgressive{
							MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canarry"}),
						},
					}
				}),
				at(9*time.Minute, "the stages again", func(f *rollouttest.Fleet) {
					f.Policy.Spec.Stages, f.Policy.Spec.Strategy = stages, nil
				}),
			}}
		},
		"unknown-mandatory-group": func() rollouttest.Scenario {
			f := paced(3, progressive(clusterv1alpha1.RolloutProgressive{
				MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canarry"}),
			}))
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit v2", commit("v2"))}}
		},
	}
}

// TestScenarios runs each scenario in order and shuffled, checks the invariants after
// every plan, and compares the transcript with its golden file.
func TestScenarios(t *testing.T) {
	all := scenarios()
	maps.Copy(all, gateScenarios())
	for name, scenario := range all {
		t.Run(name, func(t *testing.T) {
			got, err := scenario().Run(0)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			for seed := range int64(3) {
				shuffled, err := scenario().Run(seed + 1)
				if err != nil {
					t.Fatalf("seed %d: %v\n%s", seed+1, err, shuffled)
				}
				if diff := cmp.Diff(got, shuffled); diff != "" {
					t.Fatalf("seed %d: another order, another rollout (-ordered +shuffled):\n%s", seed+1, diff)
				}
			}
			story, ok := stories()[name]
			if !ok {
				t.Fatalf("%s has no story", name)
			}
			golden(t, name, "# "+story+"\n\n"+got)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the transcript changed; run go test ./rollout -update and read the difference (-want +got):\n%s", diff)
	}
}
