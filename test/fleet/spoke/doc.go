// Package spoke models one managed cluster as OCM's work agent finds it: which objects live
// there, what their controllers make of them step by step, and what status a ManifestWork gets
// for it.
//
//	Apply(work) -> live objects -> Step() Step() ... -> Report(work)
//
// It is a pure model: no client, no clock (now is an argument), no goroutine, no logger.
// Package fleet gives it time and a hub.
//
// Rolling updates are modelled in detail, so that tests catch a controller that trusts
// Available or counts of updated pods:
//
//   - a Deployment surges and retires within maxSurge and maxUnavailable; pods
//     of an image that never starts count as updated at once and never become
//     ready, while the old pods stay ready, so that Available stays True;
//   - generation rises with the spec alone, observedGeneration follows a step
//     later, counts change one step at a time;
//   - an OrderedReady StatefulSet whose new pod never gets ready stays stuck
//     even when reverted, until a person deletes the pod, as in Kubernetes;
//   - selectors are immutable, a Job is never replaced, namespaces must exist, custom
//     kinds need their CRD: what a real API server refuses gives Applied=False.
//
// Conditions, reasons, messages and feedback follow OCM's agent, to which test/ocm holds them, with
// RawFeedbackJsonString off as it is by default. Condition rules of a work and ignoreFields are not evaluated,
// executors are not checked.
package spoke
