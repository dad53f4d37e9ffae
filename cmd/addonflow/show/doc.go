// Package show turns what the API says into text for people: tables for `get`, the
// tree of a rollout, the one line per change of `status`, progress bars.
//
//	AddOnRollout, AddOnSource, AddOnRevision, plan of a cluster
//	  --OutcomeOf--> what a script needs to know (the exit code follows from it)
//	  --Line, Tree--> text, drawn with a Style (colour and width of the terminal)
//	  --...Table--> a metav1.Table for cli-runtime's printer
//
// Colour never says anything alone: every state has an icon and a word. Nothing here
// reads a client, a clock or the environment; the time is an argument.
package show
