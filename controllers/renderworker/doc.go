// Package renderworker renders charts in a child process, within limits.
//
//	Pool (operator, CLI) --frames over pipes--> Serve (child: `addonflow render-worker`)
//
// Helm's engine has no limits: one line of a template can use any amount of memory and time.
// The child is limited in both, so that the engine needs no limits.
//
//   - A child serves one chart of one owner, for any number of clusters, one after the
//     other. Another chart gets another child.
//   - Memory and CPU time are limited. On Linux the parent sets RLIMIT_DATA and RLIMIT_CPU
//     before the child reads its first frame; everywhere the child watches its own memory.
//     A rendering that reaches one of these two limits is an error of the chart, and names
//     the template.
//   - Renderings wait in one queue. Next is a rendering of the namespace that used
//     the child for the shortest time in the last minutes, and in it of the owner that did.
//   - A reconcile that waits for a rendering does not count among those that run (Reconciles), so
//     that slow charts delay no reconcile without a chart.
//   - Three failures are chart.ErrInterrupted: a deadline, of the wait or of the rendering;
//     a child that does not start; a child that is killed from outside. They say nothing
//     about the content, and the caller tries again.
//   - If the node runs out of memory, the kernel kills the child first (oom_score_adj).
//   - Nothing is written to a file.
package renderworker
