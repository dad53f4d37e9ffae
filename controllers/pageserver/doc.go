// Package pageserver serves the pages of package dashboard. It reads and writes nothing but
// reviews of tokens and of rights:
//
//	request --Door--> viewer --may get?--> objects, plan --dashboard--> page
//
// Two doors lead to one handler. LocalDoor is for one user on one machine: the objects are read
// with that user's own kubeconfig. TokenDoor is for a hub: the objects are read with the operator's
// rights, and every part of a page needs the viewer's own right to get what it shows. What the
// viewer may not get is omitted, or refused before it is known whether it exists.
//
// The server keeps no session. The cookie of TokenDoor has the token itself, so that every replica
// accepts it, and so that it ends with the token.
package pageserver
