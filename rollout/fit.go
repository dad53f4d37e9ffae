package rollout

import (
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// grains are how finely verified-at is noted, coarser where the ledger would not fit
// otherwise. Always rounded up, so that a soak gets longer and never shorter.
func grains() []time.Duration {
	return []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}
}

// What an admission may add to the ledger later: a position once the cluster is
// verified, and a time for each wave.
const (
	positionRoom = 7
	timeRoom     = 64
	waveRoom     = 160 // a wave of its own, besides the name
)

// fit encodes the ledger, with as many of the new admissions as it has room for.
func (p *planner) fit() v1alpha1.Ledger {
	if p.removal != nil {
		p.removal.Departed = p.departures()
	}
	if kept := p.roomFor(); kept < len(p.grants) {
		for _, g := range p.grants[kept:] {
			g.u.entry, g.u.state, g.u.forTarget, g.u.grant = g.before, g.state, g.forTarget, 0
			g.u.deadline = time.Time{}
			g.u.reason = v1alpha1.LedgerFullReason + ": the ledger has no room; admitted as others finish"
		}
		p.grants = p.grants[:kept]
	}
	l := v1alpha1.Ledger{}
	for _, grain := range grains() {
		l = p.encoded(len(p.grants), grain)
		if size(l) <= p.limit() {
			break
		}
	}
	for size(l) > p.limit() && p.removal != nil && len(p.removal.Departed) > 0 {
		p.forgetDepartures()
		l = p.encoded(len(p.grants), time.Hour)
	}
	return l
}

func (p *planner) limit() int {
	if p.in.LedgerLimit > 0 {
		return p.in.LedgerLimit
	}
	return DefaultLedgerLimit
}

// roomFor is how many of the new admissions fit, in their order; at the limit it may
// be a few less.
func (p *planner) roomFor() int {
	if len(p.grants) == 0 {
		return 0
	}
	most := 0
	for i := range p.units {
		if u := &p.units[i]; u.entry != nil && !u.entry.covered {
			most += len(u.c.Name) + waveRoom + timeRoom
		}
	}
	if names := p.removal == nil && len(p.vanished) == 0; names && most < p.limit() || p.fits(len(p.grants)) {
		return len(p.grants)
	}
	// Halving on to the last cluster would only compress the same names again and again.
	fit, over := 0, len(p.grants)
	for over-fit > 1+len(p.grants)/64 {
		if n := (fit + over) / 2; p.fits(n) {
			fit = n
		} else {
			over = n
		}
	}
	return fit
}

func (p *planner) fits(n int) bool {
	l := p.encoded(n, time.Hour)
	clusters := 0
	for i := range p.units {
		if u := &p.units[i]; u.entry != nil && !u.entry.covered && u.grant <= n {
			clusters++
		}
	}
	return size(l)+clusters*positionRoom+len(l.Waves)*timeRoom <= p.limit()
}

// encoded is the ledger with the first n of the new admissions.
func (p *planner) encoded(n int, grain time.Duration) v1alpha1.Ledger {
	var entries []named
	for i := range p.units {
		u := &p.units[i]
		e := u.entry
		if u.grant > n {
			e = p.grants[u.grant-1].before
		}
		if e != nil && !e.covered {
			entries = append(entries, named{cluster: u.c.Name, entry: e})
		}
	}
	for _, u := range p.vanished {
		entries = append(entries, named{cluster: u.c.Name, entry: u.entry})
	}
	slices.SortStableFunc(entries, func(a, b named) int { return strings.Compare(a.cluster, b.cluster) })
	l := encode(entries, p.reservations(), grain)
	l.Removal = p.removal
	return l
}
