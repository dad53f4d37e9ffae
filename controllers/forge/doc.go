// Package forge delivers the commit statuses of the controllers, and returns the results.
//
// It decides where the commit statuses of an AddOnSource are posted (address, provider, the
// token from its Secret), what the forge has accepted since the last reconcile, and when the
// next post is due. The rules of a status, its texts and the HTTP of each forge are in
// commitstatus; this package adds Kubernetes: the Secret, the marks in a status, the condition
// CommitStatusReported, the work queues.
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
// The result of a delivery causes a reconcile request of the object that keeps the marks
// (Desk.Outcomes). A forge that is down, a wrong token or a missing Secret show up in the
// condition and delay nothing else. The condition also reports if the contexts belong to
// another source: the oldest source that declares them owns them.
package forge
