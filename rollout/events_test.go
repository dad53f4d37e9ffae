package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// events are what can happen that AddonFlow does not decide.
func (w *world) events() map[string]func() {
	p := &w.fleet.Policy
	all := map[string]func(){
		"commit": w.commit,
		"revert": func() {
			if p.Stable != "" {
				w.fleet.SetTarget(p.Stable)
			}
		},
		"roll back": func() {
			if p.Stable != "" {
				w.fleet.RollBack(p.Stable)
			}
		},
		"suspend": func() { p.Suspended = true }, "suspend in Git": func() { p.Spec.Suspend = true },
		"resume":  func() { p.Suspended, p.Spec.Suspend = false, false },
		"contest": func() { p.Contested = "ownership conflict: b owns it" }, "settle the conflict": func() { p.Contested = "" },
		"policy": w.policy, "pace": w.repace, "stages": w.restage, "groups": w.regroup,
		"unsettle": func() { w.settle(false) }, "settle": func() { w.settle(true) },
		"deselect": func() { w.selects(false, w.cluster().Name) }, "select": func() { w.selects(true, w.cluster().Name) },
		"approve": w.approve, "disapprove": func() { p.ApprovedRemoval = "" },
		"remove":        func() { p.Spec.Removal = &v1alpha1.Removal{Commit: "gone", Approved: rapid.Bool().Draw(w.T, "prune")} },
		"restore":       func() { p.Spec.Removal = nil },
		"content lost":  func() { p.TargetMissing = "AddOnRevision is gone" },
		"content found": func() { p.TargetMissing = "" },
		"upgrade": func() { // another operator renders everything a little otherwise
			for _, c := range w.fleet.Clusters {
				c.Edited = c.Running != ""
			}
		},
		"collect": w.fleet.Collect, "join": w.join,
		"verdict": w.verdict, "another verdict": w.verdict, "all gates pass": w.passGates,
		"order": w.order, "restart": w.fleet.Restart,
	}
	w.clusterEvents(all)
	return all
}

// clusterEvents are what happens to single clusters.
func (w *world) clusterEvents(all map[string]func()) {
	f := w.fleet
	on := func(do func(*rollouttest.Cluster)) func() { return func() { do(w.cluster()) } }
	all["lose"] = on(func(c *rollouttest.Cluster) { f.Lose(c.Name) })
	all["lose another"] = all["lose"]
	all["return"] = on(func(c *rollouttest.Cluster) { f.Return(c.Name) })
	all["gone"] = on(func(c *rollouttest.Cluster) { c.Gone = rapid.IntRange(0, 3).Draw(w.T, "for good") == 0 })
	all["block"] = on(func(c *rollouttest.Cluster) { c.Blocked = "its hosting cluster does not exist" })
	all["unblock"] = on(func(c *rollouttest.Cluster) { c.Blocked = "" })
	all["refuse"] = on(func(c *rollouttest.Cluster) { c.Refused = "no value for GREETING" })
	all["accept"] = on(func(c *rollouttest.Cluster) { c.Refused = "" })
	all["await"] = on(func(c *rollouttest.Cluster) { c.Awaits = "ManifestWork x/y is not gone yet" })
	all["await no more"] = on(func(c *rollouttest.Cluster) { c.Awaits = "" })
	all["depend"] = on(func(c *rollouttest.Cluster) { c.Waits = "waits for add-on base to be verified" })
	all["depend no more"] = on(func(c *rollouttest.Cluster) { c.Waits = "" })
	all["hold back"] = on(func(c *rollouttest.Cluster) { c.Away = "its configuration is missing" })
	all["let go"] = on(func(c *rollouttest.Cluster) { c.Away = "" })
	all["hold"] = on(func(c *rollouttest.Cluster) {
		c.Held, c.HeldUntil = true, rapid.SampledFrom([]time.Time{{}, f.Now.Add(time.Minute), f.Now.Add(time.Hour)}).Draw(w.T, "until")
	})
	all["unhold"] = on(func(c *rollouttest.Cluster) { c.Held = false })
	all["edit"] = on(func(c *rollouttest.Cluster) { c.Edited = c.Running != "" })
	all["foreign works"] = on(func(c *rollouttest.Cluster) {
		if c.Running != "" {
			c.Running = rapid.SampledFrom([]string{rollout.Foreign, rollout.Mixed}).Draw(w.T, "by whom")
		}
	})
	all["put back by hand"] = on(func(c *rollouttest.Cluster) {
		if before := f.Policy.Stable; c.Running != "" && before != "" {
			c.Running, c.Had = before, f.Now
		}
	})
	all["works deleted"] = on(func(c *rollouttest.Cluster) { c.Running = "" })
	all["health"] = on(func(c *rollouttest.Cluster) { c.Takes[c.Running] = w.behaviour() })
	all["hand-made"] = on(func(c *rollouttest.Cluster) {
		if c.Installed == rollout.NotInstalled || c.Installed == "" {
			c.Installed = rollout.HandMade
		}
	})
	all["disable install"] = on(func(c *rollouttest.Cluster) { c.InstallDisabled = !c.InstallDisabled })
	all["clock skewed"] = on(func(c *rollouttest.Cluster) {
		c.Skew = rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, 0, time.Minute}).Draw(w.T, "skew")
	})
	all["hook hangs"] = on(func(c *rollouttest.Cluster) {
		c.Departs = rollout.Departure{Reason: "its pre-delete hook has not run", OverdueAt: f.Now.Add(10 * time.Minute)}
	})
	all["hook runs"] = on(func(c *rollouttest.Cluster) { c.Departs = rollout.Departure{} })
}

// verdict lets a gate of a stage say something. What halts stays until there is other content.
func (w *world) verdict() {
	stages := w.fleet.Policy.Spec.Stages
	if len(stages) == 0 {
		return
	}
	v := drawVerdict(w.T, stages[rapid.IntRange(0, len(stages)-1).Draw(w.T, "stage")])
	for _, g := range w.fleet.Policy.Gates {
		if g.Stage == v.Stage && g.Name == v.Name && g.When == v.When && g.State == v1alpha1.GateFailed {
			return
		}
	}
	w.fleet.Judge(v)
}

// order lets a user retry, promote or abort, whether or not it makes sense.
func (w *world) order() {
	switch rapid.IntRange(0, 4).Draw(w.T, "verb") {
	case 0:
		w.fleet.Order(rollout.Order{Verb: v1alpha1.OrderRetry})
	case 1:
		w.fleet.Order(rollout.Order{Verb: v1alpha1.OrderRetry, Clusters: []string{w.cluster().Name}})
	case 2:
		if !w.fleet.Policy.Ended && w.fleet.Phase != v1alpha1.PhaseSucceeded {
			w.fleet.Policy.Aborted = "aborted by ann"
		}
	default:
		if stages := w.fleet.Policy.Spec.Stages; len(stages) > 0 {
			w.fleet.Order(rollout.Order{Verb: v1alpha1.OrderPromote, Stage: stages[rapid.IntRange(0, len(stages)-1).Draw(w.T, "stage")].Name})
		}
	}
}

// passGates lets every gate pass, as if it had been evaluated after everything that comes.
func (w *world) passGates() {
	w.fleet.Policy.Gates = nil
	for _, st := range w.fleet.Policy.Spec.Stages {
		if st.Gates == nil {
			continue
		}
		for _, g := range st.Gates.Before {
			w.fleet.Judge(rollout.Gate{Stage: st.Name, Name: g.Name, When: v1alpha1.GateBefore, State: v1alpha1.GatePassed})
		}
		for _, g := range st.Gates.During {
			w.fleet.Judge(rollout.Gate{Stage: st.Name, Name: g.Name, When: v1alpha1.GateDuring, State: v1alpha1.GatePassed})
		}
	}
	for i := range w.fleet.Policy.Gates {
		w.fleet.Policy.Gates[i].EvaluatedAt = w.fleet.Now.Add(1000 * day)
	}
}

// join brings a cluster; its labels, and with them its placement, may come late.
func (w *world) join() {
	name := fmt.Sprintf("joiner-%d", len(w.names))
	w.fleet.Join(name)
	w.names = append(w.names, name)
	if rapid.Bool().Draw(w.T, "labelled") {
		w.selects(true, name)
	}
}

// approve annotates the rollout with the commit that is to be approved.
func (w *world) approve() {
	p := &w.fleet.Policy
	if p.Spec.Removal != nil {
		p.ApprovedRemoval = p.Spec.Removal.Commit
		return
	}
	_, p.ApprovedRemoval, _ = strings.Cut(p.Spec.Target.Commit, "sha1:")
}

// repace changes limits and budgets of the stages, while a rollout may be in progress.
func (w *world) repace() {
	stages := slices.Clone(w.fleet.Policy.Spec.Stages)
	for i := range stages {
		stages[i].MaxConcurrency = new(number(rapid.SampledFrom([]int{0, 1, 1, 2, 5}).Draw(w.T, "limit")))
		stages[i].MaxFailures = new(failures().Draw(w.T, "budget"))
		stages[i].MinSuccessTime = soaks().Draw(w.T, "soak")
		stages[i].ProgressDeadline = deadlines().Draw(w.T, "deadline")
	}
	w.fleet.Policy.Spec.Stages = stages
}

// restage takes a stage away, turns the order around, or renames one.
func (w *world) restage() {
	stages := slices.Clone(w.fleet.Policy.Spec.Stages)
	if len(stages) == 0 {
		return
	}
	switch rapid.SampledFrom([]string{"fewer", "turned", "renamed"}).Draw(w.T, "stages are") {
	case "fewer":
		stages = stages[:max(1, len(stages)-1)]
	case "turned":
		slices.Reverse(stages)
	case "renamed":
		stages[0].Name = fmt.Sprintf("new-%d", len(w.history))
	}
	w.fleet.Policy.Spec.Stages = stages
}

// regroup gives decision groups other names and indexes: a mandatory one may be unknown
// from now on.
func (w *world) regroup() {
	pls := slices.Clone(w.fleet.Policy.Placements)
	for i := range pls {
		pls[i].Groups = slices.Clone(pls[i].Groups)
		by := rapid.IntRange(0, 1).Draw(w.T, "moves")
		for j := range pls[i].Groups {
			pls[i].Groups[j].Name = rapid.SampledFrom([]string{"", "g", "h", "i"}).Draw(w.T, "group name")
			pls[i].Groups[j].Index += by
		}
	}
	w.fleet.Policy.Placements = pls
}

// knowGroups makes no group mandatory, so that none is unknown.
func (w *world) knowGroups() {
	none := clusterv1alpha1.MandatoryDecisionGroups{}
	spec := w.fleet.Policy.Spec.DeepCopy()
	paces := []*clusterv1alpha1.RolloutStrategy{}
	if st := spec.Strategy; st != nil {
		paces = append(paces, &clusterv1alpha1.RolloutStrategy{Progressive: st.Progressive, ProgressivePerGroup: st.ProgressivePerGroup})
	}
	if spec.Install != nil {
		for i := range spec.Install.Placements {
			paces = append(paces, &spec.Install.Placements[i].RolloutStrategy)
		}
	}
	for _, st := range paces {
		if st.Progressive != nil {
			st.Progressive.MandatoryDecisionGroups = none
		}
		if st.ProgressivePerGroup != nil {
			st.ProgressivePerGroup.MandatoryDecisionGroups = none
		}
	}
	w.fleet.Policy.Spec = *spec
}

// selects makes labels and placements select a cluster, or none of them.
func (w *world) selects(is bool, name string) {
	w.fleet.Clusters[name].Labels = nil
	if is {
		w.fleet.Clusters[name].Labels = onEdge()
	}
	pls := slices.Clone(w.fleet.Policy.Placements)
	for i := range pls {
		pls[i].Groups = slices.Clone(pls[i].Groups)
		for j := range pls[i].Groups {
			g := &pls[i].Groups[j]
			g.Clusters = slices.DeleteFunc(slices.Clone(g.Clusters), func(c string) bool { return c == name })
			if is && i == 0 && j == 0 {
				g.Clusters = append(g.Clusters, name)
			}
		}
	}
	w.fleet.Policy.Placements = pls
}

func (w *world) settle(all bool) {
	pls := slices.Clone(w.fleet.Policy.Placements)
	for i := range pls {
		pls[i].Settlement = rollout.Settled
		if !all && rapid.Bool().Draw(w.T, "this one") {
			distrust(w.T, &pls[i])
		}
	}
	w.fleet.Policy.Placements = pls
}
