// Package registration decides how an add-on's agent gets access to the hub: which credentials
// the klusterlet requests for it, as the template declares.
//
// It is pure. It takes templates, and returns OCM's registration configurations, verdicts on
// requests and roles, certificates and bindings. It reads and writes no object; the caller
// supplies keys and randomness for signing. Subjects are computed from the names of cluster and
// add-on, never taken from what an agent wrote.
package registration
