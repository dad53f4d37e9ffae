// Package ocm tests AddonFlow against Open Cluster Management itself: OCM's own
// addon-manager, placement controller and work agent, as processes, on embedded
// hubs (test/hub; the binary is built by test/hubbin from OCM's Go module).
//
//	differential  one corpus of add-ons on two hubs, OCM's addon-manager on the
//	              one, AddonFlow on the other; works and statuses are compared
//	packages      charts and manifests, rendered by OCM's add-on framework and by
//	              AddonFlow; objects are compared
//	beside        both on one hub, each with add-ons of its own: no writes at rest
//	take-over     an add-on that OCM deployed is moved to AddonFlow and back
//	newer         AddonFlow on hubs with the definitions of OCM 1.3
//	agents        the same works for OCM's work agent and for the simulated one;
//	              their statuses and what they leave on the cluster are compared
//	klusterlet    the main job with OCM's placement controller and work agent,
//	              and a second API server as the managed cluster
//
// It has no code but tests.
package ocm
