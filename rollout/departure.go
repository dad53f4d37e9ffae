package rollout

import (
	"fmt"

	"github.com/addonflow/addonflow/api/brief"
)

// overdue are the first clusters, by name, whose ManagedClusterAddOn should have been
// gone by now.
func (p *planner) overdue() []*unit {
	var found []*unit
	for i := range p.units {
		if u := &p.units[i]; p.isOverdue(u) {
			if found = append(found, u); len(found) == shownFailures {
				break
			}
		}
	}
	return found
}

func (p *planner) isOverdue(u *unit) bool {
	at := u.c.Departure.OverdueAt
	return u.c.Installed == Deleting && !at.IsZero() && !p.now.Before(at)
}

// overdueText is "2 not removed yet (c1: reason; c2: reason)", "" for none. They keep
// nobody else waiting, but somebody must look at them.
func (p *planner) overdueText() string {
	n := 0
	var parts []string
	for i := range p.units {
		u := &p.units[i]
		if !p.isOverdue(u) {
			continue
		}
		if n++; n <= brief.Shown {
			parts = append(parts, u.c.Name+": "+bounded(u.c.Departure.Reason))
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d not removed yet (%s)", n, brief.ReasonsOf(n, parts))
}
