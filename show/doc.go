// Package show turns API objects into text for people: tables for `get`, the tree of a rollout, the line that
// `status` prints per change, and progress bars. The page of package dashboard uses the same words.
//
//	AddOnRollout, AddOnSource, AddOnRevision, plan of a cluster
//	  --OutcomeOf--> the outcome, from which the exit code follows
//	  --Line, Tree--> text, drawn with a Style (colour and width of the terminal)
//	  --...Table--> a metav1.Table for cli-runtime's printer
//
// Every state has an icon and a word, so that no information depends on colour. The package
// reads no client, clock or environment; the time is an argument.
package show
