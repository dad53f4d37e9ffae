package dashboard

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// program is the name of the command-line tool in advice.
const program = "addonflow"

// Frame is the part of every page around its content.
type Frame struct {
	// Base is the path above all pages, with a slash at its end.
	Base string
	// Path of the page below Base, without a slash at its start.
	Path string
	// Viewer is the user who is logged in; "": the page has no login.
	Viewer string
	// Live: the page is loaded again when its content has changed.
	Live bool
	// Title of the page.
	Title string
	// CommitPage returns the page of a commit at the forge; "": not known. nil: no page is known.
	CommitPage func(forge *v1alpha1.CommitStatusSpec, sha string) string
}

// Mark is a state in the form of a page: an icon, a word, and a class of the style sheet.
type Mark struct{ Icon, Word, Tone string }

func markOf(word string, m show.Mark) Mark { return Mark{m.Icon, word, m.Tone()} }

// Link is a text with an address; without an address it is only text.
type Link struct{ Text, To string }

// Moment is a time for people and for programs.
type Moment struct{ Text, RFC3339 string }

func momentOf(t time.Time) Moment {
	if t.IsZero() {
		return Moment{}
	}
	t = t.UTC()
	return Moment{t.Format("2006-01-02 15:04:05 UTC"), t.Format(time.RFC3339)}
}

func metaMoment(t *metav1.Time) Moment {
	if t == nil {
		return Moment{}
	}
	return momentOf(t.Time)
}

// path joins parts of an address, each escaped.
func path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	return strings.Join(escaped, "/")
}

// RolloutPath is the address of a rollout's page below the base; commit is a sha or "".
func RolloutPath(namespace, name, commit string) string {
	if commit == "" {
		return path("rollouts", namespace, name)
	}
	return path("rollouts", namespace, name, commit)
}

// SourcePath is the address of a source's page below the base.
func SourcePath(namespace, name, commit string) string {
	if commit == "" {
		return path("sources", namespace, name)
	}
	return path("sources", namespace, name, commit)
}

// clusterPath is the address of a cluster's page below the base.
func clusterPath(name string) string { return path("clusters", name) }

// Commit is a commit in the form of a page.
type Commit struct {
	// Short is a text such as main@9f3c2ab, SHA the full name.
	Short, SHA string
	// Forge is the page of the commit at the forge; "": not known.
	Forge string
}

// commit names the commit of a revision.
func (f Frame) commit(revision string, source *v1alpha1.AddOnSource) Commit {
	c := Commit{Short: cmp.Or(show.ShortCommit(revision), "–"), SHA: v1alpha1.CommitOf(revision)}
	if f.CommitPage != nil && source != nil && source.Spec.CommitStatus != nil && c.SHA != "" {
		c.Forge = f.CommitPage(source.Spec.CommitStatus, c.SHA)
	}
	return c
}

// clustersPath is the address of a list of clusters below the base.
func clustersPath(r *v1alpha1.AddOnRollout, of ClustersOf) string {
	query := url.Values{}
	for name, value := range map[string]string{"stage": of.Stage, "state": of.State, "from": of.From} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return path("rollouts", r.Namespace, r.Name, cmp.Or(CurrentCommit(r), "-"), "clusters") + "?" + query.Encode()
}
