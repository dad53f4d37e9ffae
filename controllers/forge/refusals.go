package forge

import (
	"errors"

	"github.com/addonflow/addonflow/commitstatus"
)

// refusal is why a forge refuses the token for another purpose than commit statuses.
type refusal struct {
	denied commitstatus.Denial
	text   string
}

// Use stores whether the forge lets the token do something besides commit statuses, such as to read the comments for a
// rollout. The condition CommitStatusDenied of the object shows a refusal. purpose is a noun for its text, and permission
// what the token needs; "": err says it. A nil err ends the refusal; an err that is not about the token changes nothing.
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
	before := d.refusals[key]
	d.refusals[key] = now
	if err == nil {
		delete(d.refusals, key)
	}
	d.mu.Unlock()
	if now != before {
		d.notify(key.String())
	}
}

// refusalOf returns what Use stored last; zero: nothing is refused.
func (d *Desk) refusalOf(key Key) refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusals[key]
}
