// Package addonstatus computes the statuses of OCM's objects: the status of a
// ManagedClusterAddOn, which shows the move of one cluster; and, if OCM's addon-manager does
// not run, the status of a ClusterManagementAddOn.
//
//	Move  -> Next       the status of a move that has started, is done or failed
//	         Patch      the patch that writes a status
//	         Takeovers  fields of AddonFlow that another writer has written
//	         Published  the ClusterManagementAddOn's status
//
// Texts, reasons and order are exactly those of OCM, because its tools read them. The reasons
// of Progressing are those of OCM's lifecycle proposal. The package is pure: it neither reads
// nor writes the hub. addonrollout gathers a Move and writes the status that Next returns.
package addonstatus
