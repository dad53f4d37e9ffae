// Package addonstatus says what stands in the statuses of OCM's objects: in that of a
// ManagedClusterAddOn, which tells how one cluster's move goes, and, with no addon-manager of
// OCM's beside us, in that of a ClusterManagementAddOn.
//
//	Move  -> Next       both writes of a move, started and done
//	         Patch      what of a status is written
//	         Takeovers  whose words stand there that were ours
//	         Published  the ClusterManagementAddOn's status
//
// Words, reasons and order are OCM's to the letter, because its tools read them; the reasons
// of Progressing are those of OCM's lifecycle proposal. The package is pure: facts come in, statuses come out; it
// neither reads nor writes the hub. addonrollout gathers a Move and writes what Next says.
package addonstatus
