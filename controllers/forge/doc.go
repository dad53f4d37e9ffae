// Package forge delivers the commit statuses of the controllers, and returns the results.
//
// The package decides where the commit statuses of an AddOnSource are posted (address, provider, the token from its
// Secret), what the forge has accepted since the last reconcile, and when the next post is due. Package commitstatus
// has the rules and texts of a status, and the HTTP of each forge. This package adds Kubernetes: the Secret, the
// marks in a status, the condition CommitStatusReported, the work queues.
//
// One Desk serves both controllers of a process. A reconcile uses it so:
//
//	book := desk.Open(key, source, marks)              what was delivered is recorded
//	book.Enter(...), Overtake, Supersede                what commits should say
//	book.Address(ctx, source)                          reads the Secret, begins what is due
//	obj.Status.CommitStatuses = book.Stored()          stored on the hub
//	book.SetConditions(obj)                            CommitStatusReported, CommitStatusDenied
//	(one status write)
//	after := book.Deliver()                            posts off the reconcile path
//
// The result of a delivery causes a reconcile request of the object that keeps the marks (Desk.Outcomes). If a forge
// is down, a token is wrong or a Secret is missing, the condition says so, and nothing else is delayed. Of several
// sources that declare the same contexts, the oldest owns them; the condition of the others names the owner.
package forge
