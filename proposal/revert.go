package proposal

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/addonflow/addonflow/api/brief"
)

// Reverts checks that a change from base to head restores the content of one add-on with a digest. The change must
// leave every policy, other add-on and other object of the hub as it is. Reverts returns the first difference from
// that, or "".
func Reverts(base, head Side, addOn, digest string) string {
	for _, side := range []Side{base, head} {
		if len(side.Problems) > 0 {
			return side.Name + " would be refused: " + brief.OneLine(side.Problems[0].String())
		}
	}
	switch restored := find(head.Commit, addOn); {
	case restored == nil:
		return "it would declare no add-on " + addOn
	case restored.Unfetched != "":
		return "chart " + restored.Unfetched + " is in a registry, which is not read for this"
	case len(restored.Missing) > 0:
		return fmt.Sprintf("%s is not on the hub", restored.Missing[0])
	}
	for _, name := range namesOf(base.Commit, head.Commit) {
		before, after := find(base.Commit, name), find(head.Commit, name)
		switch {
		case before == nil:
			return "it would add the add-on " + name
		case after == nil:
			return "it would remove the add-on " + name
		case name == addOn && after.Digest != digest:
			return "the content would not be " + shortDigest(digest)
		case name != addOn && !sameContent(before, after):
			return "it would change the content of " + name + ", too"
		case !equality.Semantic.DeepEqual(before.Policy(), after.Policy()):
			return "it would change the policy of " + name + ", too"
		}
	}
	before, after := others(base.Commit), others(head.Commit)
	if len(differing(before, after))+len(differing(after, before)) > 0 {
		return "it would change other objects on the hub, too"
	}
	return ""
}

// shortDigest is a digest as texts have it.
func shortDigest(digest string) string {
	at := strings.LastIndex(digest, ":") + 1
	return digest[:at] + fmt.Sprintf("%.10s", digest[at:])
}

// Revert is a rollback as its pull request explains it.
type Revert struct {
	AddOn string
	// From and To are the digests, and Bad and Good the commits.
	From, To, Bad, Good string
	// Reason of the rollback, and the Author of the order; "": the operator.
	Reason, Author string
}

// Title is that of the pull request, and the message of its commit.
func (r Revert) Title() string {
	return fmt.Sprintf("Restore %s as of %.10s", r.AddOn, r.Good)
}

// Markdown explains the pull request. Texts of other authors are in code only.
func (r Revert) Markdown() string {
	var b strings.Builder
	verb := "rolled back by itself"
	if r.Author != "" {
		verb = "rolled back by " + code(brief.Cut(r.Author, 100))
	}
	fmt.Fprintf(&b, "The content of add-on %s from commit %.10s was %s:\n\n%s\n", code(r.AddOn), r.Bad, verb,
		fenced("text", []string{brief.Cut(brief.OneLine(r.Reason), problemBytes)}))
	fmt.Fprintf(&b, "The clusters run the content of commit %.10s. This restores its files, so that Git declares what they run. "+
		"AddonFlow has built the result: the content of %s is %s again, and no policy, no other add-on and no other object changes. "+
		"Merging it moves no cluster.\n\n", r.Good, code(r.AddOn), code(shortDigest(r.To)))
	b.WriteString("AddonFlow never merges it. Close it if other content is to follow: it is not opened again.\n")
	return b.String()
}
