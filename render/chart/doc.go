// Package chart renders a Helm chart, or a folder of Go-template manifests, into
// objects.
//
//	files --Load--> Chart --Render(Input)--> Output: objects, what they depend on
//
// Charts, values, schemas and dependencies are read by Helm's own library. The
// templates run on text/template with Helm's and sprig's functions, here and not
// in Helm's engine, because that engine can be neither bounded nor watched:
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
// That Helm's engine renders the same is a matter of tests: a hostile chart could tell
// which of the two runs it, and keep for the other what it wants to do without bounds.
// Everything is a function of its arguments.
package chart
