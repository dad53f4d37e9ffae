// Package chart renders a Helm chart, or a folder of Go-template manifests, into
// objects.
//
//	files --Load--> Chart --Render(Input)--> Output: objects, what they depend on
//
// Charts are read and rendered by Helm's own library. Its engine takes functions over
// its own, each behind a guard here; what has none is counted and watched by calls that
// are written into the text of every template before Helm parses it. So it is
//
//   - bounded: every loop, call, byte and level of nesting is counted, so that a
//     chart that would exhaust the operator is an error of its commit;
//   - closed: no hub, no network, no DNS, no environment, no files but the chart's;
//   - repeatable: what draws random numbers or asks for the time is refused, and so
//     is a rendering that hangs on the order of a map (Verify);
//   - watched: whether the Kubernetes version was read, and whether the name of the
//     cluster decided anything beyond standing in a text, so that clusters share one
//     rendering.
//
// Everything is a function of its arguments.
package chart
