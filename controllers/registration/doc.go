// Package registration lets the agents of add-ons onto the hub: it approves their
// certificate requests, signs those of custom signers, and binds the roles their
// templates name. What may be is decided in the pure package of the same name.
//
//	addonrollout --Declare--> Book: which cluster's agent asks for what
//	CertificateSigningRequest + Book -> approve, sign, or an event that says why not
//	ManagedClusterAddOns + Book -> RoleBindings by server-side apply
//	Book --Outcomes--> addonrollout: RegistrationApplied
//	ManagedClusterAddOns + Book -> the objects behind tokens, without OCM's addon-manager
//
// The Book is memory of this process and nothing else: what an agent asks for follows
// from the revision applied on its cluster, which addonrollout derives when it looks
// at the cluster for the first time after a start. Until then nothing is approved and
// nothing is taken away. No status of a ManagedClusterAddOn is believed, because the
// cluster's agent may write it.
package registration
