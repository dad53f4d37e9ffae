// Package dial opens the operator's connections to servers that tenants name: Git servers,
// proxies, forges, and the services that gates call.
//
// Every address is checked when it is dialled, after its name was resolved: a name that resolves
// to another address the second time gains nothing. Loopback and link-local addresses, which lead
// to the operator's own machine, and the metadata services of clouds are refused unless a
// flag of the operator allows them. Private addresses are allowed, because forges live there.
//
// No proxy is taken from the environment, so that what a tenant can reach does not depend on
// the pod.
package dial
