package v1alpha1

import "strings"

// CommitMark is what the operator knows about one context of one commit at the forge.
//
// The operator writes a post down as Posting before it sends it. So whenever the operator
// stops, the forge shows either Accepted or Posting; anything else in that context was written
// by another client, or by the operator before its objects were restored.
type CommitMark struct {
	// SHA is the full object name of the commit.
	SHA string `json:"sha"`
	// Context of the commit status.
	Context string `json:"context"`
	// To is a digest of the destination: forge, repository, and the source's own context. The
	// mark says nothing about any other destination.
	// +optional
	To string `json:"to,omitempty"`
	// Accepted is what the forge accepted last; absent: nothing yet.
	// +optional
	Accepted *CommitStatement `json:"accepted,omitempty"`
	// AcceptedAt is when, in seconds since 1970.
	// +optional
	AcceptedAt int64 `json:"acceptedAt,omitempty"`
	// ProgressPosts counts the accepted posts about progress: pending after anything else, and a failure after another of
	// the same content.
	// +optional
	ProgressPosts int `json:"progressPosts,omitempty"`
	// Posting is what is being posted; the forge may have it already.
	// +optional
	Posting *CommitStatement `json:"posting,omitempty"`
	// Owed is what the commit should say, if that is neither accepted nor being posted.
	// +optional
	Owed *CommitStatement `json:"owed,omitempty"`
	// Foreign is what the forge shows instead, if the operator does not know it as its own. Nothing is
	// posted over it.
	// +optional
	Foreign *CommitStatement `json:"foreign,omitempty"`
}

// CommitStatement is what one context of one commit says.
type CommitStatement struct {
	// State is pending, success, failure or error.
	State string `json:"state"`
	// Description is the text.
	// +optional
	Description string `json:"description,omitempty"`
	// Progress in percent.
	// +optional
	Progress int `json:"progress,omitempty"`
	// Held is a digest of why nothing moves, or of what failed; absent while anything moves, or could.
	// +optional
	Held string `json:"held,omitempty"`
	// Content names the content that the statement is about.
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
