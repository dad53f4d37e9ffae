// Package gates measures the gates of rollouts in the background.
//
// A reconcile never waits for a Prometheus or a web service. It uses the Desk so:
//
//	results := desk.Results(key)     what was measured so far
//	(plan, one status write)
//	desk.Ask(key, asks, results)     what is to be measured from now on
//
// A new result causes a reconcile request of the rollout (Desk.Outcomes). No measurement is
// lost: the next one of an ask begins only after the rollout has asked again, that is, after
// its status has the previous one.
//
// At most a few measurements run at once, and only some of them at one host or for one namespace, so
// that servers that hang delay no gate of another server and namespace.
//
// The rules of a measurement are in package gates; this package adds Kubernetes: the Secret of
// a gate, read uncached and by name, and the work queue.
package gates
