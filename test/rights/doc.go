// Package rights gives an operator on an embedded hub exactly the rights in manifests/rbac, and
// reads from the hub's audit log which of them it used. A hub of the tests has no controller
// that aggregates ClusterRoles; Install does that, once.
package rights
