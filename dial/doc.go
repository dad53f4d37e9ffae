// Package dial opens the operator's connections to servers that tenants name: Git servers,
// proxies, forges, and the services that gates call.
//
// Every address is checked when it is dialled, after its name was resolved. So it does not help an attacker if the
// name resolves to another address the second time. Loopback addresses, link-local addresses and the metadata
// services of clouds are refused unless a flag of the operator allows them. Private addresses are allowed, because
// forges can have them.
//
// The proxy variables of the environment are used for forges only, so that the servers that a tenant can reach do not depend on
// the pod.
package dial
