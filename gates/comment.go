package gates

import (
	"fmt"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Comment is a decision as a comment on a forge says it.
type Comment struct {
	Decision           v1alpha1.Decision
	AddOn, Stage, Gate string
	// Digest are the first ten hexadecimal digits of the content.
	Digest string
	// Reason is the text after the first line.
	Reason string
}

const (
	commentPrefix = "/addonflow"
	// commentDigest is how many digits of a digest a comment has.
	commentDigest = 10
)

// commentVerbs are the decisions as a comment names them.
func commentVerbs() map[string]v1alpha1.Decision {
	return map[string]v1alpha1.Decision{"approve": v1alpha1.Approve, "reject": v1alpha1.Reject}
}

// ApproveComment is the comment that approves content at a gate.
func ApproveComment(addOn, stage, gate, digest string) string {
	return fmt.Sprintf("%s approve %s %s %s %s", commentPrefix, addOn, stage, gate, shortOf(digest))
}

// shortOf are the digits of a digest that a comment has.
func shortOf(digest string) string {
	return fmt.Sprintf("%.*s", commentDigest, digest[strings.LastIndex(digest, ":")+1:])
}

// ParseComment reads a comment. The first line must be a decision and nothing else; otherwise ParseComment returns
// false.
func ParseComment(body string) (Comment, bool) {
	line, rest, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(body), "\r\n", "\n"), "\n")
	words := strings.Fields(line)
	if len(words) != 6 || words[0] != commentPrefix || len(words[5]) != commentDigest {
		return Comment{}, false
	}
	decision, ok := commentVerbs()[words[1]]
	return Comment{Decision: decision, AddOn: words[2], Stage: words[3], Gate: words[4], Digest: words[5], Reason: strings.TrimSpace(rest)}, ok
}

// Is reports whether the comment is about a gate of an add-on and its content.
func (c Comment) Is(addOn string, s Subject) bool {
	return c.AddOn == addOn && c.Stage == s.Stage && c.Gate == s.Gate && c.Digest == shortOf(s.Digest)
}
