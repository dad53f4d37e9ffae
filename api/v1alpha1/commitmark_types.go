package v1alpha1

import "strings"

// CommitMark has the facts of the operator about one context of one commit at the forge.
//
// The operator stores a post as Posting before it sends it. So after the end of the operator, the forge shows either
// Accepted or Posting. Another status in that context is of another client, or of the operator before its objects
// were restored.
type CommitMark struct {
	// SHA is the full object name of the commit.
	SHA string `json:"sha"`
	// Context of the commit status.
	Context string `json:"context"`
	// To is a digest of the destination: forge, repository, and the source's own context. The mark is not valid for
	// another destination.
	// +optional
	To string `json:"to,omitempty"`
	// Accepted is the last statement that the forge accepted; absent: none yet.
	// +optional
	Accepted *CommitStatement `json:"accepted,omitempty"`
	// AcceptedAt is the time of Accepted, in seconds since 1970.
	// +optional
	AcceptedAt int64 `json:"acceptedAt,omitempty"`
	// ProgressPosts counts the accepted posts about progress: pending after another statement, and a further text of
	// a failure of the same content.
	// +optional
	ProgressPosts int `json:"progressPosts,omitempty"`
	// Posting is the statement of the post under way; the forge may have it already.
	// +optional
	Posting *CommitStatement `json:"posting,omitempty"`
	// Owed is the statement that the commit should have, if it is neither accepted nor being posted.
	// +optional
	Owed *CommitStatement `json:"owed,omitempty"`
	// Foreign is the statement that the forge shows instead, if the operator does not know it as its own. No status
	// is posted over it.
	// +optional
	Foreign *CommitStatement `json:"foreign,omitempty"`
}

// CommitStatement is one status of one context of one commit.
type CommitStatement struct {
	// State is pending, success, failure or error.
	State string `json:"state"`
	// Description is the text.
	// +optional
	Description string `json:"description,omitempty"`
	// Progress in percent. In the context of a source that counts no clusters, it is 100 after the commit was applied.
	// +optional
	Progress int `json:"progress,omitempty"`
	// Held is a digest of why no cluster moves, or of the failure; absent: clusters move, or could move.
	// +optional
	Held string `json:"held,omitempty"`
	// Content names the content of the statement.
	// +optional
	Content string `json:"content,omitempty"`
}

// RefusedSuffix ends status.lastAttemptedSpec of a source that refused
// status.lastAttemptedRevision.
const RefusedSuffix = "-refused"

// Refused reports whether the newest commit that was judged was refused.
func (s *AddOnSourceStatus) Refused() bool {
	return strings.HasSuffix(s.LastAttemptedSpec, RefusedSuffix)
}
