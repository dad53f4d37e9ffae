// Package pageserver serves the pages of package dashboard. It reads objects. It writes only TokenReviews and
// SubjectAccessReviews.
//
//	request --Door--> viewer --may get?--> objects, plan --dashboard--> page
//
// Two doors lead to the same pages. LocalDoor is for one user on one machine: the objects are read with the
// kubeconfig of that user. TokenDoor is for a hub: the objects are read with the operator's rights, and a part of a
// page is shown only if the viewer has the right to get its objects. Without the right to get an object, the viewer
// cannot see whether the object exists.
//
// The server keeps no session. The cookie of TokenDoor has the token itself. So every replica accepts the cookie, and
// the session ends with the token.
package pageserver
