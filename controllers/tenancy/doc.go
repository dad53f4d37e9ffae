// Package tenancy reads which namespaces may have AddOnSources, and what these may declare. The policy
// is one ConfigMap with an entry for each namespace:
//
//	data:
//	  team-a: |
//	    addOns: [log-shipper, team-a-*]
//	    namespaces: [team-a-fleet]
//	    kinds: [ClusterRole.rbac.authorization.k8s.io]
//	    targetNamespaces: [team-a-*]
//	    targetKinds: [ClusterRole.rbac.authorization.k8s.io]
//
// The ConfigMap is read again for each decision, so that no decision uses an old policy. The package judges names;
// controllers/addonsource judges commits with it, and controllers/addonrollout rollouts.
package tenancy
