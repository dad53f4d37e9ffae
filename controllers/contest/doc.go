// Package contest recognises another owner of an object by what it does: it undoes each write of AddonFlow. An object
// that a user edits now and then is repaired. Two owners that overwrite each other would do so for ever, so that
// AddonFlow stops, names the other, and waits for the user.
package contest
