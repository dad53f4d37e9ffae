// Package registration says how an add-on's agent gets to the hub: which
// credentials the klusterlet asks for on its behalf, as the template declares.
//
// It is pure: templates in; OCM's registration configurations, verdicts on requests and
// roles, certificates and bindings out. It reads and writes no object: keys and randomness
// to sign with are the caller's. Subjects are computed here, from the names of cluster and
// add-on, and never taken from what an agent wrote.
package registration
