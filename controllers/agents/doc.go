// Package agents gives the agents of add-ons access to the hub: it approves their
// certificate requests, signs those of custom signers, and binds the roles that their templates
// name. The pure package registration decides what is allowed.
//
//	addonrollout --Declare--> Book: which cluster's agent requests what
//	CertificateSigningRequest + Book -> approve, sign, or an event with the reason
//	ManagedClusterAddOns + Book -> RoleBindings by server-side apply
//	Book --Outcomes--> addonrollout: RegistrationApplied
//	ManagedClusterAddOns + Book -> the objects behind tokens, without OCM's addon-manager
//
// The Book is only in the memory of this process. The requests of an agent follow from the revision on its cluster;
// addonrollout derives them when it first reconciles the cluster after a start. Until then the operator approves
// nothing and removes nothing. The status of a ManagedClusterAddOn is not trusted, because the cluster's agent may
// write it.
package agents
