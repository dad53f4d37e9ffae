// Package gatechecks checks the gates of rollouts in the background.
//
// A reconcile never waits for a Prometheus or a web service. It uses the Desk in this order:
//
//	results := desk.Results(key)     what was measured so far
//	(plan, one status write)
//	desk.Ask(key, asks, results)     what is to be measured from now on
//
// A new result causes a reconcile request of the rollout (Desk.Outcomes). No measurement is lost: after a result, a
// gate is measured again only when the rollout asks again. By then, its status has the result.
//
// The number of measurements that run at once is limited, also per host and per namespace. So a server that hangs
// delays no gate of another server and namespace.
//
// The rules of a measurement are in package gates; this package adds Kubernetes: the Secret of
// a gate, read uncached and by name, and the work queue.
package gatechecks
