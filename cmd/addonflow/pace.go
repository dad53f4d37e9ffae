package main

import (
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout/forecast"
)

// pace is the forecast of the policy of one add-on, in clusters and time.
type pace struct {
	AddOn string
	// Forecast and its text; zero if there is no forecast (Unknown).
	forecast.Forecast
	// Notes say which parts of the fleet were assumed, or not evaluated.
	Notes []string
	// Unknown is why there is no forecast; "": there is one.
	Unknown string
}

// pacesOf forecasts every add-on of a commit for a fleet; nil: for the assumed one.
func pacesOf(commit load.Commit, fleet *forecast.Known) ([]pace, error) {
	var known forecast.Known
	if fleet != nil {
		known = *fleet
	}
	known, err := withDeclared(known, commit.Objects)
	if err != nil {
		return nil, err
	}
	windows := forecast.Windows{Begins: time.Now(), At: func(w v1alpha1.WindowGate, at time.Time) (bool, time.Time) {
		verdict, changes := gates.Window(w, at)
		return verdict.State == v1alpha1.GatePassed, changes
	}}
	paces := make([]pace, 0, len(commit.AddOns))
	for _, addOn := range commit.AddOns {
		policy := addOn.Policy()
		p := pace{AddOn: addOn.Name}
		clusters, err := forecast.Assumed(policy, known.Declared), error(nil)
		if fleet != nil {
			clusters, err = known.Fleet(policy)
		}
		if err == nil {
			p.Notes = clusters.Notes
			p.Forecast, err = forecast.Of(addOn.Name, policy, clusters, windows)
		}
		if err != nil {
			p.Unknown, p.Forecast = err.Error(), forecast.Forecast{}
		}
		paces = append(paces, p)
	}
	return paces, nil
}

// endless returns the warnings about stages that never end. It leaves out stages that the warnings in said already
// explain, for instance about a mandatory group that does not exist.
func (p pace) endless(addOn load.AddOn, said problem.List) problem.List {
	var warnings problem.List
	for _, f := range p.Findings {
		w := problem.Problem{
			Kind: v1alpha1.AddOnRolloutKind, Name: p.AddOn, Field: "spec." + f.Field, Message: f.Message, Hint: f.Hint,
		}
		if strings.HasPrefix(f.Field, "installStrategy") {
			w.Kind = "ClusterManagementAddOn"
		}
		if w = addOn.Located(w); !warned(said, w) {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// warned reports whether a warning is about an element of the field of w.
func warned(said problem.List, w problem.Problem) bool {
	return slices.ContainsFunc(said, func(s problem.Problem) bool {
		return s.Kind == w.Kind && s.Name == w.Name && strings.HasPrefix(s.Field, w.Field+"[")
	})
}

// sayPace prints the forecast of an add-on that ends by itself.
func (c *cli) sayPace(p pace, fleet string) {
	switch {
	case p.Unknown != "":
		c.hint("pace of %s: not estimated: %s", p.AddOn, p.Unknown)
		return
	case len(p.Findings) > 0:
		return
	}
	c.hint("pace of %s: %s", p.AddOn, p.Text())
	if fleet == "" {
		c.hint("  assumed: %s; --fleet FILE counts yours", strings.Join(p.Notes, "; "))
		return
	}
	for _, note := range p.Notes {
		c.hint("  note: %s", note)
	}
}
