// Package forge is the desk at which the controllers hand in what commits should say, and
// learn what became of it.
//
// It answers: where do the commit statuses of an AddOnSource go (address, provider, the token
// from its Secret), what has the forge accepted since the last reconcile, and when is the
// next post due. The rules of a status, its words and the HTTP of each forge are
// commitstatus's; this package knows Kubernetes: the Secret, the marks in a status, the
// condition CommitStatusReported, the work queues.
//
// One Desk serves both controllers of a process. A reconcile uses it so:
//
//	book := desk.Open(key, source, marks)              what was delivered is settled
//	book.Tell(...), Overtake, Supersede                what commits should say
//	book.Address(ctx, source)                          reads the Secret, begins what is due
//	obj.Status.CommitStatuses = book.Stored()          remembered on the hub
//	book.SetCondition(obj)                             CommitStatusReported
//	(one status write)
//	after := book.Deliver()                            posts off the reconcile path
//
// The outcome of a delivery comes back as a reconcile request of the object that keeps the
// marks (Desk.Outcomes). A forge that is down, a wrong token or a Secret that is missing show
// up in the condition and delay nothing else. So does that the contexts are another source's:
// the oldest that declares them has them.
package forge
