package registration

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// clusterPrefix begins the user and the group of a klusterlet; the name of its cluster follows.
const clusterPrefix = "system:open-cluster-management:"

// authenticatedGroup is a group that the API server adds to every user. OCM before 1.3 also
// lists it in certificates, where it grants nothing more.
const authenticatedGroup = "system:authenticated"

// DriverToken is MCA.status.kubeClientDriver of an agent that authenticates with a token of a
// ServiceAccount instead of a certificate. The klusterlet writes it.
const DriverToken = "token"

// driverCertificate is the value of an agent that authenticates with a certificate.
const driverCertificate = "csr"

// perClusterGroup is the group of an add-on's agent on one cluster only.
func perClusterGroup(addOn, cluster string) string {
	return fmt.Sprintf("%scluster:%s:addon:%s", clusterPrefix, cluster, addOn)
}

// perAddOnGroup is the group of an add-on's agents on all clusters.
func perAddOnGroup(addOn string) string { return clusterPrefix + "addon:" + addOn }

// DefaultSubject is the identity of an agent unless its template names another: one user, a
// group for its cluster and a group for all clusters.
func DefaultSubject(addOn, cluster string) addonv1alpha1.Subject {
	group := perClusterGroup(addOn, cluster)
	return addonv1alpha1.Subject{
		User:   fmt.Sprintf("%s:agent:%s-agent", group, addOn),
		Groups: []string{group, perAddOnGroup(addOn)},
	}
}

// ServiceAccountName is the account of a token-based agent, in the namespace of its cluster.
func ServiceAccountName(addOn string) string { return addOn + "-agent" }

// tokenUser is the API server's name of that account.
func tokenUser(addOn, cluster string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", cluster, ServiceAccountName(addOn))
}

// grantees are the subjects that an agent's roles are bound to: the group of its certificate
// and, for a token-based agent, its ServiceAccount. Both are computed from names that the hub
// knows. Only the choice between them comes from the agent's status, so an agent can choose
// only among its own identities.
func grantees(addOn, cluster, driver string) []rbacv1.Subject {
	subjects := []rbacv1.Subject{groupSubject(addOn, cluster)}
	if driver == DriverToken {
		subjects = append(subjects, accountSubject(addOn, cluster))
	}
	return subjects
}

func groupSubject(addOn, cluster string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: perClusterGroup(addOn, cluster)}
}

func accountSubject(addOn, cluster string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: cluster, Name: ServiceAccountName(addOn)}
}

// klusterlet splits the user name of a klusterlet into its cluster and agent. It
// reports false for every other form, those of add-on agents included.
func klusterlet(user string) (cluster, agent string, ok bool) {
	rest, found := strings.CutPrefix(user, clusterPrefix)
	parts := strings.Split(rest, ":")
	if !found || len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

func withoutAuthenticated(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == authenticatedGroup })
}

// sameGroups reports whether two lists contain the same groups, each once, ignoring
// system:authenticated.
func sameGroups(got, want []string) bool {
	return sameSet(got, got) && sameSet(withoutAuthenticated(got), withoutAuthenticated(want))
}

// sameSet reports whether two lists contain the same names, each once.
func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b) && len(slices.Compact(a)) == len(b)
}
