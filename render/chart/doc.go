// Package chart renders a Helm chart, or a folder of Go-template manifests, into objects.
//
//	files --Source--> Engine --Render(Input)--> Manifests: objects with their files
//
// Charts are read and rendered by Helm's own library. The rendering is
//
//   - closed: no hub, no network, no DNS, no environment, no files but the chart's;
//   - repeatable: functions that use random numbers or the time are refused, and so is a
//     rendering that depends on the order of a map (Verify).
//
// The package does not limit time and memory. An Engine with limits runs Source.Load and the methods of Chart in a
// separate process; InProcess has no limits.
//
// Everything is a function of its arguments.
package chart
