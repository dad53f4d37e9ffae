package forge

import (
	"errors"
	"maps"
	"slices"

	"github.com/addonflow/addonflow/commitstatus"
)

// refusal is why a forge refuses the token for another purpose than commit statuses.
type refusal struct {
	denied commitstatus.Denial
	text   string
}

// Use stores whether the forge lets the token do something besides commit statuses, such as to read the comments for a
// rollout. The condition CommitStatusDenied of the object shows a refusal. purpose is a noun for its text, and permission
// what the token needs; "": err says it. A nil err ends the refusal for this purpose; an err that is not about the token
// changes nothing.
func (d *Desk) Use(key Key, purpose, permission string, err error) {
	var now refusal
	refused, ok := errors.AsType[*commitstatus.DeliveryError](err)
	switch {
	case err == nil:
	case !ok || refused.Denied == "":
		return
	default:
		now = refusal{refused.Denied, "cannot use the token for " + purpose + ": " + err.Error()}
		if permission != "" {
			now.text += "; it needs " + permission
		}
	}
	d.mu.Lock()
	before := d.refusals[key][purpose]
	switch {
	case now.denied == "":
		delete(d.refusals[key], purpose)
	case d.refusals[key] == nil:
		d.refusals[key] = map[string]refusal{purpose: now}
	default:
		d.refusals[key][purpose] = now
	}
	d.mu.Unlock()
	if now != before {
		d.notify(key.String())
	}
}

// refusalOf returns a refusal that has not ended; zero: there is none.
func (d *Desk) refusalOf(key Key) refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, purpose := range slices.Sorted(maps.Keys(d.refusals[key])) {
		if r := d.refusals[key][purpose]; r.denied != "" {
			return r
		}
	}
	return refusal{}
}
