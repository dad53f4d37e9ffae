// Package rights gives an operator on an embedded hub what manifests/rbac grants and
// nothing more, and reads from the hub's audit log what it used of that. A hub of the
// tests has no controller that aggregates ClusterRoles; Install does that, once.
package rights
