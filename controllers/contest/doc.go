// Package contest recognises another owner of an object by its writes: the other owner undoes each write of
// AddonFlow. If a user edits an object now and then, AddonFlow repairs the object. Two owners would overwrite each
// other for ever, so AddonFlow stops writing, names the other owner, and waits for the user.
package contest
