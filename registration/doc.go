// Package registration decides how an add-on's agent gets access to the hub. The template declares the credentials
// that the klusterlet requests for the agent.
//
// The package is pure. It takes templates, and returns OCM's registration configurations, verdicts on requests and
// roles, certificates and bindings. It reads and writes no object. The caller supplies keys and randomness for
// signing. Subjects are computed from the names of cluster and add-on, never from the input of an agent.
package registration
